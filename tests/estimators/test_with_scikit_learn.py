"""What scikit-learn does by itself, and must not do with a privacy budget: fit copies; and what types it hands over."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import Domain, Ledger, PrivateGraphicalModel, PrivateLogisticRegression, PureDP
from discreet.errors import BudgetError, InputError

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int)


def ledger() -> Ledger:
    return Ledger.in_memory(PureDP(100))


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a pipeline"])
def test_cross_validation_is_refused_before_anything_is_spent(wrapped):
    books = ledger()
    model = PrivateLogisticRegression(1.0, classes=(0, 1), ledger=books)
    whole = make_pipeline(FunctionTransformer(), model) if wrapped else model
    with pytest.raises(BudgetError, match=r"a copy that scikit-learn has made.*allow_refit=True.*Nothing was spent"):
        cross_val_score(whole, X, Y, cv=3, error_score="raise")
    with pytest.raises(ValueError, match=r"All the 3 fits failed"):  # as it says by default
        cross_val_score(whole, X, Y, cv=3)
    with pytest.raises(BudgetError, match="allow_refit"):
        GridSearchCV(model, {"radius": [1.0, 2.0]}, cv=2, error_score="raise").fit(X, Y)
    assert books.spent is None


def test_a_copy_is_marked_in_other_processes_too_and_allowed_ones_pay_for_every_fold():
    model = PrivateLogisticRegression(1.0, classes=(0, 1))
    there = pickle.loads(pickle.dumps(clone(model)))
    with pytest.raises(BudgetError, match="a copy"):
        there.fit(X, Y)
    with pytest.raises(BudgetError, match="a copy"):
        clone(clone(model)).fit(X, Y)
    model.fit(X, Y)  # the original is not a copy
    books = ledger()
    allowed = PrivateLogisticRegression(1.0, classes=(0, 1), allow_refit=True, ledger=books)
    assert len(cross_val_score(allowed, X, Y, cv=3, error_score="raise")) == 3
    assert books.spent == PureDP(3), "all copies are charged to one ledger"


def test_density_estimators_refuse_alike():
    domain = Domain.of({"a": ["no", "yes"], "b": ["no", "yes"]})
    rows = pd.DataFrame({"a": ["no", "yes"] * 20, "b": ["yes", "no"] * 20})
    with pytest.raises(BudgetError, match="a copy"):
        cross_val_score(PrivateGraphicalModel(1.0, domain=domain), rows, cv=2, error_score="raise")


# -- text --------------------------------------------------------------------------------------------------------------

TEXT = ["u", "v"] * 30
FRAMES = {
    "pandas text": pd.DataFrame({"x": X[:, 0], "job": TEXT}),
    "pandas object": pd.DataFrame({"x": X[:, 0], "job": pd.Series(TEXT, dtype=object)}),
    "pandas category": pd.DataFrame({"x": X[:, 0], "job": pd.Series(TEXT, dtype="category")}),
    "pandas dates": pd.DataFrame({"x": X[:, 0], "job": pd.to_datetime(["2020-01-01"] * 60)}),
    "polars": pl.DataFrame({"x": X[:, 0], "job": TEXT}),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_of_text_are_refused_by_their_type(frame):
    model = PrivateLogisticRegression(1.0, classes=(0, 1))
    with pytest.raises(InputError, match=r"column 'job' holds .*, not numbers: make numbers of its public levels"):
        model.fit(frame, Y)
    numbers = frame[["x"]]
    model.fit(numbers, Y)
    assert len(model.predict(numbers)) == 60


def test_an_array_of_text_is_refused_and_one_of_anything_is_not():
    with pytest.raises(InputError, match="not numbers"):
        PrivateLogisticRegression(1.0, classes=(0, 1)).fit(X.astype(str), Y)
    anything = X.astype(object)
    anything[3, 1] = "a word"  # a value is never an error
    PrivateLogisticRegression(1.0, classes=(0, 1)).fit(anything, Y)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_booleans_and_whole_numbers_are_numbers(library):
    frame = library.DataFrame({"b": X[:, 0] > 0, "n": np.arange(60)})
    PrivateLogisticRegression(1.0, classes=(0, 1), bound=60.0).fit(frame, Y)


# -- missing -----------------------------------------------------------------------------------------------------------


def test_predict_says_missing_only_when_it_is_asked_to():
    domain = Domain.from_dict(
        {
            "columns": {
                "a": {"levels": ["no", "yes"]},
                "target": {"levels": ["left", "right"], "missing": "missing"},
            }
        }
    )
    rows = pd.DataFrame({"a": ["no", "yes"] * 500, "target": [None] * 800 + ["left", "right"] * 100})
    model = PrivateGraphicalModel(50.0, domain=domain, graph="a -> target", target="target").fit(rows)
    new = pd.DataFrame({"a": ["no", "yes"]})
    assert set(model.predict(new, missing=True)) == {"missing"}, "four of five are"
    assert list(model.predict(new)) == ["left", "right"]
    assert model.predict_proba(new)[:, list(model.classes_).index("missing")].min() > 0.5, "what is known is not hidden"
