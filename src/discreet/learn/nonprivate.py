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
from .checks import check_exact
from .networks.families import rows_from_counts
from .networks.given import GivenGraph
from .procedure import Procedure, Whole

METHOD = "nonprivate"


@dataclass(frozen=True)
class NonprivateNetwork(GivenGraph):
    """Conditional frequencies. NOT PRIVATE: it takes an :class:`ExactCurator`, and its model cannot be saved.

    A parent row that no record has gets its column's overall distribution.
    """

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
