"""Labelled tables of counts: they add up, where the log-space :class:`~discreet.factor.Factor` multiplies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .domain import Clique
from .factor import Array, spread

T = TypeVar("T", np.float64, np.int64)


def summed_onto(values: NDArray[T], own: Clique, wanted: Clique) -> NDArray[T]:
    """The table of the ``wanted`` columns, axes in that order, out of one over its ``own``: all others summed out."""
    kept = [name for name in own if name in wanted]
    summed = values.sum(axis=tuple(i for i, name in enumerate(own) if name not in wanted))
    return np.transpose(summed, [kept.index(name) for name in wanted])


@dataclass(frozen=True, eq=False)
class CountTable:
    """Counts over the columns of ``clique``, axes in that order; they may be noisy, and so no whole numbers.

    ``variance`` is what noise leaves in each cell. Where it is known more closely how all the columns go together, as
    after an interaction was measured (:mod:`discreet.privacy.queries.interactions`), ``together`` is the variance of a
    cell whose interaction alone is looked at, before the other directions are taken off; with an infinite ``variance``
    nothing else is known.

    >>> ages = CountTable(("age", "sex"), np.array([[3.0, 4.0], [1.0, 2.0]]), variance=2.0)
    >>> ages.onto(["sex"]).values, ages.onto(["sex"]).variance
    (array([4., 6.]), 4.0)
    """

    clique: Clique
    values: Array
    variance: float = 0.0
    together: float | None = None

    @property
    def closely(self) -> float:
        """The variance that counts for the interaction of all its columns."""
        return self.variance if self.together is None else self.together

    @property
    def interaction(self) -> Array:
        """The table less all its margins, each spread evenly."""
        values = self.values
        for axis in range(values.ndim):
            values = values - values.mean(axis=axis, keepdims=True)
        return values

    @property
    def cells(self) -> int:
        return self.values.size

    @property
    def total(self) -> float:
        return float(self.values.sum())

    def holds(self, names: Iterable[str]) -> bool:
        """Whether the table of these columns can be summed out of this one."""
        return set(names) <= set(self.clique)

    def onto(self, names: Iterable[str]) -> CountTable:
        """The table of some of its columns, axes in the order given. Errors of cells count as independent."""
        wanted = tuple(names)
        values = summed_onto(self.values, self.clique, wanted)
        return CountTable(wanted, values, self.variance * (self.cells / values.size))

    def plus_evenly(self, margin: CountTable) -> CountTable:
        """This table with a table of some of its columns added: each cell of that one in equal parts over the cells
        that it is the sum of."""
        added = spread(margin.values, margin.clique, self.clique) * (margin.cells / self.cells)
        return CountTable(self.clique, self.values + added, self.variance)
