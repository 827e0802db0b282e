"""Privacy losses for the change that was seen between two neighbours, and whether they add up to a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..privacy.accounting import Accountant, Cost
from ..privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP
from ..privacy.gaussian import cost_of
from ..privacy.mechanisms import NoiseCall


def threshold_loss(call: NoiseCall, change: np.ndarray) -> Cost:
    """(ε, δ) of a thresholded histogram for the change that was seen."""
    assert call.threshold is not None
    l1, linf, l0 = sum(map(abs, change)), max(map(abs, change)), sum(1 for c in change if c)
    if call.kind == "gaussian-threshold":
        l2, away = sum(int(c) ** 2 for c in change), call.threshold + 1 - int(linf)
        tail = l0 * _gaussian_tail(call.scale, max(away, 1))
        rho = Fraction(l2) / (2 * Fraction(call.scale) ** 2)
        return Cost(rho=rho, rho_delta=Fraction(tail) * (1 - Fraction(1, 10**9)), mu_squared=cost_of(l2, call.scale))
    q = math.exp(-1 / call.scale)
    tail = l0 * q ** max(call.threshold + 1 - int(linf), 1) / (1 + q)
    return Cost.approx(Fraction(int(l1)) / Fraction(call.scale), Fraction(tail) * (1 - Fraction(1, 10**9)))


def _gaussian_tail(scale: float, away: int) -> float:
    """P(noise ≥ away) of the discrete Gaussian, summed up."""
    reach = math.ceil(40 * scale) + 40
    weight = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    return float(weight[reach + away :].sum() / weight.sum())


def instability_loss(call: NoiseCall, here: int, there: int) -> Cost:
    """(ε, δ) of a test whose outcome differs: an outcome comes out with probability P(noise > τ − distance)."""
    assert call.threshold is not None
    q = math.exp(-1 / call.scale)
    steps = call.threshold + 1 - max(here, there)
    tail = q**steps / (1 + q) if steps >= 1 else 1 - q ** (1 - steps) / (1 + q)
    epsilon = Fraction(abs(here - there)) / Fraction(call.scale)
    return Cost.approx(epsilon, Fraction(tail) * (1 - Fraction(1, 10**9)))


def all_fit(accountant: Accountant, losses: Sequence[Cost]) -> bool:
    for loss in losses:
        after = accountant.spending.plus(loss)
        if not accountant.admits(after):
            return False
        accountant.spending = after
    return True


def delta_of_tests(budget: Budget, losses: Sequence[Cost]) -> Fraction:
    """Of an (ε, δ) budget with several steps, the part of δ that steps with their own δ have used."""
    own = sum((loss.rho_delta for loss in losses), Fraction(0))
    total = getattr(budget, "delta", Fraction(0))
    return own if len(losses) > 1 and 0 < own < total else Fraction(0)


def within(budget: Budget, losses: Sequence[Cost], *, is_share: bool = False) -> bool:
    """Whether losses add up to no more. Those of one pair are fixed numbers: any sound way to add them up may show it.

    The δ of a step whose share has none is held against the δ of the whole.
    """
    if not isinstance(budget, ApproxDP):
        own = sum((loss.rho_delta for loss in losses), Fraction(0))
        aside = own if is_share and isinstance(budget, ZCDP | GaussianDP) else Fraction(0)
        return all_fit(Accountant(budget, delta_for_tests=aside), losses)
    own = delta_of_tests(budget, losses)
    ways = [Accountant(budget, delta_for_tests=own), Accountant(budget, composition="basic")]
    gaussian = ApproxDP(budget.epsilon, budget.delta - own).to_gaussian()
    if gaussian is not None:
        ways.append(Accountant(gaussian, delta_for_tests=own))
    return any(all_fit(accountant, losses) for accountant in ways)
