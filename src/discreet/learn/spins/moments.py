"""Noisy means of parities E Π_{i∈I} z_i: what fields of spins are estimated from, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...measurement import Measurement
from .enumeration import positions

Array = NDArray[np.float64]


class Matrices(NamedTuple):
    """Means and pair correlations with the variances of their noise; ∞ for a pair that was not measured."""

    single: Array
    double: Array
    single_variance: Array
    double_variance: Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Parities as measured, with the variances of their noise. ``records``: public or noisy, at least 1. ``order``: the
    largest number of columns in a monomial that was measured, here or where these were chosen from."""

    domain: Domain
    monomials: tuple[Clique, ...]
    mean: Array
    variance: Array
    records: float
    order: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", max([self.order, *map(len, self.monomials)]))

    @classmethod
    def of(cls, domain: Domain, records: float, sums: Iterable[tuple[Sequence[Clique], Measurement]]) -> Moments:
        """From noisy sums; what was measured several times is averaged with weights 1/variance."""
        n = max(float(records), 1.0)
        total: dict[Clique, float] = {}
        weight: dict[Clique, float] = {}
        for monomials, measured in sums:
            # Exact sums would have infinite weight; a thousandth of a record is as good as exact.
            w = 1 / max(measured.standard_deviation / n, 1e-3 / n) ** 2
            for I, value in zip(monomials, measured.values.tolist(), strict=True):
                total[I] = total.get(I, 0.0) + w * value / n
                weight[I] = weight.get(I, 0.0) + w
        weights = np.array(list(weight.values()))
        mean = np.clip(np.array(list(total.values())) / weights, -1, 1)
        return cls(domain, tuple(total), mean, 1 / weights, n)

    def only(self, joint: Iterable[Clique]) -> Moments:
        """Those of all single columns and of these monomials."""
        chosen = [*((name,) for name in self.domain.names), *joint]
        at = [self._place[I] for I in chosen]
        return Moments(self.domain, tuple(chosen), self.mean[at], self.variance[at], self.records, self.order)

    @property
    def p(self) -> int:
        return len(self.domain)

    @cached_property
    def joint(self) -> tuple[Clique, ...]:
        """The monomials of two and more columns."""
        return tuple(I for I in self.monomials if len(I) > 1)

    def at(self, monomials: Iterable[Clique]) -> tuple[Array, Array]:
        """Means and variances of these."""
        where = [self._place[I] for I in monomials]
        return self.mean[where], self.variance[where]

    @cached_property
    def _place(self) -> dict[Clique, int]:
        return {I: k for k, I in enumerate(self.monomials)}

    @cached_property
    def matrices(self) -> Matrices:
        """The means and pair correlations among them as p × p matrices."""
        p = self.p
        single, double = np.zeros(p), np.zeros((p, p))
        single_variance, double_variance = np.full(p, np.inf), np.full((p, p), np.inf)
        for I, mean, variance in zip(
            positions(self.domain.names, self.monomials), self.mean, self.variance, strict=True
        ):
            if len(I) == 1:
                single[I[0]], single_variance[I[0]] = mean, variance
            elif len(I) == 2:
                i, j = I
                double[i, j] = double[j, i] = mean
                double_variance[i, j] = double_variance[j, i] = variance
        return Matrices(single, double, single_variance, double_variance)
