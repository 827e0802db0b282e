"""Private estimation of pairwise models over columns with any numbers of levels: noisy two-way tables, then maximum
likelihood.

Half of the budget measures the tables of all pairs, the other half those of the pairs that stand out, again. What
stands out is told by partial correlations between the columns' contrasts, which need no inference: with C the
covariance of orthonormal centred contrasts and K its inverse, the block K_ij is zero (for Gaussian data exactly, here
nearly) when i and j have no edge. Its error is known from the noise and the number of records. Where columns are
strongly correlated no edge may stand out although together they are plainly there: pairs whose tables the fitted model
contradicts come back, until none is contradicted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...count_table import CountTable
from ...domain import Clique, Domain
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurements
from ...models.pairwise import Pair, PairwiseModel
from ...privacy.query import Marginals
from ...privacy.requests import Asking, Measure
from ..cards import card_of
from ..checks import as_measurements
from ..consistency import Estimates, consistent, estimated_total
from ..learner import Learner
from ..planned import measuring
from ..procedure import Procedure, Whole
from ..projection import project_table
from ..spins.coefficients import check_bounds
from ..spins.likelihood import PRIOR
from ..spins.support import mostly_real
from .likelihood import Field

Array = NDArray[np.float64]
TREE_BYTES = min(DEFAULT_MEMORY_LIMIT, 1 << 24)  # of exact inference that is run some hundred times
SEARCH_BYTES = 1 << 21  # the same while edges come back: with eight times as much, eight columns of Adult gain nothing
METHOD = "moments"
_RECORDS = 50_000  # drawn from a fitted model to see what it says of pairs without an edge
_AT_ONCE = 3  # edges that are added before the next fit, at least
_CLOSELY, _ROUGHLY = 1e-11, 1e-7  # relative gain of a step at which a fit ends; roughly, while edges are searched


@dataclass(frozen=True)
class PairwiseField(Learner[PairwiseModel]):
    """Learn a pairwise model from noisy two-way tables.

    Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike, by composition of the tables
    of all pairs and of those that stand out in them. The model is post-processing.

    Parameters
    ----------
    max_edges, min_weight:
        Public bounds on the number of edges, and on max |W_ij| of one.
    memory_limit:
        Bytes of exact inference during the fit; wider graphs are fitted by loopy belief propagation, which the card
        says.
    """

    max_edges: int | None = None
    min_weight: float = 0.0
    memory_limit: int = TREE_BYTES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bounds(None, self.min_weight, self.max_edges)
        check_whole(1, memory_limit=self.memory_limit)

    def prepare(self, whole: Whole) -> Procedure:
        """The tables of all pairs with half of the budget, and of those that stand out with the other half."""
        domain = whole.domain
        first, second = whole.budget.split([1, 1])

        def again(released: Measurements) -> Asking[None]:
            edges = self._candidates(PairTables(domain, released))
            yield Measure(second, _tables(domain, edges))

        steps = (
            whole.measure("tables of all pairs", Measure(first, _tables(domain, _pairs(domain)))),
            whole.later("tables that stand out, again", second, again, measuring(second)),
        )
        return Procedure("moments of a pairwise model", whole, steps)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> PairwiseModel:
        """The model from noisy two-way tables of all pairs; post-processing only."""
        measured = as_measurements(measurements)
        tables = PairTables(domain or measured.domain, measured)
        fit = self._fit(tables, tables.edges(self.max_edges, self.min_weight))
        if self._free and (more := self._explained(tables, fit)) is not fit:
            fit = self._fit(tables, more.edges, more.theta)
        how = f"maximum likelihood, {fit.inference} inference"
        return fit.model.with_card(card_of(measured, METHOD, estimation=how, edges=len(fit.edges)))

    @property
    def _free(self) -> bool:
        return self.max_edges is None and self.min_weight == 0

    def _candidates(self, tables: PairTables) -> Sequence[Pair]:
        """Pairs that may turn out to have an edge when they are measured again."""
        edges = tables.edges(self.max_edges, self.min_weight, generous=True)
        return self._explained(tables, self._fit(tables, edges, None, _ROUGHLY)).edges if self._free else edges

    def _explained(self, tables: PairTables, fit: PairFit) -> PairFit:
        """The fit with as many more edges as it takes until no table contradicts it, while exact inference is quick:
        what belief propagation says of distant columns is too far off."""
        while fit.inference == "exact" and len(fit.edges) < len(tables.pairs):
            worst = tables.contradicted(fit)
            if not worst:
                break
            more = {*fit.edges, *worst[: max(_AT_ONCE, len(worst) // 4)]}
            edges = [pair for pair in tables.pairs if pair in more]
            if self._field(tables.domain, edges, min(self.memory_limit, SEARCH_BYTES)).inference != "exact":
                break
            fit = self._fit(tables, edges, fit.theta, _ROUGHLY)
        return fit

    def _field(self, domain: Domain, edges: Sequence[Pair], memory_limit: int) -> Field:
        return Field(domain, [*((name,) for name in domain.names), *edges], memory_limit=memory_limit)

    def _fit(
        self,
        tables: PairTables,
        edges: Sequence[Pair],
        start: Mapping[Clique, Array] | None = None,
        tolerance: float = _CLOSELY,
    ) -> PairFit:
        domain, n, begun = tables.domain, tables.records, start or {}
        field = self._field(domain, edges, self.memory_limit)
        cliques = field.cliques
        target = field.join({c: tables.margin(c) for c in cliques})
        ridge = field.fill({c: min(tables.variance(c) / n**2 / PRIOR**2, 1e3) + 1e-9 for c in cliques})
        first = field.join({c: begun.get(c, np.zeros(domain.size(c))) for c in cliques})
        found = field.split(field.maximise(target, ridge, start=first, tolerance=tolerance).theta)
        W: dict[Pair, Any] = {(a, b): found[a, b] for a, b in edges}
        model = PairwiseModel(W, {name: found[(name,)] for name in domain.names}, domain)
        return PairFit(model, tuple(edges), field.inference, found)


@dataclass(frozen=True)
class PairFit:
    """A fitted model, the edges that it was allowed, and how beliefs were found."""

    model: PairwiseModel
    edges: tuple[Pair, ...]
    inference: str
    theta: Mapping[Clique, Array]


class PairTables:
    """Noisy tables of all pairs, made consistent; which pairs they say have an edge."""

    def __init__(self, domain: Domain, measurements: Measurements) -> None:
        self.domain, self.pairs = domain, _pairs(domain)
        self.tables: Estimates = consistent(measurements)
        self.records = estimated_total(measurements)
        # P(χ² > r + 2√(rx) + 2x) ≤ e^{−x} [Laurent, Massart, Annals of Statistics 2000, Lemma 1], for m pairs at once.
        self._strict = math.log(max(len(self.pairs), 2)) + 2

    def margin(self, clique: Clique) -> Array:
        """Relative frequencies of a pair or a column, as near as a distribution."""
        return project_table(self._table(clique).values / self.records)

    def variance(self, clique: Clique) -> float:
        """Of a cell of that margin, in records squared."""
        return self._table(clique).variance

    def _table(self, clique: Clique) -> CountTable:
        return next(t for t in self.tables.values() if t.holds(clique)).onto(clique)

    def edges(self, most: int | None, least: float, *, generous: bool = False) -> list[Pair]:
        """Pairs whose partial correlations stand out (generously: that may); all pairs, if most do."""
        statistic, freedom, size = self._partial_correlations()
        keep = statistic > _cut(freedom, 3.0 if generous else self._strict)
        bounded = most is not None or least > 0
        # Half of all χ² lie below the median, some r − 2/3. If clearly fewer than a quarter of the pairs that do not
        # stand out do, most of them are real too, and leaving them out would cost more than it saves.
        if not bounded and mostly_real((statistic < freedom - 2 / 3)[~keep], 0.5):
            keep[:] = True
        if least > 0:
            keep &= size >= least / 2
        if most is not None:
            order = np.argsort(-(statistic / freedom), kind="stable")[:most]
            keep = np.zeros(len(self.pairs), dtype=bool)
            keep[order] = statistic[order] > freedom[order]
        return [pair for pair, kept in zip(self.pairs, keep, strict=True) if kept]

    def contradicted(self, fit: PairFit) -> list[Pair]:
        """Pairs without an edge whose tables are further from the model than noise and sampling explain, worst first:
        by Σ (contrast of the difference / its standard error)²."""
        codes = np.asarray(fit.model.sample(_RECORDS, 0, labels=True).codes, dtype=np.int64)
        excess: dict[Pair, float] = {}
        for a, b in self.pairs:
            if (a, b) in fit.edges:
                continue
            table, variance = self.tables[a, b].values, self.tables[a, b].variance
            says = np.zeros(table.shape)
            np.add.at(says, (codes[:, self.domain.index(a)], codes[:, self.domain.index(b)]), 1 / _RECORDS)
            A, B = contrasts(table.shape[0]), contrasts(table.shape[1])
            gap = A.T @ (table / self.records - says) @ B
            # Of sampled records, as if the columns were independent: it only weighs gaps that the noise allows.
            spread = np.outer((A**2).T @ says.sum(axis=1), (B**2).T @ says.sum(axis=0))
            error = variance / self.records**2 + spread * (1 / self.records + 1 / _RECORDS)
            excess[a, b] = float((gap**2 / error).sum()) - float(_cut(np.array(max(gap.size, 1)), self._strict))
        return sorted((pair for pair in excess if excess[pair] > 0), key=lambda pair: -excess[pair])

    def _partial_correlations(self) -> tuple[Array, Array, Array]:
        """For each pair: Σ (K entry / its standard error)², the number of entries, and the size of the block."""
        domain, n = self.domain, self.records
        bases = {a.name: contrasts(a.size) for a in domain.attributes}
        ends = np.cumsum([0, *(bases[name].shape[1] for name in domain.names)])
        place = {name: slice(a, b) for name, a, b in zip(domain.names, ends[:-1], ends[1:], strict=True)}
        C, noise = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
        means = {name: self.margin((name,)) for name in domain.names}
        for name in domain.names:
            B, q = bases[name], means[name]
            C[place[name], place[name]] = B.T @ (np.diag(q) - np.outer(q, q)) @ B
        for a, b in self.pairs:
            table, variance = self.tables[a, b].values, self.tables[a, b].variance
            block = bases[a].T @ (table / n - np.outer(means[a], means[b])) @ bases[b]
            C[place[a], place[b]], C[place[b], place[a]] = block, block.T
            noise[place[a], place[b]] = noise[place[b], place[a]] = variance / n**2
        values, vectors = np.linalg.eigh(C)
        K = (vectors / np.maximum(values, 0.05 / max(domain.shape))) @ vectors.T
        own = np.diag(K)
        spread = K**2 @ noise @ K**2
        statistic, freedom, size = (np.zeros(len(self.pairs)) for _ in range(3))
        for at, (a, b) in enumerate(self.pairs):
            i, j = place[a], place[b]
            error = spread[i, j] + np.outer(own[i], own[j]) / n
            statistic[at] = float((K[i, j] ** 2 / error).sum())
            freedom[at] = K[i, j].size
            weights = bases[a] @ K[i, j] @ bases[b].T
            size[at] = float(np.abs(weights).max(initial=0.0))
        return statistic, np.maximum(freedom, 1.0), size


def _cut(freedom: Array, x: float) -> Array:
    return np.asarray(freedom + 2 * np.sqrt(freedom * x) + 2 * x)


def _pairs(domain: Domain) -> list[Pair]:
    return list(combinations(domain.names, 2))


def _tables(domain: Domain, pairs: Sequence[Pair]) -> Marginals:
    """The tables of these pairs, and of the columns that no pair has."""
    covered = {name for pair in pairs for name in pair}
    return Marginals(domain, [*pairs, *((name,) for name in domain.names if name not in covered)])


def contrasts(levels: int) -> Array:
    """Orthonormal columns that sum to zero, one less than there are levels."""
    basis = np.eye(levels) - 1 / levels
    left, values, _ = np.linalg.svd(basis)
    out: Array = left[:, values > 0.5]
    return out
