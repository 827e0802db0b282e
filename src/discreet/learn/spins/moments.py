"""Noisy means and pair correlations of spins: what an Ising model is estimated from, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...measurement import Measurement
from .enumeration import positions

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SpinMoments:
    """E z_i and E z_i z_j as measured, with the variance of their noise; ∞ for a pair that was not measured.

    ``records`` is the public or noisy number of records, at least 1.
    """

    single: Array
    double: Array
    single_variance: Array
    double_variance: Array
    records: float

    @classmethod
    def of(cls, domain: Domain, records: float, sums: Iterable[tuple[Sequence[Clique], Measurement]]) -> SpinMoments:
        """From noisy parity sums; what was measured several times is averaged with weights 1/variance."""
        p, n = len(domain), max(float(records), 1.0)
        total, weight = np.zeros((p, p)), np.zeros((p, p))
        total1, weight1 = np.zeros(p), np.zeros(p)
        for monomials, measured in sums:
            # Exact sums would have infinite weight; a thousandth of a record is as good as exact.
            w = 1 / max(measured.standard_deviation / n, 1e-3 / n) ** 2
            for I, value in zip(positions(domain.names, monomials), measured.values, strict=True):
                if len(I) == 1:
                    total1[I[0]] += w * value / n
                    weight1[I[0]] += w
                elif len(I) == 2:
                    total[I] += w * value / n
                    weight[I] += w
        total, weight = total + total.T, weight + weight.T
        seen, seen1 = weight > 0, weight1 > 0
        return cls(
            np.clip(np.divide(total1, weight1, out=np.zeros(p), where=seen1), -1, 1),
            np.clip(np.divide(total, weight, out=np.zeros((p, p)), where=seen), -1, 1),
            np.divide(1.0, weight1, out=np.full(p, np.inf), where=seen1),
            np.divide(1.0, weight, out=np.full((p, p), np.inf), where=seen),
            n,
        )

    @property
    def p(self) -> int:
        return len(self.single)

    def measured_pairs(self) -> list[tuple[int, int]]:
        finite = np.isfinite(np.triu(self.double_variance, 1)) & np.triu(np.ones((self.p, self.p), dtype=bool), 1)
        return [(int(i), int(j)) for i, j in zip(*np.nonzero(finite), strict=True)]
