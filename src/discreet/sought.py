"""What of a column is to be found privately, and the public grid on which numbers are looked for.

``bins = "private"``: bins of about equal mass, between public ends (``range = [0, 120]``) or within a range that is
found as well (``range = "private"``). ``levels = "discover"``: the levels that stand out. All of it is asked with noise
and paid for (:mod:`discreet.learn.discovery`); this module holds what is known before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import SchemaError
from .spelling import tidy

PRIVATE, DISCOVER = "private", "discover"
KEYS = ("bins", "range", "most", "scale", "at_most", "always")
MOST_BINS, MOST_LEVELS = 32, 100
LARGEST = 10_000  # bins or levels that may be asked for
CELLS = 4096  # of the finest grid between public ends
BRANCHES = 16  # cells that make one of the next coarser grid
OCTAVES = 56  # of a grid for a private range: from its least size to 2⁵⁶ times that
FINER = 2.0**-16  # least size that is told apart, in units of ``scale``, unless numbers are whole

Grids = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True)
class Sought:
    """Of numbers: at most so many bins, between these ends (None: a range that is found, too). Of categories: at most
    so many levels.

    ``heaps`` are those that are public knowledge; 0 is looked for in any case. ``scale``: a size of the numbers, as
    far as that is public, for a private range.
    """

    what: str
    most: int
    ends: tuple[float, float] | None = None
    heaps: tuple[float, ...] = ()
    scale: float = 1.0
    integer: bool = False
    decimals: int | None = None
    step: float | None = None

    # -- the grid ----------------------------------------------------------------------------------------------------

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The edges of the finest cells. Whole numbers that are cells of their own are in the middle of theirs."""
        if self.ends is None:
            return self._octaves()
        low, high = self.ends
        if self.one_by_one:
            return tuple(np.arange(low, high + 2) - 0.5)
        width = self.width
        digits = max(0, 2 - math.floor(math.log10(width)))
        inner = (round(low + i * width, digits) for i in range(1, math.ceil((high - low) / width)))
        return (low, *(e for e in inner if low < e < high), high)

    @property
    def width(self) -> float:
        """Of a cell between public ends: a round number."""
        assert self.ends is not None
        least = 1.0 if self.integer else 10.0**-self.decimals if self.decimals is not None else 0.0
        width = max(_round_up((self.ends[1] - self.ends[0]) / CELLS), least)
        return width if self.step is None else math.ceil(width / self.step - 1e-9) * self.step

    @property
    def one_by_one(self) -> bool:
        """Whether every whole number between the ends is a cell of its own."""
        return self.ends is not None and self.integer and self.step is None and self.width <= 1

    @property
    def points(self) -> tuple[float, ...]:
        """Numbers that are counted by themselves, and may turn out to be heaps."""
        if self.one_by_one:
            return ()
        zero = self.ends is None or self.ends[0] <= 0 <= self.ends[1]
        return tuple(sorted({*self.heaps, *([0.0] if zero else [])}))

    @cached_property
    def coarser(self) -> Grids:
        """For each coarser grid, the coarser cell of each finest cell; the coarsest last."""
        cells = len(self.edges) - 1
        if self.ends is None:
            return (self._octave_of(),)
        out: list[NDArray[np.int64]] = []
        size = BRANCHES
        while cells > 2 * size:
            out.append(np.arange(cells) // size)
            size *= BRANCHES
        return tuple(out)

    @property
    def least(self) -> float:
        """The least size that a grid for a private range tells apart."""
        return 1.0 if self.integer else self.scale * FINER

    def _octaves(self) -> tuple[float, ...]:
        """Every octave in sixteen cells of equal width, as far as whole numbers allow."""
        up = [0.0, self.least]
        for octave in range(OCTAVES):
            parts = min(BRANCHES, 2**octave) if self.integer else BRANCHES
            up += [self.least * 2.0**octave * (1 + i / parts) for i in range(1, parts + 1)]
        return (*(-e for e in reversed(up)), *up[1:])

    def _octave_of(self) -> NDArray[np.int64]:
        edges = np.asarray(self.edges)
        middle = (edges[1:] + edges[:-1]) / 2
        octave = np.floor(np.log2(np.maximum(np.abs(middle) / self.least, 0.5))).astype(np.int64) + 1
        signed = np.where(middle < 0, -octave, octave)
        return np.unique(signed * 2 + (middle >= 0), return_inverse=True)[1].astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """The keys of the schema file that say this."""
        if self.what == "levels":
            return {"levels": DISCOVER, "at_most": self.most}
        ends = PRIVATE if self.ends is None else [tidy(e) for e in self.ends]
        scale = {"scale": tidy(self.scale)} if self.scale != 1 else {}
        return {"bins": PRIVATE, "range": ends, "most": self.most, **scale}


def sought_in(entry: Mapping[str, Any]) -> tuple[Sought | None, dict[str, Any]]:
    """What a section of the schema file seeks, and the rest of it: equal bins between public ends are edges."""
    rest = {key: value for key, value in entry.items() if key not in KEYS}
    if entry.get("levels") == DISCOVER:
        return _levels(entry, rest)
    if isinstance(entry.get("levels"), str):
        raise SchemaError(f'levels is a list, or "{DISCOVER}" to find them privately; got {entry["levels"]!r}')
    if wrong := [key for key in ("at_most", "always") if key in entry]:
        raise SchemaError(f'{wrong[0]} belongs to levels = "{DISCOVER}"')
    if "bins" not in entry:
        if wrong := [key for key in ("range", "most", "scale") if key in entry]:
            raise SchemaError(f'{wrong[0]} belongs to bins = "{PRIVATE}"; add it, or give edges = […]')
        return None, rest
    if taken := [key for key in ("levels", "edges", "dates") if key in entry]:
        raise SchemaError(f"it has both {taken[0]} and bins; keep one of them")
    bins, said = entry["bins"], entry.get("range")
    ends = None if said == PRIVATE else _ends(said)
    if isinstance(bins, int) and not isinstance(bins, bool) and 1 <= bins <= LARGEST and ends is not None:
        return None, {**rest, "edges": _equal(bins, ends, bool(rest.get("integer")))}
    if bins != PRIVATE:
        raise SchemaError(
            f'bins is "{PRIVATE}", to have them found, or a number of equal bins between public ends, as in '
            f"bins = 20, range = [0, 100]; got {bins!r}"
        )
    scale = entry.get("scale", 1)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 1e-100 < scale < 1e100:
        raise SchemaError(f"scale is a positive number, about as large as the values are; got {scale!r}")
    step = rest.get("step")
    if step is not None:
        if type(step) not in (int, float) or not 1e-12 <= step <= 1e12:
            raise SchemaError(f"step is a positive number such as 5 or 0.25, got {step!r}")
        if ends is None:  # a bin that is found on a grid of other numbers may hold no multiple at all
            raise SchemaError("step needs a public range, such as range = [0, 1000]; or leave step out")
    integer = bool(rest.get("integer")) or rest.get("decimals") == 0 or (step is not None and float(step).is_integer())
    heaps = rest.pop("heaps", [])
    if not isinstance(heaps, list) or not all(type(h) in (int, float) and abs(h) < 1e300 for h in heaps):
        raise SchemaError(f"heaps must be a list of finite numbers, got {heaps!r}")
    if ends is not None and integer and not all(float(e).is_integer() for e in ends):
        raise SchemaError("the numbers are whole, so the ends of their range must be whole too")
    most = _most(entry, "most", MOST_BINS)
    precision = (integer, rest.get("decimals"), None if step == 1 else step)  # one of 1 is `integer`
    return Sought("bins", most, ends, tuple(map(float, heaps)), float(scale), *precision), rest


def _levels(entry: Mapping[str, Any], rest: dict[str, Any]) -> tuple[Sought, dict[str, Any]]:
    if taken := [key for key in ("edges", "dates", "bins", "range", "most") if key in entry]:
        raise SchemaError(f'{taken[0]} has no meaning beside levels = "{DISCOVER}"; leave it out')
    always = entry.get("always", [])
    if not isinstance(always, list):
        raise SchemaError("always is a list of levels that are public knowledge, and kept in any case")
    rest["levels"] = always
    rest.setdefault("other", "other" if "other" not in [*map(str, always), rest.get("missing")] else "(other)")
    return Sought("levels", _most(entry, "at_most", MOST_LEVELS)), rest


def _most(entry: Mapping[str, Any], key: str, usual: int) -> int:
    most = entry.get(key, usual)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= LARGEST:
        raise SchemaError(f"{key} is a whole number from 1 to {LARGEST:,}, got {most!r}")
    return most


def _ends(said: Any) -> tuple[float, float]:
    numbers = isinstance(said, list) and len(said) == 2 and all(type(e) in (int, float) for e in said)
    if not numbers or not -1e300 < said[0] < said[1] < 1e300:
        raise SchemaError(
            f"bins need a range = [0, 120], the least and the largest number that count, from public knowledge; or "
            f'range = "{PRIVATE}", to have that found, too; got {said!r}'
        )
    return float(said[0]), float(said[1])


def _equal(bins: int, ends: tuple[float, float], whole: bool) -> list[float]:
    edges = np.linspace(*ends, bins + 1)
    return list(dict.fromkeys(map(float, np.round(edges) if whole else edges)))


def _round_up(x: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = math.floor(math.log10(x))
    return next(m * 10.0**power if power >= 0 else m / 10.0**-power for m in (1, 2, 5, 10) if m * 10.0**power >= x)
