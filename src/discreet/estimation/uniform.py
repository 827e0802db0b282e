"""[CRJ20]'s baseline D-Ind: Algorithm 1 with equal budgets ε/n for all nodes (section 5.1, "Setup")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..domain import Domain
from ..measurement import Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Budget
from ..privacy.calibration import NoiseChoice, noise_of, plan_noise
from ..privacy.curator import Curator
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .compute_parameters import LEAST_RECORDS, measure_nodes, node_tables, parameters
from .families import LARGEST_FAMILY, Families, TooLarge
from .graph_input import Graph, materialised
from .plan import Plan, PlannedTable, advice

METHOD = "uniform"


@dataclass(frozen=True)
class UniformNetwork:
    """Learn a Bayesian network with equal shares for all columns, half for the family and half for the parents.

    ``noise="auto"`` is Laplace noise for a pure budget, as in the paper, and whichever is smaller otherwise.
    ``least_records`` on top of every noisy cell keep probabilities above zero; the paper's own text means 0.
    """

    graph: Graph
    noise: NoiseChoice = "auto"
    least_records: float = LEAST_RECORDS
    largest: int = LARGEST_FAMILY
    too_large: TooLarge = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", materialised(self.graph))

    def families(self, domain: Domain) -> Families:
        return Families.of(domain, self.graph, largest=self.largest, too_large=self.too_large)

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        families = self.families(domain)
        tables = planned_nodes(families, unit, budget, self.noise, "Equal shares for all columns.")
        plan = Plan(METHOD, unit, budget, tables, families.notes(), approximate_size)
        return Plan(METHOD, unit, budget, tables, (*plan.notes, *advice(plan.noisy)), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> BayesianNetwork:
        families = self.families(curator.domain)
        whole = share or curator.remaining or curator.budget
        measured = measure_nodes(curator, families, whole, [1] * len(families.domain), self.noise)
        return self._estimate(families, measured)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """From the measurements of :meth:`fit`, in their order; post-processing only."""
        return self._estimate(self.families(domain or measurements.domain), measurements)

    def _estimate(self, families: Families, measured: Measurements) -> BayesianNetwork:
        tables = parameters(families, node_tables(families, measured), self.least_records)
        return families.network(tables, card_of(METHOD, families, measured))


def planned_nodes(
    families: Families,
    unit: PrivacyUnit,
    budget: Budget,
    noise: NoiseChoice,
    why: str,
    share_range: tuple[float, float] | None = None,
) -> tuple[PlannedTable, ...]:
    """Two tables a node, each with half of 1/n of the budget."""
    out = []
    nodes = len(families.domain)
    for name, part in zip(families.domain, budget.split([1] * nodes), strict=True):
        query = Marginals(families.domain, [families.cliques[name], families.domain.clique(families.parents[name])])
        drawn = plan_noise(query, unit, part, noise=noise)
        for planned, call in zip(query.parts, drawn.calls, strict=True):
            assert planned.clique is not None
            share = 1 / (2 * nodes)
            out.append(PlannedTable(planned.clique, planned.cells, share, noise_of(call), why, share_range))
    return tuple(out)


def card_of(method: str, families: Families, measured: Measurements) -> dict[str, Any]:
    """The statement of the curator with what the learner adds."""
    card: dict[str, Any] = {**measured.release, "method": method, "noise": sorted({m.noise.kind for m in measured})}
    if not measured.is_release:
        card["origin"] = next(m.origin for m in measured if m.origin not in ("release", "public"))
    if families.dropped:
        card["dropped_edges"] = [list(e) for e in families.dropped]
    return card
