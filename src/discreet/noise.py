"""The laws of noise: how far it moves a number, exactly. Nothing is drawn here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .errors import InputError


@dataclass(frozen=True)
class Noise:
    """A noise distribution on the whole numbers, in units of a grid: discrete Laplace, discrete Gaussian, or none.

    ``scale``: for Laplace P(z) ∝ exp(−|z|/scale); for Gaussian P(z) ∝ exp(−z²/2 scale²).
    """

    kind: Literal["laplace", "gaussian", "none"]
    scale: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian", "none"):
            raise InputError(f"noise is 'laplace', 'gaussian' or 'none', got {self.kind!r}")
        if not 0 <= self.scale < math.inf:
            raise InputError(f"the scale of noise must be a finite number of at least 0, got {self.scale}")

    @cached_property
    def variance(self) -> float:
        """Exact variance in grid units squared."""
        if self.kind == "none" or self.scale == 0:
            return 0.0
        if self.kind == "laplace":
            # 2 e^{1/b} / (e^{1/b} − 1)², written so that it neither overflows nor cancels
            return 1 / (2 * math.sinh(0.5 / self.scale) ** 2) if self.scale > 2e-3 else 0.0
        if self.scale > 10:  # theta-function identity: σ² up to a relative error below 1e-800
            return self.scale**2
        z, p = self._atoms()
        return float((z**2 * p).sum())

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(self.variance)

    def half_width(self, level: float = 0.9) -> int:
        """Least whole t with P(|noise| ≤ t) ≥ level."""
        if not 0 < level < 1:
            raise InputError(f"level must lie strictly between 0 and 1, got {level}")
        if self.variance == 0:
            return 0
        if self.kind == "laplace":
            # P(|Z| > t) = 2 q^{t+1} / (1 + q), q = e^{−1/b}
            t = -self.scale * math.log((1 - level) * (1 + math.exp(-1 / self.scale)) / 2) - 1
            return max(0, math.ceil(t - 1e-9))
        if self.scale > 1000:  # then the bell curve, with half a unit for the whole numbers, is right to 1e-6 of σ
            return max(0, math.ceil(self.scale * NormalDist().inv_cdf((1 + level) / 2) - 0.5))
        z, p = self._atoms()
        inside = np.cumsum(p[z >= 0]) * 2 - p[z == 0]
        return int(np.argmax(inside >= level))

    def _atoms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        reach = math.ceil(12 * self.scale) + 2
        z = np.arange(-reach, reach + 1, dtype=np.float64)
        p = np.exp(-(z**2) / (2 * self.scale**2))
        return z, p / p.sum()
