"""Group vertices of pairwise Frank–Wolfe: sensitivities by brute force, the exact law, divergences, audits."""

from itertools import product

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import all_tables, audit_replay, check_pair, failures, output_law
from discreet.domain import Domain
from discreet.errors import CostError, InputError
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.regressions.frank_wolfe import init, step
from discreet.learn.regressions.pairwise import PairwiseRegressions
from discreet.measurement import Measurements
from discreet.models import generators
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries import gradients, group_vertices
from discreet.privacy.queries.group_vertices import GroupedLevelGradients, SteepestGroup
from discreet.privacy.requests import answered
from discreet.privacy.unit import PrivacyUnit
from discreet.release.uncertainty import noise_intervals

MIXED = Domain.of({"a": 2, "b": 3, "c": 2})


def grouped(domain, seed, size):
    """Weights as Frank–Wolfe makes them: sums of group vertices."""
    rng = np.random.default_rng(seed)
    zero = GroupedLevelGradients(domain, np.zeros(GroupedLevelGradients.shape_for(domain), dtype=np.int64), 0.0)
    score, v = SteepestGroup(zero), zero.v
    for t in range(size):
        v = v + (t + 2) * score.moves([int(rng.integers(g)) for g in score.groups])
    return v


@pytest.mark.parametrize("steps", [0, 4])
@pytest.mark.parametrize("shape", [(3, 3, 2), (4, 3), (2, 2, 2)])
def test_scores_move_as_declared(shape, steps):
    """Brute force over all records: each regression's own bound, and the joint ones, attained at w = 0."""
    domain = Domain.of({f"x{i}": k for i, k in enumerate(shape)})
    score = SteepestGroup(GroupedLevelGradients(domain, grouped(domain, 1, steps), 0.05))
    records = [np.array([r]) for r in product(*(range(k) for k in shape))]
    terms = np.array([score.scores(table_of(r, domain).sum(score.query)) for r in records])
    assert terms.shape[1] == sum(score.groups) == len(score.candidates)
    ends = np.cumsum(score.groups)[:-1]
    for relation, moves in (
        ("add-remove", terms),
        ("replace-one", (terms[:, None] - terms[None]).reshape(-1, terms.shape[1])),
    ):
        unit = UNITS[relation]
        linfs = np.array(score.linfs(unit))
        relative = np.array([[np.abs(g).max() for g in np.split(m, ends)] for m in moves]) / linfs
        assert relative.max() <= 1
        linear, squared = score.joint(unit)
        assert relative.sum(axis=1).max() <= linear + 1e-9
        assert (relative**2).sum(axis=1).max() <= squared + 1e-9
        if steps == 0 and relation == "add-remove":
            assert relative.sum(axis=1).max() == pytest.approx(float(linear))
        if steps == 0 and shape == (4, 3):  # replacing the level of one column moves the other's 4(k − 1) units
            one_column = [i for i, (a, b) in enumerate(product(records, records)) if a[0, 0] == b[0, 0]]
            first = relative[one_column][:, :6] if relation == "replace-one" else relative[:, :6]
            assert (first**2).sum(axis=1).max() == pytest.approx(3)


def test_the_law_is_the_factorised_one():
    """What is selected by enumeration: j with weight Π_b 2cosh(g_b/s), then independent signs."""
    from discreet.audit.exact import selection_law
    from discreet.privacy.mechanisms import NoiseCall
    from discreet.privacy.unit import Sensitivity

    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    score = SteepestGroup(GroupedLevelGradients(domain, grouped(domain, 0, 0), 0.0))
    rng = np.random.default_rng(0)
    g = rng.integers(-40, 40, GroupedLevelGradients.shape_for(domain))
    scores = score.scores((g,))[: score.groups[0]]  # of column a: those of b, c and the constant
    law = selection_law(NoiseCall("exponential", 17.0, Sensitivity(1, 1, 1, 1)), scores.tolist())
    blocks = [g[0, 2:5], g[0, 5:7], g[0, 7:8]]
    weights = np.array([np.prod(2 * np.cosh(b / 17.0)) for b in blocks])
    assert law[:8].sum() == pytest.approx(weights[0] / weights.sum())
    plus = np.exp(blocks[0] / 17.0) / (2 * np.cosh(blocks[0] / 17.0))
    for pattern in range(8):
        signs = [pattern >> b & 1 for b in range(3)]
        chance = np.prod([1 - q if s else q for q, s in zip(plus, signs, strict=True)])
        assert law[pattern] / law[:8].sum() == pytest.approx(chance)


TINY = Domain.of({"a": 3, "b": 2})


def transcript(curator, variant="tight"):
    regressions, features = GroupedLevelGradients.shape_for(curator.domain)
    problem = lambda v, scale: GroupedLevelGradients(curator.domain, v, scale)  # noqa: E731
    asking = step(problem, init(regressions, features, 1.0), curator.budget, variant)
    return answered(curator, asking)[1][0].v


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [ZCDP(0.5), pytest.param(PureDP(1), marks=pytest.mark.slow)], ids=["zcdp", "pure"])
def test_exact_divergence_of_a_tiny_step(relation, budget, monkeypatch):
    """All four regressions of one step (6·6·6·10 outcomes), over neighbours of at most one row: replacing changes the
    level of b (which moves most), that of a, or both."""
    for module in (gradients, group_vertices):
        monkeypatch.setattr(module, "UNITS", 16)
    unit = PrivacyUnit(relation=relation)
    some = all_tables((3, 2), 1)[1:3] if relation == "add-remove" else all_tables((3, 2), 1)[:3]
    laws = others = [output_law(transcript, table_of(r, TINY), unit, budget) for r in some]
    if relation == "add-remove":
        others = [output_law(transcript, table_of(np.zeros((0, 2), dtype=int), TINY), unit, budget)]
    for p, q in product(laws, others):
        assert not failures([check_pair(p, q, budget)])


def test_the_joint_sensitivity_of_coordinates_would_be_caught(monkeypatch):
    """k/2 instead of k − 1 under replace-one: right for coordinate vertices, too little for groups."""
    from fractions import Fraction

    for module in (gradients, group_vertices):
        monkeypatch.setattr(module, "UNITS", 16)
    monkeypatch.setattr(GroupedLevelGradients, "joint", lambda self, unit: (Fraction(1), Fraction(1)))
    unit, budget = PrivacyUnit(relation="replace-one"), ZCDP(0.5)
    laws = [output_law(transcript, table_of(r, TINY), unit, budget) for r in all_tables((3, 2), 1)[:2]]
    assert any(failures([check_pair(p, q, budget)]) for p in laws for q in laws)


@pytest.mark.crossed
@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit(unit, budget, variant):
    learner = PairwiseRegressions(variant=variant, vertices="group", width=1.0, steps=3)
    assert not failures(audit_replay(learner.fit, MIXED, UNITS[unit], BUDGETS[budget], count=6))


def test_audit_catches_an_understated_sensitivity(monkeypatch):
    honest = SteepestGroup.linfs
    monkeypatch.setattr(SteepestGroup, "linfs", lambda self, unit: tuple(x // 2 for x in honest(self, unit)))
    learner = PairwiseRegressions(vertices="group", width=1.0, steps=2)
    assert failures(audit_replay(learner.fit, MIXED, UNITS["replace-one"], BUDGETS["zcdp"], count=20))


def test_groups_recover_weights():
    model = generators.pairwise(4, generators.chain(4), levels=[2, 3, 3, 2], weight=0.5, field=0.2, random_state=1)
    learner = PairwiseRegressions(vertices="group", width=1.0, steps=300)
    found = learner.fit(ExactCurator(sampled(model, 40_000, 1)))
    names = model.domain.names
    error = max(np.abs(found.weights(a, b) - model.weights(a, b)).max() for a in names for b in names if a < b)
    assert error < 0.1
    assert "group" in found.card["method"]


def test_refusals_and_plan():
    wide = Domain.of({"a": 13, "b": 2})
    with pytest.raises(CostError, match="13"):
        PairwiseRegressions(vertices="group").plan(wide, UNITS["add-remove"], ZCDP(1))
    with pytest.raises(InputError, match="vertices"):
        PairwiseRegressions(vertices="corners")
    plan = PairwiseRegressions(vertices="group").plan(MIXED, UNITS["add-remove"], ZCDP(1))
    assert plan.tables[0].label == "number of records" and "group vertices" in str(plan)
    given = PairwiseRegressions(vertices="group", steps=3, fitted=False).plan(MIXED, UNITS["add-remove"], ZCDP(1))
    assert [t.share for t in given.tables] == [1] and "3 steps" in given.tables[0].label
    public = PairwiseRegressions(fitted=False).plan(MIXED, UNITS["add-remove"], ZCDP(1), public_size=5000)
    assert [t.share for t in public.tables] == [1]


def test_measure_and_estimate_are_fit(tmp_path):
    model = generators.pairwise(4, generators.chain(4), levels=[2, 3, 2, 4], weight=0.6, random_state=1)
    learner = PairwiseField()
    measured = learner.measure(Curator(sampled(model, 5000, 1), None, ZCDP(0.5)))
    measured.save(tmp_path / "tables.zip")
    again = learner.estimate(Measurements.load(tmp_path / "tables.zip"))
    found = learner.estimate(measured)
    assert found.edges == again.edges
    assert all(np.allclose(found.weights(*e), again.weights(*e)) for e in found.edges)
    intervals = noise_intervals(learner.estimate, measured, found, draws=3, random_state=0)
    assert intervals.marginal("x0").lower.shape == (2,)
