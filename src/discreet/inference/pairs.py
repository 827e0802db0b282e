"""The marginals of all pairs of columns at once, in one pass over a calibrated junction tree.

Going up the tree, every clique hands to its parent P(x, s) for every column x that is met first at or below it: s is
the separator between the two. At the parent two children with the separators s and s' meet, and

    P(x, s') = Σ_s P(x | s) P(s, s'),      P(x, y) = Σ_s' P(x, s') P(y | s')

for all x below the one and all y below the other together: products of matrices, with a row for every level of every
column. P(s, s') is summed out of the parent's own belief. Each pair is made once, where its two columns first meet; for
p columns of k levels that is some (pk)²·|s| operations in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..factor import Array
from .schedule import Reduction, Schedule

_DENSE = 1 << 16
"""Up to so many entries P(s, s') is a plain matrix; where s and s' share columns most of a larger one is zero."""


class PairTables:
    """P(x, y) for all columns x and y, in one square matrix: a row and a column for every level of every column."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        ends = [0, *accumulate(domain.shape)]
        self._levels = {n: slice(a, b) for n, a, b in zip(domain.names, ends[:-1], ends[1:], strict=True)}
        self.matrix = np.zeros((ends[-1], ends[-1]))

    def __getitem__(self, pair: tuple[str, str]) -> Array:
        """The table of two columns, as a view."""
        return self.matrix[self._levels[pair[0]], self._levels[pair[1]]]

    def rows(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Where the levels of these columns are in the matrix."""
        return np.concatenate([np.arange(self._levels[n].start, self._levels[n].stop) for n in names])

    def put(self, rows: NDArray[np.intp], columns: NDArray[np.intp], block: Array) -> None:
        self.matrix[rows[:, None], columns] = block
        self.matrix[columns[:, None], rows] = block.T


@dataclass
class _Below:
    """P(x, s) for columns x below a separator s: which rows of the matrix they are, and a column for each cell of s."""

    rows: NDArray[np.intp]
    joint: Array


class _Belief:
    """The probabilities of one clique of the tree."""

    def __init__(self, schedule: Schedule, beliefs: Array, i: int) -> None:
        a, b = schedule.bounds[i]
        self.axes, self.shape, self._table = schedule.axes[i], schedule.shapes[i], beliefs[a:b]
        self._sums: dict[Clique, Array] = {}

    def onto(self, names: Clique) -> Array:
        """Summed onto these columns; their axes in the order of the clique."""
        if names not in self._sums:
            kept = frozenset(self.axes.index(n) for n in names)
            reduction = Reduction(self.shape, kept)
            self._sums[names] = reduction(self._table).reshape(reduction.kept_shape)
        return self._sums[names]

    def in_order(self, names: Sequence[str]) -> Clique:
        return tuple(n for n in self.axes if n in names)

    def between(self, s: Clique, t: Clique) -> Any:
        """P(s, t) as a matrix; a cell where a shared column has two levels is zero."""
        union = self.in_order((*s, *t))
        joint = self.onto(union)
        rows, columns = _cells(union, joint.shape, s), _cells(union, joint.shape, t)
        shape = (int(rows[-1]) + 1, int(columns[-1]) + 1)
        if min(len(s), len(t)) > 1 and shape[0] * shape[1] > _DENSE:
            from scipy.sparse import csr_array  # slow to import

            return csr_array((joint.reshape(-1), (rows, columns)), shape=shape)
        out = np.zeros(shape)
        out[rows, columns] = joint.reshape(-1)
        return out


def _cells(axes: Clique, shape: tuple[int, ...], names: Clique) -> NDArray[np.intp]:
    """For every cell of a table, the cell of its margin on these columns."""
    out = np.zeros(shape, dtype=np.intp)
    stride = 1
    for i in range(len(axes) - 1, -1, -1):
        if axes[i] in names:
            out += (stride * np.arange(shape[i])).reshape([-1 if j == i else 1 for j in range(len(axes))])
            stride *= shape[i]
    return out.reshape(-1)


def pair_tables(schedule: Schedule, beliefs: Array) -> PairTables:
    """All pairs of columns from the beliefs (probabilities, without a batch) of a calibrated tree; of a column with
    itself, its marginal on the diagonal. Memory follows the square of the number of all levels."""
    out = PairTables(schedule.tree.domain)
    separators: list[Clique] = [()] * len(schedule.sizes)
    parents = [0] * len(schedule.sizes)
    for (parent, child), separator in zip(schedule.tree.edges, schedule.tree.separators, strict=True):
        separators[child], parents[child] = separator, parent
    # For each clique, by separator: what its children handed on, that of one separator side by side.
    handed: list[dict[Clique, _Below]] = [{} for _ in schedule.sizes]
    for i in range(len(schedule.sizes) - 1, -1, -1):
        belief = _Belief(schedule, beliefs, i)
        above = belief.in_order(separators[i])
        fresh = tuple(n for n in belief.axes if n not in above)
        _inside(out, belief, fresh)
        passed = [_Below(out.rows([n]), belief.between((n,), above)) for n in fresh]
        met: list[tuple[Clique, _Below]] = []
        for s, below in handed[i].items():
            given = below.joint / _positive(belief.onto(s).reshape(-1))
            if outside := [n for n in belief.axes if n not in s]:
                joint = np.concatenate([belief.between(s, (n,)) for n in outside], axis=1)
                out.put(below.rows, out.rows(outside), given @ joint)
            for t, other in met:
                out.put(below.rows, other.rows, (given @ belief.between(s, t)) @ other.joint.T)
            met.append((s, _Below(below.rows, given)))
            passed.append(_Below(below.rows, given @ belief.between(s, above)))
        handed[i] = {}
        if i:
            new = _Below(np.concatenate([b.rows for b in passed]), np.concatenate([b.joint for b in passed]))
            _hand_on(out, handed[parents[i]], above, new, belief.onto(above).reshape(-1))
    return out


def _inside(out: PairTables, belief: _Belief, fresh: Clique) -> None:
    """The pairs within a clique of which one column is met here first."""
    for name in fresh:
        rows = out.rows([name])
        out.put(rows, rows, np.diag(belief.onto((name,))))
        for other in belief.axes:
            if other not in fresh or other < name:
                out.put(rows, out.rows([other]), belief.between((name,), (other,)))


def _hand_on(out: PairTables, to: dict[Clique, _Below], s: Clique, new: _Below, weight: Array) -> None:
    """What a child hands to its parent; with what others of the same separator handed before it makes pairs."""
    before = to.get(s)
    if before is None:
        to[s] = new
    else:
        out.put(new.rows, before.rows, (new.joint / _positive(weight)) @ before.joint.T)
        to[s] = _Below(np.concatenate([before.rows, new.rows]), np.concatenate([before.joint, new.joint]))


def _positive(weight: Array) -> Array:
    """For a division of what is zero wherever this is."""
    return np.where(weight > 0, weight, 1.0)
