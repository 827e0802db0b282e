"""A Markov random field whose cliques are found privately: a greedy search, then noisy tables of what it found.

The search is that of :mod:`.network_search` (its scores, sensitivities and argument); the families of the network that
it finds are the cliques of the field, whose tables go to :class:`NoiseAwareField`.

Guarantee: the share, for the curator's unit under add-remove and replace-one alike, by composition of a noisy count,
the selections and the tables. What is done with them afterwards is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..domain import Domain
from ..models.markov import MarkovRandomField
from ..privacy.budget import Amount, Budget, exact
from ..privacy.calibration import NoiseChoice
from ..privacy.curator import Curator
from ..privacy.unit import PrivacyUnit
from .field_learner import maximal
from .network_search import SearchedNetwork
from .noise_aware import NoiseAwareField
from .plan import Plan


@dataclass(frozen=True)
class SearchedField:
    """Learn cliques and potentials from one budget. Options as those of :class:`SearchedNetwork`: a column joins at
    most ``max_parents`` others that came before it."""

    max_parents: int = 1
    selection: Amount = 0.3
    counting: Amount = 0.02
    approximate_size: int | None = None
    largest: int | None = None
    noise: NoiseChoice = "auto"

    def __post_init__(self) -> None:
        self._search()  # which checks the options

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """What can be known before the cliques are chosen."""
        return replace(self._search().plan(domain, unit, budget, approximate_size), method="searched field")

    def fit(self, curator: Curator, share: Budget | None = None) -> MarkovRandomField:
        """Choose the cliques, then learn their potentials; all within the share."""
        whole = share or curator.remaining or curator.budget
        search = self._search()
        search.plan(curator.domain, curator.unit, whole)  # refuses what is too large, before anything is spent
        size = self.approximate_size if self.approximate_size is not None else curator.public_size
        counting, selection = exact(self.counting, "counting"), exact(self.selection, "selection")
        if size is None:
            first, selecting, measuring = whole.split([counting, selection, 1 - counting - selection])
            size = max(int(curator.size(first).counts), 1)
        else:
            selecting, measuring = whole.split([selection, 1 - selection])
        parents = search.search(curator, selecting, float(size))
        cliques = maximal([curator.domain.clique((*above, child)) for child, above in parents.items()])
        model = NoiseAwareField(cliques, noise=self.noise).fit(curator, measuring)
        card: dict[str, Any] = {**(model.card or {}), "method": "searched field", "cliques": [list(c) for c in cliques]}
        return model.with_card(card)

    def _search(self) -> SearchedNetwork:
        return SearchedNetwork(
            self.max_parents, self.selection, self.counting, self.approximate_size, self.largest, noise=self.noise
        )
