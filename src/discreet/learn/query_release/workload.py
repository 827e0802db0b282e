"""What is to be answered: many parities, or the cells of many contingency tables.

A workload knows its queries in all the forms that the release methods need: as sums that a curator answers, as means
over synthetic records, as means under a distribution over all cells, and as terms of an optimisation oracle. Answers
are always *means over the records*: parities in [−1, 1], cells in [0, 1].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import CostError, InputError
from ...inference.best_record import CellTerms, ParityTerms, Terms
from ...privacy.queries.distances import Distances, WorstTable
from ...privacy.queries.parities import ParityResiduals, ParitySums
from ...privacy.query import Marginals, Query, Score
from ..spins.enumeration import ParityFamily, positions

Array = NDArray[np.float64]
Records = NDArray[np.int64]
MOST_CELLS = 1 << 16  # of a distribution over all records that is reweighted some hundred times


class Workload(ABC):
    """Queries over the records of a domain, in groups that are measured together: a parity, or a whole table."""

    domain: Domain
    query: Query
    terms: Terms
    least: float  # possible answer
    groups: tuple[slice, ...]  # positions of the answers of each group

    def __len__(self) -> int:
        return len(self.terms)

    @abstractmethod
    def group_query(self, group: int) -> Query:
        """The sums of one group."""

    @abstractmethod
    def worst_group(self, groups: Sequence[int], approximation: Array) -> Score:
        """Which of these groups a public approximation of all sums gets most wrong."""

    @abstractmethod
    def answers_under(self, probabilities: Array) -> Array:
        """Of all queries, under a distribution over all cells of the domain, in order."""

    @abstractmethod
    def spread(self, group: int, numbers: Array) -> Array:
        """Σ_q numbers_q·q(x) for all cells x, over the queries q of one group."""

    def answers_on(self, records: Records) -> Array:
        """Means over synthetic records, one row of codes each."""
        return np.asarray(self.terms.values(records, list(range(len(self)))).mean(axis=0))

    @property
    def cells(self) -> int:
        return math.prod(self.domain.shape)

    def check_enumerable(self) -> None:
        if self.cells > MOST_CELLS:
            raise CostError(
                f"multiplicative weights keep a weight for each of the {self.cells:,} possible records; the limit is "
                f"{MOST_CELLS:,} ({len(self.domain)} columns were given). Use GaussianAnswers or PerturbedLeader, or "
                "fewer columns"
            )


class Parities(Workload):
    """E Π_{i∈I} z_i for each monomial I of columns with two levels."""

    least = -1.0

    def __init__(self, domain: Domain, monomials: Iterable[Iterable[str]]) -> None:
        self.domain = domain
        self.query = ParitySums(domain, monomials)
        self.monomials: tuple[Clique, ...] = self.query.monomials
        if not self.monomials or () in self.monomials:
            raise InputError("name at least one monomial, and none without columns: its parity is 1")
        for a in domain.attributes:
            if a.size != 2:
                raise InputError(f"parities are of columns with two levels, but {a.name!r} has {a.size}; leave it out")
        self._family = ParityFamily(len(domain), positions(domain.names, self.monomials))
        self.terms = ParityTerms(domain.shape, self._family.monomials)
        self.groups = tuple(slice(i, i + 1) for i in range(len(self.monomials)))

    def group_query(self, group: int) -> Query:
        return ParitySums(self.domain, [self.monomials[group]])

    def worst_group(self, groups: Sequence[int], approximation: Array) -> Score:
        return ParityResiduals(self.domain, [self.monomials[g] for g in groups], approximation[list(groups)])

    def answers_under(self, probabilities: Array) -> Array:
        return self._family.spectrum(probabilities)[self._family.masks]

    def spread(self, group: int, numbers: Array) -> Array:
        odd = np.bitwise_count(self._states & self._family.masks[group]) & 1
        sign = (-1.0) ** len(self.monomials[group])
        return np.asarray(numbers[0] * sign * (1.0 - 2.0 * odd))

    @cached_property
    def _states(self) -> NDArray[np.intp]:
        return np.arange(1 << len(self.domain), dtype=np.intp)


class Tables(Workload):
    """The relative frequencies of all cells of the contingency tables of these cliques."""

    least = 0.0

    def __init__(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> None:
        self.domain = domain
        marginals = Marginals(domain, cliques)
        self.query = marginals
        self.cliques: tuple[Clique, ...] = marginals.cliques
        if not self.cliques or () in self.cliques:
            raise InputError("name at least one clique, and none without columns: its frequency is 1")
        place = {name: i for i, name in enumerate(domain.names)}
        cells = []
        for clique in self.cliques:
            where = [place[name] for name in clique]
            every = product(*(range(domain[name].size) for name in clique))
            cells += [tuple(zip(where, levels, strict=True)) for levels in every]
        self.terms = CellTerms(domain.shape, tuple(cells))
        ends = np.cumsum([0, *(p.cells for p in marginals.parts)]).tolist()
        self.groups = tuple(slice(a, b) for a, b in pairwise(ends))

    def group_query(self, group: int) -> Query:
        return Marginals(self.domain, [self.cliques[group]])

    def worst_group(self, groups: Sequence[int], approximation: Array) -> Score:
        shaped = [approximation[self.groups[g]].reshape(self._shape(g)) for g in groups]
        return WorstTable(Distances(self.domain, [self.cliques[g] for g in groups], shaped))

    def answers_under(self, probabilities: Array) -> Array:
        table = probabilities.reshape(self.domain.shape)
        return np.concatenate([table.sum(axis=self._away(g)).reshape(-1) for g in range(len(self.groups))])

    def spread(self, group: int, numbers: Array) -> Array:
        table = np.expand_dims(numbers.reshape(self._shape(group)), self._away(group))
        return np.array(np.broadcast_to(table, self.domain.shape)).reshape(-1)

    def tables(self, answers: Array) -> dict[Clique, Array]:
        """Answers as one table of relative frequencies a clique."""
        return {
            c: answers[s].reshape(self._shape(g))
            for g, (c, s) in enumerate(zip(self.cliques, self.groups, strict=True))
        }

    def _shape(self, group: int) -> tuple[int, ...]:
        return tuple(self.domain[name].size for name in self.cliques[group])

    def _away(self, group: int) -> tuple[int, ...]:
        return tuple(i for i, name in enumerate(self.domain.names) if name not in self.cliques[group])


def flat(sums: Sequence[Any]) -> Array:
    """The values of all parts of a query below one another."""
    return np.concatenate([np.asarray(s.values, dtype=np.float64).reshape(-1) for s in sums])
