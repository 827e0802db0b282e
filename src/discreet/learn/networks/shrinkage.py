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

from collections.abc import Mapping

import numpy as np

from .families import Array

GRID = 150
ROUNDS = 60
PSEUDO_CELLS = 0.05 * GRID
"""How many cells the uniform start of G counts for: keeps G from being all ripples when there are few cells."""
FLOOR = 0.1
"""The smallest probability on the grid is this many standard deviations of noise, as a part of all records."""
STRONG = 8.0
"""Standard deviations from which on (up to 1.5 times as many) the noisy count itself takes over."""
TINY = 1e-9
MOST_CELLS = 20_000
"""G is estimated from so many cells at most, evenly spaced: more say nothing new. All of them are smoothed with it."""


def posterior_rows(
    tables: Mapping[str, Array], row_totals: Mapping[str, Array], deviations: Mapping[str, float], total: float
) -> dict[str, Array]:
    """Conditional rows for each family: its noisy counts (the column last; may be negative), estimates of the row
    totals (positive), the standard deviation of its noise, and the number of records as far as it is known."""
    names = list(tables)
    y = np.concatenate([tables[n].reshape(-1) for n in names])
    sd = np.concatenate([np.full(tables[n].size, deviations[n]) for n in names])
    base = np.concatenate([np.broadcast_to(row_totals[n][..., None], tables[n].shape).reshape(-1) for n in names])
    noisy = sd > 0
    counts = np.maximum(y, 0.0)
    if noisy.any():
        counts[noisy] = _posterior_counts(y[noisy], base[noisy], sd[noisy], total)
    out: dict[str, Array] = {}
    start = 0
    for n in names:
        table = counts[start : start + tables[n].size].reshape(tables[n].shape) + TINY
        start += tables[n].size
        out[n] = table / table.sum(axis=-1, keepdims=True)
    return out


def _posterior_counts(y: Array, base: Array, sd: Array, total: float) -> Array:
    smallest = min(max(FLOOR * float(np.median(sd)) / total, 1e-7), 0.01)
    grid = np.geomspace(smallest, 1.0, GRID)
    some = slice(None) if y.size <= MOST_CELLS else np.linspace(0, y.size - 1, MOST_CELLS).astype(np.int64)
    likelihood = _likelihood(y[some], base[some], sd[some], grid)
    weights = np.full(GRID, 1 / GRID)
    for _ in range(ROUNDS):
        weights = weights * (likelihood.T @ (1 / (likelihood @ weights))) + PSEUDO_CELLS / GRID
        weights /= weights.sum()
    mean = np.empty_like(y)
    for start in range(0, y.size, MOST_CELLS):
        part = slice(start, start + MOST_CELLS)
        likelihood = _likelihood(y[part], base[part], sd[part], grid)
        mean[part] = base[part] * (likelihood @ (weights * grid)) / (likelihood @ weights)
    keep = np.clip((y / sd - STRONG) / (STRONG / 2), 0.0, 1.0)
    return np.asarray((1 - keep) * mean + keep * y)


def _likelihood(y: Array, base: Array, sd: Array, grid: Array) -> Array:
    # Sums of noise over cells and consistency make the noise near enough to normal; far tails are cut so that a
    # single wild cell cannot decide on a grid point alone.
    z = (y[:, None] - base[:, None] * grid) / sd[:, None]
    return np.asarray(np.exp(-0.5 * np.minimum(z * z, 144.0)))
