"""The default learner of Bayesian networks with a given graph.

1. **Measure** only the maximal families (those inside no other), with the shares of :mod:`.shares`.
2. **Agree**: generalised least squares over all overlapping tables (:mod:`.consistency`).
3. **Smooth**: project to the simplex for row totals, then posterior means of all conditional rows (:mod:`.shrinkage`).
4. **Fit** the network to the noisy tables, weighting cell by cell by signal and noise (:mod:`.network_fit`).

Privacy. Rows are read by step 1 only, in one request (:class:`Measure`); the rest is post-processing of noisy
tables and public quantities. The number of records comes from the noisy tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import counted
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurements
from ...models.bayesian import BayesianNetwork
from ...privacy.budget import Budget
from ...privacy.calibration import NoiseChoice
from ...privacy.query import Marginals
from ...privacy.requests import Measure
from ...privacy.unit import PrivacyUnit
from ..checks import as_measurements, checked_size
from ..consistency import Estimates, consistent, estimated_total
from ..planned import HOPELESS
from ..procedure import Procedure, Whole
from ..projection import project_table
from ..shares import Allocation, allocate
from .families import Array, Families, rows_from_counts
from .fit import STEPS, engine_for, fit_network
from .given import GivenGraph
from .shrinkage import FLOOR, posterior_rows

METHOD = "optimal"


@dataclass(frozen=True)
class OptimalNetwork(GivenGraph):
    """Learn the conditional tables of a Bayesian network whose graph is public.

    Parameters
    ----------
    graph, largest:
        See :class:`~discreet.learn.networks.given.GivenGraph`.
    noise:
        ``"auto"`` takes Laplace or Gaussian noise, whichever has the smaller expected error under the budget.
    fit_steps:
        Steps of the network fit; 0 leaves it out.
    approximate_size:
        About how many records there are, if that is public. Tables that are too large for so few records then cannot
        take the budget from the others, and ``too_large="coarsen"`` knows which they are.
    too_large:
        What to do about a family beyond the limit, or too large for the data (an expected L1 error of 2 or more):
        ``"refuse"`` it (the plan warns of what is too large for the data), or ``"coarsen"``: leave out parents.
    memory_limit:
        Of exact inference in the network fit; on wider graphs the fit is left out, which the card says.
    """

    noise: NoiseChoice = "auto"
    fit_steps: int = STEPS
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    approximate_size: float | None = None

    passes: ClassVar[int] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(0, fit_steps=self.fit_steps)
        checked_size(self.approximate_size)

    def prepare(self, whole: Whole) -> Procedure:
        """One step: the tables of all maximal families.

        Families, shares and noise are chosen from graph, domain, unit, budget and the learner's own
        ``approximate_size``, all public; that of ``whole`` is for the errors that are shown.
        """
        families, chosen = self._planned(whole.domain, whole.unit, whole.budget)
        whole = replace(whole, approximate_size=whole.approximate_size or self.approximate_size)
        tables = whole.measure("tables of the families", _request(families, chosen, whole.budget), why=chosen.why)
        skipped = len(families.cliques) - len(families.maximal)
        notes = (_inside(skipped),) if skipped else ()
        procedure = Procedure(METHOD, whole, (tables,), (*notes, *families.notes()))
        return procedure.with_cautions([families.maximal[i] for i in chosen.capped], self._way_out(whole.size))

    def request(self, domain: Domain, unit: PrivacyUnit, share: Budget) -> Measure:
        """The tables of all maximal families, for a share."""
        return _request(*self._planned(domain, unit, share), share)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """The network from tables that hold all its families; post-processing only. ``domain`` gives the columns an
        order of their own; by default they come as in the measurements."""
        measured = as_measurements(measurements)
        families = self.families(domain or measured.domain)
        if self.too_large == "coarsen":
            families = families.within(measured.cliques)
        return self._estimate(families, measured)

    def _planned(self, domain: Domain, unit: PrivacyUnit, budget: Budget) -> tuple[Families, Allocation]:
        """What will be measured; of public things only."""
        families, size = self.families(domain), self.approximate_size
        while True:
            query = Marginals(families.domain, families.maximal)
            chosen = allocate(query, unit, budget, self.noise, size)
            if size is None or self.too_large != "coarsen":
                return families, chosen
            errors = zip(chosen.expected_errors, families.maximal, strict=True)
            hopeless = sorted((e, c) for e, c in errors if e >= HOPELESS * size)
            coarser = (families.coarser([c]) for _, c in reversed(hopeless))
            families, before = next((f for f in coarser if f != families), families), families
            if families == before:  # the worst first; a table without parents cannot be helped
                return families.within(families.maximal), chosen

    def _way_out(self, size: float | None) -> str:
        if size is None or (self.approximate_size is not None and self.too_large == "coarsen"):
            return ""
        known = "" if self.approximate_size is not None else f"approximate_size={size:g}, "
        also = "" if self.approximate_size is not None else " (approximate_size alone limits what it takes)"
        return f"OptimalNetwork(…, {known}too_large='coarsen') leaves out parents instead{also}."

    def _estimate(self, families: Families, measured: Measurements) -> BayesianNetwork:
        tables = consistent(measured)
        total = estimated_total(measured)
        homes = families.homes(tables)
        if all(t.variance == 0 for t in tables.values()):
            rows = _closed_form(families, tables, homes)
            return families.network(rows, families.card(measured, METHOD, total, estimation="closed form"))
        rows = _smoothed(families, tables, homes, total)
        how = "smoothed rows"
        if self.fit_steps:
            engine = engine_for(families, self.memory_limit)
            if engine is None:
                how += "; no network fit, the graph is too wide for exact inference"
            else:
                rows = fit_network(families, engine, rows, tables, homes, total, self.fit_steps)
                how += f", {counted(self.fit_steps, 'step')} of the network fit"
        return families.network(rows, families.card(measured, METHOD, total, estimation=how))


def _request(families: Families, chosen: Allocation, share: Budget) -> Measure:
    return Measure(share, Marginals(families.domain, families.maximal), chosen.noise, chosen.weights)


def _inside(number: int) -> str:
    families = "1 family lies within these tables and costs" if number == 1 else f"{number} families lie within these"
    return families + (" nothing." if number == 1 else " tables and cost nothing.")


def _closed_form(families: Families, tables: Estimates, homes: Mapping[str, Clique]) -> dict[str, Array]:
    """Conditional frequencies (eq. 14 of the paper), for tables without noise."""
    return {n: rows_from_counts(np.maximum(families.table(n, tables[c]).values, 0.0)) for n, c in homes.items()}


def _smoothed(families: Families, tables: Estimates, homes: Mapping[str, Clique], total: float) -> dict[str, Array]:
    noisy, totals, deviations = {}, {}, {}
    lawful = {
        c: replace(t, values=project_table(t.values, total) + FLOOR * t.variance**0.5)
        for c, t in tables.items()
        if c in homes.values()
    }
    for name, home in homes.items():
        family = families.table(name, tables[home])
        noisy[name], deviations[name] = family.values, family.variance**0.5
        totals[name] = families.table(name, lawful[home]).values.sum(axis=-1)
    return posterior_rows(noisy, totals, deviations, total)
