"""Noise-aware smoothing: what a noisy count most probably stands for, learned from all noisy counts together.

A cell of a family is y = C[pa]·Θ[x|pa] + noise. Where the noise is large, y alone says little; but hundreds of cells
together say how large conditional probabilities typically are in this network (often near 0 or near 1). So the
distribution G of Θ over all cells is estimated by nonparametric maximum likelihood on a grid (Kiefer and Wolfowitz
1956; a few steps of EM), and each Θ is replaced by its posterior mean under G. The posterior mean is also what
minimises the expected KL(exact ‖ private), because that is linear in the exact probabilities.

Everything here is computed from noisy tables and public noise levels. Where the signal is strong (8 standard deviations
or more) the noisy count speaks for itself and is kept: the closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .families import Array

GRID = 150
ROUNDS, ROUNDS_IN_BINS = 60, 30
PSEUDO_CELLS = 0.05 * GRID
"""How many cells the uniform start of G counts for: keeps G from being all ripples when there are few cells."""
FLOOR = 0.1
"""The smallest probability on the grid is this many standard deviations of noise, as a part of all records."""
STRONG = 8.0
"""Standard deviations from which on (up to 1.5 times as many) the noisy count itself takes over."""
TINY = 1e-9
MOST_CELLS = 20_000
"""G is estimated from so many cells at most, evenly spaced: more say nothing new. All of them are smoothed with it."""


@dataclass(frozen=True, eq=False)
class Smoother:
    """G: the distribution of conditional probabilities over all cells of a network."""

    grid: Array
    weights: Array

    @classmethod
    def of(cls, y: Array, base: Array, sd: Array, total: float) -> Smoother:
        """From noisy counts, the records of their rows (positive), the deviations of the noise, and the number of
        records as far as it is known. Cells without noise have no part in it."""
        noisy = sd > 0
        y, base, sd = y[noisy], base[noisy], sd[noisy]
        smallest = min(max(FLOOR * float(np.median(sd)) / total, 1e-7), 0.01) if y.size else 0.01
        grid = np.geomspace(smallest, 1.0, GRID)
        uniform = np.full(GRID, 1 / GRID)
        if not y.size:
            return cls(grid, uniform)
        some = _some(y.size)
        return cls(grid, _mixed(_likelihood(y[some], base[some], sd[some], grid), uniform, PSEUDO_CELLS, ROUNDS))

    def within(self, y: Array, base: Array, sd: Array, bins: NDArray[np.intp], behind: float) -> Array:
        """Posterior means of Θ, cells of each bin under a distribution of their own that ``behind`` cells of G stand
        behind; where there is no noise, the counts themselves. Positive."""
        theta = np.maximum(y, 0.0) / base
        for b in np.unique(bins):
            mine = np.flatnonzero((bins == b) & (sd > 0))
            if not mine.size:
                continue
            some = mine[_some(mine.size)]
            likelihood = _likelihood(y[some], base[some], sd[some], self.grid)
            weights = _mixed(likelihood, self.weights, behind, ROUNDS_IN_BINS)
            for start in range(0, mine.size, MOST_CELLS):
                part = mine[start : start + MOST_CELLS]
                if part.size < mine.size:
                    likelihood = _likelihood(y[part], base[part], sd[part], self.grid)
                mean = likelihood @ (weights * self.grid) / (likelihood @ weights)
                keep = np.clip((y[part] / sd[part] - STRONG) / (STRONG / 2), 0.0, 1.0)
                theta[part] = (1 - keep) * mean + keep * theta[part]
        return np.asarray(theta + TINY / base)


def _mixed(likelihood: Array, start: Array, behind: float, rounds: int) -> Array:
    """Weights of the grid by EM, with ``behind`` cells of the start's on top."""
    weights = start
    for _ in range(rounds):
        weights = weights * (likelihood.T @ (1 / (likelihood @ weights))) + behind * start
        weights /= weights.sum()
    return weights


def _some(cells: int) -> NDArray[np.intp]:
    return np.linspace(0, cells - 1, min(cells, MOST_CELLS)).astype(np.intp)


def _likelihood(y: Array, base: Array, sd: Array, grid: Array) -> Array:
    # Sums of noise over cells and consistency make the noise near enough to normal; far tails are cut so that a
    # single wild cell cannot decide on a grid point alone.
    z = (y[:, None] - base[:, None] * grid) / sd[:, None]
    return np.asarray(np.exp(-0.5 * np.minimum(z * z, 144.0)))
