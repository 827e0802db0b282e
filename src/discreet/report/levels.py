"""Levels and their probabilities as pages show them: few enough to be read, none left out, digits that noise leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attribute import Attribute
from ..errors import counted
from ..learn.zeros import impossible_cells
from ..models.base import Model
from ..release.interval import ANYTHING, Interval, digits
from ..release.uncertainty import NoiseIntervals

Array = NDArray[np.float64]
MOST_LEVELS, MOST_BINS = 12, 24
IMPOSSIBLE = "0 (impossible by the schema)"


@dataclass(frozen=True)
class Group:
    """A level, or several that are shown as one."""

    label: str
    codes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Shown:
    """The table of some columns over groups of levels: one axis a column."""

    groups: tuple[tuple[Group, ...], ...]
    probabilities: Array
    interval: Interval | None
    never: NDArray[np.bool_]

    def text(self, *cell: int) -> str:
        """The probability of a cell, and how far noise can have moved it."""
        if self.never[cell]:
            return IMPOSSIBLE
        half = None if self.interval is None else float(self.interval.half_width[cell])
        return percent(float(self.probabilities[cell]), half)


def shown(model: Model, names: Sequence[str], intervals: NoiseIntervals | None) -> Shown:
    """The table of these columns, with levels put together where there are too many to be read."""
    p = model.marginal(names).probabilities
    axes = [tuple(i for i in range(p.ndim) if i != axis) for axis in range(p.ndim)]
    most = MOST_BINS if len(names) == 1 else MOST_LEVELS
    groups = tuple(grouped(model.domain[n], p.sum(axis=rest), most) for n, rest in zip(names, axes, strict=True))

    def summed(table: Array) -> Array:
        for axis, some in enumerate(groups):
            parts = [np.take(table, group.codes, axis).sum(axis=axis) for group in some]
            table = np.stack(parts, axis=axis)
        return table

    interval = None
    if intervals is not None:
        found = intervals.of(lambda m: summed(m.marginal(names).probabilities))
        interval = replace(found, lower=np.clip(found.lower, 0, 1), upper=np.clip(found.upper, 0, 1))
    together = summed(p)
    # A group cannot be when none of its levels can; and a network may not be able to keep every rule.
    possible = summed((~impossible_cells(model.domain, tuple(names))).astype(np.float64))
    return Shown(groups, together, interval, (possible == 0) & (together <= 0))


def grouped(attribute: Attribute, p: Array, most_bins: int = MOST_BINS) -> tuple[Group, ...]:
    """Groups in the order of the levels. Neighbouring bins are put together; of categories the rarest are, and of
    single numbers where they would take more than half of the room."""
    labels = attribute.labels
    bins = _ordered(attribute)
    if len(labels) <= (most_bins if bins else MOST_LEVELS):
        return tuple(Group(label, (code,)) for code, label in enumerate(labels))
    if bins:
        beside = _frequent(labels, range(bins, len(labels)), p, most_bins // 2)
        step = math.ceil(bins / (most_bins - len(beside)))
        runs = [tuple(range(first, min(first + step, bins))) for first in range(0, bins, step)]
        return (*(Group(_range(attribute, run), run) for run in runs), *beside)
    return _frequent(labels, range(len(labels)), p, MOST_LEVELS)


def _frequent(labels: Sequence[str], codes: Sequence[int], p: Array, most: int) -> tuple[Group, ...]:
    """These levels, the rarest of them as one where there are more than so many."""
    kept = list(codes) if len(codes) <= most else sorted(sorted(codes, key=lambda c: (-p[c], c))[: most - 1])
    others = tuple(code for code in codes if code not in set(kept))
    single = [Group(labels[code], (code,)) for code in kept]
    return (*single, *([Group(counted(len(others), "other"), others)] if others else []))


def _ordered(attribute: Attribute) -> int:
    """How many of the levels, the first ones, are numbers in their order; 0 if not all that are declared are."""
    if attribute.is_numeric:
        return attribute.bins
    if attribute.dates is not None:
        return len(attribute.dates.labels)
    levels = attribute.levels
    numbers = [level for level in levels if isinstance(level, int) and not isinstance(level, bool)]
    return len(levels) if len(numbers) == len(levels) and numbers == sorted(numbers) else 0


def _range(attribute: Attribute, run: Sequence[int]) -> str:
    first, last = attribute.labels[run[0]], attribute.labels[run[-1]]
    if len(run) == 1:
        return first
    return f"{first.partition(',')[0]},{last.partition(',')[2]}" if attribute.is_numeric else f"{first} – {last}"


# -- numbers -----------------------------------------------------------------------------------------------------------


def percent(p: float, half: float | None = None) -> str:
    """A probability in per cent, with the digits that noise leaves; ``half`` is the half-width of its interval."""
    if half is None:
        return f"{100 * p:.1f} %" if p >= 0.0005 or p <= 0 else "< 0.1 %"
    if half <= 0:  # no noise can have made it anything else
        return "0 %" if p <= 0 else percent(p)
    places = digits(100 * half, fewest=1)
    return f"{100 * p:.{places}f} % ± {100 * half:.{places}f}"


def heading(label: str, most: int = 12) -> str:
    """A label above a column of a table: a short one is not broken into lines."""
    return label.replace(" ", "\N{NO-BREAK SPACE}") if len(label) <= most else label


def percents(found: Interval) -> list[str]:
    """Every probability of an answer in per cent, with its ±."""
    said = zip(found.estimate.tolist(), found.half_width.tolist(), found.texts(), strict=True)
    return [f"{percent(p)} ± {ANYTHING}" if text == ANYTHING else percent(p, half) for p, half, (_, text) in said]


def bars(column: Shown) -> list[dict[str, Any]]:
    """A bar for each group of levels of one column."""
    out: list[dict[str, Any]] = []
    for i, (group, p) in enumerate(zip(column.groups[0], column.probabilities, strict=True)):
        whisker = None
        if column.interval is not None and not column.never[i]:
            low, high = float(column.interval.lower[i]), float(column.interval.upper[i])
            whisker = (f"{100 * low:.2f}", f"{100 * (high - low):.2f}")
        out.append({"label": group.label, "width": f"{100 * p:.2f}", "whisker": whisker, "text": column.text(i)})
    return out
