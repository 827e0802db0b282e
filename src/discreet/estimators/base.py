"""What all estimators share: a total budget in the constructor, a curator a fit, and an account of what fits cost.

What an estimator may not do, as scikit-learn's own would, is to fail on what a row holds: an exception is an output,
and nobody paid for it. So whatever can be read off the *form* of the input (number of columns, their names, their
type) is checked and refused with an error, and whatever depends on *values* (a missing number, an unknown label, no
rows at all) has a code. See :func:`as_numbers` and :func:`as_codes`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.exceptions import DataConversionWarning  # type: ignore[import-untyped]
from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

from ..encoding import form_of
from ..errors import BudgetError, InputError, did_you_mean
from ..privacy.budget import ApproxDP, Budget, PureDP
from ..privacy.curator import Curator
from ..tables.base import Table


class PrivacyWarning(UserWarning):
    """Something is allowed, and costs privacy."""


def as_budget(budget: Budget | float, delta: float = 0.0) -> Budget:
    """A budget as given, or a number read as the *total* ε, with ``delta`` if that is positive."""
    if isinstance(budget, Budget):
        if delta:
            raise InputError(f"give delta with a number ε only: {budget} says all there is to say")
        return budget
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise InputError(f"budget is PureDP(ε), ZCDP(ρ), ApproxDP(ε, δ) or a number ε, got {budget!r}")
    if not 0 < budget < float("inf"):
        raise BudgetError(f"budget, read as the total ε, must be positive and finite, got budget={budget}")
    return ApproxDP(budget, delta) if delta else PureDP(budget)


P = ParamSpec("P")
_TOTALS = {"epsilon": "budget=ε, or budget=PureDP(ε)", "eps": "budget=ε, or budget=PureDP(ε)", "rho": "budget=ZCDP(ρ)"}


def known_arguments(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that says what it takes when it is given something else: most of all ε, which others call so.

    Its signature stays the one that is written, for scikit-learn, editors and type checkers alike.
    """
    known = list(inspect.signature(init).parameters)[1:]

    @functools.wraps(init)
    def checked(*args: P.args, **given: P.kwargs) -> None:
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known) or "; known: " + ", ".join(map(repr, known))
                hint = f"; give the total as {_TOTALS[name]}" if name in _TOTALS else hint
                raise InputError(f"{type(args[0]).__name__} has no argument {name!r}{hint}")
        init(*args, **given)

    return checked


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Base: keeps the budget and makes a curator for each fit.

    Subclasses have the constructor arguments ``budget``, ``delta``, ``unit``, ``ledger``, ``public_size`` and
    ``allow_refit``.
    """

    def __sklearn_clone__(self) -> Any:
        """A copy as scikit-learn makes it for each fold of a cross-validation and each candidate of a search. It is
        marked: whoever makes copies fits several of them, perhaps in other processes, and each fit is paid for."""
        made = super().__sklearn_clone__()
        made._is_copy = True
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise that protects is never seeded
        return tags

    def _curator(self, table: Table) -> Curator:
        """A curator with the whole budget. A second fit is a second release: refused unless it is allowed, and said."""
        budget = as_budget(self.budget, self.delta)
        fits = getattr(self, "fits_", 0) + 1
        if (fits > 1 or getattr(self, "_is_copy", False)) and not self.allow_refit:
            which = f"fit number {fits} of this estimator" if fits > 1 else "a copy that scikit-learn has made"
            raise BudgetError(
                f"this is {which}, and every fit spends {budget}. Cross-validation and searches fit a copy for each "
                "fold and candidate: what the same people lose adds up over all of them. If that is meant, say "
                "allow_refit=True; a ledger keeps the account. Nothing was spent"
            )
        if fits > 1:
            warnings.warn(
                f"fit number {fits} of this estimator spends {budget} again: if the rows are of the same people, what "
                "they lost adds up over all fits. A ledger keeps the account",
                PrivacyWarning,
                stacklevel=3,
            )
        curator = Curator(table, self.unit, budget, self.ledger, public_size=self.public_size)
        self.fits_ = fits
        return curator

    def _numbers(self, X: Any, *, reset: bool) -> NDArray[np.float64]:
        """X as an array of numbers, checked in form only; see :func:`as_numbers`."""
        numbers = as_numbers(X)
        validate_data(self, X, reset=reset, skip_check_array=True)  # names and number of columns
        if reset:
            self.n_features_in_ = numbers.shape[1]
        elif numbers.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {numbers.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return numbers


def require_numbers(X: Any, way_out: str) -> None:
    """Columns of text are refused by their type, which is their form; what they hold is not looked at."""
    dtypes = getattr(X, "dtypes", None)
    if hasattr(X, "iloc") and dtypes is not None:  # pandas
        odd = {n: d for n, d in zip(X.columns, dtypes, strict=True) if getattr(d, "kind", "O") not in "biuf"}
    elif dtypes is not None and hasattr(X, "columns"):  # polars
        odd = {n: d for n, d in zip(X.columns, dtypes, strict=True) if not _counts(d)}
    else:
        dtype = getattr(X, "dtype", None)
        odd = {"of X": dtype} if getattr(dtype, "kind", "") in ("U", "S", "T") else {}
    for name, dtype in odd.items():
        raise InputError(f"column {name!r} holds {form_of(dtype)}, not numbers: {way_out}")


def _counts(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def as_numbers(X: Any) -> NDArray[np.float64]:
    """A table of numbers. Its form may be refused; its values may not: what is not a number becomes NaN.

    The form is the container, its dtype and its width; which way a number is read is decided by the form alone, never
    by what stands in another row. (A list whose rows differ in width is refused, and so its form is a matter of its
    rows: give arrays or frames of private data.)
    """
    if hasattr(X, "tocsr") or hasattr(X, "todense"):
        raise InputError("sparse matrices are not supported: X must be dense, e.g. X.toarray()")
    dtype = getattr(X, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") == "c":
        raise InputError("Complex data not supported: X must hold real numbers")
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        numbers = _cast(X)
    elif hasattr(X, "dtypes") and hasattr(X, "iloc"):  # pandas: a column at a time, by its type
        columns = [_column(X.iloc[:, i]) for i in range(X.shape[1])]
        numbers = np.stack(columns, axis=1) if columns else np.empty((len(X), 0))
    else:
        rows = np.asarray(X, dtype=object)
        if rows.ndim == 1 and not rows.size:
            raise InputError("X has no rows and no columns; give an array of shape (0, features), which says how many")
        if rows.ndim != 2:
            raise InputError(f"{_SHAPE} Reshape your data: one row a record, one column a feature")
        numbers = np.array([[_number(x) for x in row] for row in rows], dtype=np.float64).reshape(rows.shape)
    if numbers.ndim != 2:
        raise InputError(f"{_SHAPE} Reshape your data: one row a record, one column a feature")
    if numbers.shape[1] == 0:
        raise InputError("0 feature(s): X must have at least one column (a minimum of 1 is required.)")
    return numbers


_SHAPE = "Expected 2D array: X must have one row a record and one column a feature."


def _cast(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as 64-bit ones, without a warning: a number that does not fit is an infinite one."""
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def _column(values: Any) -> NDArray[np.float64]:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return _cast(values.to_numpy())
    return np.array([_number(x) for x in values], dtype=np.float64)


def _number(x: Any) -> float:
    if isinstance(x, np.datetime64 | np.timedelta64 | np.complexfloating):
        return float("nan")
    try:
        with np.errstate(all="ignore"):
            return float(x)
    except Exception:  # whatever a value does, it must not show
        return float("nan")


def as_codes(y: Any, classes: Sequence[Any]) -> NDArray[np.uint16]:
    """The position of each label among the public classes; one more for a label that is none of them.

    Only the form is refused: labels of a dtype in which no class can be. A list is read entry by entry, so a list of
    one-element lists holds no class; a column vector is an array or a frame.
    """
    dtype = getattr(y, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    words = [isinstance(c, str | bytes) for c in classes]
    if (kind in "US" and not any(words)) or (kind in "biuf" and all(words)):
        raise InputError(f"y holds {form_of(y)}, and none of the public classes {tuple(classes)} is that; set classes=")
    if isinstance(y, list | tuple):  # NumPy would let one entry decide the shape of all
        labels: NDArray[Any] = np.empty(len(y), dtype=object)
        for i, label in enumerate(y):
            labels[i] = label
    else:
        labels = np.asarray(y) if kind in "biufUS" else np.asarray(y, dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        text = "A column-vector y was passed when a 1d array was expected; it is read as y.ravel()"
        warnings.warn(text, DataConversionWarning, stacklevel=4)
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"y should be a 1d array, one label a record; got {labels.ndim} dimensions")
    if labels.dtype.kind in "biuf":
        codes = np.full(len(labels), len(classes), dtype=np.uint16)
        for code, label in enumerate(classes):
            if not words[code]:
                codes[labels == label] = code
        return codes
    place = {c: i for i, c in enumerate(classes)}
    return np.fromiter((_code(place, x) for x in labels.tolist()), dtype=np.uint16, count=len(labels))


def _code(place: dict[Any, int], label: Any) -> int:
    try:
        return place.get(label, len(place))
    except Exception:  # a value that cannot be looked up is no class
        return len(place)
