"""Domains: the columns of a table together, as public knowledge. What is known of one is its :class:`Attribute`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .attribute import Attribute, Level, first_twice, level_text
from .errors import InputError, SchemaError, did_you_mean
from .impossible import Rule, checked_rules

__all__ = ["Attribute", "Clique", "Domain", "Level", "level_text"]

Clique = tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """An ordered set of attributes: the public frame in which rows, factors and models live.

    >>> domain = Domain.of({"smoke": ["yes", "no"], "visits": 3})
    >>> domain.shape, domain.size(["smoke", "visits"])
    ((2, 3), 6)

    ``impossible`` lists combinations of levels that no record can have (structural zeros): each is a mapping from
    columns to a level, or to several.
    """

    attributes: tuple[Attribute, ...]
    impossible: tuple[Rule, ...] = ()
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        attributes = tuple(self.attributes)
        object.__setattr__(self, "attributes", attributes)
        index = {a.name: i for i, a in enumerate(attributes)}
        if (twice := first_twice(a.name for a in attributes)) is not None:
            raise SchemaError(f"column {twice!r} is declared twice")
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "impossible", checked_rules(self.impossible, self.attributes))

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

    @property
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
            raise InputError(f"no column {name!r} in the domain{did_you_mean(str(name), self._index)}") from None

    def size(self, names: Iterable[str] | str | None = None) -> int:
        """Number of cells of the table over ``names`` (all columns by default); exact, however large."""
        chosen = [names] if isinstance(names, str) else names
        return math.prod(self.shape if chosen is None else (self[n].size for n in chosen))

    # -- making new ones -----------------------------------------------------------------------------------------

    def project(self, names: Iterable[str] | str) -> Domain:
        """The domain of these columns, in the order given."""
        chosen = tuple(self.attributes[self.index(n)] for n in ([names] if isinstance(names, str) else names))
        return Domain(chosen, self._rules_within({a.name for a in chosen}) if self.impossible else ())

    def merge(self, other: Domain) -> Domain:
        """This domain followed by the columns of ``other`` that are new; shared columns must agree."""
        for a in other.attributes:
            if a.name in self and self[a.name] != a:
                raise SchemaError(f"column {a.name!r} has two different definitions in the domains to be merged")
        rules = (*self.impossible, *(r for r in other.impossible if r not in self.impossible))
        return Domain(self.attributes + tuple(a for a in other.attributes if a.name not in self), rules)

    def clique(self, names: Iterable[str] | str) -> Clique:
        """A set of columns in the order of the domain: the one way to write a clique."""
        chosen = [names] if isinstance(names, str) else list(names)
        positions = sorted({self.index(n) for n in chosen})
        if len(positions) != len(chosen):
            raise InputError(f"a clique names each column once, got {tuple(chosen)}")
        return tuple(self.attributes[i].name for i in positions)

    def _rules_within(self, names: Container[str]) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.impossible if all(name in names for name, _ in rule))

    # -- identity ------------------------------------------------------------------------------------------------

    @property
    def peeked(self) -> dict[str, tuple[str, ...]]:
        """What was learned by looking at private data, per column; empty for an honest schema."""
        return {a.name: tuple(sorted(a.peeked)) for a in self.attributes if a.peeked}

    def to_dict(self) -> dict[str, Any]:
        """The schema-file form: ``{"version": 1, "columns": {name: {...}}}``."""
        out: dict[str, Any] = {"version": 1, "columns": {a.name: a.to_dict() for a in self.attributes}}
        if self.impossible:
            out["impossible"] = [{name: list(labels) for name, labels in rule} for rule in self.impossible]
        return out

    @classmethod
    def from_dict(cls, schema: Mapping[str, Any]) -> Domain:
        """Read the schema-file form, checking it as it goes."""
        known = ("version", "columns", "impossible")
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
        attributes = tuple(Attribute.from_dict(name, entry) for name, entry in columns.items())
        return cls(attributes, schema.get("impossible", ()))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form: names a domain in ledgers and files."""
        canonical = json.dumps(self.to_dict(), sort_keys=False, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()
