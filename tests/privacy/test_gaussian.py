"""All-Gaussian steps as one Gaussian: the curve, whole numbers, the filter, and a second opinion."""

import math
from fractions import Fraction as F

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.domain import Domain
from discreet.errors import BudgetError
from discreet.privacy import gaussian
from discreet.privacy.accounting import Accountant, Cost
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, part_of
from discreet.privacy.calibration import plan_noise
from discreet.privacy.curator import Curator
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
        Accountant(within).charge(Cost.pure(F(1, 1000)))


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
