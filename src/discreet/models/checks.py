"""What every family of models needs when it is made or read: names, arrays, edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..arguments import shortened
from ..domain import Clique, Domain
from ..errors import FileFormatError, InputError


def numbered(columns: int) -> tuple[str, ...]:
    """Names for columns that have none: ``x0, x1, …``."""
    return tuple(f"x{i}" for i in range(columns))


def checked_array(values: npt.ArrayLike, what: str, dimensions: int) -> NDArray[np.float64]:
    """A read-only float64 copy; the wrong number of axes, NaN and infinities are errors."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be an array of numbers, got {shortened(values)}") from None
    if array.ndim != dimensions:
        raise InputError(f"{what} must have {dimensions} axes, got an array of shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{what} must hold finite numbers; it holds NaN or an infinity")
    array.flags.writeable = False
    return array


def pair_of(names: Iterable[str]) -> tuple[str, str]:
    """The two ends of an edge; a text would be taken apart into letters."""
    ends = () if isinstance(names, str) else tuple(names)
    if len(ends) != 2:
        raise InputError(f'an edge is a pair of columns, as in ("a", "b"); got {shortened(names)}')
    return ends


def require_mapping(value: object, what: str, example: str) -> None:
    if not isinstance(value, Mapping):
        raise InputError(f"{what} must be a mapping, as in {example}; got {shortened(value)}")


def edges_of(domain: Domain, cliques: Iterable[Clique]) -> tuple[tuple[str, str], ...]:
    """Every pair within a clique, once, in domain order."""
    return _edges(domain.names, tuple(domain.clique(clique) for clique in cliques))


@lru_cache(maxsize=16)
def _edges(names: tuple[str, ...], cliques: tuple[Clique, ...]) -> tuple[tuple[str, str], ...]:
    """Refits have the cliques of their model: found once for all."""
    place = {name: i for i, name in enumerate(names)}
    pairs = {(place[a], place[b]) for clique in cliques for a, b in combinations(clique, 2)}
    return tuple((names[i], names[j]) for i, j in sorted(pairs))


def archive_domain(header: Mapping[str, Any]) -> Domain:
    """The domain in the header of a file; as it is where somebody has read it already."""
    said = header["domain"]
    return said if isinstance(said, Domain) else Domain.from_dict(said)


def archive_names(entry: object) -> list[Clique]:
    """A list of lists of names in the header of a file."""
    if not isinstance(entry, list) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in entry
    ):
        raise FileFormatError("its header lists groups of columns in a form that is not a list of lists of names")
    return [tuple(names) for names in entry]
