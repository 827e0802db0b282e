"""Answers, assignments and the query language on a model."""

import json
import math
import pickle

import numpy as np
import pytest

from discreet.domain import Attribute, Domain
from discreet.errors import EvidenceError, InputError
from discreet.models import Answer, BayesianNetwork, Estimate


@pytest.fixture
def model():
    domain = Domain.of({"smoke": ["yes", "no"], "lung": ["yes", "no"], "visits": 3})
    tables = {
        "smoke": [0.4, 0.6],
        "lung": [[0.1, 0.9], [0.01, 0.99]],
        "visits": [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]],
    }
    return BayesianNetwork(domain, {"lung": ("smoke",), "visits": ("lung",)}, tables)


def test_asking_in_words(model):
    assert float(model.ask("P(lung=yes | smoke=yes)")) == pytest.approx(0.1)
    assert float(model.ask("P(smoke=yes, lung=no)")) == pytest.approx(0.36)
    table = model.ask("P(lung, smoke)")
    assert table.names == ("lung", "smoke") and table["yes", "no"] == pytest.approx(0.006)
    assert table[{"smoke": "no", "lung": "yes"}] == pytest.approx(0.006)
    partly = model.ask("P(lung, smoke=yes)")
    np.testing.assert_allclose(partly.probabilities, [0.04, 0.36])
    assert partly.title == "P(lung, smoke=yes)"
    best = model.ask("MAP(lung, smoke | visits=2)")
    assert dict(best) == {"lung": "yes", "smoke": "yes"} and best.title == "MAP(lung, smoke | visits=2)"
    assert best.probability == pytest.approx(0.04 / 0.046)
    with pytest.raises(EvidenceError, match="visits=2"):
        model.ask("P(smoke | lung=no, visits=2)")
    with pytest.raises(InputError, match="lung"):
        model.ask("P(lugn)")


def test_titles_can_be_asked_again():
    domain = Domain.of({"odd name": ["a, b", "c|d"], "x": [True, False]})
    model = BayesianNetwork(domain, {"x": ("odd name",)}, {"odd name": [0.5, 0.5], "x": [[0.2, 0.8], [0.3, 0.7]]})
    answer = model.marginal("x", {"odd name": "a, b"})
    again = model.ask(answer.title)
    assert again.title == answer.title and again["true"] == answer[True] == pytest.approx(0.2)
    best = model.map(["odd name"], {"x": True})
    assert dict(model.ask(best.title)) == dict(best) == {"odd name": "c|d"}


def test_values_keep_their_type():
    domain = Domain.of({"n": [10, 20], "b": [False, True], "age": Attribute.numeric("age", [0, 18, 65], missing="?")})
    tables = {"n": [0.2, 0.8], "b": [0.1, 0.9], "age": [0.1, 0.7, 0.2]}
    model = BayesianNetwork(domain, {}, tables)
    best = model.map()
    assert dict(best) == {"n": 20, "b": True, "age": "[18, 65]"}
    assert type(best["n"]) is int and best["b"] is True
    assert model.probability({"age": 70 - 10, "b": True}) == pytest.approx(0.63)
    assert model.map("age", {"n": 10})["age"] == "[18, 65]"


def test_reprs_read_well(model):
    assert repr(model.ask("P(lung=yes | smoke=yes)")) == "P(lung=yes | smoke=yes) = 0.100000"
    assert repr(model.ask("P(lung, smoke)")) == (
        "P(lung, smoke)\n  lung  smoke=yes  smoke=no\n  yes    0.040000  0.006000\n  no     0.360000  0.594000"
    )
    assert repr(model.marginal("visits", {"lung": "no"})) == (
        "P(visits | lung=no)\n"
        "  visits  probability\n"
        "  0          0.500000\n"
        "  1          0.500000\n"
        "  2          0.000000"
    )
    assert repr(model.ask("MAP(lung | smoke=no)")) == "MAP(lung | smoke=no)\n  lung = no\n  probability 0.990000"
    assert "undefined" in repr(model.conditional("smoke", ["lung", "visits"]))
    long = Answer(("a",), (tuple(map(str, range(100))),), np.full(100, 0.01))
    assert "… and 76 more" in repr(long) and len(repr(long).splitlines()) == 27
    assert "1.000e-06" in repr(Answer(("a",), (("x", "y"),), np.array([1e-6, 1 - 1e-6])))
    approximate = Answer(("a",), (("x",),), np.array([1.0]), method="gibbs")
    assert "[gibbs]" in repr(approximate)


def test_conditional_tables_show_what_is_given(model):
    table = model.conditional("lung", "smoke")
    assert table.title == "P(lung | smoke)" and table.names == ("smoke", "lung")
    np.testing.assert_allclose(table.probabilities, model.tables["lung"])
    assert math.isnan(model.conditional("smoke", ["lung", "visits"])["no", 2, "yes"])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(model, backend):
    frame = model.marginal(["visits", "lung"]).to_frame(backend)
    columns = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert columns == ["visits", "lung", "probability"] and len(frame) == 6


def test_plain_values(model):
    answer = model.marginal("lung")
    text = json.dumps([answer.to_dict(), model.map().to_dict()])
    assert "P(lung)" in text and "log_probability" in text
    assert [labels for labels, _ in answer] == [("yes",), ("no",)] and len(answer) == 2
    assert np.asarray(answer).sum() == pytest.approx(1)
    with pytest.raises(ValueError):
        answer.probabilities[0] = 1


def test_errors(model):
    answer = model.marginal(["lung", "smoke"])
    with pytest.raises(InputError, match="no level 'yess'; did you mean 'yes'"):
        answer["yess", "no"]
    with pytest.raises(InputError, match="an axis for each of"):
        answer["yes"]
    with pytest.raises(InputError, match="not one number"):
        float(answer)
    with pytest.raises(InputError, match="level for each of"):
        answer[{"lung": "yes"}]
    with pytest.raises(InputError, match="shape"):
        Answer(("a",), (("x", "y"),), np.ones(3))


def test_estimates_are_numbers_with_an_error():
    estimate = Estimate(1.5, 0.1)
    assert estimate + 1 == 2.5 and repr(estimate) == "1.5 ± 0.1"
    again = pickle.loads(pickle.dumps(estimate))
    assert again == estimate and again.standard_error == 0.1
