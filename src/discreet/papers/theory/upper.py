"""Upper bounds of [001]: how many records suffice, as printed, and with constants where we can prove them.

``theorem_…`` gives the printed leading terms with every hidden constant set to one ("order only": read the growth).
``proved=True``, where there is one, follows the same proof with every constant, for the corrected algorithm; such
numbers are true and enormous, because the proof pays e^{12λ}/α⁴ where experiments see e^{O(λ)}/α².
"""

from __future__ import annotations

import math

from ...arguments import check_positive, check_whole
from . import polynomials
from .bound import Bound, Constant, Goal, Notion, exponential, power, probability
from .lemmas import loss_for_error, records_for_risk, unbiasedness
from .stability import blocks_needed

FAILURE = 1 / 3  # the theorems promise success with probability 2/3
EVERY_CONSTANT = "the least n with every constant for"


def _constant(proved: bool) -> Constant:
    return "proved" if proved else "order only"


def _upper(
    item: str, also: str, goal: Goal, notion: Notion, formula: str, value: float, constant: Constant, holds: str
) -> Bound:
    return Bound(item, also, "upper", goal, notion, formula, value, constant, holds)


# -- parameters ------------------------------------------------------------------------------------------------------


def theorem_1_3(records: float, features: int, width: float, rho: float, failure: float = FAILURE) -> Bound:
    """Theorem 1.3, Corollary 3.4: empirical excess risk of private sparse logistic regression in ‖w‖₁ ≤ λ."""
    check_positive(records=records, width=width, rho=rho)
    check_whole(1, features=features)
    probability(failure=failure)
    value = width ** (4 / 3) * math.log(records * features / failure) / (records * math.sqrt(rho)) ** (2 / 3)
    return _upper("Theorem 1.3, Corollary 3.4", "[000] Theorem 1.3", "risk", "zcdp", "λ^(4/3) ln(np/β)/(n√ρ)^(2/3)",
                  value, "order only", "the printed noise is proved for 2ρ only")  # fmt: skip


def theorem_3_6(records: float, features: int, width: float, rho: float, failure: float = FAILURE) -> Bound:
    """Theorem 3.6: expected excess risk; the printed second term lacks √ln p, which is added here."""
    empirical = theorem_1_3(records, features, width, rho, failure)
    value = empirical.value + width * math.sqrt(math.log(features / failure) / records)
    return _upper("Theorem 3.6", "[000] Theorem 3.1", "risk", "zcdp", "λ^(4/3) ln(np/β)/(n√ρ)^(2/3) + λ√(ln(p/β)/n)",
                  value, "order only", "records independent; the second term is printed as λ ln(1/β)/√n")  # fmt: skip


def lemma_3_3(
    records: float,
    vertices: int,
    radius: float,
    lipschitz: float,
    curvature: float,
    rho: float,
    failure: float = FAILURE,
) -> Bound:
    """Lemma 3.3: excess empirical risk of private Frank–Wolfe over a polytope, T = (Γn√ρ/(L₁‖C‖₁))^(2/3)."""
    check_positive(records=records, radius=radius, lipschitz=lipschitz, curvature=curvature, rho=rho)
    check_whole(1, vertices=vertices)
    value = curvature ** (1 / 3) * (lipschitz * radius) ** (2 / 3) * math.log(records * vertices / failure)
    value /= (records * math.sqrt(rho)) ** (2 / 3)
    return _upper("Lemma 3.3", "supplement of [000]", "risk", "zcdp", "Γ^(1/3)(L₁‖C‖)^(2/3) ln(n|S|/β)/(n√ρ)^(2/3)",
                  value, "order only", "the exponent of T binds L₁; noise proved for 8ρ at a general L₁")  # fmt: skip


def theorem_3_8(p: int, width: float, alpha: float, rho: float, *, proved: bool = False) -> Bound:
    """Theorem 3.8 ([000] Theorem 3.3): all couplings of an Ising model within α, under ρ-zCDP.

    ``proved``: γ = 8cα²e^{−2λ}/(1 + e^{2λ}) by Lemma 3.9 (couplings are half the regression weights, ‖w‖₁ ≤ 2λ), so
    that 8λ and 6λ suffice in the exponents for the printed 12λ and 9λ; then :func:`.lemmas.records_for_risk` a node
    with ρ/p and failure 1/(3p).
    """
    check_whole(2, p=p)
    check_positive(width=width, alpha=alpha, rho=rho)
    formula = "λ² ln(p)e^(12λ)/α⁴ + √p λ² ln²(p)e^(9λ)/(√ρ α³)"
    if proved:
        gamma = loss_for_error(2 * alpha, norm=2 * width, unbiased=unbiasedness(width))
        value = records_for_risk(gamma, radius=2 * width, features=p, failure=FAILURE / p, rho=rho / p)
        formula = (
            f"{EVERY_CONSTANT} γ = 8cα²e^(−2λ)/(1 + e^(2λ)), ρ/p a column; grows with e^(8λ)/α⁴ + √p e^(6λ)/(√ρ α³)"
        )
    else:
        value = width**2 * math.log(p) * exponential(12 * width) / alpha**4
        value += math.sqrt(p / rho) * width**2 * math.log(p) ** 2 * exponential(9 * width) / alpha**3
    return _upper("Theorem 3.8", "[000] Theorem 3.3", "parameters", "zcdp", formula, value, _constant(proved),
                  "success 2/3, add-remove; Frank–Wolfe in its corrected form")  # fmt: skip


def theorem_3_11(p: int, k: int, width: float, alpha: float, rho: float, *, proved: bool = False) -> Bound:
    """Theorem 3.11 ([000] Theorem 3.6) = Theorem 1.2: all weights of a pairwise model within α, under ρ-zCDP.

    e^{O(λ)} is e^{14λ} and e^{11λ} by its proof with the δ of Lemma 2.7, e^{−2λ}/k (the proof substitutes e^{−6λ}/k).
    ``proved``: a problem a node and unordered pair of levels, so ρ/(p(k−1)) each under add-remove; ‖w‖₁ ≤ 2λk; and
    n = n_uv/δ, as a pair holds at least nδ of the records with probability 1 − e^{−nδ/4}.
    """
    check_whole(2, p=p, k=k)
    check_positive(width=width, alpha=alpha, rho=rho)
    formula = "λ²k⁵ ln(pk)e^(14λ)/α⁴ + √p λ²k^5.5 ln²(pk)e^(11λ)/(√ρ α³)"
    if proved:
        delta = unbiasedness(width, k)
        failure = FAILURE / (p * k * k)
        gamma = loss_for_error(alpha, norm=2 * width, unbiased=delta, k=k)
        inner = records_for_risk(
            gamma, radius=2 * width * k, features=p * k, failure=failure / 2, rho=rho / (p * (k - 1))
        )
        value = max(inner / delta, 4 * math.log(2 / failure) / delta)
        formula = f"{EVERY_CONSTANT} γ = cδe^(−2λ)kα²/(k−1), δ = 1/(1 + (k−1)e^(2λ)), ρ/(p(k−1)) a problem; by δ"
    else:
        log = math.log(p * k)
        value = width**2 * k**5 * log * exponential(14 * width) / alpha**4
        value += math.sqrt(p / rho) * width**2 * k**5.5 * log**2 * exponential(11 * width) / alpha**3
    return _upper("Theorem 3.11, Theorem 1.2", "[000] Theorem 3.6, Theorem 1.2", "parameters", "zcdp",
                  formula, value, _constant(proved), "success 2/3, centred weights, add-remove")  # fmt: skip


def theorem_4_2(p: int, t: int, width: float, alpha: float, rho: float, *, proved: bool = False) -> Bound:
    """Theorem 4.2: a binary t-wise field in ℓ₁. O(t), O(λt) read as t, 12λt and 9λt; the proof's p^{−3t} is p^{−2t}.

    ``proved``: :func:`.polynomials.in_total`.
    """
    check_whole(2, p=p, t=t)
    check_positive(width=width, alpha=alpha, rho=rho)
    log, common = math.log(p), power(2 * t, t)
    formula = "(2t)^O(t)e^O(λt)(p^(4t) ln p/α⁴ + p^(3t+½) ln²p/(√ρ α³))"
    if proved:
        value = polynomials.in_total(p, t, width, alpha, rho, FAILURE)
        formula = f"{EVERY_CONSTANT} ‖d‖₁ ≤ 2α/p a column (Lemma 4.3), ρ/p each"
    else:
        value = common * exponential(12 * width * t) * power(p, 4 * t) * log / alpha**4
        value += common * exponential(9 * width * t) * power(p, 3 * t + 0.5) * log**2 / (math.sqrt(rho) * alpha**3)
    return _upper("Theorem 4.2", "supplement of [000]", "parameters", "zcdp", formula, value, _constant(proved),
                  "error in ℓ₁ over all monomials")  # fmt: skip


def lemma_4_4(p: int, t: int, width: float, alpha: float, rho: float, *, proved: bool = False) -> Bound:
    """Lemma 4.4: records for the regressions of Algorithm 5, given parities within α/(8λ).

    ``proved``: n₁ + n₂ of :func:`.polynomials.maximal`.
    """
    check_whole(2, p=p, t=t)
    check_positive(width=width, alpha=alpha, rho=rho)
    log = math.log(p)
    formula, holds = "e^(5λt)√p ln²p/(√ρ α^4.5) + e^(6λt) ln p/α⁶", "and n₂ = λ²t ln p/α² records for the parities"
    if proved:
        value = sum(polynomials.maximal(p, t, width, alpha, rho, 1 / 4))
        formula, holds = f"{EVERY_CONSTANT} E|∂_I d| ≤ α, ρ/(2p) a column; + 32λ² ln(16M)/α²", "success 3/4"
    else:
        value = exponential(5 * width * t) * math.sqrt(p / rho) * log**2 / alpha**4.5
        value += exponential(6 * width * t) * log / alpha**6
    return _upper("Lemma 4.4", "supplement of [000]", "parameters", "zcdp", formula, value, _constant(proved),
                  f"{holds}; maximal monomials")  # fmt: skip


def lemma_4_5(p: int, t: int, width: float, alpha: float, rho: float, *, proved: bool = False) -> Bound:
    """Lemma 4.5: parities of order ≤ t within α/(8λ) by private multiplicative weights (time exponential in p).

    The proof prices an ε₀-DP step at ε₀² where Lemma 2.14 gives ε₀²/2: sound, and loose. ``proved``: the version that
    selects and averages, :func:`.polynomials.parities`.
    """
    check_whole(2, p=p, t=t)
    check_positive(width=width, alpha=alpha, rho=rho)
    formula = "tλ²√p ln p/(√ρ α²)"
    if proved:
        value = polynomials.parities(p, t, alpha / (8 * width), rho, 1 / 20)
        formula = "min over T of √(2T/ρ) ln(40KT)/(α/(8λ) − √(2p ln 2/T))"
    else:
        value = t * width**2 * math.sqrt(p / rho) * math.log(p) / alpha**2
    holds = "success 19/20; " + ("replace-one, n public" if proved else "[000] Theorem 1.4 prints ρ for √ρ")
    return _upper("Lemma 4.5", "supplement of [000]", "queries", "zcdp", formula, value, _constant(proved), holds)


def lemma_4_6(p: int, t: int, width: float, alpha: float, rho: float, *, proved: bool = False) -> Bound:
    """Lemma 4.6: the same by follow-the-perturbed-leader with an optimisation oracle (sepFEM).

    ``proved``: :func:`.polynomials.parities_by_leader`, an argument of ours with p in place of p^(5/4).
    """
    check_whole(2, p=p, t=t)
    check_positive(width=width, alpha=alpha, rho=rho)
    formula = "tλ²p^(5/4) ln p/(√ρ α²)"
    if proved:
        value = polynomials.parities_by_leader(p, t, alpha / (8 * width), rho, 1 / 20)
        formula = "min over T of √(2T/ρ) ln(80KT)/(α/(8λ) − 2p/√T − √(2 ln(80KT)/T))"
    else:
        value = t * width**2 * p**1.25 * math.log(p) / (math.sqrt(rho) * alpha**2)
    holds = "success 19/20; " + ("replace-one, n public" if proved else "[000] Theorem 1.4 prints p^(3/2) and ρ")
    return _upper("Lemma 4.6", "supplement of [000]", "queries", "zcdp", formula, value, _constant(proved), holds)


def theorem_4_7(
    p: int, t: int, width: float, alpha: float, rho: float, *, oracle: bool = False, proved: bool = False
) -> Bound:
    """Theorem 4.7 = Theorem 1.4: maximal monomials of a binary t-wise field within α; ``oracle``: with sepFEM.

    ``proved``: Lemma 4.4 with failure 1/4 and Lemma 4.5 or 4.6 with 1/20, on the same n₂ records. Add-remove
    for both: scored as Σ(q(x) − q(D_t)) over records, a parity moves by at most 2 there too, and n is not needed.
    """
    by = lemma_4_6 if oracle else lemma_4_5
    parities = by(p, t, width, alpha, rho)
    formula = f"e^(5λt)√p ln²p/(√ρ α^4.5) + {parities.formula} + e^(6λt) ln p/α⁶"
    value = lemma_4_4(p, t, width, alpha, rho).value + parities.value
    if proved:
        first, second = polynomials.maximal(p, t, width, alpha, rho, 1 / 4)
        value = first + max(second, by(p, t, width, alpha, rho / 2, proved=True).value)
        formula = f"{EVERY_CONSTANT} E|∂_I d| ≤ α, ρ/(2p) a column; + parities as in {parities.item} with ρ/2"
    return _upper("Theorem 4.7, Theorem 1.4", "[000] Theorem 1.4", "parameters", "zcdp", formula, value,
                  _constant(proved),
                  "success 2/3, maximal monomials" + ("" if oracle else "; time exponential in p"))  # fmt: skip


# -- the graph -------------------------------------------------------------------------------------------------------


def theorem_6_2(p: int, k: int, width: float, weight: float, *, proved: bool = False) -> Bound:
    """Theorem 6.2 ([000] Theorem 5.2), imported from Wu–Sanghavi–Dimakis: the graph of a pairwise model, no privacy.

    ``proved``: ℓ₁-constrained logistic regressions, every weight within η/2, then a threshold at η/2.
    """
    check_whole(2, p=p, k=k)
    check_positive(width=width, weight=weight)
    if proved:
        value = _graph_records(p, k, width, weight, FAILURE)
    else:
        value = width**2 * k**4 * exponential(14 * width) * math.log(p * k) / weight**4
    formula = f"{EVERY_CONSTANT} every weight within η/2" if proved else "λ²k⁴e^(14λ) ln(pk)/η⁴"
    return _upper("Theorem 6.2", "[000] Theorem 5.2", "graph", "none", formula, value, _constant(proved),
                  "success 2/3")  # fmt: skip


def _graph_records(p: int, k: int, width: float, weight: float, failure: float) -> float:
    if k == 2:
        gamma = loss_for_error(weight, norm=2 * width, unbiased=unbiasedness(width))  # couplings: half the weights
        return records_for_risk(gamma, radius=2 * width, features=p, failure=failure / p)
    delta = unbiasedness(width, k)
    each = failure / (p * k * k)
    gamma = loss_for_error(weight / 2, norm=2 * width, unbiased=delta, k=k)
    inner = records_for_risk(gamma, radius=2 * width * k, features=p * k, failure=each / 2)
    return max(inner / delta, 4 * math.log(2 / each) / delta)


def theorem_6_3(
    p: int, k: int, width: float, weight: float, epsilon: float, delta: float, *, proved: bool = False
) -> Bound:
    """Corollary 6.3 ([000] Corollary 5.3) = Theorem 1.5: the graph of a pairwise model under (ε, δ)."""
    check_whole(2, p=p, k=k)
    check_positive(width=width, weight=weight, epsilon=epsilon)
    probability(delta=delta)
    base = theorem_6_2(p, k, width, weight, proved=proved)
    factor = blocks_needed(epsilon, delta, success=2 / 3) if proved else math.log(1 / delta) / epsilon
    formula = f"{factor} blocks × ({base.formula})" if proved else "λ²k⁴e^(14λ) ln(pk) ln(1/δ)/(εη⁴)"
    return _upper("Corollary 6.3, Theorem 1.5", "[000] Corollary 5.3, Theorem 1.5", "graph", "approx",
                  formula, base.value * factor, _constant(proved),
                  "success 2/3; by the most frequent graph over blocks of equal size")  # fmt: skip


def theorem_6_4(p: int, t: int, width: float, weight: float, *, proved: bool = False) -> Bound:
    """Theorem 6.4, imported from Klivans–Meka: the graph of a binary t-wise field, no privacy. O(λt) read as 14λt/2.

    ``proved``: :func:`.polynomials.graph`, by ℓ₁-constrained regressions in place of Sparsitron.
    """
    check_whole(2, p=p, t=t)
    check_positive(width=width, weight=weight)
    formula, holds = "e^O(λt) ln(p/η)/η⁴", "success 2/3; e^O(λt) read as e^(7λt), which is Theorem 6.2's at t = 2"
    if proved:
        value = polynomials.graph(p, t, width, weight, FAILURE)
        formula, holds = f"{EVERY_CONSTANT} E|∂_I d| ≤ 2η/3; + 18λ² ln(12M)/η²", "success 2/3; by ℓ₁ regressions"
    else:
        value = exponential(7 * width * t) * math.log(p / weight) / weight**4
    return _upper("Theorem 6.4", "supplement of [000]", "graph", "none", formula, value, _constant(proved), holds)


def theorem_6_5(
    p: int, t: int, width: float, weight: float, epsilon: float, delta: float, *, proved: bool = False
) -> Bound:
    """Corollary 6.5: the graph of a binary t-wise field under (ε, δ)."""
    check_positive(epsilon=epsilon)
    probability(delta=delta)
    base = theorem_6_4(p, t, width, weight, proved=proved)
    factor = blocks_needed(epsilon, delta, success=2 / 3) if proved else math.log(1 / delta) / epsilon
    formula = f"{factor} blocks × ({base.formula})" if proved else "e^O(λt) ln(p/η) ln(1/δ)/(εη⁴)"
    return _upper("Corollary 6.5", "supplement of [000]", "graph", "approx", formula, base.value * factor,
                  _constant(proved), "success 2/3")  # fmt: skip


def lemma_6_1(base: float, epsilon: float, delta: float, *, success: float | None = None) -> Bound:
    """Lemma 6.1 ([000] Lemma 5.1): n for the private learner from n for one that is right with probability 2/3.

    **Proved**: blocks × base, with the exact number of blocks for success 1 − δ (or another).
    """
    check_positive(base=base)
    blocks = blocks_needed(epsilon, delta, success=1 - delta if success is None else success)
    return _upper("Lemma 6.1", "[000] Lemma 5.1", "graph", "approx", f"{blocks} blocks × n, O(n ln(1/δ)/ε)",
                  blocks * base, "proved", "the base learner is right with probability 2/3 on each block")  # fmt: skip
