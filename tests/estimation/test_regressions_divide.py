"""How regressions divide their budget: means first, and no regression where the records carry none."""

from itertools import combinations

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.learn.regressions import division
from discreet.learn.regressions.division import MEANS, width_for
from discreet.learn.regressions.pairwise import WIDTHS, PairwiseRegressions
from discreet.learn.regressions.spins import SpinRegressions
from discreet.models import generators
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.gradients import VertexScore
from discreet.privacy.queries.group_vertices import SteepestGroup
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit

MIXED = Domain.of({"a": 2, "b": 3, "c": 2})
FIVE = Domain.of({f"x{i}": 3 for i in range(5)})


def public(budget, size, learner=None):
    return (learner or PairwiseRegressions()).plan(FIVE, PrivacyUnit(), budget, public_size=size)


def test_without_records_to_carry_regressions_the_columns_get_everything():
    plan = public(PureDP("0.1"), 1000)
    assert [step.name for step in plan.steps] == ["means of all columns"]
    assert sum(t.share for t in plan.tables) == pytest.approx(1)
    assert "columns alone" in str(plan)


@pytest.mark.parametrize("notion", [PureDP, ZCDP])
def test_the_part_of_the_means_falls_as_the_budget_grows(notion):
    parts = []
    for amount in (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10):
        plan = public(notion(amount), 5000)
        parts.append(sum(t.share for t in plan.steps[0].rows))
    assert parts == sorted(parts, reverse=True)
    assert parts[0] == pytest.approx(1) and parts[-1] == pytest.approx(MEANS[0] / 100)


def test_the_ball_is_narrow_where_little_is_told():
    widths = [width_for(c, *WIDTHS) for c in (1.0, 0.25, 0.1, 0.03, 0.001, 0.0)]
    assert widths == sorted(widths) and (widths[0], widths[-1]) == WIDTHS


def test_a_noisy_count_decides_and_the_plan_says_what():
    learner = PairwiseRegressions()
    few, many = (str(learner.plan(FIVE, PrivacyUnit(), PureDP(1), n)) for n in (50, 1e6))
    assert "columns alone" in few and "columns alone" not in many and "25 % buys means" in many


def error(model, table):
    pairs = list(combinations(table.domain.names, 2))
    exact = ExactCurator(table).measure(Marginals(table.domain, pairs))
    return np.mean(
        [np.abs(model.marginal(m.clique).probabilities - m.values / m.values.sum()).sum() / 2 for m in exact]
    )


@pytest.mark.chance
@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "1", "3"])
def test_no_worse_than_independent_columns(epsilon):
    """With a quarter of the budget for the means and a wide ball: .094, .042, .036 and .037 against .040, .035, .034
    and .034."""
    model = generators.pairwise(8, generators.random_tree(8, random_state=10), weight=0.4, field=0.3, random_state=10)
    table = sampled(model, 10_000, 10)
    curators = [Curator(table, None, PureDP(epsilon)) for _ in range(6)]
    ours = [error(PairwiseRegressions().fit(c), table) for c in curators[:3]]
    alone = [error(OptimalNetwork({}).fit(c), table) for c in curators[3:]]
    assert np.mean(ours) < 1.15 * np.mean(alone) + 0.001
    if epsilon == "3":
        assert np.mean(ours) < 0.6 * np.mean(alone)  # .44 over three runs


@pytest.mark.chance
def test_a_model_without_interactions_says_so():
    table = sampled(generators.ising(6, generators.chain(6), weight=0.3), 2000, 1)
    few = SpinRegressions().fit(Curator(table, None, PureDP("0.05")))
    assert not few.edges and "single columns" in few.card["caution"] and "width" not in few.card
    assert "no interaction" in str(few.ask("P(x0=1 | x1=1)")), "every answer says so"
    nothing = sampled(generators.ising(6, [], weight=0.3, field=-0.4), 50_000, 1)
    found = SpinRegressions().fit(Curator(nothing, None, PureDP(1)))
    assert found.edges or "stood out" in found.card["caution"]
    much = SpinRegressions().fit(Curator(sampled(generators.ising(6, generators.chain(6)), 20_000, 1), None, PureDP(3)))
    assert much.edges and "caution" not in much.card


# -- privacy: all of it, also on tables so small that nobody would run a regression on them ----------------------------


@pytest.fixture
def unbounded(monkeypatch):
    for name in ("TOLD", "BESIDES", "OF_SPINS"):
        monkeypatch.setattr(division, name, float("inf"))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("stepped_back", [False, True])
def test_audit(unit, budget, stepped_back, request):
    if not stepped_back:
        request.getfixturevalue("unbounded")
    learner = PairwiseRegressions()
    assert not failures(audit_replay(learner.fit, MIXED, UNITS[unit], BUDGETS[budget], count=6))


def test_the_audit_reaches_the_regressions(unbounded, monkeypatch):
    honest: VertexScore = SteepestGroup.linfs
    monkeypatch.setattr(SteepestGroup, "linfs", lambda self, unit: tuple(x // 2 for x in honest(self, unit)))
    learner = PairwiseRegressions(steps=2)
    assert failures(audit_replay(learner.fit, MIXED, UNITS["replace-one"], BUDGETS["zcdp"], count=20))


def test_what_is_asked_depends_on_what_was_released_alone(unbounded):
    """A curator that answers exactly sees more than is public; the number of records it tells is what decides."""
    table = sampled(generators.ising(4, generators.chain(4), weight=0.5), 3000, 1)
    measured = SpinRegressions(steps=2).measure(ExactCurator(table, budget=PureDP(1)))
    assert [m.label for m in measured] == ["number of records", "means", "log-likelihood", "number of records"]
