"""What private Frank–Wolfe promises: Lemma 3.3, Corollary 3.4 and Theorem 3.6 of [001], with their constants.

The paper states rates, O(·). The bounds here are numbers that hold, for the mechanisms as they are implemented. Their
proof, with h_t = L(w_t) − min L the excess empirical risk, Γ the curvature and e_t the loss of linear objective by
choosing a vertex with noise:

1. *Descent.* By the definition of Γ, h_{t+1} ≤ (1 − μ_t)h_t + μ_t e_t + ½μ_t²Γ. With μ_t = 2/(t+2) and both sides times
   (t+1)(t+2) that is (t+1)(t+2)h_{t+1} ≤ t(t+1)h_t + 2(t+1)e_t + 2Γ(t+1)/(t+2). Added up over t = 1 … T−1:
   h_T ≤ max e_t + 2(h_1 + Γ(T−1))/(T(T+1)). The tight variant ends with the average of its last iterates; as L is
   convex, its h is at most the average of theirs.
2. *Selection.* Scores are sums over n records divided by ‖C‖₁. The exponential mechanism at scale b misses the best of
   |S| scores by more than b·ln(|S|/β′) with probability at most β′; Laplace noise, twice that. With β′ = β/(T−1) all
   steps hold together. A step of the tight variant has b = Δ√((T−1)/2ρ), of the published one b = 2Δ√((T−1)/2ρ), with
   Δ = L₁ under add-remove and 2L₁ under replace-one. So e_t ≤ ‖C‖₁/n · b · ln(|S|(T−1)/β), published twice.
3. *Rounding.* A record's term is off by at most half a unit γ of the grid, so e_t grows by at most ‖C‖₁γ.
4. *Sampling* (Theorem 3.6). For ‖w‖₁ ≤ λ and ‖x‖_∞ ≤ 1, |L_P(w) − L(w)| ≤ 2λ√(2 ln(2q)/n) + λ√(ln(2/β)/2n) for all w
   at once (Rademacher complexity of the ball and bounded differences: one record moves L by at most λ/n), and
   ≤ λ√(ln(2/β)/2n) for the one w*. The paper's statement of this term lacks √ln q, which its source has.

[001] Zhang, Kamath, Kulkarni, Wu, *Privately learning Markov random fields*, 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ...arguments import check_positive
from ...errors import InputError

Variant = Literal["tight", "published"]
Relation = Literal["add-remove", "replace-one"]
GRID = 1 / 1024  # of a gradient, as a part of its bound


@dataclass(frozen=True)
class Guarantee:
    """An upper bound on the excess risk that holds with probability at least 1 − β, in parts."""

    steps: int
    descent: float
    selection: float
    rounding: float
    sampling: float
    beta: float

    @property
    def total(self) -> float:
        return self.descent + self.selection + self.rounding + self.sampling


def lemma_3_3(
    *,
    curvature: float,
    lipschitz: float,
    norm: float,
    vertices: int,
    size: float,
    rho: float,
    steps: int | None = None,
    start: float | None = None,
    beta: float = 0.05,
    variant: Variant = "tight",
    relation: Relation = "replace-one",
    grid: float = GRID,
) -> Guarantee:
    """Excess empirical risk of Algorithm 1 for any loss and polytope.

    Parameters
    ----------
    curvature, lipschitz, norm, vertices:
        Γ, L₁, ‖C‖₁ and |S|.
    size, rho:
        n and ρ.
    steps:
        T; the paper's (Γn√ρ/(L₁‖C‖₁))^⅔ by default, at least 2.
    start:
        h_1, the excess risk of the first point; 2L₁‖C‖₁ by default, the most there can be.
    """
    check_positive(curvature=curvature, lipschitz=lipschitz, norm=norm, size=size, rho=rho)
    if not 0 < beta < 1:
        raise InputError(f"beta must lie strictly between 0 and 1, got {beta}")
    if vertices < 1:
        raise InputError(f"a polytope has at least one vertex, got {vertices}")
    pull = curvature * size * math.sqrt(rho) / (lipschitz * norm)
    T = steps if steps is not None else max(2, math.ceil(pull ** (2 / 3)))
    if T < 2:
        raise InputError(f"steps must be at least 2 (one noisy step), got {T}")
    first = 2 * lipschitz * norm if start is None else start
    moved = lipschitz * (1 if relation == "add-remove" else 2)
    scale = moved * math.sqrt((T - 1) / (2 * rho)) * (1 if variant == "tight" else 2)
    missed = scale * math.log(vertices * (T - 1) / beta) * (1 if variant == "tight" else 2)
    return Guarantee(
        steps=T,
        descent=_descent(first, curvature, T, variant),
        selection=norm / size * missed,
        rounding=norm * lipschitz * grid,
        sampling=0.0,
        beta=beta,
    )


def _descent(first: float, curvature: float, T: int, variant: Variant) -> float:
    """Of w_T, or of the average of w_t over the second half of the T − 1 noisy steps.

    Sums of 1/(t(t+1)) and of (t−1)/(t(t+1)) = 2/(t+1) − 1/t from a to T, in closed form: T may be astronomical.
    """
    if variant == "published":
        return 2 * (first + curvature * (T - 1)) / (T * (T + 1))
    a = (T - 1) // 2 + 2
    once = 1 / a - 1 / (T + 1)
    rest = 2 * (_harmonic(T + 1) - _harmonic(a)) - (_harmonic(T) - _harmonic(a - 1))
    return 2 * (first * once + curvature * rest) / (T + 1 - a)


def _harmonic(n: int) -> float:
    """1 + ½ + … + 1/n; beyond 100 by the asymptotic series, right to 1e-12."""
    if n <= 100:
        return math.fsum(1 / t for t in range(1, n + 1))
    return math.log(n) + 0.57721566490153286 + 1 / (2 * n) - 1 / (12 * n**2) + 1 / (120 * n**4)


def corollary_3_4(
    radius: float, features: int, size: float, rho: float, *, steps: int | None = None, beta: float = 0.05,
    variant: Variant = "tight", relation: Relation = "replace-one",
) -> Guarantee:  # fmt: skip
    """Excess empirical risk of logistic regression on the ℓ1 ball: L₁ = 1 (the paper has 2), Γ ≤ λ², h_1 ≤ ln 2 at 0.

    T is the paper's λ^⅔(n√ρ)^⅔ by default.
    """
    return lemma_3_3(
        curvature=radius**2, lipschitz=1.0, norm=radius, vertices=2 * features, size=size, rho=rho, steps=steps,
        start=math.log(2), beta=beta, variant=variant, relation=relation,
    )  # fmt: skip


def theorem_3_6(
    radius: float, features: int, size: float, rho: float, *, steps: int | None = None, beta: float = 0.05,
    variant: Variant = "tight", relation: Relation = "replace-one",
) -> Guarantee:  # fmt: skip
    """Excess *true* risk for independent records: Corollary 3.4 with β/3, and the sampling of the records with 2β/3."""
    empirical = corollary_3_4(
        radius, features, size, rho, steps=steps, beta=beta / 3, variant=variant, relation=relation
    )
    deviation = radius * math.sqrt(math.log(2 / (beta / 3)) / (2 * size))
    uniform = 2 * radius * math.sqrt(2 * math.log(2 * features) / size)
    sampling = uniform + 2 * deviation
    return Guarantee(empirical.steps, empirical.descent, empirical.selection, empirical.rounding, sampling, beta)


def paper_rate(radius: float, features: int, size: float, rho: float, beta: float = 0.05) -> float:
    """Theorem 3.6 as printed, with its hidden constant taken as one: for comparing settings, not for promises."""
    optimisation: float = radius ** (4 / 3) * math.log(size * features / beta) / (size * math.sqrt(rho)) ** (2 / 3)
    return optimisation + radius * math.log(1 / beta) / math.sqrt(size)
