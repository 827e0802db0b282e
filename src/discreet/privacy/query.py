"""Queries: what is computed per record, together with how far one record can move it.

Score and sensitivity live in one object, so that they are written, read and tested together: the audits compare the
declared sensitivity with the change on neighbouring tables. All sums are whole numbers. A real-valued term is rounded
to a public grid record by record, *before* it is summed; whole numbers add up the same in any order and on any engine.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..arguments import require_domain, require_groups
from ..domain import Attribute, Clique, Domain
from ..encoding import Codes
from ..errors import InputError
from ..tables.base import IntArray
from .unit import PrivacyUnit, Relation, Sensitivity

MOST = 2**60  # of public numbers that sums are compared with
LARGEST_TERM = 2**31  # per record, in grid units: sums of up to 2³² records cannot overflow 64 bits
Grid = Fraction | int
Noun = tuple[str, str]
"""What people call one such question, and several of them: ``("table", "tables")``."""


@dataclass(frozen=True)
class Part:
    """One table of sums that a query releases: its name, its shape, and the width of one unit of its grid."""

    label: str
    shape: tuple[int, ...]
    clique: Clique | None = None  # set when the sums are a contingency table of these columns
    grid: Fraction = Fraction(1)
    about: Mapping[str, Any] = field(default_factory=dict)  # which sums these are, as plain data that a file can hold

    @property
    def cells(self) -> int:
        return math.prod(self.shape)  # exact: a table of 2⁶⁴ cells must not look empty


class Query(ABC):
    """A sum over records with its sensitivity. Subclass it to ask something new; see CONTRIBUTING.md.

    A subclass gives ``parts``, ``row_sensitivity`` and either ``cliques`` with ``combine`` (the sums follow from
    contingency tables) or ``columns`` with ``sum_rows`` (rows are visited in batches).

    ``domain`` is what it was made for. A sensitivity holds for the levels that are foreseen there: a table whose
    columns have others refuses the query before a row is touched (:meth:`discreet.tables.base.Table.require`).
    """

    noun: ClassVar[Noun] = ("sum", "sums")
    asked_again = False  # whether it is asked many times and never changes: then tables keep its sums, which are few
    needs_weights = False  # whether each row of a person with K rows counts 1/K: its sensitivity rests on that

    def __init__(self, domain: Domain) -> None:
        self.domain = require_domain(domain)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns of the rows that it uses, as they are in the domain that it was made for."""
        if "domain" not in self.__dict__:
            raise InputError(f"{type(self).__name__} does not say its domain; call super().__init__(domain) when made")
        if self.cliques is None:
            used = [self.domain[n] for n in self.columns or self.domain.names]
            if any(a.groups is not None for a in used):
                raise InputError(f"{type(self).__name__} visits rows, and these hold no groups of levels")
            return tuple(used)
        used = [self.domain[n] for n in dict.fromkeys(n for c in self.cliques for n in c)]
        own = [a if a.groups is None else a.groups.of for a in used]
        if len({a.name for a in own}) < len(own):
            raise InputError(f"{type(self).__name__} is of a column and of groups of its levels; ask for them apart")
        return tuple(own)

    @property
    def grouped(self) -> tuple[Attribute, ...]:
        """The columns that rows do not hold, because their levels are groups of levels of others
        (:class:`~discreet.attribute.Groups`). A record has one level of these, so it is in one group: tables with such
        a column are moved as with any other, and a sensitivity that holds for a column of so many levels holds for it.
        """
        candidates = [a for a in self.domain.attributes if a.groups is not None]
        used = {n for c in self.cliques or () for n in c} if candidates else set()
        return tuple(a for a in candidates if a.name in used)

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The tables that come out, in order."""

    @abstractmethod
    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        """Per part, how far adding (or replacing) one *row* can move the sums."""

    def sensitivity(self, unit: PrivacyUnit) -> tuple[Sensitivity, ...]:
        """Per part, how far one *unit* can move the sums.

        Adding a person adds up to m rows. Replacing one replaces up to m rows and adds or removes the difference:
        m steps in all, each as large as the larger of the two. (A single row too may be replaced by one that does not
        count, say for want of a person.)
        """
        steps = self.row_sensitivity(unit.relation)
        if unit.relation == "replace-one":
            alone = self.row_sensitivity("add-remove")
            steps = tuple(Sensitivity.largest([a, b]) for a, b in zip(steps, alone, strict=True))
        return tuple(s.times(unit.max_rows) for s in steps)

    @property
    def cliques(self) -> tuple[Clique, ...] | None:
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        raise TypeError(f"{type(self).__name__} is not computed from contingency tables")

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        raise TypeError(f"{type(self).__name__} is not computed row by row")

    def describe(self) -> dict[str, Any]:
        """Public description, for ledgers and release cards."""
        return {**named("query", self), "parts": [p.label for p in self.parts], **self.told_of_groups}

    @property
    def told_of_groups(self) -> dict[str, Any]:
        """A digest of which levels are taken together, where any are: names of tables alone do not tell."""
        codes = [a.groups.to_dict() for a in self.grouped if a.groups is not None]
        return {"groups": hashlib.sha256(json.dumps(codes).encode()).hexdigest()[:16]} if codes else {}


def named(role: str, asked: Any) -> dict[str, Any]:
    """The name of what is asked, and its noun: ledgers and reports have their words from here."""
    return {role: type(asked).__name__.lstrip("_"), "noun": list(asked.noun)}


class Marginals(Query):
    """Contingency tables of cliques of columns: ``Marginals(domain, ["age", ("age", "sex")])``. The empty clique is the
    number of records.

    Sensitivity: a record adds one to one cell of each table (L1 = L2 = L∞ = 1); replacing a record also takes one
    from one cell (L1 = 2, L2² = 2, L∞ = 1).
    """

    noun = ("table", "tables")

    def __init__(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> None:
        super().__init__(domain)
        self._cliques = tuple(domain.clique(c) for c in require_groups(cliques))
        if len(set(self._cliques)) != len(self._cliques):
            twice = next(c for c in self._cliques if self._cliques.count(c) > 1)
            raise InputError(f"the clique {twice} is asked for twice; once is enough")

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return self._cliques

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(" × ".join(c) or "number of records", tuple(self.domain[n].size for n in c), clique=c)
            for c in self._cliques
        )

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        if relation == "add-remove":
            return (Sensitivity(1, 1, 1, 1),) * len(self.parts)
        # One cell loses a record and another gains it. The total stays, but is noised as if it moved: nobody should
        # learn the exact number of records from us.
        moved, total = Sensitivity(2, 2, 1, 2), Sensitivity(1, 1, 1, 1)
        return tuple(moved if p.cells > 1 else total for p in self.parts)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return tuple(counts)


class CellSums(Query):
    """Sums of a public function of a few columns: one vector of values for each cell of a clique.

    The values are rounded to the grid once, in public, so the sensitivities are exact: they are found by looking at
    every cell (add-remove) or every pair of cells (replace-one).

    Parameters
    ----------
    values:
        Array of shape ``(*clique shape, d)``: the d terms that a record in that cell contributes. Its axes are in the
        order in which ``clique`` names the columns.
    grid:
        Width of the public grid; a power of two or any rational.
    """

    def __init__(
        self,
        domain: Domain,
        clique: Iterable[str],
        values: NDArray[Any],
        *,
        grid: Grid | float = 1,
        label: str = "sums",
    ) -> None:
        super().__init__(domain)
        given = [clique] if isinstance(clique, str) else list(clique)
        self._clique = domain.clique(given)
        self._grid = Fraction(grid)
        if self._grid <= 0:
            raise InputError(f"the grid must be positive, got {float(self._grid)}")
        shape = tuple(domain[n].size for n in given)
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != len(shape) + 1 or values.shape[:-1] != shape:
            raise InputError(f"values must have shape {(*shape, 'd')}, got {values.shape}")
        values = values.transpose(*(given.index(n) for n in self._clique), -1)  # from the caller's order of columns
        units = np.rint(values / float(self._grid))
        if not np.all(np.isfinite(units)) or np.abs(units).max(initial=0) > LARGEST_TERM:
            raise InputError(f"values must be finite and at most 2³¹ grid units large; the grid is {float(self._grid)}")
        self._units: IntArray = units.astype(np.int64).reshape(-1, values.shape[-1])
        self._label = label

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return (self._clique,)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part(self._label, (self._units.shape[1],), grid=self._grid),)

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (np.asarray(counts[0].reshape(-1) @ self._units, dtype=np.int64),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        u = self._units
        if relation == "add-remove":
            return (_largest_norms(u),)
        return (Sensitivity.largest([_largest_norms(u - row) for row in u]),)


def _largest_norms(vectors: IntArray) -> Sensitivity:
    """Largest norms among integer rows, exactly: squares are added as Python integers when they may be large."""
    size = np.abs(vectors)
    wide = int(size.max(initial=0)) ** 2 * max(vectors.shape[1], 1) >= 2**62
    squared = size.astype(object) ** 2 if wide else size**2
    return Sensitivity(
        int(size.sum(axis=1).max(initial=0)),
        int(squared.sum(axis=1).max(initial=0)) if len(vectors) else 0,
        int(size.max(initial=0)),
        int((size > 0).sum(axis=1).max(initial=0)),
    )


class Score(ABC):
    """Scores of public candidates, for private selection: whole numbers that no unit moves by more than ``linf``.

    Higher is better. Scores may be any function of the sums of ``query``; the sensitivity is that of the score.
    """

    noun: ClassVar[Noun] = ("choice", "choices")
    query: Query

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that it uses: a score knows nothing of the rows but the sums of its query."""
        return self.query.attributes

    @property
    def needs_weights(self) -> bool:
        return self.query.needs_weights

    @property
    @abstractmethod
    def candidates(self) -> tuple[str, ...]:
        """Names of the candidates, in order."""

    @abstractmethod
    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        """One whole number for each candidate."""

    @abstractmethod
    def linf(self, unit: PrivacyUnit) -> int:
        """Largest change of any score through one unit. Scores may move both ways."""

    def describe(self) -> dict[str, Any]:
        return {**named("score", self), "candidates": len(self.candidates), **self.query.told_of_groups}


class GroupedScore(Score):
    """Scores in several groups, for one selection in each: all from one pass over the rows."""

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """How many of the candidates, in order, each group has."""

    @abstractmethod
    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        """Of each group, the largest change of any of its scores through one unit."""

    def linf(self, unit: PrivacyUnit) -> int:
        return max(self.linfs(unit))

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        """Largest sums, over the groups, of Δ_g/linf_g and of its square, where Δ_g is how far one unit moves group g.

        A unit that may move every group by all of ``linfs`` has the number of groups twice; where a record takes part
        in some groups only, or in some of them with half its weight, it is less.
        """
        return Fraction(len(self.groups)), Fraction(len(self.groups))


class SumScore(Score):
    """Scores each of which is a sum of the query, up to its sign and public numbers: by the triangle inequality a unit
    moves none of them further than it moves a sum, which is the query's L∞ sensitivity."""

    def linf(self, unit: PrivacyUnit) -> int:
        return max(s.linf for s in self.query.sensitivity(unit))


def whole_counts(values: npt.ArrayLike, shape: tuple[int, ...], what: str) -> IntArray:
    """Public numbers that sums are compared with, rounded. Large ones are refused: beyond 64 bits a score would wrap
    around, and one record could move it by far more than we say."""
    rounded = np.rint(np.asarray(values, dtype=np.float64))
    if rounded.shape != shape:
        raise InputError(f"{what} must have shape {shape}, got {rounded.shape}")
    if not np.abs(rounded).sum() < MOST:
        raise InputError(f"{what} must hold finite counts, 2⁶⁰ in all at most")
    return rounded.astype(np.int64)


class LargestSum(SumScore):
    """Select the largest of a query's sums (over all its parts, which must share one grid)."""

    noun = ("choice of the largest sum", "choices of the largest sum")

    def __init__(self, query: Query) -> None:
        self.query = query
        if len({p.grid for p in query.parts}) > 1:
            raise InputError("sums on different grids cannot be compared; select within one part")

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        return tuple(f"{p.label}[{i}]" for p in self.query.parts for i in range(p.cells))

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        return np.concatenate([s.reshape(-1) for s in sums])
