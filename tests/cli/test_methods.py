"""What can be learned, from one registry: listed with its meaning, and each of it reachable from the command line."""

from __future__ import annotations

import json

import pytest

from discreet import networks
from discreet.errors import InputError
from discreet.estimators import PrivateGraphicalModel
from discreet.learn.option_words import OPTIONS
from discreet.methods import FAMILIES, METHODS
from discreet.release import Release
from discreet.schema import save_schema
from discreet.spec import Spec


def test_every_method_and_option_is_explained(discreet):
    assert set(OPTIONS) == {name for m in METHODS for name in m.options}, (
        "no option without words, no words without one"
    )
    assert all(m.summary for m in METHODS)
    shown = discreet("plan", "--methods").out
    for text in (*FAMILIES.values(), *(m.summary for m in METHODS), *OPTIONS.values()):
        assert text in shown
    found = json.loads(discreet("plan", "--methods", "--json").out)
    assert [(m["family"], m["name"]) for m in found] == [(m.family, m.name) for m in METHODS]
    assert all(m["options"] == {name: OPTIONS[name] for name in m["options"]} for m in found)


def test_maximal_monomials_demand_a_weight_and_make_a_field(desk, discreet):
    truth = networks.load("asia")
    truth.sample(2000, random_state=1).to_csv("asia.csv")
    save_schema(truth.domain.project(["smoke", "lung", "bronc", "dysp"]), "asia.toml")
    ask = ["asia.csv", "--schema", "asia.toml", "--rho", "1", "--family", "binary", "--method", "maximal-monomials"]
    refused = discreet("fit", *ask)
    assert refused.code == 2 and "needs the option min_weight" in refused.err
    done = discreet("fit", *ask, "--option", "min_weight=0.2", "-o", "m.zip")
    assert done.code == 0, done.err
    release = Release.load("m.zip")
    assert release.model.card["coefficients"] == "a field" and not release.has_intervals
    assert discreet("verify", "m.zip").code == 0


@pytest.mark.parametrize("weight", [0, -1, "much", True])
def test_a_demanded_option_is_a_positive_number(weight):
    with pytest.raises(InputError, match="min_weight, a positive number"):
        Spec("spin", "maximal_monomials", {"order": 2, "min_weight": weight})


@pytest.mark.parametrize("wrong", [-1, 0, float("nan"), float("inf")])
def test_estimators_name_their_own_argument(wrong):
    with pytest.raises(ValueError, match=f"budget, read as the total ε, must be .*, got budget={wrong}"):
        PrivateGraphicalModel(wrong).fit([[0.0], [1.0]])
