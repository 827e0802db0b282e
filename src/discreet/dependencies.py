"""Rules of a schema that are more than single combinations, as public knowledge: what determines what, what occurs only
with what, and which numbers add up.

    [[determines]]                     # a public table says which county a zip code is in
    columns = ["zip"]
    column = "county"
    table = "zips.csv"                 # or map = {"10115" = "Berlin"}; with neither, it is read off the model

    [[only_with]]                      # the first only where the second
    levels = {pregnant = "yes"}
    with = {sex = "F"}

    [[sums]]                           # parts that are not negative, and their total
    total = "income"
    parts = ["wage", "interest"]

What is known by labels becomes combinations that cannot happen (``impossible.py``). The others stay as they are: a sum
is about numbers, and what is read off the model is not known before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .attribute import Attribute
from .conditions import NumberLine, number_line
from .errors import InputError, SchemaError, did_you_mean
from .impossible import Rule

KEYS = ("determines", "only_with", "sums")


@dataclass(frozen=True)
class Dependency:
    """``kind`` "determines": the columns ``names`` determine ``result``, in a way that the model is to say; "sum": the
    numbers of ``names`` add up to those of ``result``, and none is negative."""

    kind: str
    names: tuple[str, ...]
    result: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.names, self.result)

    def __str__(self) -> str:
        if self.kind == "sum":
            return f"{self.result} = {' + '.join(self.names)}"
        return f"{', '.join(self.names)} determine{'s' if len(self.names) == 1 else ''} {self.result}"


def checked_dependencies(found: Any, attributes: Sequence[Attribute]) -> tuple[Dependency, ...]:
    known_names = {a.name: a for a in attributes}
    out = tuple(dict.fromkeys(found))
    for dependency in out:
        for name in dependency.columns:
            if name not in known_names:
                raise SchemaError(f"[[{_key(dependency)}]]: no column {name!r}{did_you_mean(name, known_names)}")
            if dependency.kind == "sum" and not (known_names[name].is_numeric or known_names[name].sought is not None):
                raise SchemaError(f"[[sums]]: column {name!r} must hold numbers, in bins with edges")
        if len(set(dependency.columns)) != len(dependency.columns):
            raise SchemaError(f"[[{_key(dependency)}]]: name each column once, got {list(dependency.columns)}")
        if dependency.kind == "sum":
            for name in dependency.names:
                line = number_line(known_names[name])
                if line is not None and line.ends[0] < 0:
                    raise SchemaError(f"[[sums]]: the numbers of {name!r} may be negative; parts of a sum may not")
    return out


def read_dependencies(
    schema: Mapping[str, Any], attributes: Sequence[Attribute]
) -> tuple[list[Any], tuple[Dependency, ...]]:
    """Of the keys of a schema file: combinations that cannot happen, and what is left."""
    by_name = {a.name: a for a in attributes}
    rules: list[Any] = []
    left: list[Dependency] = []
    for key in KEYS:
        entries = schema.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise SchemaError(f"{key} are written as [[{key}]], in double brackets")
        for number, entry in enumerate(entries, start=1):
            where = f"[[{key}]] number {number}"
            try:
                if key == "determines":
                    found, dependency = _determines(entry, by_name, where)
                    rules += found
                    left += [dependency] if dependency is not None else []
                elif key == "only_with":
                    rules += _only_with(entry, by_name, where)
                else:
                    _only_keys(entry, {"total": str, "parts": list}, where)
                    left.append(Dependency("sum", tuple(entry["parts"]), entry["total"]))
            except InputError as error:
                raise SchemaError(f"{where}: {error}") from None
    return rules, tuple(left)


def to_schema(dependencies: Sequence[Dependency]) -> dict[str, list[dict[str, Any]]]:
    """The schema-file form of what :func:`read_dependencies` left."""
    out: dict[str, list[dict[str, Any]]] = {}
    for d in dependencies:
        entry: dict[str, Any] = {"total": d.result, "parts": list(d.names)}
        if d.kind == "determines":
            entry = {"columns": list(d.names), "column": d.result}
        out.setdefault(_key(d), []).append(entry)
    return out


def zeros_of(dependencies: Sequence[Dependency], attributes: Mapping[str, Attribute]) -> tuple[Rule, ...]:
    """What sums say about single pairs: a part is at most the total, and the parts together reach it."""
    out: list[Rule] = []
    for dependency in dependencies:
        if dependency.kind != "sum" or any(attributes[name].sought for name in dependency.columns):
            continue
        spans = {name: code_spans(attributes[name]) for name in dependency.columns}
        total = attributes[dependency.result]
        for name in dependency.names:
            rest = sum(max(high for _, high in spans[n].values()) for n in dependency.names if n != name)
            for code, (low, high) in spans[name].items():
                never = [t for t, (a, b) in spans[total.name].items() if low > b or high + rest < a]
                if never:
                    labels = {name: (attributes[name].labels[code],), total.name: tuple(total.labels[t] for t in never)}
                    out.append(tuple((n, labels[n]) for n in attributes if n in labels))
    return tuple(out)


def code_spans(attribute: Attribute) -> dict[int, tuple[float, float]]:
    """The smallest and the largest number of each code that is a number."""
    line = number_line(attribute)
    assert line is not None
    spans = {code: (x, x) for code, x in line.points.items()}
    for b in range(line.bins):
        spans[b] = _ends(line, b)
    return spans


def _ends(line: NumberLine, b: int) -> tuple[float, float]:
    low, high = line.edges[b], line.edges[b + 1]
    scale = line.scale
    if scale is None:
        return low, high
    first, last = math.ceil(low * scale - 1e-6), math.ceil(high * scale - 1e-6) - 1
    last += b == line.bins - 1
    taken = {round(x * scale) for x in line.points.values()}
    while first < last and first in taken:
        first += 1
    while first < last and last in taken:
        last -= 1
    return first / scale, last / scale


def _determines(
    entry: Mapping[str, Any], attributes: Mapping[str, Attribute], where: str
) -> tuple[list[dict[str, list[str]]], Dependency | None]:
    _only_keys(entry, {"columns": list, "column": str}, where, optional={"map": dict, "pairs": list, "table": str})
    names, result = tuple(entry["columns"]), entry["column"]
    if "table" in entry:
        raise SchemaError(f"{where}: the table {entry['table']!r} is read with the schema file, by load_schema")
    if "map" not in entry and "pairs" not in entry:
        return [], Dependency("determines", names, result)
    if len(names) != 1:
        raise SchemaError(f"{where}: a map or a table is from one column; without it several may determine another")
    for name in (*names, result):
        if name not in attributes:
            raise SchemaError(f"{where}: no column {name!r}{did_you_mean(str(name), attributes)}")
    pairs = entry.get("pairs") or list(entry["map"].items())
    by, to = attributes[names[0]], attributes[result]
    for attribute in (by, to):
        if attribute.sought is not None:
            raise SchemaError(
                f"{where}: the levels of {attribute.name!r} are to be found, so no map can name them before; without "
                "map and table, what determines what is read off the model"
            )
    codes: dict[int, int] = {}
    for a, b in pairs:
        try:
            code = by.code(a)
        except InputError:
            continue  # a table may know more than occurs
        if codes.setdefault(code, to.code(b)) != to.code(b):
            raise SchemaError(f"{where}: {names[0]} = {a!r} has two values of {result}")
    if not codes:
        raise SchemaError(f"{where}: none of the values that are named is a level of {names[0]!r}")
    rules = []
    for target in sorted(set(codes.values())):
        some = [by.labels[a] for a, b in sorted(codes.items()) if b == target]
        others = [label for code, label in enumerate(to.labels) if code != target]
        if others:
            rules.append({by.name: some, to.name: others})
    return rules, None


def _only_with(entry: Mapping[str, Any], attributes: Mapping[str, Attribute], where: str) -> list[dict[str, Any]]:
    _only_keys(entry, {"levels": dict, "with": dict}, where)
    rules = []
    for name, levels in entry["with"].items():
        if name not in attributes:
            raise SchemaError(f"{where}: no column {name!r}{did_you_mean(str(name), attributes)}")
        if name in entry["levels"]:
            raise SchemaError(f"{where}: {name!r} is on both sides")
        attribute = attributes[name]
        allowed = {attribute.code(level) for level in (levels if isinstance(levels, list) else [levels])}
        never = [label for code, label in enumerate(attribute.labels) if code not in allowed]
        if never:
            rules.append({**entry["levels"], name: never})
    return rules


def _only_keys(
    entry: Mapping[str, Any], needed: Mapping[str, type], where: str, optional: Mapping[str, type] | None = None
) -> None:
    kinds = {**needed, **(optional or {})}
    words: dict[type, str] = {list: "a list of columns", str: "a name", dict: 'a table such as {sex = "F"}'}
    for key, value in entry.items():
        if key not in kinds:
            raise SchemaError(f"{where}: unknown key {key!r}{did_you_mean(key, kinds)}")
        if not isinstance(value, kinds[key]) or not value:
            raise SchemaError(f"{where}: {key} must be {words[kinds[key]]}, got {value!r}")
    for key in needed:
        if key not in entry:
            raise SchemaError(f"{where} needs {' and '.join(needed)}")


def _key(dependency: Dependency) -> str:
    return "sums" if dependency.kind == "sum" else "determines"
