"""How often a public rule predicts a column right: one count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...encoding import Codes
from ...errors import InputError
from ...tables.base import IntArray
from ..query import LARGEST_TERM, Part, Query
from ..unit import Relation, Sensitivity

MOST_TABLES = 2**20
_CHUNK = 1 << 14  # rows at once: a column may have hundreds of levels


class RightPredictions(Query):
    """The number of records whose ``target`` is the level with the largest score, the first of several.

    The score of a level is a sum of public whole numbers, one from each table that the other columns are looked up in.
    Whole numbers, so that what is predicted for a record follows from that record alone, whatever batch it is in and
    whatever machine adds up.

    Sensitivity: a record is predicted right or not, so that it adds 0 or 1. Replacing it moves the count by at most 1;
    noise is drawn as if by 2, as for all sums of a certificate, by which `discreet verify` computes it again.

    Parameters
    ----------
    tables:
        Cliques that hold the target, each with whole numbers in the shape of its clique.
    """

    noun = ("count of right predictions", "counts of right predictions")

    def __init__(
        self, domain: Domain, target: str, tables: Iterable[tuple[Clique, NDArray[np.int64]]], *, label: str = ""
    ) -> None:
        super().__init__(domain)
        self.target = domain[target].name
        self._label = label or f"right predictions of {target}"
        self._tables: list[tuple[Clique, IntArray]] = []
        for clique, table in tables:
            shape = tuple(domain[n].size for n in clique)
            if target not in clique or np.shape(table) != shape or np.asarray(table).dtype.kind != "i":
                raise InputError(f"a table of scores holds {target!r}, and a whole number for each cell of {clique}")
            if len(self._tables) >= MOST_TABLES or int(np.abs(table).max(initial=0)) > LARGEST_TERM:
                raise InputError("scores are at most 2³¹ large, and so many of them that they add up in 64 bits")
            others = tuple(n for n in clique if n != target)
            self._tables.append((others, np.ascontiguousarray(np.moveaxis(table, clique.index(target), -1), np.int64)))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.domain.clique({self.target, *(n for others, _ in self._tables for n in others)})

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part(self._label, (1,)),)

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        truth = batch[self.target]
        right = 0
        for begin in range(0, len(truth), _CHUNK):
            rows = slice(begin, begin + _CHUNK)
            scores = np.zeros((len(truth[rows]), self.domain[self.target].size), dtype=np.int64)
            for others, table in self._tables:
                scores += table[tuple(batch[n][rows] for n in others)]
            right += int((scores.argmax(axis=1) == truth[rows]).sum())
        return (np.array([right], dtype=np.int64),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        d = 1 if relation == "add-remove" else 2
        return (Sensitivity(d, d * d, d, 1),)


def scores_of(tables: Sequence[NDArray[np.float64]], grid: float) -> list[IntArray]:
    """Logarithms as whole numbers of a grid; what is impossible has the least score there is."""
    least = -(LARGEST_TERM - 1)
    rounded = [np.rint(np.nan_to_num(table / grid, nan=least, neginf=least, posinf=-least)) for table in tables]
    return [np.clip(each, least, -least).astype(np.int64) for each in rounded]
