"""Graphs have the shape they are named for; models have the weights and widths asked for."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InputError
from discreet.graph import triangulate
from discreet.models import generators as g

seeds = st.integers(0, 2**32 - 1)


def graph(p, edges):
    out = nx.Graph()
    out.add_nodes_from(range(p))
    out.add_edges_from(edges)
    assert out.number_of_edges() == len(edges) and all(0 <= i < j < p for i, j in edges)
    return out


def test_fixed_shapes():
    assert g.matching(6) == [(0, 1), (2, 3), (4, 5)]
    assert nx.is_isomorphic(graph(12, g.grid(3, 4)), nx.grid_2d_graph(3, 4))
    assert nx.is_isomorphic(graph(12, g.grid(3, 4, periodic=True)), nx.grid_2d_graph(3, 4, periodic=True))
    assert graph(10, g.chain(10, 3)).number_of_edges() == 9 + 8 + 7
    assert set(g.chain(10, 3)) == {(i, j) for i in range(10) for j in range(10) if 1 <= j - i <= 3}
    assert nx.is_isomorphic(graph(7, g.star(7)), nx.star_graph(6))
    assert len(g.dense(5)) == 10 and g.grid(1, 1) == [] and g.chain(1) == []
    with pytest.raises(InputError, match="even"):
        g.matching(5)


@given(st.integers(1, 30), st.integers(0, 5), seeds)
@settings(max_examples=60, deadline=None)
def test_regular_graphs(p, d, seed):
    if d >= p or p * d % 2:
        with pytest.raises(InputError, match="regular"):
            g.regular(p, d, random_state=seed)
        return
    assert all(k == d for _, k in graph(p, g.regular(p, d, random_state=seed)).degree)


def test_regular_graphs_are_random():
    """All 15 perfect matchings of six columns come about equally often; a fixed one would not."""
    counts = {}
    rng = np.random.default_rng(0)
    for _ in range(1500):
        edges = tuple(g.regular(6, 1, random_state=rng))
        counts[edges] = counts.get(edges, 0) + 1
    assert len(counts) == 15 and max(abs(c - 100) for c in counts.values()) < 6 * 10


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_erdos_renyi(seed):
    edges = g.erdos_renyi(10, 0.3, max_width=3, random_state=seed)
    assert nx.is_connected(graph(10, edges))
    model = g.ising(10, edges)
    assert triangulate(model.domain, model.edges).width <= 3
    loose = g.erdos_renyi(10, 0.05, connected=False, random_state=seed)
    graph(10, loose)


def test_erdos_renyi_says_what_was_not_found(monkeypatch):
    monkeypatch.setattr(g, "TRIES", 50)
    with pytest.raises(InputError, match="connected and of width ≤ 1"):
        g.erdos_renyi(6, 1.0, max_width=1, random_state=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        g.erdos_renyi(6, 1.5)
    edges = [len(g.erdos_renyi(20, 0.3, connected=False, random_state=s)) for s in range(50)]
    assert abs(np.mean(edges) - 0.3 * 190) < 5


@given(seeds, st.floats(0.05, 3))
@settings(max_examples=25, deadline=None)
def test_widths_and_weights(seed, width):
    edges = g.regular(8, 3, random_state=seed)
    model = g.ising(8, edges, weight=(0.2, 0.5), field=(0.0, 0.3), signs="random", random_state=seed)
    sizes = np.abs(model.A[model.A != 0])
    assert len(model.edges) == 12 and sizes.min() >= 0.2 and sizes.max() <= 0.5
    assert g.ising(8, edges, weight=0.35).minimum_edge_weight == 0.35
    assert (g.ising(8, edges, weight=0.35, signs="negative").A <= 0).all()
    assert g.ising(8, edges, field=0.1, width=width, random_state=seed).width == pytest.approx(width)
    levels = [2, 3, 4, 2, 3, 4, 2, 3]
    pair = g.pairwise(8, edges, levels=levels, weight=0.4, field=0.2, random_state=seed)
    assert pair.domain.shape == tuple(levels) and pair.minimum_edge_weight == pytest.approx(0.4)
    assert g.pairwise(8, edges, levels=levels, width=width, random_state=seed).width == pytest.approx(width)
    binary = g.binary(8, [(0, 1, 2), (2, 3), (4, 5, 6, 7)], weight=0.3, width=width, random_state=seed)
    assert binary.width == pytest.approx(width) and binary.order == 4


def test_dirichlet_potentials_are_distributions_on_each_edge():
    model = g.dirichlet(10, g.chain(10, 3), levels=4, random_state=0)
    assert len(model.cliques) == 24
    first = []
    for factor in model.potentials.values():
        table = np.exp(factor.values)
        assert table.shape == (4, 4) and table.sum() == pytest.approx(1)
        first.append(table[0, 0])
    draws = np.array([np.exp(g._log_dirichlet(0.5, (2, 2), np.random.default_rng(s)))[0, 0] for s in range(4000)])
    assert abs(draws.mean() - 0.25) < 0.02 and abs(draws.var() - 0.25 * 0.75 / 3) < 0.01
    tiny = g._log_dirichlet(1e-3, (3, 3), np.random.default_rng(0))
    assert np.all(np.isfinite(tiny))
    with pytest.raises(InputError, match="positive"):
        g.dirichlet(2, [(0, 1)], concentration=0)


def test_networks():
    network = g.network(12, max_parents=2, levels=3, random_state=4)
    assert max(len(above) for above in network.parents.values()) <= 2 and network.edges
    assert g.network(12, random_state=4).edges == g.network(12, random_state=4).edges
    with pytest.raises(InputError, match="one for each column"):
        g.network(3, levels=[2, 2])


def test_unequal_levels_and_signs_are_checked():
    with pytest.raises(InputError, match="signs must be"):
        g.ising(4, g.matching(4), signs="maybe")
    one = g.pairwise(2, [(0, 1)], levels=[1, 3], random_state=0)
    assert one.edges == ()
