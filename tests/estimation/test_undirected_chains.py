"""Chains of people: steps from a long table, bounded contributions, and their audits."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet.audit.replay import replay_pair
from discreet.domain import Attribute
from discreet.errors import InputError
from discreet.papers.chains import STEPS, UNITS, ChainLearner, MarkovChain, ScaledSteps
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.query import CellSums, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.sequences import AFTER, BEFORE, steps, steps_domain

PLACES = Attribute.categorical("place", ["away", "hall", "desk"])
START, GO = np.array([0.1, 0.6, 0.3]), np.array([[0.8, 0.15, 0.05], [0.1, 0.5, 0.4], [0.05, 0.25, 0.7]])


def walks(people: int, length: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    states = np.zeros((people, length), dtype=int)
    states[:, 0] = rng.choice(3, people, p=START)
    for t in range(1, length):
        u = rng.random(people)
        states[:, t] = (u[:, None] > GO[states[:, t - 1]].cumsum(axis=1)).sum(axis=1)
    order = rng.permutation(people * length)  # a long table is in no order
    who, when = np.divmod(np.arange(people * length), length)
    labels = np.array(PLACES.labels)[states.reshape(-1)]
    return {"who": who[order], "when": when[order], "place": labels[order]}


def test_steps_are_what_people_did() -> None:
    rows = {
        "who": ["b", "a", "a", "a", "b", None],
        "when": [2, 3, 1, 2, 1, 1],
        "place": ["desk", "away", "hall", "hall", "away", "hall"],
    }
    table = steps(rows, PLACES, person="who", time="when", largest=5)
    (counts,) = ExactCurator(table, PrivacyUnit("who", max_rows=5)).measure(ChainLearner().query(table.domain))
    expected = np.zeros((4, 3), dtype=int)
    for before, after in [(3, 1), (1, 1), (1, 0), (3, 0), (0, 2)]:  # a: hall hall away; b: away desk
        expected[before, after] += 1
    np.testing.assert_array_equal(counts.counts, expected)
    without = steps(rows, PLACES, person="who", time="when", null="away", largest=5)
    (fewer,) = ExactCurator(without, PrivacyUnit("who", max_rows=5)).measure(ChainLearner().query(table.domain))
    expected[3, 0] -= 1  # b's sequence starts with nothing seen
    np.testing.assert_array_equal(fewer.counts, expected)


def test_sequences_of_one_person_have_starts_of_their_own() -> None:
    rows = {"who": [1, 1, 1, 1], "when": [1, 2, 3, 4], "hour": [8, 8, 9, 9], "place": ["hall"] * 4}
    table = steps(rows, PLACES, person="who", time="when", sequence="hour")
    (counts,) = ExactCurator(table, PrivacyUnit("who", max_rows=9)).measure(ChainLearner().query(table.domain))
    assert counts.counts[3, 1] == 2
    assert counts.counts[1, 1] == 2


@pytest.mark.parametrize("method", ["noise_aware", "naive", "cgm"])
@pytest.mark.parametrize("bound", ["sample", "scale"])
def test_a_chain_is_learned(bound: Any, method: str) -> None:
    table = steps(walks(4000, 12, 1), PLACES, person="who", time="when", largest=20)
    chain = ChainLearner(bound, method).fit(Curator(table, PrivacyUnit("who", max_rows=6), PureDP(2)))
    within = 0.06 if method == "noise_aware" else 0.12
    np.testing.assert_allclose(chain.transitions, GO, atol=within)
    np.testing.assert_allclose(chain.initial, START, atol=within)
    model = chain.model(3)
    np.testing.assert_allclose(model.marginal(["x1"]).probabilities, chain.initial)
    np.testing.assert_allclose(model.marginal(["x2"], {"x1": "hall"}).probabilities, chain.transitions[1])
    assert chain.card is not None
    assert chain.card["unit"]["column"] == "who"


def test_held_out_likelihood_on_private_steps() -> None:
    train, test = (steps(walks(3000, 10, s), PLACES, person="who", time="when") for s in (1, 2))
    chain = ChainLearner().fit(ExactCurator(train, PrivacyUnit("who", max_rows=10)))
    unit = PrivacyUnit("who", max_rows=10)
    (counts,) = ExactCurator(test, unit).measure(ChainLearner().query(test.domain))
    free = chain.log_likelihood(counts.counts)
    paid = chain.held_out(Curator(test, unit, PureDP(1)))
    assert free == pytest.approx((counts.counts * np.log(np.vstack([GO, START]))).sum() / counts.counts.sum(), abs=0.01)
    assert paid == pytest.approx(free, abs=0.05)
    assert chain.held_out(Curator(steps(walks(0, 10, 1), PLACES, person="who", time="when"), unit, PureDP(1))) <= 0


def test_sensitivities_are_stated_for_persons() -> None:
    domain = steps_domain(PLACES, 10)
    (s,) = ScaledSteps(domain).sensitivity(PrivacyUnit("who", max_rows=10))
    assert (s.l1, s.linf) == (UNITS, UNITS)
    (s,) = ScaledSteps(domain).sensitivity(PrivacyUnit("who", max_rows=10, relation="replace-one"))
    assert s.l1 == 2 * UNITS
    with pytest.raises(InputError, match="max_rows=11"):
        ScaledSteps(domain).sensitivity(PrivacyUnit("who", max_rows=11))
    with pytest.raises(InputError, match="person"):
        ScaledSteps(domain).sensitivity(PrivacyUnit())
    plan = ChainLearner().plan(domain, PrivacyUnit("who", max_rows=7), PureDP(1))
    assert plan.tables[0].noise.scale == pytest.approx(7)
    scaled = ChainLearner("scale").plan(domain, PrivacyUnit("who", max_rows=7), PureDP(1))
    assert scaled.tables[0].noise.scale == pytest.approx(UNITS)  # one person, in units of the grid
    assert scaled.tables[0].standard_deviation == pytest.approx(2**0.5)


# -- audits ----------------------------------------------------------------------------------------------------------


def neighbours(rng: np.random.Generator, relation: str) -> list[dict[str, np.ndarray]]:
    """Two long tables that differ in one person."""
    people = int(rng.integers(0, 4))

    def person(number: int) -> list[tuple[int, int, str]]:
        n = int(rng.integers(1, 9))
        return [(number, int(rng.integers(0, 6)), PLACES.labels[int(rng.integers(0, 3))]) for _ in range(n)]

    common = [row for i in range(people) for row in person(i)]
    tables = [common, common + person(people)] if relation == "add-remove" else [common + person(people)] * 2
    if relation == "replace-one":
        tables[1] = common + person(people)
    return [
        dict(zip(("who", "when", "place"), map(list, zip(*(t or [(None, 0, "hall")]), strict=True)), strict=True))
        for t in tables
    ]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)], ids=lambda b: b.notion)
@pytest.mark.parametrize("bound", ["sample", "scale"])
def test_replay_finds_nothing(bound: Any, budget: Budget, relation: Any) -> None:
    rng = np.random.default_rng(4)
    unit = PrivacyUnit("who", max_rows=3, relation=relation)
    for _ in range(15):
        left, right = (steps(t, PLACES, person="who", time="when", largest=6) for t in neighbours(rng, relation))
        outcome = replay_pair(ChainLearner(bound).fit, left, right, unit, budget)
        assert outcome.returned
        assert not outcome.problems, outcome.problems


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)], ids=lambda b: b.notion)
def test_held_out_likelihood_replays(budget: Budget, relation: Any) -> None:
    rng = np.random.default_rng(5)
    unit = PrivacyUnit("who", max_rows=3, relation=relation)
    chain = MarkovChain(PLACES, START, GO)
    for _ in range(10):
        left, right = (steps(t, PLACES, person="who", time="when", largest=6) for t in neighbours(rng, relation))
        outcome = replay_pair(chain.held_out, left, right, unit, budget)
        assert outcome.returned
        assert not outcome.problems, outcome.problems


def test_a_likelihood_that_is_not_clipped_would_be_caught() -> None:
    """Terms of steps that the chain calls impossible, with the sensitivity of clipped ones."""

    class Careless(CellSums):
        def row_sensitivity(self, relation: Any) -> Any:
            return CellSums(self.domain, STEPS, np.ones((4, 3, 2)), grid=Fraction(1, 1024)).row_sensitivity(relation)

    chain = MarkovChain(PLACES, np.array([1.0, 0.0, 0.0]), np.eye(3))

    def careless(curator: Curator) -> Any:
        terms = np.stack([chain.step_scores(-20.0) / 8, np.ones((4, 3))], axis=-1)
        return curator.measure(Careless(curator.domain, STEPS, terms, grid=Fraction(1, 1024)))

    rng = np.random.default_rng(5)
    names = set()
    for _ in range(20):
        left, right = (steps(t, PLACES, person="who", time="when", largest=6) for t in neighbours(rng, "add-remove"))
        outcome = replay_pair(careless, left, right, PrivacyUnit("who", max_rows=1), PureDP(1))
        names |= {p.name for p in outcome.problems}
    assert "within the declared sensitivity" in names


def test_a_bound_per_row_would_be_caught() -> None:
    """Sampling at most C steps of a person, with the sensitivity of one step."""

    class Careless(Marginals):
        def sensitivity(self, unit: PrivacyUnit) -> Any:
            return self.row_sensitivity(unit.relation)

    rng = np.random.default_rng(6)
    for relation in ("add-remove", "replace-one"):
        names = set()
        for _ in range(20):
            left, right = (steps(t, PLACES, person="who", time="when", largest=6) for t in neighbours(rng, relation))
            unit = PrivacyUnit("who", max_rows=3, relation=relation)
            outcome = replay_pair(lambda c: c.measure(Careless(c.domain, [STEPS])), left, right, unit, PureDP(1))
            names |= {p.name for p in outcome.problems}
        assert "within the declared sensitivity" in names, relation


def test_a_wrong_k_would_be_caught() -> None:
    """K counted without the steps that are kept: the bias of the paper's reading with null–null steps."""
    rng = np.random.default_rng(4)
    unit = PrivacyUnit("who", max_rows=6)
    names = set()
    for _ in range(30):
        tables = [steps(t, PLACES, person="who", time="when", largest=6) for t in neighbours(rng, "add-remove")]
        for table in tables:
            table._columns["steps"] = np.zeros_like(table._columns["steps"])  # everybody claims one step
        outcome = replay_pair(ChainLearner("scale").fit, tables[0], tables[1], unit, PureDP(1))
        names |= {p.name for p in outcome.problems}
    assert "within the declared sensitivity" in names


@pytest.mark.parametrize("odd", ["late", None, 2.5, "2020-01-01", True, "nan", "inf", 10**400])
def test_an_odd_time_of_one_person_moves_nobody_elses_steps(odd):
    """How times compare must not depend on what else the column holds."""
    states = Attribute.categorical("state", ["x", "y"])
    people = [f"p{i}" for i in range(20)]
    rows = {"person": people * 2, "time": [9] * 20 + [10] * 20, "state": ["x"] * 20 + ["y"] * 20}
    more = {key: [*values, extra] for (key, values), extra in zip(rows.items(), ["new", odd, "x"], strict=True)}
    for make in (dict, pd.DataFrame):
        alone, together = (steps(make(r), states, person="person", time="time") for r in (rows, more))
        counts = [t.count([(BEFORE, AFTER)])[0] for t in (alone, together)]
        assert np.abs(counts[1] - counts[0]).sum() <= 1


def test_a_missing_time_does_not_blur_everybody_elses() -> None:
    """A frame turns whole numbers into floats when one is missing; beyond 2⁵³ that must change nothing either."""
    base = 2**60
    rows = {"who": ["a", "a", "b", "b"], "when": [base, base + 1, base + 1, base], "place": ["hall", "desk"] * 2}
    more = {k: [*v, extra] for (k, v), extra in zip(rows.items(), ["c", None, "away"], strict=True)}
    counts = []
    for each in (rows, more):
        table = steps(pd.DataFrame(each), PLACES, person="who", time="when")
        counts.append(table.count([(BEFORE, AFTER)])[0])
    assert np.abs(counts[1] - counts[0]).sum() <= 1


@pytest.mark.parametrize(
    "times",
    [
        [np.int64(9), np.int64(10)],
        ["9", "10"],
        [datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2020, 1, 1, tzinfo=UTC)],
        [date(2500, 1, 1), date(3000, 1, 1)],
        [timedelta(hours=9), timedelta(hours=10)],
        [np.datetime64("2019-12-31"), np.datetime64("2020-01-01T00:00:00.000000001")],
    ],
    ids=str,
)
def test_times_of_every_kind_are_put_in_order(times: list[Any]) -> None:
    for order in ((0, 1), (1, 0)):
        rows = {"who": [1, 1], "when": [times[i] for i in order], "place": [["hall", "desk"][i] for i in order]}
        table = steps(rows, PLACES, person="who", time="when")
        assert table.count([(BEFORE, AFTER)])[0][1, 2] == 1  # from the hall to the desk


def test_wrong_use_is_explained_before_anything_is_spent() -> None:
    table = steps(walks(5, 3, 1), PLACES, person="who", time="when")
    unit = PrivacyUnit("who", max_rows=3)
    chain = MarkovChain(PLACES, START, GO)
    rows, curator = Curator(table, budget=PureDP(1)), Curator(table, unit, PureDP(1))
    other = MarkovChain(Attribute.categorical("place", ["a", "b"]), np.ones(2) / 2, np.ones((2, 2)) / 2)
    wrong: list[tuple[str, Any]] = [
        ("people", lambda: ChainLearner().fit(rows)),
        ("people", lambda: chain.held_out(rows)),
        ("a plan is made from", lambda: ChainLearner().plan(table.domain, None, PureDP(1))),  # type: ignore[arg-type]
        ("asks a curator", lambda: ChainLearner().fit(table)),  # type: ignore[arg-type]
        ("noise must be", lambda: ChainLearner(noise="normal")),  # type: ignore[arg-type]
        ("floor", lambda: chain.held_out(curator, floor=1.0)),
        ("about the states", lambda: other.held_out(curator)),
        ("shape", lambda: chain.log_likelihood(np.ones((2, 2)))),
        ("at least one", lambda: chain.log_likelihood(np.zeros((4, 3)))),
        ("length", lambda: chain.model("3")),  # type: ignore[arg-type]
        ("Attribute", lambda: steps({}, ["hall"], person="who", time="when")),  # type: ignore[arg-type]
    ]
    for words, work in wrong:
        with pytest.raises(InputError, match=words):
            work()
    assert rows.spent is None
    assert curator.spent is None


def test_the_number_of_steps_does_not_wrap_around() -> None:
    """Somebody with more than 65,536 steps weighs 1 like everybody else, and not as much as that many people."""
    length = 65_537
    rows = {"who": np.zeros(length, dtype=int), "when": np.arange(length), "place": ["hall"] * length}
    for largest in (100, 65_536, 70_000):
        table = steps(rows, PLACES, person="who", time="when", largest=largest)
        unit = PrivacyUnit("who", max_rows=min(largest, length))
        (measured,) = ExactCurator(table, unit).measure(ScaledSteps(table.domain))
        (declared,) = ScaledSteps(table.domain).sensitivity(unit)
        assert 0 < measured.counts.sum() <= declared.l1 == UNITS, largest


def test_parts_of_a_table_of_steps_still_count_them() -> None:
    table = steps(walks(20, 5, 1), PLACES, person="who", time="when", largest=6)
    unit = PrivacyUnit("who", max_rows=6)
    for curator in Curator(table, unit, PureDP(1)).partition(2):
        curator.measure(ScaledSteps(table.domain))
    Curator(table, unit, PureDP(1)).subsample(0.5).measure(ScaledSteps(table.domain))
    assert not table.without_persons().counts_steps
