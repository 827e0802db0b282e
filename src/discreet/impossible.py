"""Structural zeros: combinations of levels that no record can have, as public knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .attribute import Attribute
from .errors import InputError, SchemaError, did_you_mean

Rule = tuple[tuple[str, tuple[str, ...]], ...]
"""Levels that cannot come together: columns, and for each the labels of some of its levels."""


def checked_rules(rules: Any, attributes: Sequence[Attribute]) -> tuple[Rule, ...]:
    """Impossible combinations as a domain keeps them: labels that exist, columns in order, each rule once."""
    if not rules:
        return ()
    known = {a.name: a for a in attributes}
    out: dict[Rule, None] = {}
    for number, rule in enumerate(rules if isinstance(rules, list | tuple) else [None], start=1):
        where = f"[[impossible]] number {number}"
        entries = dict(rule) if isinstance(rule, Mapping | tuple) else {}
        if not entries:
            raise SchemaError(f'{where} must name columns and levels, as in age = "[0, 18)", married = "yes"')
        for name in entries:
            if name not in known:
                raise SchemaError(f"{where}: no column {name!r}{did_you_mean(str(name), known)}")
        labels = {}
        for name in (a.name for a in attributes if a.name in entries):
            levels = entries[name]
            try:
                some = levels if isinstance(levels, list | tuple) else [levels]
                labels[name] = tuple(known[name].labels[c] for c in sorted({known[name].code(each) for each in some}))
            except InputError as error:
                raise SchemaError(f"{where}: {error}") from None
            if not labels[name]:
                raise SchemaError(f"{where}: {name} names no level")
        if all(len(labels[name]) == known[name].size for name in labels):
            raise SchemaError(f"{where} says that every record is impossible; name fewer levels")
        out[tuple(labels.items())] = None
    return tuple(out)
