"""Parquet files with the curator's tools and with ``measure``: as CSV, but that values have types."""

from __future__ import annotations

import datetime
import decimal
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from command_desk import assert_discreet

from discreet import open_table
from discreet.domain import Attribute, Domain
from discreet.schema import load_schema
from discreet.tables.check import check_rows, examine
from discreet.tables.draft import draft_schema
from discreet.tables.sources import open_file


@pytest.fixture
def parquet(desk):
    """The rows of the desk as Parquet: texts as texts, ages as numbers with gaps."""
    pq.write_table(pyarrow.csv.read_csv("data.csv"), "data.parquet")
    return desk


def drafted(tmp_path, **columns):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    file = open_file(path)
    return file, draft_schema(file)


def test_a_draft_is_the_one_of_the_same_rows_as_text(parquet, discreet):
    for name in ("data.csv", "data.parquet"):
        assert discreet("schema", "draft", name, "-o", f"{name}.toml").code == 0
    assert load_schema("data.parquet.toml") == load_schema("data.csv.toml")


def test_a_check_finds_what_it_finds_in_text(parquet, discreet):
    ask = ["schema.toml", "--unit-column", "patient", "--counts", "--json"]
    text, columns = (discreet("schema", "check", f"data.{kind}", *ask) for kind in ("csv", "parquet"))
    assert (text.code, columns.code) == (1, 1)
    assert json.loads(columns.out) == json.loads(text.out)
    assert "numbers outside its edges" in columns.out
    assert_discreet(columns.text)


def test_columns_that_are_not_there_are_named(parquet, discreet):
    result = discreet("schema", "check", "data.parquet", "schema.toml", "--unit-column", "patent")
    assert result.code == 2 and "did you mean 'patient'" in result.err
    pq.write_table(pa.table({"smoke": ["yes"], "age": [3]}), "less.parquet")
    assert "'city': is in the schema, but not in the footer" in (
        discreet("schema", "check", "less.parquet", "schema.toml").out
    )


def test_every_type_is_drafted_so_that_its_rows_fit(tmp_path):
    n = 24
    file, draft = drafted(
        tmp_path,
        whole=pa.array([i % 3 for i in range(n)], pa.int16()),
        gaps=pa.array([None, *(float(i % 3) for i in range(1, n))]),
        real=pa.array([i / 7 for i in range(n)]),
        money=pa.array([decimal.Decimal(i % 2) for i in range(n)], pa.decimal128(5, 0)),
        flag=pa.array([None, *(bool(i % 2) for i in range(1, n))]),
        word=pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
        day=pa.array([datetime.date(2020, 1, 1)] * n),
        nested=pa.array([[1]] * n),
        bits=pa.array([b"x"] * n),
        nothing=pa.nulls(n),
    )
    assert {"nested", "bits", "nothing"} == set(draft.left_out)
    assert draft.domain["day"].dates.by == "day"
    assert draft.left_out["bits"] == "its values are blob: write them as text, numbers or booleans first"
    domain = draft.domain
    assert domain["whole"].levels == domain["gaps"].levels == (0, 1, 2) and domain["gaps"].missing
    assert domain["real"].is_numeric and domain["money"].is_numeric
    assert domain["flag"].levels == (False, True) and domain["word"].levels == ("a", "b")
    assert check_rows(file, domain) == []
    table = open_table(file.path, domain)
    assert all("other" not in domain[name].labels or table.count([(name,)])[0][-1] == 0 for name in domain)


def test_odd_values_under_a_schema_break_rules_and_nothing_else(tmp_path, parquet, discreet):
    pq.write_table(
        pa.table({"smoke": [datetime.date(2020, 1, 1)] * 2, "age": [[1], [2]], "city": [b"Xochimilco", None]}),
        "odd.parquet",
    )
    result = discreet("schema", "check", "odd.parquet", "schema.toml")
    assert result.code == 1
    assert "column 'smoke': has values that are not listed" in result.out
    assert "column 'age': has values that are not numbers: such values → unknown" in result.out
    assert_discreet(result.text)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+02:00"])
def test_times_in_a_time_zone_are_values_like_others(tmp_path, zone):
    when = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    file, draft = drafted(
        tmp_path, when=pa.array([when, when, None], pa.timestamp("us", zone)), smoke=["yes", "no", "yes"]
    )
    assert draft.left_out["when"].startswith("its values are timestamp with time zone: write them as text")
    times = Domain.of({"when": Attribute.categorical("when", ["then"], missing="unknown", other="else")})
    found = examine(file, times)
    assert not found.problems and [(p.column, p.rows) for p in found.remarks] == [("when", 2)]
    numbers = Domain.of({"when": Attribute.numeric("when", [0, 1, 2], missing="unknown")})
    assert [p.rule for p in check_rows(file, numbers)] == ["has values that are not numbers: such values → unknown"]
    people = examine(file, Domain.of({"smoke": ["yes", "no"]}), unit="when").problems
    assert [(p.column, p.rows) for p in people] == [("when", 1)]


def test_a_time_that_python_cannot_hold_is_a_value_like_others(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"when": pa.array([0, 2**62], pa.timestamp("us", "UTC"))}), path)
    domain = Domain.of({"when": Attribute.categorical("when", ["then"], missing="unknown", other="else")})
    assert [p.rows for p in examine(open_file(path), domain).remarks] == [2]
    assert open_table(path, domain).count([("when",)])[0].tolist() == [0, 0, 2]


def test_a_folder_and_a_broken_file_are_refused(parquet, discreet):
    (parquet / "parts").mkdir()
    (parquet / "parts" / "one.parquet").write_bytes((parquet / "data.parquet").read_bytes())
    result = discreet("schema", "draft", "parts", "-o", "new.toml")
    assert result.code == 4 and "parts/one.parquet" in result.err
    (parquet / "cut.parquet").write_bytes((parquet / "data.parquet").read_bytes()[:80])
    result = discreet("schema", "check", "cut.parquet", "schema.toml")
    assert result.code == 4 and "footer cannot be read" in result.err


def test_tables_are_measured_from_parquet(parquet, discreet):
    ask = ["--schema", "schema.toml", "--table", "smoke", "--table", "age", "--epsilon", "1e6", "--json"]
    person = ["--unit-column", "patient", "--max-rows", "9"]
    found = [json.loads(discreet("measure", f"data.{kind}", *ask, *person).out) for kind in ("csv", "parquet")]
    assert [t["counts"] for t in found[0]["tables"]] == [t["counts"] for t in found[1]["tables"]]
