"""Records in any of the forms in which people hold them, as codes (n, p) under the domain of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..encoding import Codes, columns_of, encode_column
from ..encoding import code_type as smallest_type
from ..errors import InputError


def code_type(domain: Domain) -> np.dtype[Any]:
    """The smallest unsigned integers that hold every code of the domain."""
    return smallest_type(max(domain.shape, default=1))


def encode(records: object, domain: Domain) -> Codes:
    """Codes (n, p) of records: codes already, records drawn from a model, a mapping, a list of mappings, a frame."""
    if hasattr(records, "codes") and hasattr(records, "domain"):
        return _recode(records.codes, records.domain, domain)
    if isinstance(records, np.ndarray) and records.dtype.names is None:
        return check_codes(records, domain)
    if isinstance(records, Sequence) and not isinstance(records, str):
        return _encode_rows(records, domain)
    columns = columns_of(records, domain.names)
    rows = len(next(iter(columns.values()))) if columns else 0
    out = np.empty((rows, len(domain)), dtype=code_type(domain))
    for j, attribute in enumerate(domain.attributes):
        out[:, j] = encode_column(columns[attribute.name], attribute)
    return out


def _encode_rows(rows: Sequence[object], domain: Domain) -> Codes:
    if all(isinstance(row, Mapping) for row in rows):
        for name in domain:
            if any(name not in row for row in rows):  # type: ignore[operator]
                raise InputError(f"a record has no value for column {name!r}; the model needs {list(domain.names)}")
        return encode({name: [row[name] for row in rows] for name in domain}, domain)  # type: ignore[index]
    return check_codes(np.asarray(rows), domain)


def check_codes(codes: NDArray[Any], domain: Domain) -> Codes:
    """An integer array of shape (n, p) with every code inside its column; one record may come without its row axis."""
    codes = codes[None, :] if codes.ndim == 1 and len(domain) != 1 else codes
    codes = codes[:, None] if codes.ndim == 1 else codes
    if codes.ndim != 2 or codes.shape[1] != len(domain):
        raise InputError(f"codes must have shape (n, {len(domain)}), got {codes.shape}")
    if codes.size == 0:
        return codes.astype(code_type(domain))
    if codes.dtype.kind not in "iu":
        raise InputError(f"codes must be integers, got an array of {codes.dtype}; give labels as a frame or a mapping")
    low, high = codes.min(axis=0), codes.max(axis=0)
    for name, size, a, b in zip(domain, domain.shape, low, high, strict=True):
        if a < 0 or b >= size:
            raise InputError(f"column {name!r} has codes 0 … {size - 1}; the records hold a code outside of them")
    return codes


def _recode(codes: Codes, own: Domain, domain: Domain) -> Codes:
    """Codes of records that carry their own domain: the same labels may have other codes there."""
    if own.names == domain.names and all(
        a.labels == b.labels for a, b in zip(own.attributes, domain.attributes, strict=True)
    ):
        return check_codes(codes, domain)
    out = np.empty((len(codes), len(domain)), dtype=code_type(domain))
    for j, attribute in enumerate(domain.attributes):
        table = np.array([attribute.code(label) for label in own[attribute.name].labels])
        out[:, j] = table[codes[:, own.index(attribute.name)]]
    return out
