import numpy as np
import pytest
from bruteforce import log_sum, problems, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.errors import CostError, EvidenceError, InputError
from discreet.factor import CliqueVector, Factor
from discreet.inference.exact import ExactEngine, get_engine
from discreet.inference.maximum import map_assignment, marginal_map, most_probable


@settings(max_examples=100, deadline=None)
@given(problems())
def test_the_joint_maximum(problem):
    if not problem.is_possible:
        with pytest.raises(EvidenceError if problem.evidence else InputError):
            map_assignment(problem.domain, problem.potentials, problem.evidence)
        return
    found = map_assignment(problem.domain, problem.potentials, problem.evidence)
    (best,) = problem.best(1)
    assert found.log_weight == pytest.approx(best, rel=1e-12, abs=1e-10)
    assert problem.weight_of(found.codes) == pytest.approx(best, rel=1e-12, abs=1e-10)
    assert all(found.codes[n] == c for n, c in problem.evidence.items())


@settings(max_examples=100, deadline=None)
@given(problems(), st.data())
def test_the_maximum_of_some_columns_with_the_rest_summed_out(problem, data):
    free = [n for n in problem.domain if n not in problem.evidence]
    if not problem.is_possible or not free:
        return
    wanted = tuple(data.draw(st.permutations(free))[: data.draw(st.integers(1, len(free)))])
    found = marginal_map(problem.domain, problem.potentials, wanted, problem.evidence)
    joint = problem.joint()
    axes = [problem.domain.index(n) for n in wanted]
    sums = {}
    for cell in np.ndindex(*joint.shape):
        sums.setdefault(tuple(cell[a] for a in axes), []).append(joint[cell])
    totals = {k: log_sum(np.array(v)) for k, v in sums.items()}
    assert found.log_weight == pytest.approx(max(totals.values()), rel=1e-12, abs=1e-10)
    assert totals[tuple(found.codes[n] for n in wanted)] == pytest.approx(max(totals.values()), rel=1e-12, abs=1e-10)


def test_summing_before_maximising_matters():
    """The most probable level of a alone is not its level in the most probable record."""
    domain = Domain.of({"a": 2, "b": 3})
    p = np.array([[0.4, 0.0, 0.0], [0.2, 0.2, 0.2]])
    table = CliqueVector(domain, {("a", "b"): Factor.from_probabilities(domain, p)})
    assert map_assignment(domain, table).codes == {"a": 0, "b": 0}
    assert marginal_map(domain, table, ("a",)).codes == {"a": 1}
    assert marginal_map(domain, table, ()).log_weight == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match="'a' is asked for and given"):
        marginal_map(domain, table, ("a",), {"a": 0})
    with pytest.raises(EvidenceError, match="a=0, b=2"):
        marginal_map(domain, table, (), {"a": 0, "b": 2})


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 12))
def test_the_k_best(problem, k):
    if not problem.is_possible:
        return
    found = most_probable(problem.domain, problem.potentials, k, problem.evidence)
    expected = problem.best(k)
    assert len(found) == len(expected)
    np.testing.assert_allclose([a.log_weight for a in found], expected, rtol=1e-12, atol=1e-10)
    for a in found:
        assert problem.weight_of(a.codes) == pytest.approx(a.log_weight, rel=1e-12, abs=1e-10)
    assert len({tuple(a.codes.items()) for a in found}) == len(found)


def test_k_must_be_positive():
    domain = Domain.of({"a": 2})
    with pytest.raises(InputError, match="k=0"):
        most_probable(domain, CliqueVector.zeros(domain, [("a",)]), 0)


def test_a_batch_of_questions():
    problem = random_problem(8, columns=6, cliques=9, evidence=0.0, sizes=(2, 3))
    evidence = {"x0": np.array([0, 1, -1])}
    codes, weights = get_engine(problem.domain, problem.potentials).maximize(problem.potentials, evidence)
    assert codes.shape == (3, 6)
    for i, given_codes in enumerate(({"x0": 0}, {"x0": 1}, {})):
        one = map_assignment(problem.domain, problem.potentials, given_codes)
        assert weights[i] == pytest.approx(one.log_weight)
        assert dict(zip(problem.domain.names, codes[i].tolist(), strict=True)) == one.codes
    with pytest.raises(InputError, match=r"ExactEngine\.maximize"):
        map_assignment(problem.domain, problem.potentials, evidence)


def test_a_long_chain_has_its_maximum_found():
    """24 free columns of 4 levels: enumeration has 2.8e14 cells. The maximum is planted."""
    domain = Domain.of({f"x{i}": 4 for i in range(24)})
    rng = np.random.default_rng(0)
    planted = rng.integers(4, size=24)
    tables = {}
    for i in range(23):
        table = rng.uniform(0, 1, (4, 4))
        table[planted[i], planted[i + 1]] = 1.5
        tables[(f"x{i}", f"x{i + 1}")] = table
    found = map_assignment(domain, tables)
    assert list(found.codes.values()) == planted.tolist()
    assert found.log_weight == pytest.approx(23 * 1.5)


def test_the_memory_limit_is_respected():
    domain = Domain.of({"hub": 30, **{f"leaf{i}": 8 for i in range(12)}})
    star = CliqueVector.random(domain, [("hub", f"leaf{i}") for i in range(12)], 0)
    leaves = [n for n in domain if n != "hub"]
    map_assignment(domain, star)
    # Summing out the hub joins all the leaves.
    with pytest.raises(CostError, match="variable elimination"):
        marginal_map(domain, star, leaves)
    with pytest.raises(CostError):
        ExactEngine(domain, [leaves], memory_limit=10**9)
