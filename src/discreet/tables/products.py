"""All pairs of many columns by one matrix product: ZZᵀ, with a row of Z for each level and a column for each record.

For hundreds of columns there are tens of thousands of pairs, and a product counts them all at the speed of the machine.
The first level of every column is left out and follows from a row of ones. Entries are zeros and ones, and a product
is taken of so few records at once that its sums are exact in single precision; they are added up as whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..domain import Clique, Domain
from ..encoding import Codes
from .base import IntArray

CHUNK_ROWS = 1 << 13
"""Records in one product: far below the 2²⁴ up to which single precision holds every whole number."""
FEWEST_PAIRS = 100
_SECONDS_PER_GROUP, _SECONDS_PER_ENTRY = 8e-9, 2e-11
"""A record counted in one group of columns, and one entry of the product for one record, measured on one core."""
_BLOCK_BITS = 7  # columns of a group's block; see counting.plan_groups


def worth_a_product(domain: Domain, pairs: Sequence[Clique]) -> bool:
    """Whether these pairs are counted faster by a product; of public things alone."""
    if len(pairs) < FEWEST_PAIRS:
        return False
    sizes = [domain[n].size for n in {n for pair in pairs for n in pair}]
    blocks = math.ceil(sum(map(math.log2, sizes)) / _BLOCK_BITS)
    groups = min(len(pairs), blocks * (blocks + 1) / 2)
    entries = (1 + sum(k - 1 for k in sizes)) ** 2
    return _SECONDS_PER_ENTRY * entries < _SECONDS_PER_GROUP * groups


@dataclass(frozen=True)
class Products:
    """The counts of all pairs of these columns."""

    domain: Domain
    names: Clique

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.domain[n].size for n in self.names]

    @property
    def rows(self) -> int:
        """Of Z."""
        return 1 + sum(k - 1 for k in self._sizes)

    def zero(self) -> IntArray:
        return np.zeros((self.rows, self.rows), dtype=np.int64)

    def count(self, batch: Mapping[str, Codes]) -> IntArray:
        """ZZᵀ over the records of a batch."""
        out = self.zero()
        records = len(batch[self.names[0]])
        for lo in range(0, records, CHUNK_ROWS):
            z = np.ones((self.rows, min(CHUNK_ROWS, records - lo)), dtype=np.float32)
            row = 1
            for name, size in zip(self.names, self._sizes, strict=True):
                codes = batch[name][lo : lo + CHUNK_ROWS]
                for level in range(1, size):
                    np.equal(codes, level, out=z[row], casting="unsafe")
                    row += 1
            out += (z @ z.T).astype(np.int64)
        return out

    def tables(self, total: IntArray, pairs: Sequence[Clique]) -> list[IntArray]:
        """The tables of these pairs, as views of the counts of all levels."""
        starts = np.concatenate([[0], np.cumsum(self._sizes)])
        first = starts[:-1]
        at = np.setdiff1d(np.arange(starts[-1]), first)
        whole = np.zeros((starts[-1], starts[-1]), dtype=np.int64)
        whole[np.ix_(at, at)] = total[1:, 1:]
        # What is in no other level is in the first: of the rows, then of the columns.
        whole[np.ix_(first, at)] = total[0, 1:] - np.add.reduceat(whole, first, axis=0)[:, at]
        every = np.zeros(starts[-1], dtype=np.int64)
        every[at] = total[0, 1:]
        every[first] = total[0, 0] - np.add.reduceat(every, first)
        whole[:, first] = every[:, None] - np.add.reduceat(whole, first, axis=1)
        bounds = {n: slice(a, b) for n, a, b in zip(self.names, starts[:-1], starts[1:], strict=True)}
        return [whole[bounds[a], bounds[b]] for a, b in pairs]
