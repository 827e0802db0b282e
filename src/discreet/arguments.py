"""Arguments of the wrong kind, caught where they come in: each error says what was meant to stand there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from .domain import Clique, Domain
from .errors import InputError, did_you_mean

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
