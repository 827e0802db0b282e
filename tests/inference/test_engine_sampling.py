"""Samples against the model they are drawn from: exact, rounded, and a wrong model that must be told apart."""

import numpy as np
import pytest
from bruteforce import random_problem
from scipy import stats

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.factor import CliqueVector, Factor
from discreet.inference.exact import get_engine

SEEDS = range(6)


def cells(problem, codes):
    return np.ravel_multi_index(tuple(codes[:, i].astype(int) for i in range(codes.shape[1])), problem.domain.shape)


def calibrated(problem):
    return get_engine(problem.domain, problem.potentials).calibrate(problem.potentials, problem.evidence)


def goodness_of_fit(counts, expected):
    """p-value of a G-test over the cells that can occur."""
    keep = expected > 0
    assert counts[~keep].sum() == 0
    statistic = 2 * np.sum(counts[keep] * np.log(np.maximum(counts[keep], 1e-300) / expected[keep]))
    return stats.chi2.sf(statistic, keep.sum() - 1) if keep.sum() > 1 else 1.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("scale", "zeros"), [(0.7, 0.0), (0.7, 0.15), (300.0, 0.0)])
def test_exact_samples_have_the_joint_distribution(seed, scale, zeros):
    problem = random_problem(seed, columns=5, cliques=6, scale=scale, zeros=zeros, evidence=0.1)
    if not problem.is_possible:
        pytest.skip("no cell is allowed")
    n = 200_000
    expected = n * problem.marginal(problem.domain.names).ravel()
    codes = calibrated(problem).sample(n, seed)
    assert codes.shape == (n, 5) and codes.dtype == np.int32
    counts = np.bincount(cells(problem, codes), minlength=expected.size)
    assert goodness_of_fit(counts[expected > 1e-3], expected[expected > 1e-3]) > 1e-6
    assert counts[expected == 0].sum() == 0


def test_the_fit_test_rejects_a_wrong_model():
    """Negative control: samples of a model with one potential changed by 0.1 do not pass."""
    problem = random_problem(0, columns=5, cliques=6, evidence=0.0, sizes=(2, 3))
    clique = max(problem.potentials.cliques, key=len)
    bumped = {
        c: f.values + (0.1 * (np.arange(f.values.size).reshape(f.values.shape) % 2) if c == clique else 0)
        for c, f in problem.potentials.items()
    }
    wrong = get_engine(problem.domain, problem.potentials).calibrate(bumped).sample(200_000, 0)
    expected = 200_000 * problem.marginal(problem.domain.names).ravel()
    counts = np.bincount(cells(problem, wrong), minlength=expected.size)
    assert goodness_of_fit(counts, expected) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_rounded_samples_hug_the_expected_counts(seed):
    problem = random_problem(seed, columns=6, cliques=7, evidence=0.0, sizes=(2, 3))
    n = 5000
    beliefs = calibrated(problem)
    codes = beliefs.sample_rounded(n, seed)
    root = beliefs._schedule.tree.cliques[0]
    positions = [problem.domain.index(name) for name in root]
    own = problem.domain.project(root)
    counts = np.bincount(
        np.ravel_multi_index(tuple(codes[:, p].astype(int) for p in positions), own.shape), minlength=own.size()
    )
    # In the root every count is the expected one, rounded up or down.
    assert np.abs(counts - n * beliefs.probabilities(root).ravel()).max() < 1 + 1e-6
    # Everywhere else errors are of the order of the number of cells, far under the √n of independent draws.
    for clique in problem.potentials:
        own = problem.domain.project(clique)
        at = tuple(codes[:, problem.domain.index(name)].astype(int) for name in clique)
        counts = np.bincount(np.ravel_multi_index(at, own.shape), minlength=own.size())
        assert np.abs(counts - n * beliefs.probabilities(clique).ravel()).max() < 25


def test_rounding_is_unbiased_and_leaves_columns_apart_independent():
    """Given b, a and c are independent; each cell's mean count over many small draws is right."""
    domain = Domain.of({"a": 2, "b": 2, "c": 3})
    potentials = CliqueVector.random(domain, [("a", "b"), ("b", "c")], 1)
    beliefs = get_engine(domain, potentials).calibrate(potentials)
    rng = np.random.default_rng(0)
    repeats, n = 4000, 7
    total = np.zeros(domain.shape)
    for _ in range(repeats):
        codes = beliefs.sample_rounded(n, rng)
        np.add.at(total, tuple(codes.T), 1)
    p = beliefs.probabilities(domain.names)
    error = np.abs(total / (repeats * n) - p) / np.sqrt(p * (1 - p) / (repeats * n))
    assert error.max() < 4.5


@pytest.mark.parametrize("mode", ["sample", "sample_rounded"])
def test_structural_zeros_are_never_drawn(mode):
    domain = Domain.of({"a": 3, "b": 3, "c": 2})
    allowed = np.array([[1e-12, 0, 1], [0, 1, 0], [1, 0, 0]])
    potentials = {
        ("a", "b"): Factor.from_probabilities(domain.project(["a", "b"]), allowed),
        ("b", "c"): Factor.from_probabilities(domain.project(["b", "c"]), [[1, 0], [0, 1], [1, 1]]),
    }
    codes = getattr(get_engine(domain, potentials).calibrate(potentials), mode)(100_000, 0)
    assert np.all(allowed[codes[:, 0], codes[:, 1]] > 0)
    assert not np.any((codes[:, 1] == 0) & (codes[:, 2] == 1))
    assert not np.any((codes[:, 1] == 1) & (codes[:, 2] == 0))


def test_uniforms_at_the_very_edge_stay_on_allowed_cells():
    """The largest double under 1, and cumulative sums that miss 1 by rounding."""
    from discreet.inference.sampling import _pick, _thresholds

    weights = np.array([[0.1] * 10 + [0.0, 0.0]]).T
    thresholds = _thresholds(np.cumsum(weights, axis=0))
    given = np.zeros(3, dtype=np.intp)
    picked = _pick(thresholds, given, np.array([0.0, 0.55, np.nextafter(1.0, 0.0)]))
    assert picked.tolist() == [0, 5, 9]


def test_seeds_reproduce_and_differ():
    problem = random_problem(1, evidence=0.0)
    beliefs = calibrated(problem)
    np.testing.assert_array_equal(beliefs.sample(1000, 7), beliefs.sample(1000, 7))
    assert (beliefs.sample(1000, 7) != beliefs.sample(1000, 8)).any()
    assert beliefs.sample(0, 7).shape == (0, len(problem.domain))
    assert beliefs.sample_rounded(0, 7).shape == (0, len(problem.domain))
    with pytest.raises(InputError, match="must not be negative"):
        beliefs.sample(-1)


def test_a_batch_is_not_sampled_by_mistake():
    problem = random_problem(1, evidence=0.0)
    stacked = problem.potentials.map(lambda v: np.stack([v, v]))
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(stacked)
    with pytest.raises(InputError, match=r"use \.at\(i\)"):
        beliefs.sample(10, 0)
    assert beliefs.at(1).sample(10, 0).shape == (10, len(problem.domain))
