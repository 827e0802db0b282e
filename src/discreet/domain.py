"""Domains: the columns of a table together, as public knowledge. What is known of one is its :class:`Attribute`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import markup
from .attribute import Attribute, Level
from .dependencies import KEYS as DEPENDENCIES
from .dependencies import Dependency, checked_dependencies, read_dependencies, to_schema, zeros_of
from .errors import InputError, SchemaError, counted, did_you_mean
from .impossible import Rule, checked_rules
from .spelling import first_twice, level_text

__all__ = ["Attribute", "Clique", "Domain", "Level", "level_text"]

Clique = tuple[str, ...]
FOR_ALL_COLUMNS = ("missing_values", "strip", "ignore_case")
"""Keys of a schema that hold for every column which does not say otherwise."""
_MOST_PARTS = 4096


@dataclass(frozen=True)
class Domain:
    """An ordered set of attributes: the public frame in which rows, factors and models live.

    >>> domain = Domain.of({"smoke": ["yes", "no"], "visits": 3})
    >>> domain.shape, domain.size(["smoke", "visits"])
    ((2, 3), 6)

    ``impossible`` lists combinations of levels that no record can have (structural zeros): each is a mapping from
    columns to a level, or to several. ``dependencies`` are rules of other kinds.
    """

    attributes: tuple[Attribute, ...]
    impossible: tuple[Rule, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)
    _parts: dict[Clique, Domain] = field(init=False, repr=False, compare=False, hash=False, default_factory=dict)
    """Projections that were asked for before."""

    def __post_init__(self) -> None:
        attributes = tuple(self.attributes)
        object.__setattr__(self, "attributes", attributes)
        index = {a.name: i for i, a in enumerate(attributes)}
        if (twice := first_twice(a.name for a in attributes)) is not None:
            raise SchemaError(f"column {twice!r} is declared twice")
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "impossible", checked_rules(self.impossible, self.attributes))
        object.__setattr__(self, "dependencies", checked_dependencies(self.dependencies, self.attributes))

    def __repr__(self) -> str:
        first = ", ".join(f"{a.name} ({a.size})" for a in self.attributes[:8])
        return f"Domain({counted(len(self), 'column')}: {first}{', …' if len(self) > 8 else ''})"

    def _repr_html_(self) -> str:
        """The columns and their levels, for notebooks."""
        rows = []
        for a in self.attributes:
            shown = ", ".join(a.labels[:8]) + (", …" if a.size > 8 else "")
            rows.append([a.name, shown, a.size])
        notes = [f"{len(self.impossible)} rules say what no record can be"] if self.impossible else []
        return markup.table(
            "What is publicly known about the columns", ["column", "levels", "number"], rows, notes, labels=2
        )

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Level] | int | Attribute]) -> Domain:
        """Short form: a mapping from names to levels, to a number of levels, or to an :class:`Attribute`."""
        if not isinstance(columns, Mapping):
            raise InputError(
                'Domain.of takes a mapping from columns to levels, as in Domain.of({"smoke": ["yes", "no"], "visits": '
                f"3}}); got {columns!r:.100}" + ("; load_schema reads a file" if isinstance(columns, str) else "")
            )
        return cls(
            tuple(
                replace(spec, name=name) if isinstance(spec, Attribute) else Attribute.categorical(name, spec)
                for name, spec in columns.items()
            )
        )

    # -- looking things up ---------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self._index)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(a.size for a in self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def index(self, name: str) -> int:
        """Position of a column; an unknown name is an error with a hint."""
        try:
            return self._index[name]
        except (KeyError, TypeError):
            shown = repr(name)[:200]
            raise InputError(f"no column {shown} in the domain{did_you_mean(str(name), self._index)}") from None

    def size(self, names: Iterable[str] | str | None = None) -> int:
        """Number of cells of the table over ``names`` (all columns by default); exact, however large."""
        chosen = [names] if isinstance(names, str) else names
        return math.prod(self.shape if chosen is None else (self[n].size for n in chosen))

    # -- making new ones -----------------------------------------------------------------------------------------

    def project(self, names: Iterable[str] | str) -> Domain:
        """The domain of these columns, in the order given."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        try:
            if (known := self._parts.get(wanted)) is not None:
                return known
        except TypeError:  # a name that has no hash is none of ours, as is said below
            pass
        chosen = tuple(self.attributes[self.index(n)] for n in wanted)
        among = set(wanted)
        rules = tuple(d for d in self.dependencies if among >= {*d.columns})
        found = Domain(chosen, self._rules_within(among), rules)
        if len(self._parts) < _MOST_PARTS:
            self._parts[wanted] = found
        return found

    def merge(self, other: Domain) -> Domain:
        """This domain followed by the columns of ``other`` that are new; shared columns must agree."""
        for a in other.attributes:
            if a.name in self and self[a.name] != a:
                raise SchemaError(f"column {a.name!r} has two different definitions in the domains to be merged")
        if not other.impossible and not other.dependencies and all(name in self for name in other):
            return self
        rules = (*self.impossible, *(r for r in other.impossible if r not in self.impossible))
        attributes = self.attributes + tuple(a for a in other.attributes if a.name not in self)
        return Domain(attributes, rules, (*self.dependencies, *other.dependencies))

    def clique(self, names: Iterable[str] | str) -> Clique:
        """A set of columns in the order of the domain: the one way to write a clique."""
        chosen = (names,) if isinstance(names, str) else tuple(names)
        positions = sorted({self.index(n) for n in chosen})
        if len(positions) != len(chosen):
            raise InputError(f"a clique names each column once, got {chosen}")
        return tuple(self.attributes[i].name for i in positions)

    def _rules_within(self, names: Container[str]) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.impossible if all(name in names for name, _ in rule))

    # -- identity ------------------------------------------------------------------------------------------------

    @property
    def peeked(self) -> dict[str, tuple[str, ...]]:
        """What was learned by looking at private data, per column; empty for an honest schema."""
        return {a.name: tuple(sorted(a.peeked)) for a in self.attributes if a.peeked}

    @property
    def found(self) -> dict[str, tuple[str, ...]]:
        """What was found privately and paid for, per column."""
        return {a.name: tuple(sorted(a.found)) for a in self.attributes if a.found}

    @property
    def sought(self) -> tuple[Attribute, ...]:
        """Columns of which something is to be found privately, before anything is learned."""
        return tuple(a for a in self.attributes if a.sought is not None)

    @cached_property
    def forecast(self) -> Domain:
        """These columns with as many levels as may be found: for plans and forecasts, never for rows."""
        return replace(self, attributes=tuple(map(_forecast, self.attributes))) if self.sought else self

    @cached_property
    def zeros(self) -> tuple[Rule, ...]:
        """All combinations of levels that no record can have: those that are named, and those that follow from sums."""
        return (*self.impossible, *zeros_of(self.dependencies, {a.name: a for a in self.attributes}))

    def to_dict(self) -> dict[str, Any]:
        """The schema-file form: ``{"version": 1, "columns": {name: {...}}}``."""
        out: dict[str, Any] = {"version": 1, "columns": {a.name: a.to_dict() for a in self.attributes}}
        if self.impossible:
            out["impossible"] = [{name: list(labels) for name, labels in rule} for rule in self.impossible]
        return {**out, **to_schema(self.dependencies)}

    @classmethod
    def from_dict(cls, schema: Mapping[str, Any]) -> Domain:
        """Read the schema-file form, checking it as it goes."""
        known = ("version", "columns", "impossible", "peeked", *DEPENDENCIES, *FOR_ALL_COLUMNS)
        for key in schema:
            if key not in known:
                raise SchemaError(f"unknown key {key!r} in the schema{did_you_mean(str(key), known)}")
        if schema.get("version", 1) != 1:
            raise SchemaError(f"schema version {schema['version']!r} is not known here; this release reads version 1")
        columns = schema.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            raise SchemaError("the schema declares no columns; add a [columns.NAME] section for each of them")
        for name, entry in columns.items():
            if not isinstance(entry, Mapping):
                raise SchemaError(f"column {name!r}: expected a [columns.{name}] section, got {type(entry).__name__}")
        for_all = {key: schema[key] for key in FOR_ALL_COLUMNS if key in schema}
        marks = schema.get("peeked", [])
        if not isinstance(marks, list):
            raise SchemaError("peeked must be a list of strings")
        attributes = tuple(
            Attribute.from_dict(name, {**for_all, **_marks(marks, {**for_all, **entry}), **entry})
            for name, entry in columns.items()
        )
        rules, dependencies = read_dependencies(schema, attributes)
        impossible = schema.get("impossible", ())
        return cls(attributes, (*impossible, *rules) if rules else impossible, dependencies)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form: names a domain in ledgers and files."""
        canonical = json.dumps(self.to_dict(), sort_keys=False, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _marks(marks: list[Any], entry: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What a mark for the whole file says of a column: of what it has."""
    own = [word for word in marks if word in entry]
    return {"peeked": own} if own else {}


def _forecast(attribute: Attribute) -> Attribute:
    sought = attribute.sought
    if sought is None:
        return attribute
    if sought.what == "levels":
        more = tuple(f"level {i + 1} to be found" for i in range(sought.most - len(attribute.levels)))
        known = tuple(level_text(level) for level in attribute.levels)
        return replace(attribute, levels=(*known, *more), sought=None)
    low, high = sought.ends or (0.0, float(sought.most))
    whole = sought.integer and high - low >= sought.most
    step = (high - low) // sought.most if whole else (high - low) / sought.most
    edges = (*(low + i * step for i in range(sought.most)), high)
    if sought.integer and not whole:
        edges = tuple(np.arange(low, high + 1).tolist())
    return replace(attribute, edges=edges, heaps=sought.heaps, sought=None)


def in_groups(domain: Domain, grouped: Iterable[Attribute]) -> Domain:
    """The columns in order, with these groups of levels in the place of the columns that have the levels."""
    instead = {a.groups.of.name: a for a in grouped if a.groups is not None}
    for a in domain.attributes:
        if a.name in instead and (groups := instead[a.name].groups) is not None and groups.of.labels != a.labels:
            raise SchemaError(f"column {a.name!r} has other levels than those that were taken together")
    return Domain(tuple(instead.get(a.name, a) for a in domain.attributes)) if instead else domain
