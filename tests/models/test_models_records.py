"""Records: labels and types in and out, bins, frames and files."""

import csv

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.conditions import number_line
from discreet.domain import Attribute, Domain
from discreet.errors import InputError
from discreet.models import MarkovRandomField, Records
from discreet.models.ancestral import draw_column
from discreet.models.density import Density
from discreet.models.encoding import encode
from discreet.tables.encode import encode_column

DOMAIN = Domain.of(
    {
        "job": Attribute.categorical("job", ["cook, chef", 'say "hi"', ""]),
        "visits": Attribute.categorical("visits", [10, 20, 30], missing="none"),
        "ok": Attribute.categorical("ok", [True, False]),
        "grade": Attribute.categorical("grade", [1, 2], other="else"),
        "age": Attribute.numeric("age", [0, 18, 65, 100], integer=True),
        "weight": Attribute.numeric("weight", [0.0, 50.5, 120.0], missing="?", other="far"),
    }
)
CODES = np.array([[0, 0, 0, 0, 0, 0], [1, 3, 1, 2, 2, 2], [2, 2, 0, 1, 1, 3]])


@pytest.fixture
def records():
    return Records(DOMAIN, CODES)


def test_values_have_their_own_type_and_the_original_order(records):
    assert records.names == DOMAIN.names and len(records) == 3 and records.codes.dtype == np.uint8
    assert records["job"].tolist() == ["cook, chef", 'say "hi"', ""]
    assert records["visits"].tolist() == [10, None, 30]
    assert records["ok"].tolist() == [True, False, True] and records["ok"].dtype == bool
    assert records["grade"].tolist() == ["1", "else", "2"]
    assert records["age"].tolist() == ["[0, 18)", "[65, 100]", "[18, 65)"]
    assert records["weight"].tolist() == ["[0, 50.5)", None, "far"]
    assert list(records)[2]["visits"] == 30
    assert "3 records of 6 columns" in repr(records) and "cook, chef" in repr(records)


def as_rows(frame):
    if isinstance(frame, pd.DataFrame):
        return [[None if pd.isna(x) else x for x in row] for row in frame.astype(object).to_numpy().tolist()]
    return [list(r.values()) for r in (frame.to_dicts() if isinstance(frame, pl.DataFrame) else frame.to_pylist())]


@pytest.mark.parametrize("backend", ["pandas", "polars", "arrow"])
def test_frames_agree_with_the_columns_and_come_back(records, backend):
    frame = getattr(records, f"to_{backend}")()
    columns = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    assert columns == list(DOMAIN.names)
    expected = [[r[n] for n in DOMAIN] for r in records]
    assert as_rows(frame) == expected
    np.testing.assert_array_equal(encode(frame, DOMAIN), CODES)
    assert as_rows(records.to_frame({"arrow": "pyarrow"}.get(backend, backend))) == expected
    with pytest.raises(InputError, match="backend must be one of"):
        records.to_frame("abacus")


@pytest.mark.parametrize("backend", ["pandas", "polars", "arrow"])
def test_frames_of_numbers_within_bins(records, backend):
    drawn = records.with_numbers(0)
    frame = getattr(drawn, f"to_{backend}")()
    kinds = {"pandas": ("int64", "float64"), "polars": (pl.Int64, pl.Float64), "arrow": (pa.int64(), pa.float64())}
    types = frame.schema.types if backend == "arrow" else frame.dtypes.tolist() if backend == "pandas" else frame.dtypes
    assert (types[4], types[5]) == kinds[backend]
    back = encode(frame, DOMAIN)
    np.testing.assert_array_equal(back[:, :5], CODES[:, :5])
    assert back[:2, 5].tolist() == [0, 2] and back[2, 5] == 2  # the other level has no number: absent


def test_types_that_may_be_missing_are_nullable(records):
    frame = records.to_pandas()
    assert str(frame.dtypes["visits"]) == "Int64" and str(frame.dtypes["ok"]) == "bool"
    assert records.to_polars().schema["visits"] == pl.Int64
    assert records.to_arrow().schema.field("visits").type == pa.int64()


def test_csv_round_trip(records, tmp_path):
    records.to_csv(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(DOMAIN.names)
    assert rows[1] == ["cook, chef", "10", "true", "1", "[0, 18)", "[0, 50.5)"]
    assert rows[2] == ['say "hi"', "", "false", "else", "[65, 100]", ""]
    assert '""' in (tmp_path / "out.csv").read_text().splitlines()[3][:3]  # an empty text is not an absent one
    records.with_numbers(0).to_csv(tmp_path / "numbers.csv")
    numbers = pd.read_csv(tmp_path / "numbers.csv")
    assert numbers["age"].dtype == np.int64 and np.isnan(numbers["weight"].to_numpy()[1:]).all()


def test_many_rows_in_blocks(tmp_path):
    domain = Domain.of({"a": ["x", "y"]})
    codes = np.arange(70_000)[:, None] % 2
    Records(domain, codes).to_csv(tmp_path / "long.csv")
    lines = (tmp_path / "long.csv").read_text().splitlines()
    assert lines[1:] == ["xy"[c] for c in codes[:, 0]]


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=25, deadline=None)
def test_numbers_fall_in_their_bins(seed, integer):
    edges = [-3, 0, 1, 7] if integer else [-3.5, 0.0, 1e-3, 7.25]
    attribute = Attribute.numeric("x", edges, integer=integer)
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (4000, 1))
    drawn = Records(Domain((attribute,)), codes).with_numbers(rng)["x"]
    np.testing.assert_array_equal(encode({"x": drawn}, Domain((attribute,))), codes)
    if integer:
        assert drawn.dtype == np.int64
        assert set(drawn[codes[:, 0] == 0]) == {-3, -2, -1} and set(drawn[codes[:, 0] == 1]) == {0}
        assert set(drawn[codes[:, 0] == 2]) <= set(range(1, 8))  # the last bin is closed


class AlmostOne:
    """Draws the largest number below one, where rounding is at its worst."""

    def random(self, n):
        return np.full(n, np.nextafter(1.0, 0.0))


def test_rounding_does_not_carry_a_number_into_the_next_bin():
    """1 + u·1 rounds to 2, which belongs to [2, 4]."""
    density = Density(number_line(Attribute.numeric("x", [1.0, 2.0, 4.0])), np.ones(2))
    drawn = density.draw(np.array([0, 1]), AlmostOne())
    assert 1 <= drawn[0] < 2 <= drawn[1] <= 4
    whole = Density(number_line(Attribute.numeric("x", [0, 2**51 - 1, 2**51], integer=True)), np.ones(2))
    assert whole.draw(np.array([0]), AlmostOne())[0] == 2**51 - 2


def test_rounding_does_not_draw_an_impossible_level():
    """Ten times 0.1 adds up to less than one; a level of probability zero behind them is out of reach all the same."""
    table = np.array([0.1] * 10 + [0.0])
    assert np.cumsum(table)[-1] < 1
    assert draw_column(table, [], 3, AlmostOne()).tolist() == [9, 9, 9]


def test_encoding_is_total():
    """Unforeseen and absent values go where the schema says, in lists and in frames alike; nothing is an error."""
    domain = Domain.of(
        {
            "c": Attribute.categorical("c", ["a", "b"], missing="none", other="else"),
            "n": Attribute.numeric("n", [0, 10, 20], missing="none"),
            "k": Attribute.categorical("k", [1, 2]),
        }
    )
    columns = {"c": ["a", "zzz", None, "b"], "n": [5.0, -4.0, None, 99.0], "k": [2, 7, None, 1]}
    expected = [[0, 0, 1], [3, 0, 0], [2, 2, 0], [1, 1, 0]]
    for form in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_array_equal(encode(form, domain), expected)
    texts = {"c": ["b"], "n": ["12.5"], "k": ["2"]}
    for form in (texts, pd.DataFrame(texts), pl.DataFrame(texts)):
        np.testing.assert_array_equal(encode(form, domain), [[1, 1, 1]])
    np.testing.assert_array_equal(encode({"c": [pd.NA], "n": [float("nan")], "k": [2.0]}, domain), [[2, 2, 1]])
    categories = pd.DataFrame({"c": pd.Categorical(["b", None]), "n": [1, 2], "k": [1, 1]})
    np.testing.assert_array_equal(encode(categories, domain)[:, 0], [1, 2])
    np.testing.assert_array_equal(encode({"c": [None] * 2, "n": [1, 1], "k": [1, 1]}, domain)[:, 0], [2, 2])
    np.testing.assert_array_equal(
        encode(pl.DataFrame({"c": pl.Series([None], dtype=pl.String), "n": [1], "k": [1]}), domain)[:, 0], [2]
    )
    assert encode({"c": [], "n": [], "k": []}, domain).shape == (0, 3)


ODD = ["a", "zzz", "none", "1", "30", "true", "TRUE", "false", "0", "nan", "", "5", "12.5", "1e1", "inf", "-inf", 1, 30]
ODD += [0, -4, 99, 5.0, 1.0, 2.5, float("nan"), float("inf"), None, True, False, np.int64(1), np.float32(2), pd.NA]


@pytest.mark.parametrize(
    "attribute",
    [
        Attribute.categorical("x", ["a", "b"]),
        Attribute.categorical("x", ["a", "b"], missing="none", other="else"),
        Attribute.categorical("x", [1, 2, 30]),
        Attribute.categorical("x", [1, 2], missing="none"),
        Attribute.categorical("x", [True, False], other="else"),
        Attribute.numeric("x", [0, 10, 20]),
        Attribute.numeric("x", [0, 10, 20], missing="m", other="o"),
    ],
)
def test_odd_values_go_where_the_tables_put_them(attribute):
    """A model scores a record as the row it would be in a table."""
    domain = Domain((attribute,))
    ours = encode({"x": ODD}, domain)[:, 0]
    np.testing.assert_array_equal(ours, [int(encode_column([value], attribute)[0]) for value in ODD])


def test_no_message_repeats_a_value():
    with pytest.raises(InputError) as error:
        encode(np.array([[0, 93, 0, 0, 0, 0]]), DOMAIN)
    assert "93" not in str(error.value) and "visits" in str(error.value)
    with pytest.raises(InputError, match="differ in length"):
        encode({n: [0] * (1 + i) for i, n in enumerate(DOMAIN)}, DOMAIN)


def test_records_of_another_order_of_columns_and_levels():
    own = Domain.of({"b": ["x", "y"], "a": ["low", "high"]})
    other = Domain.of({"a": ["high", "low"], "b": ["x", "y"]})
    records = Records(own, np.array([[1, 0], [0, 1]]))
    np.testing.assert_array_equal(encode(records, other), [[1, 1], [0, 0]])
    model = MarkovRandomField(other, {("a",): np.log([0.9, 0.1])})
    np.testing.assert_allclose(np.exp(model.log_prob(records)), [0.05, 0.45])


def test_counts(records):
    assert records.counts("visits").tolist() == [1, 0, 1, 1]
    table = records.counts(["ok", "visits"])
    assert table.shape == (2, 4) and table[1, 3] == 1 and table.sum() == 3
    assert records.counts([]).tolist() == 3
