"""± makes room for how n records scatter about what a model has as independent."""

import numpy as np
import pytest

from discreet import Domain, networks
from discreet.models import BayesianNetwork, MarkovRandomField
from discreet.release.scatter import Scatter, free_sets

ASIA = networks.load("asia")
DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
A, B, C = np.array([0.3, 0.7]), np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4])


def independent() -> BayesianNetwork:
    return BayesianNetwork(DOMAIN, {}, {"a": A, "b": B, "c": C})


def test_a_family_is_free_where_its_parents_are() -> None:
    free = free_sets(ASIA)
    assert {"smoke", "bronc"} in free and {"either", "xray"} in free
    assert not any({"tub", "lung"} <= s or {"bronc", "dysp"} <= s for s in free), "parents without an edge"
    field = MarkovRandomField.uniform(DOMAIN, [("a", "b"), ("c",)])
    assert set(free_sets(field)) >= {frozenset("ab"), frozenset("c")}


def test_of_a_pair_by_hand_and_by_drawing_records() -> None:
    model, n = independent(), 400
    scatter = Scatter.of(model, n)
    expected = np.sqrt(np.outer(A * (1 - A), B * (1 - B)) / n)
    joint = np.outer(A, B)
    np.testing.assert_allclose(scatter.of_joint(joint, ["a", "b"], {}), expected)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n, joint.ravel(), size=4000).reshape(-1, 2, 3) / n
    left = drawn - drawn.sum(axis=2, keepdims=True) * drawn.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(left.std(axis=0), expected, rtol=0.1)


def test_a_condition_an_event_and_a_table_agree() -> None:
    scatter = Scatter.of(independent(), 1000)
    table = scatter.of_answer(np.tile(A, (3, 1)), ["a"], {}, ["b"])  # P(a | b): a row for each b
    row = scatter.of_answer(A, ["a"], {"b": 1})
    np.testing.assert_allclose(table[1], row)
    event = scatter.of_answer(np.asarray(A[0]), [], {"b": 1}, event={"a": 0})
    assert float(event) == pytest.approx(row[0])
    joint = np.einsum("i,j,k->ijk", A, B, C)
    three = scatter.of_joint(joint, ["a", "b", "c"], {})
    assert (three > scatter.of_joint(np.outer(A, B), ["a", "b"], {})[..., None] * C).all(), "more is left open"
    assert (three < np.sqrt(joint * (1 - joint) / 1000)).all(), "and less than of a sample of people"


def test_none_where_the_table_is_free() -> None:
    scatter = Scatter.of(ASIA, 1000)
    assert not scatter.of_answer(np.full((2, 2), 0.25), ["smoke", "lung"], {}).any()
    assert scatter.of_answer(np.full((2, 2), 0.25), ["asia", "smoke"], {}).all()
