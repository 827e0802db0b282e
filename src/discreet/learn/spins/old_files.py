"""Sums of spins in files of the first versions, which named what was measured in labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ...measurement import Measurement, Measurements

_ALL_PAIRS, _PAIRS = "means and all pair sums", "means and sums of pairs"
_BINARY = {"parities": "order", "chosen parities": "again"}


def up_to_date(measurements: Measurements) -> Measurements:
    """The same measurements, each saying which parities it holds; those of today are left as they are."""
    if all(m.clique is not None or m.about for m in measurements):
        return measurements
    facts = measurements.release.get("parities")
    facts = facts if isinstance(facts, Mapping) else {}
    items = [m if m.clique is not None or m.about else replace(m, about=_about(m, facts)) for m in measurements]
    all_again = sum(m.label == _ALL_PAIRS for m in measurements) > 1
    release = {key: value for key, value in measurements.release.items() if key != "parities"}
    return Measurements(items, {**release, "found": {"dense": facts.get("dense") is True or all_again}})


def _about(m: Measurement, facts: Mapping[str, Any]) -> dict[str, Any]:
    names = m.domain.names
    if m.label in _BINARY and _BINARY[m.label] in facts:
        return {"parities": facts[_BINARY[m.label]]}
    if m.label == _ALL_PAIRS:
        return {"parities": min(2, len(names))}
    if m.label.startswith(_PAIRS):
        found = [(int(i), int(j)) for i, j in re.findall(r" (\d+)-(\d+)", m.label.removeprefix(_PAIRS))]
        if all(i < j < len(names) for i, j in found):
            return {"parities": [*([n] for n in names), *([names[i], names[j]] for i, j in found)]}
    raise InputError(f"{m.label[:80]!r} are not sums of the spins of these columns, as SpinField.measure gives them")
