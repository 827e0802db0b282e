"""The record that maximises a weighted sum of parities or of cell indicators: an optimisation oracle.

The problem is NP-hard, and nothing that asks the oracle may rely on its answer being the best one. Oracles:

* :class:`Enumeration` tries all records, where they are few.
* :class:`IntegerProgram`: HiGHS through :func:`scipy.optimize.milp`, with a time limit. Columns are one-hot binaries. A
  parity has one more variable, tied to its columns by all facets of the parity polytope [Jeroslow 1975]; an indicator
  has one, tied by the usual inequalities of a conjunction. What is not proved best in time has a positive ``gap``.
* :class:`AnnealedSearch`: many records at once, redrawn column by column at a falling temperature, then greedily. Fast;
  proves nothing, so its gap is unknown (``nan``).

All solve many problems that share their terms and differ in a linear perturbation, one row of ``linear`` each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..errors import CostError, InputError

Array = NDArray[np.float64]
Records = NDArray[np.int64]
Row = tuple[list[int], list[float], float]  # positions, coefficients and upper bound of one inequality


@dataclass(frozen=True, eq=False)
class Terms(ABC):
    """Functions of a record over columns with these numbers of levels."""

    shape: tuple[int, ...]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each column's levels begin among the one-hot coordinates, and their number at the end."""
        return np.cumsum([0, *self.shape], dtype=np.intp)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def columns(self, term: int) -> tuple[int, ...]:
        """The columns that a term looks at."""

    @abstractmethod
    def values(self, records: Records, terms: Sequence[int]) -> Array:
        """One row a record, one column a term."""

    def gains(self, records: Records, column: int, terms: Sequence[int], weights: Array) -> Array:
        """The weighted sum of these terms for each level that a column of a record could have."""
        out = np.empty((len(records), self.shape[column]))
        changed = records.copy()
        for level in range(self.shape[column]):
            changed[:, column] = level
            out[:, level] = self.values(changed, terms) @ weights
        return out

    @abstractmethod
    def everywhere(self, weights: Array) -> Array:
        """The weighted sum of all terms at every record there is, the last column running fastest."""

    @abstractmethod
    def rows(self, term: int, own: int) -> tuple[list[Row], float, float]:
        """Inequalities that make variable ``own`` follow the term, and the term as slope·own + offset."""


@dataclass(frozen=True, eq=False)
class ParityTerms(Terms):
    """Π_{i∈I} z_i of columns with two levels; code 0 is z = −1."""

    monomials: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if any(k != 2 for k in self.shape):
            raise InputError(f"parities are of columns with two levels, got {list(self.shape)}")

    def __len__(self) -> int:
        return len(self.monomials)

    def columns(self, term: int) -> tuple[int, ...]:
        return self.monomials[term]

    def values(self, records: Records, terms: Sequence[int]) -> Array:
        z = np.hstack([2.0 * records - 1, np.ones((len(records), 1))])
        return np.asarray(z[:, self._members[terms]].prod(axis=2))

    def gains(self, records: Records, column: int, terms: Sequence[int], weights: Array) -> Array:
        changed = records.copy()
        changed[:, column] = 1
        up = self.values(changed, terms) @ weights  # every one of them changes its sign with the column
        return np.stack([-up, up], axis=1)

    def everywhere(self, weights: Array) -> Array:
        out = np.zeros(self.shape)
        for t in np.flatnonzero(weights):
            here = tuple(int(i in self.monomials[t]) for i in range(len(self.shape)))
            out[here] += weights[t]
        for axis in range(len(self.shape)):  # Walsh–Hadamard: Σ_I w_I Π z_I, a column after the other
            without, with_it = np.split(out, 2, axis)
            out = np.concatenate([without - with_it, without + with_it], axis)
        return out.reshape(-1)

    @cached_property
    def _members(self) -> NDArray[np.intp]:
        """The columns of each monomial, filled up with one that is always +1."""
        return _filled(self.monomials, len(self.shape))

    def rows(self, term: int, own: int) -> tuple[list[Row], float, float]:
        # With c_i = 1 for z_i = −1 the parity is 1 − 2y, y the sum of the c_i modulo 2. The convex hull of these (c, y)
        # is cut out by Σ_{F} x − Σ_{rest} x ≤ |F| − 1 for all odd F among the c and y.
        members = [int(self.starts[i]) for i in self.monomials[term]] + [own]  # coordinate of level 0
        out: list[Row] = []
        for size in range(1, len(members) + 1, 2):
            for odd in combinations(range(len(members)), size):
                signs = [1.0 if i in odd else -1.0 for i in range(len(members))]
                out.append((members, signs, size - 1.0))
        return out, -2.0, 1.0


@dataclass(frozen=True, eq=False)
class CellTerms(Terms):
    """1 for records in a cell, given as pairs (column, level), else 0."""

    cells: tuple[tuple[tuple[int, int], ...], ...]

    def __len__(self) -> int:
        return len(self.cells)

    def columns(self, term: int) -> tuple[int, ...]:
        return tuple(i for i, _ in self.cells[term])

    def values(self, records: Records, terms: Sequence[int]) -> Array:
        padded = np.hstack([records, np.zeros((len(records), 1), dtype=np.int64)])
        where, levels = self._members
        return np.asarray((padded[:, where[terms]] == levels[terms]).all(axis=2), dtype=np.float64)

    def everywhere(self, weights: Array) -> Array:
        out = np.zeros(self.shape)
        for t in np.flatnonzero(weights):
            fixed = dict(self.cells[t])
            out[tuple(fixed.get(i, slice(None)) for i in range(len(self.shape)))] += weights[t]
        return out.reshape(-1)

    @cached_property
    def _members(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Columns and levels of each cell, filled up with a column that is always 0."""
        where = _filled([tuple(i for i, _ in cell) for cell in self.cells], len(self.shape))
        return where, _filled([tuple(a for _, a in cell) for cell in self.cells], 0)

    def rows(self, term: int, own: int) -> tuple[list[Row], float, float]:
        members = [int(self.starts[i]) + a for i, a in self.cells[term]]
        out: list[Row] = [([own, m], [1.0, -1.0], 0.0) for m in members]
        out.append(([*members, own], [1.0] * len(members) + [-1.0], len(members) - 1.0))
        return out, 1.0, 0.0


@dataclass(frozen=True, eq=False)
class Best:
    """A record for each problem, and how far (relatively) the worst of them may be from the best; nan: unknown."""

    records: Records
    gap: float


@runtime_checkable
class Oracle(Protocol):
    """Maximise ⟨weights, terms(x)⟩ + ⟨linear[i], one-hot x⟩ over records x, for each i, as well as it can."""

    def solve(self, terms: Terms, weights: Array, linear: Array, rng: np.random.Generator) -> Best: ...


@dataclass(frozen=True)
class Enumeration:
    """All records tried: always the best, where they are few."""

    most: int = 1 << 16

    def solve(self, terms: Terms, weights: Array, linear: Array, rng: np.random.Generator) -> Best:
        if math.prod(terms.shape) > self.most:
            raise CostError(f"{math.prod(terms.shape):,} records are too many to try all; the limit is {self.most:,}")
        asked, best = terms.everywhere(weights), []
        for one in linear:
            own = [one[a:b] for a, b in pairwise(terms.starts.tolist())]
            best.append(int((asked + reduce(_beside, reversed(own))).argmax()))
        return Best(np.stack(np.unravel_index(best, terms.shape), axis=1).astype(np.int64), 0.0)


def _beside(last: Array, first: Array) -> Array:
    """Every sum of one of each, flat; what is there already runs fastest, as its long axis makes it quick."""
    return np.asarray((first[:, None] + last).reshape(-1))


@dataclass(frozen=True)
class AnnealedSearch:
    """Heat-bath sweeps from a high to a low temperature, relative to the weights, and greedy ones to the end; the best
    of several tries."""

    sweeps: int = 30
    greedy: int = 3
    tries: int = 4

    def solve(self, terms: Terms, weights: Array, linear: Array, rng: np.random.Generator) -> Best:
        active = [int(t) for t in np.flatnonzero(weights)]
        by_column = [[t for t in active if i in terms.columns(t)] for i in range(len(terms.shape))]
        problems, linear = len(linear), np.tile(linear, (self.tries, 1))
        records = np.stack([rng.integers(0, k, len(linear)) for k in terms.shape], axis=1)
        for temperature in self._temperatures(terms, weights, linear):
            for i in rng.permutation(len(terms.shape)):
                gain = linear[:, terms.starts[i] : terms.starts[i + 1]].copy()
                if by_column[i]:
                    gain += terms.gains(records, int(i), by_column[i], weights[by_column[i]])
                if temperature > 0:
                    gain += temperature * rng.gumbel(size=gain.shape)
                records[:, i] = gain.argmax(axis=1)
        values = objective(terms, weights, linear, records).reshape(self.tries, problems)
        best = values.argmax(axis=0) * problems + np.arange(problems)
        return Best(records[best], math.nan)

    def _temperatures(self, terms: Terms, weights: Array, linear: Array) -> list[float]:
        # What a typical column feels: the root of the sum of squares of its share of the weights.
        orders = [len(terms.columns(int(t))) for t in np.flatnonzero(weights)]
        felt = math.sqrt(float(weights[weights != 0] ** 2 @ np.array(orders, dtype=float)) / len(terms.shape))
        size = felt + float(np.abs(linear).mean()) + 1e-9
        return [*(size * np.geomspace(1.5, 0.1, self.sweeps)).tolist(), *([0.0] * self.greedy)]


@dataclass(frozen=True)
class IntegerProgram:
    """One integer program a problem, each with this many seconds; what is not finished is completed by a search."""

    seconds: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise InputError(f"the time limit of an integer program must be positive, got seconds={self.seconds}")

    def solve(self, terms: Terms, weights: Array, linear: Array, rng: np.random.Generator) -> Best:
        active = [int(t) for t in np.flatnonzero(weights)]
        coordinates = int(terms.starts[-1])
        inequalities: list[Row] = []
        goal = np.zeros(coordinates + len(active))
        offset = 0.0
        for number, t in enumerate(active):
            found, slope, constant = terms.rows(t, coordinates + number)
            inequalities += found
            goal[coordinates + number] = weights[t] * slope
            offset += weights[t] * constant
        one_hot = [
            (list(range(a, b)), [1.0] * int(b - a), 1.0)
            for a, b in zip(terms.starts[:-1].tolist(), terms.starts[1:].tolist(), strict=True)
        ]
        from scipy.optimize import Bounds, milp  # slow to import

        constraints = [_constraint(one_hot, len(goal), equal=True)]
        if inequalities:
            constraints.append(_constraint(inequalities, len(goal), equal=False))
        # The term variables follow from whole columns, so they need not be declared whole.
        whole = np.concatenate([np.ones(coordinates), np.zeros(len(active))])
        records, worst = [], 0.0
        for one in linear:
            perturbed = goal.copy()
            perturbed[:coordinates] += one
            found_one = milp(
                -perturbed, integrality=whole, bounds=Bounds(0, 1), constraints=constraints,
                options={"time_limit": self.seconds, "mip_rel_gap": 0.0},
            )  # fmt: skip
            tried = [] if found_one.x is None else [_record(terms, found_one.x)]
            if found_one.status != 0:
                tried.append(AnnealedSearch().solve(terms, weights, one[None], rng).records[0])
            values = objective(terms, weights, np.tile(one, (len(tried), 1)), np.array(tried))
            records.append(tried[int(values.argmax())])
            worst = max(worst, _gap(float(values.max()), found_one.mip_dual_bound, offset))
        return Best(np.array(records, dtype=np.int64).reshape(len(linear), len(terms.shape)), worst)


def objective(terms: Terms, weights: Array, linear: Array, records: Records) -> Array:
    """What each record is worth in its problem."""
    active = [int(t) for t in np.flatnonzero(weights)]
    own = np.take_along_axis(linear, terms.starts[:-1] + records, axis=1).sum(axis=1)
    return np.asarray(own + (terms.values(records, active) @ weights[active] if active else 0.0))


def _gap(value: float, dual: float | None, offset: float) -> float:
    """Between the record found and the solver's bound, relative to the value; what is mere rounding is zero."""
    if dual is None or not math.isfinite(dual):
        return math.inf
    gap = (offset - dual - value) / max(abs(value), 1.0)
    return gap if gap > 1e-6 else 0.0


def _record(terms: Terms, x: Array) -> Records:
    starts = terms.starts
    return np.array([int(np.argmax(x[a:b])) for a, b in pairwise(starts)], dtype=np.int64)


def _constraint(rows: Sequence[Row], variables: int, *, equal: bool) -> Any:
    from scipy.optimize import LinearConstraint  # slow to import
    from scipy.sparse import csr_array

    data = [v for _, values, _ in rows for v in values]
    at = [c for columns, _, _ in rows for c in columns]
    pointers = np.cumsum([0, *(len(columns) for columns, _, _ in rows)])
    matrix = csr_array((data, at, pointers), shape=(len(rows), variables))
    bound = np.array([b for _, _, b in rows])
    return LinearConstraint(matrix, bound if equal else -np.inf, bound)


def _filled(rows: Sequence[tuple[int, ...]], with_what: int) -> NDArray[np.intp]:
    width = max((len(r) for r in rows), default=0)
    return np.array([[*r, *([with_what] * (width - len(r)))] for r in rows], dtype=np.intp).reshape(len(rows), width)
