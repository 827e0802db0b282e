"""The default learner of Bayesian networks with a given graph.

1. **Measure** only the maximal families (those inside no other), with the shares of :mod:`.shares`.
2. **Agree**: generalised least squares over all overlapping tables (:mod:`.consistency`).
3. **Smooth**: project to the simplex for row totals, then posterior means of all conditional rows (:mod:`.shrinkage`).
4. **Fit** the network to the noisy tables, weighting cell by cell by signal and noise (:mod:`.network_fit`).

Privacy. Rows are read by step 1 only, in one call of :meth:`Curator.measure`; the rest is post-processing of noisy
tables and public quantities. The number of records comes from the noisy tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Clique, Domain
from ..errors import InputError
from ..graph import DEFAULT_MEMORY_LIMIT
from ..measurement import Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Budget
from ..privacy.calibration import NoiseChoice, noise_of
from ..privacy.curator import Curator
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .consistency import consistent, estimated_total
from .families import LARGEST_FAMILY, Array, Families, TooLarge, rows_from_counts
from .graph_input import Graph, materialised
from .network_fit import STEPS, engine_for, fit_network
from .plan import Plan, PlannedTable, advice
from .projection import project_table
from .shares import Allocation, allocate
from .shrinkage import FLOOR, posterior_rows

METHOD = "optimal"


@dataclass(frozen=True)
class OptimalNetwork:
    """Learn the conditional tables of a Bayesian network whose graph is public.

    Parameters
    ----------
    graph:
        The graph, as :func:`discreet.estimation.graph_input.parents_of` understands it.
    noise:
        ``"auto"`` takes Laplace or Gaussian noise, whichever has the smaller expected error under the budget.
    fit_steps:
        Steps of the network fit; 0 leaves it out.
    largest, too_large:
        Limit on the cells of a family, and what to do beyond it: ``"refuse"``, or ``"drop"`` parents.
    memory_limit:
        Of exact inference in the network fit; on wider graphs the fit is left out, which the card says.
    """

    graph: Graph
    noise: NoiseChoice = "auto"
    fit_steps: int = STEPS
    largest: int = LARGEST_FAMILY
    too_large: TooLarge = "refuse"
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", materialised(self.graph))
        if isinstance(self.fit_steps, bool) or not isinstance(self.fit_steps, int) or self.fit_steps < 0:
            raise InputError(f"fit_steps must be a whole number of at least 0, got {self.fit_steps!r}")

    def families(self, domain: Domain) -> Families:
        return Families.of(domain, self.graph, largest=self.largest, too_large=self.too_large)

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """Each table, its share and its expected error, before a row is read."""
        families = self.families(domain)
        chosen = self._allocation(families, unit, budget)
        tables = tuple(
            PlannedTable(clique, cells, share, noise_of(call), chosen.why)
            for clique, cells, share, call in zip(
                families.maximal, chosen.plan.cells, chosen.shares, chosen.plan.calls, strict=True
            )
        )
        plan = Plan(METHOD, unit, budget, tables, families.notes(), approximate_size)
        skipped = len(families.cliques) - len(families.maximal)
        notes = (f"{skipped} families lie within these tables and cost nothing.",) if skipped else ()
        return Plan(METHOD, unit, budget, tables, (*notes, *plan.notes, *advice(plan.noisy)), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> BayesianNetwork:
        """Measure with ``share`` (all that remains, by default) and estimate."""
        families = self.families(curator.domain)
        budget = share or curator.remaining or curator.budget
        chosen = self._allocation(families, curator.unit, budget)
        query = Marginals(families.domain, families.maximal)
        measured = curator.measure(query, share, noise=chosen.noise, weights=list(chosen.weights))
        return self._estimate(families, measured)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """The network from tables that hold all its families; post-processing only. ``domain`` gives the columns an
        order of their own; by default they come as in the measurements."""
        return self._estimate(self.families(domain or measurements.domain), measurements)

    def _allocation(self, families: Families, unit: PrivacyUnit, budget: Budget) -> Allocation:
        return allocate(Marginals(families.domain, families.maximal), unit, budget, self.noise)

    def _estimate(self, families: Families, measured: Measurements) -> BayesianNetwork:
        tables = consistent(measured)
        total = estimated_total(measured)
        homes = families.homes({c: v for c, (_, v) in tables.items()})
        if all(v == 0 for _, v in tables.values()):
            return families.network(
                _closed_form(families, tables, homes), self._card(families, measured, "closed form")
            )
        rows = _smoothed(families, tables, homes, total)
        how = "smoothed rows"
        if self.fit_steps:
            engine = engine_for(families, self.memory_limit)
            if engine is None:
                how += "; no network fit, the graph is too wide for exact inference"
            else:
                rows = fit_network(families, engine, rows, tables, homes, total, self.fit_steps)
                how += f", {self.fit_steps} steps of the network fit"
        return families.network(rows, self._card(families, measured, how))

    def _card(self, families: Families, measured: Measurements, how: str) -> dict[str, Any]:
        card: dict[str, Any] = {**measured.release, "method": METHOD, "estimation": how}
        if not measured.is_release:
            card["origin"] = next(m.origin for m in measured if m.origin not in ("release", "public"))
        card["noise"] = sorted({m.noise.kind for m in measured})
        if families.dropped:
            card["dropped_edges"] = [list(e) for e in families.dropped]
        return card


def _closed_form(
    families: Families, tables: dict[Clique, tuple[Array, float]], homes: dict[str, Clique]
) -> dict[str, Array]:
    """Conditional frequencies (eq. 14 of the paper), for tables without noise."""
    return {n: rows_from_counts(np.maximum(families.table(n, homes[n], tables[homes[n]][0]), 0.0)) for n in homes}


def _smoothed(
    families: Families, tables: dict[Clique, tuple[Array, float]], homes: dict[str, Clique], total: float
) -> dict[str, Array]:
    projected = {c: project_table(g, total) + FLOOR * v**0.5 for c, (g, v) in tables.items() if c in homes.values()}
    domain = families.domain
    noisy, totals, deviations = {}, {}, {}
    for name, home in homes.items():
        g, v = tables[home]
        noisy[name] = families.table(name, home, g)
        totals[name] = families.table(name, home, projected[home]).sum(axis=-1)
        deviations[name] = (v * domain.size(home) / domain.size(families.cliques[name])) ** 0.5
    return posterior_rows(noisy, totals, deviations, total)
