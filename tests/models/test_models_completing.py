"""Rows completed: what is there stays, what is absent has the model's conditional distribution."""

from __future__ import annotations

import time
from datetime import date

import numpy as np
import pandas as pd
import pytest

from discreet import networks
from discreet.dates import Dates
from discreet.domain import Attribute, Domain
from discreet.errors import EvidenceError, InputError
from discreet.models import BayesianNetwork, MarkovRandomField
from discreet.models.convert import to_markov

DOMAIN = Domain(
    (
        Attribute.categorical("job", ["sales", "nurse"], other="else"),
        Attribute.numeric("age", [10, 20, 30, 60], integer=True, missing="unknown"),
        Attribute.categorical("ill", [True, False]),
    )
)
RNG = np.random.default_rng(0)
MODEL = BayesianNetwork(
    DOMAIN,
    {"age": ["job"], "ill": ["age"]},
    {
        "job": [0.5, 0.3, 0.2],
        "age": RNG.dirichlet(np.ones(4), 3),
        "ill": RNG.dirichlet(np.ones(2), 4),
    },
)


@pytest.mark.parametrize("model", [MODEL, to_markov(MODEL)], ids=["network", "field"])
def test_absent_values_have_the_conditional_distribution(model):
    """Every pattern of what is known, mixed in one file; frequencies within 5 standard deviations."""
    patterns = [
        {"job": "nurse", "age": None, "ill": True},
        {"job": None, "age": 25, "ill": None},
        {"job": "what", "age": None, "ill": None},
        {"job": None, "age": None, "ill": None},
    ]
    each = 20_000
    rows = pd.DataFrame([patterns[i % 4] for i in range(4 * each)])
    drawn = model.complete(rows, 1)
    assert len(drawn) == len(rows)
    for i, pattern in enumerate(patterns):
        mine = drawn.codes[i::4]
        given = {n: ("else" if v == "what" else v) for n, v in pattern.items() if v is not None}
        for name, value in given.items():
            assert (mine[:, DOMAIN.index(name)] == DOMAIN[name].code(value)).all()
        free = [n for n in DOMAIN if n not in given]
        joint = model.marginal(free, given).probabilities
        shape = joint.shape
        cells = np.ravel_multi_index(tuple(mine[:, DOMAIN.index(n)] for n in free), shape)
        part = np.bincount(cells, minlength=joint.size).reshape(shape) / each
        assert np.all(np.abs(part - joint) < 5 * np.sqrt(joint * (1 - joint) / each) + 1e-12)
    assert (drawn["age"][1::4] == 25).all(), "a given number stays that number"


def test_what_is_there_stays():
    domain = Domain(
        (
            Attribute.numeric("x", [0, 10, 20], decimals=1),
            Attribute.of_dates("day", Dates("month", date(2024, 1, 1), date(2024, 12, 31))),
            Attribute.categorical("c", ["a", "b"]),
        )
    )
    model = MarkovRandomField.uniform(domain, [("x", "c"), ("day",)])
    drawn = model.complete({"x": ["3.7", "", "99"], "day": ["2024-02-29", None, "2024-12-31"]}, 0)
    assert drawn["x"][0] == 3.7 and drawn["x"][2] == 99 and 0 <= drawn["x"][1] <= 20
    assert str(drawn["day"][0]) == "2024-02-29" and str(drawn["day"][2]) == "2024-12-31"
    assert set(drawn["c"]) <= {"a", "b"}
    labels = model.complete({"x": ["3.7"]}, 0, labels=True)
    assert labels["x"].tolist() == ["[0, 10)"]


def test_conditions_hold_for_what_is_drawn():
    drawn = MODEL.complete({"job": ["nurse", None] * 500}, 0, where="age >= 15, age < 45, ill=true")
    ages = drawn["age"].astype(int)
    assert ages.min() >= 15 and ages.max() < 45 and drawn["ill"].all()
    known = MODEL.complete({"job": ["nurse"] * 500, "age": [None] * 500}, 0, known=True)
    assert all(x is not None for x in known["age"])
    assert any(x is None for x in MODEL.complete({"job": ["nurse"] * 500, "age": [None] * 500}, 0)["age"])


def test_mistakes_are_said():
    with pytest.raises(InputError, match="the rows have no column of the model"):
        MODEL.complete({"nothing": [1]})
    with pytest.raises(InputError, match=r"row 2: column 'ill' has no level 'perhaps'; leave the field empty"):
        MODEL.complete({"ill": ["true", "perhaps"]})
    never = MarkovRandomField(Domain.of({"a": 2, "b": 2}), {("a", "b"): np.array([[0.0, -np.inf], [0.0, 0.0]])})
    with pytest.raises(EvidenceError, match="row 3: a=0, b=1 has probability 0"):
        never.complete({"a": [0, 1, 0], "b": [0, 1, 1]})


def test_the_same_seed_gives_the_same_rows():
    rows = {"job": ["nurse", "sales", None] * 20}
    one, two = (MODEL.complete(rows, 7) for _ in range(2))
    assert np.array_equal(one.codes, two.codes) and np.array_equal(one["age"], two["age"])


def test_many_rows_of_many_kinds_are_quick():
    """Thousands of different questions in batches, not one by one."""
    model = networks.load("alarm")
    rows = model.sample(20_000, 0).to_pandas()[list(model.domain.names[:12])]
    assert len(rows.drop_duplicates()) > 300
    start = time.process_time()
    drawn = model.complete(rows, 0)
    assert time.process_time() - start < 20
    pd.testing.assert_frame_equal(drawn.to_pandas()[list(rows)], rows, check_dtype=False)
