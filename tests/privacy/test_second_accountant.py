"""A second accountant for all that is calibrated: the privacy loss of the draws *that were seen*, by dp-accounting.

What a curator asks of its gateway, and how often and with which keys and rates it samples its rows, is written down;
the privacy-loss distribution of exactly that, computed by another library, must be within what was claimed. It is not
far within either: noise for nothing is a mistake too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.pld import privacy_loss_distribution as distributions

from discreet.audit.transcripts import RecordingGateway, Transcript
from discreet.domain import Domain
from discreet.papers.psgd import PrivateDescent
from discreet.privacy.accounting import Cost
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import NoiseCall
from discreet.privacy.queries.descent import SampledRounds
from discreet.privacy.query import CellSums, Marginals
from discreet.privacy.subsampled import epsilon_of_rounds, noise_multiplier
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

DOMAIN = Domain.of({"a": 2, "b": 3})
ROW, REPLACE = PrivacyUnit(), PrivacyUnit(relation="replace-one")
FINE = 1e-3


class Sampled(MemoryTable):
    """Writes down which samples were taken of it, and how many rows they had."""

    seen: list[tuple[Fraction, bytes, bytes]]

    def sample(self, rate: Fraction, key: bytes) -> MemoryTable:
        part = super().sample(rate, key)
        self.seen.append((rate, key, np.concatenate([c.astype(np.int64) for c in part._columns.values()]).tobytes()))
        return part

    def without_persons(self) -> MemoryTable:
        return self


def run(ask: Callable[[Curator], Any], budget: Budget, unit: PrivacyUnit = ROW) -> tuple[list[NoiseCall], Sampled]:
    rng = np.random.default_rng(5)
    rows = Sampled(DOMAIN, [rng.integers(0, k, 200).astype(np.uint8) for k in DOMAIN.shape], threads=1)
    rows.seen = []
    seen = Transcript()
    with Ledger.in_memory(budget) as ledger:
        ask(Curator(rows, unit, budget, ledger, gateway=RecordingGateway(seen, ledger)))
    return [r.call for r in seen.calls if r.call is not None], rows


# -- sums of random samples --------------------------------------------------------------------------------------------


def epsilon_of(multiplier: float, rate: float, rounds: int, delta: float) -> float:
    accountant = pld.PLDAccountant(value_discretization_interval=FINE)
    event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))
    accountant.compose(dp.SelfComposedDpEvent(event, rounds))
    return float(accountant.get_epsilon(delta))


MULTIPLIERS = [(1.0, 1e-5, 0.1, 30), (0.5, 1e-6, 0.02, 200), (3.0, 1e-5, 0.5, 10), (1.0, 1e-6, 1.0, 10)]


@pytest.mark.parametrize(("epsilon", "delta", "rate", "rounds"), MULTIPLIERS)
def test_every_multiplier_of_sampled_rounds(epsilon: float, delta: float, rate: float, rounds: int) -> None:
    multiplier = noise_multiplier(epsilon, delta, rate, rounds)
    seen = epsilon_of(multiplier, rate, rounds, delta)
    assert 0.8 * epsilon < seen <= epsilon
    assert seen <= epsilon_of_rounds(multiplier, delta, rate, rounds) <= epsilon


@pytest.mark.parametrize("multiplier", [0.3, 3.0, 1000.0])
@pytest.mark.parametrize("rate", [1e-4, 0.3, 1.0])
@pytest.mark.parametrize(("rounds", "delta"), [(1, 1e-5), (10_000, 1e-9)])
def test_sampled_rounds_cost_what_another_program_says(
    multiplier: float, rate: float, rounds: int, delta: float
) -> None:
    theirs = rdp.RdpAccountant([*range(2, 65), *range(72, 513, 8)])
    theirs.compose(dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier)), rounds))
    assert epsilon_of_rounds(multiplier, delta, rate, rounds) == pytest.approx(theirs.get_epsilon(delta), rel=1e-9)


@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_descent_draws_what_it_books(rate: float) -> None:
    """From the samples that were taken and the noise that was asked for: rate, rounds, fresh coins and all."""
    budget, rounds = ApproxDP(1, 1e-5), 8
    learner = PrivateDescent([("a", "b")], approximate_size=200, rounds=rounds, rate=rate)
    calls, rows = run(learner.fit, budget)
    assert len(calls) == len(rows.seen) == rounds
    assert {r for r, _, _ in rows.seen} == {Fraction(str(rate))}
    assert len({key for _, key, _ in rows.seen}) == rounds, "coins were used twice"
    assert len({taken for _, _, taken in rows.seen}) == rounds, "one sample served several rounds"
    multipliers = {c.scale / math.sqrt(c.sensitivity.l2_squared) for c in calls}
    seen = epsilon_of(min(multipliers), float(rate), rounds, 1e-5)
    assert 0.8 < seen <= 1


def test_the_book_of_sampled_rounds_says_what_was_drawn() -> None:
    budget = ApproxDP(1, 1e-5)
    seen: list[Any] = []

    def ask(curator: Curator) -> None:
        SampledRounds(budget, 0.3, 4, lambda done: CellSums(DOMAIN, ["a"], np.ones((2, 1)) * 4096)).ask(curator)
        seen.extend(curator.steps)
        assert [b.costs for b in curator.bookings] == [(Cost.of(budget),)]
        assert curator.remaining is None

    calls, _ = run(ask, budget)
    (step,) = seen
    assert (Fraction(step["rate"]), step["rounds"]) == (Fraction("0.3"), 4)
    assert step["multiplier"] == pytest.approx(calls[0].scale / 4096, rel=1e-4)
    assert epsilon_of(step["multiplier"], 0.3, 4, 1e-5) <= 1


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, 1e-6)], ids=str)
def test_a_sample_is_amplified_by_its_own_rate(budget: Budget, rate: Fraction) -> None:
    """ε of the whole, from what was drawn on the sample: ln(1 + q(e^ε′ − 1)), and δ = qδ′."""
    calls, rows = run(lambda c: c.subsample(rate).measure(Marginals(DOMAIN, [("a",)]), noise="laplace"), budget)
    assert [r for r, _, _ in rows.seen] == [rate]
    (call,) = calls
    whole = math.log1p(float(rate) * math.expm1(1 / call.scale))
    assert 0.99 < whole <= 1


# -- plain noise -------------------------------------------------------------------------------------------------------


def delta_of(calls: list[NoiseCall], epsilon: float) -> float:
    """δ of neighbours that move as many cells by one as the calls say. The loss of every cell is rounded up to a grid,
    and so is ε: a mistake of a thousandth of it is not seen."""
    parts, fine = [], FINE * min(1.0, epsilon) / 10
    rounded = epsilon + fine * sum(c.sensitivity.l0 for c in calls)
    for call in calls:
        if call.kind == "laplace":
            one = distributions.from_discrete_laplace_mechanism(1 / call.scale, value_discretization_interval=fine)
        else:
            one = distributions.from_discrete_gaussian_mechanism(call.scale, 1, value_discretization_interval=fine)
        parts.append(one.self_compose(call.sensitivity.l0))
    return float(reduce(lambda a, b: a.compose(b), parts).get_delta_for_epsilon(rounded))


TABLES = Marginals(DOMAIN, [("a",), ("b",), ("a", "b")])


def steps(curator: Curator) -> None:
    first, second = curator.budget.split([1, 3])
    curator.measure(Marginals(DOMAIN, [("a",)]), first)
    curator.measure(Marginals(DOMAIN, [("b",), ("a", "b")]), second)


def gaussian_steps(curator: Curator) -> None:
    child = curator.in_gaussian()
    first, second = child.budget.to_gaussian().split([1, 3])  # type: ignore[attr-defined]
    child.measure(Marginals(DOMAIN, [("a",)]), first)
    child.measure(Marginals(DOMAIN, [("b",), ("a", "b")]), second)


PLAIN: dict[str, Callable[[Curator], Any]] = {
    "one table": lambda c: c.measure(Marginals(DOMAIN, [("a",)])),
    "three tables": lambda c: c.measure(TABLES),
    "weights": lambda c: c.measure(TABLES, weights=[1, 2, 5]),
    "Laplace": lambda c: c.measure(TABLES, noise="laplace"),
    "Gaussian": lambda c: c.measure(TABLES, noise="gaussian"),
    "steps": steps,
    "Gaussian steps": gaussian_steps,
}


@pytest.mark.parametrize("unit", [ROW, REPLACE], ids=str)
@pytest.mark.parametrize("budget", [ApproxDP(1, 1e-6), ApproxDP("0.3", 1e-3)], ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_approximate_budgets_are_kept(name: str, budget: ApproxDP, unit: PrivacyUnit) -> None:
    calls, _ = run(PLAIN[name], budget, unit)
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    assert delta_of(calls, epsilon) <= delta
    if name in ("Gaussian", "Gaussian steps", "weights"):  # one curve for all: all of δ is used
        assert delta_of(calls, epsilon * 0.9) > delta / 3


@pytest.mark.parametrize("unit", [ROW, REPLACE], ids=str)
@pytest.mark.parametrize("name", ["one table", "three tables", "weights", "steps"])
def test_pure_budgets_are_kept_to_the_last_bit(name: str, unit: PrivacyUnit) -> None:
    calls, _ = run(PLAIN[name], PureDP("0.7"), unit)
    spent = sum(Fraction(c.sensitivity.l1) / Fraction(c.scale) for c in calls)
    assert Fraction(7, 10) * (1 - Fraction(1, 10**9)) <= spent <= Fraction(7, 10)
    moved = 1 if unit is ROW else 2
    assert {(c.sensitivity.l1, c.sensitivity.l0) for c in calls} == {(moved, moved)}


@pytest.mark.parametrize("unit", [ROW, REPLACE], ids=str)
@pytest.mark.parametrize("name", ["one table", "three tables", "weights", "Gaussian", "steps"])
def test_concentrated_budgets_are_kept(name: str, unit: PrivacyUnit) -> None:
    """By the Rényi divergences of the draws themselves, summed over whole numbers."""
    calls, _ = run(PLAIN[name], ZCDP("0.05"), unit)
    z = np.arange(-400, 401).astype(np.float64)
    for order in (1.5, 2.0, 8.0, 40.0):
        total = 0.0
        for call in calls:
            log_p = -np.abs(z) / call.scale if call.kind == "laplace" else -(z**2) / (2 * call.scale**2)
            log_q = -np.abs(z - 1) / call.scale if call.kind == "laplace" else -((z - 1) ** 2) / (2 * call.scale**2)
            log_p, log_q = log_p - np.logaddexp.reduce(log_p), log_q - np.logaddexp.reduce(log_q)
            one = np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)
            total += call.sensitivity.l0 * float(one)
        assert total <= 0.05 * order * (1 + 1e-6)
        if name == "Gaussian":
            assert total >= 0.05 * order * 0.99
