"""How often the model predicts a column right, as it was paid for: a noisy count, divided by the number of records.

The error of R̂/N̂ is that of R̂, whose noise has a known law, and that of N̂, by which the quotient moves in proportion:
to first order its variance is (Var R̂ + (R/N)²·Var N̂)/N².
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from .noisy import Noisy


@dataclass(frozen=True)
class Accuracy:
    """Of which column, and the noisy count of the records whose value is predicted right."""

    target: str
    right: Noisy

    def interval(self, records: float, deviation: float, level: float) -> tuple[float, float, float]:
        """The part of the records that is predicted right, and both ends of an interval."""
        part = float(self.right.values[0]) / records
        spread = math.sqrt(self.right.variance + min(max(part, 0.0), 1.0) ** 2 * deviation**2) / records
        tail = NormalDist().inv_cdf((1 + level) / 2)
        if self.right.noise.kind == "laplace":
            tail = max(tail, -math.log(1 - level) / math.sqrt(2))
        estimate, lower, upper = (min(max(x, 0.0), 1.0) for x in (part, part - tail * spread, part + tail * spread))
        return estimate, lower, upper

    def to_dict(self) -> dict[str, Any]:
        return {"target": self.target, **self.right.to_dict()}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Accuracy:
        """Read the form of :meth:`to_dict`, which may come from anywhere."""
        right = Noisy.from_dict(entry)
        if len(right.counts) != 1 or right.which or right.grid != 1 or not isinstance(entry["target"], str):
            raise ValueError("right predictions are one count")
        return cls(entry["target"][:200], right)
