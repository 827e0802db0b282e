"""From any frame to a table under a domain, once. Curator-side: it sees rows, and its errors are about columns only."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import require_domain
from ..domain import Attribute, Domain
from ..encoding import Codes, Hashed, as_list, columns_of, encode_column, unlisted_text
from ..errors import InputError, SchemaError
from .arrow import encode_arrow, texts_of
from .memory import MemoryTable
from .persons import persons_of


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
    codes = [_codes(columns[a.name], a) for a in domain.attributes]
    if unit is None:
        table = MemoryTable(domain, codes)
    else:
        kept, persons = persons_of(columns[unit])
        table = MemoryTable(domain, [c[kept] for c in codes], persons=persons, unit_column=unit)
    if domain.sought:
        table.source = Columns(columns, unit)
    return table


def _codes(values: Any, attribute: Attribute) -> Codes:
    texts = texts_of(values)
    if texts is None:
        return encode_column(values, attribute)
    return np.concatenate([encode_arrow(chunk, attribute) for chunk in texts])


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
