"""A model in which all columns are independent says so, whoever learned it."""

import numpy as np
import pytest

from discreet import Domain, encode
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.independence import (
    INDEPENDENT,
    NOT_CARRIED,
    NOT_FOUND,
    NOT_GIVEN,
    is_independent,
    with_independence,
)
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.learn.spins.field import SpinField
from discreet.models import BayesianNetwork, IsingModel, MarkovRandomField
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.release import Release

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
SPINS = Domain.of({"a": 2, "b": 2, "c": 2})
COUPLED, CONSTANT = np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([[0.3, 0.7], [0.3, 0.7]])


def pair(table: np.ndarray) -> BayesianNetwork:
    domain = Domain.of({"a": 2, "b": 2})
    return BayesianNetwork(domain, {"b": ("a",)}, {"a": np.array([0.4, 0.6]), "b": table})


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (pair(CONSTANT), True),  # an edge that tells nothing
        (pair(COUPLED), False),
        (MarkovRandomField.uniform(DOMAIN, [("a", "b")]), True),
        (IsingModel.from_edges({}, {"a": 0.3}, domain=SPINS), True),
        (IsingModel.from_edges({("a", "b"): 0.01}, domain=SPINS), False),
        (MarkovRandomField.uniform(Domain.of({"a": 2, "only": 1}), [("a", "only")]), False),  # nothing to depend on
    ],
)
def test_is_independent(model, expected) -> None:
    assert is_independent(model) is expected


def test_an_earlier_caution_stays() -> None:
    model = with_independence(pair(CONSTANT).with_card({"caution": "noise only"}), given=False)
    assert model.card is not None
    assert model.card["caution"] == f"noise only; {INDEPENDENT}: {NOT_FOUND}"
    assert with_independence(model, given=False).card == model.card, "said once"


def table(domain: Domain):
    """Of columns that are independent, exactly."""
    records = np.stack(np.meshgrid(*map(range, domain.shape), indexing="ij"), axis=-1).reshape(-1, len(domain))
    return encode({n: np.tile(records[:, i], 20).tolist() for i, n in enumerate(domain)}, domain)


@pytest.mark.parametrize(
    ("learner", "domain", "why"),
    [
        (OptimalNetwork({"b": ["a"]}, approximate_size=30), DOMAIN, NOT_CARRIED),
        (OptimalNetwork({}), DOMAIN, NOT_GIVEN),
        (SpinField(order=1), SPINS, NOT_GIVEN),
    ],
)
def test_every_answer_says_so(learner, domain, why) -> None:
    model = learner.fit(Curator(table(domain), budget=PureDP("0.001")))
    assert f"{INDEPENDENT}: {why}" in model.card["caution"]
    assert INDEPENDENT in str(model.ask("P(b=1 | a=1)"))


@pytest.mark.parametrize("learner", [PairwiseField(), SpinField()])
def test_where_the_sums_show_none(learner) -> None:
    model = learner.fit(ExactCurator(table(SPINS)))
    assert model.card["caution"] == f"{INDEPENDENT}: {NOT_FOUND}"


def test_a_release_says_so() -> None:
    from discreet.spec import resolve

    spec = resolve(DOMAIN, family="network", graph={}, certify=0)
    release = Release.of(spec.learn(Curator(table(DOMAIN), budget=PureDP(1))))
    assert INDEPENDENT in release._repr_html_() and INDEPENDENT in release.card["caution"]
