"""A catalogue of odd columns: every value counts somewhere, the same from text, Parquet and frames; a draft of the file
can be made and fits it; and what cannot be said in a schema is refused with its column and the way out."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import ApproxDP, Curator, encode, open_table, resolve
from discreet.errors import SchemaError
from discreet.schema import parse_schema
from discreet.tables.check import check_rows
from discreet.tables.delimited import open_delimited
from discreet.tables.draft import draft_schema

NUMBERS = 'bins = "private"\nrange = "private"\nmissing = "none"\n'
MONTHS = 'dates = {from = 2020-01-01, to = 2020-12-31, by = "month"}\nmissing = "none"\nother = "elsewhen"\n'
WORDS = 'levels = "discover"\nmissing = "none"\nmissing_values = ["NA", "?"]\nstrip = true\n'
ODD = {
    "no row at all": ([], NUMBERS),
    "one value everywhere": ([7] * 40, NUMBERS),
    "nothing but nulls": ([None] * 40, NUMBERS),
    "numbers beyond all floats": (["1e999", "-1e999", "1e308", 3], NUMBERS),
    "numbers with thousands separators": (["1,000", "2,500", 7], NUMBERS),
    "numbers with a decimal comma": (["1,5", "2,5"], NUMBERS),
    "numbers with units": (["12 kg", "13 kg", 14], NUMBERS),
    "negative zeros": ([-0.0, 0.0, "-0"], NUMBERS),
    "not a number, as text": (["nan", "NaN", "inf", 1], NUMBERS),
    "two clusters far apart": ([1] * 30 + [10**12] * 30, NUMBERS),
    "whole numbers of 100 digits": ([10**99, -(10**99), 5], NUMBERS),
    "months that do not exist": (["2020-13-01", "2020-02-30", "2020-02-29"], MONTHS),
    "dates of the year 1 and of 9999": (["0001-01-01", "9999-12-31", "2020-06-01"], MONTHS),
    "dates with zones": (["2020-03-31T23:59:59+00:00", "2020-03-31T23:59:59-08:00"], MONTHS),
    "seconds since 1970 as dates": ([1585699199, 0], MONTHS),
    "texts of spaces": (["   ", "\t", " x "], WORDS),
    "texts that differ in accents alone": (["café", "cafe\u0301"], WORDS),
    "texts that hold commas, quotes and line ends": (['a,"b"', "c\nd"], WORDS),
    "very long texts": (["x" * 5000, "y"], WORDS),
    "words for missing in all spellings": (["NA", " NA", "na", "?", "??"], WORDS),
    "numbers with percent signs": (["12%", "13 %", 14], NUMBERS),
    "numbers with signs of money": (["$12", "€3", "CHF 7.50", 8], NUMBERS),
    "negative numbers in brackets": (["(12)", "-12", "−12"], NUMBERS),
    "hexadecimal, octal and binary numbers": (["0x1F", "0o17", "0b11", 3], NUMBERS),
    "numbers with underscores": (["1_000", "1000", "_1"], NUMBERS),
    "digits of other scripts": (["１２", "٣", "12"], NUMBERS),
    "numbers with signs, leading zeros and bare points": (["+5", "005", "5.", ".5", "--5", "."], NUMBERS),
    "exponents of all kinds": (["1e3", "1E+3", "1d3", "1e", "e3"], NUMBERS),
    "numbers below all floats": (["5e-324", "1e-400", "-1e-400"], NUMBERS),
    "numbers with spaces around": ([" 5", "5 ", "\t5"], NUMBERS),
    "numbers with spaces that do not break": (["\u00a05", "5\u202f000", "5\u2009"], NUMBERS),
    "words for numbers": (["twelve", "XII", "½", "π", 12], NUMBERS),
    "truths among numbers": (["True", "false", 1, 0], NUMBERS),
    "whole numbers beyond 64 bits as words": ([2**70, 2**64, 1], WORDS),
    "codes with leading zeros": (["01234", "1234", "001234"], WORDS),
    "words that other tools take for nothing": (["null", "None", "nan", "NULL", "N/A", "nil"], WORDS),
    "texts with control characters": (["a\x01b", "\x7f", "\x1b[2J"], WORDS),
    "texts with marks that are not seen": (["\ufeffa", "a\u200b", "\u202ea", "a"], WORDS),
    "pictures and ligatures": (["👩‍👩‍👧", "ﬁ", "fi", "🇨🇭"], WORDS),
    "formulas of spreadsheets": (["=1+1", "@SUM(A1)", "+x", "-y"], WORDS),
    "texts like labels of bins": (["[0, 5)", "other", "none", "[0, 5]"], WORDS),
    "dates written in other orders": (["2020/03/01", "03.01.2020", "1 March 2020", "2020-3-1"], MONTHS),
    "dates without dashes, by week and by day of the year": (["20200301", "2020-W10-1", "2020-061"], MONTHS),
    "moments to the nanosecond": (["2020-03-01T12:00:00.123456789", "2020-03-01 12:00", "2020-03-01T12"], MONTHS),
    "leap seconds and midnights at 24": (["2020-06-30T23:59:60", "2020-06-30T24:00:00"], MONTHS),
    "dates of year 0, of five digits and before our era": (["0000-01-01", "12020-01-01", "-0001-01-01"], MONTHS),
    "months and years alone": (["2020-03", "2020", "2020-Q1"], MONTHS),
}


@pytest.mark.parametrize("name", ODD)
def test_every_value_counts_somewhere_and_alike(name, tmp_path):
    values, entry = ODD[name]
    domain = parse_schema(f"[columns.x]\n{entry}[columns.n]\nlevels = [0, 1]\n")
    texts = [None if v is None else str(v) for v in values]
    frame = pd.DataFrame({"x": pd.Series(texts, dtype=object), "n": [0] * len(values)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    schema = pa.schema([("x", pa.string()), ("n", pa.int64())])
    pq.write_table(pa.Table.from_pydict({"x": texts, "n": [0] * len(values)}, schema), tmp_path / "rows.parquet")
    tables = [encode(frame, domain), *(open_table(tmp_path / f"rows.{kind}", domain) for kind in ("csv", "parquet"))]
    counts = [t.count([("x",)])[0].tolist() for t in tables]
    assert counts[0] == counts[1] == counts[2] and sum(counts[0]) == len(values)
    with Curator(tables[1], budget=ApproxDP(1, 1e-6)) as curator:
        assert resolve(domain, certify=0, cliques=[["x", "n"]]).learn(curator).model.domain["x"].size >= 1


@pytest.mark.parametrize("name", [name for name in ODD if name not in ("no row at all", "nothing but nulls")])
def test_a_draft_of_it_fits_it(name, tmp_path):
    values, _ = ODD[name]
    rows = pd.DataFrame({"x": pd.Series([str(v) for v in values] * 3, dtype=object), "n": [0, 1, 1] * len(values)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    file = open_delimited(tmp_path / "rows.csv")
    draft = draft_schema(file)
    assert parse_schema(draft.text()) == draft.domain
    outside = "numbers outside its edges"  # infinities do not stretch the bins
    assert all(outside in p.rule for p in check_rows(file, draft.domain))
    assert parse_schema(draft_schema(file, private=True).text()).peeked == {}


def test_values_of_odd_types_in_frames():
    domain = parse_schema(f"[columns.x]\n{NUMBERS}[columns.d]\n{MONTHS}[columns.w]\n{WORDS}")
    odd = [None, np.nan, pd.NaT, pd.NA, b"bytes", [1], {"a": 1}, dt.time(3), dt.timedelta(1), 1j, object, True, "x"]
    counts = encode({"x": odd, "d": odd, "w": odd}, domain).count([("x",), ("d",), ("w",)])
    assert [int(c.sum()) for c in counts] == [len(odd)] * 3


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('bins = "private"\nrange = ["0", "9"]', "bins need a range"),
        ('bins = "private"\nrange = [0, inf]', "bins need a range"),
        ('bins = "privat"\nrange = [0, 9]', 'bins is "private"'),
        ("bins = 0\nrange = [0, 9]", 'bins is "private"'),
        ('levels = "discover"\nat_most = 0', "at_most is a whole number from 1"),
        ('dates = {by = "month", from = 2020-01-01, to = 2020-12-31}\ndecimals = 2', "decimals belongs to a column"),
        ('dates = {by = "day", to = 2020-12-31}', "needs the first and the last day"),
        ('levels = ["a"]\nmissing_value = ["NA"]', "did you mean 'missing_values'"),
        ("edges = [0, 1]\nheaps = 0", "heaps must be a list"),
        ('levels = ["Yes", "yes "]\nstrip = true\nignore_case = true', "several spellings"),
    ],
)
def test_what_a_schema_cannot_say(entry, words):
    with pytest.raises(SchemaError, match=words) as caught:
        parse_schema(f"[columns.x]\n{entry}\n")
    assert "'x'" in str(caught.value) and "line 1" in str(caught.value)
