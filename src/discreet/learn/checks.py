"""What people hand to learners, checked with kind words before anything is read or spent."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..arguments import shortened
from ..domain import Domain
from ..errors import InputError
from ..measurement import MOST_RECORDS, Measurement, Measurements
from ..privacy.curator import Curator, ExactCurator

TooLarge = Literal["refuse", "coarsen"]


_KINDS = {
    bool: (bool, "true or false"),
    int: (int | np.integer, "a whole number"),
    float: (int | float | np.integer | np.floating, "a number"),
    str: (str, "a word"),
}


def check_types(learner: Any) -> None:
    """The options of a learner against the annotations of its fields."""
    hints = _hints(learner.__class__)
    for name, value in vars(learner).items():
        fits, words = _kind(hints.get(name, Any), value)
        if not fits:
            raise InputError(f"{name} must be {words}, got {shortened(value)}")


@cache
def _hints(learner: type) -> dict[str, Any]:
    return get_type_hints(learner)


def _kind(hint: Any, value: object) -> tuple[bool, str]:
    """Whether a value is of a kind, and the kind in words; kinds without a simple form are left to the learner."""
    if get_origin(hint) is Literal:
        *first, last = map(repr, get_args(hint))
        return value in get_args(hint), f"{', '.join(first)} or {last}" if first else last
    if get_origin(hint) in (Union, UnionType):
        kinds = [_kind(part, value) for part in get_args(hint)]
        words = dict.fromkeys(text for _, text in kinds if text)
        if "a number" in words:
            words.pop("a whole number", None)
        return any(fits for fits, _ in kinds), " or ".join(words)
    if hint is Any:
        return True, ""
    if hint is type(None):
        return value is None, "nothing"
    if hint in _KINDS:
        kind, text = _KINDS[hint]
        return isinstance(value, kind) and (hint is bool or not isinstance(value, bool)), text
    return not isinstance(hint, type) or isinstance(value, hint), ""


def checked_size(size: float | None) -> float | None:
    """A public guess of the number of records: positive, or None when there is none."""
    number = isinstance(size, int | float | np.integer | np.floating) and not isinstance(size, bool)
    if size is not None and not (number and 0 < size < 1e18):
        raise InputError(f"approximate_size is a positive number of records, got {size!r}")
    return size


def checked_public_size(size: int | None) -> int | None:
    """The number of records where that is public: whole and positive, or None when it is private."""
    if size is not None and (type(size) is not int or size < 1):
        raise InputError(f"public_size is a whole number of at least 1, got {size!r}")
    if size is not None and size > MOST_RECORDS:
        raise InputError(f"public_size is at most {MOST_RECORDS:,} records: beyond that, sums do not fit 64 bits")
    return size


def check_curator(curator: object) -> None:
    if not isinstance(curator, Curator):
        raise InputError(
            f"a learner asks a curator, who keeps the rows and the budget, and got {type(curator).__name__}: write "
            "learner.fit(Curator(table, budget=PureDP(1))) with table = encode(rows, domain)"
        )


def check_exact(curator: object) -> None:
    """For learners without privacy."""
    check_curator(curator)
    if not isinstance(curator, ExactCurator):
        raise InputError("the non-private fit needs exact tables: give it an ExactCurator, or use another method")


def as_measurements(measurements: object) -> Measurements:
    """Measurements, or a list of some; none at all cannot be estimated from."""
    if not isinstance(measurements, Measurements):
        given = list(measurements) if isinstance(measurements, Iterable) else [measurements]
        items = [m for m in given if isinstance(m, Measurement)]
        if len(items) < len(given):
            raise InputError(
                f"estimate takes the measurements that measure(curator) gave, got {type(measurements).__name__}"
            )
        measurements = Measurements(items)
    if not measurements:
        raise InputError("there are no measurements to estimate from; get some with measure(curator)")
    return measurements


def require_found(domain: Domain) -> Domain:
    """Columns of which nothing is left to be found: who asks for tables by themselves must know their levels."""
    if isinstance(domain, Domain) and domain.sought:
        names = ", ".join(repr(a.name) for a in domain.sought[:5])
        raise InputError(
            f"the bins or levels of {names} are to be found privately, which `discreet fit` and resolve(domain) do as "
            "their first steps; here they must be known: give edges = […] or levels = […]"
        )
    return domain
