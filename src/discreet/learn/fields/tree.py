"""The junction tree of a growing set of tables: whether one more keeps it small enough, without making it anew."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...domain import Clique, Domain
from ...graph import maximal_cliques, triangulate
from ...ordering import bits

PATIENCE = 60
"""After so many tables in a row for which another order of elimination was of no help, no other order is sought."""


class Tree:
    """The tables measured so far, and the junction tree that a model on them needs.

    Columns are eliminated in a fixed order. ``_later`` holds, for each column, those that it is joined to when its turn
    comes and that come later, as the bits of an integer whose positions are those in the order. A new table changes the
    columns on one path towards the end of the order, so that it is known in microseconds how large the tree becomes.
    Only when that is too large another order is sought, from scratch.
    """

    def __init__(self, domain: Domain, cliques: Iterable[Clique], most_cells: int) -> None:
        self.domain, self.most_cells = domain, most_cells
        self._tables = tuple(dict.fromkeys(cliques))
        self._later: list[int] = []
        self._cells = self._failures = 0
        self._reorder(triangulate(domain, self._tables, tries=1).elimination_order)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The largest of the tables."""
        return maximal_cliques(self._tables)

    @property
    def cells(self) -> int:
        """Of all tables of the junction tree."""
        return self._cells

    def takes(self, clique: Clique) -> bool:
        """Add a table if the tree stays small enough, and say whether."""
        if self.domain.size(clique) > self.most_cells:
            return False
        later, cells = self._later, self._cells
        if self._join(clique):
            self._cells = self._count()
        if self._cells > self.most_cells and self._cells > cells and not self._found_better(clique):
            self._later, self._cells = later, cells
            return False
        self._tables = (*self._tables, clique)
        return True

    def _found_better(self, clique: Clique) -> bool:
        """Seek another order for the tables with one more, from scratch."""
        if self._failures >= PATIENCE:
            return False
        tree = triangulate(self.domain, maximal_cliques((*self._tables, clique)), tries=1)
        if tree.forecast().total_cells > self.most_cells:
            self._failures += 1
            return False
        self._failures = 0
        self._reorder(tree.elimination_order, [clique])
        return True

    def _reorder(self, order: tuple[str, ...], more: Iterable[Clique] = ()) -> None:
        self._order = order
        self._rank = {name: i for i, name in enumerate(order)}
        self._sizes = [self.domain[name].size for name in order]
        self._known: dict[int, int] = {}
        self._later = [0] * len(order)
        for clique in (*self._tables, *more):
            ranks = sorted(self._rank[n] for n in clique)
            for k, r in enumerate(ranks[:-1]):
                for other in ranks[k + 1 :]:
                    self._later[r] |= 1 << other
        for later in self._later:  # as it is changed on the way
            if later:
                first = later & -later
                self._later[first.bit_length() - 1] |= later ^ first
        self._cells = self._count()

    def _join(self, clique: Clique) -> bool:
        """Join the columns of a table, and what has to be joined for it; whether anything changed."""
        later = list(self._later)
        ranks = sorted(self._rank[n] for n in clique)
        changed = False
        for k, r in enumerate(ranks[:-1]):
            new = later[r] | sum(1 << other for other in ranks[k + 1 :])
            v = r
            while new != later[v]:
                later[v], changed = new, True
                first = new & -new
                v = first.bit_length() - 1
                new = later[v] | (new ^ first)
        self._later = later
        return changed

    def _count(self) -> int:
        """Cells of the cliques that are in no other. That of v is in one of an earlier column u exactly if v is the
        first of those after u, and u is joined to one more than v is."""
        counts = [later.bit_count() for later in self._later]
        inside = [False] * len(counts)
        for v, later in enumerate(self._later):
            if later:
                first = (later & -later).bit_length() - 1
                if counts[v] == counts[first] + 1:
                    inside[first] = True
        return sum(self._size(v) for v, small in enumerate(inside) if not small)

    def _size(self, v: int) -> int:
        clique = self._later[v] | 1 << v
        if clique not in self._known:
            self._known[clique] = math.prod(self._sizes[u] for u in bits(clique))
        return self._known[clique]
