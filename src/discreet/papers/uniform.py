"""[CRJ20]'s baseline D-Ind: Algorithm 1 with equal budgets ε/n for all nodes (section 5.1, "Setup")."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain import Domain
from ..learn.checks import (
    TooLarge,
    as_measurements,
    check_curator,
    check_least_records,
    check_limits,
    check_noise,
    check_plan,
)
from ..learn.graph_input import Graph, materialised
from ..learn.networks.families import LARGEST_FAMILY, Families, card_of
from ..learn.procedure import Plan, PlannedTable
from ..measurement import Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Budget
from ..privacy.calibration import NoiseChoice, noise_of, plan_noise
from ..privacy.curator import Curator
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .compute_parameters import LEAST_RECORDS, measure_nodes, node_tables, parameters, records_of

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
        check_noise(self.noise)
        check_limits(self.largest, self.too_large)
        check_least_records(self.least_records)

    def families(self, domain: Domain) -> Families:
        return Families.of(domain, self.graph, largest=self.largest, too_large=self.too_large)

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        check_plan(domain, unit, budget)
        families = self.families(domain)
        tables = planned_nodes(families, unit, budget, self.noise, "Equal shares for all columns.")
        return Plan(METHOD, unit, budget, tables, families.notes(), approximate_size).with_cautions()

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """Two tables a column, with equal shares of ``share`` (all that remains, by default)."""
        check_curator(curator)
        families = self.families(curator.domain)
        whole = share or curator.remaining or curator.budget
        return measure_nodes(curator, families, whole, [1] * len(families.domain), self.noise)

    def fit(self, curator: Curator, share: Budget | None = None) -> BayesianNetwork:
        """:meth:`measure`, then :meth:`estimate`."""
        return self.estimate(self.measure(curator, share), curator.domain)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """From the tables of :meth:`measure`, in their order; post-processing only."""
        measured = as_measurements(measurements)
        families = self.families(domain or measured.domain)
        nodes = node_tables(families, measured)
        tables = parameters(families, nodes, self.least_records)
        return families.network(tables, card_of(METHOD, families, measured, records_of(nodes)))


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
