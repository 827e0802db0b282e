"""From a small loss to small errors of the parameters ([001] Lemmas 3.9, 3.12, 4.3), with constants proved here.

The paper cites these lemmas with hidden constants and a factor e^L; the derivation below has all constants, and
e^(L/2). Let P(Y = 1 | x) = σ(r₁(x)), |r₁| ≤ L, and let another r₂ have expected logistic loss at most γ larger.

1. The excess loss is an expected relative entropy between coins, E KL(σ(r₁)‖σ(r₂)).
2. KL(σ(a)‖σ(b)) ≥ c e^{−|a|} min(1, (a − b)²) with c = ln cosh ½, attained at a = 0, b = ±1. It is the Bregman
   divergence f(b) − f(a) − f′(a)(b − a) of f = ln(1 + eˣ), grows with |b − a|; for a ≥ 0 its ratio to (b − a)² falls
   towards b = a + 1, where e^a times it is least at a = 0. (The paper goes through Pinsker, and loses a factor e^L.)
3. So E min(1, d(X)²) ≤ γ e^L/c for d = r₁ − r₂.
4. X is δ-unbiased: given all other coordinates, each value of a coordinate has probability at least δ. Summing d² over
   the values of the coordinates in question bounds their coefficients: over x_i ∈ {±1} it is 2(s² + Δ_i²) ≥ 2Δ_i²; over
   k levels with centred Δ it is at least k/(k−1)·max Δ²; over the 2^s values of x_I at least 2^s(∂_I d)².

The printed inequality E ℓ(u₁) − E ℓ(u₂) ≤ γ has the two the wrong way round: u₁ is the truth and has the least loss.
"""

from __future__ import annotations

import math
from math import comb

from ...arguments import check_positive, check_whole
from ...errors import InputError
from .bound import exponential, power, probability
from .frank_wolfe import Relation, lemma_3_3

CURVE = math.log(math.cosh(0.5))  # c of step 2


def correlation(weight: float) -> float:
    """E[Z₁Z₂] = tanh η for one coupling alone. [001] sections 5 and 7 print tanh(η/2), as if the weight were halved."""
    return math.tanh(weight)


def unbiasedness(width: float, k: int = 2) -> float:
    """δ of [001] Lemmas 2.7 and 2.8: given the rest, every level of a column has probability at least e^{−2λ}/k.

    Better and returned here: log-odds between two levels are at most 2λ, so 1/(1 + (k−1)e^{2λ}).
    """
    check_positive(width=width)
    check_whole(2, k=k)
    return 1 / (1 + (k - 1) * exponential(2 * width))


def parameter_error(gamma: float, *, norm: float, unbiased: float, k: int = 2) -> float:
    """[001] Lemma 3.9 ([000] Lemma 3.4) for k = 2, Lemma 3.12 for k levels: a bound on ‖u₁ − u₂‖_∞.

    ``gamma`` is the excess loss, ``norm`` L = ‖u₁‖₁ + |θ₁| (for k levels Σ_i max_a |u₁(i, a)| + |θ₁|), ``unbiased`` δ;
    infinite when γ is too large for the lemma: it needs γ < cδe^{−L}, less than the printed γ ≤ δe^{−2L−6}.
    **Proved**: ‖u₁ − u₂‖_∞ ≤ e^{L/2} √((k−1)γ/(kcδ)). With L = 2λ and δ = e^{−2λ}/2 that is the e^{2λ}√γ of [000];
    [001] prints e^L √(γ/δ), that is e^{3λ}√γ.
    """
    check_positive(gamma=gamma, unbiased=unbiased)
    check_whole(2, k=k)
    spread = gamma * exponential(norm) / (CURVE * unbiased)
    return math.sqrt((k - 1) / k * spread) if spread < 1 else math.inf


def loss_for_error(error: float, *, norm: float, unbiased: float, k: int = 2) -> float:
    """The largest γ for which :func:`parameter_error` is at most ``error``."""
    check_positive(error=error, unbiased=unbiased)
    check_whole(2, k=k)
    return CURVE * unbiased * exponential(-norm) * min(k / (k - 1) * error**2, 1 - 1e-12)


def derivative_error(gamma: float, *, norm: float, unbiased: float, order: int) -> float:
    """[001] Lemma 4.3, its core: for |I| = ``order``, some x has |∂_I(u₁ − u₂)(x)| at most this; **proved**.

    For a *maximal* monomial ∂_I is constant, and this bounds the error of its coefficient: √(κ/2^s) with
    κ = γe^L/(cδ^s). Infinite when κ ≥ 1.
    """
    check_positive(gamma=gamma, unbiased=unbiased)
    kappa = gamma * exponential(norm) / (CURVE * power(unbiased, order))
    return math.sqrt(kappa / 2**order) if kappa < 1 else math.inf


def derivative_tail(gamma: float, *, norm: float, unbiased: float, order: int, at_least: float) -> float:
    """P(|∂_I(u₁ − u₂)(X)| ≥ a) ≤ κ/min(1, 2^s a²), the step of the proof of [001] Lemma 4.4; **proved**."""
    check_positive(gamma=gamma, unbiased=unbiased, at_least=at_least)
    kappa = gamma * exponential(norm) / (CURVE * power(unbiased, order))
    return min(1.0, kappa / min(1.0, power(2, order) * at_least**2))


def polynomial_error(gamma: float, *, norm: float, unbiased: float, variables: int, degree: int) -> float:
    """[001] Lemma 4.3: a bound on ‖u₁ − u₂‖₁ over all monomials of at most ``degree``; **proved**.

    With B_s of :func:`derivative_error`, |r̄(I)| ≤ B_|I| + Σ_{J ⊋ I} |r̄(J)|; summed over all I of one size, from the
    largest down: R_s ≤ C(p, s)B_s + Σ_{j>s} C(j, s)R_j. The printed order is (2t)^t e^L √(γ/δ^t) C(p, t).
    """
    check_whole(1, variables=variables)
    check_whole(0, degree=degree)
    totals: dict[int, float] = {}
    for s in range(min(degree, variables), -1, -1):
        own = comb(variables, s) * derivative_error(gamma, norm=norm, unbiased=unbiased, order=s)
        totals[s] = own + sum(comb(j, s) * total for j, total in totals.items())
    return sum(totals.values())


def generalisation(records: float, *, radius: float, features: int, failure: float) -> float:
    """How far the true loss of any ‖w‖₁ ≤ C can exceed its empirical loss, plus the same for one fixed w; **proved**.

    2C√(2 ln(2q)/n) + 2C√(ln(2/β)/(2n)): Rademacher complexity of the ℓ₁ ball, contraction (the loss is 1-Lipschitz in
    the margin), McDiarmid with the range C of the loss, Hoeffding for the fixed w. The second term of [001] Theorem 3.6
    has no ln q; it is needed.
    """
    check_positive(records=records, radius=radius)
    check_whole(1, features=features)
    probability(failure=failure)
    complexity = 2 * radius * math.sqrt(2 * math.log(2 * features) / records)
    return complexity + 2 * radius * math.sqrt(math.log(2 / failure) / (2 * records))


def frank_wolfe_gap(
    records: float, *, radius: float, features: int, rho: float, failure: float, replace_one: bool = False
) -> float:
    """Excess empirical risk of private Frank–Wolfe at its best number of steps; **proved** in :mod:`.frank_wolfe`.

    From w = 0, where the gap is at most min(ln 2, C/2); scores on a grid that is too fine to matter.
    """
    check_positive(records=records, radius=radius, rho=rho)
    check_whole(1, features=features)
    probability(failure=failure)
    relation: Relation = "replace-one" if replace_one else "add-remove"
    best = (4 * radius * records * math.sqrt(2 * rho) / ((2 if replace_one else 1) * math.log(2 * features))) ** (2 / 3)

    def gap(steps: int) -> float:
        return lemma_3_3(
            curvature=radius**2, lipschitz=1.0, norm=radius, vertices=2 * features, size=records, rho=rho, steps=steps,
            start=min(math.log(2), radius / 2), beta=failure, relation=relation, grid=0.0,
        ).total  # fmt: skip

    return min(gap(max(2, round(min(best, 1e150) * factor))) for factor in (0.2, 0.35, 0.5, 0.7, 1.0, 1.4))


def records_for_risk(
    gamma: float,
    *,
    radius: float,
    features: int,
    failure: float,
    rho: float | None = None,
    replace_one: bool = False,
) -> float:
    """The least n at which a sparse logistic regression has excess risk γ with probability 1 − β; **proved**.

    What [001] Theorem 3.6 is used for in the proofs of Theorems 3.8 and 3.11. Without ``rho``: exact minimisation.
    """
    check_positive(gamma=gamma)

    def risk(n: float) -> float:
        spread = generalisation(n, radius=radius, features=features, failure=failure / 2)
        if rho is None:
            return spread
        return spread + frank_wolfe_gap(
            n, radius=radius, features=features, rho=rho, failure=failure / 2, replace_one=replace_one
        )

    high = 1.0
    while risk(high) > gamma:
        high *= 4
        if high > 1e250:
            raise InputError("the bound is beyond all numbers: the width is too large for this paper's proof")
    low = high / 4
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if risk(middle) <= gamma else (middle, high)
    return high
