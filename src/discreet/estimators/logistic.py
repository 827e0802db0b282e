"""Private sparse logistic regression as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from ..domain import Attribute, Domain
from ..errors import InputError
from ..learn.procedure import Procedure
from ..learn.regressions.frank_wolfe import Variant
from ..learn.regressions.logistic import LogisticLearner
from ..privacy.budget import Budget
from ..privacy.ledger import Ledger
from ..privacy.queries.value_gradients import LARGEST_RESOLUTION
from ..privacy.unit import PrivacyUnit
from ..tables.memory import MemoryTable
from .base import PrivateEstimator, as_budget, as_codes, known_arguments, require_numbers

_NO_TEXT = "make numbers of its public levels first (one column of 0 and 1 for each), by a rule that reads no other row"


class PrivateLogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Sparse logistic regression under differential privacy: Frank–Wolfe on the ℓ1 ball of this radius.
    ``PrivateLogisticRegression(1.0).fit(X, y).predict(new)``.

    Every fit spends the whole budget; a second fit, and a fit of a copy as cross-validation makes it, is refused unless
    ``allow_refit`` says that it is meant. ``score`` and ``predict`` are for public rows: what they say of private ones
    is not paid for. Columns of text are refused. What a row holds never makes a fit fail:
    numbers are clipped to [−bound, bound], what is not a number counts as 0, and a record whose label is none of the
    public classes is left out. Only the form of X and y (columns, types) is refused.

    Guarantee: the budget, for one row (or as ``unit`` says) under add-remove or replace-one. Encoding is record by
    record with public rules; the rest is :class:`discreet.learn.regressions.logistic.LogisticLearner` ([001]
    Algorithm 1 and Corollary 3.4).

    Parameters
    ----------
    budget:
        The *total* of a fit: a number is ε; or PureDP(ε), ZCDP(ρ), ApproxDP(ε, δ).
    delta:
        With a number ε, the δ of an (ε, δ) budget.
    classes:
        The two labels, which are public and must be given: they are never read off the data. The second one is the
        positive one.
    radius:
        Bound on ‖(w, intercept)‖₁, for features divided by ``bound``.
    bound:
        Features are clipped to [−bound, bound] and divided by it; public.
    resolution:
        Features are then rounded to multiples of 1/resolution, record by record.
    unit, ledger, public_size:
        As for :class:`discreet.Curator`; units are rows.
    variant, steps:
        See :mod:`discreet.learn.regressions.frank_wolfe`.
    allow_refit:
        Whether it, and its copies, may be fitted again and again, and each time spend the whole budget.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_:
        As in scikit-learn.
    card_:
        The release card: budget, what was spent, noise.
    fits_:
        How often this estimator was fitted, and so how often the budget was spent.
    """

    @known_arguments
    def __init__(
        self,
        budget: Budget | float = 1.0,
        *,
        delta: float = 0.0,
        classes: Sequence[Any] | None = None,
        radius: float = 4.0,
        bound: float = 1.0,
        resolution: int = 16,
        unit: PrivacyUnit | None = None,
        ledger: Ledger | None = None,
        public_size: int | None = None,
        variant: Variant = "tight",
        steps: int | None = None,
        allow_refit: bool = False,
    ) -> None:
        self.budget = budget
        self.delta = delta
        self.classes = classes
        self.radius = radius
        self.bound = bound
        self.resolution = resolution
        self.unit = unit
        self.ledger = ledger
        self.public_size = public_size
        self.variant = variant
        self.steps = steps
        self.allow_refit = allow_refit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # the usual toy data are far too few for noise that protects
        return tags

    def plan(self, features: int, approximate_size: float | None = None) -> Procedure:
        """What a fit on this many features will ask, before a row is read."""
        domain, learner = self._problem(features)
        budget = as_budget(self.budget, self.delta)
        return learner.plan(domain, self.unit or PrivacyUnit(), budget, approximate_size, self.public_size)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows; they are not kept."""
        classes = self._classes()
        if y is None:
            raise InputError("requires y to be passed, but the target y is None: give the labels, one a row")
        codes = as_codes(y, classes)
        require_numbers(X, _NO_TEXT)
        numbers = self._numbers(X, reset=True)
        if len(codes) != len(numbers):
            raise InputError("X and y have inconsistent numbers of samples; give one label a row")
        domain, learner = self._problem(numbers.shape[1])
        m = self.resolution
        units = (np.rint(np.clip(self._scaled(numbers), -1, 1) * m) + m).astype(np.uint16)
        columns = [np.ascontiguousarray(units[:, i]) for i in range(units.shape[1])]
        with self._curator(MemoryTable(domain, [*columns, codes])) as curator:
            found = learner.fit(curator)
        self.classes_ = np.array(list(classes))
        self.coef_ = found.w[None] / self.bound
        self.intercept_ = np.array([found.intercept])
        self.n_iter_ = np.array([found.card["frank_wolfe_steps"]])
        self.card_ = {**found.card, "fits": self.fits_}
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """⟨w, x⟩ + intercept; positive for the second class."""
        check_is_fitted(self, "coef_")
        require_numbers(X, _NO_TEXT)
        numbers = np.clip(self._scaled(self._numbers(X, reset=False)), -1, 1) * self.bound
        out: NDArray[np.float64] = numbers @ self.coef_[0] + self.intercept_[0]
        return out

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Of both classes, in their order."""
        p = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        positive = self.decision_function(X) > 0
        out: NDArray[Any] = self.classes_[positive.astype(int)]
        return out

    def _scaled(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """In units of the bound, with 0 for what is not a number."""
        with np.errstate(all="ignore"):  # a warning would be about a value
            return np.where(np.isnan(numbers), 0.0, numbers) / self.bound

    def _classes(self) -> tuple[Any, Any]:
        if self.classes is None:
            raise InputError(
                "the labels are public knowledge and are not read off the data: give the two of them as classes=(…, …)"
            )
        classes = tuple(c.item() if isinstance(c, np.generic) else c for c in self.classes)
        if len(classes) != 2 or classes[0] == classes[1]:
            raise InputError(f"classes must be two different labels, got {classes}")
        return classes

    def _problem(self, features: int) -> tuple[Domain, LogisticLearner]:
        m = self.resolution
        if type(m) is not int or not 1 <= m <= LARGEST_RESOLUTION:
            raise InputError(f"resolution must be a whole number from 1 to {LARGEST_RESOLUTION}, got {m!r}")
        if not 0 < self.bound < float("inf"):
            raise InputError(f"bound must be positive and finite, got {self.bound}")
        if self.unit is not None and self.unit.column is not None:
            raise InputError("the rows of an array are nobody's: use LogisticLearner on a table with a unit column")
        names = [f"feature {i}" for i in range(features)]
        label = Attribute.categorical("label", ["first class", "second class", "neither"])
        domain = Domain((*(Attribute.categorical(n, 2 * m + 1) for n in names), label))
        values = {name: range(-m, m + 1) for name in names}
        return domain, LogisticLearner("label", values, m, self.radius, self.variant, self.steps, (-1, 1, 0))
