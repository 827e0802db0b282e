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
from ..query import Marginals, Part, Query, Score
from ..unit import PrivacyUnit, Relation, Sensitivity

MOST = 2**60  # beyond 64 bits a sum would wrap around, and one record could move it by far more than we say


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
        size = {a.name: a.size for a in domain.attributes}
        for clique, r in zip(self._cliques, expected, strict=True):
            shape = tuple([size[n] for n in clique])
            if np.shape(r) != shape:
                raise InputError(f"the expectation of {_name(clique)} must have shape {shape}, got {np.shape(r)}")
        # All cells one after the other, and where each table begins: a hundred thousand tables are as quick as one.
        rounded = np.rint(_flat(expected))
        self._starts = np.cumsum([0, *(np.size(r) for r in expected[:-1])])
        large = ~(np.add.reduceat(np.abs(rounded), self._starts) < MOST)
        if large.any():
            clique = self._cliques[int(np.argmax(large))]
            raise InputError(f"the expectation of {_name(clique)} must hold finite counts, 2⁶⁰ in all at most")
        self._expected: IntArray = rounded.astype(np.int64)
        self._label = label or "distances"

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return self._cliques

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        about = {"distances": [list(c) for c in self._cliques]}
        return (Part(self._label, (len(self._cliques),), about=about),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the tables."""
        return tuple(map(_name, self._cliques))

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self._expected.tobytes()).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """With a digest of what was expected, by which two questions can be told apart."""
        return {**super().describe(), "expected": self._digest}

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        m = len(self._cliques)
        return (Sensitivity(m, m, 1, m) if relation == "add-remove" else Sensitivity(2 * m, 4 * m, 2, m),)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (np.add.reduceat(np.abs(_flat(counts) - self._expected), self._starts),)


def _flat(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.reshape(t, -1) for t in tables])


def _name(clique: Clique) -> str:
    return " × ".join(clique) or "number of records"


class WorthMeasuring(Score):
    """Select the table whose distance from public expectations most exceeds a public price, or none of them.

    Scores: Σ|x − r| of each clique less its price, a public whole number; and 0 for ``none``, the last candidate. Each
    moves as a distance does (:class:`Distances`): by at most 1 under add-remove and 2 under replace-one, times the rows
    of a person; ``none`` does not move.
    """

    query: Distances

    def __init__(self, distances: Distances, prices: Sequence[int] | NDArray[np.int64]) -> None:
        self.query = distances
        whole = prices.dtype.kind == "i" if isinstance(prices, np.ndarray) else all(type(p) is int for p in prices)
        if len(prices) != len(distances.names) or not whole or max(map(abs, (min(prices), max(prices)))) >= MOST:
            raise InputError(f"{len(distances.names)} tables need as many prices, whole numbers below 2⁶⁰")
        self._prices = np.array(prices, dtype=np.int64)

    @property
    def candidates(self) -> tuple[str, ...]:
        return (*self.query.names, "none")

    def describe(self) -> dict[str, Any]:
        asked = self.query.describe()["expected"].encode() + self._prices.tobytes()
        return {**super().describe(), "expected": hashlib.sha256(asked).hexdigest()[:16]}

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return np.append(sums[0] - self._prices, 0)

    def linf(self, unit: PrivacyUnit) -> int:
        return max(s.linf for s in self.query.sensitivity(unit))
