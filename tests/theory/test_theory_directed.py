"""The paper's error bounds: computed as defined, with what is true and what is false about them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import networks
from discreet.domain import Domain
from discreet.factor import Factor
from discreet.inference.elimination import eliminate
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.learn.nonprivate import NonprivateNetwork
from discreet.models import BayesianNetwork
from discreet.models.generators import network as random_network
from discreet.papers.theory.directed import (
    eta_of,
    is_conditional,
    lower_bound,
    paper_bounds,
    parameter_l1,
    product_bound,
    treewidth,
    upper_bound,
)
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.tables.memory import MemoryTable


def _xy(x: list[float], y: list[float]) -> BayesianNetwork:
    domain = Domain.of({"X": 2, "Y": 2})
    return BayesianNetwork(domain, {"Y": ("X",)}, {"X": np.array(x), "Y": np.array([[1 - p, p] for p in y])})


def test_theorem_41_is_false() -> None:
    """Every parameter moves by at least 0.1, the bound is positive, and the answer does not move at all."""
    exact, private = _xy([0.5, 0.5], [0.5, 0.5]), _xy([0.6, 0.4], [0.6, 0.35])
    bounds = paper_bounds(exact, private)
    assert bounds.least_error == pytest.approx(0.1)
    assert bounds.lower > 0
    moved = np.abs(exact.marginal("Y").probabilities - private.marginal("Y").probabilities).sum()
    assert moved == pytest.approx(0, abs=1e-12)
    assert bounds.normalised(moved) < 0


def test_formulas_by_hand() -> None:
    assert lower_bound(4, 0.1, 0.5) == pytest.approx(np.sqrt(3) * 0.1 * 0.25)
    assert upper_bound(4, 3, 2, 0.1) == pytest.approx(2 * 4 * 9 * 0.1)
    asia = networks.load("asia")
    assert eta_of(asia) == 5  # either: two parents and two children
    assert treewidth(asia) == 2


@pytest.mark.chance
def test_theorem_42_holds_and_says_nothing() -> None:
    for name in networks.names():
        network = networks.load(name)
        table = MemoryTable(network.domain, list(network.sample(10_000, 0).codes.T))
        exact = NonprivateNetwork(network).fit(ExactCurator(table))
        private = OptimalNetwork(network).fit(Curator(table, budget=PureDP(1)))
        bounds = paper_bounds(exact, private)
        errors = [
            np.abs(exact.marginal(n).probabilities - private.marginal(n).probabilities).sum() for n in network.domain
        ]
        assert max(errors) <= bounds.upper
        # On asia chance decides whether the bound exceeds 2, the largest L1 distance there is.
        assert bounds.upper > (2 if name != "asia" else 5 * max(errors))
        assert all(0 <= bounds.normalised(e) < 0.2 for e in errors)
        assert 0 < parameter_l1(exact, private) < 2


@pytest.mark.parametrize("seed", range(4))
def test_lemma_81_intermediate_factors_are_conditionals(seed: int) -> None:
    """Eliminating along any topological order of a network leaves conditional tables at every step."""
    network = random_network(6, max_parents=2, random_state=seed)
    factors = [
        Factor.from_probabilities(network.domain.project((*network.parents[n], n)), network.tables[n])
        for n in network.domain
    ]
    order = list(network.order)
    result = eliminate(network.domain, factors, (), order=order)
    for step in result.intermediates:
        if step.summed.names:
            assert is_conditional(step.summed)
    reverse = eliminate(network.domain, factors, (), order=order[::-1])
    for step in reverse.intermediates:
        if step.summed.names:
            assert is_conditional(step.summed)
    bad = Factor.from_probabilities(network.domain.project(network.domain.names[:1]), np.array([0.3, 0.3, 0.3]))
    assert not is_conditional(bad)


@pytest.mark.parametrize("name", ["asia", "sachs"])
def test_lemma_82_largest_factor_is_at_least_the_treewidth(name: str) -> None:
    network = networks.load(name)
    factors = [
        Factor.from_probabilities(network.domain.project((*network.parents[n], n)), network.tables[n])
        for n in network.domain
    ]
    result = eliminate(network.domain, factors, ())
    widest = max(len(step.product.names) for step in result.intermediates)
    assert widest >= treewidth(network)
    assert widest == treewidth(network) + 1  # the order found is as good as the engine's


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_lemma_87_products_of_probabilities(seed: int, factors: int) -> None:
    rng = np.random.default_rng(seed)
    exact, noisy = rng.random((factors, 5)), rng.random((factors, 5))
    left, right = product_bound(list(exact), list(noisy))
    assert np.all(left <= right + 1e-12)


def test_other_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match="same graph"):
        domain = Domain.of({"X": 2, "Y": 2})
        flat = BayesianNetwork(domain, {}, {"X": np.array([0.5, 0.5]), "Y": np.array([0.5, 0.5])})
        paper_bounds(_xy([0.5, 0.5], [0.5, 0.5]), flat)
