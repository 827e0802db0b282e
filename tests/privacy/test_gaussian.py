"""All-Gaussian steps as one Gaussian: the curve, whole numbers, the filter, and a second opinion."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction as F
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.domain import Domain
from discreet.errors import BudgetError, LedgerError
from discreet.privacy import gaussian
from discreet.privacy.accounting import Accountant, Cost
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP, part_of
from discreet.privacy.calibration import plan_noise
from discreet.privacy.claims import contradictions
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.query import LargestSum, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

SETTINGS = [("1", "1e-9"), ("1", "1e-6"), ("0.1", "1e-6"), ("3", "1e-5"), ("10", "1e-9"), ("0.01", "1e-4")]


def law(scale, shift, reach):
    z = np.arange(-reach, reach + 1)
    p = np.exp(-((z - shift) ** 2) / (2 * scale**2))
    return p / p.sum()


def exact_delta(scales, epsilon):
    """δ(ε) of independent discrete Gaussians of these scales, each shifted by one: by listing all outcomes."""
    p, q = np.ones(1), np.ones(1)
    for scale in scales:
        reach = math.ceil(9 * scale)
        p = np.multiply.outer(p, law(scale, 1, reach)).reshape(-1)
        q = np.multiply.outer(q, law(scale, 0, reach)).reshape(-1)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_the_curve_inverts(epsilon, delta):
    mu2 = gaussian.mu_squared_within(F(epsilon), F(delta))
    assert gaussian.delta_of(math.sqrt(mu2), float(epsilon)) <= float(delta)
    assert gaussian.delta_of(math.sqrt(mu2) * (1 + 1e-5), float(epsilon)) > float(delta) * (1 - 1e-8)
    assert mu2 / 2 > ApproxDP(epsilon, delta).to_zcdp().rho * F("1.05")  # what is gained
    normal = pld.from_gaussian_mechanism(1 / math.sqrt(mu2), value_discretization_interval=1e-4 * float(epsilon))
    assert normal.get_delta_for_epsilon(float(epsilon)) == pytest.approx(float(delta), rel=0.02)


def test_where_it_does_not_reach_it_says_so():
    assert gaussian.mu_squared_within(F("1e-7"), F("1e-6")) is None
    assert gaussian.mu_squared_within(F(1), F(1, 10**300)) is None
    assert ApproxDP("1e-7", "1e-6").to_gaussian() is None


@pytest.mark.parametrize("scales", [[12.0], [8.0, 15.0], [6.0, 9.0, 7.0], [2.5], [2.1, 30.0]])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_whole_numbers_are_within_the_curve(scales, epsilon):
    mu2 = sum(float(gaussian.cost_of(1, scale)) for scale in scales)
    assert exact_delta(scales, epsilon) <= gaussian.delta_of(math.sqrt(mu2), epsilon)
    assert gaussian.cost_of(1, 2.0) is None  # too little noise for the argument


def test_a_planted_mistake_is_seen():
    """With σ² where σ² − s² belongs, and little noise, the curve is no bound any more."""
    scale, epsilon = 0.7, 0.5
    assert exact_delta([scale], epsilon) > gaussian.delta_of(1 / scale, epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS[:3])
def test_a_second_opinion_on_a_batch_of_unequal_scales(epsilon, delta):
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    query = Marginals(domain, [("a",), ("b", "c"), ("a", "c")])
    share, weights = ApproxDP(epsilon, delta), [1, 5, 9]
    plan = plan_noise(query, PrivacyUnit(), share, noise="gaussian", weights=weights)
    (cost,) = plan.costs
    assert (cost.epsilon, cost.epsilon_delta) == (share.epsilon, share.delta)
    rho = float(share.to_zcdp().rho)
    assert all(c.scale**2 < 15 / (2 * rho * w) for c, w in zip(plan.calls, weights, strict=True))  # less noise
    losses = [
        pld.from_discrete_gaussian_mechanism(c.scale, 1, value_discretization_interval=1e-5 * float(epsilon))
        for c in plan.calls
    ]
    together = losses[0].compose(losses[1]).compose(losses[2])
    assert together.get_delta_for_epsilon(float(epsilon)) <= float(delta) * 1.01  # it rounds losses up


def test_shares_add_up_whatever_is_chosen_on_the_way():
    """An adversary chooses the second step by the first answer: one large step, or two small ones."""
    share = ApproxDP("0.5", "1e-3")
    whole = share.to_gaussian().mu_squared
    third, rest, reach = gaussian.scale_for(1, whole / 3), gaussian.scale_for(1, whole * 2 / 3), 80
    z = np.arange(-reach, reach + 1)
    first = law(third, 1, reach), law(third, 0, reach)
    once = law(rest, 1, reach), law(rest, 0, reach)
    twice = [np.multiply.outer(p, p).reshape(-1) for p in first]
    for cut in range(-15, 16, 3):
        delta = 0.0
        for chosen, then in ((z > cut, once), (z <= cut, twice)):
            p, q = (np.multiply.outer(a[chosen], b) for a, b in zip(first, then, strict=True))
            delta += float(np.maximum(p - math.exp(0.5) * q, 0).sum())
        assert delta <= float(share.delta)
        assert delta > float(share.delta) / 2  # and the test would see a filter that gives much too much away


# -- accounts ----------------------------------------------------------------------------------------------------------


def test_shares_and_accounts():
    whole = ApproxDP(1, "1e-6")
    within = whole.to_gaussian()
    parts = within.split([1, 2])
    assert sum(p.mu_squared for p in parts) == within.mu_squared
    assert [part_of(p, whole) for p in parts] == [F(1, 3), F(2, 3)]
    assert Budget.from_dict(within.to_dict()) == within
    accountant = Accountant(within)
    accountant.charge(*(Cost.of(p) for p in parts))
    assert accountant.remaining is None and accountant.spent == within
    with pytest.raises(BudgetError):
        accountant.charge(Cost.of(parts[0]))
    with pytest.raises(BudgetError, match="another mechanism"):
        Accountant(within).charge(Cost(epsilon=F(1, 1000), rho=F(1, 10**6)))


@pytest.mark.parametrize("epsilon", ["0.001", "0.01", "0.1", "0.5", "1", "3", "10"])
def test_a_pure_step_is_the_coin_that_a_gaussian_step_throws(epsilon):
    """μ = 2Φ⁻¹(e^ε/(1 + e^ε)), or more; for small ε hardly more."""
    e = float(epsilon)
    exact = (2 * NormalDist().inv_cdf(1 / (1 + math.exp(-e)))) ** 2
    cost = float(gaussian.cost_of_pure(F(epsilon)))
    assert exact <= cost
    assert cost <= exact * (1 + e**2 / 12)
    assert F(math.pi) / 2 < gaussian.HALF_PI
    assert gaussian.HALF_PI - F(math.pi) / 2 < F(1, 10**9)


@pytest.mark.parametrize("epsilon", ["0.01", "0.05", "0.1"])
def test_pure_and_gaussian_steps_together_keep_within_the_delta(epsilon):
    """A coin that is as telling as ε₀ allows, and Gaussian noise with what it leaves of μ²."""
    whole, e0 = ApproxDP(1, "1e-6"), float(F(epsilon))
    left = math.sqrt(whole.to_gaussian().mu_squared - gaussian.cost_of_pure(F(epsilon)))
    p = 1 / (1 + math.exp(-e0))
    delta = p * gaussian.delta_of(left, 1 - e0) + (1 - p) * gaussian.delta_of(left, 1 + e0)
    assert delta <= 1e-6
    forgotten = math.sqrt(whole.to_gaussian().mu_squared)
    more = p * gaussian.delta_of(forgotten, 1 - e0) + (1 - p) * gaussian.delta_of(forgotten, 1 + e0)
    assert more > 1e-6  # and the test would see a pure step that is not paid for


def test_either_all_steps_are_pure_or_all_add_up_in_mu():
    total = GaussianDP(ApproxDP(1, "1e-6").to_gaussian().mu_squared, 1)
    assert Budget.from_dict(total.to_dict()) == total
    assert [p.epsilon for p in total.split([1, 3])] == [F(1, 4), F(3, 4)]
    assert GaussianDP("0.01") <= total <= total
    assert not GaussianDP("0.01", 2) <= total
    pure = Accountant(total)
    pure.charge(Cost.pure(F("0.4")), Cost.pure(F("0.5")))
    assert (pure.spent, pure.remaining) == (PureDP("0.9"), PureDP("0.1"))
    with pytest.raises(BudgetError):
        pure.charge(Cost.pure(F("0.2")))
    with pytest.raises(BudgetError):  # after that much ε nothing Gaussian fits
        pure.charge(Cost.of(GaussianDP(F(1, 10**9))))
    pure.charge(Cost.pure(F("0.1")))
    both, count = Accountant(total), Cost.pure(F("0.01"))
    both.charge(count, Cost.of(GaussianDP(total.mu_squared - gaussian.cost_of_pure(F("0.01")))))
    assert both.remaining is None
    with pytest.raises(BudgetError):
        both.charge(Cost.pure(F("0.01")))
    with pytest.raises(BudgetError):
        Accountant(GaussianDP(total.mu_squared)).charge(Cost.pure(F("0.9")))  # its ε is nobody's


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_curator_of_gaussian_steps_may_be_asked_with_pure_ones(relation):
    query = Marginals(DOMAIN, [("a",)])
    with Curator(ROWS, PrivacyUnit(relation=relation), ApproxDP(1, "1e-6")) as curator:
        asked = curator.in_gaussian()
        asked.measure(query, PureDP("0.01"), noise="laplace")
        asked.measure(query, GaussianDP(gaussian.cost_of_pure(F("0.01")), F("0.01")), noise="laplace")
        with pytest.raises(BudgetError):
            asked.measure(query, PureDP(1), noise="laplace")
        with pytest.raises(BudgetError):
            asked.measure(query, GaussianDP("0.001"), noise="laplace")  # it has no ε
        rest = asked.remaining
        asked.measure(query, rest)
        assert contradictions(curator.statement()) == []
        said = curator.statement()
    other = {**said, "steps": [s | {"share": PureDP("0.9").to_dict()} if "draws" in s else s for s in said["steps"]]}
    assert contradictions(other) != []
    with Curator(ROWS, PrivacyUnit(relation=relation), ApproxDP(1, "1e-6")) as curator:
        asked = curator.in_gaussian()
        asked.measure(query, PureDP("0.99"), noise="laplace")
        said = curator.statement()
    assert contradictions(said) == []
    twice = {**said, "steps": [*said["steps"], said["steps"][-1]]}
    assert any("together cost more" in line for line in contradictions(twice))


DOMAIN = Domain.of({"a": 2, "b": 3})
ROWS = encode({"a": np.arange(50) % 2, "b": np.arange(50) % 3}, DOMAIN)


@pytest.mark.parametrize("part", [F(1, 10**40), F(1, 10**700)])
def test_noise_that_does_not_fit_whole_numbers_is_refused(part):
    share = GaussianDP(ApproxDP(1, "1e-6").to_gaussian().mu_squared * part)
    with pytest.raises(BudgetError):
        plan_noise(Marginals(DOMAIN, [("a",)]), PrivacyUnit(), share)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_curator_of_gaussian_steps(relation):
    budget = ApproxDP(1, "1e-6")
    with Curator(ROWS, PrivacyUnit(relation=relation), budget) as curator:
        asked = curator.in_gaussian()
        first, second = asked.remaining.split([1, 3])
        asked.measure(Marginals(DOMAIN, [("a",)]), first)
        with pytest.raises(BudgetError):
            asked.select(LargestSum(Marginals(DOMAIN, [("a",)])), second)
        with pytest.raises(BudgetError):
            asked.measure(Marginals(DOMAIN, [("a",)]), second, noise="laplace")
        asked.measure(Marginals(DOMAIN, [("a", "b")]), second)
        with pytest.raises(BudgetError, match=r"gone|suffice"):
            asked.measure(Marginals(DOMAIN, [("b",)]))
        assert curator.spent == budget
    with pytest.raises(BudgetError, match="Gaussian steps"):
        Curator(ROWS, PrivacyUnit(), ZCDP("0.1")).in_gaussian()
    with pytest.raises(BudgetError):
        Curator(ROWS, PrivacyUnit(), GaussianDP("0.1"))
    with pytest.raises(LedgerError, match="μ²"):
        Ledger.in_memory(GaussianDP("0.1"))


# -- rounding, against arithmetic of 60 digits and more ----------------------------------------------------------------


def phi(x):
    """Φ(x) of a Decimal x ≤ 0, by its power series with twice the digits that cancel."""
    digits = 60 + 2 * int(x * x / 2)
    with localcontext() as context:
        context.prec = digits
        term = total = -x
        k = 1
        while term > Decimal(10) ** (10 - digits):
            term *= x * x / (2 * k + 1)
            total += term
            k += 1
        return Decimal(1) / 2 - total * (-x * x / 2).exp() / (2 * pi(digits)).sqrt()


@lru_cache(maxsize=256)
def pi(digits):
    """Machin's formula."""
    with localcontext() as context:
        context.prec = digits + 5

        def arctan(n):
            power = total = Decimal(1) / n
            k = 1
            while abs(power) > Decimal(10) ** -(digits + 5):
                power /= -n * n
                k += 2
                total += power / k
            return total

        return 4 * (4 * arctan(5) - arctan(239))


def true_delta(mu2, epsilon):
    with localcontext() as context:
        context.prec = 400
        mu, e = (Decimal(mu2.numerator) / mu2.denominator).sqrt(), Decimal(epsilon.numerator) / epsilon.denominator
        return phi(-e / mu + mu / 2) - e.exp() * phi(-e / mu - mu / 2)


@pytest.mark.parametrize("epsilon", ["0.000001000001", "0.0000013", "0.000003", "0.00001", "0.01", "1", "30"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-9", "1e-22", "1e-30", "1e-100"])
def test_the_curve_is_never_exceeded_not_even_by_rounding(epsilon, delta):
    mu2 = gaussian.mu_squared_within(F(epsilon), F(delta))
    assert true_delta(mu2, F(epsilon)) <= Decimal(delta)
    assert true_delta(mu2 * F("1.001"), F(epsilon)) > Decimal(delta)  # and it is used up


def test_probabilities_of_few_digits_are_on_the_safe_side():
    """Φ(b) is 6·10⁻³²³ here, of which a float has hardly a digit."""
    assert gaussian.delta_of(29.75, 700.0) >= float(true_delta(F("29.75") ** 2, F(700)))


def test_shares_that_are_too_small_are_refused():
    for tiny in ("1e-400", F(1, 2**113)):
        asked = Curator(ROWS, PrivacyUnit(), ApproxDP(1, "1e-6")).in_gaussian()
        with pytest.raises(BudgetError, match="64 bits"):
            asked.measure(Marginals(DOMAIN, [("a",)]), GaussianDP(tiny))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_sample_of_gaussian_steps_is_refused_before_it_is_paid(relation):
    asked = Curator(ROWS, PrivacyUnit(relation=relation), ApproxDP(1, "1e-6")).in_gaussian()
    with pytest.raises(BudgetError, match="a sample"):
        asked.subsample("0.5")
    assert asked.spent is None
    said = {"query": "subsample", "rate": "1/2", "share": GaussianDP("0.1").to_dict()}
    about = {"budget": ApproxDP(1, "1e-6").to_dict(), "unit": PrivacyUnit(relation=relation).to_dict()}
    assert contradictions({**about, "spent": None, "steps": [said]}) != []


def test_shares_of_another_notion_are_no_contradiction():
    """Noise has its cost in both, so a Gaussian step may be asked with ρ, and a step of the whole with μ²."""
    for ask in (
        lambda c: c.in_gaussian().measure(Marginals(DOMAIN, [("a",)]), ZCDP("0.001"), noise="gaussian"),
        lambda c: c.measure(Marginals(DOMAIN, [("a",)]), GaussianDP("0.001")),
    ):
        curator = Curator(ROWS, PrivacyUnit(), ApproxDP(1, "1e-6"))
        ask(curator)
        assert contradictions(curator.statement()) == []
    said = curator.statement()
    said["steps"][0]["draws"][0]["scale"] /= 1000
    assert contradictions(said) != []
