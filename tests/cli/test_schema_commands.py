"""Drafting a schema by looking, and checking rows against one: tools for the curator."""

from __future__ import annotations

import csv
import itertools
import json
import math

import pytest
from command_desk import assert_discreet, contents
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.schema import load_schema, parse_schema
from discreet.tables.delimited import open_delimited, read_delimited
from discreet.tables.draft import check_rows, draft_schema, round_edges


def drafted(tmp_path, text, **options):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return draft_schema(open_delimited(path), **options)


def column(values):
    return "x\n" + "\n".join(map(str, values)) + "\n"


# -- what is proposed --------------------------------------------------------------------------------------------------


def test_few_words_become_levels(tmp_path):
    attribute = drafted(tmp_path, column(["yes", "no", "yes"])).domain["x"]
    assert attribute.levels == ("no", "yes")
    assert attribute.peeked == {"levels"}
    assert attribute.missing is None and attribute.other is None


def test_blanks_become_a_missing_level(tmp_path):
    attribute = drafted(tmp_path, "x,y\nyes,1\n,2\nno,1\n").domain["x"]
    assert attribute.missing == "missing"
    assert attribute.peeked == {"levels", "missing"}


def test_a_level_called_missing_is_not_taken(tmp_path):
    attribute = drafted(tmp_path, "x,y\nmissing,1\n,2\n").domain["x"]
    assert attribute.missing == "(missing)" and attribute.levels == ("missing",)


def test_few_whole_numbers_become_levels(tmp_path):
    assert drafted(tmp_path, column([10, 2, 1, 2])).domain["x"].levels == (1, 2, 10)


def test_many_whole_numbers_become_bins(tmp_path):
    attribute = drafted(tmp_path, column([*range(3, 98), 5, 5, 7] * 3)).domain["x"]
    assert attribute.edges == tuple(range(0, 101, 10))
    assert attribute.integer and attribute.peeked == {"edges"}


def test_real_numbers_become_bins_even_when_few(tmp_path):
    attribute = drafted(tmp_path, column([0.5, 1.5, "NA"])).domain["x"]
    assert attribute.is_numeric and not attribute.integer
    assert attribute.missing == "missing"


def test_codes_with_leading_zeros_are_not_numbers(tmp_path):
    assert drafted(tmp_path, column(["007", "010", "007"])).domain["x"].levels == ("007", "010")


def test_booleans(tmp_path):
    assert drafted(tmp_path, column(["True", "false", "TRUE"])).domain["x"].levels == (False, True)


def test_many_words_keep_the_frequent_ones(tmp_path):
    words = [f"w{i}" for i in range(40) for _ in range(40 - i)]
    attribute = drafted(tmp_path, column(words), most_levels=5).domain["x"]
    assert attribute.levels == ("w0", "w1", "w2", "w3", "w4")
    assert attribute.other == attribute.outside == "other"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("who", [f"p{i}" for i in range(30)]),
        ("number", range(1000, 1040)),
        ("person_id", [(i * 7919) % 1000003 for i in range(100)] * 2),
        ("name", [f"n{i // 2}" for i in range(200)]),
        ("nothing", [""] * 5),
        ("note", ["z" * 200, "y"] * 20),
    ],
)
def test_what_looks_like_a_person_is_left_out(tmp_path, name, values):
    text = f"{name},ok\n" + "".join(f"{v},yes\n" for v in values)
    draft = drafted(tmp_path, text)
    assert draft.domain.names == ("ok",)
    assert name in draft.left_out
    assert f"#   {name}: " in draft.text()
    assert parse_schema(draft.text()) == draft.domain


def test_measured_numbers_are_not_taken_for_identifiers(tmp_path):
    values = [round(math.sin(i) * 1000, 3) for i in range(100)]
    assert drafted(tmp_path, column(values)).domain["x"].is_numeric


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite, st.floats(0, 1))
def test_edges_span_what_was_seen(a, b, at):
    low, high = sorted((a, b))
    middle = min(max(low + at * (high - low) if math.isfinite(high - low) else 0.0, low), high)
    edges = round_edges(low, high, middle, whole=False)
    assert edges[0] <= low and edges[-1] >= high
    assert all(x < y for x, y in itertools.pairwise(edges))
    assert all(map(math.isfinite, edges)) and 2 <= len(edges) <= 40


@given(st.integers(-(10**15), 10**15), st.integers(0, 10**12))
def test_edges_of_whole_numbers_are_whole(low, width):
    edges = round_edges(low, low + width, low + width / 3, whole=True)
    assert edges[0] <= low and edges[-1] >= low + width
    assert all(float(e).is_integer() for e in edges)
    assert all(x < y for x, y in itertools.pairwise(edges))


fields = st.sampled_from(["", "yes", "no", "NA", "1", "2.5", "-3", "1e300", "x,y", 'q"q', "é", " 7 ", "007"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(fields, fields), min_size=1, max_size=30))
def test_rows_fit_the_draft_made_from_them(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("draft") / "rows.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("a", "b"), *rows, ("yes", "1")])
    file = open_delimited(path)
    draft = draft_schema(file)
    assert check_rows(file, draft.domain) == []
    assert parse_schema(draft.text()) == draft.domain
    table = read_delimited(file, draft.domain)
    assert all(t.sum() == len([r for r in rows if r]) + 1 for t in table.count([(n,) for n in draft.domain]))


def test_infinities_do_not_stretch_the_bins(tmp_path):
    draft = drafted(tmp_path, column([0.5, 9.5, "inf", "1e400", "-inf", "nan"]))
    assert draft.domain["x"].edges == tuple(range(11))
    (problem,) = check_rows(open_delimited(tmp_path / "rows.csv"), draft.domain)
    assert (problem.rule, problem.rows) == ("has numbers outside its edges; they would go to the nearest bin", 3)


# -- the commands ------------------------------------------------------------------------------------------------------


def test_draft_writes_warns_and_shows_no_value(desk, discreet):
    result = discreet("schema", "draft", "data.csv", "-o", "new.toml")
    assert result.code == 0
    assert "WARNING" in result.err and "not protected" in result.err.replace("nothing in it is", "not")
    assert "peeked" in result.err
    assert_discreet(result.text)
    domain = load_schema(desk / "new.toml")
    assert set(domain.peeked) == set(domain.names)
    assert "private data" in (desk / "new.toml").read_text()


def test_a_release_under_a_draft_says_so(desk, discreet):
    discreet("schema", "draft", "data.csv", "-o", "new.toml")
    ask = ["measure", "data.csv", "--schema", "new.toml", "--table", "smoke", "--epsilon", "1", "-o", "t.zip"]
    result = discreet(*ask)
    assert "drafted by looking" in result.err
    for text in (result.out, discreet("verify", "t.zip").out, discreet("show", "t.zip").out):
        assert "Not protected: learned by looking at private data was smoke (levels)" in text


def test_a_draft_is_there_completely_or_not_at_all(desk, discreet, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = contents(desk)
    monkeypatch.setattr("os.fsync", full)
    assert discreet("schema", "draft", "data.csv", "-o", "schema.toml", "--force").code == 4
    assert contents(desk) == before


def test_check_names_columns_and_rules_but_no_value(desk, discreet):
    result = discreet("schema", "check", "data.csv", "schema.toml")
    assert result.code == 1
    assert "outside the guarantee" in result.out.splitlines()[0]
    assert "column 'smoke': has values that are none of its levels" in result.out
    assert "column 'age': has numbers outside its edges" in result.out
    assert "'city'" not in result.out, "it has a level for others"
    assert "rows]" not in result.out
    assert_discreet(result.text)
    assert "maybe" not in result.text
    assert "column 'age': has numbers outside its edges; they would go to the nearest bin [1 rows]" in (
        discreet("schema", "check", "data.csv", "schema.toml", "--counts").out
    )


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("x,yes", "fewer fields"),
        ("x,yes,1,north,Xochimilco", "more fields"),
        ("x,,1,north", "column 'smoke': has absent values"),
        ("x,yes,Xochimilco,north", "column 'age': has values that are not numbers"),
        ("x,yes,1,no\x00rth", "NUL"),
        ("x,yes,1,\udcffXochimilco", "not UTF-8"),
    ],
)
def test_check_finds_each_rule(desk, discreet, row, rule):
    good = "patient,smoke,age,city\na,yes,1,north\n"
    (desk / "data.csv").write_text(good)
    assert discreet("schema", "check", "data.csv", "schema.toml").code == 0
    (desk / "data.csv").write_bytes((good + row + "\n").encode("utf-8", "surrogateescape"))
    result = discreet("schema", "check", "data.csv", "schema.toml")
    assert result.code == 1
    assert rule in result.out
    assert_discreet(result.text)


def test_check_finds_fractions_and_missing_columns(desk, discreet):
    (desk / "schema.toml").write_text("[columns.age]\nedges = [0, 100]\ninteger = true\n[columns.b]\nlevels = [1]\n")
    (desk / "data.csv").write_text("age\n3\n4.5\n")
    result = discreet("schema", "check", "data.csv", "schema.toml", "--json")
    assert result.code == 1
    found = json.loads(result.out)["problems"]
    assert [p["column"] for p in found] == ["age", "b"]
    assert "fractions" in found[0]["rule"] and "rows" not in found[0]


def test_show_lists_columns_levels_and_peeks(desk, discreet):
    result = discreet("schema", "show", "schema.toml")
    assert result.code == 0
    assert "[0, 18), [18, 65), [65, 120], unknown" in result.out
    assert "3 columns, 24 cells" in result.out
    assert json.loads(discreet("schema", "show", "schema.toml", "--json").out)["peeked"] == {}
