"""Arguments of the wrong kind, caught where they come in: each error says what was meant to stand there."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from .domain import Attribute, Clique, Domain
from .errors import InputError, SchemaError, did_you_mean

# What other libraries call the same thing.
_ALSO_CALLED = {
    "condition": "given",
    "conditions": "given",
    "evidence": "given",
    "seed": "random_state",
    "rng": "random_state",
    "burnin": "burn_in",
    "warmup": "burn_in",
    "thinning": "thin",
    "iterations": "max_iterations",
    "max_iter": "max_iterations",
    "tol": "tolerance",
    "algorithm": "method",
}


def shortened(value: object, most: int = 100) -> str:
    """The spelling of a public value, cut when it is long."""
    text = repr(value)
    return text if len(text) <= most else text[:most] + "…"


def check_whole(least: int, *, or_none: bool = False, **numbers: object) -> None:
    """Refuse what is no whole number of at least ``least``, by its name."""
    for name, value in numbers.items():
        if not (or_none and value is None) and (type(value) is not int or value < least):
            raise InputError(f"{name} must be a whole number of at least {least}, got {shortened(value)}")


def check_positive(*, or_none: bool = False, **numbers: object) -> None:
    """Refuse what is no positive number, by its name."""
    for name, value in numbers.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (or_none and value is None) and not (number and 0 < value < math.inf):  # type: ignore[operator]
            raise InputError(f"{name} must be positive and finite, got {shortened(value)}")


def require_domain(value: object) -> Domain:
    """``value`` if it is a domain; what people give instead gets told how to make one of it."""
    if isinstance(value, Domain):
        return value
    if isinstance(value, str | os.PathLike):
        way_out = f"load_schema({os.fspath(value)!r}) reads one from a file"
    elif isinstance(value, Mapping):
        way_out = "Domain.of({...}) makes one of a mapping"
    else:
        way_out = 'Domain.of({"smoke": ["yes", "no"], "visits": 3}) makes one'
    raise InputError(f"the domain must be a Domain, got {_kind(value)}; {way_out}")


def _kind(value: object) -> str:
    return repr(value) if isinstance(value, str) else f"a {type(value).__name__}"


def require_columns(what: str, made_for: Iterable[Attribute], domain: Domain) -> None:
    """Refuse ``what`` where ``domain``, that of the rows, lacks one of its columns or has another of that name."""
    for meant in made_for:
        if meant.name not in domain:
            hint = did_you_mean(meant.name, domain)
            raise SchemaError(f"{what} uses the column {meant.name!r}, which the rows lack{hint}")
        own = domain[meant.name]
        if differ := _differences(meant, own):
            raise SchemaError(
                f"{what} was made for another column {own.name!r} than the rows have ({meant.size} levels there "
                f"and {own.size} here; they differ in {', '.join(differ)}). Make it with the domain of the rows, "
                "or encode the rows under the domain that it was made for"
            )


def _differences(a: Attribute, b: Attribute) -> list[str]:
    """Where two attributes of one name differ. How one was come by has nothing to do with its codes."""
    if a is b:
        return []
    names = [
        "labels",
        *(f.name for f in fields(Attribute) if f.name not in ("peeked", "found")),
    ]  # labels: True equals 1, not "true"
    return [name for name in names if getattr(a, name) != getattr(b, name)]


def require_groups(cliques: Iterable[Iterable[str]]) -> list[Clique]:
    """Groups of columns, each a name or several. One name alone would be read letter by letter, so it is refused."""
    if isinstance(cliques, str):
        raise InputError(
            f"expected a list of groups of columns, got {cliques!r} alone; for that one column write [{cliques!r}], "
            'for two of them together [("a", "b")]'
        )
    return [(group,) if isinstance(group, str) else tuple(group) for group in cliques]


def check_options(given: Mapping[str, Any], taken: Iterable[str], known: Iterable[str], where: str = "") -> None:
    """Options by keyword that are not among those ``taken`` are errors.

    ``known`` are all the names that a caller can have meant, options or not; ``where`` ends the sentence for one that
    exists, but not here.
    """
    taken, known = set(taken), list(known)
    for name in given:
        if name in taken:
            continue
        if name in known:
            raise InputError(f"the option {name!r} has no effect {where}; leave it out")
        other = _ALSO_CALLED.get(name.lower())
        hint = f"; did you mean {other!r}?" if other in known else did_you_mean(name, known)
        raise InputError(f"no option {name!r}{hint}")
