"""Bayesian networks: what is refused, what the graph says, and a second opinion from pyAgrum."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_enumeration import joint, marginal

from discreet import networks
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.models import BayesianNetwork, generators

ABC = Domain.of({"a": ["y", "n"], "b": ["y", "n"], "c": 3})
HALF = [0.5, 0.5]
THIRD = [0.2, 0.3, 0.5]


@pytest.mark.parametrize(
    ("parents", "tables", "message"),
    [
        ({"a": ["b"], "b": ["a"]}, {"a": [HALF, HALF], "b": [HALF, HALF], "c": THIRD}, "cycle: (a → b → a|b → a → b)"),
        ({"a": ["a"]}, {"a": [HALF, HALF], "b": HALF, "c": THIRD}, "cycle: a → a"),
        ({}, {"a": HALF, "b": HALF}, "'c' has no conditional table"),
        ({}, {"a": [0.5, 0.6], "b": HALF, "c": THIRD}, "must sum to one, got 1.1"),
        ({"b": ["c"]}, {"a": HALF, "b": [HALF, [0.5, 0.4], HALF], "c": THIRD}, "sum to one at c=1, got 0.9"),
        ({}, {"a": [1.5, -0.5], "b": HALF, "c": THIRD}, "negative probability -0.5"),
        ({"b": ["a"]}, {"a": HALF, "b": HALF, "c": THIRD}, "must have 2 axes"),
        ({"b": ["c"]}, {"a": HALF, "b": [HALF, HALF], "c": THIRD}, r"must have shape \(3, 2\)"),
        ({}, {"a": [np.nan, 1.0], "b": HALF, "c": THIRD}, "finite"),
        ({"b": ["z"]}, {"a": HALF, "b": [HALF], "c": THIRD}, "no column 'z'"),
        ({"b": ["a", "a"]}, {"a": HALF, "b": [[HALF] * 2] * 2, "c": THIRD}, "names a parent twice"),
        ({"zz": []}, {"a": HALF, "b": HALF, "c": THIRD}, "no column 'zz'"),
    ],
)  # fmt: skip
def test_what_is_refused(parents, tables, message):
    with pytest.raises(InputError, match=message):
        BayesianNetwork(ABC, parents, tables)


def test_rounded_rows_are_rescaled_and_exact_ones_untouched():
    third = [1 / 3, 1 / 3, 1 / 3]
    network = BayesianNetwork(ABC, {}, {"a": [0.333333, 0.666666], "b": HALF, "c": third})
    assert network.tables["a"].sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_array_equal(network.tables["c"], third)
    with pytest.raises(ValueError):
        network.tables["a"][0] = 1
    with pytest.raises(TypeError):
        network.tables["a"] = HALF


def test_axes_follow_the_parents_as_given():
    """The parents may come in any order; the table's axes follow it, not the domain's."""
    table = np.random.default_rng(0).dirichlet(np.ones(2), size=(3, 2))
    network = BayesianNetwork(ABC, {"a": ("c", "b")}, {"a": table, "b": HALF, "c": THIRD})
    assert network.probability({"a": "y"}, {"c": 2, "b": "n"}) == pytest.approx(table[2, 1, 0])
    np.testing.assert_allclose(network.conditional("a", ["c", "b"]).probabilities, table)
    assert network.order == ("b", "c", "a")


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_d_separation_is_independence(seed):
    """In generic networks, separated sets are independent, and the others are not."""
    rng = np.random.default_rng(seed)
    network = generators.network(5, levels=2, max_parents=2, random_state=rng)
    table = joint(network)
    names = rng.permutation(network.domain.names).tolist()
    a, b, given_ = names[0], names[1], names[2 : 2 + int(rng.integers(3))]
    full = marginal(network, table, (a, b, *given_))
    total = full.sum(axis=(0, 1), keepdims=True)
    product = full.sum(axis=0, keepdims=True) * full.sum(axis=1, keepdims=True) / total
    gap = np.abs(full - product).max()
    if network.d_separated([a], [b], given_):
        assert gap < 1e-12
    else:
        assert gap > 1e-12
    assert network.d_separated([a], [b], given_) == network.d_separated([b], [a], given_)


def test_d_separation_of_the_three_connections():
    chain = generators.network(3, {1: [0], 2: [1]}, levels=2, random_state=0)
    assert not chain.d_separated(["x0"], ["x2"]) and chain.d_separated(["x0"], ["x2"], ["x1"])
    collider = generators.network(4, {2: [0, 1], 3: [2]}, levels=2, random_state=0)
    assert collider.d_separated(["x0"], ["x1"])
    assert not collider.d_separated(["x0"], ["x1"], ["x3"]) and not collider.d_separated(["x0"], ["x1"], ["x2"])
    assert not chain.d_separated(["x0"], ["x0"])
    assert collider.ancestors(["x2"]) == {"x0", "x1", "x2"}


@pytest.mark.parametrize("name", ["asia", "sachs", "child", "alarm"])
def test_second_opinion(name):
    """All marginals, with and without evidence, and the probability of the evidence, against pyAgrum to 1e-8."""
    gum = pytest.importorskip("pyagrum")
    network = networks.load(name)
    theirs = gum.BayesNet()
    for a in network.domain.attributes:
        theirs.add(gum.LabelizedVariable(a.name, a.name, [f"s{i}" for i in range(a.size)]))
    for parent, child in network.edges:
        theirs.addArc(parent, child)
    for child, above in network.parents.items():
        table = network.tables[child]
        for index in np.ndindex(*table.shape[:-1]):
            theirs.cpt(child)[dict(zip(above, map(int, index), strict=True))] = table[index].tolist()
    rng = np.random.default_rng(0)
    for observed in (0, 1, 3):
        record = network.sample(1, rng).codes[0]
        names = rng.choice(network.domain.names, observed, replace=False).tolist()
        codes = {n: int(record[network.domain.index(n)]) for n in names}
        evidence = {n: network.domain[n].labels[c] for n, c in codes.items()}
        engine = gum.LazyPropagation(theirs)
        engine.setEvidence(codes)
        engine.makeInference()
        if names:
            assert network.probability(evidence) == pytest.approx(engine.evidenceProbability(), rel=1e-8)
        for other in network.domain:
            if other not in evidence:
                ours = network.marginal(other, evidence).probabilities
                np.testing.assert_allclose(ours, engine.posterior(other).toarray(), atol=1e-8)


def test_pairs_across_the_graph_of_asia_against_enumeration():
    network = networks.load("asia")
    table = joint(network)
    for pair in combinations(network.domain.names, 2):
        np.testing.assert_allclose(network.marginal(pair).probabilities, marginal(network, table, pair), atol=1e-12)
