"""Binary t-wise fields with every constant: [001] Theorem 4.2, Lemmas 4.4 and 4.5, Theorems 4.7 and 6.4.

Lemma 4.6 is proved in :func:`parities_by_leader`, by an argument of ours and with a smaller power of p.

Column i has P(Z_i = 1 | x) = σ(2∂_i h(x)); its regression on the q = Σ_{s<t} C(p−1, s) monomials of the others has
‖w*‖₁ ≤ 2λ, so L = 2λ in :mod:`.lemmas`, and its columns are δ-unbiased with δ = 1/(1 + e^{2λ}). Let d = w* − w, as a
polynomial, for a learned w with excess risk γ and ‖w‖₁ ≤ 2λ; |∂_I d(x)| ≤ 4λ everywhere.

* *In ℓ₁* (Theorem 4.2). Algorithm 4 takes a monomial from its first column, so ‖h − u‖₁ ≤ Σ_i ½‖d_i‖₁; each ‖d_i‖₁ ≤
  2α/p by :func:`.lemmas.polynomial_error`.
* *Averages of derivatives*. With the tail of :func:`.lemmas.derivative_tail`, κ = γe^{2λ}/(cδ^s) and |I| = s:
  E|∂_I d(X)| ≤ a + 4λκ/min(1, 2^s a²) for every a > 0. So E|∂_I d| ≤ m if κ ≤ (m − a)min(1, 2^s a²)/(4λ) for some a;
  the best is a = min(2m/3, 2^{−s/2}).
* *Maximal monomials* (Lemma 4.4, Algorithm 5). If I ∪ {i} is maximal then ∂_I w* = 2h̄(I ∪ {i}) is constant. With
  m = α the learned average is off by at most α/2; an average over n₂ other records, of numbers up to 2λ, by at most α/4
  more if n₂ ≥ 32λ² ln(2M/β)/α² (Hoeffding, M averages); parities off by α/(8λ) add at most α/8: 7α/8 in all.
* *Parities* (Lemma 4.5), by multiplicative weights over {−1, 1}^p that select among the 2K signed parities and end with
  the average of their T distributions. The relative entropy of the data to the hypothesis starts at most at p ln 2 and
  each step changes it by at most η²/2 − η⟨q_t, D − D_t⟩ (Hoeffding's lemma); added up, the chosen gaps are at most
  √(2p ln 2/T) on average. A chosen gap is at most (b/n) ln(2KT/β) below the largest, b = 2√(T/2ρ) (a parity moves by 2
  when a record is replaced, n public). The gap of the average is at most the average of the gaps. T: the best of a few.
* *The graph* (Theorem 6.4), by ℓ₁-constrained regressions in place of Sparsitron. Put I ∪ {i} down when the average of
  |∂_I w| over n₂ other records is at least η. If it is maximal and |h̄| ≥ η the average is at least 2η − m − dev, and if
  no monomial contains it at most m + dev; m = 2η/3 and dev = η/3 with n₂ ≥ 18λ² ln(2M/β)/η². Sets between the two
  contain true edges only.
"""

from __future__ import annotations

import math
from math import comb

from ...errors import InputError
from .bound import exponential, power
from .lemmas import CURVE, polynomial_error, records_for_risk, unbiasedness


def _features(p: int, t: int) -> int:
    return sum(comb(p - 1, s) for s in range(min(t - 1, p - 1) + 1))


def _monomials(p: int, t: int) -> int:
    return sum(comb(p, s) for s in range(1, min(t, p) + 1))


def _regressions(gamma: float, p: int, t: int, width: float, failure: float, rho: float | None) -> float:
    if not gamma > 0:
        raise InputError("the bound is beyond all numbers: the width is too large for this paper's proof")
    return records_for_risk(gamma, radius=2 * width, features=_features(p, t), failure=failure / p, rho=rho)


def _risk_for_average(m: float, t: int, width: float) -> float:
    """The largest γ at which E|∂_I d| ≤ m for all I of at most t − 1 columns."""
    risks = []
    for s in range(t):
        a = min(2 * m / 3, 2 ** (-s / 2))
        kappa = min((m - a) * 2**s * a * a / (4 * width), 1 - 1e-12)
        risk: float = kappa * CURVE * power(unbiasedness(width), s) * exponential(-2 * width)
        risks.append(risk)
    return min(risks)


def in_total(p: int, t: int, width: float, alpha: float, rho: float, failure: float) -> float:
    """Records for ‖h − u‖₁ ≤ α under ρ-zCDP (Theorem 4.2); **proved** above."""
    unbiased = unbiasedness(width)
    most = (1 - 1e-12) * CURVE * power(unbiased, t - 1) * exponential(-2 * width)  # where the lemma ends
    if not most > 0:
        raise InputError("the bound is beyond all numbers: the width is too large for this paper's proof")
    largest = polynomial_error(most, norm=2 * width, unbiased=unbiased, variables=p - 1, degree=t - 1)
    gamma = most * min(1.0, (2 * alpha / p / largest) ** 2)  # the error grows with √γ
    return _regressions(gamma, p, t, width, failure, rho / p)


def maximal(p: int, t: int, width: float, alpha: float, rho: float, failure: float) -> tuple[float, float]:
    """n₁ and n₂ of Lemma 4.4, given parities within α/(8λ); regressions have ρ/2 in all; **proved** above."""
    first = _regressions(_risk_for_average(alpha, t, width), p, t, width, failure / 2, rho / (2 * p))
    return first, 32 * width**2 * math.log(2 * p * _features(p, t) / (failure / 2)) / alpha**2


def parities(p: int, t: int, error: float, rho: float, failure: float) -> float:
    """Records at which multiplicative weights release all parities of order ≤ t within ``error``; **proved** above."""
    signed = 2 * _monomials(p, t)
    least = 2 * p * math.log(2) / error**2

    def needed(steps: int) -> float:
        left = error - math.sqrt(2 * p * math.log(2) / steps)
        return 2 * math.sqrt(steps / (2 * rho)) * math.log(signed * steps / failure) / left

    return min(needed(math.ceil(least * times)) for times in (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0))


def leader_error(p: int, queries: int, rounds: int, n: float, rho: float, failure: float) -> float:
    """How far sepFEM's parities can be off, with η = √T and T records a round; **proved**, and no expectation is left.

    Replace-one, n public, a best record each round. Let q_t be the signed parity selected in round t, D_t the records
    of that round, G_t = Σ_{τ<t} q_τ, and x_t = argmax G_t(x) + ⟨σ, x⟩ over x ∈ {±1}^p, with σ_i independent Laplace of
    scale η.

    * *The leader is stable.* Given the other σ_j, column i of x_t is 1 if and only if σ_i exceeds half the difference
      of two maxima of G_t + ⟨σ_{−i}, x_{−i}⟩, with x_i = −1 and x_i = 1. Adding q_t moves each by at most 1,
      hence their half difference by at most 1; the density of σ_i is at most 1/2η. So x_t ≠ x_{t+1} with probability
      p/2η at most, and E q_t(x_t) ≥ E q_t(x_{t+1}) − p/η.
    * *Be the leader*: ⟨σ, x_1⟩ + Σ_t q_t(x_{t+1}) ≥ G_{T+1}(x) + ⟨σ, x⟩ for every x; in expectation, with E‖σ‖₁ = pη,
      Σ_t E q_t(x_{t+1}) ≥ max_x G_{T+1}(x) − pη. So Σ_t E q_t(x_t) ≥ G_{T+1}(D) − p(η + T/η), 2p√T at η = √T. The
      perturbation is fresh each round and E is over it alone, so this holds for whatever was selected.
    * *Records for expectations*: with T records a round all 2mT means of signed parities are within √(2 ln(2mT/β₁)/T)
      of their expectations, except with probability β₁ (Hoeffding; one side suffices, of 2m signed parities).
    * *Selection*: a chosen gap q_t(D) − q_t(D_t) is at most (b/n) ln(2mT/β₂) below the largest, b = 2√(T/2ρ).

    The gap of all records together is at most the average of the chosen gaps, plus what selection misses.
    """
    each = failure / 2
    steps = math.log(2 * queries * rounds / each)
    miss = 2 * math.sqrt(rounds / (2 * rho)) * steps / n
    return 2 * p / math.sqrt(rounds) + math.sqrt(2 * steps / rounds) + miss


def parities_by_leader(p: int, t: int, error: float, rho: float, failure: float) -> float:
    """Records at which sepFEM releases all parities of order ≤ t within ``error``, by :func:`leader_error`.

    The paper's order has p^{5/4}; here it is p ln(·)/(√ρ error²), as columns of ±1 separate records coordinate by
    coordinate.
    """
    m = _monomials(p, t)
    least = (2 * p / error) ** 2

    def needed(rounds: int) -> float:
        public = leader_error(p, m, rounds, math.inf, rho, failure)
        noise = leader_error(p, m, rounds, 1.0, rho, failure) - public  # grows as 1/n
        return math.inf if public >= error else noise / (error - public)

    return min(needed(math.ceil(least * times)) for times in (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0))


def graph(p: int, t: int, width: float, weight: float, failure: float) -> float:
    """Records for the graph without privacy, every maximal monomial of weight η at least; **proved** above."""
    first = _regressions(_risk_for_average(2 * weight / 3, t, width), p, t, width, failure / 2, None)
    return first + 18 * width**2 * math.log(2 * p * _features(p, t) / (failure / 2)) / weight**2
