"""Whether public tables can be true of the records that were measured.

Learners take a public table for certain, so a wrong one (another year's census, another number of records) would
overrule every measurement, and no interval would show it. Whether it fits can be told from public things and noisy
tables alone: on the columns that it shares with a measured table (none: the number of records) the two differ by noise
of a known size (and, for proportions of a population, by the sampling of the records). For both kinds of noise
P(|noise| > z standard deviations) ≤ exp(−√2·z) from z = 3 on (Laplace noise attains it; sums of it and Gaussian noise
have thinner tails). So a public table that is true is refused with probability below exp(−20) = 2e-9 for each table it
is held against, and doubted, in a warning, below exp(−7) = 1e-3.

Post-processing: rows are not read.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique
from ..errors import InputError
from ..measurement import Measurement

REFUSED, DOUBTED = 20.0, 7.0
ROUNDING = 0.005
"""How far two public tables may be apart where one of them holds proportions, which are often rounded."""


def check_public(items: Sequence[Measurement], total: float, variance: float) -> None:
    """Refuse public tables that contradict one another, or that noise cannot explain; warn of those that it hardly
    can. ``total`` is the number of records as far as the tables tell, ``variance`` that of its noise."""
    tables = [m for m in items if m.clique is not None]
    public = [m for m in tables if m.origin == "public"]
    for one, other in combinations(public, 2):
        _check_pair(one, other)
    for m in public:
        for noisy in tables:
            if noisy.noise.variance > 0:
                _check_distance(m, noisy, total, variance)


def _check_pair(one: Measurement, other: Measurement) -> None:
    shared = _shared(one, other)
    a, b = one.as_table().onto(shared), other.as_table().onto(shared)
    if one.proportions or other.proportions:
        shares = (t.values / max(t.total, 1e-300) for t in (a, b))
        apart = float(np.abs(np.subtract(*shares)).max()) > ROUNDING
    else:
        apart = bool(np.any(a.values != b.values))
    if apart:
        where = f"on {', '.join(shared)}" if shared else "on the number of records"
        raise InputError(
            f"the public tables {one.label!r} and {other.label!r} contradict each other {where}: leave one out. "
            "What is known of a population goes into Measurement.public(…, proportions=…)"
        )


def _check_distance(m: Measurement, noisy: Measurement, total: float, variance: float) -> None:
    surprise, distance = _surprise(m, noisy, total, variance)
    if surprise <= DOUBTED:
        return
    text = (
        f"the public table {m.label!r} lies {distance:.0f} standard deviations of noise from the measured table "
        f"{noisy.label!r}"
    )
    if surprise > REFUSED:
        other = "" if m.proportions or not m.clique else ", or give its proportions=… instead of counts"
        raise InputError(
            f"{text}, so it is not of these records, and taken for certain it would overrule them; leave it out{other}"
        )
    warnings.warn(f"{text}: is it of these records? It is taken for certain", stacklevel=2)


def fits(size: Measurement, items: Sequence[Measurement]) -> bool:
    """Whether a stated number of records can be true. What a curator was told is not refused, for the budget is spent
    by then: it is left out, with a warning."""
    for m in items:
        if m.clique is not None and m.noise.variance > 0:
            surprise, distance = _surprise(size, m, 0.0, 0.0)
            if surprise > REFUSED:
                warnings.warn(
                    f"the public number of records that the curator was told, {int(size.counts):,}, lies "
                    f"{distance:.0f} standard deviations of noise from the measured table {m.label!r}; it "
                    "is not made use of",
                    stacklevel=2,
                )
                return False
    return True


def _surprise(m: Measurement, noisy: Measurement, total: float, variance: float) -> tuple[float, float]:
    """Minus the logarithm of the probability that noise alone sets the two so far apart, about; and how many standard
    deviations that is."""
    shared = _shared(m, noisy)
    known, seen = m.as_table().onto(shared).values, noisy.as_table().onto(shared)
    spread: NDArray[np.float64] | float = seen.variance
    if m.proportions:
        # They are of a population that the records are a sample of, and the number of records is noisy as well.
        spread = spread + known**2 * variance + total * known * (1 - known)
        known = known * total
    distance = float((np.abs(known - seen.values) / np.sqrt(spread)).max())
    return math.sqrt(2) * distance - math.log(known.size), distance


def _shared(one: Measurement, other: Measurement) -> Clique:
    return tuple(n for n in one.clique or () if n in (other.clique or ()))
