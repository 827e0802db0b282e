"""The scikit-learn skin: constructor = choices, ``fit`` on rows, fitted attributes with a trailing underscore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from .domain import Attribute, Domain
from .errors import InputError
from .estimation.frank_wolfe import Variant
from .estimation.logistic import LogisticLearner
from .privacy.budget import Budget, PureDP
from .privacy.curator import Curator
from .privacy.ledger import Ledger
from .privacy.unit import PrivacyUnit
from .tables.memory import MemoryTable


class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse logistic regression under differential privacy: Frank–Wolfe on the ℓ1 ball of this radius.

    Parameters
    ----------
    budget:
        The total privacy budget; ε = 1 by default.
    classes:
        The two labels, which are public: they are never read off the data.
    radius:
        Bound on ‖(w, intercept)‖₁.
    bound:
        Features are clipped to [−bound, bound] and divided by it; public.
    resolution:
        Features are then rounded to multiples of 1/resolution, record by record.
    unit, ledger, public_size:
        As for :class:`discreet.Curator`.
    variant, steps:
        See :mod:`discreet.estimation.frank_wolfe`.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        classes: Sequence[Any] = (0, 1),
        radius: float = 4.0,
        bound: float = 1.0,
        resolution: int = 16,
        unit: PrivacyUnit | None = None,
        ledger: Ledger | None = None,
        public_size: int | None = None,
        variant: Variant = "tight",
        steps: int | None = None,
    ) -> None:
        self.budget = budget
        self.classes = classes
        self.radius = radius
        self.bound = bound
        self.resolution = resolution
        self.unit = unit
        self.ledger = ledger
        self.public_size = public_size
        self.variant = variant
        self.steps = steps

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows; they are not kept."""
        if len(self.classes) != 2 or not self.bound > 0 or type(self.resolution) is not int or self.resolution < 1:
            raise InputError("give two public classes, a positive bound, and a whole resolution of at least 1")
        features, labels = validate_data(self, X, y, dtype=np.float64)
        known = (labels == self.classes[0]) | (labels == self.classes[1])
        if not np.all(known):
            raise InputError(f"some labels are none of the public classes {tuple(self.classes)}; set classes=")
        m = self.resolution
        units = np.rint(np.clip(features / self.bound, -1, 1) * m).astype(np.int64) + m
        names = [f"feature {i}" for i in range(units.shape[1])]
        domain = Domain((*(Attribute.categorical(n, 2 * m + 1) for n in names), Attribute.categorical("label", 2)))
        columns: list[Any] = [units[:, i].astype(np.uint16) for i in range(units.shape[1])]
        table = MemoryTable(domain, [*columns, (labels == self.classes[1]).astype(np.uint16)])
        values = {name: range(-m, m + 1) for name in names}
        learner = LogisticLearner("label", values, m, self.radius, self.variant, self.steps)
        budget = self.budget if self.budget is not None else PureDP(1)
        with Curator(table, self.unit, budget, self.ledger, public_size=self.public_size) as curator:
            found = learner.fit(curator)
        self.classes_ = np.array(list(self.classes))
        self.coef_ = found.w[None] / self.bound
        self.intercept_ = np.array([found.intercept])
        self.card_ = dict(found.card)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        out: NDArray[np.float64] = np.clip(features, -self.bound, self.bound) @ self.coef_[0] + self.intercept_[0]
        return out

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        p = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        out: NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return out
