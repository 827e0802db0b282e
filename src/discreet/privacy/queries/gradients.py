"""Gradients of the logistic loss for many regressions at once, as whole numbers, with their exact sensitivities.

For a label y = ±1 and features x the negative gradient of log(1 + e^{−y⟨w,x⟩}) is y·σ(−y⟨w,x⟩)·x. The weights are
public and stand on a grid, w = scale·v with whole v, so that a record's margin ⟨v, x⟩ is a whole number that comes out
the same in any order of summation. σ is looked up in a public table of whole numbers (units of 1/1024) at that whole
number: a record's term depends on that record and on public things only, to the last bit. Products of small whole
numbers add up exactly in 4-byte floats as long as they stay below 2²⁴; above, 8-byte floats are used, exact to 2⁵³.

Sensitivity: |y·σ(−y⟨w,x⟩)·x_j| ≤ σ(‖w‖₁)·max|x|, so a record moves no entry by more than the largest entry of the
table that a margin in [−‖v‖₁, ‖v‖₁] can reach; replacing a record by at most twice that. [001, Algorithm 1, with the
gradient bound 1 instead of 2 and the current ‖w‖₁ instead of the radius.]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...encoding import Codes
from ...errors import InputError
from ...tables.base import IntArray
from ..query import GroupedScore, Part, Query, named
from ..unit import PrivacyUnit, Relation, Sensitivity
from .parities import products, require_two_levels, signs

UNITS = 1024  # of the table of σ: rounding a term by 1/2048 is far below its sampling error
ROWS = 1 << 12  # of one product, which then stays in a cache
_LARGEST_TABLE = 1 << 16
_EXACT_4, _EXACT_8 = 2**24, 2**53
Matrix = NDArray[Any]


class LogisticGradients(Query):
    """Σ over records of y·σ(−y⟨w,x⟩)·x_j for every regression and feature: minus the gradient of its summed loss.

    ``v`` has a row of whole weights for each regression, a column for each feature; w = scale·v. A regression's labels
    are whole numbers −1, 0 and 1 by code of its column; records with label 0 do not take part.
    """

    largest_feature = 1  # in units of the features' own grid

    def __init__(self, domain: Domain, v: IntArray, scale: float) -> None:
        super().__init__(domain)
        self._stand(v, scale)

    def at(self, v: IntArray) -> Self:
        """The same regressions at other weights: what follows from columns and features is not worked out again."""
        other = copy(self)
        other.__dict__.pop("_table", None)
        other._stand(v, self.scale)
        return other

    def _stand(self, v: IntArray, scale: float) -> None:
        self.v = np.asarray(v, dtype=np.int64)
        self.scale = float(scale)
        if self.v.shape != (len(self.targets), self.feature_count):
            raise InputError(f"v must have shape {(len(self.targets), self.feature_count)}, got {self.v.shape}")
        if not 0 <= self.scale < np.inf:
            raise InputError(f"scale must be a finite number of at least 0, got {scale}")
        self.reach = np.abs(self.v).sum(axis=1) * self.largest_feature  # of each regression's margins
        if int(self.reach.max(initial=0)) * 4 >= _EXACT_8:
            raise InputError("the whole weights are too large for exact margins; take fewer steps")

    # -- what a subclass says ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def targets(self) -> tuple[tuple[str, IntArray], ...]:
        """For each regression its column and the label of each code."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]: ...

    @abstractmethod
    def features(self, batch: Mapping[str, Codes]) -> Matrix:
        """One row for each feature, whole numbers."""

    def labels(self, batch: Mapping[str, Codes], x: Matrix) -> Matrix:
        """One row for each regression: −1, 0 or 1."""
        out = np.empty((len(self.targets), x.shape[1]), dtype=np.float32)
        for row, (name, values) in zip(out, self.targets, strict=True):
            np.take(values.astype(np.float32), batch[name], out=row)
        return out

    @abstractmethod
    def allowed(self) -> NDArray[np.bool_]:
        """Which features each regression may use: not those that contain its own label."""

    @property
    def feature_count(self) -> int:
        return len(self.feature_names)

    # -- sums ----------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        return self.domain.names

    @property
    def parts(self) -> tuple[Part, ...]:
        grid = Fraction(1, UNITS * self.largest_feature)
        return (Part("logistic gradients", self.v.shape, grid=grid),)

    @cached_property
    def _table(self) -> tuple[NDArray[np.float32], int, int]:
        """σ(−m·scale) in whole units for margins m from −reach up; large reaches are binned, 2^shift margins each."""
        reach = int(self.reach.max(initial=0))
        shift = max(0, (2 * reach + 1).bit_length() - _LARGEST_TABLE.bit_length() + 1)
        width = 1 << shift
        # A bin stands for its first margin, where σ is largest, and never for one outside [−reach, reach].
        m = np.arange(0, (2 * reach >> shift) + 1, dtype=np.float64) * width - reach
        return self.slopes(m * (self.scale / self.largest_feature)), reach, shift

    def slopes(self, margins: NDArray[np.float64]) -> NDArray[np.float32]:
        """σ(−margin) in whole units, for rising margins."""
        table = np.rint(UNITS / (1 + np.exp(np.clip(margins, -700, 700)))).astype(np.float32)
        # The exponential of a library may be off in its last bit; that no entry exceeds the ones before is our proof.
        return np.minimum.accumulate(table)

    def largest_terms(self) -> IntArray:
        """Of each regression, the largest entry of the table that its margins can reach, times the largest feature."""
        table, reach, shift = self._table
        out: IntArray = table[(reach - self.reach) >> shift].astype(np.int64) * self.largest_feature
        return out

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        table, reach, shift = self._table
        largest = UNITS * self.largest_feature
        rows = max(1, min(ROWS, (_EXACT_4 - 1) // largest))
        small = reach < _EXACT_4 // 2
        kind: Any = np.float32 if small else np.float64
        v = self.v.astype(kind)
        total = np.zeros(self.v.shape)
        count = len(next(iter(batch.values())))
        for lo in range(0, count, rows):
            part = {name: batch[name][lo : lo + rows] for name in self.columns}
            x = self.features(part)
            y = self.labels(part, x)
            margins = v @ x.astype(kind, copy=False)
            margins *= y
            index = margins.astype(np.intp)  # whole numbers already
            index += reach
            if shift:
                index >>= shift
            terms = np.take(table, index)
            terms *= y
            total += terms @ x.T
        return (total.astype(np.int64),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        moves = self.largest_terms()
        cells = self.v.shape[1]
        times = 1 if relation == "add-remove" else 2
        l1, l2 = int(moves.sum()) * cells * times, int((moves**2).sum()) * cells * times**2
        return (Sensitivity(l1, l2, int(moves.max(initial=0)) * times, self.v.size),)

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        """See :meth:`GroupedScore.joint`, one group for each regression."""
        return Fraction(len(self.targets)), Fraction(len(self.targets))

    def score(self, *, adaptive: bool) -> VertexScore:
        """For the selection of vertices of the ℓ1 ball."""
        return SteepestVertex(self, adaptive=adaptive)

    def describe(self) -> dict[str, Any]:
        return {**named("query", self), "regressions": self.v.shape[0], "features": self.v.shape[1]}


class SpinGradients(LogisticGradients):
    """A regression for each binary column on monomials of the others ([001] Lemmas 3.7 and 4.1)."""

    def __init__(self, domain: Domain, monomials: Iterable[Clique], v: IntArray, scale: float) -> None:
        require_two_levels(domain, domain.names, "these regressions are of")
        self.monomials = tuple(domain.clique(I) for I in monomials)
        self._domain = domain
        super().__init__(domain, v, scale)

    @cached_property
    def targets(self) -> tuple[tuple[str, IntArray], ...]:
        return tuple((name, np.array([-1, 1])) for name in self._domain.names)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        return tuple("·".join(I) or "1" for I in self.monomials)

    def features(self, batch: Mapping[str, Codes]) -> Matrix:
        if any(len(I) > 1 for I in self.monomials):
            return products(signs(batch), self.monomials)
        codes = [batch[I[0]] if I else self._ones(batch) for I in self.monomials]
        out = np.array(codes, dtype=np.float32)
        out *= 2
        out -= 1
        return out

    @staticmethod
    def _ones(batch: Mapping[str, Codes]) -> Codes:
        """The code of the constant feature."""
        return np.ones_like(next(iter(batch.values())))

    @cached_property
    def _own(self) -> NDArray[np.intp] | None:
        """Where each column's own value stands among the features, if all do."""
        place = {I: j for j, I in enumerate(self.monomials)}
        found = [place.get((name,)) for name in self._domain.names]
        return None if None in found else np.array(found, dtype=np.intp)

    def labels(self, batch: Mapping[str, Codes], x: Matrix) -> Matrix:
        own = self._own
        if own is None:
            return super().labels(batch, x)
        return x[: len(own)] if np.array_equal(own, np.arange(len(own))) else x[own]

    def allowed(self) -> NDArray[np.bool_]:
        return np.array([[name not in I for I in self.monomials] for name in self._domain.names])


class LevelGradients(LogisticGradients):
    """For each column and each unordered pair {u, v} of its levels, a regression of u (+1) against v (−1) on the
    one-hot levels of the other columns and a constant ([001] Lemma 3.10; Algorithm 3 with sums instead of averages).

    A record takes part in the k − 1 regressions of a column that have its level. Replacing a record: in the regression
    of its old against its new level the score of a level that both have moves by 2s; in the 2(k − 2) others that have
    one of the two, and in the k − 1 that have it twice (then with one sign), by s. In units of 2s that is at most
    1 + (k − 2) = k − 1 in all, and 1 + (k − 2)/2 = k/2 in squares.
    """

    def __init__(self, domain: Domain, v: IntArray, scale: float) -> None:
        self._domain = domain
        super().__init__(domain, v, scale)

    @staticmethod
    def shape_for(domain: Domain) -> tuple[int, int]:
        """Number of regressions and of features."""
        return sum(k * (k - 1) // 2 for k in domain.shape), sum(domain.shape) + 1

    @cached_property
    def levels(self) -> tuple[tuple[int, int, int], ...]:
        """Column, u and v of each regression."""
        return tuple((i, u, v) for i, k in enumerate(self._domain.shape) for u in range(k) for v in range(u + 1, k))

    @cached_property
    def targets(self) -> tuple[tuple[str, IntArray], ...]:
        names, shape = self._domain.names, self._domain.shape
        out = []
        for i, u, v in self.levels:
            label = np.zeros(shape[i], dtype=np.int64)
            label[u], label[v] = 1, -1
            out.append((names[i], label))
        return tuple(out)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        return (*(f"{a.name}={label}" for a in self._domain.attributes for label in a.labels), "1")

    @cached_property
    def _column_of_feature(self) -> IntArray:
        return np.repeat(np.arange(len(self._domain) + 1), [*self._domain.shape, 1])

    def features(self, batch: Mapping[str, Codes]) -> Matrix:
        out = np.ones((self.feature_count, len(next(iter(batch.values())))), dtype=np.float32)
        at = 0
        for name, size in zip(self._domain.names, self._domain.shape, strict=True):
            out[at : at + size] = batch[name] == np.arange(size)[:, None]
            at += size
        return out

    def allowed(self) -> NDArray[np.bool_]:
        return np.array([self._column_of_feature != i for i, _, _ in self.levels]).reshape(self.shape_for(self._domain))

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        linear = sum(k - 1 for k in self._domain.shape)
        halves = sum(k for k in self._domain.shape if k > 1)
        return Fraction(linear), Fraction(linear) if unit.relation == "add-remove" else Fraction(halves, 2)


class VertexScore(GroupedScore):
    """Scores of the vertices of one polytope for each regression: how fast the loss falls towards them."""

    noun = ("step of the regressions", "steps of the regressions")

    @abstractmethod
    def moves(self, chosen: Sequence[int]) -> IntArray:
        """The chosen vertices as whole vectors, one row for each regression."""


class SteepestVertex(VertexScore):
    """For each regression the vertex ±e_j of the ℓ1 ball along which its loss falls fastest.

    Candidates of a regression: + and − of each feature that it may use, in order. The scores of +e_j and −e_j are the
    sum of the terms and its negative: they move both ways. ``adaptive``: the sensitivity is that at the current,
    public weights; otherwise σ is bounded by 1.
    """

    def __init__(self, gradients: LogisticGradients, *, adaptive: bool = True) -> None:
        self.query = self.gradients = gradients
        self._adaptive = adaptive
        self._allowed = gradients.allowed()

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(2 * int(row.sum()) for row in self._allowed)

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        names = self.gradients.feature_names
        return tuple(f"{sign}{names[j]}" for row in self._allowed for j in np.flatnonzero(row) for sign in "+-")

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        kept = sums[0][self._allowed]
        return np.stack([kept, -kept], axis=1).reshape(-1)

    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        times = unit.max_rows * (1 if unit.relation == "add-remove" else 2)
        if not self._adaptive:
            return (UNITS * self.gradients.largest_feature * times,) * len(self._allowed)
        return tuple(max(1, int(m)) * times for m in self.gradients.largest_terms())

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        return self.gradients.joint(unit)

    def moves(self, chosen: Sequence[int]) -> IntArray:
        out = np.zeros(self._allowed.shape, dtype=np.int64)
        for vertex, allowed, c in zip(out, self._allowed, chosen, strict=True):
            vertex[np.flatnonzero(allowed)[c // 2]] = 1 - 2 * (c % 2)
        return out

    def describe(self) -> dict[str, Any]:
        return {**self.gradients.describe(), **named("score", self)}
