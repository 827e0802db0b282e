"""One column: what is known about it *before* anybody looks at the rows.

Everything here is public knowledge. The one exception is marked: an attribute whose levels or bin edges were drafted
by looking at private data carries the word in :attr:`Attribute.peeked`, and so does everything released under it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from .bins import checked_edges, checked_heaps, checked_spread, checked_writing, decimals_of
from .dates import Dates
from .errors import InputError, SchemaError, did_you_mean
from .keys import read_keys
from .sought import Sought
from .spelling import first_twice, level_text, number_or_nan, number_text, plain, tidy

Level = str | int | bool

NEAREST = "nearest"
PEEKABLE = (
    "levels",
    "edges",
    "missing",
    "heaps",
    "spread",
    "dates",
    "decimals",
    "step",
    "missing_values",
    "strip",
    "ignore_case",
)
FINDABLE = ("levels", "edges", "range", "heaps", "spread")


@dataclass(frozen=True)
class Attribute:
    """One column: its levels in order, and what becomes of a value that is not among them.

    Use ``Attribute.categorical("smoke", ["yes", "no"])``, ``Attribute.numeric("age", [0, 18, 65, 120])`` or
    ``Attribute.of_dates("visit", Dates("month", date(2019, 1, 1), date(2024, 12, 31)))``. Every possible value of a
    row has exactly one level (*total encoding*), so a fit never fails, and never branches, on what a row holds.

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
        Which of ``levels``, ``edges``, ``missing`` and so on were learned by looking at private data.
    heaps:
        For a numeric attribute: numbers that many records have exactly, such as 0 or 40. Each is a level of its own,
        behind the bins; its value does not count in a bin.
    decimals:
        For a numeric attribute: how many decimals its numbers are written with; 0 is the same as ``integer``.
    step:
        For a numeric attribute: numbers are multiples of this, such as 5 or 0.25.
    dates:
        For a column of dates: the periods that are its levels. It has neither ``levels`` nor ``edges`` then.
    missing_values:
        Words that stand for an absent value, such as ``"NA"``; a declared level of the same spelling comes first.
    strip, ignore_case:
        Whether spaces around a text, and its case, make no difference.
    found:
        Which of ``levels``, ``edges``, ``range``, ``heaps``, ``spread`` were found privately, and paid for.
    spread:
        For a numeric attribute: where the numbers lie within its bins, as far as that is known: pairs of a number
        inside a bin and the part of that bin's records that lies below it. Elsewhere a model assumes that they go on
        across neighbouring bins.
    sought:
        What is to be found privately before anything is learned. Until then numbers are counted on a fine public grid,
        and levels that are not listed count as ``other``.
    groups:
        Which levels of another column each of its levels stands for (:class:`Groups`). No row holds such a
        column: it is counted by the other one.
    """

    name: str
    levels: tuple[Level, ...] = ()
    edges: tuple[float, ...] = ()
    missing: str | None = None
    other: str | None = None
    outside: str = ""
    integer: bool = False
    peeked: frozenset[str] = frozenset()
    heaps: tuple[float, ...] = ()
    decimals: int | None = None
    dates: Dates | None = None
    missing_values: tuple[str, ...] = ()
    strip: bool = False
    ignore_case: bool = False
    found: frozenset[str] = frozenset()
    sought: Sought | None = None
    step: float | None = None
    spread: tuple[tuple[float, float], ...] = ()
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"an attribute needs a name that is a non-empty string, got {self.name!r}")
        for key in ("levels", "edges", "peeked", "heaps", "missing_values", "found", "spread"):
            if isinstance(getattr(self, key), str):
                raise SchemaError(f"column {self.name!r}: {key} must be a list, got {getattr(self, key)!r}")
        for key in ("missing", "other"):
            if not isinstance(getattr(self, key), str | None):
                raise SchemaError(f"column {self.name!r}: {key} must be a string, got {getattr(self, key)!r}")
        set_ = object.__setattr__
        if self.sought is not None and self.sought.what == "bins":
            set_(self, "edges", self.sought.edges)
            set_(self, "heaps", self.sought.points)
        set_(self, "levels", tuple(map(plain, self.levels)))
        set_(self, "edges", tuple(map(plain, self.edges)))
        for key in ("peeked", "found"):
            set_(self, key, frozenset(getattr(self, key)))
        self._check_words()
        if self.dates is not None:
            self._check_dates()
        elif self.edges:
            self._check_edges()
        else:
            self._check_levels()
        if (twice := first_twice(self.labels)) is not None:
            raise SchemaError(f"column {self.name!r}: the level {twice!r} is declared twice")
        if not self.outside:
            set_(self, "outside", self._default_outside())
        near = self.is_numeric or self._has_ends
        if self.outside not in self.labels and not (near and self.outside == NEAREST):
            raise SchemaError(
                f"column {self.name!r}: outside = {self.outside!r} is not one of its levels"
                + (f" (or {NEAREST!r})" if near else "")
                + did_you_mean(self.outside, self.labels)
            )
        if self.groups is not None and self.groups.number != self.size:
            raise SchemaError(f"column {self.name!r} has {self.size} levels and {self.groups.number} groups for them")
        for key, known in (("peeked", PEEKABLE), ("found", FINDABLE)):
            if unknown := getattr(self, key) - set(known):
                raise SchemaError(f"column {self.name!r}: {key} may name {', '.join(known)}; got {sorted(unknown)}")

    def __eq__(self, other: object) -> bool:
        """In all that is known about them. True is no 1 and False no 0 among levels: texts spell them otherwise, and
        what is kept by attribute or domain must not be taken for that of the other."""
        if other.__class__ is not self.__class__ or not isinstance(other, Attribute):
            return NotImplemented
        if self is other:
            return True
        kinds_agree = [*map(type, self.levels[:1])] == [*map(type, other.levels[:1])]  # all levels are of one kind
        return kinds_agree and bool(_compared(self) == _compared(other))

    def _check_words(self) -> None:
        for key in ("strip", "ignore_case"):
            if not isinstance(getattr(self, key), bool):
                raise SchemaError(f"column {self.name!r}: {key} must be true or false, got {getattr(self, key)!r}")
        words = tuple(map(plain, self.missing_values))
        if any(not isinstance(word, str | int | float) for word in words):
            raise SchemaError(f'column {self.name!r}: missing_values are words such as ["NA", "?"], or numbers')
        numbers = (tidy(float(w)) if isinstance(w, float) else w for w in words)
        object.__setattr__(self, "missing_values", tuple(dict.fromkeys(map(level_text, numbers))))
        if self.ignore_case and not self.edges:
            twice = first_twice(map(self.spelling, map(level_text, self.levels)))
            if twice is not None:
                raise SchemaError(
                    f"column {self.name!r}: the level {twice!r} is declared in several spellings, which are one with "
                    "ignore_case = true; keep one of them"
                )

    def _check_dates(self) -> None:
        if not isinstance(self.dates, Dates):
            raise SchemaError(f'column {self.name!r}: dates is a table such as {{by = "month", from = …, to = …}}')
        for key in ("levels", "edges"):
            if getattr(self, key):
                raise SchemaError(f"column {self.name!r} declares both {key} and dates; keep one of them")
        self._check_not_numeric("dates")

    def _check_not_numeric(self, kind: str) -> None:
        for key, value in (("heaps", self.heaps), ("integer = true", self.integer), ("spread", self.spread)):
            if value:
                raise SchemaError(f"column {self.name!r}: {key} belongs to a column with edges, not with {kind}")
        for key in ("decimals", "step"):
            if getattr(self, key) is not None:
                raise SchemaError(f"column {self.name!r}: {key} belongs to a column with edges, not with {kind}")

    def _check_edges(self) -> None:
        if self.levels:
            raise SchemaError(f"column {self.name!r} declares both levels and edges; keep one of them")
        if self.spread and self.sought is not None:
            raise SchemaError(f"column {self.name!r}: spread belongs to edges that are known, not to bins to be found")
        with _in_column(self.name):
            edges, heaps = checked_edges(self.edges), checked_heaps(self.heaps)
            integer, decimals, step = checked_writing(self.integer, self.decimals, self.step)
            checked = {"edges": edges, "heaps": heaps, "integer": integer, "decimals": decimals, "step": step}
            checked["spread"] = checked_spread(self.spread, edges)
        for key, value in checked.items():
            object.__setattr__(self, key, value)
        if integer and self.sought is None and any(not x.is_integer() for x in (*edges, *heaps)):
            raise SchemaError(f"column {self.name!r} holds whole numbers, so its edges and heaps must be whole too")

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
        self._check_not_numeric("levels")

    def _default_outside(self) -> str:
        if self.other is not None:
            return self.other
        if self.is_numeric or self._has_ends:
            return NEAREST
        return self.missing if self.missing is not None else self.labels[0]

    @classmethod
    def categorical(cls, name: str, levels: Iterable[Level] | int, **options: Any) -> Attribute:
        """A column of categories; an integer k stands for the levels 0 … k − 1."""
        levels = plain(levels)
        if isinstance(levels, str | bool):
            raise SchemaError(f"column {name!r}: give a list of levels, or how many there are; got {levels!r}")
        return cls(name, tuple(range(levels)) if isinstance(levels, int) else tuple(levels), **options)

    @classmethod
    def numeric(cls, name: str, edges: Iterable[float], **options: Any) -> Attribute:
        """A column of numbers, cut at public bin edges."""
        return cls(name, edges=tuple(edges), **options)

    @classmethod
    def of_dates(cls, name: str, dates: Dates, **options: Any) -> Attribute:
        """A column of dates or times, counted by periods."""
        return cls(name, dates=dates, **options)

    @property
    def is_numeric(self) -> bool:
        return bool(self.edges)

    @property
    def bins(self) -> int:
        """How many bins a numeric attribute has: they are its first codes, and its heaps follow."""
        return max(len(self.edges) - 1, 0)

    @property
    def is_clamped(self) -> bool:
        """Whether a value beyond its ends counts in the first or last bin."""
        return self.outside == NEAREST and (self.is_numeric or self._has_ends)

    @property
    def is_open(self) -> bool:
        """Whether its end bins are known to go on: a range that was found leaves some numbers out, as one that a schema
        lists is said not to."""
        return self.is_clamped and "range" in self.found

    @property
    def precision(self) -> int | None:
        """How many decimals its numbers are written with; None where that is not known."""
        return 0 if self.integer else self.decimals if self.step is None else decimals_of(self.step)

    @property
    def _has_ends(self) -> bool:
        """Whether its dates run from a first to a last day, so that others are nearest to one of them."""
        return self.dates is not None and self.dates.first is not None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One label a cell, in code order: levels, bins or periods, then heaps, then ``missing``, then ``other``."""
        if self.dates is not None:
            inner = list(self.dates.labels)
        elif self.edges:
            bins = zip(self.edges, self.edges[1:], strict=False)
            inner = [f"[{number_text(a)}, {number_text(b)})" for a, b in bins]
            inner[-1] = inner[-1][:-1] + "]"
            inner += map(number_text, self.heaps)
        else:
            inner = [level_text(level) for level in self.levels]
        return (*inner, *(x for x in (self.missing, self.other) if x is not None))

    @cached_property
    def codes(self) -> dict[str, int]:
        """Code of each label."""
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def spelled(self) -> dict[str, int]:
        """Code of each text that spells a level, or a word for an absent value, in the form of :meth:`spelling`."""
        words = {self.spelling(word): self.missing_code for word in self.missing_values}
        return words | {self.spelling(label): code for label, code in reversed(self.codes.items())}

    def spelling(self, text: str) -> str:
        """A text as it is compared: without spaces around it and in one case, where the schema says so."""
        text = text.strip() if self.strip else text
        return text.casefold() if self.ignore_case else text

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Numbers among the words for an absent value, for a numeric attribute."""
        return tuple(x for x in map(number_or_nan, self.missing_values) if not math.isnan(x)) if self.edges else ()

    @property
    def size(self) -> int:
        """Number of levels, the missing and other levels included."""
        return len(self.labels)

    def code(self, label: object) -> int:
        """The code of a level given by its label, or by any number within a bin, or by a date within a period."""
        text = level_text(label)
        if text in self.codes:
            return self.codes[text]
        if self.is_numeric:
            x = number_or_nan(text)
            if x in self.heaps:
                return self.bins + self.heaps.index(x)
            if self.edges[0] <= x <= self.edges[-1]:
                return sum(1 for e in self.edges[1:-1] if x >= e)
        if self.dates is not None and (moment := self.dates.moment(label)) is not None:
            code = int(self.dates.codes(np.array([moment]))[0])
            if 0 <= code < len(self.dates.labels):
                return code
        raise InputError(f"column {self.name!r} has no level {text!r}{did_you_mean(text, self.labels)}")

    def value(self, code: int) -> Level | float | None:
        """The original value of a code: the level with its own type, the number of a heap, None for missing, the label
        for bins, periods and other."""
        if code < len(self.levels):
            return self.levels[code]
        if self.edges and self.bins <= code < self.bins + len(self.heaps):
            return tidy(self.heaps[code - self.bins])
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
        out: dict[str, Any] = {"edges": [tidy(e) for e in self.edges]} if self.edges else {"levels": list(self.levels)}
        if self.dates is not None:
            out = {"dates": self.dates.to_dict()}
        heaps = self.heaps
        if self.sought is not None:
            heaps = self.sought.heaps
            out = self.sought.to_dict() | ({"always": list(self.levels)} if self.levels else {})
        if heaps:
            out["heaps"] = [tidy(h) for h in heaps]
        if self.spread:
            out["spread"] = [[tidy(x), tidy(share)] for x, share in self.spread]
        for key in ("missing", "other"):
            if getattr(self, key) is not None:
                out[key] = getattr(self, key)
        out["outside"] = self.outside
        for key in ("integer", "decimals", "step", "missing_values", "strip", "ignore_case"):
            if value := getattr(self, key):
                out[key] = list(value) if isinstance(value, tuple) else tidy(value) if key == "step" else value
        for key in ("peeked", "found"):
            if getattr(self, key):
                out[key] = sorted(getattr(self, key))
        if self.groups is not None:
            out["groups"] = self.groups.to_dict()
        return out

    @classmethod
    def from_dict(cls, name: str, entry: Mapping[str, Any]) -> Attribute:
        """Read the schema-file form; unknown keys are an error, so that a misspelt one is not silently ignored."""
        with _in_column(name):
            fields, sought = read_keys(entry)
        if "groups" in entry:
            fields["groups"] = _groups(name, entry["groups"])
        return cls(name, **fields, sought=sought)


@contextmanager
def _in_column(name: str) -> Iterator[None]:
    """Whatever is wrong inside is said of this column."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


_compared = attrgetter(*(f.name for f in fields(Attribute)))


@dataclass(frozen=True)
class Groups:
    """Levels taken together: ``codes`` has the group of each level of the column ``of``. No group is empty.

    Where a column has more levels than records can fill, tables of groups say more for the same noise. Which levels
    form a group is public: it follows from what was released (:mod:`discreet.learn.fields.grouping`).
    """

    of: Attribute
    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        codes = self.codes
        if self.of.groups is not None:
            raise SchemaError(f"the levels of {self.of.name!r} are groups already")
        if any(type(c) is not int for c in codes) or len(codes) != self.of.size:
            raise SchemaError(f"the groups of {self.of.name!r} name one group for each of its {self.of.size} levels")
        if not codes or sorted({*codes}) != [*range(len({*codes}))]:  # never as many as a file may say
            raise SchemaError(f"the groups of {self.of.name!r} are numbered 0, 1, …, and none of them is empty")

    @property
    def number(self) -> int:
        return max(self.codes) + 1

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.of.name, "of": self.of.to_dict(), "codes": list(self.codes)}


def _groups(name: str, entry: Mapping[str, Any]) -> Groups:
    if {*entry} != {"name", "of", "codes"} or not isinstance(entry["of"], Mapping):
        raise SchemaError(f"column {name!r}: groups say whose levels they are, and the group of each")
    if "groups" in entry["of"]:  # before it is read, however deep it goes
        raise SchemaError(f"column {name!r}: its groups are of levels that are groups already")
    if not isinstance(entry["codes"], list):
        raise SchemaError(f"column {name!r}: the groups are a list of numbers")
    return Groups(Attribute.from_dict(entry["name"], entry["of"]), tuple(entry["codes"]))
