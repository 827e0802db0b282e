"""What a schema says of a column of numbers, checked and in one form: edges, heaps, how numbers are written, and where
in the bins they lie. Equal things have equal forms, so that equal domains have equal fingerprints.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from .errors import SchemaError
from .spelling import plain

MOST_DECIMALS = 12
Spread = tuple[tuple[float, float], ...]


def checked_edges(edges: Sequence[Any]) -> tuple[float, ...]:
    """At least two, finite and increasing; 0, 0.0 and -0.0 are the same edge."""
    if len(edges) < 2:
        raise SchemaError(f"edges needs at least two numbers, got {list(edges)}")
    out = _finite(edges, "edges")
    if any(a >= b for a, b in pairwise(out)):
        raise SchemaError(f"edges must increase, got {list(out)}")
    return out


def checked_heaps(heaps: Sequence[Any]) -> tuple[float, ...]:
    return tuple(sorted(_finite(heaps, "heaps")))


def _finite(numbers: Sequence[Any], what: str) -> tuple[float, ...]:
    for x in numbers:
        if isinstance(x, bool) or not isinstance(x, int | float) or not abs(x) <= sys.float_info.max:
            raise SchemaError(f"{what} must be finite numbers, got {x!r}")
    return tuple(float(x) + 0.0 for x in numbers)


def checked_writing(integer: bool, decimals: Any, step: Any) -> tuple[bool, int | None, float | None]:
    """How numbers are written: a step of 1 is ``integer``, and so is no decimals; a step of 0.01 is two decimals."""
    if step is not None:
        if isinstance(step, bool) or not isinstance(step, int | float) or not 10.0**-MOST_DECIMALS <= step <= 1e12:
            raise SchemaError(f"step is a positive number such as 5 or 0.25, got {step!r}")
        if decimals is not None:
            raise SchemaError("step says how many decimals there are; leave decimals out")
        if integer and not float(step).is_integer():
            raise SchemaError(f"integer = true and step = {step} contradict each other")
        digits = decimals_of(float(step))
        if digits > MOST_DECIMALS:
            raise SchemaError(f"step has at most {MOST_DECIMALS} decimals, got {step!r}")
        integer = digits == 0
        decimals, step = (digits or None, None) if step == 10.0**-digits else (None, float(step))
    if decimals is None:
        return integer, None, step
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MOST_DECIMALS:
        raise SchemaError(f"decimals is a number from 0 to {MOST_DECIMALS}, got {decimals!r}")
    if integer and decimals:
        raise SchemaError(f"integer = true and decimals = {decimals} contradict each other")
    return integer or decimals == 0, decimals or None, step


def checked_spread(spread: Sequence[Any], edges: Sequence[float]) -> Spread:
    """Pairs of a number inside a bin and the part of the bin's records below it; both increase."""
    pairs = [tuple(map(plain, pair)) if isinstance(pair, list | tuple) else () for pair in spread]
    said = "spread holds pairs such as [40, 0.25]: a number in a bin, the part of it below"
    if any(len(p) != 2 or not all(type(x) in (int, float) and abs(x) < math.inf for x in p) for p in pairs):
        raise SchemaError(said)
    before = (-math.inf, -1, 0.0)
    for x, share in pairs:
        home = bisect_right(edges, x) - 1
        if not 0 <= home < len(edges) - 1 or x == edges[home] or not 0 <= share <= 1:
            raise SchemaError(f"{said}; got {[x, share]}")
        if x <= before[0] or (home == before[1] and share < before[2]):
            raise SchemaError(f"{said}; numbers and, within a bin, parts must increase; got {[x, share]}")
        before = (x, home, share)
    return tuple((float(x) + 0.0, float(share) + 0.0) for x, share in pairs)


def decimals_of(step: float) -> int:
    """How many decimals multiples of it have."""
    return max(-int(Decimal(repr(step)).normalize().as_tuple().exponent), 0)
