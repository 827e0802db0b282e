"""Tables of a chain: how windows of consecutive columns start, and how they move on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import InputError
from ...tables.base import WEIGHT_UNITS, IntArray
from ..query import Part, Query
from ..unit import PrivacyUnit, Relation, Sensitivity

MOVES = "moves"


class ChainTables(Query):
    """The tables of x_t, …, x_{t+order} for every t: one for each (``tied=False``), or all added up, and a table of the
    first ``order`` columns beside it.

    Sensitivity. A row has e = columns − order moves. *Tied*: they all fall into one table, perhaps all into one cell,
    so that a row adds e to it in L1 and L∞, e² in L2 squared; another row in its place also takes as much away, from
    other cells: 2e, e and 2e². Of the start it adds one. *Not tied*: one to one cell of each table, as for
    :class:`~discreet.privacy.query.Marginals`.

    ``scaled``: each row of a person with K rows counts 1/K, as [BMSSHM17] section 4.2 has it: ⌊2²⁰/K⌋ units of 2⁻²⁰. K
    is counted by the table, before anything is left out, and so a person adds at most as much as one row would,
    whatever ``max_rows`` is. Replacing a person takes one such vector of numbers ≥ 0 away and adds another: twice the
    L1 and the L2 squared.
    """

    noun = ("table", "tables")

    def __init__(self, domain: Domain, order: int = 1, *, tied: bool = True, scaled: bool = False) -> None:
        super().__init__(domain)
        check_whole(1, order=order)
        check_chain(domain, order, tied=tied)
        self.order, self.tied, self.needs_weights = order, tied, scaled

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return moves_of(self.domain, self.order)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        grid = Fraction(1, WEIGHT_UNITS if self.needs_weights else 1)
        if not self.tied:
            return tuple(Part(" × ".join(c), self._shape(c), clique=c, grid=grid) for c in self.cliques)
        first = self.cliques[0]
        start = first[: self.order]
        about = {MOVES: len(self.cliques), "order": self.order}
        return (
            Part(f"start: {' × '.join(start)}", self._shape(start), clique=start, grid=grid),
            Part("moves, at all times together", self._shape(first), grid=grid, about=about),
        )

    def _shape(self, clique: Clique) -> tuple[int, ...]:
        return tuple(self.domain[name].size for name in clique)

    def combine(self, counts: Sequence[Any]) -> tuple[IntArray, ...]:
        if not self.tied:
            return tuple(counts)
        return counts[0].sum(axis=-1), np.sum(counts, axis=0)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        return tuple(_moved(e, part.cells, relation) for e, part in zip(self._times, self.parts, strict=True))

    @property
    def _times(self) -> tuple[int, ...]:
        """Of each table, how many of its cells one row counts in."""
        return (1, len(self.cliques)) if self.tied else (1,) * len(self.cliques)

    def sensitivity(self, unit: PrivacyUnit) -> tuple[Sensitivity, ...]:
        if not self.needs_weights:
            return super().sensitivity(unit)
        if unit.column is None:
            raise InputError("weights of 1/K bound what a person contributes: give PrivacyUnit(column=…, max_rows=…)")
        sizes = zip(self._times, self.parts, strict=True)
        moved = 2 if unit.relation == "replace-one" else 1
        return tuple(
            Sensitivity(
                moved * e * WEIGHT_UNITS,
                moved * (e * WEIGHT_UNITS) ** 2,
                e * WEIGHT_UNITS,
                min(moved * unit.max_rows * e, part.cells),
            )
            for e, part in sizes
        )


def _moved(e: int, cells: int, relation: Relation) -> Sensitivity:
    """By a row that counts e times in a table. Where there is one cell its total stays when a row is replaced, but is
    noised as if it moved."""
    both = 2 if relation == "replace-one" and cells > 1 else 1
    return Sensitivity(both * e, both * e * e, e, min(both * e, cells))


def moves_of(domain: Domain, order: int) -> tuple[Clique, ...]:
    """The sets of consecutive columns that interact."""
    names = domain.names
    return tuple(names[t : t + order + 1] for t in range(len(names) - order))


def check_chain(domain: Domain, order: int, *, tied: bool) -> None:
    """Columns that a chain can be made of: more than ``order``, and of the same states where times are tied."""
    if len(domain) <= order:
        raise InputError(
            f"a chain of order {order} needs at least {order + 1} columns, which are the times; there "
            f"{'is' if len(domain) == 1 else 'are'} {len(domain)}. Rows of people and times become such columns by "
            "windows (discreet.tables.windows, or --time-column on the line)"
        )
    first = domain.attributes[0]
    other = next((a for a in domain.attributes if a.labels != first.labels), None)
    if tied and other is not None:
        raise InputError(
            f"a chain that is the same at all times has the same states at all times, and {first.name!r} and "
            f"{other.name!r} have different levels. Take tied=false, or columns that are times"
        )
