"""Histograms of columns of numbers on public grids, from fine to coarse: what bins are found from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...tables.base import IntArray
from ..query import Part, Query
from ..unit import Relation, Sensitivity


class Histograms(Query):
    """For each column the counts on its finest grid (with the numbers that are counted by themselves behind), and those
    on each coarser one.

    Sensitivity: a record is in one cell of each grid, or, if it has no number, in none (L1 = L2 = L∞ = 1 for each
    histogram); replacing it also takes one from a cell (L1 = 2, L2² = 2). Coarser counts are sums of finer ones, but
    each is noised by itself, and each costs.
    """

    noun = ("histogram", "histograms")

    def __init__(self, domain: Domain, columns: Iterable[str]) -> None:
        super().__init__(domain)
        self._columns = tuple(columns)
        for name in self._columns:
            sought = domain[name].sought
            if sought is None or sought.what != "bins":
                raise InputError(f'the bins of {name!r} are not to be found: write bins = "private" into the schema')

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple((name,) for name in self._columns)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        out = []
        for name in self._columns:
            attribute = self.domain[name]
            assert attribute.sought is not None
            fine = attribute.bins + len(attribute.heaps)
            sizes = [fine, *(int(group.max()) + 1 for group in attribute.sought.coarser)]
            out += [
                Part(f"{name}, {size} cells", (size,), about={"column": name, "grid": g})
                for g, size in enumerate(sizes)
            ]
        return tuple(out)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        out = []
        for name, table in zip(self._columns, counts, strict=True):
            attribute = self.domain[name]
            assert attribute.sought is not None
            cells = table[: attribute.bins]
            out.append(table[: attribute.bins + len(attribute.heaps)])
            for group in attribute.sought.coarser:
                coarse = np.zeros(int(group.max()) + 1, dtype=np.int64)
                np.add.at(coarse, group, cells)
                out.append(coarse)
        return tuple(out)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        one = Sensitivity(1, 1, 1, 1) if relation == "add-remove" else Sensitivity(2, 2, 1, 2)
        return (one,) * len(self.parts)
