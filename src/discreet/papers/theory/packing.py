"""The lemmas behind the lower bounds: packing ([001] Lemmas 7.2, 7.3) and fingerprinting (Lemma 5.2), with constants.

Each bounds n from below for any algorithm that succeeds with probability s on every one of M instances whose right
answers exclude each other. Adjacency: replace-one as in the paper, or add-remove, where replacing is two steps; through
the *empty table* (n steps away from any table of n rows) the packing bounds are the same for both.
"""

from __future__ import annotations

import math

from ...arguments import check_positive
from ...errors import InputError
from .bound import probability


def pure_packing(log_instances: float, epsilon: float, *, success: float = 2 / 3) -> float:
    """Lemma 7.2 with D = n: n ≥ ln(sM)/ε. **Proved.**

    Any table of n rows is n steps from one reference table, on which answer i then has probability at least s e^{−εn};
    these M events exclude each other, so M s e^{−εn} ≤ 1.
    """
    check_positive(epsilon=epsilon)
    probability(success=success)
    return max(0.0, (log_instances + math.log(success)) / epsilon)


def coupled_packing(
    log_instances: float, epsilon: float, variation: float, *, success: float = 2 / 3, replace_one: bool = False
) -> float:
    """Lemma 7.2: n from D = n·(total variation between any two instances), by a maximal coupling. **Proved.**

    By Markov the coupled tables differ in more than cD rows with probability at most 1/c, so answer j has chance at
    least (s − 1/c)e^{−εcD} on instance i, and (M − 1)(s − 1/c)e^{−εcD} ≤ 1 − s; the best c is taken. The lemma is
    printed for s = 9/10 and used for 2/3, which costs only the constant. Under add-remove ε counts twice.
    """
    check_positive(epsilon=epsilon, variation=variation)
    probability(success=success)
    steps = epsilon if replace_one else 2 * epsilon
    others = log_instances + math.log1p(-math.exp(-log_instances)) if log_instances < 50 else log_instances

    def at(c: float) -> float:
        return (others + math.log((success - 1 / c) / (1 - success))) / (c * steps * variation)

    least = 1 / success
    return max(0.0, *(at(least * (1 + 0.02 * 1.15**i)) for i in range(60)))


def concentrated_packing(log_instances: float, rho: float, *, success: float = 2 / 3) -> float:
    """Lemma 7.3: n ≥ (√ln M − √ln(1/s))/√ρ. **Proved.**

    Group privacy: the answer on any table of n rows has Rényi divergence of order a at most a·n²ρ from that on one
    reference table. Some answer has probability at most 1/M there; comparing its two probabilities, a·n²ρ ≥
    (a ln s)/(a − 1) + ln M, and the best a gives n²ρ ≥ (√ln M − √ln(1/s))².
    """
    check_positive(rho=rho)
    probability(success=success)
    return max(0.0, math.sqrt(max(log_instances, 0.0)) - math.sqrt(-math.log(success))) / math.sqrt(rho)


def fano(log_instances: float, information: float, *, success: float = 2 / 3) -> float:
    """Without privacy: n ≥ (ln M − h(s) − (1 − s) ln(M − 1))/I, I the largest divergence of an instance from one
    reference distribution (Fano). **Proved.** What Table 1 calls folklore."""
    check_positive(information=information)
    probability(success=success)
    entropy = -success * math.log(success) - (1 - success) * math.log(1 - success)
    others = log_instances + math.log1p(-math.exp(-log_instances)) if 0 < log_instances < 50 else log_instances
    return max(0.0, (log_instances - entropy - (1 - success) * others) / information)


# -- fingerprinting --------------------------------------------------------------------------------------------------

MEANS = 1 / 3  # the means lie in [−1/3, 1/3]
_LARGEST_TERM = 2 * MEANS * 2 * (1 - math.sqrt(1 - MEANS**2))  # of one coordinate of Z, see below: ≈ 0.0763


def fingerprinting_as_printed(dimension: float, gamma: float, epsilon: float) -> float:
    """Lemma 5.2 ([KLSU19] Lemma 6.2): n ≥ d/(72γε), for δ ≤ 3/(64n) and γ² ≤ d/54."""
    check_positive(dimension=dimension, gamma=gamma, epsilon=epsilon)
    if gamma**2 > dimension / 54:
        raise InputError(f"the lemma needs γ² ≤ d/54 = {dimension / 54:.4g}, got γ² = {gamma**2:.4g}")
    return dimension / (72 * gamma * epsilon)


def fingerprinting(
    dimension: float, error: float, squared_error: float, epsilon: float, delta: float, *, replace_one: bool = False
) -> float:
    """Lemma 5.2, derived with its constants, for any δ and from the *first* moment of the error. **Proved.**

    f(X) ∈ [−a, a]^d, a = 1/3, estimates the means μ of a product distribution on {±1}^d; ``error`` ≥ E‖f − μ‖₂ and
    ``squared_error`` ≥ E‖f − μ‖₂². For μ uniform in [−a, a]^d and w(μ) = (a² − μ²)/(1 − μ²), integration by parts gives
    a coordinate E[w(μ)(f − μ)Σ_i(X_i − μ)] = 2E[μf] ≥ a²/3 − E(f − μ)². So Σ_i E Z_i ≥ d/27 − E‖f − μ‖₂², with Z_i the
    sum over coordinates for record i. Replace record i by a fresh one: Z_i becomes Z′_i with mean 0 and
    E|Z′_i| ≤ a² E‖f − μ‖₂, and (ε, δ)-DP bounds E Z_i ≤ sinh(ε) E|Z′_i| + (1 + e^{−ε})δB, |Z_i| ≤ B = 0.0763 d. Hence
    n ≥ (d/27 − E‖·‖²)/(sinh(ε) E‖·‖/9 + (1 + e^{−ε})δB). Under add-remove a replacement costs (2ε, (1 + e^ε)δ).
    """
    check_positive(dimension=dimension, error=error, epsilon=epsilon)
    if not replace_one:
        delta, epsilon = (1 + math.exp(epsilon)) * delta, 2 * epsilon
    signal = dimension * MEANS**2 / 3 - squared_error
    largest = _LARGEST_TERM * dimension
    leak = math.sinh(epsilon) * MEANS**2 * error + (1 + math.exp(-epsilon)) * delta * largest
    return max(0.0, signal / leak)
