"""How to divide a budget over tables so that the expected error is least.

The error of a table with c cells is c times the mean absolute noise of a cell: its expected L1 error in records.

*Laplace noise.* A table with share ε_t has E|noise| = Δ_t/ε_t, Δ_t its L1 sensitivity. Minimise Σ_t c_t Δ_t/ε_t under
Σ_t ε_t = ε: the derivative −c_t Δ_t/ε_t² is the same for all tables, so **ε_t ∝ √(c_t Δ_t)**. By Cauchy's inequality
the least error is (Σ_t √(c_t Δ_t))²/ε; equal shares give m·Σ_t c_t Δ_t/ε for m tables, which is never less.

*Gaussian noise.* A table with share ρ_t has σ_t = Δ_t/√(2ρ_t), Δ_t its L2 sensitivity. Minimise Σ_t c_t Δ_t ρ_t^(−1/2)
under Σ_t ρ_t = ρ: the derivative c_t Δ_t ρ_t^(−3/2) is the same for all, so **ρ_t ∝ (c_t Δ_t)^(2/3)**.

*Tables that are too large for the data.* By these rules a table with far more cells than there are records would take
most of the budget and still be lost: its expected error exceeds twice the number of records, and no two distributions
are further apart than 2 in L1. So, where a public guess n of the number of records is known, a table counts for n/3
cells at most. (Measured at ε = 1 on ten networks with one table of 700 to 100,000 cells, and 300 to 10,000 records: KL
from the truth falls by 9 to 29 %. A harder cap, at an expected L1 error of 2, made ordinary networks worse: smoothing
gets something out of noisier tables than that.)

*Which noise.* Both are planned and the smaller expected error wins. With m tables of c cells Laplace noise costs
m²c·Δ/ε and Gaussian noise m^(3/2)c·Δ/√(πρ), so Gaussian noise wins once m > ε²/(πρ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..privacy.budget import Budget, PureDP
from ..privacy.calibration import NoiseChoice, NoisePlan, noise_of, plan_noise
from ..privacy.query import Query
from ..privacy.unit import PrivacyUnit
from .error_curve import mean_absolute

NoiseKind = Literal["laplace", "gaussian"]
RECORDS_A_CELL = 3
"""A table counts for no more cells than a third of the records, in shares."""
_PRECISION = 10**9  # weights are whole numbers: shares are exact fractions of the budget


@dataclass(frozen=True)
class Allocation:
    """Weights of the tables, the noise they lead to, and the reason in words."""

    weights: tuple[int, ...]
    noise: NoiseKind
    plan: NoisePlan
    why: str
    capped: tuple[int, ...] = ()
    """Positions of tables that count for fewer cells than they have."""

    @cached_property
    def expected_errors(self) -> tuple[float, ...]:
        """Expected sum of |noise| over the cells of each table, in records."""
        pairs = zip(self.plan.cells, self.plan.calls, strict=True)
        return tuple(cells * mean_absolute(noise_of(call)) for cells, call in pairs)

    @property
    def expected_error(self) -> float:
        return sum(self.expected_errors)

    @property
    def shares(self) -> tuple[float, ...]:
        whole = sum(self.weights)
        return tuple(w / whole for w in self.weights)


def allocate(
    query: Query, unit: PrivacyUnit, budget: Budget, noise: NoiseChoice = "auto", size: float | None = None
) -> Allocation:
    """The allocation with the least expected error; of public things only. ``size``: about how many records there are,
    as far as that is public."""
    most = math.inf if size is None else max(size / RECORDS_A_CELL, 1.0)
    capped = tuple(i for i, part in enumerate(query.parts) if part.cells > most)
    limit = f" A table counts for {most:,.0f} cells at most, a third of the records." if capped else ""
    found = [
        Allocation(weights, kind, plan_noise(query, unit, budget, noise=kind, weights=weights), why + limit, capped)
        for kind, weights, why in _candidates(query, unit, budget, noise, most)
    ]
    worst = math.inf if size is None else 2 * size
    return min(found, key=lambda a: sum(min(error, worst) for error in a.expected_errors))


def _candidates(
    query: Query, unit: PrivacyUnit, budget: Budget, noise: NoiseChoice, most: float
) -> list[tuple[NoiseKind, tuple[int, ...], str]]:
    cells = [min(p.cells, most) for p in query.parts]
    sensitivities = query.sensitivity(unit)
    out: list[tuple[NoiseKind, tuple[int, ...], str]] = []
    if noise != "gaussian" or isinstance(budget, PureDP):  # a pure budget then refuses with its own words
        kind: NoiseKind = "gaussian" if noise == "gaussian" else "laplace"
        weights = _whole([(c * s.l1) ** 0.5 for c, s in zip(cells, sensitivities, strict=True)])
        out.append((kind, weights, "Shares ∝ √cells: they minimise the expected L1 error of Laplace noise."))
    if noise != "laplace" and not isinstance(budget, PureDP):
        weights = _whole([(c * s.l2_squared**0.5) ** (2 / 3) for c, s in zip(cells, sensitivities, strict=True)])
        out.append(("gaussian", weights, "Shares ∝ cells^⅔: they minimise the expected L1 error of Gaussian noise."))
        # Equal scales can be calibrated to (ε, δ) directly, which saves some 7 % and may outweigh unequal shares.
        equal = (1,) * len(cells)
        out.append(
            ("gaussian", equal, "Equal shares: calibrated to (ε, δ) directly they give the least expected error.")
        )
    return out


def _whole(weights: Sequence[float]) -> tuple[int, ...]:
    largest = max(weights)
    return tuple(max(1, round(_PRECISION * w / largest)) for w in weights)
