"""Drafting a schema by looking, and checking rows against one: tools for the curator."""

from __future__ import annotations

import csv
import itertools
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_desk import assert_discreet, contents
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Domain, open_table
from discreet.errors import InputError
from discreet.schema import load_schema, parse_schema
from discreet.tables.check import check_rows
from discreet.tables.delimited import open_delimited
from discreet.tables.draft import draft_schema, round_edges


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


def test_words_for_absent_values_are_the_same_in_every_kind_of_column(tmp_path):
    """Days, numbers and texts: what stands for an absent value in one does in all, and in the private draft."""
    rows = [(f"2020-{1 + i % 12:02}-{1 + i % 28:02}", i % 70 + 0.5, i % 4, "abc"[i % 3]) for i in range(600)]
    rows += [(word,) * 4 for word in ("-", "unknown", "Missing") for _ in range(20)]
    text = "day,pay,kids,job\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    domain = drafted(tmp_path, text).domain
    assert domain["day"].dates.by == "month" and domain["pay"].is_numeric
    assert domain["kids"].levels == (0, 1, 2, 3) and domain["job"].levels == ("a", "b", "c")
    for attribute in domain.attributes:
        assert attribute.missing == "missing" and attribute.missing_values == ("-", "Missing", "unknown")
    private = drafted(tmp_path, text, private=True).domain
    assert all({"-", "Missing", "unknown"} <= set(attribute.missing_values) for attribute in private.attributes)
    for found in (domain, private.project(["day"])):
        table = open_table(tmp_path / "rows.csv", found)
        assert table.count([("day",)])[0][found["day"].missing_code] == 60


def test_none_is_an_answer_among_categories_and_absent_among_numbers(tmp_path):
    rows = "".join(f"{w},{'none' if i % 9 == 0 else i % 5}\n" for i, w in enumerate(["none", "some", "much"] * 30))
    domain = drafted(tmp_path, f"drinks,kids\n{rows}").domain
    assert domain["drinks"].levels == ("much", "none", "some") and domain["drinks"].missing is None
    assert domain["kids"].levels == (0, 1, 2, 3, 4) and domain["kids"].missing_values == ("none",)


def test_a_level_called_other_is_not_taken(tmp_path):
    attribute = drafted(tmp_path, "x,y\nother,1\na,2\nb,3\n").domain["x"]
    assert attribute.other == "(other)" and attribute.levels == ("a", "b", "other")
    private = drafted(tmp_path, "x,y\nother,1\na,2\nb,3\n", private=True).domain["x"]
    assert private.other == "(other)", "what is found may be called so, and nobody has looked"


def test_a_value_that_few_rows_have_is_not_listed(tmp_path):
    """It may tell of somebody; the comment says from how many rows on one is listed."""
    rows = [("flu" if i % 2 else "cold", i % 3, "w") for i in range(500)]
    rows += [(f"SECRETDISEASE-{i}", 17 if i < 9 else 18, f"v{i % 50}") for i in range(19)]
    text = "ill,kids,job\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    draft = drafted(tmp_path, text)
    assert draft.domain["ill"].levels == ("cold", "flu") and draft.domain["ill"].other == "other"
    assert draft.domain["kids"].levels == (0, 1, 2, 18), "17 has nine rows, 18 has ten"
    assert "SECRET" not in draft.text()
    assert "# the most frequent values, of at least 10 rows each; all others go to the level 'other'" in draft.text()


def test_a_column_without_a_value_that_several_rows_have_is_left_out(tmp_path):
    rows = "".join(f"w{i % 40},{i % 2}\n" for i in range(200))
    draft = drafted(tmp_path, f"x,y\n{rows}", most_levels=50)
    assert draft.left_out == {"x": "no value that at least 10 rows have"} and draft.domain.names == ("y",)


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


def test_more_than_two_categories_get_a_level_for_others(tmp_path):
    """Neither an unlisted value nor an absent one may count as the first category."""
    for values in (["a", "b", "c"], ["a"], [1, 2, 3], ["a", "b", '""'], ["true", "false", '""']):
        attribute = drafted(tmp_path, column(values)).domain["x"]
        assert attribute.other == attribute.outside == "other"
        assert (attribute.missing == "missing") == ('""' in values)


@pytest.mark.parametrize("values", [["yes", "no"], [0, 1], ["true", "false"]])
def test_two_categories_stay_two_and_the_file_says_where_the_rest_goes(tmp_path, values):
    draft = drafted(tmp_path, column(values))
    first = draft.domain["x"].labels[0]
    assert draft.domain["x"].size == 2 and draft.domain["x"].outside == first
    note = (
        f"# NOTE: absent and unlisted values have no level of their own here, and would count as {first}\n[columns.x]"
    )
    assert note in draft.text()


def test_numbers_without_gaps_say_where_a_gap_would_go(tmp_path):
    draft = drafted(tmp_path, column([0.5, 9.5, 3.25]))
    assert "NOTE: absent values have no level of their own here, and would count as [0, 1)\n" in draft.text()
    assert "NOTE" not in drafted(tmp_path, column([0.5, 9.5, "NA"])).text()


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
    table = open_table(path, draft.domain)
    assert all(t.sum() == len([r for r in rows if r]) + 1 for t in table.count([(n,) for n in draft.domain]))


def test_infinities_do_not_stretch_the_bins(tmp_path):
    draft = drafted(tmp_path, column([0.5, 9.5, "inf", "1e400", "-inf", "nan"]))
    assert draft.domain["x"].edges == tuple(range(11))
    (problem,) = check_rows(open_delimited(tmp_path / "rows.csv"), draft.domain)
    assert (problem.rule, problem.rows) == ("has numbers outside its edges: numbers outside → the nearest bin", 3)


# -- columns as they come ----------------------------------------------------------------------------------------------


def test_numbers_behind_words_for_missing_are_numbers(tmp_path):
    ages = ["<NULL>" if i % 9 == 0 else 18 + i % 60 for i in range(600)]
    age = drafted(tmp_path, column(ages)).domain["x"]
    assert age.is_numeric and age.integer and age.missing_values == ("<NULL>",) and age.missing == "missing"
    table = open_table(tmp_path / "rows.csv", Domain((age,)))
    assert table.count([("x",)])[0][age.missing_code] == ages.count("<NULL>")


def test_spaces_and_case_are_seen_and_said(tmp_path):
    draft = drafted(tmp_path, "x,y\n" + "".join(f"{v},1\n" for v in ["Male", "Male ", "male", "Female", "?"] * 20))
    sex = draft.domain["x"]
    assert sex.levels == ("Female", "Male") and sex.strip and sex.ignore_case and sex.missing_values == ("?",)
    assert "differ in spaces or case alone are one" in draft.text()


def test_dates_become_periods(tmp_path):
    days = [f"20{19 + i % 3}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(300)]
    dates = drafted(tmp_path, column([*days, "NA"])).domain["x"].dates
    assert (dates.by, str(dates.first), str(dates.last)) == ("month", "2019-01-01", "2021-12-31")
    german = [f"{d[8:]}.{d[5:7]}.{d[:4]}" for d in days]
    assert drafted(tmp_path, column(german)).domain["x"].dates.format == "%d.%m.%Y"


def test_crowded_numbers_get_bins_of_equal_mass_and_heaps(tmp_path):
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(3000) < 0.5, 0, np.round(rng.lognormal(7, 1.5, 3000), 2))
    money = drafted(tmp_path, column(gain.tolist())).domain["x"]
    assert money.heaps == (0,) and money.decimals == 2 and {"edges", "heaps", "decimals"} <= money.peeked
    counts = open_table(tmp_path / "rows.csv", Domain((money,))).count([("x",)])[0]
    assert counts[: money.bins].max() < 0.4 * 1500


def test_one_mark_for_the_whole_file(tmp_path):
    text = drafted(tmp_path, "a,b\n" + "".join(f"{w},{i / 4}\n" for i, w in enumerate("xyz" * 9))).text()
    assert text.count("\npeeked = ") == 1 and text.index("\npeeked = ") < text.index("[columns.a]")
    domain = parse_schema(text)
    assert domain.peeked == {"a": ("levels",), "b": ("decimals", "edges")}
    own = parse_schema(text.replace("[columns.a]", "[columns.a]\npeeked = []"))
    assert set(own.peeked) == {"b"}


def test_frames_are_drafted_as_files_are(tmp_path):
    words = [*["yes", "no", "NA"] * 20]
    frame = pd.DataFrame({"w": words, "n": np.arange(60) / 8, "day": pd.Timestamp("2020-02-03")})
    from_file = drafted(tmp_path, frame.to_csv(index=False)).domain
    for rows in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert draft_schema(rows).domain == from_file
    with pytest.raises(InputError, match="a draft is made of a file or a pandas"):
        draft_schema([1, 2])


def test_a_private_draft_looks_at_kinds_alone(tmp_path, desk, discreet):
    rows = [(f"w{i % 7}", "?" if i == 3 else i % 50, f"p{i}") for i in range(200)]
    (desk / "rows.csv").write_text("a,b,who\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))
    result = discreet("schema", "draft", "rows.csv", "--private", "-o", "new.toml")
    assert result.code == 0 and "found privately" in result.err and "WARNING" not in result.err
    domain, text = load_schema(desk / "new.toml"), (desk / "new.toml").read_text()
    assert not domain.peeked and [a.sought.what for a in domain.attributes] == ["levels", "bins"]
    assert "w3" not in text and domain["b"].integer and domain["b"].sought.ends is None
    assert "<NULL>" in domain["a"].missing_values, "the usual words, whichever occur"
    one_more = [*rows, ("w1", "forty", "p")]
    (desk / "rows.csv").write_text("a,b,who\n" + "".join(",".join(map(str, r)) + "\n" for r in one_more))
    discreet("schema", "draft", "rows.csv", "--private", "-o", "more.toml")
    assert (desk / "more.toml").read_text() == text, "one row does not decide"
    done = discreet("fit", "rows.csv", "--schema", "new.toml", "--epsilon", "5", "--delta", "1e-6", "-o", "m.zip")
    assert done.code == 0 and "Found privately, and paid for: a (levels), b (edges, range" in done.out


def test_a_private_draft_asks_for_decimals_and_does_not_look_them_up(tmp_path):
    """How many there are is known of the rows alone: with other decimals the draft is the same, to the letter."""
    drafts = set()
    for decimals in (1, 2, 4):
        (tmp_path / "rows.csv").write_text("x,n\n" + "".join(f"{i + 0.5:.{decimals}f},{i}\n" for i in range(100)))
        drafts.add(draft_schema(open_delimited(tmp_path / "rows.csv"), private=True).text())
    (text,) = drafts
    assert text.count("say so if you know it (decimals = 2)") == 1, "of x, and not of whole numbers"
    assert parse_schema(text)["x"].precision is None


@pytest.mark.parametrize("written", ["2021-{m:02}-{d:02}", "{d:02}.{m:02}.2021"])
def test_a_private_draft_knows_dates_and_guesses_no_years(tmp_path, written):
    days = [written.format(m=1 + i % 12, d=1 + i % 28) for i in range(190)]
    text = "day,n\n" + "".join(f"{day},{i % 9}\n" for i, day in enumerate([*days, *["?", "soon"] * 5]))
    (tmp_path / "rows.csv").write_text(text)
    draft = draft_schema(open_delimited(tmp_path / "rows.csv"), private=True)
    dates = draft.domain["day"].dates
    assert (dates.by, str(dates.first), str(dates.last)) == ("year", "1900-01-01", "2099-12-31")
    assert dates.format == ("" if "{d:02}." not in written else "%d.%m.%Y") and "say from when to when" in draft.text()
    counts = open_table(tmp_path / "rows.csv", parse_schema(draft.text())).count([("day",)])[0]
    assert counts[dates.labels.index("2021")] == 190 and counts[-1] >= 5


def test_spaces_count_for_nothing_where_case_does_not(tmp_path):
    rows = "".join(f"{sex},{i % 3}\n" for i, sex in enumerate(["Male", "male ", "Female", "M "] * 20))
    sex = drafted(tmp_path, f"sex,n\n{rows}").domain["sex"]
    assert sex.strip and sex.ignore_case and len(sex.levels) == 3 and "M" in sex.levels


def test_check_does_not_say_that_all_fits_when_many_rows_are_others(desk, discreet):
    (desk / "s.toml").write_text('[columns.age]\nlevels = ["1", "2"]\nother = "other"\n')
    (desk / "d.csv").write_text("age\n" + "1\n" * 30 + "7\n" * 10)
    out = discreet("schema", "check", "d.csv", "s.toml").out
    assert (
        "more than one row in twenty" in out and "All rows fit" not in out and "many count as a level for others" in out
    )
    (desk / "s.toml").write_text('[columns.age]\nlevels = "discover"\n')
    assert "All rows fit" in discreet("schema", "check", "d.csv", "s.toml").out


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
    assert "drafted by looking" in result.err and "drafted by looking" in discreet(*ask, "--force", "--plan").err
    assert "can be published" not in result.text
    for text in (result.out, discreet("verify", "t.zip").out, discreet("show", "t.zip").out):
        assert "Not protected: learned by looking at private data was smoke (levels)" in text
        assert "contains levels learned by looking at private data, which are not protected" in text
        assert "Do not publish it as it is. Write what is publicly known" in text


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
    assert "column 'smoke': has values that are not listed: unlisted values → yes" in result.out
    assert "column 'age': has numbers outside its edges" in result.out
    many = "column 'city': has values that are not listed: unlisted values → elsewhere, more than one row in twenty"
    assert many in result.out
    assert "row]" not in result.out
    assert_discreet(result.text)
    assert "maybe" not in result.text
    assert "column 'age': has numbers outside its edges: numbers outside → the nearest bin [1 row]" in (
        discreet("schema", "check", "data.csv", "schema.toml", "--counts").out
    )


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("x,yes", "fewer fields than the first line; it is read as far as it goes"),
        ("x,yes,1,north,Xochimilco", "more fields than the first line; it is read as far as it goes"),
        (
            "x,,1,north",
            "column 'smoke': has absent values, and the schema has no missing level for them: absent values → yes",
        ),
        ("x,yes,Xochimilco,north", "column 'age': has values that are not numbers: such values → unknown"),
        ("x,yes,1,no\x00rth", "NUL"),
        ("x,yes,1,\udcffXochimilco", "column 'city': has text that is not UTF-8; rows with it will not be counted"),
        ("x,yes,1,\udcffXochimilco", "convert it: iconv -f WINDOWS-1252 -t UTF-8"),
        ('x,yes,1,"Xochimilco\ny,no,2,south', "has a quote that is not closed; the end of the line closes it"),
        ('x,yes,1,"Xochimilco\ny,no,2,"south"', "has a quote that is not closed; the end of the line closes it"),
        ('x,yes,1,"Xochimilco' + "\ny,no,2,south" * 20_000, "the end of the line closes it"),
        ('x,yes,1,"Xochimilco\ny,no,2,south\nz,"', "spans lines that look like rows"),
        ("x,yes,1,Xochi\rmilco", "holds a line end of another kind than the first line has"),
        ("x,yes,1," + "Xochimilco" * 1_700_000, "is longer than 16 MiB; it will not be counted"),
        ('x,yes,1,"north"Xochimilco', "has text after a closing quote"),
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


def test_check_names_the_decimal_comma(desk, discreet):
    (desk / "data.csv").write_text('patient,smoke,age,city\na,yes,"47,25",north\nb,yes,Xochimilco,north\n')
    result = discreet("schema", "check", "data.csv", "schema.toml", "--counts")
    assert result.code == 1 and "47" not in result.text
    assert "column 'age': has values that are not numbers, probably for their decimal comma" in result.out
    assert "column 'age': has values that are not numbers: such values → unknown [1 row]" in result.out


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


def test_the_file_explains_where_values_go(desk, discreet):
    discreet("schema", "draft", "data.csv", "-o", "new.toml")
    header = (desk / "new.toml").read_text().split("version = 1")[0]
    assert "THE FIRST LEVEL" in header and "docs/schema.md" in header and 'Spaces and case matter: " M "' in header


def test_show_says_where_absent_and_unlisted_values_go(desk, discreet):
    (desk / "s.toml").write_text(
        '[columns.income]\nedges = [0, 10000, 20000]\n[columns.b]\nlevels = ["x, y", " z"]\nmissing = "?"\n'
    )
    out = discreet("schema", "show", "s.toml").out
    lines = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line.strip()}
    assert lines["column"].endswith("absent values → unlisted values → peeked")
    assert lines["income"].endswith("[0, 10000) the nearest bin —")
    assert '"x, y", " z", ? ? ? —' in lines["b"], "a level with a comma or a space stands in quotes"


def test_one_is_not_many(desk, discreet):
    (desk / "s.toml").write_text("[columns.age]\nlevels = [1]\n")
    (desk / "d.csv").write_text("age,b\n1,x\n1,x\n1,y\n")
    assert "1 column, 1 cell in all." in discreet("schema", "show", "s.toml").out
    out = discreet("schema", "check", "d.csv", "s.toml").out
    assert "1 column of the file is not in the schema; it is never read." in out and "the 1 column of s.toml" in out
    (desk / "d.csv").write_text("age\n1\n")
    assert "a draft of 1 column to" in discreet("schema", "draft", "d.csv", "-o", "n.toml").out


def test_check_counts_what_is_not_listed_and_what_is_but_for_case(desk, discreet):
    (desk / "s.toml").write_text('[columns.sex]\nlevels = ["M", "F"]\nother = "other"\n')
    (desk / "d.csv").write_text('sex,b\nM,1\n" M ",1\nm,1\nXochimilco,1\nother,1\n')
    result = discreet("schema", "check", "d.csv", "s.toml", "--counts")
    assert result.code == 0, "the schema foresees them"
    said = "column 'sex': has values that are not listed: unlisted values → other"
    assert f"{said} [3 rows, 2 of them listed but for spaces or case]" in result.out
    assert "Spaces and case matter" in result.out
    plain = discreet("schema", "check", "d.csv", "s.toml")
    assert "some are listed but for spaces or case" in plain.out and "3 rows" not in plain.out
    found = json.loads(discreet("schema", "check", "d.csv", "s.toml", "--counts", "--json").out)
    assert found["problems"] == [] and found["remarks"][0]["rows_but_for_spaces_or_case"] == 2
    assert_discreet(result.text + plain.text)
    (desk / "d.csv").write_text("sex,b\nM,1\nother,1\n")
    assert "Spaces" not in discreet("schema", "check", "d.csv", "s.toml", "--counts").out


def test_check_finds_rows_without_a_unit(desk, discreet):
    (desk / "data.csv").write_text('patient,smoke,age,city\na,yes,1,north\n,no,2,south\n"",no,2,south\n')
    assert discreet("schema", "check", "data.csv", "schema.toml").code == 0
    result = discreet("schema", "check", "data.csv", "schema.toml", "--unit-column", "patient", "--counts")
    assert result.code == 1
    assert (
        "column 'patient': is empty in some rows; they will not be counted" in result.out and "[2 rows]" in result.out
    )
    assert "not in the schema" not in result.out, "the unit column is read"
    wrong = discreet("schema", "check", "data.csv", "schema.toml", "--unit-column", "patiant")
    assert wrong.code == 2 and "did you mean 'patient'" in wrong.err


def test_bytes_in_a_column_that_is_not_read_do_no_harm(desk, discreet):
    rows = b"patient,smoke,age,city\na,yes,1,north\n\xff\xfe,no,2,south\n"
    (desk / "data.csv").write_bytes(rows)
    assert discreet("schema", "check", "data.csv", "schema.toml").code == 0
    assert discreet("schema", "check", "data.csv", "schema.toml", "--unit-column", "patient").code == 1


@pytest.mark.parametrize("field", ['"no""rth"', '"north" ', '"no,rth"', '"no\nrth"', 'no"rth', '""', "'north"])
def test_sound_quotes_are_not_complained_about(desk, discreet, field):
    (desk / "data.csv").write_text(f"patient,smoke,age,city\na,yes,1,{field}\n{field},no,2,south\n")
    result = discreet("schema", "check", "data.csv", "schema.toml")
    assert "quote" not in result.out and "fields" not in result.out, result.out


def test_check_takes_the_schema_as_other_commands_do(desk, discreet):
    by_place, by_name = (
        discreet("schema", "check", "data.csv", *s) for s in (["schema.toml"], ["--schema", "schema.toml"])
    )
    assert by_place.out == by_name.out and by_place.code == by_name.code == 1
    assert "keep one" in discreet("schema", "check", "data.csv", "schema.toml", "--schema", "other.toml").err
    assert "name the schema" in discreet("schema", "check", "data.csv").err


def test_words_for_missing_values_need_a_missing_level_as_empty_fields_do(tmp_path, discreet):
    """Otherwise they count as the first level or bin, and nobody is told."""
    (tmp_path / "rows.csv").write_text("age,job\n<NULL>,Clerk\n30,<NULL>\n-9,Cook\n")
    missing = 'missing_values = ["<NULL>", "-9"]\n'
    schema = missing + '[columns.age]\nedges = [0, 18, 65]\n{0}[columns.job]\nlevels = ["Clerk"'
    (tmp_path / "bad.toml").write_text(schema.format("") + ', "Cook"]\n')
    result = discreet("schema", "check", "--counts", tmp_path / "rows.csv", tmp_path / "bad.toml")
    assert result.code == 1
    assert "'age': has absent values" in result.out and "→ [0, 18) [2 rows]" in result.out
    assert "'job': has absent values" in result.out and "→ Clerk [1 row]" in result.out
    (tmp_path / "good.toml").write_text(schema.format('missing = "none"\n') + ', "Cook"]\nmissing = "none"\n')
    assert discreet("schema", "check", tmp_path / "rows.csv", tmp_path / "good.toml").code == 0
