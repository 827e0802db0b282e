"""A junction tree compiled into shapes and offsets, so that a calibration only does arithmetic.

All clique tables live one after the other in one buffer, ``(cells,)`` or ``(cells, batch)``. Within a table the axes
are in *elimination order*: what a clique sums out on the way to its parent comes first and the separator last, so the
message upwards is a sum over the leading axis of a matrix and the message downwards multiplies its rows. The batch
comes last because then every inner loop of NumPy runs over it, however small the tables are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from ..domain import Clique
from ..errors import InputError
from ..factor import Array
from ..graph import JunctionTree

# A table with few cells is summed by one product with a 0/1 matrix: one call instead of several.
_DENSE_CELLS = 4096
# Shorter inner loops than this cost NumPy more in overhead than in arithmetic.
_SHORT_RUN = 16


_BLOCK = 4096
_ONES = np.ones(_BLOCK)


def sum_rows(table: Array) -> Array:
    """Σ over the rows of a matrix as a product with ones, in blocks: fast for short rows and long ones alike."""
    count = len(table)
    out: Array
    if count <= _BLOCK:
        out = np.dot(_ONES[:count], table)
        return out
    whole = count // _BLOCK
    blocks = np.matmul(_ONES, table[: whole * _BLOCK].reshape(whole, _BLOCK, -1))
    out = sum_rows(blocks) + np.dot(_ONES[: count - whole * _BLOCK], table[whole * _BLOCK :])
    return out


class Reduction:
    """Sum of a table, stored flat, over some of its axes; planned once for a shape.

    Axes are merged into alternating runs of kept and summed ones; a leading or trailing run is summed by a
    matrix-vector product, an inner one by a strided sum.
    """

    def __init__(self, shape: tuple[int, ...], kept: frozenset[int]) -> None:
        runs: list[tuple[bool, int]] = []
        for keep, axes in groupby(range(len(shape)), key=lambda a: a in kept):
            runs.append((keep, math.prod(shape[a] for a in axes)))
        self.shape = shape
        self.summed = tuple(a for a in range(len(shape)) if a not in kept)
        self.kept_shape = tuple(shape[a] for a in range(len(shape)) if a in kept)
        self.cells = math.prod(shape)
        self.kept_cells = math.prod(self.kept_shape)
        self.is_identity = self.cells == self.kept_cells
        self.runs = [run for run in runs if run[1] > 1]
        self.leading_only = [keep for keep, _ in self.runs] in ([False], [False, True])

    @cached_property
    def dense(self) -> Array | None:
        """The sum as a matrix, where it is small; made when it is needed."""
        if self.cells * self.kept_cells > _DENSE_CELLS:
            return None
        target = np.empty(self.shape, dtype=np.intp)
        target[...] = np.arange(self.kept_cells).reshape(
            [1 if a in self.summed else k for a, k in enumerate(self.shape)]
        )
        made = np.zeros((self.kept_cells, self.cells))
        made[target.reshape(-1), np.arange(self.cells)] = 1.0
        return made

    def __call__(self, table: Array) -> Array:
        """Sum a contiguous table of shape ``(cells,)`` or ``(cells, batch)``."""
        if self.is_identity:
            return table
        if self.leading_only:
            return _sum_leading(table, self.cells // self.kept_cells)
        if self.dense is not None:
            out: Array = np.dot(self.dense, table)
            return out
        return self._in_steps(table)

    def _in_steps(self, table: Array) -> Array:
        batch = table.shape[1:]
        runs = list(self.runs)
        if not runs[0][0]:
            table = _sum_leading(table, runs.pop(0)[1])
        if runs and not runs[-1][0] and not batch:
            size = runs.pop()[1]
            rows = table.reshape(-1, size)
            table = np.dot(rows, _ONES[:size]) if size <= _BLOCK else np.add.reduce(rows, axis=1)
        while any(not keep for keep, _ in runs):
            # The largest run first: what follows then works on the smallest tables.
            at = max((i for i, (keep, _) in enumerate(runs) if not keep), key=lambda i: runs[i][1])
            before = math.prod(size for _, size in runs[:at])
            after = math.prod(size for _, size in runs[at + 1 :])
            table = _sum_middle(table, before, runs[at][1], after, batch)
            del runs[at]
        return table


def _sum_leading(table: Array, size: int) -> Array:
    """Σ over the leading axis; the rest stays flat."""
    rest = table.shape[0] // size
    return sum_rows(table.reshape(size, -1)).reshape((rest, *table.shape[1:]))


def _sum_middle(table: Array, before: int, size: int, after: int, batch: tuple[int, ...]) -> Array:
    run = after * math.prod(batch)
    if run < _SHORT_RUN and size * run * run <= _DENSE_CELLS and not batch:
        # (before, size · after) @ 0/1 matrix: keeps the inner loops long where `after` is tiny.
        picker = np.tile(np.eye(after), (size, 1))
        out: Array = np.dot(table.reshape(before, size * after), picker)
    else:
        out = np.add.reduce(table.reshape(before, size, run), axis=1)
    return out.reshape((before * after, *batch))


@dataclass(frozen=True)
class Edge:
    """One edge of the tree: how its message is computed and where it goes, upwards and downwards."""

    parent: int
    child: int
    residual_cells: int
    separator_cells: int
    spread: tuple[int, ...]
    """Shape in which a message multiplies the parent's table: the separator's sizes, 1 elsewhere."""
    above: tuple[int, ...]
    """Shape of the parent's table."""
    kept: frozenset[int]
    """Its axes that are the separator's."""

    @cached_property
    def down(self) -> Reduction:
        """Sum of the parent's table to the separator. Planned when it is needed: passes level by level do without."""
        return Reduction(self.above, self.kept)


@dataclass(frozen=True)
class Placement:
    """Where a table over some columns goes: the clique that takes it and the shape in which it is added there."""

    home: int
    order: tuple[int, ...] | None
    spread: tuple[int, ...]
    shape: tuple[int, ...]


class Schedule:
    """Shapes, offsets and message plans of a junction tree."""

    def __init__(self, tree: JunctionTree) -> None:
        self.tree = tree
        rank = {name: i for i, name in enumerate(tree.elimination_order)}
        size = {name: tree.domain[name].size for name in tree.domain}
        self.axes = [tuple(sorted(c, key=rank.__getitem__)) for c in tree.cliques]
        self.shapes = [tuple(size[n] for n in axes) for axes in self.axes]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)
        self.bounds = [(int(o), int(o) + s) for o, s in zip(self.offsets, self.sizes, strict=True)]
        self.total = sum(self.sizes)
        self.log_sizes = [math.log(s) for s in self.sizes]
        self.log_cells = sum(self.log_sizes)
        self.edges = [self._edge(p, c, s) for (p, c), s in zip(tree.edges, tree.separators, strict=True)]
        self.up: list[Edge | None] = [None] * len(self.sizes)
        self.down: list[list[Edge]] = [[] for _ in self.sizes]
        for edge in self.edges:
            self.up[edge.child] = edge
            self.down[edge.parent].append(edge)
        self._placements: dict[Clique, Placement] = {}
        self._projections: dict[Clique, tuple[int, Reduction, tuple[int, ...]] | None] = {}

    def _edge(self, parent: int, child: int, separator: Clique) -> Edge:
        shared = frozenset(separator)
        above, shape = self.axes[parent], self.shapes[parent]
        kept = frozenset(i for i, n in enumerate(above) if n in shared)
        separator_cells = math.prod(shape[i] for i in kept)
        return Edge(
            parent,
            child,
            self.sizes[child] // separator_cells,
            separator_cells,
            tuple(k if i in kept else 1 for i, k in enumerate(shape)),
            shape,
            kept,
        )

    def views(self, buffer: Array) -> list[Array]:
        """The clique tables within a buffer, in their shapes, the batch (if any) last."""
        tail = buffer.shape[1:]
        return [buffer[a:b].reshape(shape + tail) for (a, b), shape in zip(self.bounds, self.shapes, strict=True)]

    def placement(self, clique: Clique) -> Placement:
        """Where the potential of a clique is added (found once per clique)."""
        found = self._placements.get(clique)
        if found is None:
            if clique != self.tree.domain.clique(clique):
                raise InputError(f"the clique {clique} must be in domain order, {self.tree.domain.clique(clique)}")
            home = self.tree.home(clique)
            shape = tuple(self.tree.domain[n].size for n in clique)
            axes = [n for n in self.axes[home] if n in clique]
            order = tuple(clique.index(n) for n in axes)
            spread = tuple(self.tree.domain[n].size if n in clique else 1 for n in self.axes[home])
            found = Placement(home, None if order == tuple(range(len(order))) else order, spread, shape)
            self._placements[clique] = found
        return found

    def projection(self, names: Clique) -> tuple[int, Reduction, tuple[int, ...]] | None:
        """Clique, sum and final axis order that give the marginal on ``names`` (any order); None if no clique can."""
        if names not in self._projections:
            home = self.tree.find_home(names)
            if home is None:
                self._projections[names] = None
            else:
                axes = self.axes[home]
                kept = [n for n in axes if n in names]
                reduction = Reduction(self.shapes[home], frozenset(axes.index(n) for n in kept))
                self._projections[names] = (home, reduction, tuple(kept.index(n) for n in names))
        return self._projections[names]


class Loader:
    """Log potentials on their way into the buffer: added up, axes in elimination order, batch last."""

    def __init__(self, schedule: Schedule, placed: list[tuple[Placement, Array]], batch: tuple[int, ...]) -> None:
        self.schedule = schedule
        self.batch = batch
        self.count = math.prod(batch)
        self.tail = (self.count,) if batch else ()
        self.by_clique: list[list[tuple[Placement, Array]]] = [[] for _ in schedule.sizes]
        for place, table in placed:
            self.by_clique[place.home].append((place, table))

    def empty(self) -> Array:
        return np.empty((self.schedule.total, *self.tail))

    def everything(self) -> Array:
        """A buffer with all tables filled in."""
        buffer = np.zeros((self.schedule.total, *self.tail))
        # ∞ − ∞ in malformed potentials gives a NaN, which is refused later; no warning is needed.
        with np.errstate(invalid="ignore"):
            for view, placed in zip(self.schedule.views(buffer), self.by_clique, strict=True):
                for place, table in placed:
                    np.add(view, self._shaped(place, table), out=view)
        return buffer

    def table(self, i: int, target: Array) -> Array:
        """The log table of clique i, flat: the caller's own where that will do, else written to ``target``."""
        placed = self.by_clique[i]
        view = target.reshape(self.schedule.shapes[i] + self.tail)
        if not placed:
            target[...] = 0.0
        for k, (place, table) in enumerate(placed):
            shaped = self._shaped(place, table)
            if k:
                np.add(view, shaped, out=view)
            elif len(placed) == 1 and shaped.shape == view.shape and shaped.flags.c_contiguous:
                return shaped.reshape(target.shape)
            else:
                np.copyto(view, shaped)
        return target

    def _shaped(self, place: Placement, table: Array) -> Array:
        """A view (or copy) of a given table that adds to the table of its clique."""
        if not self.batch:
            return (table if place.order is None else table.transpose(place.order)).reshape(place.spread)
        if table.shape == place.shape:
            table = table[None]
        else:
            if table.shape != self.batch + place.shape:
                table = np.broadcast_to(table, self.batch + place.shape)
            table = table.reshape((self.count, *place.shape))
        order = place.order if place.order is not None else range(len(place.shape))
        table = table.transpose((*(1 + i for i in order), 0))
        return table.reshape((*place.spread, table.shape[-1]))


class Filled(Loader):
    """Log potentials that somebody else adds up: ``fill`` makes a fresh buffer whenever it is called."""

    def __init__(self, schedule: Schedule, fill: Callable[[], Array], batch: tuple[int, ...] = ()) -> None:
        super().__init__(schedule, [], batch)
        self.empty = self.everything = fill  # type: ignore[method-assign]

    def table(self, i: int, target: Array) -> Array:
        return target
