"""Budgets: exact shares, an honest order, and conversions that second opinions confirm."""

import itertools
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from discreet.errors import BudgetError
from discreet.privacy.budget import (
    ZCDP,
    ApproxDP,
    Budget,
    PureDP,
    epsilon_of_zcdp,
    exact,
    rho_of_pure,
    rho_within,
    shares,
)

dp.enable_features("contrib")
F = Fraction
weights = st.lists(
    st.floats(0, 1e6, allow_nan=False) | st.integers(0, 10**9) | st.fractions(0, 5), min_size=1, max_size=12
).filter(lambda ws: any(w > 0 for w in ws))


def lifted(x):
    return mpf(x.numerator) / mpf(x.denominator)


# -- amounts -------------------------------------------------------------------------------------------------------


def test_a_float_is_the_decimal_that_people_read():
    assert PureDP(0.1).epsilon == F(1, 10)
    assert PureDP("1/3").epsilon == F(1, 3)
    assert ApproxDP(1, 1e-6).delta == F(1, 10**6)
    assert PureDP(0.1).epsilon * 10 == 1
    for number in (np.float64(0.1), np.float32(0.5), np.int64(3), np.array(2.0)):
        assert PureDP(number).epsilon == exact(number.item(), "epsilon")
    assert PureDP(np.float64(0.1)) == PureDP(0.1)


@pytest.mark.parametrize("make", [PureDP, ZCDP, lambda a: ApproxDP(a, 1e-6), lambda a: ApproxDP(1, a)])
@pytest.mark.parametrize(
    "amount", [0, -1, -0.1, 0.0, math.nan, math.inf, -math.inf, True, False, "", "one", "1/0", None, [1], 1j, "1e400"]
)
def test_amounts_that_are_none(make, amount):
    with pytest.raises(BudgetError, match=r"epsilon|rho|delta"):
        make(amount)


def test_messages_name_the_quantity_and_its_value():
    with pytest.raises(BudgetError, match=r"epsilon must be positive, got epsilon=-1"):
        PureDP(-1)
    with pytest.raises(BudgetError, match=r"rho must be a finite number, got nan"):
        ZCDP(math.nan)
    with pytest.raises(BudgetError, match=r"epsilon must be a number, got True"):
        ApproxDP(True, 0.1)
    with pytest.raises(BudgetError, match="delta must be below 1"):
        ApproxDP(1, 1)


# -- shares --------------------------------------------------------------------------------------------------------


@given(st.floats(1e-9, 1e3), weights)
def test_shares_add_up_to_exactly_the_whole(total, ws):
    whole = exact(total, "total")
    parts = shares(whole, ws)
    assert sum(parts) == whole
    assert all(p >= 0 for p in parts)
    ratio = {p / exact(w, "w") for p, w in zip(parts, ws, strict=True) if w}
    assert len(ratio) == 1  # in proportion, exactly


@given(st.floats(1e-6, 50), st.lists(st.floats(1e-3, 10), min_size=1, max_size=9))
def test_splitting_loses_and_gains_nothing(amount, ws):
    assert sum(b.epsilon for b in PureDP(amount).split(ws)) == PureDP(amount).epsilon
    assert sum(b.rho for b in ZCDP(amount).split(ws)) == ZCDP(amount).rho


@given(st.floats(0.01, 10), st.sampled_from([1e-9, 1e-6, 1e-3]), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_an_approximate_budget_is_split_into_what_composes_within_it(epsilon, delta, parts):
    total = ApproxDP(epsilon, delta)
    pieces = total.split([1] * parts)
    assert all(isinstance(p, ZCDP) for p in pieces)
    assert epsilon_of_zcdp(sum(p.rho for p in pieces), total.delta) <= total.epsilon


@pytest.mark.parametrize("ws", [[], [0, 0], [1, -1], [math.nan], [True], ["x"]])
def test_weights_that_are_none(ws):
    with pytest.raises(BudgetError, match="weight"):
        PureDP(1).split(ws)


# -- order ---------------------------------------------------------------------------------------------------------


def test_the_order_is_partial():
    assert PureDP(1) <= PureDP(1) <= PureDP(2) <= ApproxDP(2, 1e-9)
    assert not PureDP(2) <= PureDP(1)
    assert PureDP(1) >= PureDP(0.5)
    assert not ZCDP(1) <= PureDP(100)  # a zCDP mechanism has no ε
    assert not ApproxDP(1, 1e-9) <= ZCDP(100)
    assert not ApproxDP(1, 1e-9) <= PureDP(100)
    assert not (ApproxDP(1, 1e-6) <= ApproxDP(2, 1e-9) or ApproxDP(2, 1e-9) <= ApproxDP(1, 1e-6))
    assert not PureDP(1) <= 5
    assert PureDP(1) != ZCDP(1)
    assert PureDP(0.5) == PureDP("1/2")
    assert hash(PureDP(0.5)) == hash(PureDP("1/2"))


def test_the_order_across_notions_is_the_conversion():
    assert PureDP(1) <= ZCDP(rho_of_pure(F(1)))
    assert not PureDP(1) <= ZCDP(rho_of_pure(F(1)) * F(999, 1000))
    bound = epsilon_of_zcdp(F(1, 50), F(1, 10**6))
    assert ZCDP(F(1, 50)) <= ApproxDP(bound, F(1, 10**6))
    assert not ZCDP(F(1, 50)) <= ApproxDP(bound * F(999, 1000), F(1, 10**6))


@given(st.lists(st.fractions(F(1, 100), 5), min_size=3, max_size=3))
def test_the_order_is_an_order_within_a_notion(amounts):
    for make in (PureDP, ZCDP, lambda a: ApproxDP(a, F(1, 1000))):
        a, b, c = (make(x) for x in amounts)
        assert a <= a
        assert (a <= b and b <= a) == (a == b)
        assert not (a <= b and b <= c) or a <= c


@given(st.sampled_from([PureDP(0.1), ZCDP("1/7"), ApproxDP(1.5, 1e-9)]))
def test_budgets_survive_being_written_down(budget):
    assert Budget.from_dict(budget.to_dict()) == budget


@pytest.mark.parametrize(
    "entry", [{}, {"notion": "pure"}, {"notion": "x", "epsilon": "1"}, {"notion": "zcdp", "rho": "0"}]
)
def test_entries_that_are_no_budget(entry):
    with pytest.raises(BudgetError):
        Budget.from_dict(entry)


# -- zCDP → (ε, δ) -------------------------------------------------------------------------------------------------

GRID = list(itertools.product([1e-6, 1e-3, 0.01, 0.1, 1.0, 10.0], [1e-2, 1e-6, 1e-10]))


@pytest.mark.parametrize(("rho", "delta"), GRID)
def test_conversion_agrees_with_opendp(rho, delta):
    vector = dp.vector_domain(dp.atom_domain(T="i64"))
    gaussian = dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), 1 / math.sqrt(2 * rho))
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta)
    ours = float(ZCDP(rho).to_approx(delta).epsilon)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("rho", "delta"), GRID)
def test_conversion_agrees_with_dp_accounting(rho, delta):
    orders = 1 + np.exp(np.linspace(-12, 25, 40_001))
    theirs, _ = compute_epsilon(orders, rho * orders, delta)
    ours = float(epsilon_of_zcdp(exact(rho, "rho"), exact(delta, "delta")))
    assert ours == pytest.approx(max(theirs, 0), rel=1e-5, abs=1e-9)


def bound_in_many_digits(rho, delta):
    """The bound of Canonne, Kamath and Steinke at its best order, with 40 digits."""
    with mp.workdps(40):

        def bound(log_gap):
            gap = mp.e**log_gap
            return (1 + gap) * rho + (-mp.log(delta) - mp.log(1 + gap)) / gap + mp.log(gap / (1 + gap))

        low, high, ratio = mpf(-40), mpf(130), (mp.sqrt(5) - 1) / 2
        for _ in range(160):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, b) if bound(a) <= bound(b) else (a, high)
        return max(bound(low), mpf(0))


@pytest.mark.parametrize("rho", ["1e-18", "1e-9", "1e-4", "0.02", "3", "1e3", "1e6"])
@pytest.mark.parametrize("delta", ["0.9", "1e-3", "1e-12", "1e-60"])
def test_conversion_rounds_to_the_safe_side(rho, delta):
    ours = epsilon_of_zcdp(F(rho), F(delta))
    true = bound_in_many_digits(mpf(rho), mpf(delta))
    assert lifted(ours) >= true
    assert lifted(ours) <= true * (1 + mpf("1e-10")) + mpf("2e-14")


@given(st.floats(1e-4, 5), st.floats(1e-4, 5), st.floats(1e-12, 0.1), st.floats(1e-12, 0.1))
@settings(max_examples=60, deadline=None)
def test_conversion_is_monotone(r1, r2, d1, d2):
    (r1, r2), (d1, d2) = sorted((exact(r1, "r"), exact(r2, "r"))), sorted((exact(d1, "d"), exact(d2, "d")))
    slack = 1 + F(1, 10**9)
    assert epsilon_of_zcdp(r1, d1) <= epsilon_of_zcdp(r2, d1) * slack
    assert epsilon_of_zcdp(r1, d2) <= epsilon_of_zcdp(r1, d1) * slack


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1, 8, 100])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_there_and_back_is_within_the_budget_and_close(epsilon, delta):
    budget = ApproxDP(epsilon, delta)
    rho = budget.to_zcdp().rho
    assert rho == rho_within(budget.epsilon, budget.delta)
    assert ZCDP(rho) <= budget
    assert not ZCDP(rho * (1 + F(1, 10**6))) <= budget


def test_the_textbook_formula_is_worse():
    rho, delta = 0.05, 1e-6
    assert float(ZCDP(rho).to_approx(delta).epsilon) < 0.93 * (rho + 2 * math.sqrt(rho * math.log(1 / delta)))


# -- ε → zCDP ------------------------------------------------------------------------------------------------------


def divergence(p, q, order):
    """Rényi divergence of two probability vectors."""
    return math.log(np.exp(order * np.log(p) + (1 - order) * np.log(q)).sum()) / (order - 1)


ORDERS = [1 + 1e-4, 1.01, 1.1, 1.5, 2, 3, 5, 10, 30, 100]


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 5, 10])
def test_pure_dp_costs_no_less_than_randomised_response_and_discrete_laplace(epsilon):
    rho = float(rho_of_pure(exact(epsilon, "epsilon")))
    response = np.array([1, math.exp(epsilon)]) / (1 + math.exp(epsilon))
    z = np.arange(-math.ceil(40 / epsilon) - 2, math.ceil(40 / epsilon) + 3)
    laplace = np.exp(-epsilon * np.abs(z))
    for order in ORDERS:
        if order * epsilon > 300:
            continue
        pairs = [(response, response[::-1]), (laplace[1:] / laplace.sum(), laplace[:-1] / laplace.sum())]
        for p, q in pairs:
            assert divergence(p, q, order) / order <= rho * (1 + 1e-9) + 1e-9
    # Attained as the order goes to 1, so a smaller figure would be wrong.
    kl = float((response * np.log(response / response[::-1])).sum())
    assert abs(kl) == pytest.approx(rho, rel=1e-9)
    assert rho <= epsilon**2 / 2


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
    st.floats(0.05, 4),
    st.sampled_from(ORDERS[1:]),
)
def test_no_pure_mechanism_costs_more(tilts, masses, epsilon, order):
    """Any two distributions whose likelihood ratios stay within e^ε."""
    q = np.array(masses[: len(tilts)]) / sum(masses[: len(tilts)])
    p = q * np.exp(epsilon / 2 * np.array(tilts))
    p /= p.sum()
    actual = np.abs(np.log(p / q)).max()
    if actual > 1e-6:
        assert divergence(p, q, order) / order <= float(rho_of_pure(F(actual))) * (1 + 1e-6) + 1e-12


@given(st.floats(1e-6, 60))
def test_pure_to_zcdp_rounds_up_and_back_rounds_down(epsilon):
    e = exact(epsilon, "epsilon")
    rho = rho_of_pure(e)
    with mp.workdps(40):
        true = lifted(e) * mp.tanh(lifted(e) / 2)
        assert lifted(rho) >= true
        assert lifted(rho) <= true * (1 + mpf("1e-12"))
    back = ZCDP(rho).to_pure().epsilon
    assert rho_of_pure(back) <= rho
    assert float(back) == pytest.approx(epsilon, rel=1e-9)
    assert PureDP(e).to_zcdp() == ZCDP(rho)


def test_an_approximate_budget_holds_its_epsilon_in_pure_steps():
    assert ApproxDP(2, 1e-6).to_pure() == PureDP(2)
    assert PureDP(2) <= ApproxDP(2, 1e-6)


def test_budgets_say_what_they_are():
    assert str(PureDP(1)) == "ε = 1 (pure DP)"
    assert str(ZCDP(0.5)) == "ρ = 0.5 (zCDP)"
    assert "δ = 1e-06" in str(ApproxDP(1, 1e-6))


@pytest.mark.parametrize("exponent", range(2, 60, 4))
def test_tiny_amounts_of_pure_dp_cost_their_half_square(exponent):
    """ε·tanh(ε/2) = ε²/2 − ε⁴/24 + …, whichever way it is computed."""
    epsilon = F(3, 10**exponent)
    assert epsilon**2 / 2 - epsilon**4 / 24 <= rho_of_pure(epsilon) <= epsilon**2 / 2
