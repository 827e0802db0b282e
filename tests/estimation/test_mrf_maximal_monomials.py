"""Binary fields: Algorithm 5 against its definition, audits, measure and estimate, and more than 20 columns."""

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import CostError, InputError
from discreet.learn.query_release import leader
from discreet.learn.query_release.workload import Parities
from discreet.learn.regressions.frank_wolfe import State
from discreet.learn.regressions.spins import SpinRegressions, features_of
from discreet.learn.spins.field import SpinField
from discreet.measurement import Measurements
from discreet.models import generators
from discreet.models.polynomial import Polynomial
from discreet.papers.maximal_monomials import MaximalMonomials, averaged_derivatives, maximal_first
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.residuals import SignedResiduals
from discreet.release.uncertainty import noise_intervals

BINARY = Domain.of({"a": 2, "b": 2, "c": 2})
RELEASES = ["gaussian", "multiplicative_weights", "perturbed_leader"]


def test_line_9_is_the_mean_derivative():
    """ū(I ∪ {i}) is the mean over the records of ∂_I v_i, computed here record by record from the polynomial."""
    domain = Domain.of(dict.fromkeys("abcde", 2))
    rng = np.random.default_rng(0)
    monomials = features_of(domain, 3)
    allowed = np.array([[name not in I for I in monomials] for name in domain.names])
    v = rng.integers(-9, 10, allowed.shape) * allowed
    state = State(v, 5, 2.0)
    codes = rng.integers(0, 2, (40, 5))
    workload = Parities(domain, monomials[:-1])
    parities = dict(zip(workload.monomials, workload.answers_on(codes), strict=True))
    u = averaged_derivatives(domain, monomials, state, parities)
    z = 2.0 * codes - 1
    for J in [("a",), ("b", "d"), ("a", "c", "e")]:
        mine = []
        for name in J:
            row = state.w[domain.names.index(name)] / 2
            v_i = Polynomial(domain.names, dict(zip(monomials, row, strict=True)))
            I = tuple(n for n in J if n != name)
            mine.append(np.mean((v_i.derivative(I) if I else v_i)(z)))
        assert u[J] == pytest.approx(np.mean(mine))


def test_maximal_monomials_come_first():
    averaged = {("a", "b", "c"): 0.4, ("a", "b"): 0.9, ("c", "d"): 0.3, ("a", "d"): 0.1, ("d",): 0.5, ("e",): 0.3}
    plain = {("a", "b"): 0.3, ("a", "c"): 0.01, ("b",): 0.02, ("c", "d"): 0.7, ("d",): 0.25, ("a", "d"): 0.6}
    found = maximal_first(averaged, plain, 0.4)
    assert found == {("a", "b", "c"): 0.4, ("c", "d"): 0.3, ("e",): 0.3, ("a", "b"): 0.3, ("b",): 0.02, ("d",): 0.25}


def test_without_noise_algorithm_5_finds_the_maximal_monomials():
    model = generators.binary(6, [(0, 1, 2), (2, 3), (4, 5), (0, 1)], weight=0.4, random_state=1)
    learner = MaximalMonomials(3, width=model.width, steps=150)
    found = learner.fit(ExactCurator(sampled(model, 30_000, 1)))
    assert max(abs(found.coefficients[I] - model.coefficients[I]) for I in model.maximal_monomials) < 0.1
    field = MaximalMonomials(3, width=model.width, steps=150, min_weight=0.3)
    assert set(field.fit(ExactCurator(sampled(model, 30_000, 1))).maximal_monomials) == set(model.maximal_monomials)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_algorithm_5_with_noise(release, halves, monkeypatch):
    monkeypatch.setattr(leader, "MOST_ROUNDS", 200)  # of a thousand, which take 25 times as long
    model = generators.binary(6, [(0, 1, 2), (3, 4, 5)], weight=0.5, random_state=1)
    curator = Curator(sampled(model, 20_000, 1), None, ZCDP(1))
    learner = MaximalMonomials(3, width=1.0, release=release, halves=halves, steps=40)
    found = learner.fit(curator)
    assert max(abs(found.coefficients[I] - model.coefficients[I]) for I in model.maximal_monomials) < 0.25
    assert curator.spent <= curator.budget and release in found.card["method"]
    assert learner.plan(model.domain, UNITS["add-remove"], ZCDP(1)).tables


def test_algorithm_5_says_what_it_will_ask_and_asks_that():
    """The plan is what runs: a count only where one is needed, halves each with the whole budget, a public number of
    records that is not that of a half."""
    unit, budget = UNITS["add-remove"], ZCDP(1)
    table = table_of(np.random.default_rng(0).integers(0, 2, (200, 3)), BINARY)
    for learner, public, shares in [
        (MaximalMonomials(2, steps=2), None, [0.02, 0.49, 0.49]),
        (MaximalMonomials(2), None, [0.02, 0.49, 0.49]),
        (MaximalMonomials(2, steps=2), 200, [0.5, 0.5]),
        (MaximalMonomials(2), 200, [0.5, 0.5]),
        (MaximalMonomials(2, halves=True, steps=2), 200, [1, 0.02, 0.98]),
        (MaximalMonomials(2, halves=True), 200, [0.02, 0.98, 0.02, 0.98]),
        (MaximalMonomials(1, steps=2), None, [1]),
    ]:
        plan = learner.plan(BINARY, unit, budget, public_size=public)
        assert [t.share for t in plan.tables] == pytest.approx(shares), learner
        counts = [t.label for t in plan.tables].count("number of records")
        curator = Curator(table, unit, budget, public_size=public)
        learner.fit(curator)
        assert sum(step.get("parts") == ["number of records"] for step in curator.steps) == counts
        named = [step["step"] for step in curator.steps if "step" in step]
        assert list(dict.fromkeys(named)) == [step.name for step in plan.steps]
    with pytest.raises(InputError, match="random_state is for release='perturbed_leader'"):
        MaximalMonomials(2, random_state=1)


# The perturbed leader is audited alone, with all budgets, in test_query_release.
AUDITED = [(r, b) for r in RELEASES for b in BUDGETS if r != "perturbed_leader" or b == "zcdp"]


@pytest.mark.crossed
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("release", "budget"), AUDITED)
@pytest.mark.parametrize("unit", UNITS)
def test_algorithm_5_audit(unit, release, budget, halves):
    learner = MaximalMonomials(2, width=1.0, steps=2, release=release, halves=halves)
    assert not failures(audit_replay(learner.fit, BINARY, UNITS[unit], BUDGETS[budget], count=4))


def test_algorithm_5_audit_catches_an_understated_score(monkeypatch):
    honest = SignedResiduals.linf
    monkeypatch.setattr(SignedResiduals, "linf", lambda self, unit: max(honest(self, unit) // 2, 1))
    learner = MaximalMonomials(2, steps=1, release="perturbed_leader")
    assert failures(audit_replay(learner.fit, BINARY, UNITS["replace-one"], BUDGETS["zcdp"], count=12))


def test_algorithm_5_audit_catches_the_budget_spent_twice(monkeypatch):
    """Both parts with the whole budget although they see the same records."""
    from discreet.privacy.budget import ZCDP as Concentrated

    monkeypatch.setattr(Concentrated, "split", lambda self, weights: [self for _ in weights])
    learner = MaximalMonomials(2, steps=1)
    findings = failures(audit_replay(learner.fit, BINARY, UNITS["add-remove"], BUDGETS["zcdp"], count=4))
    assert findings  # the accountant refuses, so the algorithm never returns


# -- measure and estimate ----------------------------------------------------------------------------------------------


def test_measure_save_estimate(tmp_path):
    model = generators.binary(7, [(0, 1, 2), (3, 4), (5,)], weight=0.5, random_state=1)
    learner = SpinField(3)
    curator = Curator(sampled(model, 20_000, 1), None, ZCDP(0.5))
    measured = learner.measure(curator)
    assert curator.remaining is None
    measured.save(tmp_path / "parities.zip")
    found, again = learner.estimate(measured), learner.estimate(Measurements.load(tmp_path / "parities.zip"))
    assert dict(found.coefficients) == dict(again.coefficients)
    assert {I for I in model.coefficients if len(I) > 1} <= set(found.coefficients)
    assert "parities" not in found.card
    intervals = noise_intervals(
        learner.estimate, measured, found, draws=4, random_state=0, expected=learner.expected(measured)
    )
    widths = intervals.of(lambda m: [m.coefficients[I] for I in model.coefficients])
    assert (widths.upper > widths.lower).all() and (widths.upper - widths.lower).max() < 0.3


def test_measurements_of_something_else_are_refused():
    curator = Curator(table_of(np.zeros((4, 3), dtype=int), BINARY), None, ZCDP(1))
    with pytest.raises(InputError, match="sums of parities"):
        SpinField(2).estimate(Measurements([curator.size(ZCDP(0.1))]))
    with pytest.raises(InputError, match="use fit"):
        SpinRegressions(2).estimate(Measurements([curator.size(ZCDP(0.1))]))


# -- more than 20 columns ----------------------------------------------------------------------------------------------


def field_of(p, seed, chords=()):
    triples = [(i, i + 1, i + 2) for i in range(0, p - 2, 4)]
    return generators.binary(
        p, [*triples, *((i, i + 3) for i in range(0, p - 3, 4)), *chords], weight=0.4, random_state=seed
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_many_columns_on_a_tree(relation):
    model = field_of(24, 1)
    found = SpinField(3).fit(Curator(sampled(model, 30_000, 1), UNITS[relation], ZCDP(0.5)))
    assert "junction tree" in found.card["estimation"]
    assert {I for I in model.coefficients if len(I) > 1} <= set(found.coefficients)
    gaps = [abs(found.coefficients[I] - model.coefficients[I]) for I in {*found.coefficients, *model.coefficients}]
    assert max(gaps) < 0.08  # the noise of a sum is some 0.002 here, and sampling 0.006


def test_many_columns_on_chains(monkeypatch):
    from discreet.learn.spins import likelihood

    monkeypatch.setattr(likelihood, "TREE_CELLS", 1)
    model = field_of(22, 2)
    found = SpinField(3).fit(Curator(sampled(model, 30_000, 1), None, ZCDP(0.5)))
    assert "approximate" in found.card["estimation"]
    assert {I for I in model.coefficients if len(I) > 1} <= set(found.coefficients)
    gaps = [abs(found.coefficients[I] - model.coefficients[I]) for I in {*found.coefficients, *model.coefficients}]
    assert max(gaps) < 0.15


def test_too_many_parities_are_refused_before_anything_is_spent():
    wide = Domain.of({f"x{i}": 2 for i in range(70)})
    with pytest.raises(CostError, match="frank_wolfe"):
        SpinField(3).plan(wide, UNITS["add-remove"], ZCDP(0.1))
    assert SpinRegressions(3).plan(wide, UNITS["add-remove"], ZCDP(0.1)).steps  # the way out
    with pytest.raises(CostError, match="70 columns"):
        MaximalMonomials(3, release="multiplicative_weights").plan(wide, UNITS["add-remove"], ZCDP(0.1))
