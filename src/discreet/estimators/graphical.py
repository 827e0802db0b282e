"""Graphical models of every family as a scikit-learn density estimator and classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin  # type: ignore[import-untyped]
from sklearn.utils.metaestimators import available_if  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from ..domain import Attribute, Domain
from ..encoding import columns_of
from ..errors import InputError
from ..learn.held_out import HeldOut
from ..learn.procedure import Procedure
from ..models.base import Model
from ..models.records import RandomState, Records
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.ledger import Ledger
from ..privacy.unit import PrivacyUnit
from ..release import Release
from ..sought import PRIVATE
from ..spec import Spec, resolve, said_by
from ..tables.encode import encode
from .base import PrivateEstimator, as_budget, known_arguments, require_numbers


def _cells(rows: Sequence[Any], wanted: Sequence[str]) -> NDArray[Any]:
    """Rows in a list as an array of whatever they hold. (NumPy would let what stands in them decide its dimensions.)"""
    out = np.empty((len(rows), len(wanted)), dtype=object)
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple | np.ndarray) or len(row) != len(wanted):
            raise InputError(f"a list of rows needs one value for each of {wanted[:20]} in every row, in this order")
        for j, value in enumerate(row):
            out[i, j] = value
    return out


def _by_name(rows: Any, wanted: Sequence[str]) -> dict[str, Any]:
    """The columns of an array, or of rows in a list."""
    cells = _cells(rows, wanted) if isinstance(rows, list | tuple) else rows
    if cells.ndim != 2 or cells.shape[1] != len(wanted):
        raise InputError(f"an array needs one column for each of {wanted[:20]}, in this order")
    return {name: cells[:, i] for i, name in enumerate(wanted)}


def _has_target(estimator: Any) -> bool:
    """Prediction exists for estimators that know what to predict."""
    if estimator.target is None:
        raise AttributeError("set target=… to the column that is to be predicted")
    return True


class PrivateGraphicalModel(DensityMixin, PrivateEstimator):  # type: ignore[misc]
    """Learn a graphical model under differential privacy; then score, sample, and predict a column.
    ``PrivateGraphicalModel(1.0, domain=domain, graph="smoke -> lung").fit(frame).sample(1000)``.

    Every fit spends the whole budget; a second fit, and a fit of a copy as cross-validation makes it, is refused unless
    ``allow_refit`` says that it is meant. What a row holds never makes a fit fail.

    Parameters
    ----------
    budget, delta:
        The *total* of a fit: a number is ε (with ``delta``: (ε, δ)); or PureDP(ε), ZCDP(ρ), ApproxDP(ε, δ).
    family, method, graph, cliques, workload, options, certify, discover:
        What to learn, as for :func:`discreet.resolve` and ``discreet fit``; ``discreet plan --methods`` lists them.
        Without a graph, the tables that matter are found privately and paid for from the same budget.
    domain:
        What is publicly known about the columns. Without one, columns are numbers. Between public ``bounds`` they are
        cut into ``bins`` equal bins (4); without bounds, range and bins (at most ``bins``, 32) are found privately and
        paid for, with the part ``discover`` of the budget. Numbers outside count in the nearest bin, and what is no
        number in the first.
    target:
        The column that ``predict`` and ``predict_proba`` speak of. ``fit(X, y)`` takes its values from y. A method that
        can measure for a target does.
    unit, ledger, public_size:
        As for :class:`discreet.Curator`; ``approximate_size`` is a public guess where the number of records is private.
    allow_refit:
        Whether it, and its copies, may be fitted again and again, and each time spend the whole budget.

    Attributes
    ----------
    model_:
        The model, with its release card; ``release_`` has the noisy sums as well and can be saved.
    domain_, n_features_in_, classes_, fits_:
        As the names say; ``classes_`` are the levels of the target.
    """

    @known_arguments
    def __init__(
        self,
        budget: Budget | float = 1.0,
        *,
        delta: float = 0.0,
        family: str | None = None,
        method: str | None = None,
        graph: Any = None,
        cliques: Any = None,
        workload: Any = None,
        options: Mapping[str, Any] | None = None,
        domain: Domain | None = None,
        bins: int | None = None,
        bounds: tuple[float, float] | None = None,
        target: str | None = None,
        unit: PrivacyUnit | None = None,
        ledger: Ledger | None = None,
        public_size: int | None = None,
        approximate_size: float | None = None,
        certify: float | None = None,
        discover: float | None = None,
        allow_refit: bool = False,
    ) -> None:
        self.budget = budget
        self.delta = delta
        self.family = family
        self.method = method
        self.graph = graph
        self.cliques = cliques
        self.workload = workload
        self.options = options
        self.domain = domain
        self.bins = bins
        self.bounds = bounds
        self.target = target
        self.unit = unit
        self.ledger = ledger
        self.public_size = public_size
        self.approximate_size = approximate_size
        self.certify = certify
        self.discover = discover
        self.allow_refit = allow_refit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- learning ------------------------------------------------------------------------------------------------------

    def plan(self, domain: Domain | None = None, approximate_size: float | None = None) -> Procedure:
        """What a fit will spend on what, before a row is read."""
        known = domain or self.domain
        if known is None:
            raise InputError("a plan needs to know the columns: give domain=…, here or to the estimator")
        budget, size = as_budget(self.budget, self.delta), approximate_size or self.approximate_size
        return self.spec(known).prepare(known, self.unit or PrivacyUnit(), budget, self.public_size, size)

    def spec(self, domain: Domain) -> Spec:
        """What a fit will learn of these columns."""
        found = self._resolved(domain).for_a_model()
        return self._resolved(domain, self.target) if "target" in found.entry.options else found

    def _resolved(self, domain: Domain, target: str | None = None) -> Spec:
        return resolve(domain, **{**said_by(self), "target": target})

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows; they are not kept. ``y`` is the target column if there is one, and ignored otherwise."""
        rows, domain = self._rows(X, y, reset=True)
        spec = self.spec(domain)
        table = encode(rows, domain, unit=None if self.unit is None else self.unit.column)
        with self._curator(table) as curator:
            learned = spec.learn(curator)
        self.domain_ = domain = learned.model.domain
        self.release_ = Release.of(learned)
        self.model_: Model = learned.model
        if self.target is not None:
            self.classes_ = np.array(domain[self.target].labels)
        return self

    # -- using what was learned: all of it on public rows --------------------------------------------------------------

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """log P of each row. The rows must be public: for private ones see :meth:`score_private`."""
        rows, _ = self._rows(X, None, reset=False)
        return self.model_.log_prob(rows)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of public rows."""
        return float(self.score_samples(X).mean())

    def score_private(self, curator: Curator, share: Budget | None = None, *, floor: float = -20.0) -> float:
        """Mean log-likelihood of a curator's private records: clipped at ``floor``, noised, and paid for."""
        check_is_fitted(self, "model_")
        return HeldOut(self.model_, floor).fit(curator, share)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Records:
        """Synthetic records; ``.to_pandas()`` and the like make frames of them."""
        check_is_fitted(self, "model_")
        return self.model_.sample(n_samples, random_state)

    def impute(self, X: Any, random_state: RandomState = None) -> Records:
        """Public rows with every absent value, and every column that X does not have, drawn given the others.

        A frame comes out by ``.to_pandas()`` or ``.to_polars()``. An array has the columns of the fit, in their order.
        """
        check_is_fitted(self, "model_")
        if isinstance(X, list | tuple | np.ndarray):
            X = _by_name(X, list(self.domain_.names))
        return self.model_.complete(X, random_state, known=True)

    @available_if(_has_target)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(target | the other columns) of each public row, classes in the order of ``classes_``."""
        rows, _ = self._rows(X, None, reset=False, without_target=True)
        target = str(self.target)
        anything = [self.domain_[target].labels[0]] * max(
            map(len, rows.values()), default=0
        )  # its own value is not used
        return self.model_.full_conditional(target, {**rows, target: anything})

    @available_if(_has_target)  # type: ignore[untyped-decorator]
    def predict(self, X: Any, missing: bool = False) -> NDArray[Any]:
        """The most probable level of the target for each public row; with ``missing`` it may be that there is none."""
        odds, target = self.predict_proba(X), self.domain_[str(self.target)]
        if not missing and target.missing is not None and target.size > 1:
            odds[:, target.missing_code] = -1.0
        chosen: NDArray[Any] = self.classes_[np.argmax(odds, axis=1)]
        return chosen

    # -- inside --------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, y: Any, *, reset: bool, without_target: bool = False) -> tuple[dict[str, Any], Domain]:
        """The columns by name, checked in form only, and the domain they are read under."""
        if not reset:
            check_is_fitted(self, "model_")
        domain = self.domain if reset else self.domain_
        if self.domain is None:
            require_numbers(X, "give domain=…, which says what levels it has")
            numbers = self._numbers(X, reset=reset)
            names = [str(n) for n in getattr(self, "feature_names_in_", [f"x{i}" for i in range(numbers.shape[1])])]
            rows = dict(zip(names, numbers.T, strict=True))
            domain = self._binned(names) if reset else self.domain_
        else:
            assert domain is not None
            apart = {self.target} if without_target or (y is not None and self.target is not None) else set()
            names = [n for n in domain.names if n not in apart]
            rows = self._columns(X, names)
            self.n_features_in_ = len(names) if reset else self.n_features_in_
        if self.target is not None and y is not None:
            if self.domain is None:
                raise InputError("a target needs a domain, which says what levels it has: give domain=…")
            rows[self.target] = y
        if self.target is not None and self.target not in domain:
            raise InputError(f"the target {self.target!r} is no column of the domain; it has {list(domain.names)[:20]}")
        return rows, domain

    def _columns(self, X: Any, names: list[str]) -> dict[str, Any]:
        column = None if self.unit is None else self.unit.column
        wanted = [*names, *([column] if column is not None and column not in names else [])]
        if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype.names is None):
            return _by_name(X, wanted)
        found = columns_of(X, wanted)
        return {name: found[name] for name in wanted}

    def _binned(self, names: Sequence[str]) -> Domain:
        if self.bins is not None and (isinstance(self.bins, bool) or self.bins < 1):
            raise InputError(f"bins is a whole number of at least 1, got {self.bins}")
        if self.bounds is None:
            most = {} if self.bins is None else {"most": int(self.bins)}
            entry = {"bins": PRIVATE, "range": PRIVATE, "outside": "nearest", **most}
            return Domain(tuple(Attribute.from_dict(name, entry) for name in names))
        pair = list(self.bounds) if isinstance(self.bounds, tuple | list | np.ndarray) else []
        real = len(pair) == 2 and all(isinstance(e, int | float | np.number) and np.isfinite(e) for e in pair)
        if not real or not pair[0] < pair[1]:
            raise InputError(
                "bounds are two finite numbers in order, or None, to have range and bins found privately; "
                f"got {self.bounds!r}"
            )
        low, high = pair
        edges = np.linspace(low, high, (self.bins or 4) + 1).tolist()
        return Domain(tuple(Attribute.numeric(name, edges, outside="nearest") for name in names))
