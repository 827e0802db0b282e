"""How many records our own learners needed in our own experiments: constants that are fitted, not proved.

Measured by ``benchmarks/_calibrate_bounds.py``: the least n at which 9 of 10 fresh runs reach the goal, add-remove
with a private number of records, on perfect matchings and random 3-regular graphs. Their form follows the theory (ln
p, then p to a power by the budget), the constants are least squares on ln n. Inside the measured range a prediction is
a statement about these graphs; outside it is an extrapolation, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .bound import Goal, Notion, exponential
from .lemmas import correlation


@dataclass(frozen=True)
class Calibration:
    """n = A ln(p) e^{κ(λ−η)}/S + B p^b e^{κ′(λ−η)}/(τ^(1−a) α^a · strength): a statistical term and a private one.

    τ = tanh η; the exponentials are the price of crowded nodes; S = τ² for the graph and (1 − τ²)α² for parameters; the
    strength of a budget is √ρ, ε, or ε/ln(1/δ).
    """

    goal: Goal
    notion: Notion
    method: str
    statistical: float
    crowding: float
    private: float = 0.0
    exponent: float = 0.0
    private_crowding: float = 0.0
    alpha_share: float = 0.0
    settings: int = 0
    worst: float = math.nan

    def records(
        self,
        *,
        p: int,
        weight: float,
        width: float,
        alpha: float,
        rho: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> float:
        tau = correlation(weight)
        crowd = max(width - weight, 0.0)
        signal = tau**2 if self.goal == "graph" else alpha**2 / math.cosh(min(weight, 300.0)) ** 2
        n = self.statistical * math.log(p) * exponential(self.crowding * crowd) / signal
        if self.notion == "none":
            return n
        if self.notion == "zcdp":
            assert rho is not None
            strength = math.sqrt(rho)
        else:
            assert epsilon is not None
            strength = epsilon
            if self.notion == "approx":
                assert delta is not None
                strength = epsilon / math.log(1 / delta)
        precision = math.pow(tau, 1 - self.alpha_share) * math.pow(alpha, self.alpha_share)
        crowded = exponential(self.private_crowding * crowd)
        return n + self.private * math.pow(p, self.exponent) * crowded / (precision * strength)


# Measured 2026-11-16 on p = 8 … 64 (benchmarks/_calibration.jsonl has every n). ``worst`` is the largest factor
# between a measured n and the fit, over ``settings`` of them.
CALIBRATIONS: tuple[Calibration, ...] = (
    Calibration("parameters", "none", "maximum likelihood (SpinField)", 2.65, 0.3, settings=15, worst=1.54),
    Calibration("parameters", "zcdp", "moments (SpinField)", 2.65, 0.3, 2.823, 0.849, 0.596, 0.3, 45, 1.60),
    Calibration("parameters", "pure", "moments (SpinField)", 2.65, 0.3, 16.284, 1.388, 0.461, 0.65, 45, 1.82),
    Calibration("graph", "none", "maximum likelihood (SpinField)", 15.944, 0.279, settings=12, worst=1.44),
    Calibration("graph", "approx", "StableEdges", 15.944, 0.279, 5.169, 0.0, 2.074, 0.0, 34, 1.41),
    Calibration("graph", "zcdp", "SelectedEdges", 15.944, 0.279, 12.088, 0.388, 1.629, 0.0, 36, 2.00),
    Calibration("graph", "zcdp", "moments (SpinField)", 15.944, 0.279, 9.177, 0.563, 0.784, 0.0, 36, 1.87),
    Calibration("graph", "pure", "moments (SpinField)", 15.944, 0.279, 63.823, 1.151, 0.719, 0.0, 36, 2.11),
)
# On 3-regular graphs of 8 and 16 columns with couplings of both signs StableEdges needed up to 7,500 records at
# (1, 1e-6): short loops of opposite signs hide edges from tests of pairs.
FEWEST_IF_CROWDED = 32
MEASURED_COLUMNS = (8, 64)

# From Ising models to others, measured for parameters at p = 8 … 16: with the number of levels, n(k)/n(2) = (k/2)^e for
# k = 3 and 5, and n(t = 3)/n(t = 2). Private fits came out no dearer than the non-private ones here and there, which is
# chance; they are kept at least as dear.
LEVELS_EXPONENT: dict[str, float] = {"none": 3.55, "approx": 3.85, "zcdp": 3.85, "pure": 3.55}
TRIPLES_FACTOR: dict[str, float] = {"none": 1.23, "approx": 1.23, "zcdp": 1.23, "pure": 4.43}


def calibrated(goal: Goal, notion: Notion) -> tuple[Calibration, ...]:
    """The calibrations for a goal under a notion: one a method."""
    return tuple(c for c in CALIBRATIONS if c.goal == goal and c.notion == notion)


def family_factor(notion: Notion, k: int, t: int) -> float:
    """What more levels, or interactions of a higher order, multiply n by; measured for k ≤ 5 and t = 3."""
    return math.pow(k / 2, LEVELS_EXPONENT[notion]) * math.pow(TRIPLES_FACTOR[notion], t - 2)
