"""The default learner of Bayesian networks with a given graph.

1. **Step back** (:mod:`.carried`): families that the records cannot carry lose parents, by public things and the number
   of records, which is public, a guess, or bought with :class:`CountToDecide`.
2. **Measure** only the maximal families (those inside no other), with the shares of :mod:`..shares`.
3. **Agree**: generalised least squares over all overlapping tables (:mod:`..consistency`).
4. **Smooth**: each conditional row leans on those with fewer parents (:mod:`.backoff`).
5. **Fit** the network to the noisy tables, weighting cell by cell by signal and noise (:mod:`.fit`).

Privacy. Rows are read by requests alone (:class:`Measure`): the tables, and a noisy count where one is bought. Which
tables are asked for follows from that count and public things: adaptive composition. The rest is post-processing.
The number of records comes from the noisy tables.
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
from ..counting import CountToDecide
from ..procedure import Procedure, Whole
from ..shares import Allocation, allocate
from .backoff import stepped_rows
from .carried import Chains
from .families import Array, Families, rows_from_counts
from .fit import STEPS, engine_for, fit_network
from .given import GivenGraph

METHOD = "optimal"
TABLES = "tables of the families"


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
        About how many records there are, if that is public: then no noisy count is bought.
    step_back:
        Whether parents are left out, those with the most levels first, where there are too few records for the table
        of a column and its parents; the plan, or where a count decides the card, says which. Otherwise every family is
        measured in full.
    too_large:
        What to do about a family beyond the limit, whatever the records are: ``"refuse"`` it, or ``"coarsen"``: leave
        out parents.
    memory_limit:
        Of exact inference in the network fit; on wider graphs the fit is left out, which the card says.
    """

    noise: NoiseChoice = "auto"
    fit_steps: int = STEPS
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    approximate_size: float | None = None
    step_back: bool = True

    passes: ClassVar[int] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(0, fit_steps=self.fit_steps)
        checked_size(self.approximate_size)

    def prepare(self, whole: Whole) -> Procedure:
        """One step, the tables; and before it the number of records, where that is not public and what is measured
        would depend on it.

        Families, shares and noise are chosen from graph, domain, unit, budget and the number of records: a public one,
        the learner's own ``approximate_size``, or the noisy count. That of ``whole`` is for the errors that are shown.
        """
        families = self.families(whole.domain)
        size = self.approximate_size if whole.public_size is None else whole.public_size
        if size is None and self.step_back:
            counted_first = self._counted(whole, families)
            if counted_first is not None:
                return counted_first
        families, chosen = self._planned(families, whole.unit, whole.budget, size)
        whole = replace(whole, approximate_size=whole.approximate_size or self.approximate_size)
        tables = whole.measure(TABLES, _request(families, chosen, whole.budget), why=chosen.why)
        skipped = len(set(families.cliques.values())) - len(families.maximal)
        notes = (_inside(skipped),) if skipped else ()
        procedure = Procedure(METHOD, whole, (tables,), (*notes, *families.notes()))
        way_out = "" if self.step_back else "With step_back=True such families lose parents instead."
        return procedure.with_cautions([families.maximal[i] for i in chosen.capped], way_out)

    def request(self, domain: Domain, unit: PrivacyUnit, share: Budget) -> Measure:
        """The tables of all maximal families, for a share."""
        return _request(*self._planned(self.families(domain), unit, share, self.approximate_size), share)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """The network from tables that hold all its families; post-processing only. ``domain`` gives the columns an
        order of their own; by default they come as in the measurements."""
        measured = as_measurements(measurements)
        families = self.families(domain or measured.domain)
        if self.step_back or self.too_large == "coarsen":
            families = families.within(measured.cliques)
        return self._estimate(families, measured)

    def _counted(self, whole: Whole, families: Families) -> Procedure | None:
        """The tables after a noisy count; None where it would not change what is measured: where as many records as it
        could tell from none carry every family already."""
        asked = CountToDecide.of(whole, Marginals(families.domain, families.maximal), self.noise)
        chains = Chains(families, whole.unit, asked.rest, asked.noise)
        if chains.carried(asked.least) == families:
            return None

        def request(size: float) -> Measure:
            return _request(*self._planned(families, whole.unit, asked.rest, size, asked.noise), asked.rest)

        notes = (_by_count(chains, asked.least, whole.size), *families.notes())
        return asked.procedure(METHOD, TABLES, request, notes)

    def _planned(
        self,
        families: Families,
        unit: PrivacyUnit,
        budget: Budget,
        size: float | None,
        noise: NoiseChoice | None = None,
    ) -> tuple[Families, Allocation]:
        """What will be measured, for so many records; of public things only."""
        noise = noise or self.noise
        if self.step_back and size is not None:
            families = Chains(families, unit, budget, noise).carried(size)
            families = families.within(families.maximal)  # what another table holds comes for nothing
        return families, allocate(Marginals(families.domain, families.maximal), unit, budget, noise, size)

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
    ordered = {n: tables[home].onto((*families.by_levels(n), n)) for n, home in homes.items()}
    out = {}
    for name, rows in stepped_rows(ordered, total).items():
        above = families.by_levels(name)
        axes = [above.index(a) for a in families.parents[name]]
        out[name] = np.transpose(rows, [*axes, len(above)])
    return out


def _by_count(chains: Chains, least: float, size: float | None) -> str:
    """What the noisy count will decide, in words: how many edges are kept for how many records."""
    every = sum(map(len, chains.families.parents.values()))
    sizes = [size] if size is not None else [s for s in (1e3, 1e4, 1e5, 1e6) if s > least]
    kept = [(s, sum(map(len, chains.carried(s).parents.values()))) for s in sizes]
    parts = [f"with {s:,.0f} records {'all' if k == every else f'{k:,}'}" for s, k in kept]
    if size is None and (whole := [i for i, (_, k) in enumerate(kept) if k == every]):
        parts = parts[: whole[0] + 1]
    return (
        "Where there are too few records for the table of a column and its parents, parents are left out, those with "
        f"the most levels first. The noisy number of records says which: of {counted(every, 'edge')} stay "
        f"{'; '.join(parts)}. A public or approximate size saves the count."
    )
