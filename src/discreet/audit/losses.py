"""Privacy losses for the change that was seen between two neighbours, and whether they add up to a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..privacy.accounting import Accountant, Cost
from ..privacy.budget import Budget
from ..privacy.mechanisms import NoiseCall


def threshold_loss(call: NoiseCall, change: np.ndarray) -> Cost:
    """(ε, δ) of a thresholded histogram for the change that was seen."""
    assert call.threshold is not None
    l1, linf, l0 = sum(map(abs, change)), max(map(abs, change)), sum(1 for c in change if c)
    q = math.exp(-1 / call.scale)
    tail = l0 * q ** max(call.threshold + 1 - int(linf), 1) / (1 + q)
    return Cost.approx(Fraction(int(l1)) / Fraction(call.scale), Fraction(tail) * (1 - Fraction(1, 10**9)))


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
        if not accountant.fits(loss):
            return False
        accountant.charge(loss)
    return True


def delta_of_tests(budget: Budget, losses: Sequence[Cost]) -> Fraction:
    """Of an (ε, δ) budget with several steps, the part of δ that steps with their own δ have used."""
    own = sum((loss.rho_delta for loss in losses), Fraction(0))
    total = getattr(budget, "delta", Fraction(0))
    return own if len(losses) > 1 and 0 < own < total else Fraction(0)
