"""[CRJ20]'s baseline D-Ind: Algorithm 1 with equal budgets ε/n for all nodes (section 5.1, "Setup")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..domain import Domain
from ..learn.checks import (
    TooLarge,
    as_measurements,
    check_least_records,
    check_limits,
    check_noise,
)
from ..learn.graph_input import Graph, materialised
from ..learn.learner import Learner
from ..learn.networks.families import LARGEST_FAMILY, Families
from ..learn.procedure import Procedure, Whole
from ..measurement import Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.calibration import NoiseChoice
from .compute_parameters import LEAST_RECORDS, node_requests, node_tables, parameters, records_of

METHOD = "uniform"


@dataclass(frozen=True)
class UniformNetwork(Learner[BayesianNetwork]):
    """Learn a Bayesian network with equal shares for all columns, half for the family and half for the parents.

    ``noise="auto"`` is Laplace noise for a pure budget, as in the paper, and whichever is smaller otherwise.
    ``least_records`` on top of every noisy cell keep probabilities above zero; the paper's own text means 0.
    ``largest`` and ``too_large`` limit the cells of a family, as for :class:`OptimalNetwork`.
    """

    graph: Graph
    noise: NoiseChoice = "auto"
    least_records: float = LEAST_RECORDS
    largest: int = LARGEST_FAMILY
    too_large: TooLarge = "refuse"

    passes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", materialised(self.graph))
        check_noise(self.noise)
        check_limits(self.largest, self.too_large)
        check_least_records(self.least_records)

    def families(self, domain: Domain) -> Families:
        return Families.of(domain, self.graph, largest=self.largest, too_large=self.too_large)

    def prepare(self, whole: Whole) -> Procedure:
        """A step for each column: the table of its family and that of its parents."""
        families = self.families(whole.domain)
        steps = [
            whole.measure(f"tables of {name}", request, why="Equal shares for all columns.")
            for name, request in node_requests(families, whole.budget, [1] * len(whole.domain), self.noise)
        ]
        return Procedure(METHOD, whole, tuple(steps), families.notes()).with_cautions()

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """From the tables of :meth:`measure`, in their order; post-processing only."""
        measured = as_measurements(measurements)
        families = self.families(domain or measured.domain)
        nodes = node_tables(families, measured)
        tables = parameters(families, nodes, self.least_records)
        return families.network(tables, families.card(measured, METHOD, records_of(nodes)))
