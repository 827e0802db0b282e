"""Composition and conversion, for planning: what the paper states beside what is true. The curator has its own books.

[000] Lemma 2.11 = [001] Lemma 2.15 (which keeps the second half only); [000] Lemma 2.10 = [001] Lemma 2.14.
"""

from __future__ import annotations

import math

from ...arguments import check_positive, check_whole
from .bound import probability


def strong_composition(
    steps: int, epsilon: float, delta_each: float = 0.0, *, slack: float = 1e-6
) -> tuple[float, float]:
    """(ε, δ) of ``steps`` adaptive (ε₀, δ_t)-DP mechanisms: the least of two proved forms.

    ε = min(Tε₀, ε₀√(2T ln 1/δ₀) + Tε₀ tanh(ε₀/2)), δ = δ₀ + Σδ_t (δ₀ = 0 when the first is less).

    Argument: a privacy loss lies in [−ε₀, ε₀] and has mean at most ε₀ tanh(ε₀/2); Azuma's inequality gives the rest
    (Dwork–Rothblum–Vadhan 2010, with the mean of Kairouz–Oh–Viswanath 2015).
    """
    check_whole(1, steps=steps)
    check_positive(epsilon=epsilon)
    probability(slack=slack)
    basic = steps * epsilon
    strong = epsilon * math.sqrt(2 * steps * math.log(1 / slack)) + basic * math.tanh(epsilon / 2)
    return (basic, steps * delta_each) if basic <= strong else (strong, slack + steps * delta_each)


def strong_composition_as_printed(
    steps: int, epsilon: float, delta_each: float = 0.0, *, slack: float = 1e-6
) -> tuple[float, float]:
    """[000] Lemma 2.11.1: ε₀√(6T ln 1/δ₀) for ε₀ ≤ 1.

    **Not true as printed**: without a bound on T the mean of the privacy loss, Tε₀ tanh(ε₀/2), outgrows it (ε₀ = 1,
    T = 1,000, δ₀ = 0.1: 118 is claimed, and randomised response already needs more than 450). It holds where it is at
    least :func:`strong_composition`, that is for Tε₀² below some ln(1/δ₀)·4.
    """
    check_whole(1, steps=steps)
    check_positive(epsilon=epsilon)
    probability(slack=slack)
    return epsilon * math.sqrt(6 * steps * math.log(1 / slack)), slack + steps * delta_each


def concentrated_composition(steps: int, rho: float) -> float:
    """[001] Lemma 2.15 ([000] Lemma 2.11.2): ρ adds up."""
    check_whole(1, steps=steps)
    check_positive(rho=rho)
    return steps * rho


def rho_of_epsilon(epsilon: float) -> float:
    """ε-DP is ρ-zCDP: ε tanh(ε/2), never more than the ε²/2 of [001] Lemma 2.14.1."""
    check_positive(epsilon=epsilon)
    return epsilon * math.tanh(epsilon / 2)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """ρ-zCDP is (ε, δ)-DP for ρ + 2√(ρ ln 1/δ), [001] Lemma 2.14.2 with ε²/2 = ρ. Sound, and wasteful by 8–28 %."""
    check_positive(rho=rho)
    probability(delta=delta)
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def tight_epsilon_of_rho(rho: float, delta: float) -> float:
    """The least ε that Canonne–Kamath–Steinke 2020 prove: the minimum over α > 1 of
    αρ + ln(1/(αδ))/(α − 1) + ln(1 − 1/α)."""
    check_positive(rho=rho)
    probability(delta=delta)

    def at(log_gap: float) -> float:
        gap = math.exp(log_gap)
        return (1 + gap) * rho + (-math.log(delta) - math.log1p(gap)) / gap + log_gap - math.log1p(gap)

    low, high, golden = -20.0, 40.0, (math.sqrt(5) - 1) / 2
    for _ in range(120):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if at(a) <= at(b) else (a, high)
    return max(at((low + high) / 2), 0.0)


def rho_within(epsilon: float, delta: float) -> float:
    """The largest ρ with ρ-zCDP ⇒ (ε, δ)-DP by :func:`tight_epsilon_of_rho`."""
    check_positive(epsilon=epsilon)
    probability(delta=delta)
    low, high = 0.0, epsilon + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle and tight_epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low
