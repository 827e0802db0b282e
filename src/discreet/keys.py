"""The keys of a column in a schema file: which there are, and what kind of value each has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .dates import Dates
from .errors import WEIGHTS_REFUSED, SchemaError, did_you_mean
from .sought import KEYS, Sought, sought_in

_KINDS: dict[str, type] = {
    "levels": list,
    "edges": list,
    "missing": str,
    "other": str,
    "outside": str,
    "integer": bool,
    "peeked": list,
    "heaps": list,
    "decimals": int,
    "step": float,
    "dates": dict,
    "missing_values": list,
    "strip": bool,
    "ignore_case": bool,
    "found": list,
    "spread": list,
    "groups": dict,
}
_KIND_WORDS = {
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: 'a table such as {from = 2019-01-01, to = 2024-12-31, by = "month"}',
}


def read_keys(entry: Mapping[str, Any]) -> tuple[dict[str, Any], Sought | None]:
    """What stands under the keys, and what is to be found. Unknown keys are an error, so that a misspelt one is not
    silently ignored."""
    for key in entry:  # before what belongs together is looked at: a misspelt key is missing there, too
        if key in ("weight", "weights"):
            raise SchemaError(WEIGHTS_REFUSED)
        if key not in _KINDS and key not in KEYS:
            raise SchemaError(f"unknown key {key!r}{did_you_mean(key, (*_KINDS, *KEYS))}")
    sought, entry = sought_in(entry)
    for key in entry:
        kind = _KINDS[key]
        accepted = (int, float) if kind is float else kind
        if not isinstance(entry[key], accepted) or (kind in (int, float) and isinstance(entry[key], bool)):
            raise SchemaError(f"{key} must be {_KIND_WORDS[kind]}")
    for key in ("peeked", "found"):
        if not all(isinstance(word, str) for word in entry.get(key, ())):
            raise SchemaError(f"{key} must be a list of strings")
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    if "dates" in entry:
        fields["dates"] = Dates.from_dict(entry["dates"])
    return fields, sought
