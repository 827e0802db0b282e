"""The public form of a column: numbers with heaps, dates, words for missing values, spaces and case."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Attribute, Domain, encode, open_table
from discreet.dates import Dates
from discreet.encoding import encode_column
from discreet.errors import SchemaError
from discreet.schema import parse_schema, schema_text
from discreet.tables.arrow import encode_arrow

HOURS = Attribute.numeric("hours", [0, 20, 40, 100], heaps=[40, 0], integer=True, missing="unknown", other="other")
MONTHS = Attribute.of_dates("visit", Dates("month", date(2020, 11, 5), date(2021, 2, 10)), missing="never")

OLD = """version = 1
[columns.age]
edges = [0, 18, 65.5, 120]
integer = false
missing = "unknown"
[columns.sex]
levels = ["M", "F"]
other = "other"
peeked = ["levels"]
"""


def test_what_old_files_say_has_the_fingerprint_that_it_had():
    domain = parse_schema(OLD)
    assert domain.fingerprint == "53585c742982fe0bef3779adb13459d1f989b0f0ed53526551755bdd53519048"
    assert domain["age"].to_dict() == {"edges": [0, 18, 65.5, 120], "missing": "unknown", "outside": "nearest"}


def test_heaps_are_levels_of_their_own_behind_the_bins():
    assert HOURS.labels == ("[0, 20)", "[20, 40)", "[40, 100]", "0", "40", "unknown", "other")
    assert encode_column([0, 1, 39.5, 40, "40", "40.0", 41, None, 100, 101, "x"], HOURS).tolist() == [
        3, 0, 1, 4, 4, 4, 2, 5, 2, 6, 6,
    ]  # fmt: skip
    assert HOURS.code(40) == 4 and HOURS.code("0") == 3 and HOURS.code(41) == 2
    assert HOURS.value(4) == 40 and HOURS.value(2) == "[40, 100]" and HOURS.bins == 3
    assert HOURS.precision == 0 and Attribute.numeric("x", [0, 1], decimals=2).precision == 2


@pytest.mark.parametrize(
    "by, labels, inside",
    [
        ("day", ("2020-02-28", "2020-02-29", "2020-03-01"), {"2020-02-29": 1}),
        ("week", ("2020-W09",), {"2020-02-29": 0, "2020-03-01": 0}),
        ("month", ("2020-02", "2020-03"), {"2020-02-29": 0, "2020-03-01": 1}),
        ("quarter", ("2020-Q1",), {"2020-02-29": 0}),
        ("year", ("2020",), {"2020-02-29": 0}),
    ],
)
def test_calendar_periods(by, labels, inside):
    a = Attribute.of_dates("d", Dates(by, date(2020, 2, 28), date(2020, 3, 1)), other="other")
    assert a.labels == (*labels, "other")
    for text, code in inside.items():
        assert a.code(text) == code and encode_column([text, date.fromisoformat(text)], a).tolist() == [code, code]
    assert (
        encode_column(["2020-02-27", "2020-03-02", "then"], a).tolist() == [len(labels)] * 3
    )  # beyond the ends: other
    first, last = a.dates.span(0)
    assert first == datetime(2020, 2, 28) and last <= datetime(2020, 3, 1, 23, 59, 59, 999999)


def test_hours_and_weekdays_come_round():
    hour = Attribute.of_dates("h", Dates("hour of day"), missing="none")
    assert encode_column(["2020-02-29T13:59:59", "1950-01-01 00:00", datetime(2031, 5, 5, 23)], hour).tolist() == [
        13, 0, 23,
    ]  # fmt: skip
    weekday = Attribute.of_dates("w", Dates("weekday"), missing="none")
    assert encode_column(["2020-02-29", "1969-12-29", "", None], weekday).tolist() == [5, 0, 7, 7]
    assert hour.dates.span(3) is None


def test_dates_are_read_as_they_are_written():
    a = Attribute.of_dates("d", Dates("month", date(2020, 1, 1), date(2020, 12, 31), "%d.%m.%Y"), other="other")
    assert encode_column(["05.03.2020", " 5.3.2020 ", "2020-03-05", "31.02.2020"], a).tolist() == [2, 2, 12, 12]
    compact = Attribute.of_dates("d", Dates("month", date(2020, 1, 1), date(2020, 12, 31), "%Y%m%d"), other="other")
    assert encode_column([20200305, 20200305.0, "20200305", 7, True], compact).tolist() == [2, 2, 2, 12, 12]
    assert encode_column(np.array([20200305, 7]), compact).tolist() == [2, 12]


def test_dates_beyond_the_ends_go_to_the_nearest_period_unless_there_is_another_place():
    values = ["2020-11-04", "2020-11-05", "2021-02-10", "2021-02-11", None, "soon"]
    assert encode_column(values, MONTHS).tolist() == [0, 0, 3, 3, 4, 4]


def test_dates_of_every_make_have_the_same_codes(tmp_path):
    moments = [
        datetime(2020, 11, 30, 23, 59),
        datetime(2021, 1, 1),
        None,
        datetime(1850, 1, 1),
        datetime(2021, 2, 10, 8),
    ]
    expected = [0, 2, 4, 0, 3]
    texts = [None if m is None else m.isoformat() for m in moments]
    zone = timezone(timedelta(hours=-8))
    aware = [None if m is None else m.replace(tzinfo=zone) for m in moments]
    forms = {
        "list": moments,
        "numpy": np.array(moments, dtype="M8[s]"),
        "aware": aware,
        "pandas": pd.DataFrame({"visit": moments})["visit"],
        "polars": pl.Series(moments),
    }
    for name, values in forms.items():
        column = encode({"visit": values} if name in ("list", "numpy", "aware") else _frame(values), Domain((MONTHS,)))
        assert column._columns["visit"].tolist() == expected, name
    for kind in (pa.timestamp("us"), pa.timestamp("ms"), pa.date32(), pa.timestamp("us", tz="America/Los_Angeles")):
        array = pa.array(aware if kind == pa.timestamp("us", tz="America/Los_Angeles") else moments, type=kind)
        assert encode_arrow(array, MONTHS).tolist() == expected, kind
        assert encode_arrow(array.dictionary_encode(), MONTHS).tolist() == expected, kind
        pq.write_table(pa.table({"visit": array}), tmp_path / "rows.parquet")
        assert _counts(tmp_path / "rows.parquet", MONTHS) == [2, 0, 1, 1, 1]
    (tmp_path / "rows.csv").write_text("visit,n\n" + "".join(f"{t or ''},1\n" for t in texts))
    assert _counts(tmp_path / "rows.csv", MONTHS) == [2, 0, 1, 1, 1]


def _frame(values):
    return pd.DataFrame({"visit": values}) if isinstance(values, pd.Series) else pl.DataFrame({"visit": values})


def _counts(path, attribute):
    with open_table(path, Domain((attribute,))) as table:
        return table.count([(attribute.name,)])[0].tolist()


SEX = Attribute.categorical(
    "sex", ["Male", "Female"], missing="unknown", other="other", missing_values=["NA", "<NULL>", -9], strip=True,
    ignore_case=True,
)  # fmt: skip


def test_words_for_missing_spaces_and_case_one_value_at_a_time(tmp_path):
    values = ["Male", "male ", " FEMALE", "NA", " na", "<NULL>", "-9", "   ", "m", ""]
    expected = [0, 0, 1, 2, 2, 2, 2, 2, 3, 2]
    assert encode_column(values, SEX).tolist() == [*expected[:-1], 2]
    for kind in (pa.string(), pa.large_string()):
        assert encode_arrow(pa.array(values, kind), SEX).tolist() == expected
        assert encode_arrow(pa.array(values, kind).dictionary_encode(), SEX).tolist() == expected
    assert encode_column(np.array([-9, 5]), SEX).tolist() == [2, 3] == encode_column([-9.0, 5], SEX).tolist()
    (tmp_path / "rows.csv").write_text("sex,n\n" + "".join(f"{v},1\n" for v in values))
    assert _counts(tmp_path / "rows.csv", SEX) == [2, 1, 6, 1]
    strict = Attribute.categorical("sex", ["Male", "NA"], missing="unknown", other="other", missing_values=["NA", "?"])
    assert encode_column(["male", "NA", "?", "? "], strict).tolist() == [3, 1, 2, 3]  # a declared level comes first
    assert encode_arrow(pa.array(["male", "NA", "?", "? "]), strict).tolist() == [3, 1, 2, 3]


def test_numbers_behind_words_for_missing():
    income = Attribute.numeric("income", [-1000, 0, 1000], missing="unknown", other="other", missing_values=[".", -999])
    values = [".", "-999", -999, -999.0, "-999.0", "5", "x", 2000]
    assert encode_column(values, income).tolist() == [2, 2, 2, 2, 2, 1, 3, 3]
    assert encode_column(np.array([-999, 5]), income).tolist() == [2, 1]
    assert encode_arrow(pa.array([-999, None, 5]), income).tolist() == [2, 2, 1]


def test_a_schema_file_says_all_of_it_and_reads_it_back():
    text = """
    missing_values = ["NA", "?"]
    strip = true
    [columns.hours]
    edges = [0, 20, 40, 100]
    heaps = [0, 40]
    decimals = 0
    [columns.visit]
    dates = {from = 2020-11-05, to = 2021-02-10, by = "month", format = "%d.%m.%Y"}
    missing = "never"
    [columns.pay]
    edges = [0.0, 10.5]
    decimals = 2
    found = ["edges", "range"]
    """
    domain = parse_schema(text)
    assert domain["hours"].integer and domain["hours"].missing_values == ("NA", "?")
    assert domain["visit"].dates == Dates("month", date(2020, 11, 5), date(2021, 2, 10), "%d.%m.%Y")
    assert domain.found == {"pay": ("edges", "range")}
    written = schema_text(domain)
    assert written.count("missing_values = [") == 1 + 1  # once in the words above, once for all columns
    assert parse_schema(written) == domain == Domain.from_dict(domain.to_dict())
    mixed = Domain((domain["hours"], Attribute.categorical("x", 2)))
    assert parse_schema(schema_text(mixed)) == mixed


@pytest.mark.parametrize(
    "entry, words",
    [
        ('levels = ["a"]\nheaps = [0]', "heaps belongs to a column with edges"),
        ("edges = [0, 1]\nheaps = ['x']", "heaps must be finite numbers"),
        ("edges = [0, 1]\ninteger = true\nheaps = [0.5]", "must be whole"),
        ("edges = [0, 1]\nheaps = [1, 1.0]", "declared twice"),
        ("edges = [0, 1]\ndecimals = 99", "decimals is a number from 0 to 12"),
        ("edges = [0, 1]\ndecimals = true", "decimals must be a whole number"),
        ("edges = [0, 1]\ninteger = true\ndecimals = 2", "contradict"),
        ('levels = ["a"]\ndecimals = 1', "decimals belongs"),
        ('dates = {by = "month"}', "needs the first and the last day"),
        ('dates = {by = "moon", from = 2020-01-01, to = 2021-01-01}', "got 'moon'; did you mean 'month'?"),
        ('dates = {by = "fortnight"}', "is one of day, week, month, quarter, year, hour of day and weekday; got 'fort"),
        ('dates = {by = "month", from = 2021-01-01, to = 2020-01-01}', "is after"),
        ('dates = {by = "month", from = "soon", to = 2020-01-01}', "is a day such as"),
        ('dates = {by = "weekday", from = 2020-01-01}', "comes round"),
        ('dates = {by = "day", from = 1500-01-01, to = 2020-01-01}', "more than 100,000 days"),
        ('dates = {by = "weekday", format = "day"}', "cannot be read back"),
        ('dates = {by = "weekday", form = "%Y"}', "did you mean 'format'"),
        ('dates = "month"', "dates must be a table"),
        ('dates = {by = "weekday"}\nlevels = ["a"]', "both levels and dates"),
        ('levels = ["a", "A"]\nignore_case = true', "several spellings"),
        ('levels = ["a"]\nmissing_values = "NA"', "missing_values must be a list"),
        ('levels = ["a"]\nmissing_values = [["NA"]]', "missing_values are words"),
        ('levels = ["a"]\nstrip = "yes"', "strip must be true or false"),
        ('levels = ["a"]\nfound = ["all"]', "found may name"),
        ('bin = "private"\nrange = [0, 120]', "unknown key 'bin'; did you mean 'bins'"),
    ],
)
def test_what_cannot_be_is_said_with_its_line(entry, words):
    with pytest.raises(SchemaError, match=words) as caught:
        parse_schema(f"[columns.x]\n{entry}\n")
    assert "line 1" in str(caught.value) and "'x'" in str(caught.value)
