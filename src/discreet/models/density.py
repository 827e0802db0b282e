"""How the numbers of a column lie within its bins: one convention for records, means, quantiles and comparisons.

A model knows how many records are in a bin, not where in it they are. Within a bin, numbers are spread by a density
that goes on continuously across neighbouring bins: the cumulative distribution of the column as a whole is
interpolated by a monotone cubic through the edges (Fritsch and Butland 1984, known as PCHIP), so that every bin has
exactly the mass that the model gives it. Given its bin, a number does not depend on the other columns.

On each bin the density is a quadratic with coefficients (a, 3 − a − b, b) in Bernstein's basis, a and b being its ends
relative to its mean. Slopes are taken back where a + b would exceed 3, so that none is negative. Then it is a mixture
of the smallest, the middle and the largest of three uniform numbers: drawing is three uniforms, and a part of a bin is
again such a density. Where it is known how a bin's numbers lie in it (``spread``, found with the bins), the bin is cut
there into pieces of those masses before that. A long first or last bin of which nothing is known is cut into pieces
with masses that fall off as the bins beside it do: what lies in it is mostly near them.

Numbers of so many decimals (whole ones have none), or multiples of a step, are cells of a grid: k stands for
[k, k + 1). A single number that has a level of its own takes its cell out of the bin that it is in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..conditions import NumberLine

Array = NDArray[np.float64]
_PIECES = 6
"""Of a long first or last bin, each twice as wide as the one before it."""
_MOST_CELLS = 1 << 18
"""Of a grid that is gone through cell by cell; on a finer one, a cell is a point for all that matters."""


@dataclass(frozen=True)
class Pieces:
    """Parts of bins, one or several for each, in order: which bin they are of, their ends, the coefficients of the
    density there, and the part of their bin's mass in them. ``share`` adds them up, bin by bin."""

    home: NDArray[np.intp]
    low: Array
    high: Array
    coefficients: Array
    mass: Array
    share: Array

    def below(self, y: Array) -> Array:
        """The part of each bin's mass (of that which is in pieces) below y (…, 1): an array (…, bins)."""
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        t = np.clip((y - self.low) / width, 0.0, 1.0)
        inside = _cumulated(self.coefficients, t) / np.maximum(self.coefficients.mean(axis=-1), 1e-300)
        return np.add.reduceat(inside * self.mass, self.firsts, axis=-1) / np.maximum(self.share, 1e-300)

    @property
    def firsts(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.diff(self.home, prepend=-1))


class Density:
    """The numbers of one column, given how probable each of its codes is."""

    def __init__(self, line: NumberLine, weights: Array) -> None:
        self.line = line
        self.size = len(weights)
        self.scale = 1.0
        # Beyond 2⁵², cells are finer than what a float can tell apart.
        self.on_grid = line.scale is not None
        self.holes = np.zeros(0)
        edges = np.asarray(line.edges, dtype=np.float64)
        spread = np.array(line.spread, dtype=np.float64).reshape(-1, 2)
        if line.scale is not None:
            self.scale = line.scale
            edges, knots = (np.ceil(x * self.scale - 1e-6) for x in (edges, spread[:, 0]))
            edges[-1:] = np.floor(np.asarray(line.edges[-1:]) * self.scale + 1e-6) + 1
            self.on_grid = not np.any(np.diff(edges) < 1)
        if not self.on_grid:
            edges, self.scale, knots = np.asarray(line.edges, dtype=np.float64), 1.0, spread[:, 0]
        elif line.bins:
            self.holes = _holes(edges, np.rint(np.array(sorted(line.points.values())) * self.scale))
        self.edges = self._without_holes(edges)
        known = np.stack([self._without_holes(knots), spread[:, 1]], axis=1)
        home, knots, parts = _pieces(self.edges, np.maximum(weights[: line.bins], 0.0), known, self.on_grid)
        share = parts / np.maximum(np.bincount(home, parts, line.bins), 1e-300)[home]
        coefficients = _coefficients(np.diff(knots), parts)
        self.whole = Pieces(home, knots[:-1], knots[1:], coefficients, share, np.ones(line.bins))
        self.points = np.full(self.size, np.nan)
        for code, x in line.points.items():
            self.points[code] = x

    # -- parts of bins -------------------------------------------------------------------------------------------

    def part(self, low: float, high: float) -> Pieces:
        """The numbers from ``low`` to ``high``, the latter excluded."""
        if low == -math.inf and high == math.inf:
            return self.whole
        ends = np.array([low, high]) * self.scale
        if self.on_grid:
            ends = np.where(np.isfinite(ends), np.rint(ends), ends)
        first, last = np.clip(self._without_holes(ends), self.edges[0], self.edges[-1])
        low_, high_ = np.maximum(self.whole.low, first), np.minimum(self.whole.high, last)
        high_ = np.maximum(low_, high_)
        width = self.whole.high - self.whole.low
        t0, t1 = (low_ - self.whole.low) / width, (high_ - self.whole.low) / width
        t0, t1 = np.clip(t0, 0, 1), np.clip(t1, 0, 1)
        b = self.whole.coefficients
        # The polar form of the quadratic: its coefficients on the part.
        cut = np.stack([_polar(b, t0, t0), _polar(b, t0, t1), _polar(b, t1, t1)], axis=-1)
        mass = self.whole.mass * (t1 - t0) * cut.mean(axis=-1)
        share = np.bincount(self.whole.home, mass, self.line.bins).astype(np.float64)
        return Pieces(self.whole.home, low_, high_, cut, mass, share)

    def _without_holes(self, y: Array) -> Array:
        out = np.array(y, dtype=np.float64)
        for hole in self.holes:
            out -= np.clip(y - hole, 0.0, 1.0)
        return out

    def _numbers(self, y: Array) -> Array:
        """Cells of the grid as numbers."""
        if len(self.holes):
            y = y + np.searchsorted(self.holes - np.arange(len(self.holes)), y, side="right")
        return self._rounded(np.asarray(y / self.scale))

    def _rounded(self, x: Array) -> Array:
        """Multiples of a step as they are written: 3 / (1 / 0.15) is not 0.45."""
        return x if self.line.step is None or self.line.decimals is None else np.round(x, self.line.decimals)

    # -- records -------------------------------------------------------------------------------------------------

    def draw(
        self, codes: NDArray[np.integer], rng: np.random.Generator, low: float = -math.inf, high: float = math.inf
    ) -> Array:
        """A number for each code; NaN where the code is none."""
        bins = self.line.bins
        out: Array = self.points[codes]
        inside = np.flatnonzero(codes < bins) if self.size > bins else slice(None)
        at = codes[inside].astype(np.intp)
        if not len(at):
            return out
        pieces = self.part(low, high)
        b = pieces.coefficients
        total = np.maximum(b.sum(axis=-1), 1e-300)
        first, second = b[:, 0] / total, (b[:, 0] + b[:, 1]) / total
        u = rng.random((4, len(at)))
        at = self._pieces_at(pieces, at, rng)
        lowest, highest = np.minimum(u[0], u[1]), np.maximum(u[0], u[1])
        t = np.where(u[3] < second[at], np.maximum(lowest, np.minimum(highest, u[2])), np.maximum(highest, u[2]))
        t = np.where(u[3] < first[at], np.minimum(lowest, u[2]), t)
        start, end = pieces.low[at], pieces.high[at]
        y = start + t * (end - start)
        if self.on_grid:
            out[inside] = self._numbers(np.minimum(np.floor(y), np.maximum(end - 1, start)))
        else:
            # start + t·width may round up to the end of the bin, which belongs to the next one.
            is_last = end == self.edges[-1]
            out[inside] = np.where((y >= end) & ~is_last, np.nextafter(end, start), y)
        return out

    def _pieces_at(self, pieces: Pieces, bins: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
        """A piece of each bin: the only one, or one of several by its mass."""
        firsts = pieces.firsts
        if len(firsts) == len(pieces.home):
            return bins
        # The pieces of bin b share [b, b + 1) by their masses.
        reached = np.cumsum(pieces.mass / np.maximum(pieces.share, 1e-300)[pieces.home])
        before = np.append(0.0, reached)[firsts]
        at = np.searchsorted(reached, before[bins] + rng.random(len(bins)), side="right")
        lasts = np.append(firsts[1:], len(pieces.home)) - 1
        return np.where(pieces.share[bins] > 0, np.clip(at, firsts[bins], lasts[bins]), firsts[bins])

    # -- means and quantiles -------------------------------------------------------------------------------------

    def moments(self, low: float = -math.inf, high: float = math.inf) -> tuple[Array, Array]:
        """Mean and variance of the numbers of each code; NaN and 0 where it has none."""
        mean, variance = self.points.copy(), np.zeros(self.size)
        bins = self.line.bins
        if bins:
            pieces = self.part(low, high)
            each, within = self._piece_moments(pieces)
            share = pieces.mass / np.maximum(pieces.share, 1e-300)[pieces.home]
            share = np.where(pieces.share[pieces.home] > 0, share, np.isin(np.arange(len(share)), pieces.firsts))
            mean[:bins] = np.bincount(pieces.home, share * each, bins)
            variance[:bins] = np.bincount(pieces.home, share * (within + (each - mean[pieces.home]) ** 2), bins)
        return mean, variance

    def ends(self, low: float = -math.inf, high: float = math.inf) -> tuple[Array, Array]:
        """The smallest and the largest number of each code: what is known without the convention. NaN where it has
        none."""
        smallest, largest = self.points.copy(), self.points.copy()
        if self.line.bins:
            pieces = self.part(low, high)
            start, stop = pieces.low[pieces.firsts], pieces.high[np.append(pieces.firsts[1:], len(pieces.home)) - 1]
            if self.on_grid:
                start, stop = self._numbers(start), self._numbers(np.maximum(stop - 1, start))
            smallest[: self.line.bins], largest[: self.line.bins] = start, stop
        return smallest, largest

    def _piece_moments(self, pieces: Pieces) -> tuple[Array, Array]:
        b = pieces.coefficients / np.maximum(pieces.coefficients.sum(axis=-1, keepdims=True), 1e-300)
        width = pieces.high - pieces.low
        cells = np.where(width > 0, width, 0.0)
        if not self.on_grid or cells.sum() > _MOST_CELLS:
            first, second = b @ [0.25, 0.5, 0.75], b @ [0.1, 0.3, 0.6]
            mean = pieces.low + first * width - (0.5 if self.on_grid else 0.0)
            with np.errstate(over="ignore"):
                return mean / self.scale, width**2 * (second - first**2) / self.scale**2
        count = np.rint(cells).astype(np.intp)
        home = np.repeat(np.arange(len(count)), count)
        step = np.arange(len(home)) - np.repeat(np.cumsum(count) - count, count)
        ends = _cumulated(b[home], np.stack([step, step + 1]) / np.maximum(width[home], 1))
        p = 3.0 * (ends[1] - ends[0])
        x = self._numbers(pieces.low[home] + step)
        centre = np.where(count > 0, (pieces.low + pieces.high) / 2 / self.scale, 0.0)
        apart = x - centre[home]
        first = np.bincount(home, p * apart, len(count))
        second = np.bincount(home, p * apart**2, len(count))
        return centre + first, np.maximum(second - first**2, 0.0)

    def quantile(self, p: Array, q: float, low: float = -math.inf, high: float = math.inf) -> Array:
        """The smallest number that at least a part q of the records does not exceed; ``p`` (…, codes) sums to one, and
        is zero where a code is no number."""
        line, pieces = self.line, self.part(low, high)
        points = np.array(sorted(line.points), dtype=np.intp)
        where = np.rint(self.points[points] * self.scale) if self.on_grid else self.points[points]
        ends = np.array(line.ends) * self.scale
        p = p.reshape(-1, self.size)
        # Bisection for all rows at once, between a number that is too small and one that suffices.
        start = np.full(len(p), np.floor(ends[0]) - 1 if self.on_grid else np.nextafter(ends[0], -np.inf))
        stop = np.full(len(p), np.ceil(ends[1]) if self.on_grid else ends[1])
        for _ in range(1100):
            middle = np.floor((start + stop) / 2) if self.on_grid else start + (stop - start) / 2
            if np.all((middle <= start) | (middle >= stop)):
                break
            upto = self._without_holes(middle + 1) if self.on_grid else middle
            reached = (p[:, points] * (where <= middle[:, None])).sum(axis=1)
            if line.bins:
                reached += (p[:, : line.bins] * pieces.below(upto[:, None])).sum(axis=1)
            enough = reached >= max(q - 1e-12, 1e-13)
            start, stop = np.where(enough, start, middle), np.where(enough, middle, stop)
        return self._rounded(stop / self.scale)


def _holes(edges: Array, points: Array) -> Array:
    """Cells of points inside the bins, but for those whose bin would be left with no cell at all."""
    inside = points[(points >= edges[0]) & (points < edges[-1])]
    home = np.searchsorted(edges, inside, side="right") - 1
    taken = np.bincount(home, minlength=len(edges) - 1)
    kept: Array = inside[(np.diff(edges) > taken)[home]]
    return kept


def _pieces(edges: Array, mass: Array, spread: Array, on_grid: bool) -> tuple[NDArray[np.intp], Array, Array]:
    """The bins, cut into pieces: which bin each is of, the knots, the masses.

    Of a long first or last bin of which no more is known: towards the end, what is left of a column often falls off
    within a fraction of it. Its density there is taken for d·(1 − t)^(a − 1), where d is what the bins before it lead
    to, and a makes its mass that of the bin.
    """
    bins = len(mass)
    home = [[b] for b in range(bins)]
    knots, parts = [[low] for low in edges[:-1]], [[m] for m in mass]
    told = np.searchsorted(edges, spread[:, 0], side="right") - 1
    for b in np.unique(told[(told >= 0) & (told < bins)]):
        cut, first = np.unique(np.append(edges[b], spread[told == b, 0]), return_index=True)
        below = np.append(np.append(0.0, spread[told == b, 1])[first], 1.0)
        home[b], knots[b], parts[b] = [b] * len(cut), list(cut), list(mass[b] * np.diff(below))
    for end, before, third in ((bins - 1, bins - 2, bins - 3), (0, 1, 2)):
        if bins < 2 or not mass[end] > 0 or end in told:
            continue
        width, beside = edges[end + 1] - edges[end], edges[before + 1] - edges[before]
        with np.errstate(all="ignore"):
            height, next_height = mass[end] / width, mass[before] / beside
            start = np.sqrt(next_height * height)
            if bins > 2 and mass[third] > 0:
                beyond = edges[third + 1] - edges[third]
                fall = next_height / (mass[third] / beyond)
                # A fall by more than half within half a bin tells of a heap rather than of what comes after.
                start = next_height * max(fall ** (beside / (beside + beyond)), 0.5)
            power = np.minimum(start, next_height) / height
        if not 2 < power < 1e6:
            continue
        inner = width * (np.exp2(np.arange(_PIECES)) - 1) / (2.0**_PIECES - 1)
        inner = np.unique(np.rint(inner) if on_grid else inner)
        left = (1 - np.append(inner, width) / width) ** power
        shares = mass[end] * (left[:-1] - left[1:])
        cut = edges[end] + inner
        if end == 0:
            cut, shares = np.append(edges[0], (edges[1] - inner)[:0:-1]), shares[::-1]
        home[end], knots[end], parts[end] = [end] * len(cut), list(cut), list(shares)
    which, cuts, masses = (np.concatenate(x) if bins else np.zeros(0) for x in (home, knots, parts))
    return which.astype(np.intp), np.append(cuts, edges[-1:]), masses


def _polar(b: Array, u: Array, v: Array) -> Array:
    out: Array = b[:, 0] * (1 - u) * (1 - v) + b[:, 1] * ((1 - u) * v + u * (1 - v)) + b[:, 2] * u * v
    return out


def _cumulated(b: Array, t: Array) -> Array:
    """∫ from 0 to t of the quadratic with these coefficients."""
    left = b[..., 0] * (1 - (1 - t) ** 3) + b[..., 1] * t**2 * (3 - 2 * t) + b[..., 2] * t**3
    out: Array = left / 3
    return out


def _coefficients(width: Array, mass: Array) -> Array:
    """The density of each bin by its coefficients, for these masses."""
    bins = len(width)
    if bins < 2 or not np.all(np.isfinite(width)):
        return np.ones((bins, 3))
    unit = width / width.max()  # slopes are relative, and squares of tiny or huge widths do not fit
    with np.errstate(over="ignore"):
        height = mass / unit
    if not np.all(np.isfinite(height)):
        return np.ones((bins, 3))
    knots = np.zeros(bins + 1)
    before, after = unit[:-1], unit[1:]
    w0, w1 = 2 * after + before, after + 2 * before
    with np.errstate(all="ignore"):  # what is not finite becomes 0 below
        knots[1:-1] = (w0 + w1) / (w0 / height[:-1] + w1 / height[1:])
    for end, i, j in ((0, 0, 1), (bins, bins - 1, bins - 2)):
        outward = ((2 * unit[i] + unit[j]) * height[i] - unit[i] * height[j]) / (unit[i] + unit[j])
        knots[end] = min(max(outward, 0.0), 3 * height[i])
    knots = np.where(np.isfinite(knots), knots, 0.0)
    safe = np.where(height > 0, height, 1.0)
    limit = 3 / np.maximum((knots[:-1] + knots[1:]) / safe, 3.0)
    limit = np.where(height > 0, limit, 1.0)
    knots *= np.minimum(np.append(limit, 1.0), np.append(1.0, limit))
    a, b = knots[:-1] / safe, knots[1:] / safe
    middle = np.maximum(3 - a - b, 0.0)
    return np.where((height > 0)[:, None], np.stack([a, middle, b], axis=-1), 1.0)
