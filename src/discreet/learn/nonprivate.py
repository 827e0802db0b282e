"""The fit without privacy, for experiments: maximum likelihood from exact counts ([CRJ20] eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain import Domain
from ..errors import InputError
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Budget
from ..privacy.curator import Curator, ExactCurator
from ..privacy.query import Marginals
from .checks import TooLarge, check_curator, check_limits
from .graph_input import Graph, materialised
from .networks.families import LARGEST_FAMILY, Families, card_of, rows_from_counts

METHOD = "nonprivate"


@dataclass(frozen=True)
class NonprivateNetwork:
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

    def fit(self, curator: Curator, share: Budget | None = None) -> BayesianNetwork:
        check_curator(curator)
        if not isinstance(curator, ExactCurator):
            raise InputError("the non-private fit needs exact counts: give it an ExactCurator, or use another method")
        families = self.families(curator.domain)
        measured = curator.measure(Marginals(families.domain, families.maximal), share)
        counts = {m.clique: m.values for m in measured if m.clique is not None}
        homes = families.homes(dict.fromkeys(counts, 0.0))
        tables = {name: rows_from_counts(families.table(name, home, counts[home])) for name, home in homes.items()}
        return families.network(tables, card_of(METHOD, families, measured))
