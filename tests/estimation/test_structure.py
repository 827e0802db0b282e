"""Structure learners: they find the graph, refuse honestly, plan before they read, and pass the audits.

Where real noise decides, records are so many that failure has a probability far below 1e-6 (margins of 30 noise scales
and more), or the statement is about what the mechanism can never do.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from mrf_cases import sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import BudgetError, CostError, FileFormatError, InputError
from discreet.learn.structure import selected_edges
from discreet.learn.structure.base_learners import SparseLogistic, project_ball
from discreet.learn.structure.learner import StructureLearner
from discreet.learn.structure.result import StructureResult, maximal
from discreet.learn.structure.selected_edges import SelectedEdges
from discreet.learn.structure.stable_edges import StableEdges, records_needed, threshold_for_size
from discreet.learn.structure.stable_mode import StableMode, blocks_for
from discreet.learn.structure.thresholded import ThresholdedParameters, ThresholdedRegressions
from discreet.learn.transcript import Transcript
from discreet.models import generators
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.edge_tests import CorrelationTest
from discreet.privacy.unit import PrivacyUnit

FIXTURES = Path(__file__).parents[1] / "fixtures"
UNITS = {
    "add-remove": PrivacyUnit(),
    "replace-one": PrivacyUnit(relation="replace-one"),
    "person": PrivacyUnit("person", max_rows=2),
    "person replaced": PrivacyUnit("person", max_rows=2, relation="replace-one"),
}
APPROX = ApproxDP(1, 1e-6)
ROOMY = ApproxDP(2, 0.2)  # a threshold that tables of five rows can pass, so that audits see releases too
THREE = Domain.of({"a": 2, "b": 2, "c": 2})
FOUR = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
NINE = Domain.of({f"x{i}": 2 for i in range(9)})
LEVELS = Domain.of({"a": 2, "b": 3, "c": 2})


def chain(p=5, weight=0.5):
    return generators.ising(p, generators.chain(p), weight=weight)


# -- they find what is there -------------------------------------------------------------------------------------------


CHAIN_LEARNERS = [StableEdges(0.5), StableEdges(), StableEdges(0.5, "conditional"), StructureLearner(0.5)]


@pytest.mark.parametrize("learner", CHAIN_LEARNERS)
def test_stable_edges_find_a_chain(learner):
    """8,000 records: the distance is some hundred scales of noise above the threshold."""
    model = chain()
    found = learner.fit(Curator(sampled(model, 8000, 1), None, APPROX))
    assert not found.refused and set(found.edges) == set(model.edges)
    assert all(facts["sign"] == 1 for facts in found.evidence.values())
    assert found.card["spent"] is not None and found.adjacency.sum() == 2 * len(model.edges)


def test_signs_come_with_the_edges():
    model = generators.ising(4, [(0, 1), (2, 3)], weight=0.6, signs="negative")
    found = StableEdges(0.6, "correlation").fit(Curator(sampled(model, 4000, 2), None, APPROX))
    assert {facts["sign"] for facts in found.evidence.values()} == {-1}


def test_fields_alone_are_no_edges():
    """Two columns that are nearly always 1 agree nearly always; the combined test is not misled, correlations are."""
    model = generators.ising(4, [(0, 1)], weight=0.6, field=(1.0, 1.0))
    table = sampled(model, 60_000, 3)
    misled = StableEdges(0.3, "correlation").fit(Curator(table, None, APPROX))
    found = StableEdges(0.05).fit(Curator(table, None, APPROX))
    assert misled.refused or set(misled.edges) != set(model.edges)
    assert found.refused or set(found.edges) <= set(model.edges)


def test_more_levels():
    model = generators.pairwise(5, generators.chain(5), levels=3, weight=1.2, random_state=4)
    found = StableEdges(0.8).fit(Curator(sampled(model, 40_000, 4), None, APPROX))
    assert not found.refused and set(found.edges) == set(model.edges)


def test_triples_by_their_products():
    model = generators.binary(6, [(0, 1, 2), (3, 4)], weight=0.7, random_state=5)
    found = StableEdges(0.6, "correlation", order=3).fit(Curator(sampled(model, 8000, 5), None, APPROX))
    assert set(found.cliques) == {("x0", "x1", "x2"), ("x3", "x4")}
    assert ("x0", "x2") in found.edges


@pytest.mark.parametrize("how", ["histogram", "propose-test-release", "each edge"])
def test_stable_mode_finds_a_matching(how):
    """Blocks of some 700 records find η = 0.6 with certainty; 30 more blocks than the threshold needs agree."""
    model = generators.ising(4, generators.matching(4), weight=0.6)
    learner = StableMode(0.6, 0.6, how=how, steps=30, blocks=85 if how == "histogram" else 115)
    found = learner.fit(Curator(sampled(model, 60_000, 6), None, APPROX))
    assert not found.refused and set(found.edges) == set(model.edges)


def test_stable_mode_of_triples():
    model = generators.binary(5, [(0, 1, 2), (3, 4)], weight=0.8, random_state=7)
    learner = StableMode(0.8, 1.0, "sparsitron", order=3, steps=60, blocks=80)
    found = learner.fit(Curator(sampled(model, 40_000, 7), None, APPROX))
    assert set(found.cliques) == {("x0", "x1", "x2"), ("x3", "x4")}


@pytest.mark.parametrize("budget", [ZCDP(0.5), PureDP(20), APPROX], ids=["zcdp", "pure", "approx"])
def test_selected_edges_find_a_matching(budget):
    """Both ways, all pairs and selection: 8 and 40 columns, and records that leave noise far behind."""
    for p, n in ((8, 8000), (40, 20_000)):
        model = generators.ising(p, generators.matching(p), weight=0.6)
        found = SelectedEdges(0.6).fit(Curator(sampled(model, n, 8), None, budget))
        assert set(found.edges) == set(model.edges)
        assert all(abs(facts["noisy_coupling"] - 0.6) < 0.3 for facts in found.evidence.values())


def test_thresholded_parameters():
    model = chain()
    budget = ZCDP(1)
    for learner in (ThresholdedParameters(0.5), ThresholdedRegressions(0.5, width=1.0)):
        found = learner.fit(Curator(sampled(model, 50_000, 9), None, budget))
        assert set(found.edges) == set(model.edges)
    triples = generators.binary(5, [(0, 1, 2), (3, 4)], weight=0.7, random_state=10)
    found = ThresholdedParameters(0.7, order=3).fit(Curator(sampled(triples, 30_000, 10), None, budget))
    assert set(found.cliques) == {("x0", "x1", "x2"), ("x3", "x4")}
    pairs = generators.pairwise(4, generators.chain(4), levels=3, weight=1.0, random_state=11)
    found = ThresholdedParameters(max_edges=3).fit(Curator(sampled(pairs, 30_000, 11), None, budget))
    assert set(found.edges) == set(pairs.edges)


# -- the base learners -------------------------------------------------------------------------------------------------


def test_sparse_logistic_is_a_logistic_regression():
    """Against scikit-learn's unpenalised fit, with a ball so large that it does not bind."""
    from sklearn.linear_model import LogisticRegression

    model = chain(4)
    table = sampled(model, 3000, 12)
    ours = SparseLogistic(0.5, 20.0, steps=200)._weights(ExactCurator(table))
    z = 2.0 * np.stack(list(table._columns.values()), axis=1) - 1
    theirs = LogisticRegression(C=1e9, tol=1e-10).fit(z[:, 1:], z[:, 0]).coef_[0] / 2
    assert np.abs(ours[0, 1:] - np.abs(theirs)).max() < 0.01


def test_the_ball_binds():
    table = sampled(chain(4), 3000, 13)
    w = SparseLogistic(0.5, 0.1, steps=100)._weights(ExactCurator(table))
    assert (w.sum(axis=1) <= 0.1 + 1e-6).all()


def test_projection_to_the_ball():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(20, 6))
    for groups in (np.arange(6), np.array([0, 0, 1, 1, 1, 2])):
        out = project_ball(w, groups, 1.5)
        norms = np.stack([np.linalg.norm(out[:, groups == g], axis=1) for g in range(groups.max() + 1)], axis=1)
        assert (norms.sum(axis=1) <= 1.5 + 1e-9).all()
        for _ in range(200):  # no point of the ball is nearer
            other = project_ball(rng.normal(size=w.shape), groups, 1.5)
            assert (((w - out) ** 2).sum(1) <= ((w - other) ** 2).sum(1) + 1e-9).all()
    small = np.full((1, 3), 0.1)
    assert np.allclose(project_ball(small, np.arange(3), 1.0), small)


def test_base_learners_of_other_families():
    pairs = generators.pairwise(4, generators.chain(4), levels=3, weight=1.0, random_state=14)
    found = SparseLogistic(0.8, pairs.width, steps=80).found(ExactCurator(sampled(pairs, 20_000, 14)))
    assert set(found) == set(pairs.edges)


def test_maximal_sets():
    assert maximal([("a",), ("a", "b"), ("b", "c"), ("a", "b", "d")]) == (("b", "c"), ("a", "b", "d"))


# -- refusals, plans, errors -------------------------------------------------------------------------------------------


def test_a_refusal_is_a_result():
    """Five records can never pass a threshold of 13 but with probability 1e-6."""
    found = StableEdges(0.5).fit(Curator(table_of(np.zeros((5, 3), dtype=int), THREE), None, APPROX))
    assert found.refused and found.cliques is None and not found.evidence
    assert "13" in found.reason and found.enough["distance"] >= 14
    assert "⊥" in str(found)
    with pytest.raises(InputError, match="no graph"):
        _ = found.edges


def test_a_refusal_says_what_would_have_been_enough():
    """Half of the distance that is wanted, by construction; told from the released noisy distance."""
    model = generators.ising(2, [(0, 1)], weight=2.0)
    table = sampled(model, 20, 15)
    for _ in range(40):
        found = StableEdges(0.5).fit(Curator(table, None, APPROX))
        if found.refused and "times as many records" in found.enough:
            break
    else:
        pytest.fail("forty runs at distance 7 to 10 of 13 never gave an estimate")
    assert 1 < found.enough["times as many records"] < 10 and "times as many records" in found.reason


def test_plans_need_no_rows():
    for learner, budget in (
        (StableEdges(0.5), APPROX),
        (StableEdges(), APPROX),
        (SelectedEdges(0.5), ZCDP(0.1)),
        (StableMode(0.5, 1.0), APPROX),
        (StructureLearner(0.5), PureDP(1)),
        (ThresholdedParameters(), ZCDP(0.1)),
        (ThresholdedRegressions(), ZCDP(0.1)),
    ):
        for unit in UNITS.values():
            plan = learner.plan(THREE, unit, budget)
            assert str(plan) and math.isclose(sum(t.share for t in plan.tables), 1.0, rel_tol=1e-6)
    many = Domain.of({f"x{i}": 2 for i in range(64)})
    assert math.isclose(sum(t.share for t in SelectedEdges().plan(many, PrivacyUnit(), ZCDP(0.1)).tables), 1.0)
    assert 400 < records_needed(0.5, 64, APPROX, PrivacyUnit()) < 700
    assert records_needed(0.5, 64, APPROX, UNITS["replace-one"]) > records_needed(0.5, 64, APPROX, PrivacyUnit())
    assert threshold_for_size(100, 64, APPROX, PrivacyUnit()) > threshold_for_size(2000, 64, APPROX, PrivacyUnit())


def test_blocks_that_cannot_learn_release_nothing(monkeypatch):
    """Two columns have one candidate, so that the word of an abstention is as long as a graph's."""
    monkeypatch.setattr(SparseLogistic, "found", lambda self, curator: 1 / 0)
    domain = Domain.of({"a": 2, "b": 2})
    for how in ("histogram", "propose-test-release"):
        learner = StableMode(0.5, 1.0, how=how, blocks=200)
        assert learner.fit(Curator(table_of(np.zeros((9, 2), dtype=int), domain), None, APPROX)).refused


def test_enough_blocks_and_no_more():
    assert 35 <= blocks_for(APPROX, "histogram") <= 42  # the threshold is 1 + 2 ln(2/δ)/ε = 30


def test_kind_errors():
    curator = Curator(table_of(np.zeros((3, 3), dtype=int), THREE), None, ZCDP(0.1))
    with pytest.raises(BudgetError, match="SelectedEdges"):
        StableEdges(0.5).fit(curator)
    with pytest.raises(BudgetError, match="whole"):
        StableMode(0.5, 1.0).fit(curator)
    assert curator.spent is None
    with pytest.raises(InputError, match="min_weight"):
        StableEdges(-1)
    with pytest.raises(InputError, match="test must be"):
        StableEdges(0.5, "magic")
    for wrong, message in (
        ({"base": "magic"}, "base must be"),
        ({"how": "loudly"}, "how must be"),
        ({"order": 3}, "base='sparsitron'"),
        ({"base": "sparsitron", "order": 1}, "order must be"),
        ({"blocks": 0}, "blocks must be"),
        ({"steps": 0}, "steps must be"),
        ({"width": 0}, "width must be"),
    ):
        with pytest.raises(InputError, match=message):
            StableMode(**{"min_weight": 0.5, "width": 1.0, **wrong})
    with pytest.raises(InputError, match="two levels"):  # before blocks are asked, which could only abstain
        StableMode(0.5, 1.0, "sparsitron").plan(LEVELS, PrivacyUnit(), APPROX)
    with pytest.raises(InputError, match="max_edges"):
        SelectedEdges(max_edges=-1)
    with pytest.raises(InputError, match="two levels"):
        ThresholdedParameters(order=3).plan(LEVELS, PrivacyUnit(), ZCDP(0.1))
    with pytest.raises(InputError, match="two columns"):
        StableEdges(0.5).fit(Curator(table_of(np.zeros((3, 1), dtype=int), Domain.of({"a": 2})), None, APPROX))
    with pytest.raises(CostError, match="cells"):
        StableEdges(0.5).plan(Domain.of(dict.fromkeys("abcdef", 400)), PrivacyUnit(), APPROX)
    StableEdges(0.5, "correlation").plan(Domain.of(dict.fromkeys("abcdef", 400)), PrivacyUnit(), APPROX)
    with pytest.raises(InputError, match="two levels"):
        SelectedEdges(0.5).fit(Curator(table_of(np.zeros((3, 3), dtype=int), LEVELS), None, ZCDP(0.1)))


# -- shown, run, recorded; saved and opened ----------------------------------------------------------------------------


AUDITED = {
    "auto": (StableEdges(0.5), THREE, ROOMY),
    "two at once": (StableEdges(0.3), FOUR, ROOMY),
    "correlation": (StableEdges(0.5, "correlation"), THREE, ROOMY),
    "conditional": (StableEdges(0.5, "conditional"), THREE, ROOMY),
    "eta unknown": (StableEdges(), THREE, ROOMY),
    "order 3": (StableEdges(0.5, "correlation", order=3), THREE, ROOMY),
    "levels": (StableEdges(0.5), LEVELS, ROOMY),
    "mode": (StableMode(0.5, 1.0, steps=3, blocks=4), THREE, ROOMY),
    "ptr": (StableMode(0.5, 1.0, how="propose-test-release", steps=3, blocks=4), THREE, ROOMY),
    "each edge": (StableMode(0.5, 1.0, how="each edge", steps=3, blocks=4), THREE, ROOMY),
    "sparsitron": (StableMode(0.5, 1.0, "sparsitron", 3, steps=3, blocks=3), THREE, ROOMY),
    "selected zcdp": (SelectedEdges(0.5), THREE, ZCDP(0.1)),
    "selected pure": (SelectedEdges(), THREE, PureDP(1)),
    "selected approx": (SelectedEdges(0.5), THREE, APPROX),
    "regressions": (ThresholdedRegressions(0.5, width=1.0, steps=2), THREE, ZCDP(0.1)),
    "default": (StructureLearner(), LEVELS, ZCDP(0.1)),
}
WORDS = {
    "exponential": "exponential mechanism",
    "stability": "test of stability",
    "threshold": "stability histogram",
}
PUBLIC = {"private size": None, "public size": 400}


@pytest.mark.crossed
@pytest.mark.parametrize("size", PUBLIC)
@pytest.mark.parametrize("name", AUDITED)
def test_what_is_planned_is_what_is_recorded(name, size):
    """The steps of the plan are, in order, those that the account names; and a graph can be learned from them again."""
    learner, domain, budget = AUDITED[name]
    rows = np.random.default_rng(0).integers(0, 2, (400, len(domain)))
    curator = Curator(table_of(rows, domain), None, budget, public_size=PUBLIC[size])
    plan = learner.plan(domain, curator.unit, budget, public_size=PUBLIC[size])
    planned = [step.name for step in plan.steps]
    assert PUBLIC[size] is None or "number of records" not in planned
    measured = learner.measure(curator)
    recorded = list(dict.fromkeys(entry["step"] for entry in curator.steps if "step" in entry))
    assert recorded == planned
    shown = {word for t in plan.tables for then in t.how.split(", then ") for word in then.split(" or ")}
    assert {WORDS.get(entry["noise"], entry["noise"]) for entry in curator.steps if "noise" in entry} <= shown
    assert {entry["query"] for entry in curator.steps if "step" not in entry} <= {"in sequence"}
    found = learner.estimate(measured, domain)
    assert found.card["steps"] == list(curator.steps) and found.card["spent"] == curator.spent.to_dict()
    assert found.spent is not None and found.columns == domain.names


def test_rounds_that_have_nothing_to_do_spend_nothing(monkeypatch):
    monkeypatch.setattr(selected_edges, "_measures_all", lambda columns, budget: False)
    curator = Curator(table_of(np.random.default_rng(0).integers(0, 2, (20_000, 9)), NINE), None, ZCDP(1))
    learner = SelectedEdges(2.0)
    planned = [step.name for step in learner.plan(NINE, curator.unit, curator.budget).steps]
    found = learner.fit(curator)
    recorded = list(dict.fromkeys(entry["step"] for entry in curator.steps))
    assert found.cliques == () and recorded == planned[:3]  # no partner passes in the first round: nobody looks on
    assert curator.spent.rho < 0.5


class NoDraws(SecureGateway):
    """Whoever asks for noise has asked a question twice."""

    add_noise = select = release_large = release_stable = None


@pytest.mark.parametrize("name", AUDITED)
def test_a_run_that_was_written_down_is_not_asked_again(name, tmp_path):
    learner, domain, budget = AUDITED[name]
    table = table_of(np.random.default_rng(0).integers(0, 2, (400, len(domain))), domain)
    found = []
    for gateway in (SecureGateway(), NoDraws()):
        curator = Curator(table, None, budget, gateway=gateway)
        run = learner.plan(domain, curator.unit, budget).run(curator, Transcript(tmp_path / "answers"))
        found.append(learner.estimate(run, domain))
    assert found[0] == found[1]


FILED = {
    "a chain": (StableEdges(0.5), APPROX),
    "of unknown weight": (StableEdges(), APPROX),
    "selected": (SelectedEdges(0.5), ZCDP(1)),
    "votes": (StableMode(0.5, 1.0, steps=20, blocks=60), APPROX),
    "a refusal": (StableMode(0.5, 1.0, steps=1, blocks=3), APPROX),
}


@pytest.mark.parametrize("name", FILED)
def test_a_graph_is_saved_and_opened(name, tmp_path):
    learner, budget = FILED[name]
    found = learner.fit(Curator(sampled(chain(4), 20_000, 16), None, budget))
    assert found.refused == (name == "a refusal")
    found.save(tmp_path / "graph.json")
    opened = StructureResult.load(tmp_path / "graph.json")
    assert opened == found and opened.card["steps"] and str(opened) == str(found)
    if not found.refused:
        assert opened.edges == found.edges and (opened.adjacency == found.adjacency).all()


def test_files_of_the_first_version_open():
    opened = StructureResult.load(FIXTURES / "graph_stable.json")
    assert opened.edges == (("a", "b"), ("b", "c")) and opened.evidence["a", "b"] == {"sign": 1, "noisy_distance": 98}
    assert opened.columns == tuple("abcd") and len(opened.card["steps"]) == 3
    assert opened.spent == {"notion": "approx", "epsilon": "1", "delta": "1/1000000"}
    refused = StructureResult.load(FIXTURES / "graph_refused.json")
    assert refused.refused and refused.enough["distance"] == 17 and "A retry costs again" in refused.reason


def test_what_is_no_graph_is_refused_and_not_quoted(tmp_path):
    right = json.loads((FIXTURES / "graph_stable.json").read_text())
    wrong = [
        {"columns": ["a", 7]}, {"columns": None}, {"columns": ["a"]}, {"method": None}, {"evidence": [{"sign": 1}]},
        {"evidence": [{"columns": ["a", "Quetzalcoatl"]}]}, {"evidence": 3}, {"release": {}}, {"release": None},
        {"release": {"origin": "exact"}}, {"interactions": [["a", "Quetzalcoatl"]]}, {"interactions": "Quetzalcoatl"},
        {"enough": ["Quetzalcoatl"]}, {"reason": 1}, {"kind": "Quetzalcoatl"},
    ]  # fmt: skip
    for change in wrong:
        (tmp_path / "wrong.json").write_text(json.dumps({**right, **change}))
        with pytest.raises(FileFormatError) as caught:
            StructureResult.load(tmp_path / "wrong.json")
        assert "Quetzalcoatl" not in str(caught.value), change


# -- audits ------------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", AUDITED)
def test_learners_pass_replay(name, unit):
    learner, domain, budget = AUDITED[name]
    findings = audit_replay(learner.fit, domain, UNITS[unit], budget, count=8)
    assert not failures(findings), findings


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("budget", [ZCDP(0.1), PureDP(1)], ids=["zcdp", "pure"])
def test_rounds_of_selection_pass_replay(unit, budget, monkeypatch):
    monkeypatch.setattr(selected_edges, "_measures_all", lambda columns, budget: False)
    findings = audit_replay(SelectedEdges(0.5).fit, NINE, UNITS[unit], budget, count=8)
    assert not failures(findings), findings


def test_planted_bugs_are_caught(monkeypatch):
    """A refusal that names the pair that was nearest; a threshold from the exact number of records; a person paid as a
    row."""

    def tells(curator):
        found = StableEdges(0.5, "correlation").fit(curator)
        test = CorrelationTest(THREE, [("a", "b"), ("a", "c"), ("b", "c")], 0.25)
        return found, int(np.argmin(np.abs(test.levels(curator._rows.sum, curator.unit))))

    assert failures(audit_replay(tells, THREE, UNITS["add-remove"], ROOMY, count=40))

    from discreet.privacy.query import Marginals

    def exact_size(curator):
        n = int(curator._rows.sum(Marginals(THREE, [()]))[0])
        return StableEdges(0.1 + 0.1 * n).fit(curator)

    assert failures(audit_replay(exact_size, THREE, UNITS["add-remove"], ROOMY, count=20))

    from discreet.privacy.queries import edge_tests

    right = edge_tests.moved_by
    monkeypatch.setattr(edge_tests, "moved_by", lambda unit, one, tau: right(unit, one, tau) // unit.max_rows)
    assert failures(audit_replay(StableEdges(0.5, "correlation").fit, THREE, UNITS["person"], ROOMY, count=80))
    monkeypatch.setattr(edge_tests, "moved_by", lambda unit, one, tau: right(UNITS["add-remove"], one, tau))
    assert failures(audit_replay(StableEdges(0.5, "correlation").fit, THREE, UNITS["replace-one"], ROOMY, count=80))
