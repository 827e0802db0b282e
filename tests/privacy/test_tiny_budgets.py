"""Budgets at which noise does not fit whole numbers of 64 bits are refused, before a row is touched and for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from untouchable import Untouchable

from discreet.domain import Domain
from discreet.errors import BudgetError
from discreet.learn.fields.likelihood import Field
from discreet.papers.psgd import ClippedGradients, PrivateDescent
from discreet.privacy import mechanisms
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import LARGEST_SCALE, LARGEST_THRESHOLD, NoiseCall, SecureGateway
from discreet.privacy.queries.descent import SampledRounds
from discreet.privacy.queries.edge_tests import SpinTest
from discreet.privacy.queries.parities import PartnerResiduals
from discreet.privacy.query import LargestSum, Marginals
from discreet.privacy.subsampled import noise_multiplier
from discreet.privacy.unit import PrivacyUnit, Sensitivity

TWO = Domain.of({"a": 2, "b": 2})
SINGLES = Marginals(TWO, ["a", "b"])
PARTNERS = PartnerResiduals(TWO, np.zeros((2, 2)))
FIELD = Field(TWO, [("a", "b")], inference="exact")
CLIPPED = ClippedGradients(FIELD, FIELD.uniform(), 1.0)
ONE = Sensitivity(1, 1, 1, 1)


def learner(block: Curator) -> str:
    return "1"


ASKING: dict[str, Callable[[Curator, Budget | None], Any]] = {
    "measure": lambda c, s: c.measure(SINGLES, s),
    "laplace": lambda c, s: c.measure(SINGLES, s, noise="laplace"),
    "gaussian": lambda c, s: c.measure(SINGLES, s, noise="gaussian"),
    "size": lambda c, s: c.size(s or c.budget),
    "select": lambda c, s: c.select(LargestSum(SINGLES), s),
    "select two": lambda c, s: c.select(LargestSum(SINGLES), s, k=2),
    "select each": lambda c, s: c.select_each(PARTNERS, s),
    "noisy-max": lambda c, s: c.select_each(PARTNERS, s, mechanism="laplace"),
    "large cells": lambda c, s: c.large_cells(["a"], s),
    "stable": lambda c, s: c.release_if_stable(SpinTest(TWO, 0.25), s),
    "vote": lambda c, s: c.vote(learner, 3, s),
    "vote among": lambda c, s: c.vote(learner, 3, s, candidates=["0", "1"]),
    "vote for each": lambda c, s: c.vote_for_each(learner, 1, 3, s),
    "vote and test": lambda c, s: c.vote_and_test(learner, 3, s),
    "partition": lambda c, s: c.partition(2, s),
    "subsample": lambda c, s: c.subsample("1/2", s),
    "in sequence": lambda c, s: c.in_sequence(s),
    "rounds": lambda c, s: SampledRounds(s or c.budget, 0.5, 3, lambda done: CLIPPED).ask(c),
    "descent": lambda c, s: PrivateDescent([("a", "b")], 100.0, rounds=2).fit(c, s),
}
TINY = ["1e-18", "1e-19", "1e-25", "1e-200", "1e-320", "1e-500"]
NOTIONS: dict[str, Callable[[str], Budget]] = {
    "pure": PureDP,
    "zcdp": lambda x: ZCDP(Fraction(x) ** 2),
    "approx": lambda x: ApproxDP(x, "1e-6"),
}


@pytest.mark.parametrize("amount", TINY)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("name", ASKING)
def test_a_tiny_budget_is_refused(name: str, notion: str, amount: str) -> None:
    budget = NOTIONS[notion](amount)
    ledger = Ledger.in_memory(budget)
    curator = Curator(Untouchable(TWO), budget=budget, ledger=ledger)
    with pytest.raises(BudgetError):
        ASKING[name](curator, None)
    assert curator.spent is None and ledger.spent is None


@pytest.mark.parametrize("amount", ["1e-18", "1e-320"])
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("name", ASKING)
def test_a_tiny_share_of_a_large_budget_is_refused(name: str, notion: str, amount: str) -> None:
    budget = {"pure": PureDP(1), "zcdp": ZCDP(1), "approx": ApproxDP(1, "1e-5")}[notion]
    curator = Curator(Untouchable(TWO), budget=budget)
    with pytest.raises(BudgetError):
        ASKING[name](curator, NOTIONS[notion](amount))
    assert curator.spent is None


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(1), ApproxDP(1, 1e-6)], ids=str)
def test_a_tiny_weight_is_refused(budget: Budget) -> None:
    curator = Curator(Untouchable(TWO), budget=budget)
    with pytest.raises(BudgetError, match="divided among too many"):
        curator.measure(SINGLES, weights=[1, "1e-40"])
    assert curator.spent is None


@pytest.mark.parametrize("name", ["large cells", "stable", "vote", "vote for each", "vote and test", "rounds"])
@pytest.mark.parametrize("delta", ["1e-500", "1e-5000"])
def test_a_delta_below_all_floats_is_answered_or_refused(name: str, delta: str) -> None:
    """What would be answered touches the rows, and they say so."""
    curator = Curator(Untouchable(TWO), budget=ApproxDP(1, delta))
    with pytest.raises((AssertionError, BudgetError), match=r"rows were touched|too small") as seen:
        ASKING[name](curator, None)
    assert isinstance(seen.value, AssertionError) or curator.spent is None


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_of_the_largest_scale_fits(kind: Any) -> None:
    """100,000 draws; one beyond 2⁶² has probability e⁻⁶⁴."""
    drawn = SecureGateway().add_noise(NoiseCall(kind, float(LARGEST_SCALE), ONE), np.zeros(100_000, dtype=np.int64))
    assert int(np.abs(drawn).max()) < 2**62
    assert int(np.abs(drawn).max()) > LARGEST_SCALE


@pytest.mark.parametrize("kind", ["permute-and-flip", "exponential", "noisy-max"])
def test_selection_at_the_largest_scale_is_made(kind: Any) -> None:
    call = NoiseCall(kind, float(LARGEST_SCALE), ONE)
    assert {SecureGateway().select(call, np.array([0, 2**50])) for _ in range(200)} == {0, 1}


def test_the_limit_is_where_it_is_said_to_be() -> None:
    least = Fraction(1, LARGEST_SCALE)
    assert mechanisms.laplace_scale(1, least) == LARGEST_SCALE
    assert mechanisms.selection_scale_pure(1, 2 * least) == LARGEST_SCALE
    assert mechanisms.gaussian_scale(2, least**2) == LARGEST_SCALE
    assert mechanisms.selection_scale_zcdp(1, least**2 / 2) == LARGEST_SCALE
    below = least * Fraction(999, 1000)
    for refused in (
        lambda: mechanisms.laplace_scale(1, below),
        lambda: mechanisms.selection_scale_pure(1, 2 * below),
        lambda: mechanisms.gaussian_scale(2, below**2),
        lambda: mechanisms.selection_scale_zcdp(1, below**2 / 2),
    ):
        with pytest.raises(BudgetError, match="does not fit whole numbers of 64 bits"):
            refused()


@pytest.mark.parametrize("delta", ["1e-6", "1e-100", "1e-1000", "1e-100000"])
@pytest.mark.parametrize("power", [0, 20, 40, 50, 56])
def test_thresholds_fit_or_are_refused(power: int, delta: str) -> None:
    """By the formula of each, with logarithms of whole numbers: about scale·ln(1/δ)."""
    scale, d = 2.0**power, Fraction(delta)
    about = scale * (math.log(d.denominator) - math.log(d.numerator))
    for threshold in (
        lambda: mechanisms.stability_threshold(scale, d),
        lambda: mechanisms.threshold_for(ONE, scale, d),
    ):
        if about > 2 * LARGEST_THRESHOLD:
            with pytest.raises(BudgetError, match="threshold"):
                threshold()
        elif about < LARGEST_THRESHOLD / 8:
            assert 0.5 * about <= threshold() <= LARGEST_THRESHOLD


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-9), (1.0, 0.0)])
def test_rounds_whose_loss_is_lost_in_rounding_are_refused(epsilon: float, delta: float) -> None:
    """Noise so large that a round loses next to nothing is a mistake in the budget, or in δ."""
    with pytest.raises(BudgetError, match="too small for 3 rounds"):
        noise_multiplier(epsilon, delta, 0.5, 3)


def test_a_plan_refuses_as_the_curator_does() -> None:
    learner = PrivateDescent([("a", "b")], 100.0, rounds=2)
    with pytest.raises(BudgetError):
        learner.plan(TWO, PrivacyUnit(), ApproxDP("1e-30", "1e-6"))
