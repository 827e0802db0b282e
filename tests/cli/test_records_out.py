"""From a file to a synthetic file of the same columns: values, types, decimals, dates and gaps as they came in."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import adult_like

from discreet import load_schema
from discreet.cli.app import run
from discreet.models.base import Model
from discreet.release import Release

NUMBERS = ("age", "hours", "gain", "weight")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    adult_like.write(folder)
    budget = ["--epsilon", "1", "--delta", "1e-6", "--graph", "age -> hours; job -> gain; age -> weight"]
    files = [str(folder / "people.csv"), "--schema", str(folder / "schema.toml"), "-o", str(folder / "model.zip")]
    assert run(["fit", *files, *budget]) == 0
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return Release.load(folder / "model.zip").model


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, na_values=["<NULL>"], keep_default_na=True)


def test_csv_to_csv_of_the_same_types(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "synthetic.csv"
    assert run(["sample", str(folder / "model.zip"), "-n", "20000", "--seed", "1", "-o", str(out), "--force"]) == 0
    original, synthetic = read(folder / "people.csv"), read(out)
    assert list(synthetic) == list(original)
    assert synthetic.dtypes.to_dict() == original.dtypes.to_dict()
    gaps = synthetic.isna().mean() - original.isna().mean()
    assert gaps.abs().max() < 0.03 and synthetic["age"].notna().all()
    texts = out.read_text(encoding="utf-8").splitlines()[1:200]
    for line in texts:
        *_, gain, weight, joined, member, children = line.split(",")
        assert re.fullmatch(r"\d+\.\d\d", gain) and re.fullmatch(r"|\d\d\.\d\d\.\d{4}", joined)
        assert member in ("true", "false") and children in "0123" and "[" not in line and weight != "nan"
    days = pd.to_datetime(synthetic["joined"], format="%d.%m.%Y")
    assert days.min() >= pd.Timestamp("2015-01-01") and days.max() <= pd.Timestamp("2024-06-30")
    assert (synthetic["gain"] == 0).mean() == pytest.approx((original["gain"] == 0).mean(), abs=0.02)
    assert (synthetic["hours"] == 40).mean() == pytest.approx((original["hours"] == 40).mean(), abs=0.02)
    assert run(["schema", "check", str(out), str(folder / "schema.toml")]) == 0


def test_mean_and_deviation_of_every_number(folder: Path, model: Model) -> None:
    """Within 3 % and what noise can have done: three times its 90 % half-width, so as not to fail by chance."""
    original = read(folder / "people.csv")
    intervals = Release.load(folder / "model.zip").intervals(draws=10)
    synthetic = model.sample(200_000, 0).to_pandas()
    for name in NUMBERS:
        x = original[name].dropna()
        for kind, truth, drawn in (("E", x.mean(), synthetic[name].mean()), ("SD", x.std(), synthetic[name].std())):
            found = intervals.ask(f"{kind}({name})")
            allowed = 0.03 * abs(truth) + 3 * float(found.half_width)
            assert abs(float(found.estimate) - truth) < allowed, (kind, name)
            assert abs(drawn - truth) < allowed + 0.02 * x.std(), (kind, name)
        for q in (0.1, 0.5, 0.9):
            found = float(model.ask(f"QUANTILE({name}, {q})"))
            edges = np.array(model.domain[name].edges)
            assert abs(np.searchsorted(edges, found) - np.searchsorted(edges, np.quantile(x, q))) <= 1


@pytest.mark.parametrize(
    ("method", "how"), [("exact", "out.csv."), ("rounded", "out.csv, by rounding expected counts.")]
)
def test_what_is_said_of_how_records_were_drawn(folder: Path, capsys, method: str, how: str) -> None:
    out = folder / "out.csv"
    asked = ["sample", str(folder / "model.zip"), "-n", "5", "--method", method, "-o", str(out), "--force"]
    assert run(asked) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("Wrote 5 synthetic records to ") and how in said


def test_parquet_has_the_types_of_the_columns(folder: Path) -> None:
    path = folder / "out.parquet"
    assert run(["sample", str(folder / "model.zip"), "-n", "500", "-o", str(path), "--force"]) == 0
    schema = pq.read_schema(path)
    wanted = {
        "age": pa.int64(), "job": pa.string(), "hours": pa.int64(), "gain": pa.float64(), "weight": pa.float64(),
        "joined": pa.date32(), "member": pa.bool_(), "children": pa.int64(),
    }  # fmt: skip
    assert {name: schema.field(name).type for name in wanted} == wanted
    table = pq.read_table(path)
    assert table["hours"].null_count > 0 and table["age"].null_count == 0


def test_frames_come_back_to_the_same_codes(model: Model) -> None:
    drawn = model.sample(2000, 3)
    for frame in (drawn.to_pandas(), drawn.to_polars(), drawn.to_arrow()):
        np.testing.assert_allclose(model.log_prob(frame), model.log_prob(drawn))
    types = drawn.to_pandas().dtypes.astype(str).to_dict()
    assert types["age"] == "int64" and types["hours"] == "Int64" and types["gain"] == "float64"
    assert types["joined"].startswith("datetime64") and types["member"] == "bool"
    row = next(iter(drawn))
    assert isinstance(row["age"], int) and (row["hours"] is None or isinstance(row["hours"], int))


def test_labels_when_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sample", str(folder / "model.zip"), "-n", "50", "--labels"]) == 0
    out = capsys.readouterr().out
    assert "[17, 22)" in out or "[22, 27)" in out
    assert run(["sample", str(folder / "model.zip"), "-n", "5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert all(row["joined"] is None or re.fullmatch(r"\d{4}-\d\d-\d\d", row["joined"]) for row in rows)


def test_some_records_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = 'age >= 40, age < 50, job in {sales, "x, y"}, known(hours), joined >= 2020-02-15'
    out = folder / "some.csv"
    assert run(["sample", str(folder / "model.zip"), "-n", "400", "--where", where, "-o", str(out), "--force"]) == 0
    drawn = read(out)
    assert (
        drawn["age"].between(40, 49).all() and set(drawn["job"]) == {"sales", "x, y"} and drawn["hours"].notna().all()
    )
    assert (pd.to_datetime(drawn["joined"], format="%d.%m.%Y") >= "2020-02-15").all()
    assert run(["sample", str(folder / "model.zip"), "--where", "age >= 40, jobb=sales"]) == 2
    said, shown, mark = capsys.readouterr().err.splitlines()[-3:]
    assert "did you mean 'job'" in said and shown[mark.index("^") : len(mark)] == "jobb"
    assert run(["sample", str(folder / "model.zip"), "--where", "age=40", "--given", "age=40"]) == 2


def test_rows_are_completed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, out = folder / "rows.csv", folder / "completed.csv"
    rows.write_text('id,age,job,joined\n1,44,"x, y",\n2,,sales,01.02.2020\n3,18,<NULL>,\n')
    command = ["sample", str(folder / "model.zip"), "--given", str(rows), "--seed", "3", "--force"]
    assert run([*command, "-o", str(out)]) == 0
    assert "does not know 'id'" in capsys.readouterr().err
    drawn = pd.read_csv(out)
    assert list(drawn) == list(adult_like.columns(1)) and len(drawn) == 3
    assert drawn["age"][0] == 44 and drawn["age"][2] == 18 and drawn["job"][0] == "x, y" and drawn["job"][1] == "sales"
    assert drawn["joined"][1] == "01.02.2020" and drawn["gain"].notna().all()
    assert run([*command, "-n", "5"]) == 2 and "leave out -n" in capsys.readouterr().err
    assert run([*command, "--given", "job=sales"]) == 2
    assert run(["sample", str(folder / "model.zip"), "--given", str(folder / "none.csv")]) == 4
    rows.write_text("job\nsales\nking\n")
    assert run(command) == 2 and "row 2: column 'job' has no level 'king'" in capsys.readouterr().err


def test_the_schema_is_a_dozen_lines_of_public_knowledge(folder: Path) -> None:
    assert not load_schema(folder / "schema.toml").peeked
