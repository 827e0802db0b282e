"""What `pip install .` alone can do: fit, ask, sample, report. What needs an extra says which one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import core_environment
import pytest

SCHEMA = '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.lung]\nlevels = ["yes", "no"]\n'
EXTRAS = {"sklearn", "matplotlib", "duckdb", "pyspark", "pandas", "polars", "pyarrow", "dp_accounting"}
ALL_OF_IT = """
from discreet.cli import run
for words in [
    ["schema", "show", "schema.toml"],
    ["plan", "--schema", "schema.toml", "--epsilon", "1"],
    ["ledger", "create", "ledger.db", "--epsilon", "3"],
    ["fit", "rows.csv", "--schema", "schema.toml", "--epsilon", "1", "--ledger", "ledger.db"],
    ["query", "model.zip", "P(lung | smoke=yes)"],
    ["sample", "model.zip", "-n", "50", "-o", "new.csv"],
    ["report", "model.zip"],
    ["verify", "model.zip"],
    ["show", "model.zip"],
    ["certify", "model.zip", "rows.csv", "--epsilon", "1", "--ledger", "ledger.db"],
    ["evaluate", "model.zip", "new.csv", "rows.csv", "--no-classifiers", "--force"],
    ["sample", "model.zip", "--given", "known.csv", "-o", "completed.csv"],
    ["measure", "rows.csv", "--schema", "schema.toml", "--table", "lung", "--epsilon", "1", "-o", "tables.zip"],
]:
    assert run(words) == 0, words
import sys
assert not {found!r} & {{name for name, module in sys.modules.items() if module is not None}}
"""


FRAMES = """
import sys
import discreet
from discreet import Curator, PrivacyUnit, PureDP, Release, encode, resolve
domain = discreet.load_schema("schema.toml")
rows = {make}
with Curator(encode(rows, domain), PrivacyUnit(), PureDP(1000)) as curator:
    release = Release.of(resolve(domain, graph="smoke -> lung").learn(curator))
model = release.model
assert abs(float(model.ask("P(smoke=yes)")) - 0.5) < 0.05
frame = model.sample(100, random_state=0).to_frame()
assert type(frame).__module__.split(".")[0] == {library!r} and len(frame) == 100
assert len(model.ask("P(lung | smoke)").to_frame()) == 4
release.save("framed.zip")
assert {library!r} == "pandas" or "pandas" not in sys.modules
assert "pyarrow" not in sys.modules
"""
COLUMNS = '{"smoke": ["yes", "no"] * 500, "lung": ["no", "no"] * 500}'


def alone(code: str, folder: Path, besides: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = core_environment.environment(core_alone=True, besides=besides)
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("alone")
    (made / "schema.toml").write_text(SCHEMA)
    (made / "rows.csv").write_text("smoke,lung\n" + "yes,no\nno,no\n" * 500)
    (made / "known.csv").write_text("smoke\nyes\nno\n")
    (made / "rows.parquet").write_bytes(b"PAR1 and no more")
    (made / "rows.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd and no more")
    return made


def test_from_rows_to_a_report_without_any_extra(folder: Path) -> None:
    assert core_environment.absent(frozenset()) >= EXTRAS
    done = alone(ALL_OF_IT.format(found=EXTRAS), folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len((folder / "completed.csv").read_text().splitlines()) == 3
    assert (folder / "report.html").exists() and len((folder / "new.csv").read_text().splitlines()) == 51


def test_the_demonstration_does_without_what_is_not_there(folder: Path) -> None:
    done = alone("from discreet.cli import run; raise SystemExit(run(['demo', '--people', '200']))", folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "discreet[files]" in done.stdout and not (folder / "demo" / "draft.toml").exists()
    assert (folder / "demo" / "report.html").exists()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_the_users_own_library_are_all_that_frames_need(library: str, folder: Path) -> None:
    done = alone(
        FRAMES.format(make=f"__import__({library!r}).DataFrame({COLUMNS})", library=library), folder, (library,)
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_columns_as_lists_need_no_library_and_a_frame_out_says_which(folder: Path) -> None:
    done = alone(FRAMES.format(make=COLUMNS, library="pandas"), folder)
    assert "a frame needs the package pandas, polars or pyarrow" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("discreet.PrivateGraphicalModel", "sklearn"),
        ("discreet.networks.load('asia').plot()", "plot"),
        ("discreet.cli.run(['schema', 'draft', 'rows.csv', '-o', 'first.toml'])", "files"),
        ("discreet.cli.run(['schema', 'check', 'rows.csv', '--schema', 'schema.toml'])", "files"),
        ("discreet.tables.open.open_table('rows.csv', discreet.load_schema('schema.toml'), engine='spark')", "spark"),
        ("discreet.tables.open.open_table('rows.parquet', discreet.load_schema('schema.toml'))", "files"),
        ("discreet.tables.open.open_table('rows.csv.zst', discreet.load_schema('schema.toml'))", "files"),
        ("discreet.networks.load('asia').sample(9).to_parquet('new.parquet')", "files"),
        ("discreet.cli.run(['sample', 'model.zip', '--given', 'rows.parquet', '-o', 'other.csv'])", "files"),
        ("discreet.cli.run(['fit', 'rows.parquet', '--schema', 'schema.toml', '--epsilon', '1'])", "files"),
    ],
)
def test_a_missing_extra_is_named(code: str, extra: str, folder: Path) -> None:
    done = alone(f"import discreet, discreet.cli, discreet.tables.open\n{code}", folder)
    last = done.stderr.strip().splitlines()[-1]
    assert f"pip install 'discreet[{extra}]'" in last, done.stderr[-2000:]
