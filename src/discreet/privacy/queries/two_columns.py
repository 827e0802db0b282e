"""Whether two columns depend on each other given two others: what one common neighbour leaves, two may explain.

Of a pair i, j and two further columns k, l: Σ_b |A_b − B_b C_b/N_b| over the four groups b of records that agree on
(z_k, z_l), with A, B, C the sums of z_i z_j, z_i, z_j and N the number of records. A record lies in one group, so it
moves this by less than 4, as with one further column (:mod:`.edge_tests`); the level is that of the margin over τn. The
pair passes at k, l when it is dependent given them, or when k or l has little to do with one of the two: the maximum of
three levels. It passes when it does so at all k, l: their minimum.

There are some p⁴/8 of these, and hardly any can matter. Dependence is never below 0, and the maximum never below the
levels that are known from pairs; and none is taken to be below −``enough``, a public number of steps that is more than
any test asks for (the maximum with a constant is a level too). So where one of those is no smaller than what the pair
has already (``settled``), its minimum with them stays as it is, exactly: only the others are computed, in further
passes over the rows. What comes out is the minimum over all, whichever way it was found; how long it takes depends on
the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...encoding import Codes
from ...tables.base import IntArray
from ..levels import level_of, scatter
from ..query import Part, Query
from ..unit import Relation, Sensitivity
from .parities import CHUNK, products, require_two_levels, signs

_AT_ONCE = 1 << 20  # sums of four columns in memory at a time
_IN_CACHE = 1 << 14
_NEVER = np.iinfo(np.int64).max


class FourSums(Query):
    """Σ z_i z_j z_k z_l, a row for each of some pairs i < j and a column for each of some pairs k < l.

    Sensitivity: a record adds ±1 to every entry; replacing one changes an entry by at most 2.
    """

    def __init__(self, domain: Domain, pairs: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> None:
        super().__init__(domain)
        require_two_levels(domain, domain.names, "products of four are of")
        self._pairs = [(domain.names[i], domain.names[j]) for i, j in pairs]
        self._others = [(domain.names[k], domain.names[l]) for k, l in others]

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("products of four columns", (len(self._pairs), len(self._others))),)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.domain.names

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        c, cells = 1 if relation == "add-remove" else 2, self.parts[0].cells
        return (Sensitivity(c * cells, c * c * cells, c, cells),)

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        records = len(next(iter(batch.values())))
        total = np.zeros((len(self._pairs), len(self._others)))
        for lo in range(0, records, CHUNK):
            z = signs({n: batch[n][lo : lo + CHUNK] for n in self.domain.names})
            total += products(z, self._pairs) @ products(z, self._others).T
        return (total.astype(np.int64),)


@dataclass(frozen=True, eq=False)
class SpinSums:
    """What is known before: the number of records, Σ z_k, Σ z_i z_k, Σ z_i z_j z_k (a row a pair i < j), and levels: of
    a pair and a column, how little that has to do with both (``apart``), and of a pair, what it has so far.
    """

    n: Any
    means: NDArray[Any]
    square: NDArray[Any]
    triples: NDArray[Any]
    apart: NDArray[Any]
    settled: NDArray[Any]


def levels_given_two(
    domain: Domain,
    known: SpinSums,
    ask: Callable[[Query], Sequence[IntArray]],
    threshold: int,
    moved: int,
    enough: int,
) -> IntArray:
    """For each pair the minimum over all k, l (at least −``enough``), or something that is no less than ``settled``
    when that minimum is not."""
    p = len(known.means)
    first, second = np.triu_indices(p, 1)
    out = np.full(len(first), _NEVER)
    never_below = max(int(level_of(-threshold * known.n, moved)), -enough)  # dependence is at least 0
    matters = (known.apart < known.settled[:, None]) & (known.settled > never_below)[:, None]
    every = np.arange(len(first))
    matters[every, first] = matters[every, second] = False
    rows = np.flatnonzero(matters.sum(axis=1) >= 2)
    at = matters[rows].astype(np.int64)
    others = np.flatnonzero((at.T @ at)[first, second])
    step = max(1, _AT_ONCE // max(len(others), 1))
    for lo in range(0, len(rows), step):
        some = rows[lo : lo + step]
        row, column = np.nonzero(matters[some][:, first[others]] & matters[some][:, second[others]])
        pairs = [(int(first[r]), int(second[r])) for r in some]
        four = ask(FourSums(domain, pairs, [(int(first[c]), int(second[c])) for c in others]))[0][row, column]
        for at_once in np.array_split(np.arange(len(row)), math.ceil(len(row) / _IN_CACHE)):
            ij, kl = some[row[at_once]], others[column[at_once]]
            level = _levels(known, ij, kl, four[at_once].astype(known.triples.dtype), threshold, moved)
            np.minimum.at(out, ij, level.astype(np.int64))
    least: IntArray = np.maximum(out, -enough)
    return least


def _levels(
    known: SpinSums, ij: NDArray[np.intp], kl: NDArray[np.intp], four: NDArray[Any], threshold: int, moved: int
) -> NDArray[Any]:
    """Of pairs ``ij`` at pairs ``kl``, both by their number."""
    p = len(known.means)
    first, second = np.triu_indices(p, 1)
    i, j, k, l = first[ij], second[ij], first[kl], second[kl]
    m, s, t = known.means, known.square, known.triples
    total: Any = 0
    for b in (1, -1):
        for c in (1, -1):  # Σ over the records with z_k = b and z_l = c

            def within(none: Any, of_k: Any, of_l: Any, of_both: Any, b: int = b, c: int = c) -> Any:
                return (none + b * of_k + c * of_l + b * c * of_both) // 4

            N = within(known.n, m[k], m[l], s[k, l])
            A = within(s[i, j], t[ij, k], t[ij, l], four)
            B = within(m[i], s[i, k], s[i, l], t[kl, i])
            C = within(m[j], s[j, k], s[j, l], t[kl, j])
            total = total + scatter(A, B, C, N)
    level = level_of(total - threshold * known.n, moved)
    out: NDArray[Any] = np.maximum(level, np.maximum(known.apart[ij, k], known.apart[ij, l]))
    return out
