"""A plan says how everything is protected, selections and what they lead to included; and so it is then done."""

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.learn.regressions.pairwise import PairwiseRegressions
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.field import SpinField
from discreet.learn.structure.selected_edges import SelectedEdges
from discreet.papers.maximal_monomials import MaximalMonomials
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

BUDGETS = [PureDP(1), ZCDP("0.1"), ApproxDP(1, "1e-6")]
MANY, FEW = (Domain.of({f"x{i}": 2 for i in range(p)}) for p in (16, 4))
WORDS = {"exponential": "exponential mechanism", "noisy-max": "report noisy max"}
LEARNERS = {
    "selected edges": (SelectedEdges(), MANY),
    "selected pairs": (SpinField(strategy="selected"), MANY),
    "all pairs": (SpinField(strategy="all"), FEW),
    "spins, tight": (SpinRegressions(steps=2), FEW),
    "spins, published": (SpinRegressions(variant="published", steps=2), FEW),
    "pairwise": (PairwiseField(), FEW),
    "pairwise, published": (PairwiseRegressions(variant="published", steps=2), FEW),
    "order 3": (SpinField(3), FEW),
    "order 3, selected": (SpinField(3, strategy="selected"), FEW),
    "order 3, tight": (SpinRegressions(3, steps=2), FEW),
    **{
        f"maximal monomials, {release}": (MaximalMonomials(2, steps=2, release=release), FEW)
        for release in ("gaussian", "multiplicative_weights", "perturbed_leader")
    },
    "logistic": (LogisticLearner("x0", {"x1": [0, 1], "x2": [0, 1]}, steps=2), FEW),
}


@pytest.mark.crossed
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_drawn_was_planned(name, budget):
    learner, domain = LEARNERS[name]
    plan = learner.plan(domain, PrivacyUnit(), budget)
    assert all(t.how != "none" for t in plan.tables) and "none" not in str(plan)
    assert [t["noise"] for t in plan.to_dict()["tables"]] == [t.how for t in plan.tables]
    planned = {word for t in plan.tables for then in t.how.split(", then ") for word in then.split(" or ")}
    rng = np.random.default_rng(0)
    curator = Curator(encode({n: rng.integers(0, 2, 300) for n in domain.names}, domain), None, budget)
    learner.fit(curator)
    drawn = {WORDS.get(step["noise"], step["noise"]) for step in curator.statement()["steps"]}
    assert drawn <= planned
    assert planned - drawn <= {"laplace", "gaussian"}  # which of the two is settled by how many sums there are


def test_selections_are_named_by_their_mechanism():
    rounds = [
        [t.how.split(", then ")[0] for t in SelectedEdges().plan(MANY, PrivacyUnit(), budget).tables[2:6]]
        for budget in BUDGETS
    ]
    assert rounds == [["permute-and-flip"] * 4, ["exponential mechanism"] * 4, ["exponential mechanism"] * 4]
    text = str(SelectedEdges().plan(MANY, PrivacyUnit(), ZCDP("0.1")))
    line = next(line for line in text.splitlines() if line.startswith("round 1"))
    assert line.split("  ")[-1].strip() == "—"  # its error is not known before: no 0 that looks like none


def test_what_is_settled_later_is_never_called_hopeless():
    plan = SelectedEdges().plan(MANY, PrivacyUnit(), ZCDP("0.1"), 10)
    known = {t.label for t in plan.tables if t.cells}
    assert {t.label for t in (*plan.noisy, *plan.hopeless)} <= known
    assert plan.noise_only_below > 0
