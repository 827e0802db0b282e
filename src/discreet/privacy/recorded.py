"""What recorded draws of noise cost: the theorems of :mod:`.mechanisms`, read from the scale to the cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..spelling import written
from . import gaussian, mechanisms
from .accounting import Cost, Spending
from .budget import ZCDP, ApproxDP, Budget, PureDP, rho_of_pure
from .calibration import cost_of_gaussian_threshold
from .subsampled import epsilon_of_rounds
from .unit import Sensitivity, as_probability

_MOST_ROUNDS = 10**6  # the accountant errs by some 1e-15 a round
_LEAST_SCALE, _LARGEST_CURVE = 1e-3, 2e5  # of σ√m, for which the exact curve of Gaussian noise is computed: memory


class Contradiction(Exception):
    """What a step says cannot be so."""


def costs_of(draws: Sequence[Mapping[str, Any]], share: Budget) -> Counter[Cost]:
    """What the draws of one step cost: the theorems of :mod:`.mechanisms`, read from the scale to the cost."""
    direct = _direct_cost(draws, share)
    if direct is not None:
        return Counter([direct])
    costs: Counter[Cost] = Counter()
    for draw in draws:
        costs[_cost(draw, share)] += draw["times"]
    return costs


def _cost(draw: Mapping[str, Any], share: Budget) -> Cost:
    kind, scale = draw["kind"], Fraction(draw["scale"])
    match kind:
        case "laplace":
            return Cost.pure(Fraction(draw["l1"]) / scale)
        case "gaussian":
            moved = draw["l2_squared"]
            return Cost(rho=Fraction(moved) / (2 * scale**2), mu_squared=gaussian.cost_of(moved, draw["scale"]))
        case "permute-and-flip" | "noisy-max":
            return Cost.pure(Fraction(2 * draw["linf"]) / scale)
        case "exponential":
            epsilon = Fraction(2 * draw["linf"]) / scale
            rho = min(Fraction(draw["linf"]) ** 2 / (2 * scale**2), rho_of_pure(epsilon))
            return Cost(epsilon=epsilon, rho=rho)
        case "gaussian-threshold":
            delta = written(draw["delta"])
            moved = Sensitivity(draw["l2_squared"], draw["l2_squared"], draw["linf"], draw["l0"])
            least = mechanisms.gaussian_threshold(moved, draw["scale"], delta)
            if draw["threshold"] < least:
                raise Contradiction(f"its threshold is {draw['threshold']}, and its δ needs at least {least}")
            return cost_of_gaussian_threshold(draw["l2_squared"], draw["scale"], delta)
    if kind not in ("threshold", "stability"):
        raise Contradiction(f"it has noise of a kind that is not known, {str(kind)[:40]!r}")
    if not isinstance(share, ApproxDP):
        raise Contradiction(f"it needs a δ, and its share is {share}")
    if kind == "threshold":
        moved = Sensitivity(draw["l1"], draw["l1"] ** 2, draw["linf"], draw["l0"])
        least = mechanisms.threshold_for(moved, draw["scale"], share.delta)
    else:
        least = mechanisms.stability_threshold(draw["scale"], share.delta)
    if draw["threshold"] < least:
        raise Contradiction(f"its threshold is {draw['threshold']}, and its δ needs at least {least}")
    if Fraction(draw["l1"]) / scale > share.epsilon:
        raise Contradiction(f"its noise of scale {draw['scale']:.6g} costs more than its share, {share}")
    return Cost.approx(share.epsilon, share.delta)


def aside_of(step: Mapping[str, Any], share: Budget) -> Fraction:
    """The δ that is set aside for thresholds among the steps."""
    aside = written(step.get("delta_for_tests", "0"))
    if aside and not (isinstance(share, ApproxDP) and 0 < aside < share.delta):
        raise Contradiction(f"it sets aside a δ that {share} does not have")
    return aside


def _direct_cost(draws: Sequence[Mapping[str, Any]], share: Budget) -> Cost | None:
    """(ε, δ) of a batch of Gaussian noise as a whole, where zCDP would cost more than the share: as one Gaussian; or,
    for one scale and cells that move by one, from the exact curve."""
    if not isinstance(share, ApproxDP) or any(draw["kind"] != "gaussian" for draw in draws):
        return None
    rho = sum(Fraction(d["times"] * d["l2_squared"]) / (2 * Fraction(d["scale"]) ** 2) for d in draws)
    whole = Cost(epsilon=share.epsilon, epsilon_delta=share.delta, rho=Fraction(rho))
    costs = [(draw["times"], gaussian.cost_of(draw["l2_squared"], draw["scale"])) for draw in draws]
    within = share.to_gaussian()
    known = within is not None and all(cost is not None for _, cost in costs)
    if known and within is not None and sum(times * (cost or 0) for times, cost in costs) <= within.mu_squared:
        return whole
    scales = {draw["scale"] for draw in draws}
    moved = sum(draw["l2_squared"] * draw["times"] for draw in draws)
    if len(scales) != 1 or any(draw["linf"] != 1 for draw in draws):
        return None
    (scale,) = scales
    if not _LEAST_SCALE < scale * math.sqrt(moved) < _LARGEST_CURVE:
        return None
    if not mechanisms.gaussian_delta(scale, moved, float(share.epsilon)) <= float(share.delta):  # nor what is no number
        return None
    return whole


def joint_cost(step: Mapping[str, Any], share: Budget, draws: Sequence[Mapping[str, Any]]) -> Cost:
    """One selection in each of many groups: the dearest one, times what all groups move together; see
    :meth:`.Curator.select_each`, which books its share as a whole."""
    notion = share.to_zcdp() if isinstance(share, ApproxDP) else share
    times = whole(step["k"], "k") * max(
        written(step["joint"]), Fraction(1)
    )  # the group that moves most moves by all of it
    for draw in draws:
        if draw["kind"] not in ("permute-and-flip", "noisy-max", "exponential") or draw["times"] != 1:
            raise Contradiction("it selects with noise that is not of a selection in each group")
        cost = _cost(draw, share)
        match notion:
            case PureDP(epsilon=epsilon):
                within = draw["kind"] != "exponential" and cost.epsilon is not None and times * cost.epsilon <= epsilon
            case ZCDP(rho=rho):
                within = cost.rho is not None and times * cost.rho <= rho
            case _:
                within = False
        if not within:
            raise Contradiction(f"its noise of scale {draw['scale']:.6g} costs more than its share, {share}")
    return Cost.of(notion)


def check_rounds(step: Mapping[str, Any], share: Budget) -> None:
    if not isinstance(share, ApproxDP) or dict(step["unit"])["relation"] != "add-remove":
        raise Contradiction("sampled rounds are accounted for with a δ, and under add-remove only")
    rounds, multiplier = whole(step["rounds"], "rounds"), float(step["multiplier"])
    if not 0 < multiplier < _MOST_ROUNDS or rounds > _MOST_ROUNDS:
        raise Contradiction(
            f"{rounds:,} rounds with noise of {multiplier:.6g} sensitivities are beyond what is computed"
        )
    cost = epsilon_of_rounds(multiplier, float(share.delta), float(as_probability(written(step["rate"]))), rounds)
    if not cost <= float(share.epsilon):
        raise Contradiction(f"its {rounds} rounds with noise of {multiplier:.6g} sensitivities cost more than {share}")


def draws_of(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    draws = step.get("draws")
    if not draws or "unit" not in step:
        raise Contradiction("it does not record its noise and the unit that this was made for; nothing can be computed")
    for draw in draws:
        whole(draw["times"], "times")
        for norm in ("l1", "l2_squared", "linf", "l0"):
            if norm in draw:
                whole(draw[norm], f"the sensitivity {norm}")
        if type(draw["scale"]) is not float or not 0 < draw["scale"] < math.inf:
            raise Contradiction(f"its noise has the scale {draw['scale']!r}")
    return list(draws)


def whole(value: Any, name: str) -> int:
    if type(value) is not int or value < 1:
        raise Contradiction(f"{name} is {str(value)[:40]}, and must be a whole number of at least 1")
    return value


def in_words(spending: Spending) -> str:
    told = []
    if spending.all_epsilon:
        delta = f", δ = {float(spending.epsilon_delta):.3g}" if spending.epsilon_delta else ""
        told.append(f"ε = {float(spending.epsilon):.6g}{delta}")
    if spending.all_zcdp:
        told.append(f"ρ = {float(spending.rho):.6g}")
    return " or ".join(told) or "nothing that can be added up"
