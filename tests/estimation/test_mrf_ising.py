"""Ising models from noisy moments: the estimator against brute force, accuracy, the plan, and the audits."""

import numpy as np
import pytest
from discreet.learn.spins.ising_fit import bethe_couplings, fit_support, project_width, significant_pairs
from discreet.learn.spins.ising_learner import IsingLearner, sup_error
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import InputError, NotAReleaseError
from discreet.inference.spins import SpinChains, colour_classes
from discreet.learn.spins import ising_fit
from discreet.learn.spins import measuring as spin_measuring
from discreet.learn.spins.enumeration import ParityFamily, walsh_hadamard
from discreet.learn.spins.moments import SpinMoments
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator


def moments_of(model, variance=1e-12, records=1e12):
    """Exact moments, by the engine."""
    p = len(model.A)
    single, double = np.zeros(p), np.eye(p)
    sign = np.array([-1.0, 1.0])
    for i, a in enumerate(model.domain.names):
        single[i] = model.marginal([a]).probabilities @ sign
        for j, b in enumerate(model.domain.names[:i]):
            double[i, j] = double[j, i] = sign @ model.marginal([a, b]).probabilities @ sign
    return SpinMoments(single, double, np.full(p, variance), np.full((p, p), variance), records)


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
    pairs = [(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(model.A)), strict=True)]
    by_enumeration = fit_support(model.domain, moments, pairs)
    monkeypatch.setattr(ising_fit, "MOST_COLUMNS", 4)
    on_tree = fit_support(model.domain, moments, pairs)
    monkeypatch.setattr(ising_fit, "TREE_CELLS", 1)
    by_sampling = fit_support(model.domain, moments, pairs)
    for word, fit in (("enumeration", by_enumeration), ("junction", on_tree), ("Gibbs", by_sampling)):
        assert word in fit.how
    for fit, tolerance in ((by_enumeration, 1e-6), (on_tree, 1e-4), (by_sampling, 0.02)):
        assert np.abs(fit.A - model.A).max() < tolerance
        assert np.abs(fit.theta - model.theta).max() < tolerance


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
    assert np.abs(single - exact.single).max() < 0.005
    assert np.abs(double - exact.double)[off].max() < 0.005
    for block in colour_classes(model.A):
        assert not model.A[np.ix_(block, block)].any()


@pytest.mark.chance
def test_dense_models_keep_all_couplings_and_sparse_ones_do_not():
    dense = generators.ising(8, generators.dense(8), weight=0.1, signs="random", random_state=1)
    pairs, is_dense = significant_pairs(dense.domain, moments_of(dense, 1e-6, 1e6))
    assert is_dense and len(pairs) == 28
    sparse = generators.ising(8, generators.chain(8), weight=0.4)
    pairs, is_dense = significant_pairs(sparse.domain, moments_of(sparse, 1e-6, 1e6))
    assert not is_dense and pairs == generators.chain(8)
    few, _ = significant_pairs(sparse.domain, moments_of(sparse, 1e-6, 1e6), most=3)
    assert len(few) == 3 and set(few) <= set(generators.chain(8))


def test_width_projection():
    A = np.array([[0, 2.0, 1.0], [2.0, 0, 0], [1.0, 0, 0]])
    theta = np.array([1.0, 0.5, -0.2])
    B, t = project_width(A, theta, 2.0)
    assert np.array_equal(B, B.T)
    assert (np.abs(B).sum(axis=1) + np.abs(t)).max() <= 2.0 + 1e-12
    assert np.array_equal(project_width(A, theta, 10.0)[0], A)


@pytest.mark.chance
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_accuracy_and_recovery(relation):
    model = generators.ising(16, generators.regular(16, 3, random_state=4), weight=0.35, field=0.1)
    table = sampled(model, 30_000, 4)
    curator = Curator(table, UNITS[relation], ZCDP(0.1), public_size=30_000 if relation == "replace-one" else None)
    found = IsingLearner(width=2.0).fit(curator)
    assert sup_error(found, model) < 0.06
    assert np.abs(found.theta - model.theta).max() < 0.06
    assert found.edges == model.edges
    assert found.card["method"] == "moments" and found.card["origin"] == "release"
    assert curator.remaining is None


@pytest.mark.chance
def test_selected_pairs_find_a_sparse_graph(monkeypatch):
    model = generators.ising(24, generators.matching(24), weight=0.7)
    table = sampled(model, 4000, 5)
    found = IsingLearner(strategy="selected pairs").fit(Curator(table, None, ZCDP(0.5)))
    assert found.card["strategy"] == "selected pairs"
    assert found.edges == model.edges
    assert sup_error(found, model) < 0.25


def test_strategy_follows_the_noise_and_the_plan_says_so():
    domain = generators.ising(64, generators.matching(64)).domain
    learner, unit = IsingLearner(), UNITS["add-remove"]
    many = learner.plan(domain, unit, ZCDP(0.1), 1e5)
    few = learner.plan(domain, unit, ZCDP(0.1), 1e3)
    assert "all pairs" in many.method and "selected pairs" in few.method
    for plan in (many, few):
        assert sum(t.share for t in plan.tables) == pytest.approx(1)
        assert "number of records" in str(plan)
    assert many.tables[1].cells == 64 * 65 // 2
    everything = spin_measuring.pair_sums(domain).row_sensitivity("add-remove")[0]
    assert many.tables[1].noise.scale == pytest.approx((everything.l2_squared / (2 * 0.1 * 0.98 / 2)) ** 0.5)


def test_exact_fits_cannot_be_saved(tmp_path):
    model = generators.ising(5, generators.chain(5), weight=0.4)
    found = IsingLearner().fit(ExactCurator(sampled(model, 2000, 1)))
    assert found.card["origin"] == "exact"
    with pytest.raises(NotAReleaseError):
        found.save(tmp_path / "model.zip")


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_hardly_any_rows_or_columns(rows, p):
    domain = Domain.of({f"x{i}": 2 for i in range(p)})
    table = table_of(np.ones((rows, p), dtype=int), domain)
    found = IsingLearner().fit(Curator(table, None, ZCDP(0.1)))
    assert isinstance(found, IsingModel) and np.isfinite(found.A).all()


def test_refusals():
    with pytest.raises(InputError, match="method"):
        IsingLearner(method="magic")
    with pytest.raises(InputError, match="width"):
        IsingLearner(width=0)
    with pytest.raises(InputError, match="max_edges"):
        IsingLearner(max_edges=-1)
    domain = Domain.of({"a": 2, "b": 3})
    with pytest.raises(InputError, match="'b' has 3"):
        IsingLearner().fit(Curator(table_of(np.zeros((3, 2), dtype=int), domain), None, ZCDP(0.1)))


# -- audits ----------------------------------------------------------------------------------------------------------

THREE = Domain.of({"a": 2, "b": 2, "c": 2})
NINE = Domain.of({f"x{i}": 2 for i in range(9)})


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit(unit, budget):
    learner = IsingLearner(width=2.0, max_edges=2)
    assert not failures(audit_replay(learner.fit, THREE, UNITS[unit], BUDGETS[budget], count=40))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit_selected_pairs(unit, budget):
    learner = IsingLearner(strategy="selected pairs")
    assert not failures(audit_replay(learner.fit, NINE, UNITS[unit], BUDGETS[budget], count=12))


def test_audit_catches_a_sensitivity_that_is_too_small(monkeypatch):
    from discreet.privacy.queries.parities import ParitySums
    from discreet.privacy.unit import Sensitivity

    monkeypatch.setattr(ParitySums, "row_sensitivity", lambda self, relation: (Sensitivity(1, 1, 1, 1),))
    assert failures(audit_replay(IsingLearner().fit, THREE, UNITS["add-remove"], BUDGETS["zcdp"], count=10))


def test_audit_catches_a_look_at_the_rows():
    def peeking(curator):
        model = IsingLearner().fit(curator)
        return model.with_card({**model.card, "rows": int(curator._rows.count([()])[0])})

    assert failures(audit_replay(peeking, THREE, UNITS["add-remove"], BUDGETS["zcdp"], count=10))
