import numpy as np
import pytest
from bruteforce import random_problem

from discreet.domain import Domain
from discreet.errors import EvidenceError, InputError
from discreet.factor import CliqueVector
from discreet.inference import gibbs
from discreet.inference.gibbs import Gibbs, gibbs_marginals, gibbs_sample


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("zeros", [0.0, 0.1])
def test_marginals_within_their_standard_error(seed, zeros):
    problem = random_problem(seed, columns=5, cliques=5, scale=0.8, zeros=zeros, evidence=0.15, sizes=(2, 3))
    if not problem.is_possible:
        pytest.skip("no cell is allowed")
    beliefs = gibbs_marginals(
        problem.domain, problem.potentials, problem.evidence, chains=400, sweeps=100, random_state=1
    )
    for name in problem.domain:
        expected = problem.marginal((name,))
        error = beliefs.standard_error((name,))
        gap = np.abs(beliefs.marginal((name,)).exp() - expected)
        assert np.all(gap <= 4.5 * error + 1e-12)
    pair = ("x3", "x0")
    assert beliefs.marginal(pair).exp().shape == problem.marginal(pair).shape
    np.testing.assert_allclose(beliefs.marginal(pair).exp(), problem.marginal(pair), atol=0.02)


def test_a_sweep_keeps_the_exact_distribution():
    """Start from exact draws: after sweeps the distribution is still the model's, cell by cell."""
    from discreet.inference.exact import get_engine

    problem = random_problem(3, columns=4, cliques=5, evidence=0.0, sizes=(2, 3))
    state = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials).sample(100_000, 0)
    sampler = Gibbs(problem.domain, problem.potentials)
    rng = np.random.default_rng(1)
    moved = sampler.step(state, rng)
    assert (moved != state).any(axis=1).mean() > 0.2
    counts = np.zeros(problem.domain.shape)
    np.add.at(counts, tuple(moved.T), 1)
    p = problem.marginal(problem.domain.names)
    z = (counts - 1e5 * p) / np.sqrt(1e5 * p * (1 - p))
    assert np.abs(z).max() < 4.5
    assert np.abs((1.1 * counts - 1e5 * p) / np.sqrt(1e5 * p * (1 - p))).max() > 4.5


def test_one_code_conditionals_are_right():
    """Redraw one column with all others fixed: frequencies are the conditional probabilities."""
    problem = random_problem(9, columns=4, cliques=6, evidence=0.0, sizes=(3, 3))
    sampler = Gibbs(problem.domain, problem.potentials, {"x0": 1, "x2": 0, "x3": 2})
    state = sampler.init(50_000, np.random.default_rng(0))
    state = sampler.step(state, np.random.default_rng(1))
    assert np.all(state[:, [0, 2, 3]] == [1, 0, 2])
    weights = np.exp(problem.joint()[1, :, 0, 2])
    expected = weights / weights.sum()
    found = np.bincount(state[:, 1], minlength=3) / 50_000
    assert np.all(np.abs(found - expected) < 4.5 * np.sqrt(expected * (1 - expected) / 50_000) + 1e-9)


def test_records_keep_to_allowed_cells_and_evidence():
    domain = Domain.of({f"x{i}": 3 for i in range(8)})
    different = np.where(np.eye(3) > 0, -np.inf, 0.0)  # colourings of a path: neighbours differ
    potentials = CliqueVector(domain, {(f"x{i}", f"x{i + 1}"): different for i in range(7)})
    codes = gibbs_sample(domain, potentials, 2500, evidence={"x3": 2}, random_state=0)
    assert codes.shape == (2500, 8) and codes.dtype == np.int32
    assert np.all(codes[:, 3] == 2)
    assert np.all(codes[:, :-1] != codes[:, 1:])
    frequencies = np.bincount(codes[:, 7], minlength=3) / 2500
    assert np.abs(frequencies - 1 / 3).max() < 0.06


def test_stuck_chains_are_replaced_by_others(monkeypatch):
    monkeypatch.setattr(gibbs, "_SEARCH_SWEEPS", 2)
    domain = Domain.of({f"x{i}": 2 for i in range(6)})
    same = np.where(np.eye(2) > 0, 0.0, -np.inf)
    sampler = Gibbs(domain, {(f"x{i}", f"x{i + 1}"): same for i in range(5)})
    state = sampler.init(500, np.random.default_rng(0))
    assert np.all(state == state[:, :1])
    assert 0 < state[:, 0].mean() < 1


def test_no_allowed_cell_is_an_error():
    domain = Domain.of({"a": ["n", "y"], "b": ["n", "y"]})
    same = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    potentials = CliqueVector(domain, {("a", "b"): same})
    with pytest.raises(EvidenceError, match="a=n, b=y"):
        gibbs_sample(domain, potentials, 10, evidence={"a": 0, "b": 1}, random_state=0)
    blocked = CliqueVector(domain, {("a",): np.full(2, -np.inf)})
    with pytest.raises(InputError, match="no allowed cell"):
        gibbs_sample(domain, blocked, 10, random_state=0)


def test_chains_that_do_not_mix_are_seen():
    """Two isolated modes: every chain stays where it started, and R-hat says so."""
    domain = Domain.of(dict.fromkeys("abc", 2))
    strong = np.array([[30.0, 0.0], [0.0, 30.0]])
    stuck = gibbs_marginals(domain, {("a", "b"): strong, ("b", "c"): strong}, random_state=0, sweeps=50)
    assert stuck.r_hat > 2
    fine = gibbs_marginals(domain, CliqueVector.random(domain, [("a", "b"), ("b", "c")], 0), random_state=0)
    assert fine.r_hat < 1.05
    assert np.isnan(fine.log_partition)


def test_seeds_and_counts():
    problem = random_problem(2, evidence=0.0)
    a, b = (
        gibbs_sample(problem.domain, problem.potentials, 1201, chains=100, burn_in=5, random_state=s) for s in (1, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert len(a) == 1201
    assert gibbs_sample(problem.domain, problem.potentials, 0).shape == (0, 6)
    for wrong in ({"chains": 0}, {"thin": 0}, {"burn_in": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            gibbs_sample(problem.domain, problem.potentials, 5, **wrong)
    with pytest.raises(InputError, match="NaN"):
        gibbs_sample(problem.domain, {("x0",): np.full(problem.domain["x0"].size, np.nan)}, 5)
