"""From any frame to a table under a domain, once. Curator-side: it sees rows, and its errors are about columns only."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain, level_text
from ..encoding import as_list, columns_of, encode_column
from ..errors import InputError, SchemaError
from .memory import MemoryTable, Persons


def encode(rows: Any, domain: Domain | None = None, *, unit: str | None = None) -> MemoryTable:
    """Encode rows once, for a curator.

    Parameters
    ----------
    rows:
        A pandas, polars or Arrow frame, a mapping from column names to arrays, a NumPy structured array, or a
        two-dimensional NumPy array whose columns are in the order of the domain.
    domain:
        What is publicly known about the columns. Columns that it does not name are not read.
    unit:
        The column that says whose row it is. It need not be in the domain.
    """
    if domain is None:
        raise SchemaError(
            "rows need a schema: the levels of a column must be public knowledge, not read off private data. Write one "
            "with Domain.of({...}), or let `discreet schema draft data.csv` write a draft that marks what it peeked at"
        )
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        if rows.ndim != 2 or rows.shape[1] != len(domain) or unit is not None:
            raise InputError(
                f"a plain array must have one column for each of the {len(domain)} columns of the domain, in order, "
                f"and no unit column; got an array of {rows.ndim} dimensions"
            )
        rows = {name: rows[:, i] for i, name in enumerate(domain.names)}
    wanted = [*domain.names, *([unit] if unit is not None and unit not in domain else [])]
    columns = columns_of(rows, wanted)
    codes = [encode_column(columns[a.name], a) for a in domain.attributes]
    if unit is None:
        return MemoryTable(domain, codes)
    kept, persons = _persons(columns[unit])
    return MemoryTable(domain, [c[kept] for c in codes], persons=persons, unit_column=unit)


def _persons(values: Any) -> tuple[NDArray[np.int64], Persons]:
    """Rows that have a person, and who that is. Rows without one are left out (see PrivacyUnit)."""
    items = [v if _is_hashable(v) else repr(v) for v in as_list(values)]
    kept = np.flatnonzero(np.fromiter((v is not None for v in items), dtype=bool, count=len(items)))
    first_seen: dict[Any, int] = {}
    owner = np.fromiter(
        map(first_seen.setdefault, (items[i] for i in kept), itertools.count()), dtype=np.int64, count=len(kept)
    )
    _, owner = np.unique(owner, return_inverse=True)
    digests = b"".join(hashlib.blake2b(_spelling(p), digest_size=8).digest() for p in first_seen)
    identity = np.frombuffer(digests, dtype="<u8").astype(np.uint64)
    return kept, Persons(owner.astype(np.int64), identity)


def _spelling(person: Any) -> bytes:
    try:
        return level_text(person).encode("utf-8", "surrogatepass")
    except Exception:  # a number of more digits than Python spells out, say
        return str(hash(person)).encode()


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:  # hashing runs code of the value's own, which may raise anything
        return False
    return True
