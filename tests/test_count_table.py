"""Labelled tables of counts: sums over columns by name, against sums written out."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.count_table import CountTable
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.consistency import consistent
from discreet.measurement import Measurement, Measurements, Noise

SIZES = {"a": 2, "b": 3, "c": 4}
TABLE = CountTable(("a", "b", "c"), np.random.default_rng(0).integers(0, 99, (2, 3, 4)).astype(float), variance=5.0)


@pytest.mark.parametrize("names", [p for r in range(4) for p in permutations("abc", r)], ids="".join)
def test_sums_onto_any_columns_in_any_order(names: tuple[str, ...]) -> None:
    found = TABLE.onto(names)
    assert found.clique == names and found.values.shape == tuple(SIZES[n] for n in names)
    expected = np.zeros(found.values.shape)
    for cell in product(*(range(SIZES[n]) for n in "abc")):
        expected[tuple(cell["abc".index(n)] for n in names)] += TABLE.values[cell]
    np.testing.assert_allclose(found.values, expected)
    assert found.variance == pytest.approx(5.0 * 24 / found.cells)  # so many cells are added up
    assert found.total == pytest.approx(TABLE.total)
    assert TABLE.holds(names) and not found.holds("d")


@given(st.permutations("abc"), st.integers(0, 3), st.integers(0, 999))
def test_a_margin_is_added_evenly(order: list[str], columns: int, seed: int) -> None:
    """The sums move by exactly what is added, and cells that share a cell of the margin by the same."""
    names = tuple(order[:columns])
    added = CountTable(names, np.random.default_rng(seed).normal(size=[SIZES[n] for n in names]))
    moved = TABLE.plus_evenly(added)
    np.testing.assert_allclose(moved.onto(names).values, TABLE.onto(names).values + added.values)
    change = CountTable(TABLE.clique, moved.values - TABLE.values)
    for cell in product(*(range(SIZES[n]) for n in "abc")):
        here = added.values[tuple(cell["abc".index(n)] for n in names)]
        assert change.values[cell] == pytest.approx(here * added.cells / 24)


def test_tables_with_their_columns_in_another_order_agree() -> None:
    """Margins are matched by name, not by the place of an axis."""
    domain, rng = Domain.of(SIZES), np.random.default_rng(1)
    truth = rng.integers(20, 90, (2, 3, 4))
    noise = Noise("gaussian", 3.0)

    def measured(clique: tuple[str, ...]) -> Measurement:
        counts = CountTable(("a", "b", "c"), truth.astype(float)).onto(clique).values + rng.normal(0, 3, 1)
        return Measurement("t", np.rint(counts).astype(np.int64), noise, domain, clique=clique)

    found = consistent(Measurements([measured(("a", "b", "c")), measured(("c", "b"))]))
    np.testing.assert_allclose(found["c", "b"].values, found["a", "b", "c"].onto(("c", "b")).values)


def test_only_contingency_tables_have_columns() -> None:
    sums = Measurement("sums of signs", np.array([1, 2]), Noise("laplace", 2.0), Domain.of(SIZES))
    with pytest.raises(InputError, match="'sums of signs' is not a contingency table"):
        sums.as_table()
