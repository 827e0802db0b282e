"""What a column is restricted to: some of its levels, or numbers from here to there. All of it is public knowledge.

``=`` and ``in {…}`` name levels, and a number stands for the bin that it is in. Comparisons are about the numbers
themselves, so that they may cut a bin; how the numbers lie within it is the model's to say (``models/density.py``).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from .attribute import Attribute
from .errors import InputError

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LARGEST = Decimal("1.7e308")
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000


@dataclass(frozen=True, repr=False)
class Condition:
    """A restriction of one column: its code is one of ``codes``, and where that is a bin, its number lies in
    [low, high). ``text`` says it in the query language."""

    name: str
    text: str
    codes: frozenset[int]
    low: float = -math.inf
    high: float = math.inf

    def meet(self, other: Condition) -> Condition:
        """Both at once."""
        return Condition(
            self.name,
            f"{self.text}, {other.text}",
            self.codes & other.codes,
            max(self.low, other.low),
            min(self.high, other.high),
        )

    @property
    def cuts_bins(self) -> bool:
        return self.low > -math.inf or self.high < math.inf

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class NumberLine:
    """Where the numbers of a column lie: ``edges`` of the bins (codes 0, 1, …), ``points`` (codes that are one number
    each), how many decimals they have (None: any number of them), the step that all are multiples of (None: one of
    the last decimal), and what is known of where in a bin they lie: numbers, and the part of their bin below each."""

    edges: tuple[float, ...]
    points: Mapping[int, float]
    decimals: int | None
    step: float | None = None
    spread: tuple[tuple[float, float], ...] = ()

    @property
    def scale(self) -> float | None:
        """How many numbers there are to a unit; None without a grid, or where floats cannot tell its numbers apart."""
        if self.decimals is None:
            return None
        scale = 10.0**self.decimals if self.step is None else 1 / self.step
        return scale if max(map(abs, self.ends)) < 2**52 / scale else None

    @property
    def bins(self) -> int:
        return max(len(self.edges) - 1, 0)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number."""
        known = [*self.edges[:1], *self.edges[-1:], *self.points.values()]
        return min(known), max(known)

    @property
    def codes(self) -> frozenset[int]:
        """The codes that are numbers: all but those of missing and other values."""
        return frozenset((*range(self.bins), *self.points))


def number_line(attribute: Attribute) -> NumberLine | None:
    """The numbers of a column, or its dates as days since 1970; None for one of categories."""
    if attribute.is_numeric:
        heaps = {attribute.bins + i: x for i, x in enumerate(attribute.heaps)}
        return NumberLine(attribute.edges, heaps, attribute.precision, attribute.step, attribute.spread)
    dates = attribute.dates
    if dates is not None and dates.first is not None and dates.last is not None:
        first, last = (day.toordinal() - _EPOCH for day in (dates.first, dates.last))
        return NumberLine((float(first), *map(float, dates.starts[1:]), float(last)), {}, 0)
    if dates is not None and dates.by == "hour of day":
        return NumberLine((), {hour: float(hour) for hour in range(24)}, 0)
    if attribute.levels and all(type(level) is int for level in attribute.levels):
        return NumberLine((), {code: float(level) for code, level in enumerate(attribute.levels)}, 0)
    return None


def is_calendar(attribute: Attribute) -> bool:
    """Whether its numbers are days."""
    return attribute.dates is not None and attribute.dates.first is not None


def known(attribute: Attribute) -> frozenset[int]:
    """Codes of values that were there and foreseen: all but the missing and the other level."""
    unknown = {attribute.codes[label] for label in (attribute.missing, attribute.other) if label is not None}
    return frozenset(range(attribute.size)) - unknown


def among(attribute: Attribute, codes: frozenset[int], text: str) -> Condition:
    return Condition(attribute.name, text, codes)


def comparison(attribute: Attribute, sign: str, number: str, text: str) -> Condition:
    """The numbers of a column that are ``sign`` (``<``, ``<=``, ``>``, ``>=``) a number."""
    line = number_line(attribute)
    if line is None:
        raise InputError(f"column {attribute.name!r} holds categories, which are not larger or smaller than others")
    bound = _day_of(attribute, number) if is_calendar(attribute) else decimal_of(number)
    if bound is None:
        raise InputError(f"{number!r} is not a {'date' if is_calendar(attribute) else 'number'}")
    holds = COMPARISONS[sign]
    limit = _on_the_grid(bound, line, beyond=sign in (">", "<="))
    low, high = (limit, math.inf) if sign in (">", ">=") else (-math.inf, limit)
    low, high = (low, high) if line.bins else (-math.inf, math.inf)
    bins = {b for b, ends in enumerate(_bin_ends(line)) if low < ends[1] and high > ends[0]}
    codes = frozenset(bins | {code for code, x in line.points.items() if holds(Decimal(repr(x)), bound)})
    if not codes:
        first, last = (f"{x:.15g}" for x in line.ends)
        if attribute.dates is not None and is_calendar(attribute):
            first, last = str(attribute.dates.first), str(attribute.dates.last)
        raise InputError(f"{_nothing(attribute, sign, number)} go from {first} to {last}{_clamped(attribute)}")
    return Condition(attribute.name, text, codes, low, high)


def cut_bins(attribute: Attribute, condition: Condition) -> frozenset[int]:
    """The bins that a condition goes through the middle of."""
    line = number_line(attribute)
    if line is None or not line.bins or not condition.cuts_bins:
        return frozenset()
    starts, stops = map(list, zip(*_bin_ends(line), strict=True))
    if attribute.is_open:
        starts[0], stops[-1] = -math.inf, math.inf
    ends = enumerate(zip(starts, stops, strict=True))
    cut = {b for b, (start, stop) in ends if start < condition.low or condition.high < stop}
    return condition.codes & cut


def open_ends(attribute: Attribute, condition: Condition | None) -> tuple[bool, bool]:
    """Whether numbers below and above all bins count among those that a condition leaves, if there are any."""
    if not attribute.edges or not attribute.is_clamped:
        return False, False
    if condition is None:
        return True, True
    below, above = condition.low <= attribute.edges[0], condition.high >= attribute.edges[-1]
    return below and 0 in condition.codes, above and attribute.bins - 1 in condition.codes


def _nothing(attribute: Attribute, sign: str, number: str) -> str:
    """That no bin has such numbers; that no record has is true only where what lies beyond counts elsewhere."""
    if not attribute.is_clamped:
        return f"no value of column {attribute.name!r} is {sign} {number}; they"
    how = ", found privately," if "range" in attribute.found else ""
    return f"no bin of column {attribute.name!r} tells which values are {sign} {number}; the bins{how}"


def _clamped(attribute: Attribute) -> str:
    return ", and values beyond them count in the end bins" if attribute.is_clamped else ""


def decimal_of(text: str) -> Decimal | None:
    """The finite number that is written, exactly; None if it is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and number.copy_abs() < _LARGEST else None  # abs() overflows


def _day_of(attribute: Attribute, text: str) -> Decimal | None:
    """A date, ISO or as the schema spells dates, in days since 1970."""
    assert attribute.dates is not None
    moment = attribute.dates.moment(text)
    if moment is None:
        moment = replace(attribute.dates, format="").moment(text)
    return None if moment is None else Decimal(moment) / _DAY


def _on_the_grid(bound: Decimal, line: NumberLine, *, beyond: bool) -> float:
    """The first number of the grid that is not below the bound, or with ``beyond`` that is above it."""
    if line.decimals is None:
        return float(bound)
    step = Decimal(1).scaleb(-line.decimals) if line.step is None else Decimal(repr(line.step))
    cells = bound / step
    first = math.floor(cells) + 1 if beyond else math.ceil(cells)
    return float(first * step)


def _bin_ends(line: NumberLine) -> list[tuple[float, float]]:
    """Half-open, from the first number of the grid on; the last bin holds its upper end, too."""
    edges = list(line.edges)
    if edges and (scale := line.scale) is not None:
        edges = [math.ceil(e * scale - 1e-6) / scale for e in edges]
        edges[-1] = (math.floor(line.edges[-1] * scale + 1e-6) + 1) / scale
    return list(itertools.pairwise(edges))
