"""Ising models from noisy moments: the estimator against brute force, accuracy, the plan, and the audits."""

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import InputError, NotAReleaseError
from discreet.inference.spins import SpinChains, colour_classes
from discreet.learn.spins import likelihood
from discreet.learn.spins.coefficients import sup_error, within_width
from discreet.learn.spins.enumeration import ParityFamily, walsh_hadamard
from discreet.learn.spins.field import SpinField
from discreet.learn.spins.likelihood import fit_terms
from discreet.learn.spins.measuring import EITHER, all_sums
from discreet.learn.spins.moments import Moments
from discreet.learn.spins.pairs import bethe_couplings
from discreet.learn.spins.support import explained, significant
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.parities import all_monomials


def moments_of(model, variance=1e-12, records=1e12):
    """Exact moments of single columns and pairs, by the engine."""
    sign, monomials = np.array([-1.0, 1.0]), all_monomials(model.domain, 2)
    tables = (model.marginal(list(I)).probabilities for I in monomials)
    mean = np.array([t @ sign if t.ndim == 1 else sign @ t @ sign for t in tables])
    return Moments(model.domain, monomials, mean, np.full(len(mean), variance), records)


def test_walsh_hadamard_is_the_matrix():
    rng = np.random.default_rng(0)
    for p in (1, 4, 7, 11):
        x, s = rng.normal(size=1 << p), np.arange(1 << p)
        H = 1.0 - 2.0 * (np.bitwise_count(s[:, None] & s) & 1)
        assert np.allclose(walsh_hadamard(x), H @ x)


def test_enumeration_recovers_parameters_and_knows_its_errors():
    rng = np.random.default_rng(1)
    family = ParityFamily(6, tuple((i,) for i in range(6)) + tuple((i, j) for i in range(6) for j in range(i)))
    truth = rng.normal(scale=0.3, size=len(family.monomials))
    probabilities, _ = family.distribution(truth)
    spectrum = family.spectrum(probabilities)
    found, _ = family.fit(spectrum[family.masks])
    assert np.allclose(found, truth, atol=1e-7)
    # The stated standard errors are those of many noisy refits.
    variance = np.full(len(truth), 1e-3**2)
    noisy = [family.fit(spectrum[family.masks] + 1e-3 * rng.normal(size=len(truth)))[0] for _ in range(300)]
    stated = family.standard_errors(spectrum, variance, np.inf)
    assert np.allclose(np.std(noisy, axis=0) / stated, 1, atol=0.2)


def test_three_ways_to_the_same_maximum(monkeypatch):
    square = generators.grid(3, 3)
    model = generators.ising(9, square, weight=(0.2, 0.5), field=(0, 0.3), signs="random", random_state=3)
    moments = moments_of(model)
    there = moments.only(model.edges)
    by_enumeration = fit_terms(there)
    monkeypatch.setattr(likelihood, "MOST_COLUMNS", 4)
    on_tree = fit_terms(there)
    monkeypatch.setattr(likelihood, "PAIR_TREE_CELLS", 1)
    by_sampling = fit_terms(there)
    for word, fit in (("enumeration", by_enumeration), ("junction", on_tree), ("Gibbs", by_sampling)):
        assert word in fit.how
    truth = [*model.theta, *model.edge_strength().values()]
    for fit, tolerance in ((by_enumeration, 1e-6), (on_tree, 1e-4), (by_sampling, 0.02)):
        assert np.abs(fit.c - truth).max() < tolerance


def test_what_was_left_out_comes_back_while_sums_contradict_the_fit():
    """From nothing at all: no correlation is then unexplained, and hardly a false coupling is there."""
    model = generators.ising(8, generators.chain(8), weight=0.8, field=0.1)
    fit = explained(moments_of(model, 1e-6, 1e6), [])
    assert set(model.edges) <= set(fit.moments.joint) and len(fit.moments.joint) <= 12
    assert max(abs(fit.coefficients[e] - 0.8) for e in model.edges) < 0.02


def test_bethe_couplings_are_exact_on_a_tree():
    tree = generators.random_tree(8, random_state=2)
    model = generators.ising(8, tree, weight=(0.2, 0.8), field=(0.1, 0.4), signs="random", random_state=2)
    assert np.allclose(bethe_couplings(moments_of(model)), model.A, atol=1e-6)


def test_chains_have_the_moments_of_the_model():
    model = generators.ising(8, generators.grid(2, 4), weight=0.4, field=0.2)
    exact = moments_of(model)
    chains = SpinChains.start(np.zeros(8), 2000, 0)
    chains.moments(model.A, model.theta, 50)
    single, double = chains.moments(model.A, model.theta, 200)
    off = ~np.eye(8, dtype=bool)
    assert np.abs(single - exact.matrices.single).max() < 0.005
    assert np.abs(double - exact.matrices.double)[off].max() < 0.005
    for block in colour_classes(model.A):
        assert not model.A[np.ix_(block, block)].any()


@pytest.mark.chance
def test_dense_models_keep_all_couplings_and_sparse_ones_do_not():
    dense = generators.ising(8, generators.dense(8), weight=0.1, signs="random", random_state=1)
    pairs, is_dense = significant(moments_of(dense, 1e-6, 1e6))
    assert is_dense and len(pairs) == 28
    sparse = generators.ising(8, generators.chain(8), weight=0.4)
    pairs, is_dense = significant(moments_of(sparse, 1e-6, 1e6))
    assert not is_dense and tuple(pairs) == sparse.edges
    few, _ = significant(moments_of(sparse, 1e-6, 1e6), most=3)
    assert len(few) == 3 and set(few) <= set(sparse.edges)


def test_width_projection():
    h = {("a",): 1.0, ("b",): 0.5, ("c",): -0.2, ("a", "b"): 2.0, ("a", "c"): 1.0, ("a", "b", "c"): -0.5}
    found = within_width(h, 2.0)
    for name in "abc":
        assert sum(abs(v) for I, v in found.items() if name in I) <= 2.0 + 1e-12
    assert found["a",] == pytest.approx(1.0 * 2 / 4.5)  # by the width at its own column
    assert found["c",] == -0.2  # where there was room
    assert within_width(h, 10.0) == h == within_width(h, None)


@pytest.mark.chance
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_accuracy_and_recovery(relation):
    model = generators.ising(16, generators.regular(16, 3, random_state=4), weight=0.35, field=0.1)
    table = sampled(model, 30_000, 4)
    curator = Curator(table, UNITS[relation], ZCDP(0.1), public_size=30_000 if relation == "replace-one" else None)
    found = SpinField(width=2.0).fit(curator)
    assert sup_error(found, model) < 0.06
    assert np.abs(found.theta - model.theta).max() < 0.06
    assert found.edges == model.edges
    assert found.card["method"] == "moments" and found.card["origin"] == "release"
    assert curator.remaining is None


@pytest.mark.chance
def test_selected_pairs_find_a_sparse_graph(monkeypatch):
    model = generators.ising(24, generators.matching(24), weight=0.7)
    table = sampled(model, 4000, 5)
    found = SpinField(strategy="selected").fit(Curator(table, None, ZCDP(0.5)))
    assert found.card["strategy"] == "selected"
    assert found.edges == model.edges
    assert sup_error(found, model) < 0.25


def test_strategy_follows_the_noise_and_the_plan_says_so():
    domain = generators.ising(64, generators.matching(64)).domain
    learner, unit = SpinField(), UNITS["add-remove"]
    many = learner.plan(domain, unit, ZCDP(0.1), public_size=100_000)
    few = learner.plan(domain, unit, ZCDP(0.1), public_size=1000)
    assert [t.label for t in many.tables] == ["means and all pair sums", "those that stand out, again"]
    assert [t.label for t in few.tables] == ["means", "selection of 4 partners a column", "means and chosen pair sums"]
    open_yet = learner.plan(domain, unit, ZCDP(0.1), 1e3)
    assert [t.label for t in open_yet.tables] == ["number of records", EITHER]
    assert "selected pairs" in open_yet.notes[0]
    said = SpinField(strategy="all").plan(domain, unit, ZCDP(0.1))
    assert [t.label for t in said.tables] == ["number of records", *(t.label for t in many.tables)]
    for plan in (many, few, open_yet, said):
        assert sum(t.share for t in plan.tables) == pytest.approx(1)
    assert many.tables[0].cells == 64 * 65 // 2
    everything = all_sums(domain, 2).row_sensitivity("add-remove")[0]
    assert many.tables[0].noise.scale == pytest.approx((everything.l2_squared / (2 * 0.1 / 2)) ** 0.5)


@pytest.mark.parametrize("rows", [3000, 300_000])
def test_a_step_that_chooses_on_the_way_stays_within_its_share(rows):
    """Which of the two ways is taken shows in the records, under the one step that the plan has."""
    model = generators.ising(24, generators.matching(24), weight=0.7)
    curator = Curator(sampled(model, rows, 5), None, ZCDP(0.02))
    found = SpinField().fit(curator)
    assert found.card["strategy"] == ("selected" if rows == 3000 else "all")
    assert list(dict.fromkeys(step["step"] for step in curator.steps)) == ["number of records", EITHER]
    assert curator.spent <= curator.budget


def test_exact_fits_cannot_be_saved(tmp_path):
    model = generators.ising(5, generators.chain(5), weight=0.4)
    found = SpinField().fit(ExactCurator(sampled(model, 2000, 1)))
    assert found.card["origin"] == "exact"
    with pytest.raises(NotAReleaseError):
        found.save(tmp_path / "model.zip")


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_hardly_any_rows_or_columns(rows, p):
    domain = Domain.of({f"x{i}": 2 for i in range(p)})
    table = table_of(np.ones((rows, p), dtype=int), domain)
    found = SpinField().fit(Curator(table, None, ZCDP(0.1)))
    assert isinstance(found, IsingModel) and np.isfinite(found.A).all()


def test_refusals():
    with pytest.raises(InputError, match="strategy"):
        SpinField(strategy="magic")
    with pytest.raises(InputError, match="order 1 has none; use 'all'"):
        SpinField(1, strategy="selected")
    with pytest.raises(InputError, match="width"):
        SpinField(width=0)
    with pytest.raises(InputError, match="max_edges"):
        SpinField(max_edges=-1)
    domain = Domain.of({"a": 2, "b": 3})
    with pytest.raises(InputError, match="'b' has 3"):
        SpinField().fit(Curator(table_of(np.zeros((3, 2), dtype=int), domain), None, ZCDP(0.1)))


# -- audits ----------------------------------------------------------------------------------------------------------

THREE = Domain.of({"a": 2, "b": 2, "c": 2})
NINE = Domain.of({f"x{i}": 2 for i in range(9)})


@pytest.mark.parametrize("count", [12, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit(unit, budget, count):
    learner = SpinField(width=2.0, max_edges=2)
    assert not failures(audit_replay(learner.fit, THREE, UNITS[unit], BUDGETS[budget], count=count))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit_selected_pairs(unit, budget):
    learner = SpinField(strategy="selected")
    assert not failures(audit_replay(learner.fit, NINE, UNITS[unit], BUDGETS[budget], count=12))


def test_audit_catches_a_sensitivity_that_is_too_small(monkeypatch):
    from discreet.privacy.queries.parities import ParitySums
    from discreet.privacy.unit import Sensitivity

    monkeypatch.setattr(ParitySums, "row_sensitivity", lambda self, relation: (Sensitivity(1, 1, 1, 1),))
    assert failures(audit_replay(SpinField().fit, THREE, UNITS["add-remove"], BUDGETS["zcdp"], count=10))


def test_audit_catches_a_look_at_the_rows():
    def peeking(curator):
        model = SpinField().fit(curator)
        return model.with_card({**model.card, "rows": int(curator._rows.count([()])[0])})

    assert failures(audit_replay(peeking, THREE, UNITS["add-remove"], BUDGETS["zcdp"], count=10))
