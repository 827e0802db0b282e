"""Private Frank–Wolfe for logistic regression on the ℓ1 ball ([001] Algorithm 1), for many regressions at once.

``init`` and ``step`` are pure: a state and a curator in, a state and what happened out. With step sizes μ_t = 2/(t+2)
from w₁ = 0 the iterate is w_{t+1} = 2R/((t+1)(t+2)) · Σ_{τ≤t} (τ+1)·s_τ over the chosen vertices R·s_τ, s_τ = ±e_j: a
public scale times a vector of *whole numbers*. So the weights stand on a public grid, and margins of whole-valued
features are whole numbers, exact in any order of summation.

The paper minimises over noisy ⟨s, ∇L⟩ with L an average over n records. The arg-min does not care about the factors R
and 1/n, so sums are scored, and n, which is private under add-remove, never enters the mechanism.

Privacy. One step selects one vertex for each regression; a record moves each score of regression i by at most
σ(‖w_i‖₁) (twice that under replace-one), with w public. ``"tight"``: the exponential mechanism, Δ²/(2b²)-zCDP (or
permute-and-flip, 2Δ/b-DP, under a pure budget), with Δ at the current weights. ``"published"``: the largest after
Laplace noise as in the paper, but with the scale for which the stated guarantee has a proof: that selection is
2Δ/b-DP and not Δ/b-DP, because scores move both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.curator import Curator
from ..privacy.gradients import LogisticGradients, SteepestVertex
from ..privacy.unit import PrivacyUnit

Variant = Literal["tight", "published"]
Problem = Callable[[NDArray[np.int64], float], LogisticGradients]
MOST_STEPS = 5000
LEAST_STEPS = 8


@dataclass(frozen=True, eq=False)
class State:
    """After ``steps`` noisy steps: whole weights v (regressions × features); w = scale·v."""

    v: NDArray[np.int64]
    steps: int
    radius: float

    @property
    def scale(self) -> float:
        return 2 * self.radius / ((self.steps + 1) * (self.steps + 2))

    @property
    def w(self) -> NDArray[np.float64]:
        return np.asarray(self.v * self.scale, dtype=np.float64)


def init(regressions: int, features: int, radius: float) -> State:
    """w₁ = 0 for all regressions."""
    if not 0 < radius < math.inf:
        raise InputError(f"the radius of the ℓ1 ball must be positive and finite, got {radius}")
    return State(np.zeros((regressions, features), dtype=np.int64), 0, float(radius))


def step(
    curator: Curator, problem: Problem, state: State, share: Budget, variant: Variant = "tight"
) -> tuple[State, dict[str, Any]]:
    """One noisy step of all regressions, for ``share`` in all."""
    score = SteepestVertex(problem(state.v, state.scale), adaptive=variant == "tight")
    chosen = curator.select_each(score, share, mechanism="auto" if variant == "tight" else "laplace")
    features, signs = score.vertices([c.indices[0] for c in chosen])
    v = state.v.copy()
    v[np.arange(len(v)), features] += (state.steps + 2) * signs
    info = {"features": features, "signs": signs, "scales": [c.scale for c in chosen]}
    return State(v, state.steps + 1, state.radius), info


def run(
    curator: Curator,
    problem: Problem,
    start: State,
    steps: int,
    budget: Budget,
    variant: Variant = "tight",
    on_step: Callable[[State, dict[str, Any]], None] | None = None,
) -> State:
    """``steps`` noisy steps with equal shares."""
    if variant not in ("tight", "published"):
        raise InputError(f"variant must be 'tight' or 'published', got {variant!r}")
    state = start
    for share in budget.split([1] * steps):
        state, info = step(curator, problem, state, share, variant)
        if on_step is not None:
            on_step(state, info)
    return state


def choose_steps(
    variant: Variant, radius: float, size: float, gradients: LogisticGradients, unit: PrivacyUnit, budget: Budget
) -> int:
    """T − 1 noisy steps, from public quantities: the radius, a public or noisy number of records, and the budget.

    ``"published"``: T = (R·n·√ρ′)^⅔ of Corollary 3.4, with ρ′ one regression's part. ``"tight"``: half of that with
    the logarithm of its error bound divided out first, ½(R·n·√ρ′/ln 2q)^⅔, at least 8; under a pure budget, where
    noise grows with T and not with √T, ½(R·n·ε′/ln 2q)^½.
    """
    n = max(size, 1.0)
    linear, squared = gradients.joint(unit)
    features = max(gradients.feature_count, 2)
    logarithm = math.log(2 * features) if variant == "tight" else 1.0
    half = 0.5 if variant == "tight" else 1.0
    if isinstance(budget, PureDP):
        steps = half * math.sqrt(radius * n * float(budget.epsilon / linear) / logarithm)
    else:
        rho = budget.to_zcdp().rho if isinstance(budget, ApproxDP) else _rho(budget)
        steps = half * (radius * n * math.sqrt(rho / squared) / logarithm) ** (2 / 3)
    least = LEAST_STEPS if not isinstance(budget, PureDP) else LEAST_STEPS // 2
    return int(min(max(math.floor(steps), least), MOST_STEPS)) - 1


def _rho(budget: Budget) -> Fraction:
    assert isinstance(budget, ZCDP)
    return budget.rho


def excess_risk_rate(radius: float, size: float, rho: float, features: int, beta: float = 0.05) -> float:
    """The rate of Theorem 3.6 with its constant taken as one: for comparing settings, not for promising numbers.

    R^{4/3}·ln(n·q/β)/(n√ρ)^{2/3} for the private optimisation, plus R·ln(1/β)/√n for the sampling of the records.
    """
    n = float(size)
    optimisation: float = radius ** (4 / 3) * math.log(n * features / beta) / (n * math.sqrt(rho)) ** (2 / 3)
    return optimisation + radius * math.log(1 / beta) / math.sqrt(n)
