import itertools

import numpy as np
import pytest
from bruteforce import problems, random_problem
from hypothesis import given, settings

from discreet.domain import Domain
from discreet.errors import CostError, EvidenceError, InputError
from discreet.factor import CliqueVector, Factor
from discreet.inference.elimination import eliminate


def student_network() -> tuple[Domain, list[Factor]]:
    """a → c ← b, c → d, with strictly positive conditional tables."""
    domain = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2})
    rng = np.random.default_rng(0)

    def conditional(names: str) -> Factor:
        own = domain.project(tuple(names))
        p = rng.dirichlet(np.ones(own.shape[-1]), size=own.shape[:-1])
        return Factor.from_probabilities(own, p)

    return domain, [conditional(s) for s in ("a", "b", "abc", "cd")]


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_intermediate_factors_follow_the_algorithm(order):
    """[CRJ20] Algorithm 3: a step takes exactly the factors with X, multiplies them (line 8), sums X out (line 9)."""
    domain, factors = student_network()
    result = eliminate(domain, factors, ("d",), order=order)
    assert result.order == order
    pool = list(factors)
    for step in result.intermediates:
        assert {id(f) for f in step.taken} == {id(f) for f in pool if step.variable in f.names}
        product = step.taken[0]
        for f in step.taken[1:]:
            product = product + f
        np.testing.assert_allclose(step.product.transpose(product.names).exp(), product.exp())
        np.testing.assert_allclose(step.summed.exp(), step.product.logsumexp([step.variable]).exp())
        assert step.variable not in step.summed.names
        pool = [f for f in pool if id(f) not in {id(t) for t in step.taken}] + [step.summed]
    # All factors are conditional probabilities, so the total is 1 and the result a distribution.
    assert result.log_partition == pytest.approx(0.0, abs=1e-12)
    assert result.factor.exp().sum() == pytest.approx(1.0)


@settings(max_examples=50, deadline=None)
@given(problems())
def test_any_order_gives_the_same_answer(problem):
    if not problem.is_possible:
        return
    rng = np.random.default_rng(0)
    free = [n for n in problem.domain if n not in problem.evidence]
    keep = tuple(rng.permutation(free)[:2])
    order = list(rng.permutation([n for n in free if n not in keep]))
    found = eliminate(problem.domain, problem.potentials, keep, problem.evidence, order)
    assert found.log_partition == pytest.approx(problem.log_partition(), rel=1e-12, abs=1e-10)
    np.testing.assert_allclose(found.factor.normalize().exp(), problem.marginal(keep), atol=1e-10)


def test_columns_that_no_factor_mentions_count_their_size():
    domain = Domain.of({"a": 2, "b": 5})
    assert eliminate(domain, [], ()).log_partition == pytest.approx(np.log(10))
    assert eliminate(domain, [], ("b",)).factor.exp().tolist() == pytest.approx([2.0] * 5)
    assert eliminate(domain, [], (), {"b": 3}).log_partition == pytest.approx(np.log(2))


def test_mistakes_are_named():
    domain, factors = student_network()
    with pytest.raises(InputError, match="'a' is asked for and given"):
        eliminate(domain, factors, ("a",), {"a": 0})
    with pytest.raises(InputError, match="order must name"):
        eliminate(domain, factors, ("d",), order=("a", "b"))
    with pytest.raises(InputError, match="codes 0 … 1"):
        eliminate(domain, factors, ("d",), {"a": 2})
    zero = Factor.from_probabilities(domain.project("a"), [1.0, 0.0])
    with pytest.raises(EvidenceError, match="a=1"):
        eliminate(domain, [*factors, zero], ("d",), {"a": 1})


def test_a_bad_order_is_refused_before_any_work():
    domain = Domain.of({"hub": 2, **{f"leaf{i}": 8 for i in range(12)}})
    star = CliqueVector.random(domain, [("hub", f"leaf{i}") for i in range(12)], 0)
    eliminate(domain, star, ())
    with pytest.raises(CostError, match=r"variable elimination needs a table of 10\^11\.1 cells over the 13 columns"):
        eliminate(domain, star, (), order=domain.names)


def test_batches_pass_through():
    problem = random_problem(4, evidence=0.0)
    stacked = problem.potentials.map(lambda v: np.stack([v, 2 * v]))
    found = eliminate(problem.domain, stacked, ("x1", "x4"))
    for i, factor in enumerate((1, 2)):
        one = eliminate(problem.domain, problem.potentials * factor, ("x1", "x4"))
        assert found.log_partition[i] == pytest.approx(one.log_partition)
        np.testing.assert_allclose(found.factor.values[i], one.factor.values)
