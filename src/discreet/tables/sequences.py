"""Sequences of people, from a long table (person, time, state), as a table of steps: one row for each move.

A step goes from a state to the next one of the same sequence; the first row of a sequence is a step from *start*. The
steps keep their person, so a curator bounds what one person contributes by drawing some of their steps. Curator-side:
it sees rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_whole
from ..domain import Attribute, Domain
from ..encoding import as_list, code_type, columns_of, encode_column
from ..errors import InputError
from .encode import _persons
from .memory import MemoryTable

START = "(start)"
BEFORE, AFTER, SIZE = "before", "after", "steps"


class StepsTable(MemoryTable):
    """Steps as :func:`steps` made them: a row says how many its person had in all, or ``largest``. So do blocks,
    samples and clipped rows of it, in which a person can only have fewer.

    Weights of 1/K rest on this. A table with columns of the same names is not one: nobody counted its steps.
    """

    counts_steps = True


def steps_domain(states: Attribute, largest: int) -> Domain:
    """The columns of a table of steps: where from (a state or the start), where to, and how many steps the person has
    in all (1 … ``largest``, more counting as ``largest``)."""
    if START in states.labels:
        raise InputError(f"a state must not be called {START!r}")
    before = Attribute.categorical(BEFORE, (*states.labels, START))
    after = Attribute.categorical(AFTER, states.labels)
    size = Attribute.categorical(SIZE, range(1, largest + 1), outside=str(largest))
    return Domain((before, after, size))


def steps(
    rows: Any,
    states: Attribute,
    *,
    person: str,
    time: str,
    state: str | None = None,
    sequence: str | None = None,
    null: str | None = None,
    largest: int = 100,
) -> StepsTable:
    """A table of steps, with ``person`` as its unit column.

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
    sequence:
        A column that cuts a person's rows into several sequences, each with a start of its own (hours of a day).
    null:
        The label of a state that means nothing was seen: steps from it to itself, and sequences that start with it, are
        left out.
    largest:
        The largest number of steps that a person is taken to have: one with more counts as having this many. Weights
        of 1/K then add up to 1 for at most so many of them, which is what ``max_rows`` is checked against.
    """
    if not isinstance(states, Attribute):
        raise InputError(
            "states is an Attribute, such as Attribute.categorical('room', ['hall', 'desk']); "
            f"got {type(states).__name__}"
        )
    check_whole(1, largest=largest)
    own = state or states.name
    columns = columns_of(rows, [own, person, time, *([sequence] if sequence else [])])
    codes = encode_column(columns[own], replace(states, name=own)).astype(np.int64)
    kept, persons = _persons(columns[person])
    codes, when = codes[kept], _order(columns[time], kept)
    part = _order(columns[sequence], kept) if sequence else np.zeros(len(codes), dtype=np.int64)
    # Ties in time are settled by the state, never by the position of a row.
    order = np.lexsort((codes, when, part, persons.of_row))
    codes, part, owner = codes[order], part[order], persons.of_row[order]
    first = np.ones(len(codes), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (part[1:] != part[:-1])
    before = np.where(first, states.size, np.roll(codes, 1))
    keep = np.ones(len(codes), dtype=bool)
    if null is not None:
        nothing = states.code(null)
        keep = ~((codes == nothing) & ((before == nothing) | first))
    before, codes, owner = before[keep], codes[keep], owner[keep]
    number = np.bincount(owner, minlength=len(persons.identity))[owner]
    size = np.minimum(number, largest) - 1
    domain = steps_domain(states, largest)
    columns_of_steps = zip(domain.attributes, (before, codes, size), strict=True)
    arrays: list[Any] = [column.astype(code_type(a.size)) for a, column in columns_of_steps]
    return StepsTable(domain, arrays, persons=replace(persons, of_row=owner), unit_column=person)


def _order(values: Any, kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ranks of times or of the names of sequences: only their order matters.

    How two values compare depends on the two alone, never on what else the column holds: a type that is taken from the
    whole column would let one odd value reorder everybody's steps.
    """
    items = as_list(values)
    keys = [_sort_key(items[i]) for i in kept]
    rank = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.fromiter(map(rank.__getitem__, keys), np.int64, len(keys))


def _sort_key(value: Any) -> tuple[int, Any]:
    """Nulls, then numbers (also spelled out) and durations, then dates, then words. Each kind is totally ordered.

    Whole numbers are compared as 64-bit floats, because that is what a frame makes of all of them as soon as one is
    missing: beyond 2⁵³ neighbours tie, whether or not somebody's time is missing. Not a number is a null, for it
    compares with nothing and would leave the order of all others to chance.
    """
    try:
        if isinstance(value, np.timedelta64 | timedelta):
            return _number_key(value / np.timedelta64(1, "s"))
        if isinstance(value, np.datetime64 | date):
            return (2, _moment(value))
        if isinstance(value, str):
            key = _number_key(value)
            return key if key[0] else (3, value)  # the word "nan" is a word
        return (0, 0.0) if value is None else _number_key(value)
    except Exception:  # reading and spelling a value runs code of its own, which may raise anything
        return (3, _spelled(value))


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
        whole = value.astype("datetime64[us]")
        finer = 0 if np.isnat(value) else int((value - whole) / np.timedelta64(1, "ns"))
        return int(whole.astype(np.int64)), finer
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    since = value.replace(tzinfo=None) - datetime(1970, 1, 1) - (value.utcoffset() or timedelta())
    return since // timedelta(microseconds=1), getattr(value, "nanosecond", 0)
