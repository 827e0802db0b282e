"""From values to codes, in any of the forms in which people hold columns.

Total, as :class:`~discreet.domain.Attribute` promises: every value has a code, and nothing fails on what a row holds.
And one by one: the code of a value never depends on what else the column holds, which privacy proofs rely on. What
is private stays out of every message.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dates import NOT_A_TIME, moments_of
from .domain import Attribute, level_text
from .errors import InputError, did_you_mean
from .spelling import WHOLE

Codes = NDArray[np.integer[Any]]
_LARGEST_LOOKUP = 1 << 16
_TEXTS = frozenset({str, type(None)})
_PLAIN = frozenset({int, float, bool}) | _TEXTS


def code_type(levels: int) -> np.dtype[Any]:
    """The smallest unsigned integers that hold so many codes."""
    return np.min_scalar_type(max(levels, 1) - 1)


def can_hold(dtype: np.dtype[Any], levels: int) -> bool:
    """Whether codes of so many levels fit this type; others would wrap around, and count as somebody else's."""
    return dtype.kind in "iu" and bool(np.iinfo(dtype).max >= levels - 1)


def form_of(values: Any) -> str:
    """What kind of values a column is declared to hold, in words. A dtype spelled out may tell of the values: the
    length of the longest text (``<U14``), the digits of the largest number (``decimal128(7, 2)``).
    """
    kind = getattr(getattr(values, "dtype", values), "kind", "O")
    words = {"b": "true or false", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "c": "complex numbers"}
    return {**words, "U": "text", "S": "bytes", "M": "dates", "m": "durations"}.get(kind, "objects")


@dataclass(frozen=True)
class Hashed(Attribute):
    """A column of which the levels are not known: every text that is no level, no word for missing and not absent has a
    number of its own, made from the text and a secret key, and all else is 0. For counting texts, inside, before any is
    released.

    Two texts share a number with probability 2⁻⁶³, whatever they are, as nobody knows the key. They would be counted
    together: how far a record moves the counts stays the same, but the wrong text may come out. That is part of δ
    (:func:`discreet.privacy.mechanisms.gaussian_threshold`).
    """

    key: bytes = field(default=b"", repr=False)
    size = 2**63

    @classmethod
    def of(cls, attribute: Attribute, key: bytes) -> Hashed:
        """The same column, read as the attribute reads it, with its unlisted texts kept apart."""
        own = {f.name: getattr(attribute, f.name) for f in fields(Attribute)}
        return cls(**{**own, "sought": None}, key=key)

    def number(self, text: str | None) -> int:
        """A number from 1 to 2⁶³ − 1 for a text, the same on every machine that has the key; 0 for none."""
        if text is None:
            return 0
        digest = hashlib.blake2b(text.encode(), key=self.key, digest_size=8).digest()
        return 1 + int.from_bytes(digest, "little") % (2**63 - 1)

    def among(self, texts: Iterable[str | None], numbers: Container[int]) -> dict[int, str]:
        """Those of the texts that have one of these numbers, by their number."""
        return {number: text for text in texts if text is not None and (number := self.number(text)) in numbers}


def encode_column(values: Any, attribute: Attribute) -> Codes:
    """Codes of a column: a series of a frame, an array (masked or not), or a list of values."""
    if isinstance(attribute, Hashed):
        if _is_series_of_dates(values):  # no date is a text
            return np.zeros(len(values), dtype=np.uint64)
        texts = [unlisted_text(v, attribute) for v in as_list(values)]
        numbers = {text: attribute.number(text) for text in set(texts)}
        return np.fromiter((numbers[text] for text in texts), np.uint64, len(texts))
    codes = _encode_series(values, attribute) if is_series(values) else _encode_array(values, attribute)
    return codes.astype(code_type(attribute.size), copy=False)


def code_of(value: Any, attribute: Attribute) -> int:
    """Code of one value: a level in any spelling, a number within a bin, or where the schema sends the rest.

    Hashing, comparing and spelling run code of the value's own, which may raise anything; it is outside then.
    """
    if _is_null(value):
        return attribute.missing_code
    if attribute.dates is not None:
        moment = attribute.dates.moment(value)
        if moment is not None:
            return int(period_codes(np.array([moment]), attribute)[0])
    known = _code_of_level(value, attribute)
    if known is not None:
        return known
    outside = attribute.outside_code
    if attribute.is_numeric:
        x = _as_float(value)
        if not math.isnan(x):
            return int(bin_codes(np.array([x]), attribute)[0])
    return attribute.missing_code if outside is None else outside


def unlisted_text(value: Any, attribute: Attribute) -> str | None:
    """The text of a value that is neither absent nor a level of the attribute; None for all others, and for what has no
    plain spelling, which no file could hold."""
    if _is_null(value) or _code_of_level(value, attribute) is not None:
        return None
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float | np.integer | np.floating):
        return None
    try:
        text = attribute.spelling(level_text(value))
        text.encode()
        return text
    except ValueError:  # more digits than Python spells out, or half a character
        return None


def bin_codes(x: NDArray[np.float64], attribute: Attribute) -> NDArray[np.int64]:
    """Codes of numbers under a numeric attribute."""
    codes = np.searchsorted(np.asarray(attribute.edges[1:-1], dtype=np.float64), x, side="right").astype(np.int64)
    if attribute.outside_code is not None:
        codes[(x < attribute.edges[0]) | (x > attribute.edges[-1])] = attribute.outside_code
    if attribute.missing_numbers:
        codes[np.isin(x, attribute.missing_numbers)] = attribute.missing_code
    for place, heap in enumerate(attribute.heaps):
        codes[x == heap] = attribute.bins + place
    codes[np.isnan(x)] = attribute.missing_code
    return codes


def period_codes(moments: NDArray[np.int64], attribute: Attribute) -> NDArray[np.int64]:
    """Codes of moments, in microseconds since 1970, under an attribute of dates."""
    dates, outside = attribute.dates, attribute.outside_code
    assert dates is not None
    codes = dates.codes(moments)
    last = len(dates.labels) - 1
    if outside is None:
        codes = np.clip(codes, 0, last)
    else:
        codes[(codes < 0) | (codes > last)] = outside
    absent = [m for m in map(dates.moment, attribute.missing_values) if m is not None]
    codes[np.isin(moments, [NOT_A_TIME, *absent])] = attribute.missing_code
    return codes


def is_series(values: Any) -> bool:
    """A column of a frame. Commands that read none start without narwhals, and then nothing can be one; nor while
    another thread is about to import it."""
    series = getattr(sys.modules.get("narwhals"), "Series", None)
    return series is not None and isinstance(values, series)


def _is_series_of_dates(values: Any) -> bool:
    if not is_series(values):
        return False
    import narwhals as nw  # it is there

    return isinstance(values.dtype, nw.Date | nw.Datetime)


def as_column(values: Any) -> Any:
    """A series or array as it is; anything else as a list, without NumPy's ideas about mixed types."""
    if isinstance(values, np.ndarray) or is_series(values):
        return values
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


def columns_of(rows: Any, wanted: Sequence[str]) -> dict[str, Any]:
    """The named columns of a frame, a mapping or a structured array; the others are not looked at."""
    known: Sequence[str]
    source: Any
    if isinstance(rows, np.ndarray):
        known, source = rows.dtype.names or (), rows
    elif isinstance(rows, Mapping):
        known, source = list(rows), rows
    else:
        import narwhals as nw
        from narwhals.exceptions import DuplicateError

        try:
            source = nw.from_native(rows)
            known = source.collect_schema().names() if isinstance(source, nw.LazyFrame) else source.columns
        except DuplicateError:
            raise InputError(
                "several columns of the rows have the same name; give each a name of its own, or leave out those that "
                "the schema does not name"
            ) from None
        except TypeError:
            raise InputError(
                f"cannot read rows from {type(rows).__name__}; give a pandas, polars or Arrow frame, a mapping from "
                "names to lists, or a NumPy array"
            ) from None
        if isinstance(source, nw.LazyFrame):
            source = source.collect()
    for name in wanted:
        if name not in known:
            # Names are suggested only when some are as expected: those of a file without a header would be a row.
            hint = did_you_mean(name, known) if any(w in known for w in wanted) else ""
            raise InputError(f"the rows have no column {name!r}{hint}")
    columns = {name: as_column(source[name]) for name in wanted}
    if len({len(c) for c in columns.values()}) > 1:
        raise InputError("the columns differ in length; every row needs a value (or a null) in every column")
    return columns


def as_list(values: Any) -> list[Any]:
    """Python values with None for every kind of null."""
    return [None if _is_null(v) else v for v in _items(values)]


# -- inside ----------------------------------------------------------------------------------------------------------


def _items(values: Any) -> list[Any]:
    if is_series(values):
        with _quietly():
            return list(values.to_list())
        # a value that Python cannot hold (year 29349) must not decide what becomes of the others
        return [_item(values, i) for i in range(len(values))]
    if isinstance(values, np.ndarray) and values.dtype.kind not in "mM":  # dates would become whole numbers
        return list(values.tolist())  # masked entries become None
    return list(values)


@contextmanager
def _quietly() -> Iterator[None]:
    """Frames fail in their own ways on a value that they hold and Python cannot: polars with what is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        pass


class Unreadable:
    """In place of a value that Python cannot hold: no level, no number, nobody."""

    def __str__(self) -> str:
        raise ValueError("this value cannot be read")

    __repr__ = __str__


def _item(series: Any, i: int) -> Any:
    with _quietly():
        return series[i : i + 1].to_list()[0]
    return Unreadable()


def _encode_series(series: Any, attribute: Attribute) -> NDArray[np.int64]:
    # Frames that look up, cast or deduplicate texts do so column by column, and let one value change how another is
    # read (a null among whole-number categories, True beside 1). So all but plain numbers are looked up by ourselves.
    if (series.dtype.is_integer() or series.dtype.is_float()) and not series.is_null().any():
        return _encode_array(series.to_numpy(), attribute)
    if _is_series_of_dates(series):
        if attribute.dates is None:  # no date is a level or a number: none is read, as some of them crash old frames
            some = code_of(np.datetime64(0, "s"), attribute)
            return np.where(series.is_null().to_numpy(), attribute.missing_code, some).astype(np.int64)
        codes = _encode_clock(series, attribute)
        if codes is not None:
            return codes
        # What a frame cannot hand over as a whole is read value by value, and in the same way: one that is beyond the
        # calendar must not decide how others are read.
        alone = ((i, _encode_clock(series[i : i + 1], attribute)) for i in range(len(series)))
        each = [code_of(_item(series, i), attribute) if code is None else int(code[0]) for i, code in alone]
        return np.array(each, dtype=np.int64)
    return _encode_list(_items(series), attribute)


def _encode_clock(series: Any, attribute: Attribute) -> NDArray[np.int64] | None:
    """Codes of dates and times as their clocks show them; None where the frame cannot tell."""
    with _quietly():
        clock = series if getattr(series.dtype, "time_zone", None) is None else series.dt.replace_time_zone(None)
        moments = clock.to_numpy()
        if moments.dtype.kind == "M":
            return _encode_moments(moments, attribute)
    return None


def _encode_moments(values: NDArray[Any], attribute: Attribute) -> NDArray[np.int64]:
    return period_codes(moments_of(values), attribute)


def _encode_array(values: Any, attribute: Attribute) -> NDArray[np.int64]:
    if isinstance(values, np.ndarray) and values.dtype.kind == "M" and attribute.dates is not None and values.ndim == 1:
        if np.ma.isMaskedArray(values):
            values = values.filled(np.datetime64("NaT"))
        return _encode_moments(values, attribute)
    if not isinstance(values, np.ndarray) or np.ma.isMaskedArray(values) or values.dtype.kind not in "iufb":
        return _encode_list(_items(values), attribute)
    if values.ndim != 1:
        raise InputError(f"column {attribute.name!r} must be one-dimensional, got an array of {values.ndim} dimensions")
    if attribute.is_numeric:
        with np.errstate(all="ignore"):  # a warning would be about a value
            return bin_codes(values.astype(np.float64), attribute)
    if values.dtype.kind in "iu" and attribute.dates is None:
        return _encode_whole(values, attribute)
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([code_of(v, attribute) for v in distinct.tolist()], dtype=np.int64)[inverse]


def _encode_whole(values: NDArray[np.integer[Any]], attribute: Attribute) -> NDArray[np.int64]:
    """Whole numbers under levels: the few that spell one are looked up, all others share a code."""
    spelled = {0, 1} if attribute.levels and isinstance(attribute.levels[0], bool) else set()
    spelled |= {int(label) for label in attribute.spelled if WHOLE.fullmatch(label)}
    limits = np.iinfo(values.dtype)
    known = sorted(v for v in spelled if limits.min <= v <= limits.max)
    rest = next(v for v in range(len(spelled) + 1) if v not in spelled)
    codes = np.array([*(code_of(v, attribute) for v in known), code_of(rest, attribute)], dtype=np.int64)
    if not known:
        return np.full(len(values), codes[-1])
    first, last = known[0], known[-1]
    numbers = np.array(known, dtype=values.dtype)
    if last - first >= _LARGEST_LOOKUP:
        place = np.minimum(np.searchsorted(numbers, values), len(known) - 1)
        return codes[np.where(numbers[place] == values, place, len(known))]
    lookup = np.full(last - first + 2, codes[-1])
    lookup[[v - first for v in known]] = codes[:-1]
    inside = (values >= numbers[0]) & (values <= numbers[-1])
    # Differences wrap around where they are outside; those are not looked up.
    offset = values.astype(np.uint64) - np.uint64(first % 2**64)
    return lookup[np.where(inside, offset, np.uint64(last - first + 1)).astype(np.intp)]


class _Texts(dict[Any, int]):
    """Codes of texts, and of None."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute

    def __missing__(self, text: str | None) -> int:
        code = self[text] = code_of(text, self._attribute)
        return code


class _Memo(dict[tuple[type, Any], int]):
    """Codes by type and value (1, 1.0 and True are one dictionary key, but not always one level)."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute

    def __missing__(self, key: tuple[type, Any]) -> int:
        code = self[key] = code_of(key[1], self._attribute)
        return code


def _codes_of(values: list[Any], attribute: Attribute) -> NDArray[np.int64]:
    """As :func:`code_of`, value by value; numbers are binned together."""
    if not attribute.is_numeric:
        return np.fromiter((code_of(v, attribute) for v in values), np.int64, len(values))
    x = np.fromiter((math.nan if _is_null(v) else _as_float(v) for v in values), np.float64, len(values))
    codes = bin_codes(x, attribute)
    odd = np.flatnonzero(np.isnan(x))
    codes[odd] = [code_of(values[i], attribute) for i in odd]
    return codes


def _encode_list(items: list[Any], attribute: Attribute) -> NDArray[np.int64]:
    if attribute.is_numeric:
        return _codes_of(items, attribute)
    kinds = set(map(type, items))
    if not kinds <= _PLAIN:  # others may compare and hash as they like, or not at all
        return _codes_of(items, attribute)
    if kinds <= _TEXTS:
        return np.fromiter(map(_Texts(attribute).__getitem__, items), np.int64, len(items))
    memo = _Memo(attribute)
    return np.fromiter(map(memo.__getitem__, zip(map(type, items), items, strict=True)), np.int64, len(items))


def _code_of_level(value: Any, attribute: Attribute) -> int | None:
    """The level that a value spells. Numbers of any type reach a level that equals them: frames turn whole numbers
    with gaps into floats, and booleans into numbers."""
    if isinstance(value, bool | np.bool_):
        plain, number = ("true", "1") if value else ("false", "0")
        return attribute.spelled.get(attribute.spelling(plain), attribute.spelled.get(number))
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float | np.integer | np.floating):
        return None
    try:
        label = level_text(value)
    except ValueError:  # more digits than Python spells out
        return None
    if attribute.levels and isinstance(attribute.levels[0], bool):
        label = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}.get(label, label)
        if not isinstance(value, str):
            label = {"1": "true", "0": "false"}.get(label, label)
    if attribute.strip and not label.strip():  # nothing but spaces is nothing
        return attribute.spelled.get("", attribute.missing_code)
    return attribute.spelled.get(attribute.spelling(label))


def _as_float(value: Any) -> float:
    """A number, or text that spells one; NaN for anything else. A date is no number, in any frame."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a number beyond all floats
        return math.inf if value > 0 else -math.inf
    except Exception:
        return math.nan


def _is_null(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA: what is not equal to itself, or cannot say whether it is."""
    if value is None or isinstance(value, str | int):
        return value is None
    try:
        return not bool(value == value)
    except Exception:
        return True
