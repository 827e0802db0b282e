"""Sums of parities over binary records: Σ Π_{i∈I} z_i with z = ±1, for any list of monomials I.

They are the sufficient statistics of Ising models and of binary Markov random fields. Every term is +1 or −1, so the
sums are whole numbers, and one matrix product per batch computes all of them exactly: entries of ±1 and sums of at
most ``CHUNK`` of them are whole numbers below 2²⁴, which 4-byte floats add without any rounding, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...encoding import Codes
from ...errors import InputError
from ...measurement import Measurement
from ...tables.base import IntArray
from ..query import GroupedScore, Part, Query, SumScore, whole_counts
from ..unit import PrivacyUnit, Relation, Sensitivity

CHUNK = 1 << 13  # rows of a product: small enough for a cache, and far below the 2²⁴ where 4-byte sums stop being exact
_MOST_ENUMERATED = 12  # columns up to which the sensitivity of an irregular list is found by trying all differences


def all_monomials(domain: Domain, order: int, *, least: int = 1) -> tuple[Clique, ...]:
    """Every set of ``least`` to ``order`` columns, small sets first."""
    return tuple(I for size in range(least, order + 1) for I in combinations(domain.names, size))


def measured_monomials(measurement: Measurement) -> tuple[Clique, ...]:
    """Of which monomials these noisy sums are, as :class:`ParitySums` said when they were measured."""
    domain, which = measurement.domain, measurement.about.get("parities")
    if type(which) is int and 0 < which <= len(domain):
        found = all_monomials(domain, which)
    elif isinstance(which, list) and all(isinstance(I, list) for I in which):
        found = tuple(domain.clique(I) for I in which)
    else:
        raise InputError(f"{measurement.label!r} are not sums of parities")
    if measurement.counts.shape != (len(found),):
        raise InputError(f"{measurement.label!r} says that it holds {len(found)} parities, and does not")
    return found


def require_two_levels(domain: Domain, names: Iterable[str], what: str) -> None:
    """A third level would count as 3 where 1 is declared."""
    for name in names:
        if domain[name].size != 2:
            raise InputError(f"{what} columns with two levels, but {name!r} has {domain[name].size}")


class ParitySums(Query):
    """Σ over records of Π_{i∈I} z_i for each monomial I; code 0 is z = −1, code 1 is z = +1. I = () counts records.

    Sensitivity. A record adds ±1 to every one of the m sums: L1 = L2² = m. Replacing a record flips the columns in
    some set S, which changes by ±2 those parities that meet S in an odd number of columns and no others; let c be the
    largest number of such parities: L1 = 2c, L2² = 4c. For all single and pair sums of p columns c = ⌊(p+1)²/4⌋, hence
    L2 ≤ p + 1. For all sets of given sizes c is found by trying |S| = 0 … p, for few columns by trying every S, and
    otherwise it is bounded by m (which some S may well attain).
    """

    def __init__(self, domain: Domain, monomials: Iterable[Iterable[str]], *, label: str = "parities") -> None:
        super().__init__(domain)
        self.monomials: tuple[Clique, ...] = tuple(domain.clique(I) for I in monomials)
        if len(set(self.monomials)) != len(self.monomials):
            twice = next(I for I in self.monomials if self.monomials.count(I) > 1)
            raise InputError(f"the parity of {twice} is asked for twice; once is enough")
        used = {name for I in self.monomials for name in I}
        require_two_levels(domain, used, "parities are of")
        # The number of records needs a column too, to be counted row by row.
        self._columns = domain.clique(used) or domain.names[:1]
        self._label = label

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part(self._label, (len(self.monomials),), about=self._about),)

    @property
    def _about(self) -> dict[str, Any]:
        """Which parities: all up to an order in a word, or one by one."""
        order = max(map(len, self.monomials), default=0)
        everything = sum(math.comb(len(self.domain), k) for k in range(1, order + 1))
        if len(self.monomials) == everything and self.monomials == all_monomials(self.domain, order):
            return {"parities": order}
        return {"parities": [list(I) for I in self.monomials]}

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        m = len(self.monomials)
        if relation == "add-remove":
            return (Sensitivity(m, m, 1, m),)
        c = self._most_odd
        if c == 0:  # only the number of records, which is noised as if it moved: nobody should learn it from us
            return (Sensitivity(m, m, 1, m),)
        return (Sensitivity(2 * c, 4 * c, 2, c),)

    @cached_property
    def _most_odd(self) -> int:
        return most_odd(len(self._columns), [tuple(map(self._columns.index, I)) for I in self.monomials if I])

    @cached_property
    def _product(self) -> tuple[list[Clique], list[Clique], NDArray[np.intp], NDArray[np.intp]]:
        """Each monomial as a row (its first half) and a column (the rest) of one matrix product."""
        rows: dict[Clique, int] = {}
        columns: dict[Clique, int] = {}
        at_row, at_column = [], []
        for I in self.monomials:
            half = len(I) - len(I) // 2
            at_row.append(rows.setdefault(I[:half], len(rows)))
            at_column.append(columns.setdefault(I[half:], len(columns)))
        return list(rows), list(columns), np.array(at_row, dtype=np.intp), np.array(at_column, dtype=np.intp)

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        rows, columns, at_row, at_column = self._product
        records = len(next(iter(batch.values())))
        total = np.zeros((len(rows), len(columns)))  # 8-byte floats: exact up to 2⁵³
        for lo in range(0, records, CHUNK):
            z = signs({n: batch[n][lo : lo + CHUNK] for n in self._columns})
            total += products(z, rows) @ products(z, columns).T
        return (total[at_row, at_column].astype(np.int64),)

    def describe(self) -> dict[str, Any]:
        orders = sorted({len(I) for I in self.monomials})
        return {**super().describe(), "parities": len(self.monomials), "orders": orders}


def signs(batch: Mapping[str, Codes]) -> dict[str, npt.NDArray[np.float32]]:
    """Columns of codes 0 and 1 as −1 and +1."""
    return {name: codes.astype(np.float32) * np.float32(2) - np.float32(1) for name, codes in batch.items()}


def products(z: Mapping[str, npt.NDArray[np.float32]], monomials: Sequence[Clique]) -> npt.NDArray[np.float32]:
    """One row for each monomial: the product of its columns, record by record."""
    records = len(next(iter(z.values())))
    out = np.empty((len(monomials), records), dtype=np.float32)
    for row, I in zip(out, monomials, strict=True):
        if not I:
            row.fill(1)
        elif len(I) == 1:
            row[:] = z[I[0]]
        else:
            np.multiply(z[I[0]], z[I[1]], out=row)
            for name in I[2:]:
                row *= z[name]
    return out


def most_odd(columns: int, monomials: Sequence[tuple[int, ...]]) -> int:
    """The largest number of monomials that meet one set S of columns in an odd number of places, or a bound on it."""
    sizes = {len(I) for I in monomials}
    if len(monomials) == sum(math.comb(columns, size) for size in sizes):  # all sets of these sizes: only |S| matters
        return max(
            sum(
                math.comb(d, k) * math.comb(columns - d, size - k)
                for size in sizes
                for k in range(1, size + 1, 2)
                if k <= d and size - k <= columns - d
            )
            for d in range(columns + 1)
        )
    if columns <= _MOST_ENUMERATED:
        S = np.arange(1 << columns)
        odd = np.zeros(len(S), dtype=np.int64)
        for I in monomials:
            odd += np.bitwise_count(S & sum(1 << i for i in I)) & 1
        return int(odd.max())
    return len(monomials)


class ParityResiduals(SumScore):
    """Select the parity that a public approximation fits worst: |sum − approximation|, a score for each monomial.

    By the triangle inequality a record moves it by at most 1, and replacing one by at most 2.
    """

    noun = ("choice of a parity", "choices of a parity")

    def __init__(self, domain: Domain, monomials: Iterable[Iterable[str]], approximation: NDArray[Any]) -> None:
        self.query = ParitySums(domain, monomials)
        self._monomials = self.query.monomials
        self._approximation = whole_counts(approximation, (len(self._monomials),), "the approximation of the parities")

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple("·".join(I) or "1" for I in self._monomials)

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        out: IntArray = np.abs(sums[0] - self._approximation)
        return out


class PartnerResiduals(GroupedScore):
    """For each column, which other one's product with it a public approximation of Σ z_i z_j fits worst.

    One group for each column, with all other columns as candidates; a pair stands in two groups. Scores are those of
    :class:`ParityResiduals`. ``leave_out`` names pairs that need not be looked for: their score is zero. ``active``
    names the columns that look for a partner, all by default.
    """

    noun = ("choice of neighbours", "choices of neighbours")

    def __init__(
        self,
        domain: Domain,
        approximation: NDArray[Any],
        leave_out: Iterable[tuple[int, int]] = (),
        active: Sequence[int] | None = None,
    ) -> None:
        p = len(domain)
        self._active = list(range(p)) if active is None else list(active)
        self._domain = domain
        i, j = np.triu_indices(p, 1)
        self._residuals = ParityResiduals(domain, combinations(domain.names, 2), np.asarray(approximation)[i, j])
        self.query = self._residuals.query
        position = np.zeros((p, p), dtype=np.intp)
        position[i, j] = position[j, i] = np.arange(len(i))
        self._position = position[~np.eye(p, dtype=bool)]
        wanted = np.ones((p, p), dtype=np.int64)
        for a, b in leave_out:
            wanted[a, b] = wanted[b, a] = 0
        self._wanted = wanted[~np.eye(p, dtype=bool)]

    @property
    def groups(self) -> tuple[int, ...]:
        return (len(self._domain) - 1,) * len(self._active)

    @property
    def candidates(self) -> tuple[str, ...]:
        names = self._domain.names
        return tuple(f"{names[i]}·{b}" for i in self._active for b in names if b != names[i])

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        every = self._residuals.scores(sums)[self._position] * self._wanted
        out: IntArray = every.reshape(len(self._domain), -1)[self._active].reshape(-1)
        return out

    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        return (self._residuals.linf(unit),) * len(self._active)
