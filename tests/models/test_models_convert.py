"""Conversions keep every probability."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_enumeration import joint, models

from discreet.errors import InputError
from discreet.models import (
    BayesianNetwork,
    MarkovRandomField,
    generators,
    to_binary,
    to_ising,
    to_markov,
    to_network,
    to_pairwise,
)

seeds = st.integers(0, 2**32 - 1)


@given(models())
@settings(max_examples=60, deadline=None)
def test_to_markov_and_to_network(model):
    table = joint(model)
    field = to_markov(model.with_card({"a": 1}))
    assert isinstance(field, MarkovRandomField) and field.card == {"a": 1}
    np.testing.assert_allclose(joint(field), table, atol=1e-12)
    network = to_network(field)
    assert isinstance(network, BayesianNetwork) and network.card == {"a": 1}
    np.testing.assert_allclose(joint(network), table, atol=1e-12)


def test_a_network_becomes_its_moral_graph():
    network = generators.network(4, {2: [0, 1], 3: [2]}, levels=2, random_state=0)
    assert set(to_markov(network).edges) == {("x0", "x2"), ("x1", "x2"), ("x0", "x1"), ("x2", "x3")}
    assert to_network(network) is network and to_markov(to_markov(network)) == to_markov(network)


@given(seeds, st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_a_tree_becomes_a_network_with_the_same_edges(seed, p):
    """Forests too: some edges are left out at random."""
    rng = np.random.default_rng(seed)
    edges = [e for e in generators.random_tree(p, random_state=rng) if rng.random() < 0.8]
    field = generators.dirichlet(p, edges, levels=rng.integers(1, 4, p).tolist(), random_state=rng)
    network = to_network(field)
    assert all(len(above) <= 1 for above in network.parents.values())
    assert {frozenset(e) for e in network.edges} == {frozenset(e) for e in field.edges}
    codes = field.sample(50, 0).codes
    np.testing.assert_allclose(network.log_prob(codes), field.log_prob(codes), atol=1e-9)


def test_impossible_parents_get_some_row():
    domain_model = generators.network(2, {1: [0]}, levels=2, random_state=0)
    tables = {"x0": [1.0, 0.0], "x1": [[0.3, 0.7], [0.5, 0.5]]}
    model = BayesianNetwork(domain_model.domain, {"x1": ("x0",)}, tables)
    network = to_network(to_markov(model))
    np.testing.assert_allclose(joint(network), joint(model), atol=1e-15)


@given(models(families=("ising", "binary", "pairwise"), zeros=False))
@settings(max_examples=50, deadline=None)
def test_back_to_parameters(model):
    """From potentials the parameters of the family come back, to rounding."""
    field = to_markov(model)
    if model.kind == "ising":
        again = to_ising(field)
        np.testing.assert_allclose(again.A, model.A, atol=1e-12)
        np.testing.assert_allclose(again.theta, model.theta, atol=1e-12)
        assert again.edges == model.edges
    elif model.kind == "binary":
        again = to_binary(field)
        assert set(again.coefficients) == set(model.coefficients)
        for I, value in model.coefficients.items():
            assert again.coefficients[I] == pytest.approx(value, abs=1e-12)
    else:
        again = to_pairwise(field)
        assert again.edges == model.edges
        for pair in model.edges:
            np.testing.assert_allclose(again.W[pair], model.W[pair], atol=1e-12)
    np.testing.assert_allclose(joint(again), joint(model), atol=1e-12)


def test_binary_networks_have_a_polynomial_too():
    network = generators.network(4, {1: [0], 2: [0, 1], 3: [2]}, levels=2, random_state=2)
    np.testing.assert_allclose(joint(to_binary(network)), joint(network), atol=1e-12)
    pair = generators.network(3, {1: [0], 2: [1]}, levels=2, random_state=2)
    np.testing.assert_allclose(joint(to_ising(pair)), joint(pair), atol=1e-12)
    np.testing.assert_allclose(joint(to_pairwise(pair)), joint(pair), atol=1e-12)


def test_what_cannot_be_expressed_is_refused():
    network = generators.network(3, {2: [0, 1]}, levels=2, random_state=0)
    with pytest.raises(InputError, match="more than two columns"):
        to_pairwise(network)
    with pytest.raises(InputError, match="no Ising form"):
        to_ising(network)
    zeros = to_markov(network).forbid([{"x0": 0, "x1": 1}])
    with pytest.raises(InputError, match="impossible cells"):
        to_binary(zeros)
    with pytest.raises(InputError, match="'x0' has 3"):
        to_binary(generators.dirichlet(2, [(0, 1)], levels=3, random_state=0))
