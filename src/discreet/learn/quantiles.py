"""Bins of about equal mass, from noisy histograms on public grids. Post-processing: nothing here sees a row.

Histograms from fine to coarse are made to agree by least squares, in two passes over their tree. Numbers that hold
far more than a bin's share are heaps; the rest is cut where equal shares are reached. How many bins there are follows
from the noise: a bin should hold several times what noise can make of an empty one. What the histograms tell of where
in a bin its numbers lie is kept too: it was paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..sought import Grids, Sought

Array = NDArray[np.float64]
LEAST_MASS = 8.0  # of a bin, in standard deviations of the noise of a cell
HEAPED = 2.0  # a heap holds so many times a bin's share
EMPTY = 3.5  # standard deviations below which a part of the grid is taken to hold no more than noise
BESIDE = 2.0  # the same for a part beside one that is not: columns seldom end at once
PIECES = 8  # of a bin, of about equal mass: where in it its numbers lie
TOLD_APART = 0.005  # part of the standard deviation that noise within a bin may make up, if the bin can be cut
LEAST_CUT = (
    4.0  # mass of a bin that is cut for that, or of which more is told, in standard deviations of a cell's noise
)
STANDS_OUT = 4.5  # standard deviations above which an octave is not empty: noise does that in one of 300,000


@dataclass(frozen=True)
class Bins:
    """What was found of a column of numbers."""

    edges: tuple[float, ...]
    heaps: tuple[float, ...]
    spread: tuple[tuple[float, float], ...]


def agreeing(fine: Array, coarse: Sequence[Array], groups: Grids, variances: Sequence[float]) -> Array:
    """Counts of the finest cells that agree best with the counts of all grids.

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
    return values[0]


def _parents(fine: NDArray[np.int64], coarse: NDArray[np.int64]) -> NDArray[np.int64]:
    """The coarser cell of each finer cell, both given for the finest cells."""
    out = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    out[fine] = coarse
    return out


def found_bins(sought: Sought, histograms: Sequence[Array], variances: Sequence[float]) -> Bins:
    """Edges and heaps of a column, from its noisy histograms: the finest first, its single numbers behind it."""
    cells = len(sought.edges) - 1
    points, single = sought.points, histograms[0][cells:]
    counts = agreeing(histograms[0][:cells], histograms[1:], sought.coarser, variances)
    deviation = float(np.sqrt(variances[0]))
    inside = np.ones(cells, dtype=bool)
    if sought.ends is None:
        inside = _range(sought, histograms[1], float(np.sqrt(variances[1])))
        counts = np.where(inside, counts, 0.0)
    counts = _without_noise(counts, sought.coarser, np.sqrt(np.asarray(variances)))
    numbers = np.append(_middles(sought), points)
    everything = np.append(counts, np.maximum(single, 0))
    total = everything.sum()
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
    edges = _edges(sought, counts, bins, inside)
    if total > 0 and deviation > 0:
        mean = float(everything @ numbers / total)
        variance = float(everything @ (numbers - mean) ** 2 / total)
        allowed = TOLD_APART * total * variance / deviation
        edges = _cut(edges, _borders(sought), counts, mean, allowed, LEAST_CUT * deviation, sought.most)
    return Bins(edges, tuple(sorted(heaps)), _spread(_borders(sought), counts, edges, LEAST_CUT * deviation))


def _without_noise(counts: Array, groups: Grids, deviations: Array) -> Array:
    """Counts without what is most likely noise: the positive halves of many empty cells would pass for records.

    From the coarsest grid down, a cell's count is divided over those that it is made of: those that stand out of the
    noise have their own, and what is left, if that is more than noise, goes to the others in proportion to what they
    seem to hold. So records that are spread thinly are not lost: they are seen on a coarser grid.
    """
    everything = np.zeros(len(counts), dtype=np.int64)
    above, given = everything, np.array([np.inf])
    for level in range(len(groups), -1, -1):
        own = groups[level - 1] if level else np.arange(len(counts))
        values = np.bincount(own, counts).astype(np.float64)
        parent = np.zeros(len(values), dtype=np.int64)
        parent[own] = above
        given = np.bincount(parent, values, len(given)) if np.isinf(given[0]) else given
        given = _divided(
            values, parent, np.maximum(given, 0.0), float(deviations[level]), known=above is not everything
        )
        above = own
    return given


def _divided(values: Array, parent: NDArray[np.int64], given: Array, deviation: float, *, known: bool) -> Array:
    """What each of the parents was given, divided over its children. ``known``: the parents were counted themselves."""
    sure = values >= EMPTY * deviation
    beside = np.append(sure[1:], False) | np.append(False, sure[:-1])
    out = sure | (beside & (values >= BESIDE * deviation))
    kept = np.where(out, values, 0.0)
    others = np.where(out, 0.0, np.maximum(values, 0.0))
    number, standing = np.bincount(parent), np.bincount(parent, out)
    rest = given - np.bincount(parent, kept)
    noise = deviation * np.sqrt(np.minimum(number - standing, 1 + standing) if known else number - standing)
    below = np.bincount(parent, others)
    thin = (rest > EMPTY * noise) | ((standing == 0) & (given > 0)) if known else rest > EMPTY * noise
    share = np.where(thin & (below > 0), np.divide(rest, below, out=np.zeros_like(rest), where=below > 0), 0.0)
    part = kept + others * share[parent]
    total = np.bincount(parent, part)
    scale = np.divide(given, total, out=np.zeros_like(total), where=total > 0) if known else np.ones_like(total)
    return np.asarray(part * scale[parent])


def _range(sought: Sought, octaves: Array, deviation: float) -> NDArray[np.bool_]:
    """The cells from the first to the last octave that stands out of the noise."""
    group = sought.coarser[0]
    full = np.flatnonzero(octaves > STANDS_OUT * deviation)
    if not len(full):
        return np.zeros(len(group), dtype=bool)
    return np.asarray((group >= full[0]) & (group <= full[-1]))


def _edges(sought: Sought, counts: Array, bins: int, inside: NDArray[np.bool_]) -> tuple[float, ...]:
    """Where equal shares are reached, on the grid, between the ends."""
    borders = _borders(sought)
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


def _cut(
    edges: tuple[float, ...], borders: Array, counts: Array, mean: float, allowed: float, least: float, most: int
) -> tuple[float, ...]:
    """Wide bins far from the mean, cut where half of their mass is reached: what comes after counts each part again.

    A record that noise moves within a bin moves the column's second moment by up to 2 · width · distance from the mean.
    """
    reached = np.append(0.0, np.cumsum(counts))
    out = [int(i) for i in np.searchsorted(borders, edges)]
    whole: set[int] = set()
    while len(out) <= most:
        at = borders[out]
        moved = np.diff(at) * np.maximum(np.abs(at[:-1] - mean), np.abs(at[1:] - mean))
        moved[[first in whole for first in out[:-1]]] = 0.0
        widest = int(np.argmax(moved))
        if not moved[widest] > allowed:
            break
        first, last = out[widest], out[widest + 1]
        mass = reached[last] - reached[first]
        half = first + int(np.searchsorted(reached[first:last] - reached[first], mass / 2))
        if mass >= least and first < half < last:
            out.insert(widest + 1, half)
        else:
            whole.add(first)
    return (edges[0], *(float(borders[i]) for i in out[1:-1]), edges[-1])


def _middles(sought: Sought) -> Array:
    edges = np.asarray(sought.edges)
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def _borders(sought: Sought) -> Array:
    """Where the cells of the finest grid begin and end, as numbers."""
    borders = np.asarray(sought.edges)
    return np.ceil(borders) if sought.one_by_one else borders  # the cell of 40 begins at 40


def _spread(borders: Array, counts: Array, edges: tuple[float, ...], least: float) -> tuple[tuple[float, float], ...]:
    """Where in each bin its numbers lie: numbers within it, and the part of the bin's mass below each. Of a bin with
    less than ``least`` they tell of noise alone: that the density goes on as beside it is the better guess."""
    reached = np.append(0.0, np.cumsum(counts))
    at = np.searchsorted(borders, edges)
    out: list[tuple[float, float]] = []
    for first, last in pairwise(at):
        mass = reached[last] - reached[first]
        if last - first < 2 or not mass > 0 or mass < least:
            continue
        below = (reached[first : last + 1] - reached[first]) / mass
        knots = np.searchsorted(below, np.arange(1, PIECES) / PIECES)
        begins, ends = np.flatnonzero(below > 0)[0] - 1, np.flatnonzero(below >= 1 - 1e-12)[0]
        inner = np.unique([begins, *knots, ends])
        out += [(float(borders[first + k]), round(float(below[k]), 6)) for k in inner if 0 < k < last - first]
    return tuple(out)


def _ends(sought: Sought, inside: NDArray[np.bool_], borders: Array) -> tuple[float, float]:
    if sought.ends is not None:
        return sought.ends
    full = np.flatnonzero(inside)
    if not len(full):
        return (0.0, 1.0 if sought.integer else sought.scale)
    return float(borders[full[0]]), float(borders[full[-1] + 1])
