"""The four networks that come with discreet."""

import numpy as np
import pytest

from discreet import networks
from discreet.errors import InputError
from discreet.models import BayesianNetwork


@pytest.mark.parametrize(
    ("name", "nodes", "arcs", "parameters"),
    [("asia", 8, 8, 18), ("sachs", 11, 17, 178), ("child", 20, 25, 230), ("alarm", 37, 46, 509)],
)
def test_they_have_their_published_size(name, nodes, arcs, parameters):
    network = networks.load(name)
    assert isinstance(network, BayesianNetwork)
    assert (len(network.domain), len(network.edges)) == (nodes, arcs)
    assert sum(t.size - t[..., 0].size for t in network.tables.values()) == parameters
    for table in network.tables.values():
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "author"), [("asia", "Lauritzen"), ("sachs", "Sachs"), ("child", "Cowell"), ("alarm", "Beinlich")]
)
def test_they_say_where_they_come_from(name, author):
    card = networks.load(name).card
    assert "bnlearn" in card["origin"] and "CC BY-SA 3.0" in card["license"]
    assert author in card["reference"] and card["name"] == name


def test_names_and_unknown_names():
    assert networks.names() == ("asia", "sachs", "child", "alarm")
    with pytest.raises(InputError, match="no network 'alram' comes with discreet; did you mean 'alarm'"):
        networks.load("alram")
    assert networks.load("asia") is networks.load("asia")


def test_known_answers():
    """Values that the papers and textbooks give for asia."""
    asia = networks.load("asia")
    assert float(asia.probability({"dysp": "yes"})) == pytest.approx(0.4359706, abs=1e-7)
    assert float(asia.probability({"lung": "yes"}, {"smoke": "yes"})) == pytest.approx(0.1)
    assert float(asia.probability({"xray": "yes"})) == pytest.approx(0.11029004, abs=1e-8)


def test_child_keeps_its_odd_labels():
    assert networks.load("child").domain["ChestXray"].code("Asy/Patch") == 4
