"""Noisy numbers as a certificate keeps them, read from files that may come from anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..measurement import Noise
from ..spelling import written

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Noisy:
    """Noisy distances, in units of a grid, and of which tables they are; none for the sum of all."""

    counts: tuple[int, ...]
    noise: Noise
    grid: Fraction
    which: tuple[int, ...] = ()

    @property
    def values(self) -> Array:
        return np.array(self.counts, dtype=np.float64) * float(self.grid)

    @property
    def variance(self) -> float:
        return self.noise.variance * float(self.grid) ** 2

    def to_dict(self) -> dict[str, Any]:
        kind = {"noise": self.noise.kind, "scale": self.noise.scale, "grid": str(self.grid)}
        return {"counts": list(self.counts), **kind, "which": list(self.which)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Noisy:
        counts, which = [[whole_number(n) for n in entry[key]] for key in ("counts", "which")]
        return cls(
            tuple(counts), Noise(entry["noise"], real_number(entry["scale"])), written(entry["grid"]), tuple(which)
        )


def whole_number(value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**63:
        raise ValueError("a whole number is missing")
    return value


def real_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a number is missing")
    return float(value)
