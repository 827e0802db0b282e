"""Any loss with a bounded gradient, over any polytope that is given by its vertices ([001] Algorithm 1, Lemma 3.3).

A loss is given by the gradient of one record's loss. It is evaluated in public, for *every possible record* of the
columns that it uses, and never sees a row: the sums follow from the contingency table of those columns. So whatever
the function does (fail, draw random numbers, remember its calls, mix the records of a batch), nothing but the counts
depends on the data. Entries beyond the declared bound are clipped, what is not a number is taken for 0, and the scores
−⟨s, ∇ℓ⟩ are rounded to a public grid; the sensitivity is then read off the table of scores, exactly:

* add-remove: the largest |entry|;
* replace-one: the largest difference of two records' entries for one vertex.

For more columns than can be enumerated, :class:`LinearLoss` does the same with losses of a margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...domain import Clique, Domain
from ...errors import CostError, InputError
from ...tables.base import IntArray
from ..query import Part, Query
from ..unit import PrivacyUnit, Relation, Sensitivity
from .gradients import UNITS, VertexScore
from .value_gradients import LinearGradients, Slope

Array = NDArray[np.float64]
Gradient = Callable[[Array, Mapping[str, IntArray]], ArrayLike]
MOST_SCORES = 1 << 24  # records × vertices of a public table
_LARGEST_ENTRY = 1 << 20  # of a vertex (times the resolution of features), in whole units: sums stay below 2⁶³
_RESOLUTION = 1 << 12


@dataclass(frozen=True, eq=False)
class Polytope:
    """The convex hull of ``unit`` × the rows of ``vertices``, which are whole numbers so that every iterate stands on a
    public grid. :meth:`of` rounds real vertices to one."""

    vertices: IntArray
    unit: float = 1.0

    def __post_init__(self) -> None:
        S = np.asarray(self.vertices)
        if S.ndim != 2 or not S.size or S.dtype.kind not in "iu":
            raise InputError(f"vertices are rows of whole numbers, at least one; got {S.dtype} of shape {S.shape}")
        if not 0 < self.unit < math.inf:
            raise InputError(f"the unit of a polytope must be positive and finite, got {self.unit}")
        if int(np.abs(S).sum(axis=1).max()) > _LARGEST_ENTRY:
            raise InputError(f"vertices may have at most {_LARGEST_ENTRY} units in all; take a coarser grid")
        object.__setattr__(self, "vertices", S.astype(np.int64))

    @classmethod
    def of(cls, vertices: ArrayLike, *, resolution: int = _RESOLUTION) -> Polytope:
        """From real vertices, rounded to 1/resolution of the largest entry."""
        S = np.asarray(vertices, dtype=np.float64)
        if S.ndim != 2 or not S.size or not np.all(np.isfinite(S)):
            raise InputError(f"vertices are rows of finite numbers, at least one; got an array of shape {S.shape}")
        unit = float(np.abs(S).max()) / resolution or 1.0
        return cls(np.rint(S / unit).astype(np.int64), unit)

    @classmethod
    def l1_ball(cls, dimension: int, radius: float) -> Polytope:
        """±radius·e_j: 2·dimension vertices."""
        one = np.eye(dimension, dtype=np.int64)
        return cls(np.stack([one, -one], axis=1).reshape(-1, dimension), radius)

    @classmethod
    def simplex(cls, dimension: int, total: float = 1.0) -> Polytope:
        """Non-negative weights that add up to ``total``."""
        return cls(np.eye(dimension, dtype=np.int64), total)

    @property
    def dimension(self) -> int:
        return int(self.vertices.shape[1])

    @property
    def norm(self) -> float:
        """‖C‖₁ = max ‖s‖₁ over the vertices."""
        return self.unit * int(np.abs(self.vertices).sum(axis=1).max())

    @property
    def start(self) -> IntArray:
        """A whole vector that the polytope contains: 0 if it is plainly inside, otherwise the first vertex."""
        S = {tuple(s) for s in self.vertices.tolist()}
        symmetric = all(tuple(-x for x in s) in S for s in S)
        return np.zeros(self.dimension, dtype=np.int64) if symmetric else self.vertices[0].copy()


class Problem(Protocol):
    """A loss at public weights, ready to be scored."""

    def score(self, *, adaptive: bool) -> VertexScore: ...


@dataclass(frozen=True)
class Loss:
    """A loss of records of a few columns.

    Parameters
    ----------
    columns:
        What it looks at; their possible records are enumerated.
    gradient:
        ``gradient(w, records)``: the gradients at w, one row for each record, of shape (records, dimension).
        ``records`` maps each column to an array of codes.
    bound:
        L₁: entries of a gradient lie within ±bound; what lies beyond is clipped.
    curvature:
        Γ, of which the number of steps is chosen; by default bound·‖C‖₁, which is right up to a factor for losses whose
        Hessian is about bound/‖C‖₁.
    """

    columns: Sequence[str]
    gradient: Gradient
    bound: float
    curvature: float | None = None

    def __post_init__(self) -> None:
        _check_bounds(self.bound, self.curvature)

    def at(self, domain: Domain, polytope: Polytope, v: IntArray, scale: float) -> Problem:
        return _CellProblem(self, domain, polytope, np.asarray(v, dtype=np.float64).reshape(-1) * scale)


@dataclass(frozen=True)
class LinearLoss:
    """A loss φ(y⟨w,x⟩) of a binary column and numbers on a public grid, with a constant 1 as last feature.

    ``slope`` is φ′, a function of an array of margins; ``bound`` is on its size, and enforced. The other arguments are
    those of :class:`~discreet.privacy.queries.value_gradients.ValueGradients`.
    """

    target: str
    values: Mapping[str, Sequence[int]]
    slope: Slope
    bound: float
    resolution: int = 1
    labels: Sequence[int] = (-1, 1)
    curvature: float | None = None

    def __post_init__(self) -> None:
        _check_bounds(self.bound, self.curvature)

    def at(self, domain: Domain, polytope: Polytope, v: IntArray, scale: float) -> Problem:
        if polytope.dimension != len(self.values) + 1:
            raise InputError(
                f"{len(self.values)} features and a constant need vertices of {len(self.values) + 1} entries, not "
                f"{polytope.dimension}"
            )
        if int(np.abs(polytope.vertices).sum(axis=1).max()) * self.resolution > _LARGEST_ENTRY:
            raise InputError(
                f"vertices times the resolution {self.resolution} must stay within {_LARGEST_ENTRY} units; round them "
                "more coarsely: Polytope.of(vertices, resolution=…)"
            )
        at = np.asarray(v, dtype=np.int64).reshape(1, -1)
        gradients = LinearGradients(
            self.slope, self.bound, domain, self.target, self.values, self.resolution, at, scale, labels=self.labels
        )
        return _LinearProblem(gradients, polytope)


def _check_bounds(bound: float, curvature: float | None) -> None:
    if not 0 < bound < math.inf:
        raise InputError(f"the bound on the gradient must be positive and finite, got {bound}")
    if curvature is not None and not 0 < curvature < math.inf:
        raise InputError(f"the curvature must be positive and finite, got {curvature}")


# -- scores ------------------------------------------------------------------------------------------------------------


class _VertexScores(VertexScore):
    """One group: the vertices of one polytope."""

    def __init__(self, polytope: Polytope, query: Query) -> None:
        self.polytope = polytope
        self.query = query

    @property
    def groups(self) -> tuple[int, ...]:
        return (len(self.polytope.vertices),)

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        return tuple(f"vertex {i}" for i in range(len(self.polytope.vertices)))

    def moves(self, chosen: Sequence[int]) -> IntArray:
        return self.polytope.vertices[list(chosen)]


@dataclass(frozen=True, eq=False)
class _CellProblem:
    loss: Loss
    domain: Domain
    polytope: Polytope
    w: Array

    def score(self, *, adaptive: bool) -> VertexScore:
        return CellScores(self, adaptive=adaptive)


class CellScores(_VertexScores):
    """−⟨s, ∇ℓ⟩/‖C‖₁ summed over the records, for each vertex s, in units of 1/1024 of the bound.

    ``adaptive``: the sensitivity is that of the table at the current, public weights; otherwise the bound.
    """

    def __init__(self, problem: _CellProblem, *, adaptive: bool = True) -> None:
        query = _CellSums(problem)
        super().__init__(problem.polytope, query)
        self._units = query.units
        self._adaptive = adaptive

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return sums[0]

    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        replaced = unit.relation == "replace-one"
        if not self._adaptive:
            return (UNITS * (2 if replaced else 1) * unit.max_rows,)
        largest = int(np.abs(self._units).max(initial=0))
        if replaced:  # a row may also be replaced by one that does not count
            largest = max(largest, int((self._units.max(axis=0) - self._units.min(axis=0)).max(initial=0)))
        return (max(1, largest) * unit.max_rows,)


class _CellSums(Query):
    """Σ over records of the score of each vertex, by the contingency table of the loss's columns."""

    def __init__(self, problem: _CellProblem) -> None:
        super().__init__(problem.domain)
        loss, domain, polytope = problem.loss, problem.domain, problem.polytope
        self._clique: Clique = domain.clique(loss.columns)
        shape = tuple(domain[name].size for name in self._clique)
        cells = math.prod(shape)
        if cells * len(polytope.vertices) > MOST_SCORES:
            raise CostError(
                f"the loss is evaluated for all {cells:,} possible records of {', '.join(self._clique)} and "
                f"{len(polytope.vertices):,} vertices; the limit is {MOST_SCORES:,} scores. Use fewer columns, coarser "
                "ones, or LinearLoss"
            )
        codes = np.indices(shape).reshape(len(shape), cells)
        records = {name: np.array(row, dtype=np.int64) for name, row in zip(self._clique, codes, strict=True)}
        given = np.asarray(loss.gradient(problem.w.copy(), records), dtype=np.float64)
        if given.shape != (cells, polytope.dimension):
            raise InputError(
                f"the gradient must be an array of shape {(cells, polytope.dimension)} (records × dimension), got "
                f"{given.shape}"
            )
        part = np.clip(np.nan_to_num(given / loss.bound, nan=0.0, posinf=1.0, neginf=-1.0), -1, 1)
        whole = polytope.vertices / int(np.abs(polytope.vertices).sum(axis=1).max())
        # Within ±1 by Hölder's inequality but for rounding; the clip makes it so.
        self.units: IntArray = np.rint(UNITS * np.clip(-(part @ whole.T), -1, 1)).astype(np.int64)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return (self._clique,)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("scores of vertices", (self.units.shape[1],)),)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (np.asarray(counts[0].reshape(-1) @ self.units, dtype=np.int64),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        """Bounds; selection uses the exact largest change of a score."""
        times, m = (1 if relation == "add-remove" else 2), self.units.shape[1]
        size = np.abs(self.units)
        l1, l2 = int(size.sum(axis=1).max(initial=0)), int((size**2).sum(axis=1).max(initial=0))
        return (Sensitivity(times * l1, times**2 * l2, times * int(size.max(initial=0)), m),)


@dataclass(frozen=True, eq=False)
class _LinearProblem:
    gradients: LinearGradients
    polytope: Polytope

    def score(self, *, adaptive: bool) -> VertexScore:
        return LinearScores(self.gradients, self.polytope, adaptive=adaptive)


class LinearScores(_VertexScores):
    """⟨s, −∇ℓ⟩ summed over the records for each vertex s in whole units: no record moves it by more than its largest
    term times ‖s‖₁ (Hölder)."""

    def __init__(self, gradients: LinearGradients, polytope: Polytope, *, adaptive: bool = True) -> None:
        super().__init__(polytope, gradients)
        self._gradients = gradients
        self._adaptive = adaptive

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return np.asarray(self.polytope.vertices @ sums[0][0], dtype=np.int64)

    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        times = unit.max_rows * (1 if unit.relation == "add-remove" else 2)
        largest = UNITS * self._gradients.largest_feature
        if self._adaptive:
            largest = max(1, int(self._gradients.largest_terms()[0]))
        return (largest * int(np.abs(self.polytope.vertices).sum(axis=1).max()) * times,)
