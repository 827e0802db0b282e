import numpy as np
import pytest
from bruteforce import random_problem, random_tree

from discreet.domain import Domain
from discreet.errors import CostError, InputError
from discreet.factor import CliqueVector
from discreet.inference.auto import infer


def small_grid(strength: float = 0.3):
    m = 3
    domain = Domain.of({f"x{i}{j}": 2 for i in range(m) for j in range(m)})
    pairs = [(f"x{i}{j}", f"x{i + 1}{j}") for i in range(m - 1) for j in range(m)]
    pairs += [(f"x{i}{j}", f"x{i}{j + 1}") for i in range(m) for j in range(m - 1)]
    return domain, CliqueVector.random(domain, pairs, 0, strength)


def test_exact_when_it_fits_and_says_so():
    domain, potentials = small_grid()
    beliefs = infer(domain, potentials)
    assert beliefs.method == "exact" and beliefs.is_exact and "fits into the memory limit" in beliefs.reason


def test_loopy_when_it_does_not():
    domain, potentials = small_grid()
    exact = infer(domain, potentials)
    beliefs = infer(domain, potentials, memory_limit=200)
    assert beliefs.method == "loopy" and not beliefs.is_exact
    assert "memory limit is 200 B" in beliefs.reason and "converged in" in beliefs.reason
    np.testing.assert_allclose(beliefs.marginal(("x11",)).exp(), exact.marginal(("x11",)).exp(), atol=0.02)
    # Far apart: answered by conditioning.
    np.testing.assert_allclose(beliefs.marginal(("x22", "x00")).exp(), exact.marginal(("x22", "x00")).exp(), atol=0.02)


def test_gibbs_when_loopy_does_not_converge():
    domain, potentials = small_grid(12.0)
    beliefs = infer(
        domain, potentials, memory_limit=200, max_iterations=3, chains=50, sweeps=20, burn_in=5, random_state=0
    )
    assert beliefs.method == "gibbs"
    assert "did not converge" in beliefs.reason and "R-hat" in beliefs.reason
    assert beliefs.details.draws.shape == (20, 50, 9)


@pytest.mark.parametrize("method", ["exact", "loopy", "gibbs"])
def test_a_method_asked_for_is_used(method):
    problem = random_tree(3, columns=5)
    beliefs = infer(problem.domain, problem.potentials, method=method, evidence=problem.evidence, random_state=0)
    assert beliefs.method == method and f'method="{method}" was asked for' in beliefs.reason
    tolerance = 0.02 if method == "gibbs" else 1e-10
    for names in (("x0",), ("x4", "x1"), ("x2", "x0", "x3")):
        np.testing.assert_allclose(beliefs.marginal(names).exp(), problem.marginal(names), atol=tolerance)


def test_conditioning_is_exact_on_trees_with_zeros():
    problem = random_tree(12, columns=6, zeros=0.2, evidence=0.0)
    assert problem.is_possible
    beliefs = infer(problem.domain, problem.potentials, method="loopy")
    names = ("x5", "x0", "x3")
    np.testing.assert_allclose(beliefs.marginal(names).exp(), problem.marginal(names), atol=1e-10)


def test_refusals():
    problem = random_problem(0, columns=6, cliques=9, evidence=0.0)
    with pytest.raises(CostError):
        infer(problem.domain, problem.potentials, method="exact", memory_limit=10)
    with pytest.raises(InputError, match="method must be one of 'auto', 'exact', 'loopy', 'gibbs'"):
        infer(problem.domain, problem.potentials, method="magic")
    domain = Domain.of({f"x{i}": 9 for i in range(6)})
    chain = CliqueVector.zeros(domain, [(f"x{i}", f"x{i + 1}") for i in range(5)])
    with pytest.raises(InputError, match="runs of belief propagation"):
        infer(domain, chain, method="loopy").marginal(domain.names)
