"""From a share of the budget to noise: which distribution, what scale, and what it costs. Public quantities only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from ..errors import BudgetError, CostError, InputError
from ..measurement import Noise
from . import gaussian, mechanisms
from .accounting import Cost
from .budget import ZCDP, Amount, ApproxDP, Budget, GaussianDP, PureDP, rho_of_pure, shares
from .mechanisms import NoiseCall
from .query import Query
from .unit import PrivacyUnit, Sensitivity

NoiseChoice = Literal["auto", "laplace", "gaussian"]
SelectionChoice = Literal["auto", "laplace"]
LARGEST_DRAW = 1 << 28  # cells: two gigabytes, half an hour of noise


@dataclass(frozen=True)
class NoisePlan:
    """The noise of each part of a query, and the costs to book."""

    calls: tuple[NoiseCall, ...]
    costs: tuple[Cost, ...]
    cells: tuple[int, ...]

    @property
    def expected_squared_error(self) -> float:
        """Sum over all cells, in grid units."""
        return sum(n * noise_of(call).variance for n, call in zip(self.cells, self.calls, strict=True))

    @property
    def seconds(self) -> float:
        """Forecast of the time to draw the noise."""
        return sum(mechanisms.forecast_seconds(c.kind, n) for n, c in zip(self.cells, self.calls, strict=True))


def noise_of(call: NoiseCall) -> Noise:
    return Noise("laplace" if call.kind == "laplace" else "gaussian", call.scale)


_NORMS = {
    "laplace": ("l1",),
    "gaussian": ("l2_squared", "linf"),
    "threshold": ("l1", "linf", "l0"),
    "stability": ("l1",),
    "gaussian-threshold": ("l2_squared", "linf", "l0"),
}


def drawn(calls: Iterable[NoiseCall], unit: PrivacyUnit) -> dict[str, Any]:
    """What a step says of its noise, so that anybody can compute from it what the step costs: of each draw its kind,
    its scale and how far one unit moves what it is added to (equal ones in a row are counted), and for which unit."""
    draws = []
    for call, equal in itertools.groupby(calls):
        norms = {name: getattr(call.sensitivity, name) for name in _NORMS.get(call.kind, ("linf",))}
        above: dict[str, Any] = {} if call.threshold is None else {"threshold": call.threshold}
        if call.delta is not None:
            above["delta"] = str(call.delta)
        draws.append({"kind": call.kind, "scale": call.scale, **norms, **above, "times": len(list(equal))})
    return {"draws": draws, "unit": moved_by(unit)}


def moved_by(unit: PrivacyUnit) -> dict[str, Any]:
    """What of a unit decides how far it moves a sum."""
    return {"max_rows": unit.max_rows, "relation": unit.relation}


def plan_noise(
    query: Query,
    unit: PrivacyUnit,
    share: Budget,
    *,
    noise: NoiseChoice = "auto",
    weights: Sequence[Amount] | None = None,
) -> NoisePlan:
    """Calibrate the noise of every part; ``auto`` takes the distribution with the smaller expected squared error."""
    if noise not in ("auto", "laplace", "gaussian"):
        raise InputError(f"noise must be 'auto', 'laplace' or 'gaussian', got {noise!r}")
    parts = query.parts
    if not parts:
        raise InputError("the query releases nothing; name at least one clique")
    if weights is not None and len(weights) != len(parts):
        raise InputError(f"{len(parts)} tables need as many weights, got {len(weights)}")
    chosen_weights = [1] * len(parts) if weights is None else list(weights)
    if any(w == 0 for w in chosen_weights):
        raise InputError("a table with weight zero would be all noise; leave it out of the query")
    cells = tuple(p.cells for p in parts)
    _check_cost(query, sum(cells))
    sensitivities = query.sensitivity(unit)
    for part, s in zip(parts, sensitivities, strict=True):
        if s.l1 == 0:
            raise InputError(f"no record moves {part.label!r}: it is public, or its grid is too coarse; leave it out")
    plans = []
    if noise == "laplace" or (noise == "auto" and not isinstance(share, GaussianDP)):
        plans.append(_laplace_plan(sensitivities, share, chosen_weights, cells))
    if noise != "laplace" and not isinstance(share, PureDP):
        plans.append(_gaussian_plan(sensitivities, share, chosen_weights, cells))
    if not plans:
        raise BudgetError(
            f"Gaussian noise is not pure DP, and the share is {share}; "
            "use noise='laplace', or give ZCDP(ρ) or ApproxDP(ε, δ)"
        )
    return min(plans, key=lambda plan: plan.expected_squared_error)


def require_room(share: Budget, moved: int = 1) -> None:
    """Refuse a share with which nothing could be asked: not even the noise of a single count would fit, or of sums that
    a unit moves by so much."""
    match share:
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
            mechanisms.laplace_scale(moved, epsilon)
        case ZCDP(rho=rho):
            mechanisms.gaussian_scale(moved**2, rho)
        case GaussianDP(mu_squared=mu_squared):
            _scale_within(moved**2, mu_squared)


def _check_cost(query: Query, cells: int) -> None:
    """Refuse, before anything is touched or spent, what could not be drawn or held."""
    if cells > LARGEST_DRAW:
        part = max(query.parts, key=lambda p: p.cells)
        hours = mechanisms.forecast_seconds("laplace", cells) / 3600
        raise CostError(
            f"the tables have {cells:,} cells in all, {part.cells:,} of them in {part.label!r}; noise for them would "
            f"take some {hours:,.0f} hours. The limit is {LARGEST_DRAW:,} cells: measure smaller tables, coarsen "
            "columns in the schema, or ask for the large cells only (Curator.large_cells)"
        )


def _laplace_plan(
    sensitivities: Sequence[Sensitivity], share: Budget, weights: Sequence[Amount], cells: tuple[int, ...]
) -> NoisePlan:
    match share:
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon) | GaussianDP(epsilon=Fraction() as epsilon):
            epsilons = shares(epsilon, weights)
        case ZCDP(rho=rho):  # m tables are m steps: ε_t·tanh(ε_t/2) each
            epsilons = [ZCDP(r).to_pure().epsilon for r in shares(rho, weights)]
        case _:
            raise BudgetError(f"a share is PureDP, ZCDP or ApproxDP, got {share!r}")
    calls = tuple(
        NoiseCall("laplace", mechanisms.laplace_scale(s.l1, e), s) for s, e in zip(sensitivities, epsilons, strict=True)
    )
    return NoisePlan(calls, tuple(Cost.pure(Fraction(c.sensitivity.l1) / Fraction(c.scale)) for c in calls), cells)


def _gaussian_plan(
    sensitivities: Sequence[Sensitivity], share: Budget, weights: Sequence[Amount], cells: tuple[int, ...]
) -> NoisePlan:
    if isinstance(share, ApproxDP):
        plans = (
            _direct_gaussian(sensitivities, share, weights, cells),
            _one_gaussian(sensitivities, share, weights, cells),
            _zcdp_gaussian(sensitivities, share.to_zcdp(), weights, cells),
        )
        return min((p for p in plans if p is not None), key=lambda plan: plan.expected_squared_error)
    if isinstance(share, GaussianDP):
        return _shared_gaussian(sensitivities, share, weights, cells)
    assert isinstance(share, ZCDP)
    return _zcdp_gaussian(sensitivities, share, weights, cells)


def _zcdp_gaussian(
    sensitivities: Sequence[Sensitivity], share: ZCDP, weights: Sequence[Amount], cells: tuple[int, ...]
) -> NoisePlan:
    parts = zip(sensitivities, shares(share.rho, weights), strict=True)
    return _gaussians(sensitivities, [mechanisms.gaussian_scale(s.l2_squared, r) for s, r in parts], cells)


def _shared_gaussian(
    sensitivities: Sequence[Sensitivity], share: GaussianDP, weights: Sequence[Amount], cells: tuple[int, ...]
) -> NoisePlan:
    parts = zip(sensitivities, shares(share.mu_squared, weights), strict=True)
    return _gaussians(sensitivities, [_scale_within(s.l2_squared, m) for s, m in parts], cells)


def _scale_within(l2_squared: int, mu_squared: Fraction) -> float:
    """The scale for μ², refused where the noise would not fit the whole numbers that it is added to."""
    return mechanisms.fitting(gaussian.scale_for(l2_squared, mu_squared))


def _gaussians(sensitivities: Sequence[Sensitivity], scales: Sequence[float], cells: tuple[int, ...]) -> NoisePlan:
    calls = tuple(NoiseCall("gaussian", scale, s) for scale, s in zip(scales, sensitivities, strict=True))
    return NoisePlan(calls, tuple(_gaussian_cost(c) for c in calls), cells)


def _one_gaussian(
    sensitivities: Sequence[Sensitivity], share: ApproxDP, weights: Sequence[Amount], cells: tuple[int, ...]
) -> NoisePlan | None:
    """One (ε, δ) step for a batch of any scales: as one Gaussian, without the loss of a conversion through zCDP."""
    within = share.to_gaussian()
    if within is None:
        return None
    calls = _shared_gaussian(sensitivities, within, weights, cells).calls
    rho = sum((_gaussian_rho(c) for c in calls), Fraction(0))
    return NoisePlan(calls, (Cost(epsilon=share.epsilon, epsilon_delta=share.delta, rho=rho),), cells)


def _direct_gaussian(
    sensitivities: Sequence[Sensitivity], share: Budget, weights: Sequence[Amount], cells: tuple[int, ...]
) -> NoisePlan | None:
    """One (ε, δ) step for a batch of equal scales in which every changed cell moves by one: some 7 % less noise."""
    unit_moves = all(s.linf == 1 and s.l1 == s.l2_squared == s.l0 for s in sensitivities)
    if not isinstance(share, ApproxDP) or len(set(weights)) > 1 or not unit_moves:
        return None
    scale = mechanisms.gaussian_scale_direct(sum(s.l0 for s in sensitivities), share.epsilon, share.delta)
    if scale is None:
        return None
    calls = tuple(NoiseCall("gaussian", scale, s) for s in sensitivities)
    rho = sum((_gaussian_rho(c) for c in calls), Fraction(0))
    return NoisePlan(calls, (Cost(epsilon=share.epsilon, epsilon_delta=share.delta, rho=rho),), cells)


def _gaussian_cost(call: NoiseCall) -> Cost:
    return Cost(rho=_gaussian_rho(call), mu_squared=gaussian.cost_of(call.sensitivity.l2_squared, call.scale))


def _gaussian_rho(call: NoiseCall) -> Fraction:
    return Fraction(call.sensitivity.l2_squared) / (2 * Fraction(call.scale) ** 2)


def plan_selection(linf: int, share: Budget, mechanism: SelectionChoice = "auto") -> tuple[NoiseCall, Cost]:
    """Permute-and-flip for pure shares, the exponential mechanism for the others; or Laplace noise and the largest."""
    if mechanism not in ("auto", "laplace"):
        raise InputError(f"mechanism must be 'auto' or 'laplace', got {mechanism!r}")
    if linf < 1:
        raise InputError(f"no record moves these scores (sensitivity {linf}): they are public; take the best yourself")
    sensitivity = Sensitivity(linf, linf**2, linf, 1)
    if mechanism == "laplace":
        converted = share.to_zcdp() if isinstance(share, ApproxDP) else share
        pure = converted.to_pure() if isinstance(converted, ZCDP) else converted
        assert isinstance(pure, PureDP)
        scale = mechanisms.selection_scale_pure(linf, pure.epsilon)
        return NoiseCall("noisy-max", scale, sensitivity), Cost.pure(Fraction(2 * linf) / Fraction(scale))
    if isinstance(share, PureDP):
        scale = mechanisms.selection_scale_pure(linf, share.epsilon)
        return NoiseCall("permute-and-flip", scale, sensitivity), Cost.pure(Fraction(2 * linf) / Fraction(scale))
    if not isinstance(share, ZCDP | ApproxDP):
        raise BudgetError(f"a share is PureDP, ZCDP or ApproxDP, got {share!r}")
    rho = share.rho if isinstance(share, ZCDP) else share.to_zcdp().rho
    scale = mechanisms.selection_scale_zcdp(linf, rho)
    # Gumbel noise of scale b: range 2Δ/b, hence 2Δ/b-DP and Δ²/(2b²)-zCDP.
    epsilon = Fraction(2 * linf) / Fraction(scale)
    return NoiseCall("exponential", scale, sensitivity), Cost(
        epsilon=epsilon, rho=min(Fraction(linf) ** 2 / (2 * Fraction(scale) ** 2), rho_of_pure(epsilon))
    )


def plan_threshold(sensitivity: Sensitivity, share: Budget) -> tuple[NoiseCall, Cost]:
    """Laplace noise on the non-zero counts and a threshold that hides the keys of any one unit but for δ."""
    if not isinstance(share, ApproxDP):
        raise BudgetError(
            f"releasing only the cells that are large needs a δ; give the share as ApproxDP(ε, δ) instead of {share}"
        )
    scale = mechanisms.laplace_scale(sensitivity.l1, share.epsilon)
    threshold = mechanisms.threshold_for(sensitivity, scale, share.delta)
    return NoiseCall("threshold", scale, sensitivity, threshold), Cost.approx(share.epsilon, share.delta)


def plan_gaussian_threshold(sensitivity: Sensitivity, share: Budget, delta: Fraction) -> tuple[NoiseCall, Cost]:
    """Gaussian noise on the counts that occur, and a threshold that hides the keys of any one unit but for δ."""
    match share:
        case ZCDP(rho=rho):
            scale = mechanisms.gaussian_scale(sensitivity.l2_squared, rho)
        case GaussianDP(mu_squared=mu_squared):
            scale = _scale_within(sensitivity.l2_squared, mu_squared)
        case _:
            raise BudgetError(
                f"levels that nobody has listed are found within an (ε, δ) budget, which has a δ to spare, not {share}"
            )
    threshold = mechanisms.gaussian_threshold(sensitivity, scale, delta)
    call = NoiseCall("gaussian-threshold", scale, sensitivity, threshold, delta)
    return call, cost_of_gaussian_threshold(sensitivity.l2_squared, scale, delta)


def cost_of_gaussian_threshold(l2_squared: int, scale: float, delta: Fraction) -> Cost:
    """δ-approximately ρ-zCDP; and among Gaussian steps its μ², with the same δ set aside."""
    rho = Fraction(l2_squared) / (2 * Fraction(scale) ** 2)
    return Cost(rho=rho, rho_delta=delta, mu_squared=gaussian.cost_of(l2_squared, scale))


def amplified(share: Budget, rate: Fraction, unit: PrivacyUnit) -> Budget:
    """What may be spent on a Poisson sample so that the cost to the whole table is ``share``.

    Under add-remove, (ε′, δ′)-DP on the sample is (ln(1 + q(e^ε′ − 1)), qδ′)-DP on the table [BBG18, Theorem 8]. For
    zCDP and under replace-one no amplification is taken: the share itself may be spent, as samples of neighbours
    differ by at most the same unit. [BBG18] Balle, Barthe, Gaboardi, NeurIPS 2018.
    """
    if not isinstance(share, PureDP | ZCDP | ApproxDP):
        raise BudgetError(f"a sample is asked with a share in PureDP, ZCDP or ApproxDP, got {share!r}")
    if unit.relation != "add-remove" or isinstance(share, ZCDP):
        return share
    e = float(share.epsilon)
    # Beyond 700, e^ε overflows and the 1 in it is far below rounding.
    inner = math.log1p(math.expm1(e) / float(rate)) if e < 700 else e - math.log(rate)
    epsilon = Fraction(inner) * (1 - Fraction(1, 2**44))
    if isinstance(share, PureDP):
        return PureDP(epsilon)
    return ApproxDP(epsilon, min(share.delta / rate, Fraction(1, 2)))
