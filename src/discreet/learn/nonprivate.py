"""The fit without privacy, for experiments: maximum likelihood from exact counts ([CRJ20] eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain import Domain
from ..measurement import Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.query import Marginals
from ..privacy.requests import Measure
from .cards import card_of
from .checks import TooLarge, check_exact, check_limits
from .graph_input import Graph, materialised
from .learner import Learner
from .networks.families import LARGEST_FAMILY, Families, rows_from_counts
from .procedure import Procedure, Whole

METHOD = "nonprivate"


@dataclass(frozen=True)
class NonprivateNetwork(Learner[BayesianNetwork]):
    """Conditional frequencies. NOT PRIVATE: it takes an :class:`ExactCurator`, and its model cannot be saved.

    A parent row that no record has gets its column's overall distribution.
    """

    graph: Graph
    largest: int = LARGEST_FAMILY
    too_large: TooLarge = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", materialised(self.graph))
        check_limits(self.largest, self.too_large)

    def families(self, domain: Domain) -> Families:
        return Families.of(domain, self.graph, largest=self.largest, too_large=self.too_large)

    def prepare(self, whole: Whole) -> Procedure:
        request = Measure(whole.budget, Marginals(whole.domain, self.families(whole.domain).maximal))
        tables = whole.measure("tables of the families", request)
        return Procedure(METHOD, whole, (tables,))

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        check_exact(curator)
        return super().measure(curator, share)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        families = self.families(domain or measurements.domain)
        counts = {m.clique: m.as_table() for m in measurements if m.clique is not None}
        tables = {n: rows_from_counts(families.table(n, counts[c]).values) for n, c in families.homes(counts).items()}
        return families.network(tables, card_of(measurements, METHOD))
