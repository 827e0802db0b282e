"""Lower bounds of [001] sections 5 and 7, proved with constants by the lemmas of :mod:`.packing`.

The instances are perfect matchings with a weight or none on each pair (:mod:`.hard_instances`). A lower bound for a
family holds for every larger family: for any k, any t ≥ 2, and any width of at least the weight.
"""

from __future__ import annotations

import math

from ...arguments import check_positive, check_whole
from ...errors import InputError
from . import packing
from .bound import Bound, probability
from .lemmas import correlation

SUCCESS = 2 / 3
FINGERPRINTED = math.log(2) / 2  # the largest weight of the instances of Theorem 5.1: tanh of it is 1/3


def pair_divergence(weight: float) -> float:
    """The larger of the two relative entropies between a pair with coupling η and an independent pair.

    KL(edge‖none) = η tanh η − ln cosh η and KL(none‖edge) = ln cosh η, both at most η²/2. [001] bounds one of them by
    χ² = tanh²η (printed with η/2), which serves for the other only up to a constant.
    """
    check_positive(weight=weight)
    log_cosh = math.log(math.cosh(weight)) if weight < 300 else weight - math.log(2)
    return max(weight * correlation(weight) - log_cosh, log_cosh)


def matching_variation(pairs: int, weight: float, k: int = 2) -> float:
    """Total variation between any two coded matchings: at most √(½·pairs·KL) by Pinsker, and at most 1.

    The paper uses √(2 KL), which is twice as much. With k > 2 levels the spins are +1 and −1 on two halves of them
    and 0 on the one that is left over; either divergence is at most η²/2 then.
    """
    divergence = pair_divergence(weight) if k == 2 else weight**2 / 2
    return min(1.0, math.sqrt(pairs * divergence / 2))


def graph_without_privacy(p: int, weight: float, *, k: int = 2) -> Bound:
    """Table 1, first row: n ≥ Ω(log p/η²), from Fano over the graphs with a single edge, against no edge at all."""
    check_whole(2, p=p, k=k)
    check_positive(weight=weight)
    information = weight**2 / 2 if k > 2 or weight > 300 else weight * correlation(weight) - math.log(math.cosh(weight))
    value = packing.fano(math.log(p * (p - 1) / 2), information, success=SUCCESS)
    return Bound("Table 1, non-private", "the same", "lower", "graph", "none",
                 "(ln M − h − ln(M−1)/3)/(η tanh η − ln cosh η), M = p(p−1)/2", value, "proved",
                 "success 2/3; one edge of weight η; our derivation of what the paper calls folklore")  # fmt: skip


def theorem_7_1_pure(p: int, weight: float, epsilon: float, *, k: int = 2, replace_one: bool = False) -> Bound:
    """Theorem 7.1, pure DP: n = Ω(√p/(ηε) + p/ε) to learn the graph of an Ising model (or one of k levels)."""
    check_whole(2, p=p)
    check_positive(weight=weight, epsilon=epsilon)
    pairs = p // 2
    size = pairs * math.log(2)
    linear = packing.pure_packing(size, epsilon, success=SUCCESS)
    root = packing.coupled_packing(
        size, epsilon, matching_variation(pairs, weight, k), success=SUCCESS, replace_one=replace_one
    )
    return Bound("Theorem 7.1", "[000] Theorem 6.1", "lower", "graph", "pure",
                 "max(ln(⅔·2^(p/2))/ε, the same through a coupling: ∝ √p/(ηε))", max(linear, root), "proved",
                 "success 2/3; the paper writes the sum of both, which is at most twice the maximum")  # fmt: skip


def theorem_7_1_zcdp(p: int, rho: float) -> Bound:
    """Theorem 7.1, zCDP: n = Ω(√(p/ρ)) to learn the graph of an Ising model, whatever the weight."""
    check_whole(2, p=p)
    value = packing.concentrated_packing(p // 2 * math.log(2), rho, success=SUCCESS)
    return Bound("Theorem 7.1", "[000] Theorem 6.1", "lower", "graph", "zcdp",
                 "(√((p/2) ln 2) − √ln 1.5)/√ρ", value, "proved", "success 2/3")  # fmt: skip


def theorem_7_4_pure(p: int, k: int, weight: float, epsilon: float, *, replace_one: bool = False) -> Bound:
    """Theorem 7.4, pure DP: n = Ω(√p/(ηε) + k²p/ε) for pairwise models.

    **Not for the graph.** The instances put a matrix of {0, η}^(k×k) on each pair, and nearly all of them have the same
    edge: graphs tell apart 2^(p/2) instances, not 2^(k²p/4). So k² is proved for the parameters, and for the graph only
    Theorem 7.1. For the parameters, matrices that differ by f(a) + g(b) are the same once centred; those with zeros in
    the first row and column are not: 2^((k−1)²) of them, and two differ by at least η/4 in a centred entry, since
    W(a,b) − W(a,1) − W(1,b) + W(1,1) takes four of them to make η. (The proof also counts p matrices and builds p/2.)
    """
    check_whole(2, p=p, k=k)
    check_positive(weight=weight, epsilon=epsilon)
    linear = packing.pure_packing(p // 2 * (k - 1) ** 2 * math.log(2), epsilon, success=SUCCESS)
    root = theorem_7_1_pure(p, weight, epsilon, k=k, replace_one=replace_one).value
    return Bound("Theorem 7.4", "[000] Theorem 6.2", "lower", "parameters", "pure",
                 "max(ln(⅔·2^((k−1)²p/2))/ε, Theorem 7.1)", max(linear, root), "proved",
                 "success 2/3 within α < η/8; for the graph alone Theorem 7.1 is what is proved")  # fmt: skip


def theorem_7_4_zcdp(p: int, k: int, rho: float) -> Bound:
    """Theorem 7.4, zCDP: n = Ω(√(k²p/ρ)); for the parameters, see :func:`theorem_7_4_pure`."""
    check_whole(2, p=p, k=k)
    value = packing.concentrated_packing(p // 2 * (k - 1) ** 2 * math.log(2), rho, success=SUCCESS)
    return Bound("Theorem 7.4", "[000] Theorem 6.2", "lower", "parameters", "zcdp",
                 "(√((k−1)²(p/2) ln 2) − √ln 1.5)/√ρ", value, "proved",
                 "success 2/3 within α < η/8; for the graph alone Theorem 7.1 is what is proved")  # fmt: skip


def theorem_5_1(p: int, alpha: float, epsilon: float, delta: float, *, replace_one: bool = False) -> Bound:
    """Theorem 5.1: n = Ω(√p/(αε)) to learn the couplings with E max|Â − A| ≤ α under (ε, δ).

    **Proved**, after repairs: correlations are tanh η, so the weights lie in ±½ ln 2 and |tanh A − tanh Â| ≤ |A − Â|
    replaces the factor 8; E max ≤ α does not give E max² ≤ α², but the lemma needs only E‖·‖₂ ≤ √d·α and
    E‖·‖₂² ≤ ⅔dα (errors are at most ⅔), d = p/2. It speaks for α < 1/18; the printed α ≤ 1/50 should read 1/59 with
    the printed constants. Any δ will do; the lemma is printed for δ ≤ 3/(64n). It is about the *expected*
    largest error; Definition 2.10 asks for success with probability 2/3, from which no expectation follows.
    """
    check_whole(2, p=p)
    check_positive(alpha=alpha, epsilon=epsilon)
    probability(delta=delta)
    d = p // 2
    value = packing.fingerprinting(d, math.sqrt(d) * alpha, 2 * d * alpha / 3, epsilon, delta, replace_one=replace_one)
    return Bound("Theorem 5.1", "[000] Theorem 4.1", "lower", "parameters", "approx",
                 "d(1/27 − ⅔α)/(sinh(ε)α√d/9 + O(dδ)), d = p/2", value, "proved",
                 "expected largest error ≤ α < 1/18, weights up to ½ ln 2")  # fmt: skip


def theorem_5_1_as_printed(p: int, alpha: float, epsilon: float) -> Bound:
    """Theorem 5.1 with the numbers of its own proof: γ² = 32pα², d = p/2 in Lemma 5.2, so √p/(815 αε)."""
    check_whole(2, p=p)
    check_positive(alpha=alpha, epsilon=epsilon)
    if 32 * alpha**2 > 1 / 108:
        raise InputError(f"the proof needs 32pα² ≤ p/108, that is α ≤ 0.0170 (not 1/50), got alpha={alpha}")
    value = packing.fingerprinting_as_printed(p / 2, math.sqrt(32 * p) * alpha, epsilon)
    return Bound("Theorem 5.1", "[000] Theorem 4.1", "lower", "parameters", "approx", "√p/(815 αε)", value,
                 "order only", "its proof takes E max ≤ α for E max² ≤ α²; δ ≤ 3/(64n), replace-one")  # fmt: skip


def parameters_without_privacy(p: int, alpha: float, width: float, *, k: int = 2) -> Bound:
    """Table 1, first row, for parameters: within α single edges of weight 2α are told apart, if λ allows them."""
    check_positive(alpha=alpha, width=width)
    edge = graph_without_privacy(p, 2 * alpha, k=k)
    value = edge.value if 2 * alpha <= width else 0.0
    return Bound(edge.item, edge.also, "lower", "parameters", "none", f"{edge.formula}, η = 2α", value, "proved",
                 "success 2/3 within α; one edge of weight 2α")  # fmt: skip


def parameters_pure(p: int, alpha: float, width: float, epsilon: float, *, k: int = 2) -> Bound:
    """Theorem 7.1 turned to parameters: weights 0 or 2α are different answers, and so are all multiples up to λ."""
    check_whole(2, p=p, k=k)
    check_positive(alpha=alpha, width=width, epsilon=epsilon)
    step = 2 * alpha * (1 + 1e-9)
    grid = packing.pure_packing(_log_grid(p, step, width, k), epsilon, success=SUCCESS)
    coupled = theorem_7_1_pure(p, min(step, width), epsilon, k=k).value if step <= width else 0.0
    return Bound("Theorem 7.1", "[000] Theorem 6.1", "lower", "parameters", "pure",
                 "max(ln(⅔·(1+λ/α)^(p/2))/ε, Theorem 7.1 at η = 2α)", max(grid, coupled), "proved",
                 "success 2/3; Table 1 cites Theorem 7.1 here")  # fmt: skip


def parameters_zcdp(p: int, alpha: float, width: float, rho: float, *, k: int = 2) -> Bound:
    """Table 1 cites Theorem 5.1 here; a finer grid of weights in Lemma 7.3 says more for all but tiny α."""
    check_whole(2, p=p, k=k)
    check_positive(alpha=alpha, width=width, rho=rho)
    step = 2 * alpha * (1 + 1e-9)
    grid = packing.concentrated_packing(_log_grid(p, step, width, k), rho, success=SUCCESS)
    return Bound("Theorem 7.1", "[000] Theorem 6.1", "lower", "parameters", "zcdp",
                 "(√((p/2) ln(1+λ/α)) − √ln 1.5)/√ρ", grid, "proved",
                 "success 2/3, weights on a grid up to the width")  # fmt: skip


def _log_grid(p: int, step: float, width: float, k: int) -> float:
    """ln of how many matchings there are with weights that an error of α < step/2 keeps apart, of at most this width.

    Spins on two halves of the levels, with weights on a grid in [−λ, λ]; or, in the (k−1)² free entries of tables as in
    Theorem 7.4, multiples of 4·step up to λ/3 (centring can triple a width).
    """
    spins = math.log(1 + 2 * math.floor(width / step))
    tables = (k - 1) ** 2 * math.log(1 + math.floor(width / 3 / (4 * step)))
    return p // 2 * max(spins, tables)
