"""Intervals for what cannot be negative.

They are those of Feldman and Cousins (Phys. Rev. D 57, 1998): they order outcomes by the likelihood ratio against the
best value that is possible, cover as they say, and are never empty.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[np.float64]


def nonnegative(centres: Array, deviations: Array, level: float, *, laplace: bool = False) -> tuple[Array, Array]:
    """Feldman–Cousins intervals for means that are at least 0, from estimates with Gaussian or Laplace noise.

    Laplace noise in closed form, with t = ln(1/(1 − level)), u = t − ln 2, in units of its scale: values x of the
    estimate are accepted for the mean μ if |x − μ| ≤ t for μ ≥ t; below that, all x ≤ μ + max(μ, u), because every
    negative x has the same likelihood ratio e^−μ.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, got {level}")
    known = deviations <= 0
    safe = np.where(known, 1.0, deviations)
    if laplace:
        b, t = safe / math.sqrt(2), -math.log(1 - level)
        u = max(t - math.log(2), 0.0)
        x = centres / b
        lower = np.where(x >= 2 * t, x - t, np.where(x >= 2 * u, x / 2, np.maximum(x - u, 0)))
        lower, upper = lower * b, (np.maximum(x, 0) + t) * b
    else:
        means, left, right = _accepted(level)
        x, z = centres / safe, NormalDist().inv_cdf((1 + level) / 2)
        far = x > left[-1]
        lower = np.where(x > right[-1], x - z, np.interp(x, right, means, left=0.0)) * safe
        upper = np.where(far, x + z, np.interp(x, left, means)) * safe
    exact = np.maximum(centres, 0)
    return np.where(known, exact, lower), np.where(known, exact, upper)


@lru_cache(maxsize=32)
def _accepted(level: float) -> tuple[Array, Array, Array]:
    """For a grid of means μ ≥ 0 of a unit Gaussian, the ends of the values x that are accepted: those of the largest
    likelihood ratios φ(x − μ)/φ(x − max(x, 0)), with probability ``level`` in all."""
    normal = NormalDist()
    z = normal.inv_cdf((1 + level) / 2)
    means = np.concatenate([np.geomspace(1e-3, 0.05, 30), np.linspace(0.06, 2 * z + 1, 300)])
    left, right = [], []
    for mu in means.tolist():
        low, high = mu, mu + 12.0  # of the right end
        for _ in range(60):
            x2 = (low + high) / 2
            x1 = _same_ratio(mu, x2)
            inside = normal.cdf(x2 - mu) - normal.cdf(x1 - mu)
            low, high = (x2, high) if inside < level else (low, x2)
        left.append(_same_ratio(mu, high))
        right.append(high)
    return means, np.maximum.accumulate(left), np.maximum.accumulate(right)


def _same_ratio(mu: float, x2: float) -> float:
    """The other value with the likelihood ratio of x2 ≥ μ: left of μ, and perhaps negative."""
    mirrored = 2 * mu - x2
    return mirrored if mirrored >= 0 else (mu**2 - (x2 - mu) ** 2) / (2 * mu)
