"""What classifiers make of synthetic records: trained on them, tested on rows; and whether they tell them apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..extras import needed

Codes = NDArray[np.int64]
FEWEST = 40  # records below which a classifier would tell nothing
_ITERATIONS = 200
_LEAF = 200  # a leaf of the tree that tells sides apart holds at least so many, or a fiftieth of them


@dataclass(frozen=True)
class Trained:
    """The accuracy of a linear classifier of one column on rows that it has not seen, by what it was trained on."""

    target: str
    real: float
    synthetic: float
    most_frequent: float


def _sklearn(part: str) -> Any:
    return needed(f"sklearn.{part}", "an evaluation's classifiers", "discreet[sklearn]")


def accuracy_of(domain: Domain, target: str, train: Codes, test: Codes) -> float:
    """Train a linear classifier of one column on all others; its accuracy on the test records."""
    return float((predicted(domain, target, train, test) == test[:, domain.index(target)]).mean())


def predicted(domain: Domain, target: str, train: Codes, test: Codes) -> Codes:
    """What a logistic regression on all levels of the other columns says; always the same where only one class is."""
    at = domain.index(target)
    classes = np.unique(train[:, at])
    if len(classes) == 1:
        return np.full(len(test), classes[0])
    with warnings.catch_warnings():
        # Stopped early it is as good a classifier for a comparison, and all are stopped alike.
        warnings.simplefilter("ignore", _sklearn("exceptions").ConvergenceWarning)
        regression = _sklearn("linear_model").LogisticRegression(max_iter=_ITERATIONS)
        learned = regression.fit(levels(domain, train, at), train[:, at])
    return np.asarray(learned.predict(levels(domain, test, at)), dtype=np.int64)


def levels(domain: Domain, codes: Codes, without: int) -> Any:
    """A column of zeros and ones for each level of each column but one, sparse."""
    from scipy.sparse import csr_matrix

    kept = [i for i in range(len(domain)) if i != without]
    starts = np.concatenate([[0], np.cumsum([domain.shape[i] for i in kept])])
    columns = codes[:, kept] + starts[:-1]
    rows = np.arange(0, columns.size + 1, len(kept))
    return csr_matrix((np.ones(columns.size), columns.ravel(), rows), shape=(len(codes), int(starts[-1])))


def trained(domain: Domain, target: str, real: Codes, synthetic: Codes, on_real: float | None = None) -> Trained:
    """Half of the rows train, the other half tests; as many synthetic records train as rows do."""
    half = len(real) // 2
    train, test = real[:half], real[half:]
    at = domain.index(target)
    if on_real is None:
        on_real = accuracy_of(domain, target, train, test)
    often = np.bincount(train[:, at]).argmax()
    return Trained(
        target,
        on_real,
        accuracy_of(domain, target, synthetic[: max(half, 1)], test),
        float((test[:, at] == often).mean()),
    )


def propensity(real: Codes, synthetic: Codes) -> float:
    """pMSE: the mean of (p − c)², p what a decision tree takes for the probability that a record is synthetic and c
    their share (Woo and others, 2009). 0 when they cannot be told apart, 0.25 when they always can.

    The tree sees how columns go together. It is grown on one half and asked about the other, and the other way round,
    so that chance does not look like a difference.
    """
    n = min(len(real), len(synthetic))
    x = np.concatenate([real[:n], synthetic[:n]])
    y = np.repeat([0, 1], n)
    odd = np.tile(np.arange(n) % 2, 2) == 1
    squares = np.zeros(2 * n)
    for grown in (odd, ~odd):
        tree = _sklearn("tree").DecisionTreeClassifier(min_samples_leaf=max(1, min(_LEAF, n // 50)), random_state=0)
        p = tree.fit(x[grown], y[grown]).predict_proba(x[~grown])[:, 1]
        squares[~grown] = (p - 0.5) ** 2
    return float(squares.mean())
