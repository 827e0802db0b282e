"""How far contingency tables are from public expectations of them, all at once: Σ|x − r| for each clique.

The cheapest score there is: one whole number a table, however many cells it has. The learner of unknown graphs looks
for what a model misses by it, and a certificate says by it how good a release is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import InputError
from ...tables.base import IntArray
from ..query import MOST, Marginals, Part, Query, SumScore
from ..unit import Relation, Sensitivity

FINEST = 2**10


class Distances(Query):
    """Σ_cells |x − r| for each of m cliques, x the exact counts, r public expectations rounded to whole counts.

    Sensitivity. A record adds one to one cell of each table. By the triangle inequality each distance moves by at most
    1: L1 = m, L2² = m, L∞ = 1. Replacing a record takes one from a cell and adds one to another: at most 2 each,
    L1 = 2m, L2² = 4m, L∞ = 2. (A table of one cell, the number of records, moves by 1 and 0; it is counted like the
    others.) r must be public: made of released numbers alone, never of the rows.

    ``finer``: in how many parts a count is divided. Expectations are rounded to the grid 1/k and distances are counted
    in it: Σ|k·x − r'|, r' = k·r rounded. A record then moves each by k, which is 1 record as before: all norms are k
    (L2² is k²) times as large in units of the grid.
    """

    asked_again = True
    noun = ("distance", "distances")

    def __init__(
        self,
        domain: Domain,
        cliques: Iterable[Iterable[str]],
        expected: Sequence[NDArray[Any]],
        *,
        label: str = "",
        finer: int = 1,
    ) -> None:
        tables = Marginals(domain, cliques)
        super().__init__(domain)
        self._cliques = tables.cliques
        if not self._cliques:
            raise InputError("there is no table to compare; name at least one clique")
        if len(expected) != len(self._cliques):
            raise InputError(f"{len(self._cliques)} tables need as many expectations, got {len(expected)}")
        if type(finer) is not int or not 1 <= finer <= FINEST:
            raise InputError(f"finer is a whole number between 1 and {FINEST:,}, got {finer!r}")
        size = {a.name: a.size for a in domain.attributes}
        for clique, r in zip(self._cliques, expected, strict=True):
            shape = tuple([size[n] for n in clique])
            if np.shape(r) != shape:
                raise InputError(f"the expectation of {_name(clique)} must have shape {shape}, got {np.shape(r)}")
        # All cells one after the other, and where each table begins: a hundred thousand tables are as quick as one.
        rounded = np.rint(finer * _flat(expected).astype(np.float64))
        self._starts = np.cumsum([0, *(np.size(r) for r in expected[:-1])])
        large = ~(np.add.reduceat(np.abs(rounded), self._starts) < MOST)
        if large.any():
            clique = self._cliques[int(np.argmax(large))]
            raise InputError(f"the expectation of {_name(clique)} must hold finite counts, 2⁶⁰ in all at most")
        self._expected: IntArray = rounded.astype(np.int64)
        self._label = label or "distances"
        self._finer = finer

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return self._cliques

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        about = {"distances": [list(c) for c in self._cliques]}
        return (Part(self._label, (len(self._cliques),), grid=Fraction(1, self._finer), about=about),)

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
        m, moved = len(self._cliques), self._finer * (1 if relation == "add-remove" else 2)
        return (Sensitivity(m * moved, m * moved**2, moved, m),)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (np.add.reduceat(np.abs(self._finer * _flat(counts) - self._expected), self._starts),)


def _flat(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.reshape(t, -1) for t in tables])


def _name(clique: Clique) -> str:
    return " × ".join(clique) or "number of records"


class TotalDistance(Distances):
    """The sum of all m distances, one number: for their mean under Laplace noise, which m numbers apart would have
    √m times as noisy.

    Sensitivity. The sum moves by as much as m distances do together: L1 = L∞ = m, L2² = m²; under replace-one twice
    that (and k times as much on a grid of 1/k). ``weights``: public whole numbers w by which distances count; then
    Σ w·distance moves by Σw times what one distance does, in the place of m.
    """

    def __init__(self, *told: Any, weights: Sequence[int] = (), **more: Any) -> None:
        super().__init__(*told, **more)
        m = len(self.cliques)
        if weights and (len(weights) != m or not all(type(w) is int and w > 0 for w in weights)):
            raise InputError(f"{m} distances need as many weights, whole numbers above 0")
        self._weights = tuple(weights) or (1,) * m
        held = np.add.reduceat(np.abs(self._expected.astype(np.float64)), self._starts)
        if not float(held @ np.array(self._weights, dtype=np.float64)) < MOST:
            raise InputError("the expectations of all tables must hold 2⁶⁰ counts in all at most, weights included")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        about = {"distances": [list(c) for c in self._cliques]}
        return (Part(self._label, (1,), grid=Fraction(1, self._finer), about=about),)

    def describe(self) -> dict[str, Any]:
        weighted = {} if set(self._weights) == {1} else {"weights": list(self._weights)}
        return {**super().describe(), **weighted}

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        (each,) = super().row_sensitivity(relation)
        moved = sum(self._weights) * each.linf
        return (Sensitivity(moved, moved**2, moved, 1),)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        weights = np.array(self._weights, dtype=np.int64)
        return tuple((found * weights).sum(keepdims=True) for found in super().combine(counts))


class WorstTable(SumScore):
    """Select the table that is furthest from public expectations: a score for each clique, its distance."""

    noun = ("choice of a table", "choices of a table")
    query: Distances

    def __init__(self, distances: Distances) -> None:
        self.query = distances

    @property
    def candidates(self) -> tuple[str, ...]:
        return self.query.names

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "expected": self.query.describe()["expected"]}

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return sums[0]


class WorthMeasuring(WorstTable):
    """Select the table whose distance from public expectations most exceeds a public price, or none of them.

    Scores: Σ|x − r| of each clique less its price, a public whole number, which moves as the distance does; and 0 for
    ``none``, the last candidate, which does not move.
    """

    def __init__(self, distances: Distances, prices: Sequence[int] | NDArray[np.int64]) -> None:
        super().__init__(distances)
        whole = prices.dtype.kind == "i" if isinstance(prices, np.ndarray) else all(type(p) is int for p in prices)
        if len(prices) != len(distances.names) or not whole or not -MOST < int(min(prices)) <= int(max(prices)) < MOST:
            raise InputError(f"{len(distances.names)} tables need as many prices, whole numbers below 2⁶⁰")
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
