"""From labels to codes, in any of the forms in which people hold records.

The way in is *total*, as :class:`~discreet.domain.Attribute` promises: a value outside the domain goes to the level
that the schema names for it, an absent one to the missing level; nothing depends on what else the rows hold, and no
message repeats a value of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute, Domain
from ..errors import InputError

Codes = NDArray[np.integer[Any]]


def code_type(domain: Domain) -> np.dtype[Any]:
    """The smallest unsigned integers that hold every code of the domain."""
    return np.min_scalar_type(max(domain.shape, default=1) - 1)


def encode_column(values: object, attribute: Attribute) -> Codes:
    """Codes of a column of values (labels, numbers, None): total, whatever the values are."""
    array = np.asarray(values) if not isinstance(values, np.ndarray) else values
    if array.ndim != 1:
        raise InputError(f"column {attribute.name!r} must be a list of values, got an array of shape {array.shape}")
    if array.dtype.kind in "iuf" and attribute.is_numeric:
        return _bin_codes(array.astype(np.float64), attribute)
    if array.dtype.kind in "iufb":
        distinct, inverse = np.unique(array, return_inverse=True)
        return np.array([_code(v, attribute) for v in distinct.tolist()], dtype=np.int64)[inverse]
    memo: dict[object, int] = {}
    out = np.empty(len(array), dtype=np.int64)
    for row, value in enumerate(array.tolist()):
        key = (value.__class__, value)
        code = memo.get(key)
        if code is None:
            code = memo[key] = _code(value, attribute)
        out[row] = code
    return out


def _bin_codes(x: NDArray[np.float64], attribute: Attribute) -> Codes:
    edges = np.asarray(attribute.edges)
    codes = np.searchsorted(edges[1:-1], x, side="right").astype(np.int64)
    if attribute.outside_code is not None:
        codes[(x < edges[0]) | (x > edges[-1])] = attribute.outside_code
    codes[np.isnan(x)] = attribute.missing_code
    return codes


def _code(value: object, attribute: Attribute) -> int:
    """Code of one value: a level, its label, or for numbers whatever falls in a bin.

    Numbers of any type reach a level that equals them: frames turn integers with gaps into floats.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:  # NaN is not itself
        return attribute.missing_code
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return attribute.code(value)
    except InputError:
        pass
    if attribute.is_numeric:
        try:
            return int(_bin_codes(np.array([float(value)]), attribute)[0])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return attribute.missing_code
    if isinstance(value, int | str):
        for code, level in enumerate(attribute.levels):
            if level == value or (isinstance(level, bool) and str(level).lower() == str(value).lower()):
                return code
    return attribute.outside_code or 0


def encode(records: object, domain: Domain) -> Codes:
    """Codes (n, p) of records: codes already, records drawn from a model, a mapping, a list of mappings, a frame."""
    if hasattr(records, "codes") and hasattr(records, "domain"):
        return _recode(records.codes, records.domain, domain)
    if isinstance(records, np.ndarray):
        return check_codes(records, domain)
    if isinstance(records, Mapping):
        columns = [_as_column(records[name]) for name in _require(domain, list(records))]
    elif isinstance(records, Sequence) and not isinstance(records, str):
        return _encode_rows(records, domain)
    else:
        try:
            frame: Any = nw.from_native(records)
        except TypeError:
            raise InputError(
                "records must be an integer array of codes, a mapping from names to lists, a list of mappings, "
                f"or a pandas, polars or Arrow frame; got {type(records).__name__}"
            ) from None
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        return _encode_frame(frame, domain)
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise InputError("the columns of the records differ in length")
    out = np.empty((lengths.pop() if lengths else 0, len(domain)), dtype=code_type(domain))
    for j, (attribute, column) in enumerate(zip(domain.attributes, columns, strict=True)):
        out[:, j] = encode_column(column, attribute)
    return out


def _require(domain: Domain, present: Sequence[str]) -> tuple[str, ...]:
    """The names of the domain, all of which the records must have; other columns are of no concern."""
    absent = [name for name in domain if name not in present]
    if absent:
        raise InputError(f"the records have no column {absent[0]!r}; the model needs {list(domain.names)}")
    return domain.names


def _encode_frame(frame: Any, domain: Domain) -> Codes:
    out = np.empty((len(frame), len(domain)), dtype=code_type(domain))
    for j, name in enumerate(_require(domain, frame.columns)):
        series = frame[name]
        if series.dtype in (nw.String, nw.Categorical, nw.Enum):
            out[:, j] = _encode_texts(series, domain[name])
        else:
            out[:, j] = encode_column(series.to_numpy(), domain[name])
    return out


def _encode_texts(series: Any, attribute: Attribute) -> NDArray[Any]:
    """Each distinct text is looked at once, and the frame's own engine puts the codes in."""
    texts = series if series.dtype == nw.String else series.cast(nw.String)
    absent = texts.is_null().to_numpy()
    distinct = texts.drop_nulls().unique().to_list()
    if not distinct:
        return np.full(len(absent), attribute.missing_code)
    filled = texts.fill_null(distinct[0])
    codes = filled.replace_strict(distinct, [_code(t, attribute) for t in distinct], return_dtype=nw.Int64).to_numpy()
    return np.where(absent, attribute.missing_code, codes)


def _as_column(values: object) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    column = np.empty(len(listed), dtype=object)  # np.array would turn [1, None] or [1, "a"] into something else
    column[:] = listed
    return column


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
