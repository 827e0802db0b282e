import itertools

import numpy as np
import pytest
from bruteforce import random_problem, random_tree

from discreet.domain import Domain
from discreet.errors import EvidenceError, InputError
from discreet.factor import CliqueVector
from discreet.inference.annealed import annealed_log_partition
from discreet.inference.exact import get_engine


def ising_grid(m: int, strength: float, seed: int):
    domain = Domain.of({f"x{i}_{j}": 2 for i in range(m) for j in range(m)})
    rng = np.random.default_rng(seed)
    tables = {}
    for i, j in itertools.product(range(m), repeat=2):
        for a, b in ((i + 1, j), (i, j + 1)):
            if a < m and b < m:
                w = strength * rng.standard_normal()
                tables[domain.clique((f"x{i}_{j}", f"x{a}_{b}"))] = np.array([[w, -w], [-w, w]])
    return domain, CliqueVector(domain, tables)


@pytest.mark.parametrize("seed", range(4))
def test_within_four_standard_errors_and_the_error_is_small(seed):
    domain, potentials = ising_grid(5, 0.7, seed)
    exact = get_engine(domain, potentials).calibrate(potentials).log_partition
    found = annealed_log_partition(domain, potentials, random_state=seed, particles=300, temperatures=60)
    assert 0 < found.standard_error < 0.1
    assert abs(found.log_partition - exact) < 4 * found.standard_error
    assert found.effective_size > 30


def test_the_standard_error_is_honest():
    """Over independent runs the estimates scatter as they say."""
    domain, potentials = ising_grid(3, 1.0, 0)
    exact = get_engine(domain, potentials).calibrate(potentials).log_partition
    runs = [
        annealed_log_partition(domain, potentials, random_state=s, particles=100, temperatures=10) for s in range(60)
    ]
    z = np.array([(r.log_partition - exact) / r.standard_error for r in runs])
    assert 0.7 < z.std() < 1.4
    assert abs(z.mean()) < 0.6


@pytest.mark.parametrize("seed", range(3))
def test_trees_are_exact(seed):
    problem = random_tree(seed, evidence=0.2)
    found = annealed_log_partition(problem.domain, problem.potentials, problem.evidence, random_state=0)
    assert found.standard_error == 0.0
    assert found.log_partition == pytest.approx(problem.log_partition(), abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_structural_zeros_and_evidence(seed):
    problem = random_problem(seed, columns=6, cliques=9, scale=0.8, zeros=0.08, evidence=0.15, sizes=(2, 3))
    if not problem.is_possible:
        pytest.skip("no cell is allowed")
    found = annealed_log_partition(
        problem.domain, problem.potentials, problem.evidence, random_state=0, particles=2000, temperatures=20
    )
    assert abs(found.log_partition - problem.log_partition()) < 4 * found.standard_error + 1e-9


def test_impossible_evidence_and_bad_options():
    domain = Domain.of({"a": ["n", "y"], "b": ["n", "y"]})
    same = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    potentials = CliqueVector(domain, {("a", "b"): same})
    with pytest.raises(EvidenceError, match="a=n, b=y"):
        annealed_log_partition(domain, potentials, {"a": 0, "b": 1})
    with pytest.raises(InputError, match="particles=1"):
        annealed_log_partition(domain, potentials, particles=1)
