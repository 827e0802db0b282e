"""From any frame to a table under a domain, once. Curator-side: it sees rows, and its errors are about columns only."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import require_domain
from ..domain import Domain, level_text
from ..encoding import Hashed, as_list, columns_of, encode_column, unlisted_text
from ..errors import InputError, SchemaError
from .memory import MemoryTable, Persons


def encode(rows: Any, domain: Domain | None = None, *, unit: str | None = None) -> MemoryTable:
    """Encode rows once, for a curator: ``Curator(encode(frame, domain), budget=PureDP(1))``.

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
    require_domain(domain)
    if unit is not None and not isinstance(unit, str):
        raise InputError(
            f"unit is the name of the column that says whose row it is, got {type(unit).__name__}: write "
            "encode(rows, domain, unit='person') and give PrivacyUnit('person', max_rows=…) to the curator"
        )
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        if rows.ndim != 2 or rows.shape[1] != len(domain) or unit is not None:
            raise InputError(
                f"a plain array must have one column for each of the {len(domain)} columns of the domain, in order, "
                f"and no unit column; got an array of {rows.ndim} dimensions"
            )
        rows = {name: rows[:, i] for i, name in enumerate(domain.names)}
    wanted = [*domain.names, *([unit] if unit is not None and unit not in domain else [])]
    return _encoded(columns_of(rows, wanted), domain, unit)


def _encoded(columns: Mapping[str, Any], domain: Domain, unit: str | None) -> MemoryTable:
    codes = [encode_column(columns[a.name], a) for a in domain.attributes]
    if unit is None:
        table = MemoryTable(domain, codes)
    else:
        kept, persons = persons_of(columns[unit])
        table = MemoryTable(domain, [c[kept] for c in codes], persons=persons, unit_column=unit)
    if domain.sought:
        table.source = Columns(columns, unit)
    return table


@dataclass(frozen=True, repr=False)
class Columns:
    """Columns in memory that will be encoded again, once it is known how."""

    columns: Mapping[str, Any]
    unit: str | None

    def __repr__(self) -> str:
        return "Columns()"

    def table(self, domain: Domain) -> MemoryTable:
        return _encoded(self.columns, domain, self.unit)

    def texts(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        found = {unlisted_text(value, attribute) for value in as_list(self.columns[attribute.name])}
        return attribute.among(found, numbers)


def persons_of(values: Any) -> tuple[NDArray[np.int64], Persons]:
    """Rows that have a person, and who that is: a person is what their identifier spells, so 1 and "1" are one.

    Rows without one are left out (see PrivacyUnit).
    """
    digests = list(map(digest_of, as_list(values)))
    kept = np.flatnonzero(np.fromiter((d is not None for d in digests), dtype=bool, count=len(digests)))
    present = np.frombuffer(b"".join(d for d in digests if d is not None), dtype="<u8").reshape(-1, 2)
    identity, owner = np.unique(present, axis=0, return_inverse=True)
    return kept, Persons(owner.reshape(-1).astype(np.int64), identity.astype(np.uint64))


def digest_of(person: Any) -> bytes | None:
    """128 bits of identity: a digest of what the identifier spells. None, nobody, for one that cannot be spelled:
    strangers that share a spelling would be one unit, and one of them could choose which rows of the others count.
    """
    spelling = None if person is None else _spelling(person)
    return None if spelling is None else hashlib.blake2b(spelling, digest_size=16).digest()


def _spelling(person: Any) -> bytes | None:
    try:
        if isinstance(person, float | Decimal) and person == int(person):
            person = int(person)  # frames turn whole numbers with gaps into floats, databases into decimals
        return level_text(person).encode("utf-8", "surrogatepass")
    except Exception:  # spelling runs code of the value's own, which may raise anything
        return None
