"""Counting many contingency tables in one pass.

A count of 2 ns a row is as cheap for a table of 16,000 cells as for one of four. So cliques that overlap are counted
together, as one table over the union of their columns when that stays small, and are summed out of it afterwards: all
190 pairs of 20 columns with five levels come out of 21 counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..count_table import summed_onto
from ..domain import Clique, Domain
from ..encoding import Codes
from .base import IntArray

GROUP_CELLS = 1 << 14  # a group's counters stay within a core's cache


@lru_cache(maxsize=64)
def plan_groups(domain: Domain, cliques: tuple[Clique, ...]) -> tuple[tuple[Clique, tuple[int, ...]], ...]:
    """Groups of columns to count, each with the positions of the cliques that are summed out of it."""
    widest = max((len(c) for c in cliques), default=1)
    limit = GROUP_CELLS ** (1 / max(widest, 1))
    block: dict[str, int] = {}
    cells, number = 1, 0
    for name in domain.clique({n for c in cliques for n in c}):
        if cells * domain[name].size > limit:
            cells, number = 1, number + 1
        cells *= domain[name].size
        block[name] = number
    assigned: dict[frozenset[int], list[int]] = {}
    for position, c in sorted(enumerate(cliques), key=lambda item: -len({block[n] for n in item[1]})):
        blocks = frozenset(block[n] for n in c)
        # A clique within one block rides along with any group that has the block.
        home = next((g for g in assigned if blocks <= g), blocks) if len(blocks) == 1 else blocks
        assigned.setdefault(home, []).append(position)
    groups: list[tuple[Clique, tuple[int, ...]]] = []
    for positions in assigned.values():
        union = domain.clique({n for i in positions for n in cliques[i]})
        if domain.size(union) <= GROUP_CELLS:
            groups.append((union, tuple(positions)))
        else:  # too large together: each by itself
            groups.extend((cliques[i], (i,)) for i in positions)
    return tuple(groups)


def count_group(domain: Domain, group: Clique, batch: Mapping[str, Codes]) -> IntArray:
    """One flat table of counts over the columns of ``group``."""
    cells = domain.size(group)
    index_type: Any = np.uint32 if cells < 2**32 else np.int64  # four bytes a row are twice as fast as eight
    if not group:
        rows = len(next(iter(batch.values())))
        return np.array([rows], dtype=np.int64)
    index: NDArray[Any] = batch[group[0]].astype(index_type)
    for name in group[1:]:
        index *= index_type(domain[name].size)
        index += batch[name]
    return np.bincount(index, minlength=cells).astype(np.int64, copy=False)


def sum_out(domain: Domain, group: Clique, counts: IntArray, clique: Clique) -> IntArray:
    """The table of ``clique`` from the flat table of a group that contains it; axes in the order the clique gives."""
    table = counts.reshape([domain[n].size for n in group])
    return np.array(summed_onto(table, group, clique), order="C")


def zero_groups(domain: Domain, groups: Sequence[tuple[Clique, tuple[int, ...]]]) -> list[IntArray]:
    return [np.zeros(math.prod(domain[n].size for n in g), dtype=np.int64) for g, _ in groups]
