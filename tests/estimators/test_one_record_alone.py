"""How a record is read depends on that record alone: one odd value must not move the others, nor say anything."""

import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import Curator, Domain, Marginals, PureDP, encode
from discreet.domain import Attribute
from discreet.errors import InputError
from discreet.estimators import PrivateGraphicalModel, PrivateLogisticRegression
from discreet.estimators.base import as_codes, as_numbers
from discreet.privacy.curator import ExactCurator
from discreet.privacy.queries.likelihood import LogLikelihood
from discreet.tables.memory import MemoryTable
from discreet.tables.persons import digest_of

ODD = [None, "?", [1], np.nan, 10**400, np.datetime64("2020-01-01"), object(), b"\xff", 1j]


@pytest.mark.parametrize("odd", ODD, ids=lambda x: type(x).__name__)
def test_labels_in_lists(odd):
    plain = as_codes([[0], [1], [0]], (0, 1))
    assert np.array_equal(as_codes([[0], [1], odd], (0, 1))[:2], plain[:2])
    assert np.array_equal(as_codes([0, 1, odd], (0, 1))[:2], [0, 1])


@pytest.mark.parametrize("odd", ODD, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("value", [np.timedelta64(3, "D"), np.datetime64("2020-01-01"), 0.25, "0.5", True], ids=repr)
def test_numbers_in_lists_and_object_arrays(value, odd):
    def column(*values):
        rows = np.empty((len(values), 1), dtype=object)
        rows[:, 0] = values
        return rows

    for form in (lambda x: x, lambda x: pd.DataFrame(x)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            alone, beside = (as_numbers(form(column(value, x))) for x in (value, odd))
        assert np.array_equal(alone[0], beside[0], equal_nan=True)


def test_numbers_too_large_for_us_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(as_numbers(np.array([[np.longdouble("1e4000")]]))).all()


@pytest.mark.parametrize("make", [lambda x: pa.table({"d": x}), lambda x: pl.DataFrame({"d": pl.from_arrow(x)})])
def test_dates_that_python_cannot_hold(make):
    domain = Domain((Attribute.categorical("d", ["1970-01-02"], other="other"),))
    counts = [
        ExactCurator(encode(make(pa.array(days, pa.date32())), domain)).measure(Marginals(domain, [("d",)]))[0].counts
        for days in ([1, 1, 2], [1, 1, 10**7])
    ]
    assert np.array_equal(counts[0], counts[1]) and counts[0].sum() == 3


def test_identifiers():
    assert digest_of(1) == digest_of(1.0) == digest_of("1") == digest_of(Decimal("1.00"))
    assert digest_of(10**5000) is None and digest_of("int") is not None  # too long to be spelled: nobody
    assert digest_of(Decimal("NaN")) != digest_of(1)
    assert digest_of(1.5) == digest_of("1.5")


def test_a_table_with_nan_cannot_break_the_likelihood():
    domain = Domain.of({"a": 2})
    query = LogLikelihood(domain, [(("a",), np.array([np.nan, -1.0]))], 0.0, -5.0)
    sums = query.sum_rows({"a": np.array([0, 1], dtype=np.uint8)})
    assert -2048 <= sums[0][0] <= 0


def test_a_warning_in_a_block_stays_inside():
    domain = Domain.of({"a": 2})

    def noisy(curator):
        warnings.warn("about this block", stacklevel=1)
        return "word"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = encode({"a": [0, 1] * 20}, domain)
        assert Curator(table, budget=PureDP(1)).vote(noisy, 4, candidates=["word", "other"]).winner


REFUSED = {
    "text for numbers": lambda long: as_codes(np.array(["a", "b" * (40 if long else 1)]), (0, 1)),
    "bytes for numbers": lambda long: as_codes(np.array([b"a", b"b" * (40 if long else 1)]), (0, 1)),
    "numbers for text": lambda long: as_codes(np.zeros(40 if long else 1), ("a", "b")),
    "labels in several dimensions": lambda long: as_codes(np.zeros((40 if long else 1, 2, 2)), (0, 1)),
    "dates": lambda long: PrivateGraphicalModel().fit(
        pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.array([date(2020, 1, 1)] * (40 if long else 1)))})
    ),
    "lists": lambda long: PrivateGraphicalModel().fit(
        pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.array([{"b" * (40 if long else 1): 1}]))})
    ),
    "text without a domain": lambda long: PrivateGraphicalModel().fit(pd.DataFrame({"a": ["b" * (40 if long else 1)]})),
    "a column of rows": lambda long: encode({"a": np.zeros((40 if long else 1, 2))}, Domain.of({"a": 2})),
    "an array of rows": lambda long: encode(np.zeros((40 if long else 1, 3)), Domain.of({"a": 2})),
    "numbers in one dimension": lambda long: as_numbers(np.zeros(40 if long else 1)),
    "complex numbers": lambda long: as_numbers(np.zeros((40 if long else 1, 2), dtype=complex)),
    "more labels than rows": lambda long: PrivateLogisticRegression(classes=(0, 1)).fit(
        np.zeros((40 if long else 2, 2)), np.zeros(1)
    ),
    "columns of two lengths": lambda long: encode(
        {"a": [0] * (40 if long else 2), "b": [0]}, Domain.of({"a": 2, "b": 2})
    ),
    "codes that do not fit": lambda long: MemoryTable(
        Domain.of({"a": 300}), [np.zeros(40 if long else 1, dtype=np.int8)]
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_nothing_of_values_or_of_how_many_there_are(name):
    """The same form with other values, longer ones and more of them: the same words."""
    said = []
    for long in (False, True):
        with pytest.raises(InputError) as refusal:
            REFUSED[name](long)
        said.append(str(refusal.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("rows", [[], [[[0], [1]]], [[[0], [1]], [[0], [1]]], [[[0], [1]], [0, 1]], [[0, np.ones(2)]]])
def test_rows_in_a_list_may_hold_anything_and_be_none(rows):
    """NumPy makes three dimensions of the second and third, and one of the first: the fits would fail."""
    PrivateGraphicalModel(1.0, domain=Domain.of({"a": 2, "b": 3})).fit(rows)
    with pytest.raises(InputError, match="every row"):
        PrivateGraphicalModel(1.0, domain=Domain.of({"a": 2, "b": 3})).fit([*rows, [0]])


@pytest.mark.parametrize("rows", [10, 5_000])
@pytest.mark.parametrize("labels", [["yes", "no"], ["yes", "no", "perhaps"], ["yes"], ["never", "again"]])
def test_nothing_is_read_off_many_labels(rows, labels):
    """However many there are: the classes are the public ones, and no label makes a fit fail or is shown."""
    y = np.array(labels)[np.arange(rows) % len(labels)]
    model = PrivateLogisticRegression(classes=("no", "yes"), budget=1, steps=1, allow_refit=True)
    model.fit(np.zeros((rows, 1)), y)
    assert model.classes_.tolist() == ["no", "yes"]
    if set(labels) & {"no", "yes"} == {"yes"}:
        assert model.fit(np.zeros((rows, 1)), y).predict(np.zeros((1, 1)))[0] in ("no", "yes")
