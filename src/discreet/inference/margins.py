"""Many small tables over one junction tree: added into its cliques, and summed out of them, in a few stages.

A field has a table of log potentials for each of its cliques. They are added into the tables of the tree on the way in
(:meth:`Margins.spread`), and their marginals are summed out of the tree's beliefs on the way out
(:meth:`Margins.collect`): two linear maps, each the transpose of the other. With 300 pairs and triples in one table of
65,536 cells, going from the one to the others directly would touch every cell 300 times. So sums go in stages: from
a large table to a few *unions of blocks* of its columns, from those to smaller ones, and from there to the tables, all
of them by one sparse product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique
from ..factor import Array
from .schedule import Reduction, Schedule

LARGE, SMALL = 4096, 64
"""Cells of the unions that a large table is summed onto, and of those that these are summed onto."""
_WORTHWHILE = 4
"""A union must be smaller than its source by this factor."""
MOST_LINKS = 1 << 22
"""Beyond so many entries of the matrices (12 bytes each) tables had better be added one by one."""

Place = tuple[int, Clique]
"""A table within a vector: its first cell, and its columns in the order of its axes."""
Links = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Rows and columns of the ones of a matrix."""


@dataclass(frozen=True)
class _Sum:
    """From a large table of the tree to a union of blocks of its columns."""

    source: slice
    target: slice
    reduction: Reduction
    spread: tuple[int, ...]


class Margins:
    """The two maps between a flat vector of tables, clique after clique, and the buffer of a junction tree."""

    def __init__(self, schedule: Schedule, cliques: Sequence[Clique]) -> None:
        plan = _Plan(schedule, cliques)
        self.fits = plan.links <= MOST_LINKS
        """Whether the matrices are small enough to be made; :meth:`spread` and :meth:`collect` need them."""
        if self.fits:
            self._sums, self._large_cells = plan.sums, plan.large_cells
            self._from_tree = _Map(plan.from_tree, plan.cells, schedule.total)
            self._from_large = _Map(plan.from_large, plan.cells, plan.large_cells)
            self._from_small = _Map(plan.from_small, plan.cells, plan.small_cells)
            self._large_to_small = _Map(plan.large_to_small, plan.small_cells, plan.large_cells)

    def spread(self, vector: Array) -> Array:
        """All tables added into the tree: ``(cells,)`` from ``(size,)``, or a column for each column."""
        out = self._from_tree.spread(vector)
        if self._sums:
            large = self._large_to_small.spread(self._from_small.spread(vector))
            large += self._from_large.spread(vector)
            tail = vector.shape[1:]
            for s in self._sums:
                into = out[s.source].reshape(s.reduction.shape + tail)
                np.add(into, large[s.target].reshape(s.spread + tail), out=into)
        return out

    def collect(self, buffer: Array) -> Array:
        """The margins of all tables, summed out of the tree."""
        out = self._from_tree.collect(buffer)
        if self._sums:
            large = np.empty((self._large_cells, *buffer.shape[1:]))
            for s in self._sums:
                large[s.target] = s.reduction(buffer[s.source])
            out += self._from_large.collect(large)
            out += self._from_small.collect(self._large_to_small.collect(large))
        return out


class _Map:
    """A matrix of zeros and ones and its transpose."""

    def __init__(self, links: Sequence[Links], rows: int, columns: int) -> None:
        from scipy.sparse import csr_array  # slow to import

        none = [np.empty(0, dtype=np.int32)]
        at = np.concatenate([r for r, _ in links] or none), np.concatenate([c for _, c in links] or none)
        self._matrix = csr_array((np.ones(len(at[0])), at), shape=(rows, columns))
        self._transpose = self._matrix.T.tocsr()  # by rows: faster by half than by columns

    def collect(self, vector: Array) -> Array:
        out: Array = self._matrix @ vector
        return out

    def spread(self, vector: Array) -> Array:
        out: Array = self._transpose @ vector
        return out


class _Plan:
    """Which union each table is summed out of, and the ones of all matrices."""

    def __init__(self, schedule: Schedule, cliques: Sequence[Clique]) -> None:
        domain = schedule.tree.domain
        self.sizes = {name: domain[name].size for name in domain}
        self.cliques = cliques
        self.starts = [0, *accumulate(self._size(c) for c in cliques)]
        self.cells, self.large_cells, self.small_cells = self.starts[-1], 0, 0
        self.from_tree: list[Links] = []
        self.from_large: list[Links] = []
        self.from_small: list[Links] = []
        self.large_to_small: list[Links] = []
        self.sums: list[_Sum] = []
        self.links = 0
        homes: dict[int, list[int]] = {}
        for position, clique in enumerate(cliques):
            homes.setdefault(schedule.tree.home(clique), []).append(position)
        for home, members in homes.items():
            start, axes = schedule.bounds[home][0], schedule.axes[home]
            cells = self._size(axes)
            few = len(members) <= _WORTHWHILE and cells < _WORTHWHILE * LARGE
            if few or cells < _WORTHWHILE**2 * SMALL:
                self.from_tree += [self._table((start, axes), i) for i in members]
            else:
                self._divide(schedule, home, members)

    def _divide(self, schedule: Schedule, home: int, members: list[int]) -> None:
        """A large table of the tree: unions of it, smaller unions of those, and then its tables."""
        axes, shape = schedule.axes[home], schedule.shapes[home]
        is_large = self._size(axes) >= _WORTHWHILE * LARGE
        for union, chosen in self._unions(axes, members, LARGE) if is_large else [(axes, members)]:
            large = (self.large_cells, union)
            self.large_cells += self._size(union)
            kept = frozenset(i for i, n in enumerate(axes) if n in union)
            spread = tuple(k if i in kept else 1 for i, k in enumerate(shape))
            self.sums.append(
                _Sum(slice(*schedule.bounds[home]), slice(large[0], self.large_cells), Reduction(shape, kept), spread)
            )
            for part, tables in self._unions(union, chosen, SMALL):
                if len(tables) == 1:
                    self.from_large.append(self._table(large, tables[0]))
                    continue
                small = (self.small_cells, part)
                self.small_cells += self._size(part)
                self.large_to_small.append(self._links(large, small))
                self.from_small += [self._table(small, i) for i in tables]

    def _size(self, names: Clique) -> int:
        return math.prod(self.sizes[n] for n in names)

    def _unions(self, axes: Clique, members: Sequence[int], limit: int) -> list[tuple[Clique, list[int]]]:
        """Unions of blocks of these columns, each with the tables that are within it; a table by itself where a union
        would be no smaller than what it is summed out of."""
        widest = max(len(self.cliques[i]) for i in members)
        block, count, room = dict[str, int](), 0, 1
        for name in axes:
            if (room * self.sizes[name]) ** widest > limit:
                count, room = count + 1, 1
            room *= self.sizes[name]
            block[name] = count
        touched = {i: frozenset(block[n] for n in self.cliques[i]) for i in members}
        chosen: dict[frozenset[int], list[int]] = {}
        for i in sorted(members, key=lambda i: -len(touched[i])):
            chosen.setdefault(next((b for b in chosen if touched[i] <= b), touched[i]), []).append(i)
        out: list[tuple[Clique, list[int]]] = []
        for blocks, tables in chosen.items():
            union = tuple(n for n in axes if block[n] in blocks)
            if len(tables) > 1 and self._size(union) * _WORTHWHILE <= self._size(axes):
                out.append((union, tables))
            else:
                out += [(tuple(n for n in axes if n in self.cliques[i]), [i]) for i in tables]
        return out

    def _table(self, source: Place, position: int) -> Links:
        return self._links(source, (self.starts[position], self.cliques[position]))

    def _links(self, source: Place, wanted: Place) -> Links:
        """For every cell of the source, the cell of the wanted table that it is counted in."""
        (start, axes), (at, names) = source, wanted
        cells = self._size(axes)
        self.links += cells
        if self.links > MOST_LINKS:  # nobody will look at it
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
        target = np.full([self.sizes[n] for n in axes], at, dtype=np.int32)
        stride = 1
        for name in reversed(names):
            place = [1] * len(axes)
            place[axes.index(name)] = self.sizes[name]
            target += (stride * np.arange(self.sizes[name], dtype=np.int32)).reshape(place)
            stride *= self.sizes[name]
        return target.reshape(-1), np.arange(start, start + cells, dtype=np.int32)
