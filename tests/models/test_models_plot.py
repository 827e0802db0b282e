"""Drawing: an Axes with every column and edge on it, for every family."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from model_enumeration import FAMILIES, random_model

from discreet.errors import InputError
from discreet.models import generators


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_column_and_edge_is_drawn(family):
    model = random_model(family, np.random.default_rng(5), 5)
    ax = model.plot()
    boxes = [t for t in ax.texts if t.get_text()]
    arrows = [t for t in ax.texts if not t.get_text()]
    assert {t.get_text() for t in boxes} == set(model.domain.names)
    assert len(arrows) == len(model.edges)
    places = np.array([t.get_position() for t in boxes])
    gaps = [np.hypot(*(a - b)) for i, a in enumerate(places) for b in places[:i]]
    assert min(gaps) > 0.05


def test_strong_edges_are_thicker_and_signs_have_colours():
    model = generators.ising(4, [(0, 1), (2, 3)], weight=0.1)
    model = type(model)(model.A * np.array([1, 1, -5, -5]), model.theta)
    assert model.edge_strength() == {("x0", "x1"): 0.1, ("x2", "x3"): -0.5}
    weak, strong = [t.arrow_patch for t in model.plot().texts if not t.get_text()]
    assert strong.get_linewidth() > 2 * weak.get_linewidth()
    assert strong.get_edgecolor() != weak.get_edgecolor()
    assert strong.get_linestyle() != weak.get_linestyle()


def test_options():
    model = generators.network(3, {1: [0], 2: [0]}, levels=2, random_state=0)
    _, mine = plt.subplots()
    place = {"x0": (0.0, 1.0), "x1": (0.0, 0.0), "x2": (1.0, 0.0)}
    ax = model.plot(mine, strength={("x0", "x1"): 2.0}, positions=place, title="hello")
    assert ax is mine and ax.get_title() == "hello"
    assert {t.get_text(): t.get_position() for t in ax.texts if t.get_text()} == place
    with pytest.raises(InputError, match="no edge"):
        model.plot(strength={("x1", "x2"): 1.0})


def test_parents_stand_above_children():
    model = generators.network(12, levels=2, max_parents=3, random_state=1)
    place = {t.get_text(): t.get_position() for t in model.plot().texts if t.get_text()}
    assert all(place[parent][1] > place[child][1] for parent, child in model.edges)


def test_mutual_information_of_edges():
    model = generators.network(2, {1: [0]}, levels=2, random_state=0)
    p = model.marginal(["x0", "x1"]).probabilities
    truth = (p * np.log(p / np.outer(p.sum(axis=1), p.sum(axis=0)))).sum()
    assert model.edge_strength()["x0", "x1"] == pytest.approx(truth)


def test_wide_models_are_drawn_too():
    model = generators.dirichlet(40, generators.dense(40), levels=2, concentration=50.0, random_state=0)
    drawn = model.plot()
    assert len([t for t in drawn.texts if not t.get_text()]) == 80, "as many as can be told apart"
    assert "the 80 strongest of 780 edges" in drawn.get_title()
