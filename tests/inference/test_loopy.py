import itertools

import numpy as np
import pytest
from bruteforce import random_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.errors import EvidenceError, InputError
from discreet.factor import CliqueVector
from discreet.inference.exact import get_engine
from discreet.inference.loopy import loopy_marginals


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 6),
    st.sampled_from([0.3, 2.0, 40.0]),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([0.0, 0.3]),
)
def test_exact_on_trees(seed, columns, scale, zeros, evidence):
    problem = random_tree(seed, columns=columns, scale=scale, zeros=zeros, evidence=evidence)
    if not problem.is_possible:
        with pytest.raises((EvidenceError, InputError)):
            loopy_marginals(problem.domain, problem.potentials, problem.evidence)
        return
    beliefs = loopy_marginals(problem.domain, problem.potentials, problem.evidence)
    assert beliefs.converged and beliefs.iterations <= columns + 1
    assert beliefs.log_partition == pytest.approx(problem.log_partition(), rel=1e-9, abs=1e-9)
    for clique in problem.potentials:
        np.testing.assert_allclose(beliefs.marginal(clique).exp(), problem.marginal(clique), atol=1e-10)
    for name in problem.domain:
        np.testing.assert_allclose(beliefs.marginal((name,)).exp(), problem.marginal((name,)), atol=1e-10)


def torus(m: int, strength: float, seed: int = 0):
    domain = Domain.of({f"x{i}_{j}": 2 for i in range(m) for j in range(m)})
    rng = np.random.default_rng(seed)
    tables = {}
    for i, j in itertools.product(range(m), repeat=2):
        tables[(f"x{i}_{j}",)] = 0.3 * rng.standard_normal(2)
        for other in (f"x{(i + 1) % m}_{j}", f"x{i}_{(j + 1) % m}"):
            w = strength * rng.standard_normal()
            tables[domain.clique((f"x{i}_{j}", other))] = np.array([[w, -w], [-w, w]])
    return domain, CliqueVector(domain, tables)


def test_close_on_a_weakly_coupled_grid():
    domain, potentials = torus(4, 0.2)
    beliefs = loopy_marginals(domain, potentials)
    exact = get_engine(domain, potentials).calibrate(potentials)
    assert beliefs.converged
    errors = [np.abs(beliefs.marginal((n,)).exp() - exact.probabilities((n,))).max() for n in domain]
    assert 1e-6 < max(errors) < 0.02  # an approximation: neither exact nor far
    assert beliefs.log_partition == pytest.approx(exact.log_partition, abs=0.1)


def test_failure_to_converge_is_reported():
    domain, potentials = torus(4, 8.0, seed=3)
    beliefs = loopy_marginals(domain, potentials, max_iterations=60, damping=0.0)
    assert not beliefs.converged and beliefs.iterations == 60 and beliefs.residual > 1e-3


def test_damping_helps_where_plain_updates_oscillate():
    domain = Domain.of(dict.fromkeys("abcd", 2))
    # Complete graph of strongly repulsive pairs: parallel undamped updates flip forever.
    pairs = list(itertools.combinations("abcd", 2))
    potentials = CliqueVector(
        domain, {p: np.array([[-2.0, 0.0], [0.0, -2.0]]) for p in pairs} | {("a",): np.array([0.1, 0])}
    )
    assert not loopy_marginals(domain, potentials, damping=0.0, max_iterations=300).converged
    assert loopy_marginals(domain, potentials, damping=0.5, max_iterations=2000).converged


def test_impossible_evidence():
    domain = Domain.of({"a": ["no", "yes"], "b": ["no", "yes"], "c": ["no", "yes"]})
    same = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    potentials = CliqueVector(domain, {("a", "b"): same, ("b", "c"): same})
    assert loopy_marginals(domain, potentials, {"a": 1}).marginal(("c",)).exp().tolist() == [0.0, 1.0]
    with pytest.raises(EvidenceError, match="a=yes, c=no has probability 0"):
        loopy_marginals(domain, potentials, {"a": 1, "c": 0})


def test_questions_outside_the_factors_and_bad_options():
    domain = Domain.of(dict.fromkeys("abc", 2))
    potentials = CliqueVector.random(domain, [("a", "b"), ("b", "c")], 0)
    with pytest.raises(InputError, match=r"no joint belief of \('a', 'c'\)"):
        loopy_marginals(domain, potentials).marginal(("a", "c"))
    with pytest.raises(InputError, match=r"damping=1\.0"):
        loopy_marginals(domain, potentials, damping=1.0)
    with pytest.raises(InputError, match="NaN"):
        loopy_marginals(domain, {("a",): np.array([np.nan, 0.0])})
