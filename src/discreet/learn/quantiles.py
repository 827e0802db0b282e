"""Bins of about equal mass, from noisy histograms on public grids. Post-processing: nothing here sees a row.

Histograms from fine to coarse are made to agree by least squares, in two passes over their tree. Numbers that hold
far more than a bin's share are heaps; the rest is cut where equal shares are reached. How many bins there are follows
from the noise: a bin should hold several times what noise can make of an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..sought import Grids, Sought

Array = NDArray[np.float64]
LEAST_MASS = 8.0  # of a bin, in standard deviations of the noise of a cell
HEAPED = 2.0  # a heap holds so many times a bin's share
EMPTY = 3.5  # standard deviations below which a part of the grid is taken to be empty
STANDS_OUT = 4.5  # standard deviations above which an octave is not empty: noise does that in one of 300,000


@dataclass(frozen=True)
class Bins:
    """What was found of a column of numbers."""

    edges: tuple[float, ...]
    heaps: tuple[float, ...]


def agreeing(fine: Array, coarse: Sequence[Array], groups: Grids, variances: Sequence[float]) -> tuple[Array, float]:
    """Counts of the finest cells that agree best with the counts of all grids, and about the variance of one of them.

    Two passes [HRMS10, Section 4]: up the tree, each node is the weighted mean of its own count and of the sum of its
    children; down the tree, what a node differs from its children is divided over them. Written for any number of
    children and any noise of a grid. [HRMS10] Hay, Rastogi, Miklau, Suciu, VLDB 2010.
    """
    values, spread = [fine.astype(np.float64)], [np.full(len(fine), variances[0])]
    parents: list[NDArray[np.int64]] = []
    for level, (own, group) in enumerate(zip(coarse, groups, strict=True), start=1):
        parent = group if level == 1 else _parents(groups[level - 2], group)
        below = np.bincount(parent, values[-1], len(own))
        below_variance = np.bincount(parent, spread[-1], len(own))
        both = below_variance + variances[level]
        weight = np.divide(below_variance, both, out=np.ones_like(both), where=both > 0)  # without noise both are exact
        parents.append(parent)
        values.append(weight * own + (1 - weight) * below)
        spread.append(weight * variances[level])
    for level in range(len(coarse) - 1, -1, -1):
        parent = parents[level]
        total = np.bincount(parent, spread[level], len(values[level + 1]))
        missing = values[level + 1] - np.bincount(parent, values[level], len(values[level + 1]))
        part = np.divide(spread[level], total[parent], out=np.zeros_like(spread[level]), where=total[parent] > 0)
        values[level] = values[level] + missing[parent] * part
    return values[0], variances[0]


def _parents(fine: NDArray[np.int64], coarse: NDArray[np.int64]) -> NDArray[np.int64]:
    """The coarser cell of each finer cell, both given for the finest cells."""
    out = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    out[fine] = coarse
    return out


def found_bins(sought: Sought, histograms: Sequence[Array], variances: Sequence[float]) -> Bins:
    """Edges and heaps of a column, from its noisy histograms: the finest first, its single numbers behind it."""
    cells = len(sought.edges) - 1
    points, single = sought.points, histograms[0][cells:]
    counts, variance = agreeing(histograms[0][:cells], histograms[1:], sought.coarser, variances)
    deviation = float(np.sqrt(variance))
    inside = np.ones(cells, dtype=bool)
    if sought.ends is None:
        inside = _range(sought, histograms[1], float(np.sqrt(variances[1])))
        counts = np.where(inside, counts, 0.0)
    counts = _without_noise(counts, sought, deviation)
    total = counts.sum() + np.maximum(single, 0).sum()
    most = int(np.clip(total / (LEAST_MASS * deviation) if deviation else sought.most, 1, sought.most))
    enough = max(HEAPED * total / most, STANDS_OUT * deviation)
    heaps = {p for p, n in zip(points, single, strict=True) if n >= enough} | set(sought.heaps)
    if sought.one_by_one:
        heavy = np.flatnonzero(counts >= enough)
        if cells > most:  # few whole numbers are bins of one each
            heaps |= {float(sought.edges[i] + 0.5) for i in heavy}
        own = [round(h - sought.edges[0] - 0.5) for h in heaps]
        counts[[i for i in own if 0 <= i < cells]] = 0
    room = counts.sum() / (LEAST_MASS * deviation) if deviation else sought.most
    bins = int(np.clip(room, 1, max(sought.most - len(heaps - set(sought.heaps)), 1)))
    return Bins(_edges(sought, counts, bins, inside), tuple(sorted(heaps)))


def _without_noise(counts: Array, sought: Sought, deviation: float) -> Array:
    """Counts without what is most likely noise: negative ones and, in parts of the grid that hold no more than noise
    would, all of them. Otherwise the positive halves of many empty cells would pass for records."""
    counts = counts.copy()
    if sought.coarser:
        group = sought.coarser[0]
        sums = np.bincount(group, counts)
        empty = sums < EMPTY * deviation
        counts[empty[group]] = 0.0
        positive = np.maximum(counts, 0.0)
        above = np.bincount(group, positive)
        scale = np.divide(np.maximum(sums, 0.0), above, out=np.zeros_like(above), where=above > 0)
        return np.asarray(positive * scale[group])
    return np.maximum(counts, 0.0)


def _range(sought: Sought, octaves: Array, deviation: float) -> NDArray[np.bool_]:
    """The cells from the first to the last octave that stands out of the noise."""
    group = sought.coarser[0]
    full = np.flatnonzero(octaves > STANDS_OUT * deviation)
    if not len(full):
        return np.zeros(len(group), dtype=bool)
    return np.asarray((group >= full[0]) & (group <= full[-1]))


def _edges(sought: Sought, counts: Array, bins: int, inside: NDArray[np.bool_]) -> tuple[float, ...]:
    """Where equal shares are reached, on the grid, between the ends."""
    borders = np.asarray(sought.edges)
    if sought.one_by_one:
        borders = np.ceil(borders)  # the cell of 40 begins at 40
    low, high = _ends(sought, inside, borders)
    total = counts.sum()
    if total <= 0:
        return (low, high)
    reached = np.cumsum(counts) / total
    at = np.searchsorted(reached, np.arange(1, bins) / bins * (1 - 1e-12))
    # A border is put where the share is nearest to what it should be: before or behind the cell that reaches it.
    before = np.where(at > 0, reached[at - 1], 0.0)
    wanted = np.arange(1, bins) / bins
    inner = borders[np.where(wanted - before < reached[at] - wanted, at, at + 1)]
    return (low, *sorted({float(e) for e in inner if low < e < high}), high)


def _ends(sought: Sought, inside: NDArray[np.bool_], borders: Array) -> tuple[float, float]:
    if sought.ends is not None:
        return sought.ends
    full = np.flatnonzero(inside)
    if not len(full):
        return (0.0, 1.0 if sought.integer else sought.scale)
    return float(borders[full[0]]), float(borders[full[-1] + 1])
