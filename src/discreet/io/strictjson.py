"""JSON for headers: bounded before it is parsed, without duplicate keys, NaN, infinities or broken Unicode."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FileFormatError, InputError
from .limits import DEFAULT_LIMITS, TRUSTED, Limits

# A string that never ends is consumed as well, so that the scan stays linear on any input.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_LONGEST_INTEGER = 40
PRIVATE_MARK = "must not be published (discreet evaluate)"
"""A key of data that were computed from private rows without protection. No file that may be published takes it."""


def dump_json(value: Any) -> bytes:
    """Readable UTF-8 JSON in the order of the given dictionaries; what could never be read back is refused here.

    Size alone is no reason: a large model that has cost a privacy budget must be saved, and can be read as TRUSTED.
    """
    try:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8") + b"\n"
    except UnicodeEncodeError as error:
        raise InputError(f"a name or label is not valid Unicode: {error.object[:60]!r}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the header cannot be written as JSON: {error}") from None
    refuse_private(data.decode())
    try:
        parse_json(data, TRUSTED)
    except FileFormatError as error:
        raise InputError(f"this would make a file that cannot be read back: {error}") from None
    return data


def finite(value: Any) -> Any:
    """The same for others to read: what is no number of JSON (NaN, an infinity) is null."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_private(text: str) -> None:
    """Refuse text, on its way into a file that may be published, that holds marked figures of private rows."""
    if PRIVATE_MARK in text:
        raise InputError(
            "these figures were computed from private rows without protection (discreet evaluate); they cannot be part "
            "of a release, a card or a ledger. `discreet certify` buys some that can"
        )


def parse_json(data: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Parse a JSON object. Size, depth and number of values are bounded before any of it is built."""
    limits.require("header_bytes", len(data), "the size of its header in bytes,")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"its header is not UTF-8 text (byte {error.start})") from None
    _check_structure(data, limits)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_bounded_integer,
        )
        if "\\u" in text:  # the one way to write lone surrogates, which no terminal can print: refused
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise FileFormatError(f"its header is not JSON: {error.msg} (line {error.lineno}, {error.colno})") from None
    except UnicodeEncodeError:
        raise FileFormatError("its header holds text that is not valid Unicode") from None
    if not isinstance(value, dict):
        raise FileFormatError(f"its header is a {type(value).__name__}, not a JSON object")
    return value


def _check_structure(data: bytes, limits: Limits) -> None:
    bare = np.frombuffer(_STRING.sub(b"", data), dtype=np.uint8)
    opening = (bare == ord("[")) | (bare == ord("{"))
    closing = (bare == ord("]")) | (bare == ord("}"))
    depth = int(np.cumsum(opening.astype(np.int32) - closing.astype(np.int32)).max(initial=0))
    limits.require("header_depth", depth, "the depth of its header,")
    values = int(np.count_nonzero(opening) + np.count_nonzero(bare == ord(",")))
    limits.require("header_values", values, "the number of values in its header,")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise FileFormatError(f"its header gives the key {key[:60]!r} twice")
        out[key] = value
    return out


def _no_constant(text: str) -> Any:
    raise FileFormatError(f"its header holds {text}, which is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FileFormatError(f"its header holds the number {text[:40]}, which is too large")
    return number


def _bounded_integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise FileFormatError(f"its header holds an integer of {len(text)} digits")
    return int(text)
