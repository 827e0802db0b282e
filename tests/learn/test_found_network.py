"""A network when nobody knows the graph: the field that is found, with arrows."""

from itertools import combinations

import pytest

from discreet import ApproxDP, Curator, PureDP, encode, networks
from discreet.errors import DiscreetError
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.networks.found import FoundNetwork, as_network
from discreet.models.generators import pairwise
from discreet.models.markov import MarkovRandomField


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6")], ids=str)
def test_the_network_is_the_field(budget):
    truth = networks.load("sachs")
    rows = encode(truth.sample(3000, random_state=0).to_frame(), truth.domain)
    with Curator(rows, budget=budget) as curator:
        released = FoundNetwork().measure(curator)
    field, network = AdaptiveField().estimate(released), FoundNetwork().estimate(released)
    assert network.card["method"] == "found" and len(network.card["graph"]) == len(network.edges)
    for columns in list(combinations(truth.domain.names, 3))[::7]:
        assert network.marginal(columns).probabilities == pytest.approx(field.marginal(columns).probabilities, abs=1e-9)


@pytest.mark.parametrize("edges", [[], [(0, 1)], [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5)]], ids=["none", "one", "loop"])
def test_loops_and_parts_that_nothing_joins(edges):
    drawn = pairwise(6, edges, levels=3, weight=2.0, field=1.0, random_state=1)
    model = MarkovRandomField(drawn.domain, drawn.potentials)
    network = as_network(model)
    for columns in combinations(model.domain.names, 2):
        assert network.marginal(columns).probabilities == pytest.approx(model.marginal(columns).probabilities, abs=1e-9)


def test_wrong_options_are_refused():
    with pytest.raises(DiscreetError, match="most_cells"):
        FoundNetwork(most_cells=0)
