"""Private estimation of pairwise models over columns with any numbers of levels: noisy two-way tables, then maximum
likelihood.

Half of the budget measures the tables of all pairs, the other half those of the pairs that stand out, again. What
stands out is told by partial correlations between the columns' contrasts, which need no inference: with C the
covariance of orthonormal centred contrasts and K its inverse, the block K_ij is zero (for Gaussian data exactly, here
nearly) when i and j have no edge. Its error is known from the noise and the number of records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurements
from ...models.pairwise import Pair, PairwiseModel
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.queries.gradients import LevelGradients
from ...privacy.queries.group_vertices import check_vertices
from ...privacy.query import Marginals
from ...privacy.unit import PrivacyUnit
from ..consistency import consistent, estimated_total
from ..planned_sums import measuring, release_card, selecting, settled_later
from ..procedure import Plan, PlannedTable
from ..projection import project_table
from ..regressions.frank_wolfe import Variant, selection_of
from ..regressions.ising import DEFAULT_WIDTH
from ..regressions.pairwise import Vertices, regress_levels, weights_of
from ..spins.ising_fit import PRIOR, mostly_real
from ..spins.learning import Method, check_choices, frank_wolfe_card
from .likelihood import Field

Array = NDArray[np.float64]
Tables = dict[Clique, tuple[Array, float]]
TREE_BYTES = min(DEFAULT_MEMORY_LIMIT, 1 << 24)  # of exact inference that is run some hundred times


@dataclass(frozen=True)
class PairwiseLearner:
    """Learn a pairwise model.

    Parameters
    ----------
    method:
        ``"moments"`` (what ``"auto"`` takes): noisy two-way tables and maximum likelihood. ``"frank_wolfe"``: [001]
        Algorithm 3, corrected.
    max_edges, min_weight:
        Public bounds on the number of edges, and on max |W_ij| of one.
    width, variant, steps:
        Of Frank–Wolfe: λ (2 by default), and as for :class:`IsingLearner`.
    vertices:
        Of Frank–Wolfe: ``"coordinate"``, one level of one column at a time as in the paper, or ``"group"``, a column
        with a sign for each of its levels, in a ball whose radius is smaller by the number of levels.
    memory_limit:
        Bytes of exact inference during the fit; wider graphs are fitted by loopy belief propagation, which the card
        says.
    """

    method: Method = "auto"
    max_edges: int | None = None
    min_weight: float = 0.0
    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None
    vertices: Vertices = "coordinate"
    memory_limit: int = TREE_BYTES

    def __post_init__(self) -> None:
        check_choices(self.method, self.variant, self.steps, self.width, self.min_weight, most=self.max_edges)
        if self.vertices not in ("coordinate", "group"):
            raise InputError(f"vertices must be 'coordinate' or 'group', got {self.vertices!r}")

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """What will be asked, before a row is read."""
        if self.method == "frank_wolfe":
            regressions = LevelGradients.shape_for(domain)[0]
            what = f"steps, a vertex for each of {regressions} regressions"
            if self.vertices == "group":
                what += f", out of {check_vertices(domain):,} group vertices in all"
            entry = settled_later(what, 1.0, selecting(budget, selection_of(self.variant)))
            return Plan(f"frank_wolfe, {self.variant}", unit, budget, (entry,), (), approximate_size)
        query = _tables(domain, _pairs(domain))
        first, _ = budget.split([1, 1])
        drawn = plan_noise(query, unit, first)
        share = 0.5 / len(query.parts)
        entries: list[PlannedTable] = [
            PlannedTable(p.clique or (), p.cells, share, noise_of(call))
            for p, call in zip(query.parts, drawn.calls, strict=True)
        ]
        entries.append(settled_later("tables that stand out, again", 0.5, measuring(budget)))
        return Plan("moments of a pairwise model", unit, budget, tuple(entries), (), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> PairwiseModel:
        """Ask the curator with ``share`` (all that remains, by default), then estimate."""
        domain = curator.domain
        budget = share or curator.remaining or curator.budget
        if self.method == "frank_wolfe":
            return self._frank_wolfe(curator, budget)
        return self.estimate(self.measure(curator, budget), domain)

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """The tables of all pairs with half of ``share`` (all that remains, by default), and of the pairs that stand
        out with the other half; what :meth:`estimate` needs, and public. Not for ``"frank_wolfe"``, which measures
        nothing but selects."""
        if self.method == "frank_wolfe":
            raise InputError("method='frank_wolfe' selects vertices and measures no tables: use fit, or 'moments'")
        domain = curator.domain
        budget = share or curator.remaining or curator.budget
        first, second = budget.split([1, 1])
        measured = curator.measure(_tables(domain, _pairs(domain)), first)
        edges = self._edges(domain, measured, generous=True)
        again = curator.measure(_tables(domain, edges), second)
        return Measurements((*measured, *again), curator.statement())

    def _frank_wolfe(self, curator: Curator, budget: Budget) -> PairwiseModel:
        domain = curator.domain
        width = self.width or DEFAULT_WIDTH
        done = regress_levels(curator, budget, width, self.variant, self.steps, self.vertices)
        W, Theta = weights_of(domain, done.state)
        size = {pair: float(np.abs(table).max()) for pair, table in W.items()}
        kept = sorted((pair for pair in W if size[pair] >= self.min_weight / 2), key=lambda pair: -size[pair])
        card = frank_wolfe_card(curator, done, f"frank_wolfe, {self.variant}, {self.vertices} vertices", width)
        return PairwiseModel({pair: W[pair] for pair in kept[: self.max_edges]}, Theta, domain, card)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> PairwiseModel:
        """The model from noisy two-way tables of all pairs; post-processing only."""
        columns = domain or measurements.domain
        edges = self._edges(columns, measurements)
        tables = consistent(measurements)
        n = estimated_total(measurements)
        cliques: list[Clique] = [(name,) for name in columns.names] + list(edges)
        field = Field(columns, cliques, memory_limit=self.memory_limit)
        target = field.join({c: _margin(columns, tables, c, n) for c in cliques})
        ridge = field.fill({c: min(_variance(columns, tables, c) / n**2 / PRIOR**2, 1e3) + 1e-9 for c in cliques})
        solution = field.maximise(target, ridge, tolerance=1e-11)
        found = field.split(solution.theta)
        card = release_card(
            dict(measurements.release),
            list(measurements),
            method="moments",
            estimation=f"maximum likelihood, {field.inference} inference",
            edges=len(edges),
        )
        W: dict[Pair, Any] = {(a, b): found[a, b] for a, b in edges}
        return PairwiseModel(W, {name: found[(name,)] for name in columns.names}, columns, card)

    def _edges(self, domain: Domain, measurements: Measurements, *, generous: bool = False) -> list[Pair]:
        """Pairs whose partial correlations stand out (generously: that may); all pairs, if most do."""
        pairs = _pairs(domain)
        statistic, freedom, size = _statistics(domain, measurements)
        # P(χ² > r + 2√(rx) + 2x) ≤ e^{−x} [Laurent, Massart, Annals of Statistics 2000, Lemma 1], for m pairs at once.
        x = 3.0 if generous else math.log(max(len(pairs), 2)) + 2
        keep = statistic > freedom + 2 * np.sqrt(freedom * x) + 2 * x
        bounded = self.max_edges is not None or self.min_weight > 0
        # Half of all χ² lie below the median, some r − 2/3. If clearly fewer than a quarter of the pairs that do not
        # stand out do, most of them are real too, and leaving them out would cost more than it saves.
        if not bounded and mostly_real((statistic < freedom - 2 / 3)[~keep], 0.5):
            keep[:] = True
        if generous and not bounded:
            return [pair for pair, kept in zip(pairs, keep, strict=True) if kept]
        if self.min_weight > 0:
            keep &= size >= self.min_weight / 2
        if self.max_edges is not None:
            order = np.argsort(-(statistic / freedom), kind="stable")
            keep = np.zeros(len(pairs), dtype=bool)
            keep[order[: self.max_edges]] = statistic[order[: self.max_edges]] > freedom[order[: self.max_edges]]
        return [pair for pair, kept in zip(pairs, keep, strict=True) if kept]


def _pairs(domain: Domain) -> list[Pair]:
    return list(combinations(domain.names, 2))


def _tables(domain: Domain, pairs: list[Pair]) -> Marginals:
    """The tables of these pairs, and of the columns that no pair has."""
    covered = {name for pair in pairs for name in pair}
    return Marginals(domain, [*pairs, *((name,) for name in domain.names if name not in covered)])


def _margin(domain: Domain, tables: Tables, clique: Clique, n: float) -> Array:
    """Relative frequencies of a pair or a column, from a consistent table that has it, as near as a distribution."""
    home = next(c for c in tables if set(clique) <= set(c))
    values = tables[home][0]
    away = tuple(i for i, name in enumerate(home) if name not in clique)
    return project_table(values.sum(axis=away) / n)


def _variance(domain: Domain, tables: Tables, clique: Clique) -> float:
    home = next(c for c in tables if set(clique) <= set(c))
    return tables[home][1] * domain.size(home) / domain.size(clique)


def contrasts(levels: int) -> Array:
    """Orthonormal columns that sum to zero, one less than there are levels."""
    basis = np.eye(levels) - 1 / levels
    left, values, _ = np.linalg.svd(basis)
    out: Array = left[:, values > 0.5]
    return out


def _statistics(domain: Domain, measurements: Measurements) -> tuple[Array, Array, Array]:
    """For each pair: Σ (K entry / its standard error)², the number of entries, and the size of the block."""
    tables = consistent(measurements)
    n = estimated_total(measurements)
    bases = {a.name: contrasts(a.size) for a in domain.attributes}
    ends = np.cumsum([0, *(bases[name].shape[1] for name in domain.names)])
    place = {name: slice(a, b) for name, a, b in zip(domain.names, ends[:-1], ends[1:], strict=True)}
    C, noise = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
    means = {name: _margin(domain, tables, (name,), n) for name in domain.names}
    for name in domain.names:
        B, q = bases[name], means[name]
        C[place[name], place[name]] = B.T @ (np.diag(q) - np.outer(q, q)) @ B
    pairs = _pairs(domain)
    for a, b in pairs:
        table, variance = tables[a, b]
        block = bases[a].T @ (table / n - np.outer(means[a], means[b])) @ bases[b]
        C[place[a], place[b]], C[place[b], place[a]] = block, block.T
        noise[place[a], place[b]] = noise[place[b], place[a]] = variance / n**2
    values, vectors = np.linalg.eigh(C)
    K = (vectors / np.maximum(values, 0.05 / max(domain.shape))) @ vectors.T
    own = np.diag(K)
    spread = K**2 @ noise @ K**2
    statistic, freedom, size = np.zeros(len(pairs)), np.zeros(len(pairs)), np.zeros(len(pairs))
    for at, (a, b) in enumerate(pairs):
        i, j = place[a], place[b]
        error = spread[i, j] + np.outer(own[i], own[j]) / n
        statistic[at] = float((K[i, j] ** 2 / error).sum())
        freedom[at] = K[i, j].size
        weights = bases[a] @ K[i, j] @ bases[b].T
        size[at] = float(np.abs(weights).max(initial=0.0))
    return statistic, np.maximum(freedom, 1.0), size
