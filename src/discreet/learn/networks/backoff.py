"""Conditional rows that step back where their records are few: P(x | a, b) leans on P(x | a), and that on P(x).

A family of columns (a, b, …, x) was measured as one noisy table. Its margins are less noisy: summing k cells makes the
count k times as large, and the deviation of its noise √k times. So the parents are taken in one after the other. A cell
of the margin over x and the first ℓ parents is y = n·Θ + noise, with n the records of its row; and the row before, q =
P(x | the first ℓ − 1 parents), says what Θ may be. How much it says is learned from all noisy cells of one order
together: cells are put into bins by q, and in each bin the distribution of Θ is estimated by nonparametric maximum
likelihood, starting from that over the whole network (:mod:`.shrinkage`), which stands behind it. Where the lower order
tells much, that distribution is narrow, and what is drowned in noise comes out near q; where tables are rules that no
lower order foretells, it is the wide one. Each Θ is its posterior mean.

Everything is computed from noisy tables and public noise levels: post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...count_table import CountTable
from ..projection import project_table
from .families import Array
from .shrinkage import FLOOR, Smoother

BINS = np.array([0.003, 0.01, 0.03, 0.07, 0.15, 0.3, 0.45, 0.6, 0.8, 0.93])
"""Where bins of q end. Set, as ``BEHIND`` was, on random networks with Dirichlet rows of two kinds and the four bundled
ones."""
BEHIND = 100.0
"""So many cells of the whole network stand behind the distribution in a bin."""


@dataclass(frozen=True, eq=False)
class _Margin:
    """Noisy counts of a column row by row, their deviation, the records of each row, and the rows they lean on."""

    counts: Array
    deviation: float
    records: Array
    lower: Array | None


def stepped_rows(tables: Mapping[str, CountTable], total: float) -> dict[str, Array]:
    """For each family, a table whose last column is the child and which may hold negative cells, its conditional rows.

    Parents are taken in the order in which they come: those whose margin tells most should come first.
    """
    lawful = {n: replace(t, values=project_table(t.values, total) + FLOOR * t.variance**0.5) for n, t in tables.items()}
    rows: dict[str, Array] = {}
    top = [_margin(t, lawful[n], len(t.clique) - 1, None) for n, t in tables.items()]
    smoother = Smoother.of(*_cells(top), total)
    for order in range(max(len(t.clique) for t in tables.values())):
        names = [n for n, t in tables.items() if len(t.clique) > order]
        margins = [_margin(tables[n], lawful[n], order, rows.get(n)) for n in names]
        y, base, sd = _cells(margins)
        bins = np.concatenate([_bins(m) for m in margins])
        theta = smoother.within(y, base, sd, bins, BEHIND)
        start = 0
        for n, m in zip(names, margins, strict=True):
            part = theta[start : start + m.counts.size].reshape(m.counts.shape)
            start += m.counts.size
            rows[n] = part / part.sum(axis=1, keepdims=True)
    return {n: rows[n].reshape(t.values.shape) for n, t in tables.items()}


def _margin(table: CountTable, lawful: CountTable, order: int, before: Array | None) -> _Margin:
    """Over the child and the first parents; ``before``: the rows of the order below."""
    child, above = table.clique[-1], table.clique[:order]
    counts = table.onto((*above, child))
    levels = counts.values.shape[-1]
    lower = None if before is None else np.repeat(before, counts.values.shape[order - 1], axis=0)
    records = lawful.onto(above).values.reshape(-1)
    return _Margin(counts.values.reshape(-1, levels), counts.variance**0.5, records, lower)


def _cells(margins: Sequence[_Margin]) -> tuple[Array, Array, Array]:
    """Of all cells: counts, records of their rows, deviations."""
    y = np.concatenate([m.counts.reshape(-1) for m in margins])
    base = np.concatenate([np.repeat(m.records, m.counts.shape[1]) for m in margins])
    return y, base, np.concatenate([np.full(m.counts.size, m.deviation) for m in margins])


def _bins(margin: _Margin) -> np.ndarray:
    """The bin of each cell; the last one is for columns by themselves."""
    if margin.lower is None:
        return np.full(margin.counts.size, len(BINS) + 1)
    return np.searchsorted(BINS, margin.lower.reshape(-1))
