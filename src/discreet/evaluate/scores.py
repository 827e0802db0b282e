"""The figures, each a function of tables. Names are those of SDMetrics and of NIST's SDNist where they mean the same.

All columns are discrete here, as the schema says; numbers are what levels stand for: whole numbers themselves, bins by
their middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..attribute import Attribute

Array = NDArray[np.float64]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def total_variation(p: Array, q: Array) -> float:
    """½ Σ|p − q|. SDMetrics calls 1 minus it TVComplement for a column and ContingencySimilarity for a pair."""
    return float(np.abs(p - q).sum() / 2)


def kolmogorov_smirnov(p: Array, q: Array, values: Array) -> float:
    """The largest difference of the distribution functions over the records that have a number; KSComplement is 1
    minus it."""
    known = np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]
    p, q = p[known], q[known]
    return float(np.abs(np.cumsum(p / (p.sum() or 1) - q / (q.sum() or 1))).max(initial=0.0))


def k_marginal(distances: Sequence[float] | Array) -> float:
    """SDNist's score of tables of k columns: 1000 when all agree, 0 when none has anything in common."""
    return 1000 * (1 - float(np.mean(distances)))


def independent(singles: Sequence[Array]) -> Array:
    """The table of independent columns."""
    out = np.ones(())
    for single in singles:
        out = np.multiply.outer(out, single)
    return out


def cramers_v(table: Array) -> float:
    """How strongly two columns depend on each other, from 0 to 1; 0 where one of them does not vary."""
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    occurring = expected > 0
    levels = min(int((table.sum(axis=1) > 0).sum()), int((table.sum(axis=0) > 0).sum()))
    if levels < 2:
        return 0.0
    chi = float(((table - expected)[occurring] ** 2 / expected[occurring]).sum())
    return float(np.sqrt(chi / (levels - 1)))


def values_of(attribute: Attribute) -> Array | None:
    """The number that each level stands for (NaN for absent and other values); None for a column of names."""
    if attribute.is_numeric:
        edges = np.array(attribute.edges)
        numbers = np.concatenate([(edges[:-1] + edges[1:]) / 2, attribute.heaps])
    elif attribute.levels and all(isinstance(level, int) for level in attribute.levels):
        numbers = np.array(attribute.levels, dtype=np.float64)
    else:
        return None
    return np.concatenate([numbers, np.full(attribute.size - len(numbers), np.nan)])


def correlation(table: Array, values: Sequence[Array]) -> float:
    """Pearson's, over the records that have a number in both columns; NaN where one does not vary."""
    x, y = values
    known = np.ix_(np.isfinite(x), np.isfinite(y))
    p, x, y = table[known], x[np.isfinite(x)], y[np.isfinite(y)]
    if not p.sum() > 0:
        return float("nan")
    p = p / p.sum()
    x = x - p.sum(axis=1) @ x
    y = y - p.sum(axis=0) @ y
    spread = np.sqrt((p.sum(axis=1) @ x**2) * (p.sum(axis=0) @ y**2))
    return float(x @ p @ y / spread) if spread > 0 else float("nan")


class Numbers(NamedTuple):
    """What is said of a column of numbers, over the records that have one."""

    mean: float
    deviation: float
    median: float
    quantiles: tuple[float, ...]
    lowest: float
    highest: float


def numbers_of(p: Array, values: Array) -> Numbers | None:
    """Mean, standard deviation and :data:`QUANTILES`; None where no record has a number."""
    at = np.argsort(values[np.isfinite(values)], kind="stable")
    x, p = values[np.isfinite(values)][at], p[np.isfinite(values)][at]
    if not p.sum() > 0:
        return None
    p = p / p.sum()
    mean = float(p @ x)
    reached = np.cumsum(p)
    # Half a record in a million million less, so that rounding of the sum does not skip a level.
    quantiles = tuple(float(x[min(int(np.searchsorted(reached, q - 1e-12)), len(x) - 1)]) for q in QUANTILES)
    there = x[p > 0]
    deviation = float(np.sqrt(p @ (x - mean) ** 2))
    return Numbers(mean, deviation, quantiles[QUANTILES.index(0.5)], quantiles, float(there[0]), float(there[-1]))
