"""Every exact method against enumeration: same graphs, same potentials, same evidence, same questions."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from bruteforce import Problem, problems, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.errors import CostError, EvidenceError, InputError
from discreet.factor import CliqueVector, Factor
from discreet.inference import passes
from discreet.inference.auto import infer
from discreet.inference.elimination import eliminate
from discreet.inference.exact import ExactEngine, get_engine
from discreet.inference.schedule import Reduction


class Answers:
    """What the suite asks of a method."""

    def __init__(self, log_partition, probabilities):
        self.log_partition = log_partition
        self.probabilities = probabilities


def junction_tree(problem: Problem) -> Answers:
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials, problem.evidence)
    return Answers(beliefs.log_partition, beliefs.probabilities)


def junction_tree_logs(problem: Problem) -> Answers:
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials, problem.evidence)
    return Answers(beliefs.log_partition, lambda names: beliefs.marginal(names).exp())


def table_by_table(problem: Problem) -> Answers:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "_SMALL_CELLS", 0)
        return junction_tree(problem)


def with_measured_ranges(problem: Problem) -> Answers:
    """The bound for the whole tree is made useless, that of the cliques is not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(get_engine(problem.domain, problem.potentials).schedule, "log_cells", np.inf)
        return junction_tree(problem)


def in_log_space(problem: Problem) -> Answers:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "_SAFE_LOG_RANGE", -1.0)
        return junction_tree(problem)


def random_order(problem: Problem) -> Answers:
    order = list(np.random.default_rng(0).permutation(problem.domain.names))
    engine = ExactEngine(problem.domain, problem.potentials, order=order)
    beliefs = engine.calibrate(problem.potentials, problem.evidence)
    return Answers(beliefs.log_partition, beliefs.probabilities)


def in_a_batch(problem: Problem) -> Answers:
    """As the last of three parameter vectors, beside others that are shifted and zero."""
    stacked = problem.potentials.map(lambda v: np.stack([np.zeros_like(v), v - 3.0, v]))
    codes = {n: np.array([-1, c, c]) for n, c in problem.evidence.items()}
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(stacked, codes)
    if not len(problem.potentials):
        return junction_tree(problem)
    return Answers(beliefs.log_partition[2], lambda names: beliefs.probabilities(names)[2])


def one_of_a_batch(problem: Problem) -> Answers:
    codes = {n: np.array([[c], [c]]) for n, c in problem.evidence.items()} or {
        problem.domain.names[0]: np.full((2, 1), -1)
    }
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials, codes).at(1, 0)
    return Answers(beliefs.log_partition, beliefs.probabilities)


def variable_elimination(problem: Problem) -> Answers:
    def probabilities(names):
        free = tuple(n for n in names if n not in problem.evidence)
        factor = eliminate(problem.domain, problem.potentials, free, problem.evidence).factor.normalize()
        # An observed column comes back as an axis with all its mass on the code observed.
        for name in set(names) - set(free):
            factor = factor + point(problem.domain, name, problem.evidence[name])
        return factor.transpose(names).exp()

    return Answers(eliminate(problem.domain, problem.potentials, (), problem.evidence).log_partition, probabilities)


def point(domain: Domain, name: str, code: int) -> Factor:
    return Factor.from_probabilities(domain.project([name]), np.arange(domain[name].size) == code)


def auto(problem: Problem) -> Answers:
    beliefs = infer(problem.domain, problem.potentials, evidence=problem.evidence)
    assert beliefs.method == "exact"
    return Answers(beliefs.log_partition, lambda names: beliefs.marginal(names).exp())


METHODS = [
    junction_tree,
    junction_tree_logs,
    table_by_table,
    with_measured_ranges,
    in_log_space,
    random_order,
    in_a_batch,
    one_of_a_batch,
    variable_elimination,
    auto,
]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(problem=problems(), data=st.data())
def test_agrees_with_enumeration(method, problem, data):
    if not problem.is_possible:
        with pytest.raises(EvidenceError if problem.evidence else InputError):
            method(problem)
        return
    answers = method(problem)
    assert answers.log_partition == pytest.approx(problem.log_partition(), rel=1e-12, abs=1e-10)
    shuffled = data.draw(st.permutations(problem.domain.names))
    for names in (tuple(shuffled[:1]), tuple(shuffled[:2]), tuple(shuffled)):
        expected = problem.marginal(names)
        found = answers.probabilities(names)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
        assert np.all(found[expected == 0] < 1e-290)


def test_log_probabilities_are_accurate_far_into_the_tail():
    """Not only probabilities: the log of a cell of weight e^-600 is right to 1e-10."""
    problem = random_problem(3, columns=5, cliques=8, scale=50.0, evidence=0.0)
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials)
    joint = problem.joint()
    expected = joint - problem.log_partition()
    assert expected.min() < -100
    np.testing.assert_allclose(beliefs.marginal(problem.domain.names).values, expected, atol=1e-10)


@pytest.mark.parametrize("length", [5, 200])
def test_opposite_extremes_in_neighbouring_cliques(length):
    """Each clique alone would underflow the cells that its neighbour needs: ±1000 that cancel along a chain."""
    domain = Domain.of({f"x{i}": 2 for i in range(length)})
    tables = {}
    for i in range(length - 1):
        sign = 1 if i % 2 == 0 else -1
        tables[(f"x{i}", f"x{i + 1}")] = np.array([[0.0, 1000.0 * sign], [1000.0 * sign, 0.3]])
    beliefs = ExactEngine(domain, tables).calibrate(tables)
    # Transfer matrices in log space, by hand.
    alpha = np.zeros(2)
    for table in tables.values():
        alpha = np.logaddexp.reduce(alpha[:, None] + table, axis=0)
    assert beliefs.log_partition == pytest.approx(np.logaddexp.reduce(alpha), abs=1e-9)
    np.testing.assert_allclose(
        beliefs.probabilities([f"x{length - 1}"]), np.exp(alpha - np.logaddexp.reduce(alpha)), atol=1e-9
    )


@pytest.mark.parametrize("tables_at_once", [True, False])
def test_ranges_that_only_add_up_along_messages(tables_at_once, monkeypatch):
    """Every clique fits into float64 alone; the products of its table with what it hears do not."""
    if not tables_at_once:
        monkeypatch.setattr(passes, "_SMALL_CELLS", 0)
    domain = Domain.of(dict.fromkeys("abcde", 2))
    at_b = np.array([0.0, 600.0])
    # Four neighbours of b, two for b = 1 and two against: they cancel, but not in pairs.
    star = {("a", "b"): -at_b[None, :] + np.zeros((2, 1))}
    star |= {("b", x): sign * at_b[:, None] + np.zeros((1, 2)) for x, sign in zip("cde", (-1, 1, 1), strict=True)}
    beliefs = ExactEngine(domain, star).calibrate(star)
    assert beliefs.log_partition == pytest.approx(np.log(32), abs=1e-10)
    np.testing.assert_allclose(beliefs.probabilities("b"), [0.5, 0.5], atol=1e-12)
    # The cell (b, c) = (1, 1) has log-probability −900: −300 by a, −600 by c.
    pair = {("a", "b"): np.array([[0.0, -300.0]] * 2), ("b", "c"): np.array([[0.0, 0.0], [0.0, -600.0]])}
    for order in ("abcde", "cbade"):
        found = ExactEngine(domain, pair, order=order).calibrate(pair).marginal(("b", "c")).values
        np.testing.assert_allclose(found[1], [-np.log(2) - 300, -np.log(2) - 900], atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_marginals_are_the_gradient_of_the_log_partition(problem):
    if not problem.is_possible or not len(problem.potentials):
        return
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials)
    clique = problem.potentials.cliques[0]
    values = problem.potentials[clique].values
    if not np.isfinite(values).all() or np.abs(values).max() > 20:
        return
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(values.shape)
    h = 1e-5

    def shifted(sign):
        tables = {c: f.values for c, f in problem.potentials.items()}
        tables[clique] = values + sign * h * direction
        return get_engine(problem.domain, problem.potentials).calibrate(tables).log_partition

    slope = (shifted(1) - shifted(-1)) / (2 * h)
    slack = 1e-6 + 1e-9 * abs(beliefs.log_partition)
    assert slope == pytest.approx(float((beliefs.probabilities(clique) * direction).sum()), abs=slack)


def test_batches_of_parameters_and_evidence_broadcast():
    problem = random_problem(11, columns=6, cliques=8, evidence=0.0, sizes=(2, 3))
    rng = np.random.default_rng(0)
    stacked = problem.potentials.map(lambda v: v + rng.standard_normal((4, 1, *v.shape)))
    codes = {"x0": np.array([0, 1, -1]), "x3": np.array([1, -1, 0])}
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(stacked, codes)
    assert beliefs.batch_shape == (4, 3)
    names = ("x5", "x1", "x0", "x2")
    together = beliefs.probabilities(names)
    for i, j in itertools.product(range(4), range(3)):
        one = Problem(
            problem.domain,
            stacked.map(lambda v, i=i: v[i, 0]),
            {n: int(c[j]) for n, c in codes.items() if c[j] >= 0},
        )
        assert beliefs.log_partition[i, j] == pytest.approx(one.log_partition(), abs=1e-11)
        np.testing.assert_allclose(together[i, j], one.marginal(names), atol=1e-12)
        np.testing.assert_allclose(beliefs.at(i, j).probabilities(names), one.marginal(names), atol=1e-12)


def test_a_batch_may_mix_harmless_and_extreme_entries():
    problem = random_problem(5, columns=5, cliques=8, evidence=0.0)
    stacked = problem.potentials.map(lambda v: np.stack([v, 900 * v]))
    beliefs = get_engine(problem.domain, problem.potentials).calibrate(stacked)
    for i, factor in enumerate([1, 900]):
        one = Problem(problem.domain, problem.potentials * factor, {})
        np.testing.assert_allclose(beliefs.probabilities(("x0", "x4"))[i], one.marginal(("x0", "x4")), atol=1e-10)


# -- impossible and malformed ----------------------------------------------------------------------------------------


def zero_model():
    domain = Domain.of({"smoke": ["yes", "no"], "lung": ["yes", "no"], "xray": ["yes", "no"]})
    tables = {
        ("smoke", "lung"): np.array([[0.0, 0.0], [-np.inf, 0.0]]),
        ("lung", "xray"): np.array([[0.0, -np.inf], [0.0, 0.0]]),
    }
    return domain, tables


@pytest.mark.parametrize("scale", [1.0, 2000.0])
def test_impossible_evidence_is_named(scale):
    domain, tables = zero_model()
    tables[("smoke", "lung")] = tables[("smoke", "lung")] + np.array([[scale, 0.0], [0.0, -scale]])
    with pytest.raises(EvidenceError, match=r"smoke=no, lung=yes has probability 0"):
        ExactEngine(domain, tables).calibrate(tables, {"smoke": 1, "lung": 0})
    with pytest.raises(EvidenceError, match=r"smoke=no, lung=yes.*entry 1 of the batch"):
        ExactEngine(domain, tables).calibrate(tables, {"smoke": [1, 1, 0], "lung": [1, 0, 0]})
    with pytest.raises(EvidenceError, match="lung=yes, xray=no"):
        ExactEngine(domain, tables).maximize(tables, {"lung": 0, "xray": 1})


def test_impossible_entries_may_be_allowed():
    domain, tables = zero_model()
    beliefs = ExactEngine(domain, tables).calibrate(tables, {"smoke": [1, 1], "lung": [1, 0]}, allow_impossible=True)
    assert beliefs.log_partition[1] == -np.inf and np.isfinite(beliefs.log_partition[0])
    assert np.isnan(beliefs.probabilities(["xray"])[1]).all()
    np.testing.assert_allclose(beliefs.probabilities(["xray"])[0], [0.5, 0.5])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinite_potentials_are_refused(bad):
    domain, tables = zero_model()
    tables[("lung", "xray")] = np.array([[0.0, bad], [0.0, 0.0]])
    for engine in (ExactEngine(domain, tables), ExactEngine(domain, [*tables, ("smoke", "xray")])):
        with pytest.raises(InputError, match="NaN or"):
            engine.calibrate(tables)
        with pytest.raises(InputError, match="NaN or"):
            engine.maximize(tables)


def test_wrong_inputs_are_named():
    domain, tables = zero_model()
    engine = ExactEngine(domain, tables)
    with pytest.raises(InputError, match=r"\('lung', 'xray'\) needs a table of shape \(…, 2, 2\), got \(3,\)"):
        engine.calibrate({("lung", "xray"): np.zeros(3)})
    with pytest.raises(InputError, match="domain order"):
        engine.calibrate({("xray", "lung"): np.zeros((2, 2))})
    with pytest.raises(InputError, match="no clique"):
        engine.calibrate({("smoke", "xray"): np.zeros((2, 2))})
    with pytest.raises(InputError, match="codes 0 … 1"):
        engine.calibrate(tables, {"smoke": 2})
    with pytest.raises(InputError, match="codes 0 … 1"):
        engine.calibrate(tables, {"smoke": -1})
    with pytest.raises(InputError, match="did you mean 'smoke'"):
        engine.calibrate(tables, {"smoke1": 0})
    with pytest.raises(InputError, match="do not broadcast"):
        engine.calibrate({c: np.zeros((k, 2, 2)) for k, c in zip((2, 3), tables, strict=True)})
    with pytest.raises(InputError, match="each column once"):
        engine.calibrate(tables).marginal(("smoke", "smoke"))


def test_potentials_are_left_alone():
    problem = random_problem(2, scale=800.0)
    before = {c: f.values.copy() for c, f in problem.potentials.items()}
    table_by_table(problem)
    junction_tree(problem)
    get_engine(problem.domain, problem.potentials).maximize(problem.potentials, problem.evidence)
    for c, f in problem.potentials.items():
        np.testing.assert_array_equal(f.values, before[c])


@pytest.mark.parametrize("batch", [(), (3,)])
@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 7, 70]), min_size=1, max_size=4).filter(lambda s: math.prod(s) < 300_000),
    kept=st.sets(st.integers(0, 3)),
)
def test_sums_over_any_axes_of_any_shape(batch, shape, kept):
    """Short and long runs, leading, trailing and between: each has a plan of its own."""
    kept = frozenset(a for a in kept if a < len(shape))
    table = np.random.default_rng(0).random((*shape, *batch))
    summed = tuple(a for a in range(len(shape)) if a not in kept)
    found = Reduction(tuple(shape), kept)(np.ascontiguousarray(table.reshape(-1, *batch)))
    expected = table.sum(axis=summed) if summed else table
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-12)


# -- the memory limit --------------------------------------------------------------------------------------------


def test_batches_count_against_the_memory_limit():
    domain = Domain.of({f"x{i}": 10 for i in range(5)})
    cliques = [("x0", "x1", "x2"), ("x1", "x2", "x3"), ("x3", "x4")]
    engine = ExactEngine(domain, cliques, memory_limit=10**6)
    tables = {c: np.zeros((2, *(10 for _ in c))) for c in cliques}
    engine.calibrate(tables)
    view = {c: np.broadcast_to(t[0], (100, *t.shape[1:])) for c, t in tables.items()}
    with pytest.raises(CostError, match=r"smaller batches \(this one has 100 entries\)"):
        engine.calibrate(view)
    with pytest.raises(CostError, match="smaller batches"):
        engine.maximize({c: t[0] for c, t in tables.items()}, {"x0": np.zeros(100, dtype=int)})


CHAIN = [tuple(f"x{i + j}" for j in range(4)) for i in range(4)]
APART = [("x0", "x1", "x2", "x3"), ("x4", "x5", "x6")]


@pytest.mark.crossed
@pytest.mark.parametrize("batch", [(), (7,)])
@pytest.mark.parametrize("scale", [1.0, 900.0])
@pytest.mark.parametrize("cliques", [CHAIN, APART])
def test_the_forecast_covers_the_memory_used(batch, scale, cliques):
    domain = Domain.of({f"x{i}": 12 for i in range(7)})
    rng = np.random.default_rng(0)
    tables = {c: scale * rng.standard_normal((*batch, *(12 for _ in c))) for c in cliques}
    tracemalloc.start()
    engine = ExactEngine(domain, cliques)
    engine.calibrate(tables)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= engine.tree.forecast(int(np.prod(batch, dtype=int))).bytes + 10**5


def test_out_of_clique_marginals_respect_the_limit():
    domain = Domain.of({f"x{i}": 10 for i in range(9)})
    chain = list(itertools.pairwise(domain.names))
    engine = ExactEngine(domain, chain, memory_limit=10**7)
    beliefs = engine.calibrate(CliqueVector.random(domain, chain, 0))
    assert beliefs.marginal(("x0", "x8")).values.shape == (10, 10)
    with pytest.raises(CostError, match="variable elimination needs a table of 10"):
        beliefs.marginal(domain.names)


def test_engines_are_compiled_once():
    domain = Domain.of({"a": 2, "b": 2})
    assert get_engine(domain, [("a", "b")]) is get_engine(Domain.of({"a": 2, "b": 2}), [["a", "b"]])
    assert get_engine(domain, [("a", "b")]) is not get_engine(domain, [("a",)])
