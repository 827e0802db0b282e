"""Private Frank–Wolfe ([001] Algorithm 1), for many problems at once: logistic regressions on the ℓ1 ball, or any loss
and polytope of :mod:`discreet.privacy.queries.polytope`.

``init`` and ``step`` are pure: a state in, one request out, and with its answer the next state and what happened. With
step sizes μ_t = 2/(t+2) from w₁ = R·s₀ the iterate is w_{t+1} = 2R/((t+1)(t+2)) · (s₀ + Σ_{τ≤t} (τ+1)·s_τ) over the
chosen vertices R·s_τ, whole vectors (±e_j on the ℓ1 ball, where s₀ = 0): a public scale times *whole numbers*. So the
weights stand on a public grid, and margins of whole-valued features are whole numbers, exact in any order of summation.

The paper minimises over noisy ⟨s, ∇L⟩ with L an average over n records. The arg-min does not care about the factors R
and 1/n, so sums are scored, and n, which is private under add-remove, never enters the mechanism.

Privacy. One step selects one vertex for each regression; a record moves each score of regression i by at most
σ(‖w_i‖₁) (twice that under replace-one; for other losses see their scores), with w public. ``"tight"``: the
exponential mechanism, Δ²/(2b²)-zCDP (or permute-and-flip, 2Δ/b-DP, under a pure budget), with Δ at the current weights.
``"published"``: the largest after Laplace noise as in the paper, but with the scale for which the stated guarantee has
a proof: that selection is 2Δ/b-DP and not Δ/b-DP, because scores move both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ...privacy.calibration import SelectionChoice
from ...privacy.queries.gradients import LogisticGradients
from ...privacy.queries.polytope import Problem
from ...privacy.requests import Asking, SelectEach
from ...privacy.unit import PrivacyUnit

Variant = Literal["tight", "published"]
Problems = Callable[[NDArray[np.int64], float], Problem]  # all of them, at whole weights times a scale
MOST_STEPS = 5000
LEAST_STEPS = 8


@dataclass(frozen=True, eq=False)
class State:
    """After ``steps`` noisy steps: whole weights v (regressions × features); w = scale·v, or an average of iterates."""

    v: NDArray[np.int64]
    steps: int
    radius: float
    average: NDArray[np.float64] | None = None

    @property
    def scale(self) -> float:
        return 2 * self.radius / ((self.steps + 1) * (self.steps + 2))

    @property
    def w(self) -> NDArray[np.float64]:
        return np.asarray(self.v * self.scale, dtype=np.float64) if self.average is None else self.average


def init(regressions: int, features: int, radius: float) -> State:
    """w₁ = 0 for all regressions."""
    if not 0 < radius < math.inf:
        raise InputError(f"the radius of the ℓ1 ball must be positive and finite, got {radius}")
    return State(np.zeros((regressions, features), dtype=np.int64), 0, float(radius))


def selection_of(variant: Variant) -> SelectionChoice:
    """The mechanism of a step."""
    return "auto" if variant == "tight" else "laplace"


def step(
    problem: Problems, state: State, share: Budget, variant: Variant = "tight"
) -> Asking[tuple[State, dict[str, Any]]]:
    """One noisy step of all regressions, for ``share`` in all: a request, then the next state and what happened."""
    score = problem(state.v, state.scale).score(adaptive=variant == "tight")
    chosen = yield SelectEach(share, score, mechanism=selection_of(variant))
    moves = score.moves([c.indices[0] for c in chosen])
    info = {"moves": moves, "names": [c.names[0] for c in chosen], "scales": [c.scale for c in chosen]}
    return State(state.v + (state.steps + 2) * moves, state.steps + 1, state.radius), info


def descend(
    problem: Problems,
    start: State,
    steps: int,
    budget: Budget,
    variant: Variant = "tight",
    on_step: Callable[[State, dict[str, Any]], None] | None = None,
) -> Asking[State]:
    """``steps`` noisy steps with equal shares. The tight variant ends with the average of the second half of its
    iterates: it costs nothing, a convex loss is no larger there than on average, and the last vertices weigh less."""
    if variant not in ("tight", "published"):
        raise InputError(f"variant must be 'tight' or 'published', got {variant!r}")
    state = start
    total, count = np.zeros(start.v.shape), 0
    for share in budget.split([1] * steps):
        state, info = yield from step(problem, state, share, variant)
        if state.steps > steps // 2:
            total, count = total + state.w, count + 1
        if on_step is not None:
            on_step(state, info)
    return replace(state, average=total / count) if variant == "tight" else state


def choose_steps(
    variant: Variant, radius: float, size: float, gradients: LogisticGradients, unit: PrivacyUnit, budget: Budget
) -> int:
    """T − 1 noisy steps of logistic regressions on an ℓ1 ball, for which Γ ≤ R², L₁ ≤ 1 and ‖C‖₁ = R."""
    vertices = 2 * max(gradients.feature_count, 2)
    return steps_for(variant, radius * max(size, 1.0), vertices, gradients.joint(unit), budget)


def steps_for(
    variant: Variant, pull: float, vertices: int, joint: tuple[Fraction, Fraction] | tuple[int, int], budget: Budget
) -> int:
    """T − 1 noisy steps, from public quantities only: ``pull`` = Γn/(L₁‖C‖₁) with a public or noisy number of records.

    ``"published"``: T = (Γn√ρ′/(L₁‖C‖₁))^⅔ of Lemma 3.3, with ρ′ the part of one regression (``joint`` says how many
    one unit moves). ``"tight"``: half of that with the logarithm of its error bound divided out first,
    ½(Γn√ρ′/(L₁‖C‖₁ ln|S|))^⅔, at least 8; under a pure budget, where noise grows with T and not with √T, the power ½.
    """
    linear, squared = joint
    logarithm = math.log(max(vertices, 2)) if variant == "tight" else 1.0
    half = 0.5 if variant == "tight" else 1.0
    if isinstance(budget, PureDP):
        steps = half * math.sqrt(pull * float(budget.epsilon / linear) / logarithm)
    else:
        rho = budget.to_zcdp().rho if isinstance(budget, ApproxDP) else _rho(budget)
        steps = half * (pull * math.sqrt(rho / squared) / logarithm) ** (2 / 3)
    least = LEAST_STEPS if not isinstance(budget, PureDP) else LEAST_STEPS // 2
    return int(min(max(math.floor(steps), least), MOST_STEPS)) - 1


def told(
    size: float, vertices: int, joint: tuple[Fraction, Fraction] | tuple[int, int], steps: int, budget: Budget
) -> float:
    """The least correlation that so many steps tell from none: its gradient, half of it for each record, is at least
    the noise among all vertices, ln|S| times the scale b, for Δ = ½ as at w = 0."""
    linear, squared = joint
    if isinstance(budget, PureDP):
        scale = float(steps * linear / budget.epsilon)
    else:
        rho = budget.to_zcdp().rho if isinstance(budget, ApproxDP) else _rho(budget)
        scale = 0.5 * math.sqrt(steps * float(squared) / (2 * float(rho)))
    return 2 * scale * math.log(max(vertices, 2)) / max(size, 1.0)


def _rho(budget: Budget) -> Fraction:
    assert isinstance(budget, ZCDP)
    return budget.rho
