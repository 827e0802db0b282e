"""Message passing over a compiled schedule: sums of products in linear or in log space, and maxima in log space.

The linear pass multiplies and adds and takes no logarithm of a table. It is used only where it provably loses nothing.
Let the *range* of a table be the log of its largest over its smallest cell that is not a structural zero. A product of
tables has at most the sum of their ranges, a sum over cells at most that of the table plus the log of the number of
cells. So while, for every clique, the ranges of its potentials and of all messages into it plus the log of its cells
stay under 690 (float64 covers e^±708), nothing overflows or underflows; all terms are non-negative, and every cell
keeps its relative precision. A bound for all tables together comes for free and covers most models; from where it is
exceeded the messages are scaled to a largest cell of 1 and their ranges measured. Where even that exceeds the bound,
the messages are computed in log space.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..factor import Array, log_of, logsumexp, subtract
from .schedule import Loader, Schedule, sum_rows

_SAFE_LOG_RANGE = 690.0
# Below this many cells all tables are exponentiated in one call, above it one by one while they are in the cache.
_SMALL_CELLS = 1 << 14
# A largest log value up to this is left where it is instead of being shifted to 0; it then counts as range.
_NO_SHIFT = 16.0
_HIGHEST = math.exp(_NO_SHIFT)


class _OutOfRange(Exception):
    """The potentials span more than linear space holds safely; the caller takes the logarithmic pass."""


def calibrate_tables(schedule: Schedule, load: Loader) -> tuple[Array, Array, bool]:
    """Calibrated beliefs of the log potentials that ``load`` provides.

    Returns the beliefs (normalised), the log-partition per batch entry, and whether the beliefs are logarithms. A
    log-partition of −∞ means that no cell is allowed there; its beliefs are then meaningless.
    """
    with contextlib.suppress(_OutOfRange):
        return _linear(schedule, load)
    return _logarithmic(schedule, load.everything())


class _Exponentials:
    """Potentials out of log space, table by table or all at once, keeping account of their ranges."""

    def __init__(self, schedule: Schedule, load: Loader) -> None:
        self.schedule = schedule
        self.load = load
        self.shift: Array | float = 0.0
        self.has_zeros = False
        self.reach = list(schedule.log_sizes)
        """Per clique: log of its cells plus the ranges of its potentials and, later, of the messages into it."""
        self.whole = schedule.log_cells
        """The same of all tables so far together, messages left out: they follow from tables."""
        self.at_once = schedule.total * load.count <= _SMALL_CELLS
        self.buffer = load.everything() if self.at_once else load.empty()
        if self.at_once:
            self._all()

    @property
    def guarded(self) -> bool:
        """Whether the ranges of the messages have to be measured."""
        return not self.whole <= _SAFE_LOG_RANGE

    def _all(self) -> None:
        buffer, offsets = self.buffer, self.schedule.offsets
        highest = np.maximum.reduceat(buffer, offsets, axis=0)
        lowest = np.minimum.reduceat(buffer, offsets, axis=0)
        check_numbers(highest)
        if (lowest == -np.inf).any():
            self.has_zeros = True
            lowest = np.minimum.reduceat(np.where(buffer == -np.inf, np.inf, buffer), offsets, axis=0)
        if (np.abs(highest) > _NO_SHIFT).any():
            # A table without any finite cell (highest −∞, lowest +∞) has no range to account for.
            highest = np.where(highest == -np.inf, 0.0, highest)
            lowest = np.where(lowest == np.inf, 0.0, lowest)
            buffer -= np.repeat(highest, self.schedule.sizes, axis=0)
            self.shift = np.add.reduce(highest, axis=0)
            ranges = highest - lowest
        else:
            ranges = np.maximum(np.abs(highest), np.abs(lowest))
        self.whole += float(np.add.reduce(ranges, axis=0).max())
        if self.guarded:
            each = (ranges if ranges.ndim == 1 else ranges.max(axis=1)).tolist()
            self.reach = [a + b for a, b in zip(self.reach, each, strict=True)]
        np.exp(buffer, out=buffer)

    def table(self, i: int) -> None:
        """Fill the table of clique i."""
        if self.at_once:
            return
        a, b = self.schedule.bounds[i]
        target = self.buffer[a:b]
        source = self.load.table(i, target)
        if source is not target:
            with np.errstate(over="ignore", invalid="ignore"):
                np.exp(source, out=target)
            # The largest and the smallest cell are looked for where the table is in the cache by now.
            highest, lowest = np.maximum.reduce(target, axis=0), np.minimum.reduce(target, axis=0)
            if np.all(highest <= _HIGHEST) and np.all(lowest >= 1 / _HIGHEST):
                self._count(i, np.maximum(np.abs(np.log(highest)), np.abs(np.log(lowest))))
                return
        highest, lowest = np.maximum.reduce(source, axis=0), np.minimum.reduce(source, axis=0)
        check_numbers(highest)
        if np.any(lowest == -np.inf):
            self.has_zeros = True
            lowest = np.minimum.reduce(np.where(source == -np.inf, np.inf, source), axis=0)
            lowest = np.where(lowest == np.inf, 0.0, lowest)
        if np.all(np.abs(highest) <= _NO_SHIFT):
            np.exp(source, out=target)
            self._count(i, np.maximum(np.abs(highest), np.abs(lowest)))
            return
        highest = np.where(highest == -np.inf, 0.0, highest)
        self.shift = self.shift + highest
        np.subtract(source, highest, out=target)
        np.exp(target, out=target)
        self._count(i, highest - lowest)

    def _count(self, i: int, ranges: Array) -> None:
        largest = float(np.max(ranges))
        self.reach[i] += largest
        self.whole += largest

    def rescaled(self, message: Array) -> tuple[Array, float]:
        """A message scaled to a largest cell of 1, and its range (the largest of the batch)."""
        table = message.reshape(-1, self.load.count)
        highest = np.maximum.reduce(table, axis=0)
        if self.has_zeros:
            highest = np.where(highest > 0, highest, 1.0)
            smallest = np.minimum.reduce(np.where(table > 0, table, highest), axis=0)
        else:
            smallest = np.minimum.reduce(table, axis=0)
        logs = np.log(highest)
        self.shift = self.shift + (logs if self.load.batch else logs[0])
        return (table / highest).reshape(-1), float((logs - np.log(smallest)).max())

    def check(self, i: int) -> None:
        if not self.reach[i] <= _SAFE_LOG_RANGE:
            raise _OutOfRange


def check_numbers(highest: Array) -> None:
    """Refuse NaN and +∞, which the maximum of a table shows."""
    if not np.all(highest < np.inf):
        raise InputError("a potential holds NaN or +∞; log values must be finite, or −∞ for a structural zero")


def _linear(schedule: Schedule, load: Loader) -> tuple[Array, Array, bool]:
    """Hugin propagation: collect, normalise at the root, distribute quotients of new and old messages.

    Each table is filled, multiplied and summed in one go, while it is in the cache.
    """
    potentials = _Exponentials(schedule, load)
    buffer = potentials.buffer
    views = schedule.views(buffer)
    tail = buffer.shape[1:]
    upward: list[Array] = [buffer] * len(views)
    scaled = upward.copy()
    for i in range(len(views) - 1, -1, -1):
        potentials.table(i)
        view = views[i]
        for edge in schedule.down[i]:
            if potentials.guarded:
                scaled[edge.child], message_range = potentials.rescaled(upward[edge.child])
                potentials.reach[i] += message_range
            np.multiply(view, scaled[edge.child].reshape(edge.spread + tail), out=view)
        if potentials.guarded:
            potentials.check(i)
        above = schedule.up[i]
        if above is not None:
            upward[i] = scaled[i] = sum_rows(view.reshape(above.residual_cells, -1))
    a, b = schedule.bounds[0]
    root = buffer[a:b]
    total = np.add.reduce(root, axis=0)
    log_partition = np.asarray(log_of(total) + potentials.shift)
    has_zeros = potentials.has_zeros
    if has_zeros:
        total = np.where(total > 0, total, 1.0)
    np.divide(root, total, out=root)
    for edge in schedule.edges if potentials.guarded else ():
        if scaled[edge.child] is upward[edge.child]:  # sent while there was no need to measure
            potentials.reach[edge.parent] += potentials.rescaled(upward[edge.child])[1]
    for edge in schedule.edges:
        a, b = schedule.bounds[edge.parent]
        message = upward[edge.child]
        if has_zeros:
            # 0/0 = 0: a cell that the subtree forbids is 0 in both; dividing by 1 there keeps it so.
            message = np.where(message > 0, message, 1.0)
        quotient = edge.down(buffer[a:b]).reshape(-1) / message
        if potentials.guarded:
            potentials.reach[edge.child] += potentials.rescaled(quotient)[1]
            potentials.check(edge.child)
        below = views[edge.child].reshape(edge.residual_cells, -1)
        np.multiply(below, quotient, out=below)
    return buffer, log_partition, False


def _logarithmic(schedule: Schedule, buffer: Array) -> tuple[Array, Array, bool]:
    """The same propagation with log tables: slower, and at home with any range."""
    tail = buffer.shape[1:]
    views = schedule.views(buffer)
    bounds = schedule.bounds
    upward: list[Array] = []
    for edge in reversed(schedule.edges):
        a, b = bounds[edge.child]
        message = logsumexp(buffer[a:b].reshape(edge.residual_cells, -1), 0)
        upward.append(message)
        views[edge.parent] += message.reshape(edge.spread + tail)
    a, b = bounds[0]
    log_partition = logsumexp(buffer[a:b], 0)
    buffer[a:b] -= np.where(np.isneginf(log_partition), 0.0, log_partition)
    for edge in schedule.edges:
        down = (
            logsumexp(views[edge.parent], edge.down.summed).reshape(-1)
            if edge.down.summed
            else views[edge.parent].reshape(-1)
        )
        quotient = subtract(down, upward.pop())
        a, b = bounds[edge.child]
        buffer[a:b].reshape(edge.residual_cells, -1)[...] += quotient
    return buffer, np.asarray(log_partition), True


def maximise_buffer(schedule: Schedule, buffer: Array) -> tuple[dict[str, npt.NDArray[np.intp]], Array]:
    """Max-product: the best code of every column (per batch entry) and its log weight. Ties go to the first cell."""
    tail = buffer.shape[1:]
    views = schedule.views(buffer)
    bounds = schedule.bounds
    for edge in reversed(schedule.edges):
        a, b = bounds[edge.child]
        message = np.maximum.reduce(buffer[a:b].reshape(edge.residual_cells, -1), axis=0)
        views[edge.parent] += message.reshape(edge.spread + tail)
    a, b = bounds[0]
    root = buffer[a:b]
    best = root.argmax(axis=0)
    weight = root.max(axis=0)
    codes = dict(zip(schedule.axes[0], np.unravel_index(best, schedule.shapes[0]), strict=True))
    for edge in schedule.edges:
        a, b = bounds[edge.child]
        axes, shape = schedule.axes[edge.child], schedule.shapes[edge.child]
        split = len(axes) - sum(n in codes for n in axes)
        table = buffer[a:b].reshape((edge.residual_cells, edge.separator_cells, *tail))
        column = np.ravel_multi_index(tuple(codes[n] for n in axes[split:]), shape[split:]) if split < len(axes) else 0
        rows = table[:, column, np.arange(tail[0])] if tail else table[:, column]
        found = np.unravel_index(rows.argmax(axis=0), shape[:split])
        codes.update(zip(axes[:split], found, strict=True))
    return codes, np.asarray(weight)
