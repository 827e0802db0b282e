"""What tables say of how all their columns go together, and nothing of any fewer: tables less their margins.

A table of two columns tells three things: each column's own counts, and how they go together. Where tables overlap, the
columns are told again and again. An *interaction* is the last part alone, so that a record moves it by less, and the
same budget buys less noise. [Residual queries: Xiao, He, Zhang, Kifer, ResidualPlanner, NeurIPS 2023.]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import InputError
from ...tables.base import IntArray
from ..query import Marginals, Part, Query
from ..unit import Relation, Sensitivity

KEY = "interaction"
"""Under which word a measurement says of which columns it is."""
_MOST_CELLS = 2**28  # so that sums over 2³² records stay below 2⁶⁰


class Interactions(Query):
    """For each clique, its contingency table x less all its margins, each spread evenly: Px with P = ⊗ᵢ (I − 11ᵀ/kᵢ),
    kᵢ the levels of its columns, counted in parts of 1/Πkᵢ, in which it is whole.

    Sensitivity, in these parts. A record in cell a adds ⊗ᵢ (kᵢ·e_aᵢ − 1): entries Π (kᵢ − 1 where the level is a's, −1
    elsewhere), hence L1 = Π 2(kᵢ − 1), L2² = Π kᵢ(kᵢ − 1) and L∞ = Π (kᵢ − 1). That is a part Π (1 − 1/kᵢ) of what it
    would be for the table in the same units. Replacing one record by another with the same levels in a set A of columns
    adds the difference u − u′ with ⟨u, u′⟩ = Π_A kᵢ(kᵢ − 1)·Π_{not A} (−kᵢ): so
    L2² = 2·Π kᵢ(kᵢ − 1) − 2·min over A of that product. L1 and L∞ are bounded by those of two records.
    """

    noun = ("interaction", "interactions")

    def __init__(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> None:
        super().__init__(domain)
        self._cliques = Marginals(domain, cliques).cliques
        for clique in self._cliques:
            sizes = [domain[n].size for n in clique]
            if min(sizes, default=1) < 2:
                raise InputError(f"an interaction is of columns with two levels or more; not {clique}")
            if math.prod(sizes) > _MOST_CELLS:
                raise InputError(f"the table of {clique} has too many cells for an interaction")

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return self._cliques

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(
                f"{' × '.join(c)} {'together' if len(c) > 1 else 'without the total'}",
                tuple(self.domain[n].size for n in c),
                grid=Fraction(1, self.domain.size(c)),
                about={KEY: list(c)},
            )
            for c in self._cliques
        )

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        return tuple(moved_together([self.domain[n].size for n in c], relation) for c in self._cliques)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return tuple(together(table) for table in counts)


def together(table: NDArray[Any]) -> NDArray[Any]:
    """A table less its margins, in parts of one record by the number of cells."""
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table


def moved_together(sizes: Sequence[int], relation: Relation) -> Sensitivity:
    """Of the interaction of columns with so many levels: how far one row moves it, in its own units."""
    squared, cells = math.prod(k * (k - 1) for k in sizes), math.prod(sizes)
    one = Sensitivity(math.prod(2 * (k - 1) for k in sizes), squared, math.prod(k - 1 for k in sizes), cells)
    if relation == "add-remove":
        return one
    # The least ⟨u, u′⟩: an odd number of columns differ. One alone, with the fewest levels, is least by size, since
    # every other column that differs makes the product smaller by k − 1, or leaves it (k = 2).
    least = -min(sizes) * math.prod(k * (k - 1) for k in sorted(sizes)[1:])
    return Sensitivity(2 * one.l1, 2 * squared - 2 * least, 2 * one.linf, cells)
