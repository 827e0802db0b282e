"""Composition: what is admitted stays within the total by an independent sum; what is refused changes nothing."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BudgetError
from discreet.privacy.accounting import Accountant, Cost, Spending
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP, rho_of_pure, rho_within
from discreet.privacy.gaussian import cost_of_pure

F = Fraction

small = st.fractions(F(1, 1000), F(3, 2), max_denominator=10_000)
deltas = st.sampled_from([F(1, 10**7), F(1, 10**8), F(2, 10**7), F(1, 10**6)])
costs = st.one_of(
    small.map(Cost.pure),
    small.map(lambda r: Cost.zcdp(r / 20)),
    st.tuples(small, deltas).map(lambda t: Cost.approx(*t)),
    st.tuples(small, deltas, small).map(lambda t: Cost(epsilon=t[0], epsilon_delta=t[1], rho=t[2] / 20)),
    small.map(lambda e: Cost(epsilon=e, rho=e * e / 8)),
)
totals = st.one_of(
    small.map(lambda e: PureDP(2 * e)),
    small.map(lambda r: ZCDP(r / 4)),
    st.tuples(small, st.sampled_from([F(1, 10**6), F(1, 10**5)])).map(lambda t: ApproxDP(2 * t[0], t[1])),
)


def epsilon_at(rho, delta):
    """ε of ρ-zCDP at δ, over a dense set of orders: an upper bound that is close to the best."""
    gap = np.exp(np.linspace(-10, 20, 20_001))
    bound = (1 + gap) * rho + (-math.log(delta) - np.log1p(gap)) / gap - np.log1p(1 / gap)
    return max(float(bound.min()), 0.0)


def rho_floor(cost):
    """ρ of a step, computed on our own for steps that are pure and nothing else."""
    if cost.is_pure and cost.rho == rho_of_pure(cost.epsilon):
        return float(cost.epsilon) * math.tanh(float(cost.epsilon) / 2)
    return float(cost.rho)


def is_within(taken, total, delta_for_tests):
    """Whether these steps compose to within the total, by rules written out again."""
    if isinstance(total, PureDP):
        return all(c.epsilon is not None and not c.epsilon_delta for c in taken) and (
            sum(c.epsilon for c in taken) <= total.epsilon
        )
    if isinstance(total, ZCDP):
        return all(c.rho is not None and not c.rho_delta for c in taken) and (
            sum(map(rho_floor, taken)) <= float(total.rho) * (1 + 1e-12)
        )
    pure = all(c.is_pure for c in taken) and sum(c.epsilon or 0 for c in taken) <= total.epsilon
    alone = len(taken) == 1 and taken[0].epsilon is not None and taken[0].epsilon <= total.epsilon
    alone = alone and taken[0].epsilon_delta <= total.delta
    concentrated = all(c.rho is not None for c in taken) and (
        sum(c.rho_delta for c in taken) <= delta_for_tests
        and epsilon_at(sum(map(rho_floor, taken)), float(total.delta - delta_for_tests))
        <= float(total.epsilon) * (1 + 1e-5)
    )
    return pure or alone or concentrated


@settings(max_examples=250, deadline=None)
@given(totals, st.lists(costs, max_size=12), st.booleans())
def test_every_admitted_sequence_is_within_the_total(total, steps, with_tests):
    aside = total.delta / 3 if with_tests and isinstance(total, ApproxDP) else F(0)
    accountant = Accountant(total, delta_for_tests=aside)
    taken = []
    for cost in steps:
        before, fits = accountant.spending, accountant.fits(cost)
        try:
            accountant.charge(cost)
        except BudgetError:
            assert not fits
            assert accountant.spending == before
        else:
            assert fits
            taken.append(cost)
        if taken:
            assert is_within(taken, total, aside)
            assert accountant.spent <= total
        left = accountant.remaining
        if left is not None:  # what is said to be left can be spent, to the last bit
            assert accountant.fits(Cost.of(left))
    assert accountant.spending.steps == len(taken)


@settings(max_examples=100, deadline=None)
@given(small, deltas, st.lists(costs, max_size=12))
def test_basic_composition_adds_up(epsilon, delta, steps):
    total = ApproxDP(2 * epsilon, 2 * delta)
    accountant = Accountant(total, composition="basic")
    epsilons, ds = F(0), F(0)
    for cost in steps:
        if cost.epsilon is None:
            fits = False
        else:
            fits = epsilons + cost.epsilon <= total.epsilon and ds + cost.epsilon_delta <= total.delta
        assert accountant.fits(cost) == fits
        if fits:
            accountant.charge(cost)
            epsilons, ds = epsilons + cost.epsilon, ds + cost.epsilon_delta
            left = accountant.remaining
            assert left is None or accountant.fits(Cost.of(left))


def test_a_total_can_be_used_up_exactly_and_no_further():
    tenth = Cost.pure(F(1, 10))
    pure = Accountant(PureDP(1))
    for _ in range(10):
        pure.charge(tenth)
    assert pure.spent == PureDP(1)
    assert pure.remaining is None
    with pytest.raises(BudgetError, match="does not suffice"):
        pure.charge(Cost.pure(F(1, 10**30)))
    concentrated = Accountant(ZCDP(1))
    for share in ZCDP(1).split([1, 2, 3, 7]):
        concentrated.charge(Cost.of(share))
    assert concentrated.remaining is None


def test_several_steps_are_taken_all_or_none():
    accountant = Accountant(PureDP(1))
    accountant.charge(Cost.pure(F(1, 2)))
    before = accountant.spending
    with pytest.raises(BudgetError):
        accountant.charge(Cost.pure(F(1, 4)), Cost.pure(F(1, 4)), Cost.pure(F(1, 4)))
    assert accountant.spending == before
    accountant.charge(Cost.pure(F(1, 4)), Cost.pure(F(1, 4)))
    assert accountant.remaining is None


def test_pure_steps_may_use_all_of_epsilon():
    """Rule (a): far more than the concentrated rule would allow."""
    accountant = Accountant(ApproxDP(1, 1e-6))
    accountant.charge(Cost.pure(F(1, 2)))
    assert rho_of_pure(F(1, 2)) > rho_within(F(1), F(1, 10**6))
    assert accountant.remaining == PureDP(F(1, 2))
    accountant.charge(Cost.pure(F(1, 2)))
    assert accountant.remaining is None
    assert accountant.spent == ApproxDP(1, 1e-6)


def test_a_mixture_goes_by_the_concentrated_rule():
    total = ApproxDP(1, 1e-6)
    accountant = Accountant(total)
    rho = rho_within(total.epsilon, total.delta)
    accountant.charge(Cost.pure(F(1, 20)))
    assert not accountant.fits(Cost.zcdp(rho))
    accountant.charge(Cost.zcdp(rho - rho_of_pure(F(1, 20))))
    assert accountant.remaining is None
    assert accountant.spent <= total


def test_a_first_step_with_its_own_delta_may_be_the_only_one():
    accountant = Accountant(ApproxDP(1, 1e-6))
    accountant.charge(Cost.approx(F(1, 100), F(1, 10**7)))
    assert accountant.remaining is None  # rule (c) is about one step
    with pytest.raises(BudgetError, match="set delta_for_tests"):
        accountant.charge(Cost.approx(F(1, 100), F(1, 10**7)))
    with pytest.raises(BudgetError):
        accountant.charge(Cost.zcdp(F(1, 10**6)))


def test_delta_set_aside_pays_for_tests_and_is_not_used_twice():
    total, aside = ApproxDP(1, 1e-6), F(1, 2 * 10**6)
    accountant = Accountant(total, delta_for_tests=aside)
    accountant.charge(Cost.approx(F(1, 100), aside))
    rest = rho_within(total.epsilon, total.delta - aside) - rho_of_pure(F(1, 100))
    assert accountant.remaining == ZCDP(rest)
    accountant.charge(Cost.zcdp(rest))
    assert not accountant.fits(Cost.zcdp(F(1, 10**9)))
    assert rest < rho_within(total.epsilon, total.delta)
    again = Accountant(total, delta_for_tests=aside)
    again.charge(Cost.approx(F(1, 100), aside))
    with pytest.raises(BudgetError, match="δ of its own"):
        again.charge(Cost.approx(F(1, 100), F(1, 10**9)))


@pytest.mark.parametrize("aside", [F(1, 10**6), F(1, 10**5), F(-1, 10**7)])
def test_delta_set_aside_lies_within_delta(aside):
    with pytest.raises(BudgetError, match="delta_for_tests"):
        Accountant(ApproxDP(1, 1e-6), delta_for_tests=aside)
    with pytest.raises(BudgetError, match="delta_for_tests"):
        Accountant(PureDP(1), delta_for_tests=F(1, 10**7))


@pytest.mark.parametrize(
    ("total", "composition", "cost", "message"),
    [
        (PureDP(1), "concentrated", Cost.zcdp(F(1, 100)), "use Laplace noise"),
        (PureDP(1), "concentrated", Cost.approx(F(1, 100), F(1, 10**9)), "cannot pay"),
        (ZCDP(1), "concentrated", Cost.approx(F(1, 100), F(1, 10**9)), "δ of its own"),
        (ApproxDP(1, 1e-6), "basic", Cost.zcdp(F(1, 100)), "keep the total in ZCDP"),
        (PureDP(1), "concentrated", Cost.pure(F(2)), r"the total is ε = 1 \(pure DP\), already spent is nothing"),
        (ZCDP(1), "concentrated", Cost.zcdp(F(2)), "does not suffice"),
    ],
)
def test_refusals_say_why_and_what_to_do(total, composition, cost, message):
    accountant = Accountant(total, composition=composition)
    with pytest.raises(BudgetError, match=message):
        accountant.charge(cost)
    assert accountant.spending.steps == 0
    assert accountant.spent is None


def test_the_cost_of_a_budget():
    assert Cost.of(PureDP(1)) == Cost(epsilon=F(1), rho=rho_of_pure(F(1)), mu_squared=cost_of_pure(F(1)))
    assert Cost.of(ZCDP(1)) == Cost(rho=F(1))
    assert Cost.of(ApproxDP(1, F(1, 100))) == Cost.approx(F(1), F(1, 100))
    assert Cost.of(ApproxDP(1, F(1, 100))).rho_delta == F(1, 100)
    with pytest.raises(BudgetError):
        Cost.of("ten")


@pytest.mark.parametrize(
    ("total", "costs", "asked"),
    [
        (PureDP(1), [Cost.pure(F("0.4")), Cost.pure(F("0.8"))], r"asked for ε = 1\.2, left is ε = 1 \(pure DP\);"),
        (ZCDP(1), [Cost.zcdp(F("0.4")), Cost.zcdp(F("0.8"))], r"asked for ρ = 1\.2, left is ρ = 1 \(zCDP\);"),
        (ApproxDP(1, "1e-6"), [Cost.approx(F(2), F("1e-7"))], r"asked for ε = 2, δ = 1e-07, left is ε = 1, δ = 1e-06"),
    ],
)
def test_a_refusal_says_what_was_asked_in_all_and_what_is_left(total, costs, asked):
    with pytest.raises(BudgetError, match=asked):
        Accountant(total, composition="basic").charge(*costs)


def test_hundreds_of_different_scales_can_be_written_down() -> None:
    """Their sum has no short denominator; what was paid for must not be lost for want of a number to print."""
    accountant = Accountant(PureDP(1))
    costs = [Cost.pure(1 / Fraction(1000 + i / 7)) for i in range(900)]
    accountant.charge(*costs)
    exact = sum((cost.epsilon for cost in costs if cost.epsilon), Fraction(0))
    assert accountant.spent is not None and accountant.remaining is not None
    spent, left = Budget.from_dict(accountant.spent.to_dict()), Budget.from_dict(accountant.remaining.to_dict())
    assert isinstance(spent, PureDP) and isinstance(left, PureDP)
    assert 0 <= spent.epsilon - exact < Fraction(1, 10**50) and spent.epsilon + left.epsilon == 1
    assert Spending.of(Counter(costs)) == accountant.spending


@pytest.mark.parametrize("text", ["1e999999999", "-1", "0.5", "nan", "1/", "", "１", "1/0"])
def test_a_budget_in_a_file_is_a_rational_and_nothing_else(text: str) -> None:
    with pytest.raises(BudgetError):
        Budget.from_dict({"notion": "pure", "epsilon": text})


@pytest.mark.parametrize("total", [ZCDP(1), ApproxDP(1, 1e-6), PureDP(1)], ids=str)
@pytest.mark.parametrize("cost", [Cost(mu_squared=F(1, 100)), Cost(epsilon=F(1, 2), epsilon_delta=F(1, 10**7))])
def test_a_step_without_a_proof_in_a_notion_is_not_free_in_it(total, cost):
    """It has no ρ at all: that is not a ρ of 0."""
    accountant = Accountant(total)
    accountant.charge(Cost.pure(F(1, 100)))
    assert not accountant.fits(cost)
    with pytest.raises(BudgetError):
        accountant.charge(cost)
    if isinstance(total, ApproxDP):
        accountant = Accountant(total, delta_for_tests=F(1, 10**7))
        accountant.charge(Cost.zcdp(F(1, 10**4)))
        assert not accountant.fits(cost)
