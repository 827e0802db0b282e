"""Which columns depend on each other, as tests of stability: every pair has a level that one unit moves by at most 1.

Numbers are whole, in units of 1/GRID of a record; thresholds are multiples of 1/GRID. With n the number of records:

* *correlation* of a pair (or of a larger set I): |Σ Π z_i| > τn, for each sign. A record moves Σ Π z_i by 1 and τn by
  τ: 1 + τ in all. Replacing a record: 2, and n stays.
* *dependence* of a pair: Σ_ab |N_ab − N_a N_b/n| > τn. With p, q the old distributions of the two columns, a new record
  (a, b) changes the matrix by n/(n+1)·(e_a − p)(e_b − q)ᵀ, whose entries add up to less than 2·2 = 4.
* *conditional dependence* of a pair given a third column k: the same within the records of each level of k, added up.
  A record belongs to one level, so again it moves it by less than 4. For columns of two levels the inner sum is
  |Σ z_i z_j − Σ z_i Σ z_j/N|, the scatter within the level.
* replacing a record is removing one and adding one: 8 for the last two (n stays).

Sums of fractions are rounded down to the grid once a level of k; since the bound 4 is a whole number of grid units and
a record changes one of them only, rounding leaves it as it is. A unit of up to m rows moves everything by m times that.

An edge, in the combined test, is a pair that is correlated and that no third column explains: for every k, *either* k
has little to do with one of the two, min(|Σ z_i z_k|, |Σ z_j z_k|) ≤ τn, *or* the pair depends on each other given k.
(The constant column is such a k as well: it turns correlation into covariance where both means are large.) Nor may two
further columns k, l explain it together: either k or l has little to do with one of the two, or they depend on each
other given k and l (:mod:`.two_columns`). "All" and "either" are minimum and maximum of levels, and cost nothing. So
where correlations tell, on matchings, the test is as sharp as the correlation test, and where they mislead, on graphs
with loops, as sharp as the conditional tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...domain import Attribute, Clique, Domain
from ...encoding import Codes
from ...errors import InputError
from ...tables.base import IntArray
from ..levels import GRID, level_of, moved_by, scatter
from ..query import Marginals, Part, Query
from ..stability import Ask, StabilityTest
from ..unit import PrivacyUnit, Relation, Sensitivity
from .parities import CHUNK, ParitySums, products, require_two_levels, signs
from .two_columns import SpinSums, levels_given_two

# Tenths of τ for dependence given other columns. Chosen on the exact distributions of 3-regular graphs of 8 to 14
# columns with η = 0.35: with the step that looks at two columns, and without it (then what a second common neighbour
# leaves must stay below). More than MOST_FOR_TWO columns would take too long in the worst case.
GIVEN_ONE, GIVEN_TWO, GIVEN_ALONE = 9, 8, 11
MOST_FOR_TWO = 128
FAR = 1 << 40
SpinTestKind = Literal["combined", "conditional"]
_NOUN = ("test whether the graph is far from changing", "tests whether the graph is far from changing")
_LARGEST_SQUARE = 1 << 26  # records up to which GRID·N² fits 64 bits; beyond, Python's own whole numbers are used


def grid_threshold(threshold: float | Fraction) -> int:
    """A threshold between 0 and 1 in grid units."""
    if not 0 < threshold < 1:
        raise InputError(f"the threshold must lie between 0 and 1, got {float(threshold):g}")
    return min(max(round(Fraction(threshold) * GRID), 1), GRID - 1)


class CorrelationTest(StabilityTest):
    """For each set of columns I, whether Σ Π z_i > τn, and whether −Σ Π z_i > τn: two levels for each set, all
    positive ones first."""

    noun = _NOUN

    def __init__(self, domain: Domain, sets: Iterable[Iterable[str]], threshold: float | Fraction) -> None:
        self.sets: tuple[Clique, ...] = tuple(domain.clique(I) for I in sets)
        self.query = ParitySums(domain, [*self.sets, ()])
        self.threshold = grid_threshold(threshold)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.query.attributes

    def levels(self, ask: Ask, unit: PrivacyUnit) -> IntArray:
        sums = ask(self.query)
        total, n = sums[0][:-1], sums[0][-1]
        margins = np.concatenate([GRID * total, -GRID * total]) - self.threshold * n
        return level_of(margins, moved_by(unit, 1, self.threshold))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "sets": len(self.sets), "threshold": self.threshold / GRID}


class TripleSums(Query):
    """Σ z_i z_j z_k for all pairs i < j and every k, and Σ z_i z_j (k = none): a matrix with a row a pair; then Σ z_k
    and the number of records. One matrix product a batch, exact in 4-byte floats (see :mod:`.parities`).

    Sensitivity: a record adds ±1 to every entry; replacing one changes an entry by at most 2.
    """

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self._pairs = list(combinations(domain.names, 2))
        require_two_levels(domain, domain.names, "this test is for")

    @property
    def parts(self) -> tuple[Part, ...]:
        p = len(self.domain)
        return Part("triples", (len(self._pairs), p + 1)), Part("means and number of records", (p + 1,))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.domain.names

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        c = 1 if relation == "add-remove" else 2
        return tuple(Sensitivity(c * p.cells, c * c * p.cells, c, p.cells) for p in self.parts)

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        records = len(next(iter(batch.values())))
        p = len(self.domain)
        singles = [*((name,) for name in self.domain.names), ()]
        triples, means = np.zeros((len(self._pairs), p + 1)), np.zeros(p + 1)
        for lo in range(0, records, CHUNK):
            z = signs({n: batch[n][lo : lo + CHUNK] for n in self.domain.names})
            x = products(z, singles)
            triples += products(z, self._pairs) @ x.T
            means += x.sum(axis=1, dtype=np.float64)
        return triples.astype(np.int64), means.astype(np.int64)


class SpinTest(StabilityTest):
    """Which pairs of binary columns have an edge: two levels for each pair, positive edges first, then negative ones.

    ``"combined"``: as above; of two columns together up to MOST_FOR_TWO columns. ``"conditional"``: correlated, and
    dependent given *every* third column and given none. ``enough``: a public number of steps beyond which it does not
    matter how far a pair is from being an edge, for pairs that two columns explain; less work where many do.
    """

    noun = _NOUN

    def __init__(
        self, domain: Domain, threshold: float | Fraction, kind: SpinTestKind = "combined", *, enough: int = FAR
    ) -> None:
        if enough < 1:
            raise InputError(f"enough must be a whole number of at least 1, got {enough}")
        self.query = TripleSums(domain)
        self.pairs: tuple[Clique, ...] = tuple(combinations(domain.names, 2))
        self.threshold = grid_threshold(threshold)
        self.kind = kind
        self.two = kind == "combined" and len(domain) <= MOST_FOR_TWO
        self.enough = enough

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.query.attributes

    def levels(self, ask: Ask, unit: PrivacyUnit) -> IntArray:
        sums = ask(self.query)
        triples, means = (_roomy(s, sums[1][-1]) for s in sums)
        n, means = means[-1], means[:-1]
        p = len(means)
        i, j = np.triu_indices(p, 1)
        pair = triples[:, -1]
        square = np.zeros((p, p), dtype=pair.dtype)
        square[i, j] = square[j, i] = pair
        τ = self.threshold
        τ_one = τ * (GIVEN_ONE if self.two else GIVEN_ALONE) // 10
        plain, strong = moved_by(unit, 1, τ), moved_by(unit, 4, τ_one)
        found = [level_of(GRID * s * pair - τ * n, plain) for s in (1, -1)]
        # An edge of either sign needs all of these; a pair that is not correlated at all is settled without them.
        explained = self._given(n, pair, means[i], means[j], τ_one, plain, strong)
        apart = np.empty((p, len(i)) if self.two else (0, 0), dtype=pair.dtype)
        of_column = np.ascontiguousarray(triples.T)
        for k in range(p):
            part = []
            for b in (1, -1):  # Σ over the records with z_k = b
                N = (n + b * means[k]) // 2
                A = (pair + b * of_column[k]) // 2
                half = (means + b * square[k]) // 2
                B, C = half[i], half[j]
                part.append(scatter(A, B, C, N))
            level = level_of(part[0] + part[1] - τ_one * n, strong)
            if self.kind == "combined":
                size = np.abs(square[k])
                far = level_of(τ * n - GRID * np.minimum(size[i], size[j]), plain)
                level = np.maximum(level, far)
                if self.two:
                    apart[k] = far
            other = (i != k) & (j != k)
            explained[other] = np.minimum(explained[other], level[other])
        if self.two:
            known = SpinSums(n, means, square, triples, apart.T, np.minimum(np.maximum(*found), explained))
            τ_two = τ * GIVEN_TWO // 10
            together = levels_given_two(self.query.domain, known, ask, τ_two, moved_by(unit, 4, τ_two), self.enough)
            explained = np.minimum(explained, together)
        return np.concatenate([np.minimum(f, explained) for f in found]).astype(np.int64)

    def _given(
        self, n: Any, pair: IntArray, m_i: IntArray, m_j: IntArray, τ_one: int, plain: int, strong: int
    ) -> IntArray:
        """Covariance, as dependence given the constant column."""
        level = level_of(scatter(pair, m_i, m_j, n) - τ_one * n, strong)
        if self.kind == "combined":
            near = np.minimum(np.abs(m_i), np.abs(m_j))
            level = np.maximum(level, level_of(self.threshold * n - GRID * near, plain))
        return level

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "kind": self.kind, "pairs": len(self.pairs), "threshold": self.threshold / GRID}


class DependenceTest(StabilityTest):
    """Which pairs of columns, of any numbers of levels, have an edge: one level for each pair.

    ``thresholds``: one for each pair, in the order of ``combinations(domain.names, 2)``. ``conditional``: dependent,
    and for every third column either nearly independent of one of the two, or dependent given it.
    """

    noun = _NOUN

    def __init__(self, domain: Domain, thresholds: Sequence[float | Fraction], *, conditional: bool = True) -> None:
        self.pairs: tuple[Clique, ...] = tuple(combinations(domain.names, 2))
        if len(thresholds) != len(self.pairs):
            raise InputError(f"{len(self.pairs)} pairs need as many thresholds, got {len(thresholds)}")
        self.thresholds = [grid_threshold(t) for t in thresholds]
        self.triples = tuple(combinations(domain.names, 3)) if conditional else ()
        # Every pair is in a triple when there are three columns or more; counting both is simpler than adding up.
        self.query = Marginals(domain, [*self.pairs, *self.triples])

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.query.attributes

    def levels(self, ask: Ask, unit: PrivacyUnit) -> IntArray:
        sums = ask(self.query)
        n = int(sums[0].sum())
        tables = [_roomy(s, n) for s in sums]
        total = {pair: _dependence(table) for pair, table in zip(self.pairs, tables, strict=False)}
        limit = dict(zip(self.pairs, self.thresholds, strict=True))
        moved = {pair: moved_by(unit, 4, limit[pair]) for pair in self.pairs}
        level = {pair: _level(total[pair] - limit[pair] * n, moved[pair]) for pair in self.pairs}
        near = {pair: _level(limit[pair] * n - total[pair], moved[pair]) for pair in self.pairs}
        for columns, table in zip(self.triples, tables[len(self.pairs) :], strict=True):
            for axis, k in enumerate(columns):
                i, j = (c for c in columns if c != k)
                given = sum(_dependence(np.take(table, b, axis=axis)) for b in range(table.shape[axis]))
                depends = _level(given - limit[i, j] * n, moved[i, j])
                apart = max(near[_ordered(columns, i, k)], near[_ordered(columns, j, k)])
                level[i, j] = min(level[i, j], max(depends, apart))
        return np.array([level[pair] for pair in self.pairs], dtype=np.int64)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "pairs": len(self.pairs), "thresholds": [t / GRID for t in self.thresholds]}


def _ordered(columns: Clique, a: str, b: str) -> Clique:
    return (a, b) if columns.index(a) < columns.index(b) else (b, a)


def _level(margin: int, moved: int) -> int:
    return (int(margin) - 1) // moved


def _roomy(sums: IntArray, n: Any) -> NDArray[Any]:
    return sums if int(n) < _LARGEST_SQUARE else sums.astype(object)


def _dependence(table: NDArray[Any]) -> int:
    """⌊GRID·Σ_ab |N_ab − N_a N_b/n|⌋, exactly; without records it is 0."""
    n = int(table.sum())
    gap = np.abs(n * table - table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)).sum()
    return GRID * int(gap) // max(n, 1)
