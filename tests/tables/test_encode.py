"""Encoding: every container gives the same codes, and no value of any row can make it fail."""

import dataclasses
import datetime
import decimal
import itertools
import math
import sys
from types import ModuleType

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.dates import moments_of
from discreet.domain import Attribute, Domain
from discreet.encoding import Hashed, as_list, code_of, encode_column, is_series
from discreet.errors import InputError, SchemaError
from discreet.schema import parse_schema
from discreet.tables.arrow import encode_arrow
from discreet.tables.encode import _codes as tables_codes
from discreet.tables.encode import encode

TEXT = Attribute.categorical("text", ["red", "grün", "7"], missing="NA", other="else")
WHOLE = Attribute.categorical("whole", [3, 1, -2], missing="NA", other="else")
FLAG = Attribute.categorical("flag", [True, False], missing="NA", other="else")
NUMBER = Attribute.numeric("number", [0, 1, 2.5, 10], missing="NA", other="else")
DOMAIN = Domain((TEXT, WHOLE, FLAG, NUMBER))


def codes(table):
    """What a curator never shows."""
    return {name: column.tolist() for name, column in table._columns.items()}


def frames(columns):
    """The same columns (name → Arrow array) in every container."""
    arrow = pa.table(columns)
    pandas_nullable = arrow.to_pandas(types_mapper=pd.ArrowDtype)
    lists = {name: arrow[name].to_pylist() for name in arrow.column_names}
    objects = {name: np.array([*values, None], dtype=object)[:-1] for name, values in lists.items()}
    return {
        "arrow": arrow,
        "pandas": arrow.to_pandas(),
        "pandas object": pd.DataFrame({n: pd.Series(v, dtype=object) for n, v in lists.items()}),
        "pandas arrow types": pandas_nullable,
        "pandas nullable": arrow.to_pandas().convert_dtypes(),
        "polars": pl.from_arrow(arrow),
        "lists": lists,
        "object arrays": objects,
        "masked arrays": {
            n: np.ma.MaskedArray(v, mask=[x is None for x in lists[n]], dtype=object) for n, v in objects.items()
        },
    }


def assert_same_codes(columns, domain):
    results = {kind: codes(encode(frame, domain)) for kind, frame in frames(columns).items()}
    expected = results["lists"]
    for kind, result in results.items():
        assert result == expected, kind
    return expected


def test_every_container_gives_the_same_codes():
    result = assert_same_codes(
        {
            "text": pa.array(["red", None, "7", "blue", "grün"]),
            "whole": pa.array([1, 3, None, -2, 99], pa.int64()),
            "flag": pa.array([True, False, None, True, True]),
            "number": pa.array([0.0, 1.0, None, math.inf, -5.0]),
            "unused": pa.array([1, 2, 3, 4, 5]),
        },
        DOMAIN,
    )
    assert result == {
        "text": [0, 3, 2, 4, 1],
        "whole": [1, 0, 3, 2, 4],
        "flag": [0, 1, 2, 0, 0],
        "number": [0, 1, 3, 4, 4],
    }


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.sampled_from(["red", "grün", "7", "NA", "else", "Red", "", " red"]) | st.text(max_size=3),
            st.none() | st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.booleans(),
            st.none() | st.sampled_from([0.0, -0.0, 1.0, 2.5, 10.0, 10.000001, math.inf, -math.inf]) | st.floats(),
        ),
        max_size=8,
    )
)
def test_containers_agree_on_random_rows(rows):
    kinds = [pa.string(), pa.int64(), pa.bool_(), pa.float64()]
    columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(kinds)]
    assert_same_codes(dict(zip(DOMAIN.names, columns, strict=True)), DOMAIN)


def test_plain_and_structured_arrays_agree_with_a_mapping():
    domain = Domain.of({"a": 3, "b": Attribute.numeric("b", [0, 2, 4])})
    rows = np.array([[0, 1], [2, 3], [1, 4]])
    structured = np.array([tuple(r) for r in rows], dtype=[("b0", "i4"), ("a", "i8"), ("b", "f4")][1:])
    expected = {"a": [0, 2, 1], "b": [0, 1, 1]}
    assert codes(encode(rows, domain)) == expected
    assert codes(encode(rows.astype(object), domain)) == expected
    assert codes(encode(structured, domain)) == expected
    assert codes(encode({"a": rows[:, 0], "b": rows[:, 1]}, domain)) == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize(
    "levels", [[3, 0, 7], ["3", "0", "7"], ["3", "0", "07"], ["3", "0", "x"], ["3", "0", "9" * 30]]
)
def test_arrays_of_whole_numbers_agree_with_lists(dtype, levels):
    attribute = Attribute.categorical("a", levels, other="else")
    values = np.arange(9).astype(dtype)
    by_array, by_list = encode_column(values, attribute), encode_column(values.tolist(), attribute)
    assert by_array.tolist() == by_list.tolist()
    assert by_array[3] == 0
    assert by_array[0] == 1
    assert by_array[7] == (2 if levels[2] in (7, "7") else 3)


def test_large_whole_numbers_are_not_confused():
    attribute = Attribute.categorical("a", [2**53, 2**63 - 1, -(2**63)], other="else")
    unsigned = np.array([2**53 + 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert encode_column(unsigned, attribute).tolist() == [3, 0, 1, 3, 3]
    signed = np.array([2**53 + 1, 2**53, 2**63 - 1, -(2**63)])
    assert encode_column(signed, attribute).tolist() == [3, 0, 1, 2]
    assert encode_column([2**63, -(2**63), 10**400], attribute).tolist() == [3, 2, 3]


@pytest.mark.parametrize("values", [["red", "grün", None], ["grün"], []])
def test_categoricals_and_dictionaries_are_their_values(values):
    domain = Domain((TEXT,))
    expected = codes(encode({"text": values}, domain))
    for frame in (
        pd.DataFrame({"text": pd.Categorical(values, categories=["grün", "red", "odd"])}),
        pl.DataFrame({"text": pl.Series(values, dtype=pl.Categorical)}),
        pl.DataFrame({"text": pl.Series(values, dtype=pl.Enum(["grün", "red"]))}),
        pa.table({"text": pa.array(values, pa.string()).dictionary_encode()}),
    ):
        assert codes(encode(frame, domain)) == expected
    whole = Domain((WHOLE,))
    assert codes(encode(pd.DataFrame({"whole": pd.Categorical([1, 3, 1])}), whole)) == {"whole": [1, 0, 1]}


class Hostile:
    """Everything that a value can do to whoever looks at it."""

    def __eq__(self, other):
        raise RuntimeError("no comparing")

    def __hash__(self):
        raise RuntimeError("no hashing")

    def __float__(self):
        raise RuntimeError("no number")

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


ODD = [
    None,
    math.nan,
    pd.NaT,
    pd.NA,
    np.datetime64("NaT"),
    decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"),
    [1, 2],
    {"a": 1},
    {1},
    (1, [2]),
    np.array([1, 2]),
    np.array(3),
    10**400,
    -(10**400),
    10**5000,
    math.inf,
    -math.inf,
    "red",
    "true",
    "not a number",
    "1e999",
    "9" * 5000,
    "\ud800",
    "💥\x00",
    b"red",
    True,
    1 + 2j,
    datetime.date(2020, 1, 1),
    datetime.timedelta(1),
    pd.Timestamp("2020-01-01"),
    pd.DataFrame({"a": [1]}),
    object(),
    Hostile(),
]


@pytest.mark.parametrize("attribute", DOMAIN.attributes, ids=lambda a: a.name)
@pytest.mark.parametrize("value", ODD, ids=lambda v: type(v).__name__)
def test_no_value_can_make_encoding_fail(attribute, value):
    column = [value, 1]
    array = np.empty(2, dtype=object)
    array[0], array[1] = value, 1
    domain = Domain((attribute,))
    expected = codes(encode({attribute.name: column}, domain))
    assert codes(encode({attribute.name: array}, domain)) == expected
    if not isinstance(value, Hostile):  # pandas itself may look at the value
        frame = pd.DataFrame({attribute.name: pd.Series(list(column), dtype=object)})
        assert codes(encode(frame, domain)) == expected
    assert encode({"x": [0, 0], "p": column}, Domain.of({"x": 2}), unit="p").domain.names == ("x",)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(ODD[:-1]) | st.text() | st.integers() | st.floats() | st.binary(), max_size=5))
def test_every_value_gets_a_code(values):
    for attribute in DOMAIN.attributes:
        encoded = encode_column(values, attribute)
        assert len(encoded) == len(values)
        assert all(0 <= c < attribute.size for c in encoded.tolist())


def test_absent_values_go_to_the_missing_level_in_every_kind_of_column():
    for attribute in DOMAIN.attributes:
        for null in (None, math.nan, pd.NaT, pd.NA, decimal.Decimal("NaN"), np.datetime64("NaT")):
            assert encode_column([null], attribute).tolist() == [attribute.code("NA")], (attribute.name, null)
    assert encode_column(np.array(["NaT", "2020-01-01"], dtype="datetime64[ns]"), TEXT).tolist() == [3, 4]


def test_a_date_is_no_number_in_any_container():
    dates = np.array(["1970-01-01T00:00:00.000000001", "NaT"], dtype="datetime64[ns]")
    for attribute in (NUMBER, WHOLE):
        results = [
            codes(encode(rows, Domain((attribute,))))[attribute.name]
            for rows in (
                {attribute.name: dates},
                pd.DataFrame({attribute.name: dates}),
                pl.DataFrame({attribute.name: dates}),
                {attribute.name: [pd.Timestamp(dates[0]), None]},
            )
        ]
        assert all(r == results[0] for r in results), results


def test_numbers_in_every_spelling():
    values = [2, 2.0, "2", " 2.0 ", True, np.float32(2), decimal.Decimal(2), "1e0", "inf", 10**400, -(10**400), "two"]
    attribute = Attribute.numeric("n", [0, 1, 2, 3], missing="NA")
    assert encode_column(values, attribute).tolist() == [2, 2, 2, 2, 1, 2, 2, 1, 2, 2, 0, 3]


def test_bins_are_closed_below_and_the_last_one_above():
    attribute = Attribute.numeric("n", [0, 1, 2], missing="NA", other="else")
    values = [0, 0.999, 1, 2, np.nextafter(2, 3), -1e-300, math.inf, math.nan]
    assert encode_column(np.array(values), attribute).tolist() == [0, 0, 1, 1, 3, 3, 3, 2]


@pytest.mark.parametrize(
    ("options", "expected"),  # of: below, inside, above, absent
    [
        ({}, [0, 0, 1, 0]),
        ({"missing": "NA"}, [0, 0, 1, 2]),
        ({"other": "else"}, [2, 0, 2, 2]),
        ({"missing": "NA", "other": "else"}, [3, 0, 3, 2]),
        ({"missing": "NA", "outside": "NA"}, [2, 0, 2, 2]),
        ({"missing": "NA", "other": "else", "outside": "nearest"}, [0, 0, 1, 2]),
        ({"outside": "[1, 2]"}, [1, 0, 1, 1]),
    ],
)
def test_policies_for_numbers_outside(options, expected):
    assert encode_column([-3, 0.5, 7, None], Attribute.numeric("n", [0, 1, 2], **options)).tolist() == expected


@pytest.mark.parametrize(
    ("options", "expected"),  # of: a level, another value, absent
    [
        ({}, [1, 0, 0]),
        ({"missing": "NA"}, [1, 2, 2]),
        ({"other": "else"}, [1, 2, 2]),
        ({"missing": "NA", "other": "else"}, [1, 3, 2]),
        ({"missing": "NA", "other": "else", "outside": "b"}, [1, 1, 2]),
        ({"outside": "b"}, [1, 1, 1]),
    ],
)
def test_policies_for_categories_outside(options, expected):
    assert encode_column(["b", "zzz", None], Attribute.categorical("c", ["a", "b"], **options)).tolist() == expected


def test_spellings_of_levels():
    flag = Attribute.categorical("f", [True, False], other="else")
    assert encode_column([True, 1, 1.0, "true", "True", "TRUE", np.True_, "1"], flag).tolist() == [0] * 7 + [2]
    assert encode_column(np.array([True, False]), flag).tolist() == [0, 1]
    whole = Attribute.categorical("w", [0, 1], other="else")
    assert encode_column([0, "0", 0.0, False, True, "1", "01", 0.5], whole).tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    text = Attribute.categorical("t", ["0", "1", "x"], other="else")
    assert encode_column(["0", 0, 1.0, "1", "1.0", "x"], text).tolist() == [0, 0, 1, 1, 3, 2]
    words = Attribute.categorical("t", ["false", "true"], other="else")
    assert encode_column([True, False, "true", "True"], words).tolist() == [1, 0, 1, 2]
    both = Attribute.categorical("t", ["true", "1"], other="else")
    assert encode_column([1, "true"], both).tolist() == [1, 0]


@pytest.mark.parametrize("level", ["--5", "-", "5-", "-0", "٣", "1_000", " 7", "9" * 5000])
def test_levels_that_look_like_numbers_are_just_words(level):
    attribute = Attribute.categorical("a", [level], other="else")
    assert encode_column([level, 7, 3, 1000, -5], attribute).tolist() == [0, 1, 1, 1, 1]
    assert encode_column(np.array([7, 3, 1000, -5, 0]), attribute).tolist() == [1] * 5


@given(st.lists(st.text(max_size=4), min_size=1, max_size=6, unique=True))
def test_a_level_is_encoded_as_its_own_code(levels):
    attribute = Attribute.categorical("a", levels)
    assert encode_column(levels, attribute).tolist() == list(range(len(levels)))
    assert [attribute.code(v) for v in levels] == list(range(len(levels)))


@pytest.mark.parametrize(("size", "kind"), [(2, np.uint8), (256, np.uint8), (257, np.uint16), (2**16 + 1, np.uint32)])
def test_codes_are_as_small_as_they_can_be(size, kind):
    column = encode_column(np.array([0, size - 1]), Attribute.categorical("a", size))
    assert column.dtype == kind
    assert column.tolist() == [0, size - 1]


def test_empty_and_one_row_tables():
    empty = {name: [] for name in DOMAIN.names}
    for frame in (pd.DataFrame(empty), pl.DataFrame(empty), pa.table(empty), empty):
        assert codes(encode(frame, DOMAIN)) == empty
    one = {"text": ["red"], "whole": [3], "flag": [False], "number": [2]}
    assert codes(encode(pd.DataFrame(one), DOMAIN)) == {"text": [0], "whole": [0], "flag": [1], "number": [1]}
    people = encode({"text": [], "p": []}, Domain((TEXT,)), unit="p")
    assert people.count([("text",)])[0].sum() == 0


def test_errors_are_about_public_things_only():
    domain = Domain.of({"smoke": ["yes", "no"], "age": 3})
    rows = {"smoke": ["SECRET", "yes"], "agee": [1, 2]}
    with pytest.raises(InputError, match=r"no column 'age'; did you mean 'agee'"):
        encode(rows, domain)
    with pytest.raises(InputError, match=r"no column 'who'"):
        encode({"smoke": ["yes"], "age": [1]}, domain, unit="who")
    with pytest.raises(SchemaError, match="rows need a schema"):
        encode(rows)
    with pytest.raises(InputError, match="differ in length") as lengths:
        encode({"smoke": ["SECRET", "yes"], "age": [1]}, domain)
    assert "SECRET" not in str(lengths.value)
    with pytest.raises(InputError, match="cannot read rows from int"):
        encode(3, domain)
    with pytest.raises(InputError, match="one column for each of the 2 columns"):
        encode(np.zeros((4, 3)), domain)
    with pytest.raises(InputError, match="differ in length"):
        encode({"smoke": ["yes"], "age": [1], "p": [1, 2]}, domain, unit="p")


def test_a_table_shows_nothing_of_its_rows():
    secrets = [f"secret{i}" for i in range(37)]
    rows = {"text": secrets, "whole": [41] * 37, "flag": [True] * 37, "number": [3] * 37, "p": secrets}
    table = encode(rows, DOMAIN, unit="p")
    for shown in (repr(table), str(table), f"{table}", repr(table._persons)):
        assert "37" not in shown
        assert "secret" not in shown
        assert "41" not in shown


def test_rows_without_a_person_are_left_out():
    rows = {"text": ["red", "7", "grün", "red"], "p": ["ann", None, "bob", math.nan]}
    for frame in (rows, pd.DataFrame(rows), {k: np.array(v, dtype=object) for k, v in rows.items()}):
        table = encode(frame, Domain((TEXT,)), unit="p")
        assert codes(table) == {"text": [0, 1]}
    numbers = pl.DataFrame({"text": ["red", "7"], "p": [None, 4]})
    assert codes(encode(numbers, Domain((TEXT,)), unit="p")) == {"text": [2]}
    assert codes(encode({"text": ["red"], "p": [None]}, Domain((TEXT,)), unit="p")) == {"text": []}


def test_the_unit_column_may_be_in_the_domain_too():
    table = encode({"text": ["red", "red", "7"]}, Domain((TEXT,)), unit="text")
    assert table._persons.of_row.tolist() == [0, 0, 1]


def beyond_the_calendar(frame, seconds, zone):
    """A column of times of which some are beyond what Python, or the frame itself, can hold."""
    if frame == "pandas":
        times = pd.Series(np.array(seconds).astype("M8[s]"))
        return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)
    return pl.Series([1000 * s for s in seconds]).cast(pl.Datetime("ms", zone))


@pytest.mark.parametrize("frame", ["pandas", "polars"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("kind", ['dates = {by = "hour of day"}', "edges = [0, 1]", 'levels = ["a"]'])
def test_times_beyond_the_calendar_neither_fail_nor_change_how_others_are_read(frame, zone, kind):
    attribute = parse_schema(f'[columns.c]\n{kind}\nmissing = "none"\nother = "other"\n')["c"]
    seconds = [0, 1557061200, 864 * 10**9, -(10**15), 2**62 // 1000]

    def codes(chosen):
        column = beyond_the_calendar(frame, chosen, zone)
        return encode_column(nw.from_native(column, series_only=True), attribute).tolist()

    alone = [codes([s])[0] for s in seconds]
    assert codes(seconds) == alone
    for i, j in itertools.permutations(range(len(seconds)), 2):
        assert codes([seconds[i], seconds[j]]) == [alone[i], alone[j]]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "ms"])
def test_times_beyond_64_bits_of_microseconds_are_after_or_before_all_others(unit):
    """NumPy wraps them around: they would count as some hour of some day."""
    domain = parse_schema(
        """
        [columns.hour]
        dates = {by = "hour of day"}
        other = "other"
        [columns.weekday]
        dates = {by = "weekday"}
        missing = "none"
        [columns.year]
        dates = {from = 1999-01-01, to = 2020-12-31, by = "year"}
        """
    )
    far = np.array([2**62, -(2**62)]).astype(f"M8[{unit}]")
    times = np.array([far[0], far[1], "2020-01-01", "NaT"], dtype=far.dtype)
    expected = {"hour": ["other", "other", "0", "other"], "weekday": ["none", "none", "Wednesday", "none"],
                "year": ["2020", "1999", "2020", "1999"]}  # fmt: skip
    if unit == "W":  # weeks of NumPy begin on Thursdays
        expected["weekday"][2], expected["year"][2] = "Thursday", "2019"
    for name, labels in expected.items():
        attribute = domain[name]
        assert [attribute.labels[c] for c in encode_column(times, attribute)] == labels
        assert [attribute.labels[code_of(t, attribute)] for t in times] == labels


AWKWARD = ["red", "grün", "gru\u0308n", " red", "Red", "7", "7.0", "07", "", " ", "NA", "else", "nan", "None", "true",
           "1", "2.5", "1e0", "red\0", "re\0d", "😀", "x" * 5000, "2020-01-31", "\u2028", "ﬁ",
           "True", "TRUE", "False", "FALSE", "tRUE"]  # fmt: skip
READ_AS = [
    TEXT,
    FLAG,
    NUMBER,
    Attribute.categorical("close", ["Red", "7"], missing="NA", other="else", strip=True, ignore_case=True),
    parse_schema('[columns.day]\ndates = {from = 2020-01-01, to = 2020-03-31, by = "month"}\nmissing = "none"')["day"],
    Attribute.categorical("words", ["red", "1"], missing="none", other="else", missing_values=["NA", "nan", "1", "é"]),
    Hashed.of(TEXT, b"key"),
]  # fmt: skip


def declared_as_texts(values):
    """These texts in every type that holds texts alone, by name."""
    arrow = pa.array(values, pa.string())
    return {
        "arrow": pa.chunked_array([arrow[:3], arrow[3:3], arrow[3:]]),
        "large": arrow.cast(pa.large_string()),
        "view": pa.array(values, pa.string_view()),
        "dictionary": arrow.dictionary_encode(),
        "polars": pl.Series(values, dtype=pl.String),
        "polars categories": pl.Series(values, dtype=pl.Categorical),
        **{t: pd.Series(values, dtype=t) for t in ("str", "string[python]", "string[pyarrow]", "category", "object")},
    }


@pytest.mark.parametrize("attribute", READ_AS, ids=lambda a: a.name if not isinstance(a, Hashed) else "hashed")
def test_columns_of_texts_are_read_as_each_text_by_itself(attribute):
    values = [*AWKWARD, None, *reversed(AWKWARD), "red"]
    alone = [int(encode_column([value], attribute)[0]) for value in values]
    domain = Domain((attribute,)) if not isinstance(attribute, Hashed) else None
    for kind, column in declared_as_texts(values).items():
        if isinstance(column, pa.ChunkedArray | pa.Array):
            column = pa.table({attribute.name: column})[attribute.name]
        series = nw.from_native(column, series_only=True)
        if as_list(series) != values:
            assert kind == "category" and pd.__version__ < "2.3"  # which takes "red\0" for "red"
            continue
        assert tables_codes(series, attribute).tolist() == alone, kind
        if domain is not None:
            table = encode({attribute.name: series}, domain)
            assert codes(table)[attribute.name] == alone, kind


def test_texts_that_are_not_unicode_do_not_change_how_others_are_read():
    halves = ["red", "\ud800", None, "7", "blue"]
    for kind in ("string[python]", "object"):
        assert codes(encode(pd.DataFrame({"text": pd.Series(halves, dtype=kind)}), Domain((TEXT,))))["text"] == [
            0, 4, 3, 2, 4]  # fmt: skip
    raw = pa.array([b"red", b"\xff\xfe", None, b"7", b"blue"])
    valid, offsets, data = raw.buffers()
    broken = pa.StringArray.from_buffers(len(raw), offsets, data, valid)
    assert codes(encode(pa.table({"text": broken}), Domain((TEXT,))))["text"] == [0, 4, 3, 2, 4]
    read = codes(encode(pa.table({"close": broken}), Domain((READ_AS[3],))))["close"]
    assert read == [0, 3, 2, 1, 3]


def test_objects_of_pandas_are_read_value_by_value_whatever_they_look_like():
    """All texts at first sight, and one record more makes them something else: the codes of the others stay."""
    texts = pd.Series(["red", "7", "blue"], dtype=object)
    more = pd.Series(["red", "7", "blue", 7, True], dtype=object)
    one, two = (codes(encode(pd.DataFrame({"text": s}), Domain((TEXT,))))["text"] for s in (texts, more))
    assert one == [0, 2, 4] and two == [0, 2, 4, 2, 4]


def test_levels_that_python_takes_for_equal_are_not_taken_for_each_other():
    """True is 1 to Python, and texts spell them otherwise: what is kept of one column is not that of another."""
    flags = Attribute.categorical("c", [True, False], missing="NA", other="else")
    numbers = Attribute.categorical("c", [1, 0], missing="NA", other="else")
    assert flags != numbers and Domain((flags,)) != Domain((numbers,))
    assert flags == Attribute.from_dict("c", flags.to_dict()) and hash(flags) == hash(dataclasses.replace(flags))
    texts = ["1", "0", "true", "false", "TRUE", None]
    for frame in ({"c": texts}, pl.DataFrame({"c": texts}), pa.table({"c": texts}), pd.DataFrame({"c": texts})):
        assert codes(encode(frame, Domain((flags,))))["c"] == [3, 3, 0, 1, 0, 2]
        assert codes(encode(frame, Domain((numbers,))))["c"] == [0, 1, 3, 3, 3, 2]


def test_parts_of_an_arrow_column_have_the_codes_of_their_own_rows():
    numbers = Attribute.categorical("c", [5, 6, 7])
    whole = pa.array([5, 6, 7, 6, 5, 7, 7], pa.int16())
    texts = Attribute.categorical("c", ["r", "g", "b"])
    words = pa.array(["r", "g", "b", "b", "g"]).dictionary_encode()
    for start in range(5):
        assert encode_arrow(whole[start:], numbers).tolist() == [v - 5 for v in whole[start:].to_pylist()]
        assert encode_arrow(words[start:], texts).tolist() == ["rgb".index(v) for v in words[start:].to_pylist()]


def test_a_library_that_is_about_to_be_imported_has_no_series_yet(monkeypatch):
    """Another thread may be in the middle of it."""
    monkeypatch.setitem(sys.modules, "narwhals", ModuleType("narwhals"))
    assert not is_series([1]) and encode_column(["red"], TEXT).tolist() == [0]


@pytest.mark.parametrize("unit", ["Y", "D", "s", "ms", "us", "ns"])
def test_dates_of_the_other_byte_order_are_the_same_dates(unit):
    days = np.array(["2020-01-15", "2021-07-01", "NaT"], f"M8[{unit}]")
    assert moments_of(days.astype(days.dtype.newbyteorder(">"))).tolist() == moments_of(days).tolist()
