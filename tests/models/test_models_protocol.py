"""Every family through the same questions, against the enumeration of all records."""

import copy
import math
import pickle

import model_enumeration as enumeration
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_enumeration import FAMILIES, joint, labelled, marginal, models, models_with_question, random_model

from discreet import networks
from discreet.domain import Domain
from discreet.errors import CostError, EvidenceError, InputError
from discreet.files import load_model
from discreet.graph import DEFAULT_MEMORY_LIMIT
from discreet.models import (
    BayesianNetwork,
    BinaryMRF,
    Estimate,
    IsingModel,
    MarkovRandomField,
    generators,
    queries,
    to_markov,
)

TOLERANCE = 1e-10
seeds = st.integers(0, 2**32 - 1)


@given(models())
@settings(max_examples=60, deadline=None)
def test_log_prob_is_that_of_the_definition(model):
    codes = enumeration.all_codes(model.domain)
    np.testing.assert_allclose(np.exp(model.log_prob(codes)), joint(model).ravel(), atol=TOLERANCE)


@given(models_with_question())
@settings(max_examples=120, deadline=None)
def test_marginals_and_conditionals(question):
    model, names, evidence = question
    truth = marginal(model, joint(model), names, evidence)
    answer = model.marginal(names, labelled(model, evidence))
    np.testing.assert_allclose(answer.probabilities, truth, atol=TOLERANCE)
    assert answer.names == names and answer.method == "exact"
    assert answer.given == labelled(model, evidence)
    np.testing.assert_allclose(model.conditional(names, labelled(model, evidence)).probabilities, truth, atol=TOLERANCE)


@given(models_with_question(), seeds)
@settings(max_examples=80, deadline=None)
def test_probabilities_of_events(question, seed):
    """Some targets fixed to a level, possible or not; the joint table of all the targets is the truth."""
    model, names, evidence = question
    rng = np.random.default_rng(seed)
    split = int(rng.integers(len(names) + 1))
    free, fixed = names[:split], {n: int(rng.integers(model.domain[n].size)) for n in names[split:]}
    truth = marginal(model, joint(model), names, evidence)[(..., *fixed.values())]
    given_labels = labelled(model, evidence)
    answer = queries.event(model, free, labelled(model, fixed), given_labels, "auto", DEFAULT_MEMORY_LIMIT, {})
    np.testing.assert_allclose(answer.probabilities, truth, atol=TOLERANCE)
    if not free:
        p = model.probability(labelled(model, fixed), labelled(model, evidence))
        assert p == pytest.approx(float(truth), abs=TOLERANCE)


@given(models(), seeds)
@settings(max_examples=40, deadline=None)
def test_conditional_tables(model, seed):
    names = np.random.default_rng(seed).permutation(model.domain.names).tolist()
    above, asked = names[: len(names) // 2], names[len(names) // 2 :]
    answer = model.conditional(asked, above)
    full = marginal(model, joint(model), (*above, *asked))
    total = full.sum(axis=tuple(range(len(above), full.ndim)), keepdims=True)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(answer.probabilities, full / np.where(total > 0, total, np.nan), atol=TOLERANCE)


@given(models_with_question())
@settings(max_examples=80, deadline=None)
def test_most_probable_values(question):
    model, names, evidence = question
    given_ = labelled(model, evidence)
    truth = marginal(model, joint(model), names, evidence)
    best = model.map(names, given_)
    index = tuple(model.domain[n].code(best[n]) for n in names)
    assert truth[index] == pytest.approx(truth.max(), abs=TOLERANCE)
    assert best.probability == pytest.approx(truth.max(), abs=TOLERANCE)
    free = tuple(n for n in model.domain if n not in evidence)
    if free:
        everything = marginal(model, joint(model), free, evidence)
        assert model.map(None, given_).probability == pytest.approx(everything.max(), abs=TOLERANCE)
        top = model.most_probable(3, given_)
        expected = np.sort(everything[everything > 0])[::-1][:3]
        np.testing.assert_allclose([a.probability for a in top], expected, atol=TOLERANCE)


@given(models())
@settings(max_examples=50, deadline=None)
def test_entropy(model):
    table = joint(model)
    reached = table[table > 0]
    assert model.entropy() == pytest.approx(-(reached * np.log(reached)).sum(), abs=1e-9)


@given(st.sampled_from(FAMILIES), st.sampled_from(FAMILIES), seeds, st.booleans())
@settings(max_examples=80, deadline=None)
def test_kl_between_families(family, other, seed, zeros):
    """On graphs that differ; ∞ exactly when the second forbids what the first allows."""
    rng = np.random.default_rng(seed)
    p = to_markov(random_model(family, rng, 4, zeros))
    q = random_model(other, rng, 4, zeros)
    p = MarkovRandomField(q.domain, {}) if p.domain.shape != q.domain.shape else p
    p = MarkovRandomField(q.domain, dict(p.potentials))  # same labels
    a, b = joint(p), joint(q)
    reached = a > 0
    with np.errstate(divide="ignore"):
        truth = (a[reached] * (np.log(a[reached]) - np.log(b[reached]))).sum()
    assert p.kl(q) == pytest.approx(truth, abs=1e-9)
    assert p.kl(p) == pytest.approx(0, abs=1e-12)


def test_kl_does_not_mind_the_order_of_columns_but_their_levels():
    a = Domain.of({"u": ["n", "y"], "v": 3})
    b = Domain.of({"v": 3, "u": ["n", "y"]})
    table = np.log([[0.1, 0.2, 0.3], [0.2, 0.1, 0.1]])
    p, q = MarkovRandomField(a, {("u", "v"): table}), MarkovRandomField(b, {("v", "u"): table.T})
    assert p.kl(q) == pytest.approx(0, abs=1e-12)
    assert float(p.kl(q, samples=100, random_state=0)) == pytest.approx(0, abs=1e-12)
    flipped = MarkovRandomField(Domain.of({"v": 3, "u": ["y", "n"]}), {("v", "u"): table.T})
    with pytest.raises(InputError, match="'u' has different levels"):
        p.kl(flipped)
    with pytest.raises(InputError, match="same columns"):
        p.kl(MarkovRandomField.uniform(Domain.of({"u": ["n", "y"], "w": 3})))


def test_estimates_carry_an_honest_standard_error():
    """Errors in units of the standard error are of order one; half the entropy (a wrong answer) is rejected."""
    model = generators.ising(6, generators.grid(2, 3), weight=0.4, field=0.2)
    other = generators.ising(6, generators.chain(6), weight=0.3)
    for exact, estimate in (
        (model.entropy(), [model.entropy(samples=2000, random_state=s) for s in range(30)]),
        (model.kl(other), [model.kl(other, samples=2000, random_state=s) for s in range(30)]),
    ):
        assert all(isinstance(e, Estimate) for e in estimate)
        z = np.array([(e - exact) / e.standard_error for e in estimate])
        assert abs(z.mean()) < 4 / math.sqrt(30) and 0.5 < z.std() < 1.6
        wrong = np.array([(e - exact / 2) / e.standard_error for e in estimate])
        assert abs(wrong.mean()) > 4 / math.sqrt(30)


@given(models(zeros=False), seeds)
@settings(max_examples=40, deadline=None)
def test_full_conditionals(model, seed):
    codes = enumeration.all_codes(model.domain)
    name = model.domain.names[seed % len(model.domain)]
    axis = model.domain.index(name)
    table = joint(model)
    truth = np.moveaxis(table / table.sum(axis=axis, keepdims=True), axis, -1)
    rows = np.stack([truth[tuple(others)] for others in np.delete(codes, axis, axis=1)])
    np.testing.assert_allclose(model.full_conditional(name, codes), rows, atol=TOLERANCE)


@given(models(zeros=False), seeds)
@settings(max_examples=40, deadline=None)
def test_markov_blanket_screens_off(model, seed):
    """P(x | all others) changes with no column outside the blanket; x is not in its own blanket."""
    name = model.domain.names[seed % len(model.domain)]
    blanket = model.markov_blanket(name)
    assert name not in blanket and list(blanket) == [n for n in model.domain if n in blanket]
    assert all(name in model.markov_blanket(other) for other in blanket)
    codes = enumeration.all_codes(model.domain)
    conditional = model.full_conditional(name, codes)
    seen = {}
    for code, row in zip(codes, conditional, strict=True):
        key = tuple(code[model.domain.index(n)] for n in blanket)
        np.testing.assert_allclose(row, seen.setdefault(key, row), atol=1e-9)


def test_markov_blanket_of_a_network_has_the_co_parents():
    network = generators.network(5, {2: [0, 1], 3: [2], 4: []}, levels=2, random_state=0)
    assert network.markov_blanket("x0") == ("x1", "x2")
    assert network.markov_blanket("x2") == ("x0", "x1", "x3")
    assert network.markov_blanket("x4") == ()


@given(model=models())
@settings(max_examples=40, deadline=None)
def test_archive_and_copies(model, tmp_path_factory):
    again = type(model).from_archive(*model.to_archive())
    assert again == model and hash(again) == hash(model)
    assert pickle.loads(pickle.dumps(model)) == model and copy.deepcopy(model) == model
    path = tmp_path_factory.mktemp("models") / "model.zip"
    carded = model.with_card({"epsilon": 1.0})
    carded.save(path)
    loaded = load_model(path)
    assert loaded == carded and loaded.card == {"epsilon": 1.0} and loaded != model
    assert type(loaded) is type(model)
    codes = enumeration.all_codes(model.domain)
    np.testing.assert_array_equal(loaded.log_weight(codes), model.log_weight(codes))


@given(models(), seeds)
@settings(max_examples=30, deadline=None)
def test_samples_of_small_models_stay_possible(model, seed):
    """Structural zeros are never drawn, by no method, with or without evidence."""
    for method in ("exact", "rounded", "auto"):
        records = model.sample(200, seed, method=method)
        assert len(records) == 200 and np.all(np.isfinite(model.log_prob(records)))
    record = model.sample(1, seed)
    name = model.domain.names[0]
    label = model.domain[name].labels[record.codes[0, 0]]
    drawn = model.sample(50, seed, given={name: label})
    assert set(drawn.codes[:, 0]) == {record.codes[0, 0]} and np.all(np.isfinite(model.log_prob(drawn)))


def test_structural_zeros_in_every_answer():
    domain = Domain.of({"sex": ["f", "m"], "pregnant": ["no", "yes"], "age": 3})
    rng = np.random.default_rng(0)
    free = MarkovRandomField(
        domain, {("sex", "pregnant"): rng.normal(size=(2, 2)), ("sex", "age"): rng.normal(size=(2, 3))}
    )
    model = free.forbid([{"sex": "m", "pregnant": "yes"}, {"pregnant": "yes", "age": 0}])
    allowed = np.ones((2, 2, 3))
    allowed[1, 1, :] = allowed[:, 1, 0] = 0
    truth = joint(free) * allowed
    np.testing.assert_allclose(model.marginal(domain.names).probabilities, truth / truth.sum(), atol=TOLERANCE)
    assert set(model.structural_zeros) == {("sex", "pregnant"), ("pregnant", "age")}
    assert model.sample(5000, 0).counts(domain.names)[allowed == 0].sum() == 0
    assert model.probability({"sex": "m", "pregnant": "yes"}) == 0
    with pytest.raises(EvidenceError, match="sex=m, pregnant=yes"):
        model.marginal("age", {"sex": "m", "pregnant": "yes"})
    assert free.kl(model) == math.inf and model.kl(free) == pytest.approx(-math.log(truth.sum()))
    women = model.forbid([{"sex": "m", "pregnant": "no"}])
    assert women.probability({"sex": "f"}) == pytest.approx(1)
    with pytest.raises(InputError, match="impossible whatever"):
        women.full_conditional("pregnant", {"sex": ["m"], "pregnant": ["no"], "age": [1]})
    with pytest.raises(InputError, match="every combination impossible"):
        MarkovRandomField(domain, {("sex",): [-np.inf, -np.inf]})


@pytest.mark.parametrize("family", FAMILIES)
def test_one_column_and_no_edges(family):
    rng = np.random.default_rng(1)
    model = random_model(family, rng, 1)
    assert model.edges == () and model.markov_blanket("x0") == () and len(model.graph) == 1
    np.testing.assert_allclose(model.marginal("x0").probabilities, joint(model), atol=TOLERANCE)
    assert model.sample(10, 0).codes.shape == (10, 1)
    assert model.sample(0, 0).codes.shape == (0, 1)


def test_empty_graph_is_a_product():
    model = IsingModel(np.zeros((4, 4)), [0.1, -0.2, 0.3, 0.0])
    assert model.edges == () and model.minimum_edge_weight == math.inf and model.width == 0.3
    for i, name in enumerate(model.domain):
        assert model.probability({name: 1}) == pytest.approx(1 / (1 + math.exp(-2 * model.theta[i])))


def test_log_prob_takes_records_in_many_forms():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    model = generators.network(3, {1: [0], 2: [1]}, levels=[2, 3, 2], random_state=0)
    columns = {"x2": [1, 0, 1], "x0": [0, 1, 1], "x1": [2, 0, 1]}
    codes = np.array([[0, 2, 1], [1, 0, 0], [1, 1, 1]])
    expected = model.log_prob(codes)
    assert expected.shape == (3,)
    for form in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns)):
        np.testing.assert_array_equal(model.log_prob(form), expected)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    np.testing.assert_array_equal(model.log_prob(rows), expected)
    np.testing.assert_array_equal(model.log_prob(codes[0]), expected[:1])
    with pytest.raises(InputError, match="no column 'x1'"):
        model.log_prob({"x0": [0], "x2": [0]})
    with pytest.raises(InputError, match=r"shape \(n, 3\)"):
        model.log_prob(codes[:, :2])
    with pytest.raises(InputError, match="'x1' has codes 0 … 2"):
        model.log_prob(np.array([[0, 3, 0]]))
    with pytest.raises(InputError, match="integers"):
        model.log_prob(codes + 0.5)
    with pytest.raises(InputError, match="from int"):
        model.log_prob(7)


def test_errors_name_the_thing_and_the_way_out():
    model = generators.network(3, {1: [0]}, levels=2, random_state=0)
    with pytest.raises(InputError, match="no column 'x9'"):
        model.marginal("x9")
    with pytest.raises(InputError, match="has no level '7'"):
        model.marginal("x0", {"x1": 7})
    with pytest.raises(InputError, match="both asked about and given"):
        model.marginal("x0", {"x0": 1})
    with pytest.raises(InputError, match="method must be one of"):
        model.marginal("x0", method="magic")
    with pytest.raises(InputError, match="zero or more"):
        model.sample(-1)
    with pytest.raises(InputError, match="each column once"):
        model.marginal(["x0", "x0"])


def test_wide_graphs_are_refused_with_the_estimate_as_way_out():
    model = generators.ising(60, generators.dense(60), weight=0.01)
    with pytest.raises(CostError, match="samples=100_000"):
        model.entropy()
    with pytest.raises(CostError, match="Ways out"):
        model.marginal("x0", method="exact")
    with pytest.raises(CostError):
        _ = model.log_partition
    with pytest.raises(CostError):
        model.sample(1, method="rounded")


def test_events_over_many_columns_need_no_joint_table():
    network = networks.load("alarm")
    record = network.sample(1, 0)
    levels = {n: network.domain[n].labels[c] for n, c in zip(network.domain, record.codes[0].tolist(), strict=True)}
    assert network.probability(levels) == pytest.approx(math.exp(network.log_prob(record)[0]), rel=1e-9)
    name = network.domain.names[5]
    rest = {n: label for n, label in levels.items() if n != name}
    assert network.probability({name: levels[name]}, rest) == pytest.approx(
        network.full_conditional(name, record)[0, record.codes[0, 5]], rel=1e-9
    )


def test_monomials_too_large_for_a_table():
    names = [f"x{i}" for i in range(40)]
    model = BinaryMRF({tuple(names): 0.5}, Domain.of(dict.fromkeys(names, 2)))
    assert model.width == 0.5 and model.log_odds("x0", np.zeros((1, 40), dtype=int)) == -1.0
    with pytest.raises(CostError, match="2\\^40"):
        model.marginal("x0")


def test_wide_networks_still_answer_what_depends_on_little():
    """A network of 60 roots with one child each and a last layer that joins them all is too wide as a whole."""
    parents = {40 + i: [i, i + 1] for i in range(39)}
    parents |= {79 + k: [k, 7 + k, 15 + k, 28 + k] for k in range(9)}
    network = generators.network(88, parents, levels=4, random_state=0)
    small = generators.network(88, {40: [0, 1]}, levels=4, random_state=0)
    limit = network.forecast.bytes - 1
    answer = network.marginal(["x40", "x0"], memory_limit=limit)
    truth = network.tables["x40"] * network.tables["x0"][:, None, None] * network.tables["x1"][None, :, None]
    np.testing.assert_allclose(answer.probabilities, truth.sum(axis=1).T, atol=TOLERANCE)
    assert answer.method == "exact" and "part of the graph" in answer.reason
    assert small.marginal("x40").reason == "junction tree"
    assert len(network.sample(100, 0)) == 100
    with pytest.raises(CostError):
        network.marginal(network.domain.names[79:], memory_limit=10_000, method="exact")


@pytest.mark.parametrize(
    ("potentials", "message"),
    [
        ({("a", "b"): [[0.0, np.nan], [0.0, 0.0]]}, "NaN or \\+inf"),
        ({("a", "b"): [[0.0, np.inf], [0.0, 0.0]]}, "NaN or \\+inf"),
        ({("a", "b"): [0.0, 0.0]}, r"must have shape \(2, 2\)"),
        ({("a", "z"): [[0.0]]}, "no column 'z'"),
    ],
)
def test_potentials_that_are_refused(potentials, message):
    with pytest.raises(InputError, match=message):
        MarkovRandomField(Domain.of({"a": 2, "b": 2}), potentials)


def test_potentials_on_the_same_columns_add_up_and_keys_may_come_in_any_order():
    domain = Domain.of({"a": 2, "b": 3})
    x, y = np.arange(6.0).reshape(2, 3), np.arange(6.0)[::-1].reshape(3, 2)
    model = MarkovRandomField(domain, {("a", "b"): x, ("b", "a"): y})
    assert model.cliques == (("a", "b"),)
    np.testing.assert_allclose(model.potentials[("a", "b")].values, x + y.T)
    with pytest.raises(ValueError):
        model.potentials[("a", "b")].values[0, 0] = 1.0


def test_repr_says_what_it_is():
    model = generators.ising(4, generators.matching(4), weight=0.5)
    assert repr(model) == "IsingModel: 4 columns of 2 levels, 2 edges (x0–x1, x2–x3), λ = 0.5"
    assert "card" in repr(model.with_card({"epsilon": 1}))
    assert "→" in repr(generators.network(2, {1: [0]}, random_state=0))


def test_graphs_are_networkx_values():
    network = generators.network(3, {1: [0], 2: [0]}, levels=2, random_state=0)
    assert isinstance(network, BayesianNetwork)
    assert network.graph.is_directed() and set(network.graph.edges) == {("x0", "x1"), ("x0", "x2")}
    assert not generators.ising(3, [(0, 1)]).graph.is_directed()
