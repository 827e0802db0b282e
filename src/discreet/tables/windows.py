"""Windows of people's sequences, from a long table (person, time, state): one row for each, a column for each time.

A window is a record like any other, with the person as its unit, so that a curator bounds what one person contributes
by drawing some of their windows, and every learner can work with it. Curator-side: it sees rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_whole
from ..dates import BEYOND, Dates, moments_of
from ..domain import Attribute, Clique, Domain
from ..encoding import as_list, code_type, columns_of, encode_column
from ..errors import InputError
from .base import WEIGHT_UNITS, IntArray
from .memory import MemoryTable, Persons
from .persons import persons_of
from .sources import SourceFile, batches_of, failures_of, find_files, open_file

SECONDS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
MOST_TIMES = 1000


class WindowsTable(MemoryTable):
    """Windows as :func:`windows` made them. It knows how many its persons have, and so can let each window of a person
    with K of them count 1/K; so can blocks, samples and clipped rows of it, in which a person can only have fewer."""

    for_persons_alone = True
    knows_weights = True

    def __init__(self, domain: Domain, columns: list[Any], persons: Persons, unit_column: str) -> None:
        super().__init__(domain, columns, persons=persons, unit_column=unit_column)
        number = np.bincount(persons.of_row, minlength=len(persons.identity))
        self._weights = (WEIGHT_UNITS // np.maximum(number, 1))[persons.of_row]

    def weighed(self, cliques: Sequence[Clique]) -> tuple[IntArray, ...]:
        tables = []
        for clique in cliques:
            shape = tuple(self.domain[name].size for name in clique)
            cells = np.ravel_multi_index(tuple(self._columns[name].astype(np.int64) for name in clique), shape)
            # Whole numbers of at most 2²⁰: sums of 2³³ of them are exact in floats.
            counted = np.bincount(cells, weights=self._weights, minlength=math.prod(shape))
            tables.append(counted.astype(np.int64).reshape(shape))
        return tuple(tables)

    def without_persons(self) -> MemoryTable:
        return MemoryTable(self.domain, list(self._columns.values()))

    def _take(self, rows: NDArray[Any]) -> Self:
        part = super()._take(rows)
        part._weights = self._weights[rows]
        return part


@dataclass(frozen=True)
class Windows:
    """How sequences of people become windows; all of it public. The parameters are those of :func:`windows`."""

    states: Attribute
    person: str
    time: str
    length: int
    state: str | None = None
    sequence: str | None = None
    segment: float | str | None = None
    null: str | None = None
    format: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.states, Attribute):
            raise InputError(
                "states is an Attribute, such as Attribute.categorical('room', ['hall', 'desk']); "
                f"got {type(self.states).__name__}"
            )
        if self.states.sought is not None:
            raise InputError(
                f"the states of a chain are public knowledge, and those of {self.states.name!r} are still to be "
                "found; list them"
            )
        if self.format:
            Dates("weekday", format=self.format)  # refuses one that cannot be read back
        check_whole(2, length=self.length)
        if self.length > MOST_TIMES:
            raise InputError(f"a window has at most {MOST_TIMES:,} times, got {self.length:,}; take shorter windows")
        if self.null is not None:
            self.states.code(self.null)
        if self.segment is None:
            return
        if isinstance(self.segment, str) and self.segment not in SECONDS:
            raise InputError(f"a segment is a number or one of {', '.join(SECONDS)}; got {self.segment!r}")
        if not isinstance(self.segment, str) and not 0 < self.segment < math.inf:
            raise InputError(f"a segment is as long as a positive number says, got {self.segment!r}")
        if self.null is None:
            raise InputError(
                "a segment has times at which nobody was seen: name the state that stands for them, as null"
            )
        if self.sequence is not None:
            raise InputError("segments are cut by the clock and sequences by a column; give one of them")

    @property
    def domain(self) -> Domain:
        """The columns of the windows: t1, t2, … with the states as their levels."""
        return Domain(tuple(replace(self.states, name=f"t{t + 1}") for t in range(self.length)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the long table."""
        own = (self.state or self.states.name, self.person, self.time)
        return tuple(dict.fromkeys((*own, *([self.sequence] if self.sequence else []))))

    def table(self, rows: Any) -> WindowsTable:
        """The windows of these rows."""
        columns = columns_of(rows, self.columns)
        own = self.state or self.states.name
        codes = encode_column(columns[own], replace(self.states, name=own)).astype(np.int64)
        kept, persons = persons_of(columns[self.person])
        codes, owner = codes[kept], persons.of_row
        keys = _keys(columns[self.time], kept, self.format)
        part = np.zeros(len(codes), dtype=np.int64)
        if self.sequence:
            part = _ranks(_keys(columns[self.sequence], kept))
        when = _ranks(keys)
        window, slot = self._in_turn(codes, owner, part, when) if self.segment is None else self._on_the_clock(keys)
        # What comes later at the same place counts; ties in time are settled by the state, never by the row's position.
        order = np.lexsort((codes, when, slot, window, owner))
        grid, of_row = self._filled(codes[order], owner[order], window[order], slot[order])
        arrays = [grid[:, t].astype(code_type(self.states.size)) for t in range(self.length)]
        return WindowsTable(self.domain, arrays, replace(persons, of_row=of_row), self.person)

    def check(self, path: str | os.PathLike[str], delimiter: str | None = None, *, row_is_line: bool = False) -> None:
        """Whether the files have the columns: their first lines and footers are public."""
        for place in find_files(path):
            self._require(open_file(place, delimiter, row_is_line=row_is_line))

    def open(
        self, path: str | os.PathLike[str], delimiter: str | None = None, *, row_is_line: bool = False
    ) -> WindowsTable:
        """The windows of the rows in files, CSV or Parquet; in memory."""
        names = self.columns
        found: dict[str, list[Any]] = {name: [] for name in names}
        for place in find_files(path):
            file = open_file(place, delimiter, row_is_line=row_is_line)
            self._require(file)
            with failures_of(file):
                for columns in batches_of(file, names):
                    for name, column in zip(names, columns, strict=True):
                        found[name] += column.to_list()
        return self.table(found)

    def _require(self, file: SourceFile) -> None:
        file.require([self.state or self.states.name], "state")
        file.require([self.person], "unit column", credible=True)
        file.require([self.time], "time column", credible=True)
        if self.sequence:
            file.require([self.sequence], "sequence column", credible=True)

    def _in_turn(self, codes: Any, owner: Any, part: Any, when: Any) -> tuple[Any, Any]:
        """Each sequence is cut into windows of so many rows, one after the other."""
        order = np.lexsort((codes, when, part, owner))
        first = np.ones(len(order), dtype=bool)
        first[1:] = (np.diff(owner[order]) != 0) | (np.diff(part[order]) != 0)
        begun = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        place = np.arange(len(order)) - begun
        window, slot = np.empty_like(owner), np.empty_like(owner)
        # Windows of one sequence in order, sequences apart: only which rows share a window matters.
        window[order] = np.cumsum(first | (place % self.length == 0))
        slot[order] = place % self.length
        return window, slot

    def _on_the_clock(self, keys: list[tuple[int, Any]]) -> tuple[Any, Any]:
        """Time is cut into segments, and each of them into as many slots as a window has times."""
        assert self.segment is not None
        long = SECONDS[self.segment] if isinstance(self.segment, str) else self.segment
        seconds = np.array([_seconds(key) for key in keys], dtype=np.float64)
        with np.errstate(all="ignore"):  # a warning would tell of somebody's odd time
            segment = np.floor(seconds / long)
            slot = np.floor((seconds - segment * long) / long * self.length + 1e-9)
        lost = ~np.isfinite(seconds) | (np.abs(segment) > 2**53)
        slot = np.where(lost, -1, np.clip(slot, 0, self.length - 1)).astype(np.int64)
        return np.where(lost, -1, segment).astype(np.int64), slot

    def _filled(self, codes: Any, owner: Any, window: Any, slot: Any) -> tuple[Any, Any]:
        """A row of codes for each window that is complete, or filled with ``null``; and whose each is."""
        known = slot >= 0
        codes, owner, window, slot = codes[known], owner[known], window[known], slot[known]
        fresh = np.ones(len(codes), dtype=bool)
        fresh[1:] = (np.diff(owner) != 0) | (np.diff(window) != 0)
        row = np.cumsum(fresh) - 1
        nothing = -1 if self.null is None else self.states.code(self.null)
        grid = np.full((int(fresh.sum()), self.length), nothing, dtype=np.int64)
        grid[row, slot] = codes
        kept = (grid >= 0).all(axis=1) if self.null is None else (grid != nothing).any(axis=1)
        return grid[kept], owner[fresh][kept]


def windows(
    rows: Any,
    states: Attribute,
    *,
    person: str,
    time: str,
    length: int,
    state: str | None = None,
    sequence: str | None = None,
    segment: float | str | None = None,
    null: str | None = None,
    format: str = "",
) -> WindowsTable:
    """A table of windows, with ``person`` as its unit column and the columns t1, t2, … for their times.

    Parameters
    ----------
    rows:
        A long table, one row for each person and time.
    states:
        The states, public knowledge. ``state`` names the column when it is called otherwise.
    person, time:
        Whose row it is (a composite key for a person-day), and when: numbers, dates or words that sort. Numbers are
        compared as 64-bit floats, so whole numbers beyond 2⁵³ may tie (nanoseconds since 1970: to 256 of them); rows
        of a person at the same time are put in the order of their states.
    length:
        How many times a window has.
    sequence:
        A column that cuts a person's rows into several sequences. Each sequence is cut into windows of ``length`` rows;
        what is left over at its end is filled with ``null``, or left out where there is none.
    segment:
        Cut by the clock instead: ``"hour"`` (or minute, day, week; or a number, in seconds for dates and in their own
        unit for numbers). Each segment has ``length`` slots; a slot has the last state seen in it, or ``null``.
    null:
        The state that means nobody was seen. Windows that hold nothing else are left out.
    format:
        How times are spelled in text, as for ``strptime``; ISO by default. Text that spells no time is a word: words
        come last, in the order of their letters, and are nowhere on the clock.
    """
    return Windows(states, person, time, length, state, sequence, segment, null, format).table(rows)


# -- when: total, and of one value at a time ---------------------------------------------------------------------------


def _keys(values: Any, kept: NDArray[np.int64], form: str = "") -> list[tuple[int, Any]]:
    items = as_list(values)
    return [_sort_key(items[i], form) for i in kept]


def _ranks(keys: list[tuple[int, Any]]) -> NDArray[np.int64]:
    """Ranks of times or of the names of sequences: only their order matters.

    How two values compare depends on the two alone, never on what else the column holds: a type that is taken from the
    whole column would let one odd value reorder everybody's rows.
    """
    rank = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.fromiter(map(rank.__getitem__, keys), np.int64, len(keys))


def _seconds(key: tuple[int, Any]) -> float:
    """When it is on the clock: a number as it is, a date in seconds since 1970; nowhere for what is neither."""
    kind, value = key
    if kind == 1:
        return float(value)
    return value[0] / 1e6 if kind == 2 else math.nan


def _sort_key(value: Any, form: str = "") -> tuple[int, Any]:
    """Nulls, then numbers (also spelled out) and durations, then dates, then words. Each kind is totally ordered.

    Whole numbers are compared as 64-bit floats, because that is what a frame makes of all of them as soon as one is
    missing: beyond 2⁵³ neighbours tie, whether or not somebody's time is missing. Not a number is a null, for it
    compares with nothing and would leave the order of all others to chance.
    """
    try:
        if isinstance(value, np.timedelta64 | timedelta):
            return _number_key(np.timedelta64(value) / np.timedelta64(1, "s"))
        if isinstance(value, np.datetime64 | date):
            return (2, _moment(value))
        if isinstance(value, str):
            return (2, _moment(datetime.strptime(value.strip(), form))) if form else _text_key(value)
        return (0, 0.0) if value is None else _number_key(value)
    except Exception:  # reading and spelling a value runs code of its own, which may raise anything
        return (3, _spelled(value))


def _text_key(value: str) -> tuple[int, Any]:
    """A number or an ISO date that is spelled out, else a word; "nan" is a word."""
    try:
        key = _number_key(value)
        return key if key[0] else (3, value)
    except ValueError:
        return (2, _moment(datetime.fromisoformat(value)))


def _spelled(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return type(value).__name__


def _number_key(value: Any) -> tuple[int, float]:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    return (0, 0.0) if math.isnan(number) else (1, number)


def _moment(value: Any) -> tuple[int, int]:
    """Microseconds since 1970 (in UTC, when it says where it was taken) and nanoseconds beyond them."""
    if isinstance(value, np.datetime64):
        (whole,) = moments_of(np.array([value])).tolist()
        if np.isnat(value) or abs(whole) == BEYOND:
            return whole, 0
        return whole, int(np.timedelta64(value - np.datetime64(whole, "us")) / np.timedelta64(1, "ns"))
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    since = value.replace(tzinfo=None) - datetime(1970, 1, 1) - (value.utcoffset() or timedelta())
    return since // timedelta(microseconds=1), getattr(value, "nanosecond", 0)
