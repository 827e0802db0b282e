"""Scores that find, privately, which of many sums a public approximation gets most wrong, and in which direction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...tables.base import IntArray
from ..query import Query, SumScore, named, whole_counts


class SignedResiduals(SumScore):
    """Candidates +q and −q for every sum q of a query; their scores are sum − approximation and its negative.

    The sign is chosen together with the sum: whoever is told "−q" learns that the approximation is too large, and
    pays for it once. The approximation is public, so that a unit moves every score by as much as it moves its sum,
    the query's L∞ sensitivity, up for one sign and down for the other. Candidates 0 … m−1 are the positive ones.
    """

    noun = ("choice of a question", "choices of a question")

    def __init__(self, query: Query, approximation: NDArray[Any]) -> None:
        self.query = query
        if any(p.grid != 1 for p in query.parts):
            raise InputError("signed residuals are of whole counts; this query's sums stand on a grid")
        self._sums = sum(p.cells for p in query.parts)
        self._approximation = whole_counts(approximation, (self._sums,), "the approximation of the sums")

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        names = [f"{p.label}[{i}]" for p in self.query.parts for i in range(p.cells)]
        return tuple(sign + name for sign in "+-" for name in names)

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        residuals = np.concatenate([s.reshape(-1) for s in sums]) - self._approximation
        return np.concatenate([residuals, -residuals])

    def describe(self) -> dict[str, Any]:
        return {**named("score", self), "candidates": 2 * self._sums}
