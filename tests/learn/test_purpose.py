"""Workloads and targets: what they weigh, that nothing of it is free, and that what was named gets better."""

from itertools import combinations

import numpy as np
import pytest

from discreet import ZCDP, ApproxDP, Curator, Domain, PrivacyUnit, PureDP, encode, networks, resolve
from discreet.audit import audit_replay, failures
from discreet.errors import CostError, DiscreetError
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.distance_rounds import DistanceRounds
from discreet.learn.fields.purpose import COLUMN_WEIGHT, POWER, REST, TARGET, Purpose, workload_of
from discreet.learn.procedure import Whole
from discreet.models import generators
from discreet.privacy.curator import ExactCurator
from discreet.privacy.query import Marginals

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 4, "e": 2})


def named(*sets, weight=1):
    return [{"columns": list(s), "weight": weight} for s in sets]


def test_words_weigh_what_their_sets_would():
    for word, size in (("pairs", 2), ("triples", 3)):
        every = Purpose(DOMAIN, named(*combinations(DOMAIN.names, size)))
        for target in (None, "c"):
            word_of, list_of = Purpose(DOMAIN, word, target), Purpose(DOMAIN, every.workload, target)
            tables = [t for k in (1, 2, 3) for t in combinations(DOMAIN.names, k)]
            usual = [REST * Purpose(DOMAIN, None, target).weight(t) for t in tables]
            ratios = {
                round((word_of.weight(t) - u) / (list_of.weight(t) - u), 9)
                for t, u in zip(tables, usual, strict=True)
                if list_of.weight(t) > u * (1 + 1e-9)
            }
            assert len(ratios) == 1, (word, target)  # lists are scaled to a mean of 1


def test_the_weights_of_named_sets():
    purpose = Purpose(DOMAIN, [{"columns": ["a", "b", "c"], "weight": 3}, {"columns": ["d", "e"], "weight": 1}])
    assert purpose.sets == {("a", "b", "c"): 1.5, ("d", "e"): 0.5}
    assert purpose.weight(("a", "b", "c")) == pytest.approx(1.5 + REST)
    assert purpose.weight(("a", "b")) == pytest.approx(1.5 * (2 / 3) ** POWER + REST)
    assert purpose.weight(("e",)) == pytest.approx(0.5**POWER * 0.5 + REST)
    assert purpose.weight(("a", "d")) == REST
    assert Purpose(DOMAIN, purpose.workload, "e").sets[("d", "e")] == pytest.approx(2 * TARGET / (3 + TARGET))


def test_nothing_said_weighs_as_before():
    wide = Domain.of({f"c{i}": 2 for i in range(21)})
    assert Purpose(wide).weight(("c0",)) == COLUMN_WEIGHT * 20
    assert Purpose(wide).weight(("c0", "c1")) == Purpose(wide).weight(("c0", "c1", "c2")) == 1
    assert Purpose(wide, target="c1").weight(("c0", "c1")) == TARGET
    assert Purpose(DOMAIN).note == "" and "count" in Purpose(DOMAIN, target="a").note


def test_kind_errors():
    for wrong in ("four", [], [["a"]], named(()), named("a", weight=0), named("a", weight=True), {"a": 1}):
        with pytest.raises(DiscreetError, match="workload"):
            AdaptiveField(workload=wrong)
    with pytest.raises(CostError, match="name fewer"):
        AdaptiveField(workload=named([f"c{i}" for i in range(300)]))
    for learner in (AdaptiveField(workload=named("az")), AdaptiveField(target="z")):
        with pytest.raises(DiscreetError, match="no column 'z'"):
            learner.plan(DOMAIN, PrivacyUnit(), PureDP(1))
    odd = Domain.of({"class 2": 2, "a": 2})  # a column, and no weight
    assert workload_of("a, class 2", odd) == [{"columns": ["class 2", "a"], "weight": 1}]
    assert workload_of("a, class 2 2", odd) == [{"columns": ["class 2", "a"], "weight": 2}]


TINY = Domain.of({"a": 2, "b": 3, "c": 2})


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("person", max_rows=2, relation="replace-one")], ids=str)
@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6")], ids=str)
def test_nothing_depends_on_rows_but_through_noise(budget, unit):
    learner = AdaptiveField(workload=named("abc", "bc"), target="b")
    assert failures(audit_replay(lambda c: learner.fit(c), TINY, unit, budget, count=12)) == []


def error(model, rows, sets):
    counts = ExactCurator(rows).measure(Marginals(model.domain, sets))
    truth = [m.values / m.values.sum() for m in counts]
    return float(np.mean([np.abs(model.marginal(s).probabilities - t).sum() for s, t in zip(sets, truth, strict=True)]))


@pytest.mark.chance
@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6")], ids=str)
def test_what_was_named_gets_better(budget):
    """Pairs of columns with many levels, which nothing else explains, between others that are as strong."""
    matching = [(i, i + 1) for i in range(0, 12, 2)]
    model = generators.dirichlet(12, matching, levels=7, concentration=0.3, random_state=1)
    rows = encode(model.sample(4000, random_state=1).to_pandas(), model.domain)
    sets = [tuple(model.domain.names[:2])]
    found = []
    for workload in (None, named(*sets)):
        errors = []
        for _ in range(6):
            with Curator(rows, PrivacyUnit(), budget) as curator:
                errors.append(error(AdaptiveField(workload=workload).fit(curator), rows, sets))
        found.append(np.mean(errors))
    assert found[1] < 0.85 * found[0]


def test_the_plan_says_what_it_is_for():
    domain = networks.load("asia").domain
    plan = str(AdaptiveField(workload=named(("smoke", "lung")), target="lung").plan(domain, PrivacyUnit(), PureDP(1)))
    assert "for 1 set of columns that was named, and to predict lung from the others" in plan


def test_a_target_among_many_columns():
    """It is looked at together with any two others; all these at once would join all columns in one table."""
    domain = Domain.of({f"x{i}": 3 for i in range(30)})
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, (4000, 30))
    codes[:, 29] = np.where(rng.random(4000) < 0.9, (codes[:, 3] + codes[:, 17]) % 3, codes[:, 29])
    with Curator(encode(codes, domain), budget=ZCDP(2)) as curator:
        model = resolve(domain, target="x29", certify=0).learn(curator).model
    assert {"x3", "x17"} <= {n for edge in model.edges for n in edge if "x29" in edge}


def test_what_is_expected_of_tables_outside_the_tree_is_the_same_either_way(monkeypatch):
    asia = networks.load("asia").domain
    rows = networks.load("asia").sample(500, random_state=0).to_pandas()
    tables = Marginals(asia, [("smoke", "lung"), ("lung", "xray"), ("bronc", "dysp")])
    measured = ExactCurator(encode(rows, asia)).measure(tables)
    budget = ZCDP(1)
    rounds = DistanceRounds(Whole(asia, PrivacyUnit(), budget), budget, 100_000, Purpose(asia), triples=True)
    asked = [("smoke", "bronc", "xray"), ("asia", "lung", "dysp")]
    together = rounds.expected(measured, asked)
    monkeypatch.setattr("discreet.learn.fields.rounds._ROOM_FOR_MORE", 0)
    for one, other in zip(rounds.expected(measured, asked), together, strict=True):
        assert one == pytest.approx(other, rel=1e-9)
