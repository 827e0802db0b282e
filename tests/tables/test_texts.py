"""Fields told apart many at a time: what stands in a column, and nothing else, comes out."""

import random
import time

import numpy as np
import pyarrow as pa
import pytest

from discreet.domain import Attribute
from discreet.tables import texts
from discreet.tables.arrow import ArrowColumn
from discreet.tables.lines import Form, Piece, batch_of
from discreet.tables.texts import Spans, Texts


def read(values):
    """The texts of fields that stand behind one another."""
    data = [value.encode() for value in values]
    ends = np.cumsum([len(value) for value in data], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    return Spans(b"".join(data)).texts(starts, ends)


def some(rng, how_many, lengths, letters="ab\x00é"):
    return ["".join(rng.choices(letters, k=rng.choice(lengths))) for _ in range(how_many)]


@pytest.mark.parametrize("lengths", [[0], [0, 1, 2], [7, 8, 9], [15, 16, 17, 31, 32, 33, 34], [0, 8, 500]])
@pytest.mark.parametrize("how_many", [1, 50, 3000])
def test_every_field_is_the_text_that_stands_there(lengths, how_many):
    values = some(random.Random(how_many), how_many, lengths)
    assert read(values).to_list() == [value or None for value in values]


def test_a_column_in_which_every_text_is_another():
    values = [f"person-{i * 7919 % 100_000}" for i in range(50_000)]
    found = read(values)
    assert found.to_list() == values and len(found.distinct) < 1.1 * len(values)


@pytest.mark.parametrize(
    "values", [[f"{i}" for i in range(4000)], ["a", "b"] * 2000, some(random.Random(0), 900, [40])]
)
def test_a_hash_decides_nothing(values, monkeypatch):
    """Were all fields to fall on one place, time and again, every one is still what it is."""
    monkeypatch.setattr(texts, "_spread", lambda words: np.zeros(len(words[0]), dtype=np.uint64))
    assert read(values).to_list() == values


def test_bytes_that_differ_behind_the_end_of_a_field_are_not_part_of_it():
    assert read(["a", "b", "a", "c"]).distinct.count("a") == 1
    assert read(["ab", "", "ab\x00", "ab"]).to_list() == ["ab", None, "ab\x00", "ab"]


def test_one_long_field_does_not_make_the_others_slow():
    def seconds(values):
        started = time.process_time()
        read(values)
        return time.process_time() - started

    short = ["yes", "no"] * 50_000
    assert min(seconds([*short, "x" * 4_000_000]) for _ in range(3)) < 10 * min(seconds(short) for _ in range(3)) + 0.05


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_delimiters_and_doubled_quotes_within_quotes(line_end):
    form = Form(3, b",", line_end)
    lines = [b'1,"a, ""b""",x', b'2,"",', b'"3",",,","""" ', b'4,c,"d"']
    plain = [line for line in lines if not line.endswith(b" ")]
    piece = Piece(line_end.join(plain), len(plain), [])  # the last line has no end
    columns = [column.to_list() for column in batch_of(piece, form, [2, 0, 1])]
    assert columns == [["x", None, "d"], ["1", "2", "4"], ['a, "b"', None, "c"]]


def test_rows_behind_rows():
    both = Texts.of(["a", None, "a"]).with_more(Texts.of(["b", "a"]))
    assert both.to_list() == ["a", None, "a", "b", "a"] and len(both) == 5
    assert both.to_arrow().to_pylist() == both.to_list()


COLUMNS = [
    Attribute.categorical("c", ["a", "b", "7"], missing="?", other="else"),
    Attribute.categorical("c", ["A ", "b"], strip=True, ignore_case=True, other="else"),
    Attribute.categorical("c", [True, False], missing="?"),
    Attribute.numeric("c", [0, 5, 10], missing="?", missing_values=["-9"]),
]


@pytest.mark.parametrize("attribute", COLUMNS, ids=str)
def test_texts_and_arrow_columns_are_encoded_alike(attribute):
    values = ["a", "A", None, "b", " a ", "7", "7.0", "true", "TRUE", "-9", "1e1", "nan", "", "zé"] * 2
    column = Texts.of(value or None for value in values)
    arrow = ArrowColumn(column.to_arrow())
    assert column.codes(attribute).tolist() == arrow.codes(attribute).tolist()
    for mine, theirs in zip(column.identities(), arrow.identities(), strict=True):
        assert np.array_equal(mine, theirs)
    assert column.to_list() == arrow.to_list()


def test_everybody_is_somebody_or_nobody():
    kept, identity = Texts.of(["x", "y", "x"]).identities()
    assert kept is None and identity.shape == (2, 3) and (identity[:, 0] == identity[:, 2]).all()
    kept, identity = Texts.of(["x", None]).identities()
    assert kept.tolist() == [True, False] and identity.shape == (2, 1)
    kept, identity = ArrowColumn(pa.array([], pa.string())).identities()
    assert not len(identity[0])
