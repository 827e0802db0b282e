"""Any bounded loss over any polytope: iterates, sensitivities by brute force, hostile losses, divergences, audits."""

from itertools import product

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, table_of

from discreet.audit import all_tables, audit_replay, check_pair, failures, output_law
from discreet.domain import Domain
from discreet.errors import CostError, InputError
from discreet.learn.regressions.convex import ConvexLearner
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries import gradients, polytope
from discreet.privacy.queries.polytope import LinearLoss, Loss, Polytope
from discreet.privacy.unit import PrivacyUnit

DOMAIN = Domain.of({"a": 3, "b": 2})
SQUARE = Polytope.of([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def absolute(w, records):
    """Gradient of |w₀ − a| + |w₁ − b| by sign: medians."""
    return np.stack([np.sign(w[0] - records["a"]), np.sign(w[1] - records["b"])], axis=1)


def half_squares(w, records):
    return np.stack([w[0] - records["a"], w[1] - records["b"]], axis=1)


MEDIANS = ConvexLearner(Loss(("a", "b"), absolute, 1.0), Polytope.of([[0, 0], [2, 0], [0, 1], [2, 1]]))


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return table_of(np.stack([rng.integers(0, 3, n), (rng.random(n) < 0.7).astype(int)], axis=1), DOMAIN)


# -- what it computes --------------------------------------------------------------------------------------------------


def test_exact_descent_finds_the_minimum():
    """Half squares over a box that contains the mean: Frank–Wolfe goes there."""
    rows = table(5000)
    box = Polytope.of([[0, 0], [2, 0], [0, 1], [2, 1]])
    found = ConvexLearner(Loss(("a", "b"), half_squares, 2.0), box, steps=400).fit(ExactCurator(rows))
    counts = rows.count([("a",), ("b",)])
    means = [float(c @ np.arange(len(c)) / c.sum()) for c in counts]
    assert np.abs(found.w - means).max() < 0.02
    assert found.card["origin"] == "exact"


def test_private_descent_finds_a_vertex():
    # 70 % of 20,000 records say b = 1: the median's gradient is 8,000 records, the noise some 30.
    found = MEDIANS.fit(Curator(table(20_000), None, ZCDP(0.5)))
    assert found.w[1] > 0.8 and found.card["origin"] == "release"


def test_logistic_loss_as_a_general_one_is_the_special_one():
    """The same transcript, step by step, as the regression of its own."""
    domain = Domain.of({"x": 3, "y": 2})
    values = {"x": [-1, 0, 1]}
    rng = np.random.default_rng(1)
    rows = table_of(np.stack([rng.integers(0, 3, 400), rng.integers(0, 2, 400)], axis=1), domain)
    slope = lambda m: -1 / (1 + np.exp(m))  # noqa: E731

    def gradient(w, records):
        x = np.stack([records["x"] - 1.0, np.ones(len(records["x"]))], axis=1)
        y = 2.0 * records["y"] - 1
        return slope(y * (x @ w))[:, None] * y[:, None] * x

    ball = Polytope.l1_ball(2, 3.0)
    special = LogisticLearner("y", values, 1, 3.0, steps=25).fit(ExactCurator(rows))
    linear = ConvexLearner(LinearLoss("y", values, slope, 1.0), ball, steps=25).fit(ExactCurator(rows))
    general = ConvexLearner(Loss(("x", "y"), gradient, 1.0), ball, steps=25).fit(ExactCurator(rows))
    wanted = [*special.w, special.intercept]
    assert np.allclose(linear.w, wanted) and np.allclose(general.w, wanted)


def test_iterates_stay_inside():
    triangle = Polytope.of([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3]])
    found = ConvexLearner(Loss(("a", "b"), absolute, 1.0), triangle, steps=9).fit(Curator(table(50), None, PureDP(1)))
    # barycentric coordinates
    S = triangle.vertices * triangle.unit
    weights = np.linalg.solve(np.vstack([S.T, np.ones(3)]), [*found.w, 1.0])
    assert weights.min() > -1e-9


# -- sensitivities -----------------------------------------------------------------------------------------------------


def terms_of(score, domain):
    cells = [np.array([r]) for r in product(*(range(k) for k in domain.shape))]
    return np.array([score.scores(table_of(c, domain).sum(score.query)) for c in cells])


@pytest.mark.parametrize("loss", [absolute, half_squares])
def test_sensitivity_is_that_of_brute_force(loss):
    score = Loss(("a", "b"), loss, 1.5).at(DOMAIN, SQUARE, np.array([3, -2]), 1e-4).score(adaptive=True)
    terms = terms_of(score, DOMAIN)
    assert np.abs(terms).max() == score.linf(UNITS["add-remove"])
    replaced = np.abs(terms[:, None] - terms[None]).max()
    assert score.linf(UNITS["replace-one"]) == max(replaced, np.abs(terms).max())
    (s,) = score.query.row_sensitivity("add-remove")
    assert np.abs(terms).sum(axis=1).max() <= s.l1 and (terms**2).sum(axis=1).max() <= s.l2_squared


def test_linear_sensitivity_bounds_brute_force():
    domain = Domain.of({"x": 3, "z": 3, "y": 2})
    values = {"x": [-2, 0, 2], "z": [-2, 1, 2]}
    wiggly = lambda m: np.sin(9 * m)  # not monotone  # noqa: E731
    shape = Polytope.of([[1, 0, 0], [0, 1, 0.5], [-1, -1, 0]], resolution=16)
    score = LinearLoss("y", values, wiggly, 1.0, 2).at(domain, shape, np.array([5, -3, 2]), 0.05).score(adaptive=True)
    terms = terms_of(score, domain)
    assert 0 < np.abs(terms).max() <= score.linf(UNITS["add-remove"])
    assert np.abs(terms[:, None] - terms[None]).max() <= score.linf(UNITS["replace-one"])


HOSTILE = {
    "far beyond its bound": lambda w, r: 1e300 * (1.0 + r["a"])[:, None] * np.ones(2),
    "no numbers": lambda w, r: np.full((6, 2), np.nan),
    "infinite": lambda w, r: np.array([[np.inf, -np.inf]] * 6),
    "random": lambda w, r: np.random.default_rng().normal(size=(6, 2)) * 9,
    "mixes records": lambda w, r: np.cumsum(np.ones((6, 2)) * r["a"][:, None], axis=0),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_the_loss_the_bound_holds(name):
    problem = Loss(("a", "b"), HOSTILE[name], 1.0).at(DOMAIN, SQUARE, np.zeros(2), 0.0)
    score = problem.score(adaptive=True)
    terms = terms_of(score, DOMAIN)
    assert np.abs(terms).max() <= gradients.UNITS
    assert np.abs(terms).max() <= score.linf(UNITS["add-remove"])
    assert np.abs(terms[:, None] - terms[None]).max() <= score.linf(UNITS["replace-one"])


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["far beyond its bound", "no numbers", "mixes records"])
def test_hostile_losses_pass_the_audit(name, unit):
    learner = ConvexLearner(Loss(("a", "b"), HOSTILE[name], 1.0), SQUARE)
    assert not failures(audit_replay(learner.fit, DOMAIN, UNITS[unit], ZCDP(0.1), count=8))


def test_a_loss_never_sees_a_row():
    seen = []

    def spying(w, records):
        seen.append({name: codes.tolist() for name, codes in records.items()})
        return absolute(w, records)

    ConvexLearner(Loss(("a", "b"), spying, 1.0), SQUARE, steps=2).fit(Curator(table(3), None, PureDP(1)))
    assert all(s == {"a": [0, 0, 1, 1, 2, 2], "b": [0, 1, 0, 1, 0, 1]} for s in seen)


def test_hostile_slopes_are_clipped():
    values = {"a": [-1, 0, 1]}
    for slope in (lambda m: m * 1e9, lambda m: np.full(m.shape, np.nan), lambda m: np.where(m > 0, np.inf, -np.inf)):
        score = LinearLoss("b", values, slope, 1.0).at(DOMAIN, SQUARE, np.array([1, 2]), 1.0).score(adaptive=True)
        assert np.abs(terms_of(score, DOMAIN)).max() <= score.linf(UNITS["add-remove"])


# -- privacy -----------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit(unit, budget, variant):
    learner = ConvexLearner(MEDIANS.loss, MEDIANS.polytope, variant)
    assert not failures(audit_replay(learner.fit, DOMAIN, UNITS[unit], BUDGETS[budget], count=8))


def test_audit_of_a_linear_loss():
    hinge = lambda m: np.where(m < 1, -1.0, 0.0)  # noqa: E731
    learner = ConvexLearner(LinearLoss("b", {"a": [-1, 0, 1]}, hinge, 1.0), Polytope.l1_ball(2, 2.0))
    for unit in UNITS.values():
        assert not failures(audit_replay(learner.fit, DOMAIN, unit, ZCDP(0.1), count=8))


def test_audit_catches_an_unclipped_gradient(monkeypatch):
    """A planted bug: the declared bound is believed instead of enforced."""
    monkeypatch.setattr(polytope.np, "clip", lambda x, *bounds: x)
    too_large = Loss(("a", "b"), lambda w, r: 3 * absolute(w, r), 1.0)
    learner = ConvexLearner(too_large, SQUARE, "published", steps=2)
    assert failures(audit_replay(learner.fit, DOMAIN, UNITS["add-remove"], PureDP(1), count=12))


def test_audit_catches_the_sensitivity_of_the_other_relation(monkeypatch):
    honest = polytope.CellScores.linfs
    monkeypatch.setattr(polytope.CellScores, "linfs", lambda self, unit: honest(self, UNITS["add-remove"]))
    learner = ConvexLearner(MEDIANS.loss, MEDIANS.polytope, steps=2)
    assert failures(audit_replay(learner.fit, DOMAIN, UNITS["replace-one"], PureDP(1), count=30))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("variant", ["tight", "published"])
def test_exact_divergence_of_tiny_transcripts(relation, variant, monkeypatch):
    monkeypatch.setattr(polytope, "UNITS", 8)
    two = Domain.of({"a": 2, "b": 2})
    learner = ConvexLearner(
        Loss(("a", "b"), absolute, 1.0), Polytope.of([[1, 0], [0, 1], [-1, -1]], resolution=2), variant, steps=2
    )
    unit, budget = PrivacyUnit(relation=relation), ZCDP(0.3)

    def law(rows):
        return output_law(lambda c: learner.fit(c).w, table_of(rows, two), unit, budget)

    single = [law(rows) for rows in all_tables((2, 2), 1)]
    if relation == "add-remove":
        (empty,) = [law(rows) for rows in all_tables((2, 2), 0)]
        pairs = [(p, empty) for p in single] + [(empty, p) for p in single]
    else:
        pairs = list(product(single, single))
    assert not failures([check_pair(p, q, budget) for p, q in pairs])


# -- plans and refusals ------------------------------------------------------------------------------------------------


def test_plan():
    plan = MEDIANS.plan(DOMAIN, PrivacyUnit(), ZCDP(0.1), 1e4)
    assert sum(t.share for t in plan.tables) == pytest.approx(1) and "steps, a vertex of 4" in str(plan)
    assert "some steps" in str(MEDIANS.plan(DOMAIN, PrivacyUnit(), ZCDP(0.1)))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Polytope(np.array([[0.5, 1.0]])), "whole numbers"),
        (lambda: Polytope.of([[np.nan, 1.0]]), "finite"),
        (lambda: Polytope(np.array([[1]]), 0.0), "unit"),
        (lambda: Loss(("a",), absolute, 0.0), "bound"),
        (lambda: Loss(("a",), absolute, 1.0, curvature=-1), "curvature"),
        (lambda: ConvexLearner(MEDIANS.loss, SQUARE, "fast"), "variant"),
        (lambda: ConvexLearner(MEDIANS.loss, SQUARE, steps=0), "steps"),
        (
            lambda: LinearLoss("b", {"a": [-1, 0, 1]}, np.sin, 1.0).at(DOMAIN, Polytope.simplex(5), np.zeros(5), 1.0),
            "entries",
        ),
        (
            lambda: LinearLoss("b", {"a": [-1, 0.5, 1]}, np.sin, 1.0).at(DOMAIN, SQUARE, np.zeros(2), 1.0),
            "whole number",
        ),
        (
            lambda: LinearLoss("b", {"a": [-1, np.nan, 1]}, np.sin, 1.0).at(DOMAIN, SQUARE, np.zeros(2), 1.0),
            "whole number",
        ),
    ],
)
def test_refusals(make, text):
    with pytest.raises(InputError, match=text):
        make()


def test_wrong_shapes_and_large_domains_are_refused_before_anything_is_spent():
    wide = Domain.of({f"x{i}": 10 for i in range(9)})
    curator = Curator(table_of(np.zeros((1, 9), dtype=int), wide), None, PureDP(1))
    with pytest.raises(CostError, match="possible records"):
        ConvexLearner(Loss(wide.names, absolute, 1.0), SQUARE).fit(curator)
    assert curator.spent is None
    curator = Curator(table(5), None, PureDP(1))
    with pytest.raises(InputError, match="shape"):
        ConvexLearner(Loss(("a", "b"), lambda w, r: np.zeros(3), 1.0), SQUARE).fit(curator)
    assert curator.spent is None
