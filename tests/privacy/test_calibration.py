"""From a share to noise: what is booked covers what is drawn, and never exceeds the share."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.errors import BudgetError, InputError
from discreet.privacy import mechanisms
from discreet.privacy.accounting import Accountant
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP, rho_of_pure, rho_within
from discreet.privacy.calibration import amplified, plan_noise, plan_selection, plan_threshold
from discreet.privacy.query import CellSums, Marginals
from discreet.privacy.unit import PrivacyUnit, Sensitivity

F = Fraction
DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
PAIRS = Marginals(DOMAIN, itertools.combinations(DOMAIN.names, 2))
UNITS = [PrivacyUnit(), PrivacyUnit(relation="replace-one"), PrivacyUnit("p", 3), PrivacyUnit("p", 3, "replace-one")]
shares = st.one_of(
    st.floats(1e-3, 20).map(PureDP),
    st.floats(1e-4, 5).map(ZCDP),
    st.tuples(st.floats(1e-2, 10), st.sampled_from([1e-5, 1e-8])).map(lambda t: ApproxDP(*t)),
)


def booked(call):
    """What a draw costs, computed here: (ε or None, ρ)."""
    s, scale = call.sensitivity, F(call.scale)
    if call.kind == "laplace":
        return s.l1 / scale, rho_of_pure(s.l1 / scale)
    return None, s.l2_squared / (2 * scale**2)


@settings(max_examples=80, deadline=None)
@given(
    shares,
    st.sampled_from(UNITS),
    st.sampled_from(["auto", "laplace", "gaussian"]),
    st.none() | st.lists(st.floats(0.1, 9), min_size=3, max_size=3),
)
def test_a_plan_costs_what_its_noise_costs_and_fits_its_share(share, unit, noise, weights):
    if isinstance(share, PureDP) and noise == "gaussian":
        noise = "auto"
    plan = plan_noise(PAIRS, unit, share, noise=noise, weights=weights)
    Accountant(share).charge(*plan.costs)  # a curator with exactly this budget would admit it
    assert [c.sensitivity for c in plan.calls] == list(PAIRS.sensitivity(unit))
    assert plan.cells == (6, 8, 12)
    costs = [booked(call) for call in plan.calls]
    if len(plan.costs) == len(plan.calls):
        for (epsilon, rho), cost in zip(costs, plan.costs, strict=True):
            assert cost.epsilon == epsilon
            assert cost.rho == rho
            assert cost.epsilon_delta == cost.rho_delta == 0
        total_epsilon, total_rho = sum(e or 0 for e, _ in costs), sum(r for _, r in costs)
        if isinstance(share, PureDP):
            assert share.epsilon * (1 - F(1, 10**9)) <= total_epsilon <= share.epsilon
        if isinstance(share, ZCDP):
            assert share.rho * (1 - F(1, 10**6)) <= total_rho <= share.rho
    else:  # one (ε, δ) step for the whole batch
        (cost,) = plan.costs
        assert (cost.epsilon, cost.epsilon_delta) == (share.epsilon, share.delta)
        assert cost.rho == sum(r for _, r in costs)
        scales = {c.scale for c in plan.calls}
        unit_moves = all(c.sensitivity.linf == 1 for c in plan.calls)
        if len(scales) == 1 and unit_moves:  # otherwise see test_gaussian.py
            moved = sum(c.sensitivity.l0 for c in plan.calls)
            # A thousandth for the slack that gaussian_delta adds for rounding.
            assert mechanisms.gaussian_delta(*scales, moved, float(share.epsilon)) <= float(share.delta) * 1.001


@settings(max_examples=30, deadline=None)
@given(shares, st.sampled_from(UNITS))
def test_auto_takes_the_smaller_error(share, unit):
    auto = plan_noise(PAIRS, unit, share)
    kinds = ["laplace"] if isinstance(share, PureDP) else ["laplace", "gaussian"]
    errors = [plan_noise(PAIRS, unit, share, noise=k).expected_squared_error for k in kinds]
    assert auto.expected_squared_error == min(errors)
    assert auto.seconds > 0


def test_gaussian_noise_wins_with_many_tables_and_laplace_with_few():
    wide = Domain.of({f"c{i}": 2 for i in range(12)})
    share = ApproxDP(1, 1e-6)
    assert plan_noise(Marginals(wide, [("c0",)]), PrivacyUnit(), share).calls[0].kind == "laplace"
    many = Marginals(wide, itertools.combinations(wide.names, 2))
    assert plan_noise(many, PrivacyUnit(), share).calls[0].kind == "gaussian"


def test_weights_divide_the_share():
    plan = plan_noise(PAIRS, PrivacyUnit(), PureDP(1), weights=[1, 2, 5])
    assert [c.scale for c in plan.calls] == [8.0, 4.0, 8 / 5]
    plan = plan_noise(PAIRS, PrivacyUnit(), ZCDP("1/2"), noise="gaussian", weights=[1, 1, 2])
    assert [c.scale for c in plan.calls] == [2.0, 2.0, pytest.approx(math.sqrt(2))]


@pytest.mark.parametrize(
    ("unit", "query", "weights", "is_direct"),
    [
        (PrivacyUnit(), PAIRS, None, True),
        (PrivacyUnit(relation="replace-one"), PAIRS, None, True),
        (PrivacyUnit("p", 1), PAIRS, None, True),
        (PrivacyUnit("p", 3), PAIRS, None, False),  # a cell may move by three
        (PrivacyUnit(), PAIRS, [1, 2, 3], False),  # scales differ
        (PrivacyUnit(), CellSums(DOMAIN, "a", np.array([[2.0], [0]])), None, False),
        (PrivacyUnit(), CellSums(DOMAIN, "a", np.array([[1.0, -1.0], [0, 0]])), None, True),
    ],
)
def test_the_direct_bound_is_used_where_it_is_proved(unit, query, weights, is_direct):
    share = ApproxDP(1, 1e-6)
    plan = plan_noise(query, unit, share, noise="gaussian", weights=weights)
    (cost,) = plan.costs  # one step, by the exact law of equal scales or as one Gaussian
    assert (cost.epsilon, cost.epsilon_delta) == (share.epsilon, share.delta)
    moved = sum(c.sensitivity.l0 for c in plan.calls)
    exactly = {c.scale for c in plan.calls} == {mechanisms.gaussian_scale_direct(moved, share.epsilon, share.delta)}
    assert exactly == is_direct
    assert cost.rho > rho_within(share.epsilon, share.delta)  # less noise than by way of zCDP


def test_plans_that_make_no_sense():
    with pytest.raises(InputError, match="noise must be"):
        plan_noise(PAIRS, PrivacyUnit(), PureDP(1), noise="uniform")
    with pytest.raises(InputError, match="3 tables need as many weights, got 2"):
        plan_noise(PAIRS, PrivacyUnit(), PureDP(1), weights=[1, 2])
    with pytest.raises(InputError, match="weight zero"):
        plan_noise(PAIRS, PrivacyUnit(), PureDP(1), weights=[1, 0, 2])
    with pytest.raises(BudgetError, match="weights must be non-negative"):
        plan_noise(PAIRS, PrivacyUnit(), PureDP(1), weights=[1, -1, 2])
    with pytest.raises(InputError, match="releases nothing"):
        plan_noise(Marginals(DOMAIN, []), PrivacyUnit(), PureDP(1))
    with pytest.raises(BudgetError, match="not pure DP"):
        plan_noise(PAIRS, PrivacyUnit(), PureDP(1), noise="gaussian")
    with pytest.raises(InputError, match="no record moves 'sums'"):
        plan_noise(CellSums(DOMAIN, "a", np.zeros((2, 1))), PrivacyUnit(), ZCDP(1))
    constant = CellSums(DOMAIN, "a", np.ones((2, 1)))  # the number of records: never left exact
    assert plan_noise(constant, PrivacyUnit(relation="replace-one"), PureDP(1)).calls[0].scale == 1
    with pytest.raises(InputError, match="no record moves these scores"):
        plan_selection(0, PureDP(1))


@settings(max_examples=60, deadline=None)
@given(shares, st.integers(1, 10**6))
def test_selection_costs_its_share_and_no_more(share, linf):
    call, cost = plan_selection(linf, share)
    scale = F(call.scale)
    assert cost.epsilon == 2 * linf / scale
    if isinstance(share, PureDP):
        assert call.kind == "permute-and-flip"
        assert share.epsilon * (1 - F(1, 10**9)) <= cost.epsilon <= share.epsilon
        assert cost.rho == rho_of_pure(cost.epsilon)
    else:
        assert call.kind == "exponential"
        rho = share.rho if isinstance(share, ZCDP) else rho_within(share.epsilon, share.delta)
        assert cost.rho <= F(linf) ** 2 / (2 * scale**2) <= rho
    Accountant(share).charge(cost)


def test_thresholds_need_a_delta():
    sensitivity = Sensitivity(1, 1, 1, 1)
    for share in (PureDP(1), ZCDP(1)):
        with pytest.raises(BudgetError, match=r"needs a δ; give the share as ApproxDP"):
            plan_threshold(sensitivity, share)
    call, cost = plan_threshold(sensitivity, ApproxDP(1, 1e-6))
    assert (call.kind, call.scale) == ("threshold", 1.0)
    assert call.threshold == mechanisms.threshold_for(sensitivity, 1.0, F(1, 10**6))
    assert (cost.epsilon, cost.epsilon_delta, cost.rho_delta) == (1, F(1, 10**6), F(1, 10**6))


# -- amplification by sampling -------------------------------------------------------------------------------------


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4, 30])
@pytest.mark.parametrize("rate", [F(1, 100), F(1, 3), F(9, 10), F(1)])
def test_pure_amplification_is_exact_for_randomised_response(epsilon, rate):
    """The sample holds the one record with probability q; what is released about it is randomised response."""
    share = PureDP(epsilon)
    inner = float(amplified(share, rate, PrivacyUnit()).epsilon)
    held = np.array([1, math.exp(-inner)]) / (1 + math.exp(-inner))
    present, absent = float(rate) * held + (1 - float(rate)) * held[::-1], held[::-1]
    loss = np.abs(np.log(present / absent)).max()
    assert loss <= epsilon * (1 + 1e-9)
    assert loss >= epsilon * (1 - 1e-6)  # a larger inner budget would break the promise
    assert inner >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
@pytest.mark.parametrize("rate", [F(1, 50), F(1, 2)])
def test_approximate_amplification_keeps_epsilon_and_delta(epsilon, delta, rate):
    """With the worst (ε′, δ′) mechanism: randomised response that shouts with probability δ′."""
    inner = amplified(ApproxDP(epsilon, delta), rate, PrivacyUnit())
    e, d, q = float(inner.epsilon), float(inner.delta), float(rate)
    held = np.array([d, (1 - d) / (1 + math.exp(-e)), (1 - d) * math.exp(-e) / (1 + math.exp(-e)), 0])
    absent = held[::-1]
    present = q * held + (1 - q) * absent
    assert hockey_stick(held, absent, e) == pytest.approx(d)  # it is as bad as its promise allows
    assert hockey_stick(present, absent, epsilon) <= delta * (1 + 1e-6)
    assert hockey_stick(absent, present, epsilon) <= delta * (1 + 1e-6)
    assert hockey_stick(present, absent, epsilon * 0.98) > delta


def test_no_amplification_where_none_is_proved():
    for share in (ZCDP(0.1), PureDP(1), ApproxDP(1, 1e-6)):
        assert amplified(share, F(1, 10), PrivacyUnit(relation="replace-one")) == share
    assert amplified(ZCDP(0.1), F(1, 10), PrivacyUnit()) == ZCDP(0.1)


def test_extreme_amplification():
    assert float(amplified(PureDP(1000), F(1, 2), PrivacyUnit()).epsilon) == pytest.approx(1000 + math.log(2))
    assert float(amplified(PureDP(699), F(1, 2), PrivacyUnit()).epsilon) == pytest.approx(699 + math.log(2))
    assert amplified(ApproxDP(1, 0.4), F(1, 100), PrivacyUnit()).delta == F(1, 2)
