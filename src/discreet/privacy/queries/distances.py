"""How far contingency tables are from public expectations of them, all at once: Σ|x − r| for each clique.

The cheapest score there is: one whole number a table, however many cells it has. The learner of unknown graphs looks
for what a model misses by it, and a certificate says by it how good a release is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import InputError
from ...tables.base import IntArray
from ..query import MOST, Marginals, Part, Query, SumScore, whole_counts
from ..unit import Relation, Sensitivity


class Distances(Query):
    """Σ_cells |x − r| for each of m cliques, x the exact counts, r public expectations rounded to whole counts.

    Sensitivity. A record adds one to one cell of each table. By the triangle inequality each distance moves by at most
    1: L1 = m, L2² = m, L∞ = 1. Replacing a record takes one from a cell and adds one to another: at most 2 each,
    L1 = 2m, L2² = 4m, L∞ = 2. (A table of one cell, the number of records, moves by 1 and 0; it is counted like the
    others.) r must be public: made of released numbers alone, never of the rows.
    """

    def __init__(
        self, domain: Domain, cliques: Iterable[Iterable[str]], expected: Sequence[NDArray[Any]], *, label: str = ""
    ) -> None:
        tables = Marginals(domain, cliques)
        super().__init__(domain)
        self._cliques = tables.cliques
        if not self._cliques:
            raise InputError("there is no table to compare; name at least one clique")
        if len(expected) != len(self._cliques):
            raise InputError(f"{len(self._cliques)} tables need as many expectations, got {len(expected)}")
        self._expected = [
            whole_counts(r, part.shape, f"the expectation of {part.label}")
            for part, r in zip(tables.parts, expected, strict=True)
        ]
        self._label = label or "distances"

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return self._cliques

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        about = {"distances": [list(c) for c in self._cliques]}
        return (Part(self._label, (len(self._cliques),), about=about),)

    def describe(self) -> dict[str, Any]:
        """With a digest of what was expected, by which two questions can be told apart."""
        expected = hashlib.sha256(b"".join(r.tobytes() for r in self._expected)).hexdigest()
        return {**super().describe(), "expected": expected[:16]}

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        m = len(self._cliques)
        return (Sensitivity(m, m, 1, m) if relation == "add-remove" else Sensitivity(2 * m, 4 * m, 2, m),)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        found = [int(np.abs(x - r).sum()) for x, r in zip(counts, self._expected, strict=True)]
        return (np.array(found, dtype=np.int64),)


class WorstTable(SumScore):
    """Select the table that is furthest from public expectations: a score for each clique, its distance."""

    noun = ("choice of a table", "choices of a table")
    query: Distances

    def __init__(self, distances: Distances) -> None:
        self.query = distances

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(" × ".join(c) for c in self.query.cliques)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "expected": self.query.describe()["expected"]}

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return sums[0]


class WorthMeasuring(WorstTable):
    """Select the table whose distance from public expectations most exceeds a public price, or none of them.

    Scores: Σ|x − r| of each clique less its price, a public whole number, which moves as the distance does; and 0 for
    ``none``, the last candidate, which does not move.
    """

    def __init__(self, distances: Distances, prices: Sequence[int]) -> None:
        super().__init__(distances)
        if len(prices) != len(distances.cliques) or not all(type(p) is int and abs(p) < MOST for p in prices):
            raise InputError(f"{len(distances.cliques)} tables need as many prices, whole numbers below 2⁶⁰")
        self._prices = np.array(prices, dtype=np.int64)

    @property
    def candidates(self) -> tuple[str, ...]:
        return (*super().candidates, "none")

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        asked = described["expected"].encode() + self._prices.tobytes()
        return {**described, "expected": hashlib.sha256(asked).hexdigest()[:16]}

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return np.append(sums[0] - self._prices, 0)
