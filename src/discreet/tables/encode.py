"""From any frame to compact codes under a domain. Total: every value of every row gets a code, and nothing fails.

Encoding is curator-side: it sees rows. Its errors are about public things only (which columns exist).
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute, Domain, level_text
from ..errors import InputError, SchemaError, did_you_mean
from .base import Codes
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
    columns = _columns_of(rows, domain, unit)
    codes = [encode_column(columns[a.name], a) for a in domain.attributes]
    lengths = {len(c) for c in codes}
    if len(lengths) > 1:
        raise InputError("the columns have different lengths; every row needs a value (or a null) in every column")
    if unit is None:
        return MemoryTable(domain, codes)
    people = _as_list(columns[unit])
    if lengths and len(people) != lengths.pop():
        raise InputError(f"the unit column {unit!r} has another length than the others")
    kept, persons = _persons(people)
    return MemoryTable(domain, [c[kept] for c in codes], persons=persons, unit_column=unit)


def encode_column(values: Any, attribute: Attribute) -> Codes:
    """The codes of one column."""
    kind = np.uint8 if attribute.size <= 2**8 else np.uint16 if attribute.size <= 2**16 else np.uint32
    encoded = _encode_numbers(values, attribute) if attribute.is_numeric else _encode_levels(values, attribute)
    return encoded.astype(kind)


def _encode_numbers(values: Any, attribute: Attribute) -> NDArray[np.int64]:
    x = _as_floats(values)
    codes = np.searchsorted(np.asarray(attribute.edges[1:-1], dtype=np.float64), x, side="right")
    outside = attribute.outside_code
    if outside is not None:
        codes = np.where((x < attribute.edges[0]) | (x > attribute.edges[-1]), outside, codes)
    return np.where(np.isnan(x), attribute.missing_code, codes)


def _encode_levels(values: Any, attribute: Attribute) -> NDArray[np.int64]:
    outside = attribute.outside_code
    assert outside is not None
    array = values if isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values) else None
    if array is not None and array.dtype.kind in "iu":
        whole = _whole_levels(attribute)
        if whole is not None:
            return _encode_whole(array, *whole, outside)
    code = _level_codes(attribute)
    items = _as_list(values)
    try:
        return np.fromiter(map(code.get, items, itertools.repeat(outside)), dtype=np.int64, count=len(items))
    except Exception:  # a value that cannot be looked up at all (a list, say) is outside the domain like any other
        return np.fromiter((_look_up(code, v, outside) for v in items), dtype=np.int64, count=len(items))


def _look_up(code: Mapping[Any, int], value: Any, outside: int) -> int:
    try:
        return code.get(value, outside)
    except Exception:  # hashing and comparing run code of the value's own, which may raise anything
        return outside


def _whole_levels(attribute: Attribute) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Levels that are whole numbers of 64 bits, sorted, with their codes; None when a level is not one."""
    numbers = [int(level) for level in attribute.levels if not isinstance(level, bool) and _is_whole(level_text(level))]
    if len(numbers) != len(attribute.levels) or not numbers or not -(2**63) <= min(numbers) <= max(numbers) < 2**63:
        return None
    order = np.argsort(numbers, kind="stable")
    return np.asarray(numbers, dtype=np.int64)[order], order.astype(np.int64)


def _encode_whole(
    x: NDArray[Any], levels: NDArray[np.int64], codes: NDArray[np.int64], outside: int
) -> NDArray[np.int64]:
    position = np.minimum(np.searchsorted(levels, x), len(levels) - 1)
    return np.where(levels[position] == x, codes[position], outside)


def _level_codes(attribute: Attribute) -> dict[Any, int]:
    """Everything that means a level: the level itself, its label, and for booleans the usual spellings.

    Python finds 1, 1.0 and True under one key, so numbers of any type reach a level that is a whole number.
    """
    codes: dict[Any, int] = {}
    for code, level in enumerate(attribute.levels):
        spellings: list[Any] = [level, level_text(level)]
        if isinstance(level, bool):
            spellings += [str(level), str(level).upper()]
        elif isinstance(level, str) and _is_whole(level):
            spellings += [int(level)]
        for spelling in spellings:
            codes.setdefault(spelling, code)
    for code, level in enumerate(attribute.levels):  # last, as Python cannot tell True from the level 1
        if level in ("true", "false"):
            codes.setdefault(level == "true", code)
    for label in (attribute.missing, attribute.other):
        if label is not None:
            codes.setdefault(label, attribute.code(label))
    codes[None] = attribute.missing_code
    return codes


def _is_whole(text: str) -> bool:
    """Whether a label is the plain spelling of a whole number ("7", not "07"), of a length that Python reads."""
    return len(text) <= 4000 and re.fullmatch(r"0|-?[1-9][0-9]*", text) is not None


# -- getting columns out of what people have -------------------------------------------------------------------------


def _columns_of(rows: Any, domain: Domain, unit: str | None) -> Mapping[str, Any]:
    wanted = [*domain.names, *([unit] if unit is not None and unit not in domain else [])]
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        if rows.ndim != 2 or rows.shape[1] != len(domain) or unit is not None:
            raise InputError(
                f"a plain array must have one column for each of the {len(domain)} columns of the domain, in order, "
                f"and no unit column; got an array of {rows.ndim} dimensions"
            )
        return {name: rows[:, i] for i, name in enumerate(domain.names)}
    if isinstance(rows, np.ndarray):
        known: Sequence[str] = rows.dtype.names or ()
        source: Any = rows
    elif isinstance(rows, Mapping):
        known, source = list(rows), rows
    else:
        try:
            source = nw.from_native(rows, eager_only=True)
        except TypeError:
            raise InputError(
                f"cannot read rows from {type(rows).__name__}; give a pandas, polars or Arrow frame, a mapping from "
                "names to arrays, or a NumPy array"
            ) from None
        known = source.columns
    for name in wanted:
        if name not in known:
            role = "unit column" if name == unit else "column of the schema"
            raise InputError(f"the rows have no column {name!r} ({role}){did_you_mean(name, known)}")
    return {name: source[name] for name in wanted}


def _as_list(values: Any) -> list[Any]:
    """Python values with None for every kind of null."""
    if isinstance(values, nw.Series):
        return [_none_of_null(v) for v in values.to_list()]
    if np.ma.isMaskedArray(values):
        items = values.tolist()  # masked entries become None
    elif isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        items = list(values)  # dates, which tolist would turn into whole numbers
    else:
        items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [_none_of_null(v) for v in items]


def _none_of_null(value: Any) -> Any:
    """NaN, NaT and pandas' NA are nulls too. Comparing them with themselves is what tells."""
    if value is None or isinstance(value, str | int):
        return value
    try:
        return value if bool(value == value) else None
    except Exception:  # a comparison is the value's own code: an array, pandas' NA or a signalling NaN may raise
        return None


def _as_floats(values: Any) -> NDArray[np.float64]:
    """Numbers with NaN for nulls; text that spells a number is read, anything else is a null."""
    if isinstance(values, nw.Series) and values.dtype.is_numeric():
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values) and values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":  # a date is no number, in any frame
        return np.full(values.shape, math.nan)
    return np.array([_float_or_nan(v) for v in _as_list(values)], dtype=np.float64)


def _float_or_nan(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a number beyond all floats
        return math.inf if value > 0 else -math.inf
    except Exception:
        return math.nan


def _persons(values: Any) -> tuple[NDArray[np.int64], Persons]:
    """Rows that have a person, and who that is. Rows without one are left out (see PrivacyUnit)."""
    items = [v if _is_hashable(v) else repr(v) for v in _as_list(values)]
    kept = np.flatnonzero(np.fromiter((v is not None for v in items), dtype=bool, count=len(items)))
    first_seen: dict[Any, int] = {}
    owner = np.fromiter(
        map(first_seen.setdefault, (items[i] for i in kept), itertools.count()), dtype=np.int64, count=len(kept)
    )
    _, owner = np.unique(owner, return_inverse=True)
    digests = [hashlib.blake2b(_spelling(p), digest_size=8).digest() for p in first_seen]
    identity = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return kept, Persons(owner.astype(np.int64), identity)


def _spelling(person: Any) -> bytes:
    try:
        return level_text(person).encode("utf-8", "surrogatepass")
    except Exception:  # a number of more digits than Python spells out, say
        return str(hash(person)).encode()


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:
        return False
    return True
