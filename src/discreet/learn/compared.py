"""Which tables a certificate of fit compares, and how much each counts for the mean: said before a row is read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from ..domain import Clique, Domain
from ..errors import InputError
from .fields.purpose import WORDS, Workload

MOST_TABLES = 3000
"""Compared at once. Of more, so many are taken whose names have the smallest digests: public, and like any others."""
LARGEST_TABLE = 2**22
LARGEST_WEIGHT = 1000
"""Weights are whole numbers, so that the weighted sum is one: up to this exactly, and rounded where they need more."""


@dataclass(frozen=True)
class Compared:
    """``every``: how many tables there would be. ``named``: whether somebody asked for these. No ``weights``: all count
    alike."""

    cliques: tuple[Clique, ...]
    every: int
    named: bool = False
    weights: tuple[int, ...] = ()

    @classmethod
    def of(cls, workload: Workload, domain: Domain) -> Compared:
        """What a workload names (:func:`~discreet.learn.fields.purpose.workload_of`); all pairs where there is none."""
        if workload is None or isinstance(workload, str):
            size = WORDS[workload or "pairs"]
            every = _all(domain, size)
            if not every:
                what = "pair" if size == 2 else "set of three"
                raise InputError(f"no {what} of columns is small enough to be certified; coarsen columns in the schema")
            many = math.comb(len(domain), min(size, len(domain)))
            return cls(tuple(some_of(every)), many if len(domain) > 1 else 1, named=size > 2)
        named: dict[Clique, Fraction] = {}
        for entry in workload:
            clique = domain.clique(entry["columns"])
            named[clique] = named.get(clique, Fraction(0)) + Fraction(str(entry.get("weight", 1)))
        if len(named) > MOST_TABLES:
            raise InputError(f"a certificate compares at most {MOST_TABLES:,} tables, got {len(named):,}")
        for clique in named:
            if domain.size(clique) > LARGEST_TABLE:
                raise InputError(
                    f"the table {' × '.join(clique)} has more than {LARGEST_TABLE:,} cells; name fewer columns"
                )
        return cls(tuple(named), len(named), named=True, weights=whole_weights(named.values()))


def _all(domain: Domain, size: int) -> list[Clique]:
    """Every set of so many columns that a table can be held of; the columns themselves where there are no more."""
    sets = combinations(domain.names, min(size, len(domain)))
    return [clique for clique in sets if domain.size(clique) <= LARGEST_TABLE]


def some_of(cliques: Sequence[Clique]) -> list[Clique]:
    """At most so many, by a public rule that has nothing to do with the records or the model."""
    if len(cliques) <= MOST_TABLES:
        return list(cliques)
    digests = {c: hashlib.sha256("\0".join(c).encode()).digest() for c in cliques}
    chosen = set(sorted(cliques, key=digests.__getitem__)[:MOST_TABLES])
    return [c for c in cliques if c in chosen]


def whole_weights(weights: Iterable[Fraction]) -> tuple[int, ...]:
    """The smallest whole numbers in the same ratios, or near them where those would be too large; none if all are
    alike."""
    exact = list(weights)
    if len(set(exact)) == 1:
        return ()
    unit = Fraction(math.gcd(*(w.numerator for w in exact)), math.lcm(*(w.denominator for w in exact)))
    unit = max(unit, max(exact) / LARGEST_WEIGHT)
    return tuple(max(1, round(w / unit)) for w in exact)
