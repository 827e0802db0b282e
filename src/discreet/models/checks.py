"""What every family of models needs when it is made or read: names, arrays, edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..errors import FileFormatError, InputError


def numbered(columns: int) -> tuple[str, ...]:
    """Names for columns that have none: ``x0, x1, …``."""
    return tuple(f"x{i}" for i in range(columns))


def checked_array(values: npt.ArrayLike, what: str, dimensions: int) -> NDArray[np.float64]:
    """A read-only float64 copy; the wrong number of axes, NaN and infinities are errors."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise InputError(f"{what} must have {dimensions} axes, got an array of shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{what} must hold finite numbers; it holds NaN or an infinity")
    array.flags.writeable = False
    return array


def edges_of(domain: Domain, cliques: Iterable[Clique]) -> tuple[tuple[str, str], ...]:
    """Every pair within a clique, once, in domain order."""
    pairs = {
        (domain.index(a), domain.index(b)) for clique in cliques for a, b in combinations(domain.clique(clique), 2)
    }
    return tuple((domain.names[i], domain.names[j]) for i, j in sorted(pairs))


def archive_domain(header: Mapping[str, Any]) -> Domain:
    """The domain in the header of a file."""
    return Domain.from_dict(header["domain"])


def archive_names(entry: object) -> list[Clique]:
    """A list of lists of names in the header of a file."""
    if not isinstance(entry, list) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in entry
    ):
        raise FileFormatError("its header lists groups of columns in a form that is not a list of lists of names")
    return [tuple(names) for names in entry]
