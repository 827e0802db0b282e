"""Message passing level by level: all cliques that are equally deep in the tree, and of one shape, in one operation.

Hundreds of cliques with a few cells each cost overhead, not arithmetic, when they are visited one by one. Here a tree
costs a few operations for each of its levels, so that it should be shallow (:func:`discreet.ordering.shallow_order`).
Every sum is taken relative to the largest of its terms, so that any range of potentials is fine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ..factor import Array
from .schedule import Schedule

_SECONDS_PER_SHAPE, _SECONDS_PER_CELL = 3e-5, 1e-8
FEWEST_CLIQUES, MOST_LINKS = 24, 1 << 16
"""With fewer cliques, or with more entries of tables that messages are multiplied into, one by one is as good."""
Index = NDArray[np.intp]


@dataclass(frozen=True)
class _Shape:
    """Cliques of one level and one shape: their cells within the buffer, their messages within those of the level."""

    cells: slice
    messages: slice
    shape: tuple[int, int, int]
    """Cliques, cells that are summed out, cells of the separator."""


@dataclass(frozen=True)
class _Level:
    shapes: tuple[_Shape, ...]
    into: Index
    """Cells of the level above that messages of this one are added to, each once."""
    added: Index
    """The messages for these cells, those for one cell side by side; ``first`` of each cell."""
    first: Index
    taken: Index
    """Cells of the level above that each message is the sum of, side by side; ``begin`` of each message."""
    begin: Index


class Levels:
    """A schedule compiled for passes level by level."""

    def __init__(self, schedule: Schedule) -> None:
        depth = [0] * len(schedule.sizes)
        for edge in schedule.edges:
            depth[edge.child] = 0 if edge.separator_cells == 1 else depth[edge.parent] + 1
        kinds = [(d, *self._kind(schedule, i)) for i, d in enumerate(depth)]
        self.fits = kinds == sorted(kinds) and len(kinds) >= FEWEST_CLIQUES
        self.fits = self.fits and sum(schedule.sizes[e.parent] for e in schedule.edges) <= MOST_LINKS
        self._schedule, self._kinds = schedule, kinds

    @cached_property
    def levels(self) -> list[_Level]:
        """Compiled when the first pass is made: of two trees that are compared, one will not be used."""
        depth = [kind[0] for kind in self._kinds]
        return [
            _level(self._schedule, self._kinds, list(members), level > 0)
            for level, members in groupby(range(len(depth)), key=depth.__getitem__)
        ]

    @property
    def seconds(self) -> float:
        """About how long a pass takes."""
        return _SECONDS_PER_SHAPE * len(set(self._kinds)) + _SECONDS_PER_CELL * self._schedule.total

    @staticmethod
    def _kind(schedule: Schedule, i: int) -> tuple[int, int]:
        above = schedule.up[i]
        return (schedule.sizes[i], 1 if above is None else above.separator_cells)

    def __call__(self, buffer: Array) -> tuple[Array, Array]:
        """Log potentials turned, in place, into beliefs; and the log-partition. ``(cells,)`` or ``(cells, batch)``."""
        tail = buffer.shape[1:]
        has_zeros = bool(np.isneginf(buffer.min(initial=0.0)))
        log_partition: Array = np.zeros(tail)
        with np.errstate(divide="ignore", invalid="ignore"):
            for level in reversed(self.levels):
                messages = np.empty((level.shapes[-1].messages.stop, *tail))
                for s in level.shapes:
                    table = buffer[s.cells].reshape(s.shape + tail)
                    messages[s.messages] = _conditional(table, has_zeros).reshape(-1, *tail)
                if level.into.size:
                    added = messages[level.added]
                    if level.first.size < level.added.size:
                        added = np.add.reduceat(added, level.first, axis=0)
                    buffer[level.into] += added
                else:
                    log_partition = messages.sum(axis=0)
        for level in self.levels[1:]:
            weight = buffer[level.taken]
            if level.begin.size < level.taken.size:
                weight = np.add.reduceat(weight, level.begin, axis=0)
            for s in level.shapes:
                count, _, separator = s.shape
                table = buffer[s.cells].reshape(s.shape + tail)
                np.multiply(table, weight[s.messages].reshape((count, 1, separator, *tail)), out=table)
        return buffer, log_partition


def _conditional(table: Array, has_zeros: bool) -> Array:
    """Turn log weights, in place, into probabilities given the separator (the last axis but the batch); returns the log
    of each sum."""
    highest = np.maximum.reduce(table, axis=1)
    if has_zeros:
        highest = np.where(np.isneginf(highest), 0.0, highest)
    np.subtract(table, highest[:, None], out=table)
    np.exp(table, out=table)
    total = np.add.reduce(table, axis=1)
    np.divide(table, (np.where(total > 0, total, 1.0) if has_zeros else total)[:, None], out=table)
    out: Array = highest + np.log(total)
    return out


def _level(schedule: Schedule, kinds: list[tuple[int, int, int]], members: list[int], is_below: bool) -> _Level:
    shapes: list[_Shape] = []
    above: list[Index] = []
    sent: list[Index] = []
    used = 0
    for (_, cells, separator), same in groupby(members, key=kinds.__getitem__):
        alike = list(same)
        bounds = slice(schedule.bounds[alike[0]][0], schedule.bounds[alike[-1]][1])
        shape = (len(alike), cells // separator, separator)
        shapes.append(_Shape(bounds, slice(used, used + len(alike) * separator), shape))
        for i in alike if is_below else ():
            edge = schedule.up[i]
            assert edge is not None
            a, b = schedule.bounds[edge.parent]
            above.append(np.arange(a, b))
            own = np.empty(schedule.shapes[edge.parent], dtype=np.intp)
            own[...] = np.arange(used, used + separator).reshape(edge.spread)
            sent.append(own.reshape(-1))
            used += separator
        used = shapes[-1].messages.stop
    cell = np.concatenate(above or [np.empty(0, dtype=np.intp)])
    message = np.concatenate(sent or [np.empty(0, dtype=np.intp)])
    by_cell, by_message = np.argsort(cell, kind="stable"), np.argsort(message, kind="stable")
    into, first = np.unique(cell[by_cell], return_index=True)
    begin = np.unique(message[by_message], return_index=True)[1]
    return _Level(tuple(shapes), into, message[by_cell], first, cell[by_message], begin)
