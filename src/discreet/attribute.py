"""One column: what is known about it *before* anybody looks at the rows.

Everything here is public knowledge. The one exception is marked: an attribute whose levels or bin edges were drafted
by looking at private data carries the word in :attr:`Attribute.peeked`, and so does everything released under it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .errors import WEIGHTS_REFUSED, InputError, SchemaError, did_you_mean

Level = str | int | bool

NEAREST = "nearest"
PEEKABLE = ("levels", "edges", "missing")


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value it stands for; anything else unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def first_twice(items: Iterable[str]) -> str | None:
    """The first name that occurs again, if one does."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def level_text(level: object) -> str:
    """The label of a level as it is written in files and queries: ``True`` → ``true``, ``3`` → ``3``."""
    level = _plain(level)
    if isinstance(level, bool):
        return "true" if level else "false"
    return str(level)


def _tidy(x: float) -> int | float:
    """A whole number without its ``.0``, as people write it; beyond 2⁵³ the digits would be misleading."""
    return int(x) if x.is_integer() and abs(x) <= 2**53 else x


def _number_text(x: float) -> str:
    return repr(_tidy(x))


@dataclass(frozen=True)
class Attribute:
    """One column: its levels in order, and what becomes of a value that is not among them.

    Use ``Attribute.categorical("smoke", ["yes", "no"])`` or ``Attribute.numeric("age", [0, 18, 65, 120])``. Every
    possible value of a row has exactly one level (*total encoding*), so a fit never fails, and never branches, on what
    a row holds.

    Parameters
    ----------
    name:
        The column.
    levels:
        Declared categories in order, without the ``missing`` and ``other`` levels. Empty for a numeric attribute.
    edges:
        For a numeric attribute, k + 1 increasing public bin edges; the bins are ``[e0, e1), …, [e(k-1), ek]``.
    missing:
        Label of an explicit level for absent values, or None when there is no such level.
    other:
        Label of an explicit level for values that were not foreseen, or None.
    outside:
        Where a value outside the domain goes: the label of a level, or ``"nearest"`` (numeric only: the nearest bin).
        Default: ``other`` if there is one, else ``"nearest"`` for numbers, else ``missing``, else the first level.
        An absent value goes to ``missing`` if there is one, else where values outside go (with ``"nearest"``, to the
        first bin).
    integer:
        For a numeric attribute: values are whole numbers, and so are those drawn within a bin.
    peeked:
        Which of ``levels``, ``edges``, ``missing`` were learned by looking at private data.
    """

    name: str
    levels: tuple[Level, ...] = ()
    edges: tuple[float, ...] = ()
    missing: str | None = None
    other: str | None = None
    outside: str = ""
    integer: bool = False
    peeked: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"an attribute needs a name that is a non-empty string, got {self.name!r}")
        for key in ("levels", "edges", "peeked"):
            if isinstance(getattr(self, key), str):
                raise SchemaError(f"column {self.name!r}: {key} must be a list, got {getattr(self, key)!r}")
        for key in ("missing", "other"):
            if not isinstance(getattr(self, key), str | None):
                raise SchemaError(f"column {self.name!r}: {key} must be a string, got {getattr(self, key)!r}")
        set_ = object.__setattr__
        set_(self, "levels", tuple(map(_plain, self.levels)))
        set_(self, "edges", tuple(map(_plain, self.edges)))
        set_(self, "peeked", frozenset(self.peeked))
        if self.edges:
            self._check_edges()
        else:
            self._check_levels()
        if (twice := first_twice(self.labels)) is not None:
            raise SchemaError(f"column {self.name!r}: the level {twice!r} is declared twice")
        if not self.outside:
            set_(self, "outside", self._default_outside())
        if self.outside not in self.labels and not (self.is_numeric and self.outside == NEAREST):
            raise SchemaError(
                f"column {self.name!r}: outside = {self.outside!r} is not one of its levels"
                + (f" (or {NEAREST!r})" if self.is_numeric else "")
                + did_you_mean(self.outside, self.labels)
            )
        unknown = self.peeked - set(PEEKABLE)
        if unknown:
            raise SchemaError(f"column {self.name!r}: peeked may name {', '.join(PEEKABLE)}; got {sorted(unknown)}")

    def _check_edges(self) -> None:
        if self.levels:
            raise SchemaError(f"column {self.name!r} declares both levels and edges; keep one of them")
        if len(self.edges) < 2:
            raise SchemaError(f"column {self.name!r}: edges needs at least two numbers, got {list(self.edges)}")
        for e in self.edges:
            if isinstance(e, bool) or not isinstance(e, int | float) or not abs(e) <= sys.float_info.max:
                raise SchemaError(f"column {self.name!r}: edges must be finite numbers, got {e!r}")
        # One form for equal edges, so that equal domains have equal fingerprints: 0, 0.0 and -0.0 are the same edge.
        object.__setattr__(self, "edges", tuple(float(e) + 0.0 for e in self.edges))
        if any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise SchemaError(f"column {self.name!r}: edges must increase, got {list(self.edges)}")
        if self.integer and any(not e.is_integer() for e in self.edges):
            raise SchemaError(f"column {self.name!r} holds whole numbers, so its edges must be whole too")

    def _check_levels(self) -> None:
        if not self.levels and self.missing is None and self.other is None:
            raise SchemaError(f"column {self.name!r} declares no levels; give levels = […] or edges = […]")
        for level in self.levels:
            if not isinstance(level, str | int | bool):
                raise SchemaError(
                    f"column {self.name!r}: levels are strings, whole numbers or booleans, got {level!r}; "
                    "use edges = […] for real numbers"
                )
            if isinstance(level, int) and not -(2**63) <= level < 2**63:
                raise SchemaError(f"column {self.name!r}: a whole number among the levels exceeds 64 bits")
        if len({type(level) for level in self.levels}) > 1:
            raise SchemaError(f"column {self.name!r}: levels must be all of one kind (strings, integers or booleans)")
        if self.integer:
            raise SchemaError(f"column {self.name!r}: integer = true belongs to a column with edges")

    def _default_outside(self) -> str:
        if self.other is not None:
            return self.other
        if self.is_numeric:
            return NEAREST
        return self.missing if self.missing is not None else self.labels[0]

    @classmethod
    def categorical(cls, name: str, levels: Iterable[Level] | int, **options: Any) -> Attribute:
        """A column of categories; an integer k stands for the levels 0 … k − 1."""
        levels = _plain(levels)
        if isinstance(levels, str | bool):
            raise SchemaError(f"column {name!r}: give a list of levels, or how many there are; got {levels!r}")
        return cls(name, tuple(range(levels)) if isinstance(levels, int) else tuple(levels), **options)

    @classmethod
    def numeric(cls, name: str, edges: Iterable[float], **options: Any) -> Attribute:
        """A column of numbers, cut at public bin edges."""
        return cls(name, edges=tuple(edges), **options)

    @property
    def is_numeric(self) -> bool:
        return bool(self.edges)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One label a cell, in code order: the levels or bins, then ``missing``, then ``other``."""
        if self.edges:
            bins = zip(self.edges, self.edges[1:], strict=False)
            inner = [f"[{_number_text(a)}, {_number_text(b)})" for a, b in bins]
            inner[-1] = inner[-1][:-1] + "]"
        else:
            inner = [level_text(level) for level in self.levels]
        return (*inner, *(x for x in (self.missing, self.other) if x is not None))

    @cached_property
    def codes(self) -> dict[str, int]:
        """Code of each label."""
        return {label: code for code, label in enumerate(self.labels)}

    @property
    def size(self) -> int:
        """Number of levels, the missing and other levels included."""
        return len(self.labels)

    def code(self, label: object) -> int:
        """The code of a level given by its label (or, for a numeric attribute, by any number within a bin)."""
        text = level_text(label)
        if text in self.codes:
            return self.codes[text]
        if self.is_numeric:
            try:
                x = float(text)
            except ValueError:
                x = math.nan
            if self.edges[0] <= x <= self.edges[-1]:
                return sum(1 for e in self.edges[1:-1] if x >= e)
        raise InputError(f"column {self.name!r} has no level {text!r}{did_you_mean(text, self.labels)}")

    def value(self, code: int) -> Level | None:
        """The original value of a code: the level with its own type, None for missing, the label for bins and other."""
        if code < len(self.levels):
            return self.levels[code]
        label = self.labels[code]
        return None if label == self.missing else label

    @property
    def outside_code(self) -> int | None:
        """Code that receives values outside the domain; None means the nearest bin."""
        return self.codes.get(self.outside)

    @property
    def missing_code(self) -> int:
        """Code that receives absent values."""
        if self.missing is not None:
            return self.codes[self.missing]
        return self.outside_code or 0

    def to_dict(self) -> dict[str, Any]:
        """The schema-file form, without the name and without what is default."""
        out: dict[str, Any] = {"edges": [_tidy(e) for e in self.edges]} if self.edges else {"levels": list(self.levels)}
        for key in ("missing", "other"):
            if getattr(self, key) is not None:
                out[key] = getattr(self, key)
        out["outside"] = self.outside
        if self.integer:
            out["integer"] = True
        if self.peeked:
            out["peeked"] = sorted(self.peeked)
        return out

    @classmethod
    def from_dict(cls, name: str, entry: Mapping[str, Any]) -> Attribute:
        """Read the schema-file form; unknown keys are an error, so that a misspelt one is not silently ignored."""
        known = ("levels", "edges", "missing", "other", "outside", "integer", "peeked")
        for key in entry:
            if key in ("weight", "weights"):
                raise SchemaError(f"column {name!r}: {WEIGHTS_REFUSED}")
            if key not in known:
                raise SchemaError(f"column {name!r}: unknown key {key!r}{did_you_mean(key, known)}")
        for key, kind in (("levels", list), ("edges", list), ("peeked", list), ("missing", str), ("other", str)):
            if key in entry and not isinstance(entry[key], kind):
                raise SchemaError(f"column {name!r}: {key} must be a {'list' if kind is list else 'string'}")
        if not isinstance(entry.get("outside", ""), str) or not isinstance(entry.get("integer", False), bool):
            raise SchemaError(f"column {name!r}: outside must be a string and integer true or false")
        if not all(isinstance(word, str) for word in entry.get("peeked", ())):
            raise SchemaError(f"column {name!r}: peeked must be a list of strings")
        return cls(
            name,
            levels=tuple(entry.get("levels", ())),
            edges=tuple(entry.get("edges", ())),
            missing=entry.get("missing"),
            other=entry.get("other"),
            outside=entry.get("outside", ""),
            integer=entry.get("integer", False),
            peeked=frozenset(entry.get("peeked", ())),
        )
