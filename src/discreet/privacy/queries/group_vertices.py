"""Group vertices for regressions on one-hot columns: a column j together with a sign for each of its levels.

[001] Algorithm 3 searches the ℓ1 ball of radius 2λk. The weights it looks for satisfy Σ_j max_b |w_jb| ≤ 2λ, a ball of
ℓ1 over columns and ℓ∞ over levels, whose vertices are ±2λ on *all* levels of one column. Searching that ball has a
radius smaller by a factor k, and a margin is at most Σ_j max_b |w_jb|, as a record has one level in each column.

Sensitivity. The score of (j, s) is Σ_b s_b·g_jb with g the summed gradients. A record adds one term of size at most
σ = σ(Σ_j max_b |w_jb|) to one g_jb, so it moves every score by at most σ, in the k − 1 regressions of a column i that
have its level of i. Replacing a record: if its level of i stays, then in each of those k − 1 regressions one term goes
and one comes, with one label but perhaps at levels of j that have opposite signs: 2σ. If its level of i changes, the
regression of the old against the new level moves by at most 2σ and 2(k − 2) others by σ. In units of 2σ that is at most
k − 1 in all, and max(k − 1, 1 + (k − 2)/2) = k − 1 in squares: 4(k − 1)σ² for each column.

The vertices are enumerated, 2^k for a column of k levels, and one of them is selected by the gateway's exact samplers.
(The law factorises — j with weight Π_b 2 cosh(g_jb/b), then independent signs — but a sampler of that must be as exact
as the gateway's, and up to 2¹² vertices a column enumeration is exact for nothing.)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...errors import CostError
from ...tables.base import IntArray
from ..query import named
from ..unit import PrivacyUnit
from .gradients import UNITS, LevelGradients, VertexScore

MOST_LEVELS = 12  # of a column, whose sign patterns are enumerated
MOST_VERTICES = 1 << 22  # of all regressions together: 40 seconds of noise for each step


class GroupedLevelGradients(LevelGradients):
    """The sums of :class:`LevelGradients`, with the margins' smaller reach and the joint sensitivity of groups."""

    def __init__(self, domain: Domain, v: IntArray, scale: float) -> None:
        super().__init__(domain, v, scale)
        largest = np.abs(self.v)
        starts = np.cumsum([0, *domain.shape])  # the constant is a group of its own
        self.reach = np.maximum.reduceat(largest, starts, axis=1).sum(axis=1)

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        both = Fraction(sum(k - 1 for k in self._domain.shape))
        return both, both

    def score(self, *, adaptive: bool) -> VertexScore:
        return SteepestGroup(self, adaptive=adaptive)


class SteepestGroup(VertexScore):
    """For each regression the group vertex along which its loss falls fastest.

    Candidates of a regression: the other columns in order, each with all patterns of signs (bit b set: level b has a
    minus), and the constant with both signs.
    """

    def __init__(self, gradients: GroupedLevelGradients, *, adaptive: bool = True) -> None:
        self.query = self.gradients = gradients
        self._adaptive = adaptive
        domain = gradients.domain
        check_vertices(domain)
        self._sizes = (*domain.shape, 1)
        self._starts = np.cumsum([0, *self._sizes])
        self._own = [i for i, _, _ in gradients.levels]

    @cached_property
    def _vertices(self) -> list[list[tuple[int, int]]]:
        """Of each regression, (column, pattern) of its candidates; the constant comes last."""
        every = [[(j, s) for s in range(1 << k)] for j, k in enumerate(self._sizes)]
        return [[v for j, own in enumerate(every) if j != i for v in own] for i in self._own]

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(len(v) for v in self._vertices)

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        names = (*self.gradients.domain.names, "1")
        return tuple(
            names[j] + ":" + "".join("-" if s >> b & 1 else "+" for b in range(self._sizes[j]))
            for vertices in self._vertices
            for j, s in vertices
        )

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        g = sums[0]
        blocks = []
        for j, k in enumerate(self._sizes):
            blocks.append(g[:, self._starts[j] : self._starts[j + 1]] @ _patterns(k).T)
        rows = [np.concatenate([block[r] for j, block in enumerate(blocks) if j != i]) for r, i in enumerate(self._own)]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        times = unit.max_rows * (1 if unit.relation == "add-remove" else 2)
        if not self._adaptive:
            return (UNITS * times,) * len(self._own)
        return tuple(max(1, int(m)) * times for m in self.gradients.largest_terms())

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        return self.gradients.joint(unit)

    def moves(self, chosen: Sequence[int]) -> IntArray:
        """The chosen vertex of each regression as a vector of −1, 0 and 1 over the features."""
        out = np.zeros(self.gradients.v.shape, dtype=np.int64)
        for r, c in enumerate(chosen):
            j, s = self._vertices[r][c]
            out[r, self._starts[j] : self._starts[j + 1]] = _patterns(self._sizes[j])[s]
        return out

    def describe(self) -> dict[str, Any]:
        return {**self.gradients.describe(), **named("score", self)}


def check_vertices(domain: Domain) -> int:
    """The number of vertices of all regressions together; refuses what could not be enumerated."""
    worst = max(domain.attributes, key=lambda a: a.size)
    if worst.size > MOST_LEVELS:
        raise CostError(
            f"group vertices are all patterns of signs of a column's levels, up to {MOST_LEVELS} levels; "
            f"{worst.name!r} has {worst.size}. Use vertices='coordinate', or coarsen the column in the schema"
        )
    every = sum(1 << k for k in domain.shape) + 2
    total: int = sum(k * (k - 1) // 2 * (every - (1 << k)) for k in domain.shape)
    if total > MOST_VERTICES:
        raise CostError(
            f"there are {total:,} group vertices, and every step draws noise for each; the limit is {MOST_VERTICES:,}. "
            "Use vertices='coordinate', or coarsen columns in the schema"
        )
    return total


def _patterns(levels: int) -> NDArray[np.int64]:
    """All vectors of signs, one in each row."""
    bits = np.arange(1 << levels)[:, None] >> np.arange(levels) & 1
    return np.asarray(1 - 2 * bits, dtype=np.int64)
