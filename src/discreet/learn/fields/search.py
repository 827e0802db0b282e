"""A Markov random field whose cliques are found privately: a greedy search, then noisy tables of what it found.

The search is that of :mod:`.network_search` (its scores, sensitivities and argument); the families of the network that
it finds are the cliques of the field, whose tables go to :class:`NoiseAwareField`.

Guarantee: the share, for the curator's unit under add-remove and replace-one alike, by composition of a noisy count,
the selections and the tables. What is done with them afterwards is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ...privacy.budget import Amount, Budget, exact
from ...privacy.calibration import NoiseChoice
from ...privacy.curator import Curator
from ...privacy.unit import PrivacyUnit
from ..networks.search import SearchedNetwork
from ..procedure import Plan
from .learner import maximal
from .noise_aware import NoiseAwareField


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

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """Choose the cliques, then measure their tables; all within ``share`` (all that remains, by default). The
        statement names the cliques; noise intervals from these tables take them as they are."""
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
        measured = self._learner(cliques).measure(curator, measuring)
        return Measurements(measured, {**measured.release, "cliques": [list(c) for c in cliques]})

    def fit(self, curator: Curator, share: Budget | None = None) -> MarkovRandomField:
        """:meth:`measure`, then :meth:`estimate`."""
        return self.estimate(self.measure(curator, share), curator.domain)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The field from what :meth:`measure` measured, on the cliques that it found; post-processing only."""
        found = measurements.release.get("cliques")
        if not isinstance(found, list):
            raise InputError(
                "these measurements do not say which cliques were found, so SearchedField.measure did not make them; "
                "with cliques of your own use NoiseAwareField(cliques).estimate"
            )
        model = self._learner([tuple(c) for c in found]).estimate(measurements, domain)
        return model.with_card({**(model.card or {}), "method": "searched field", "cliques": found})

    def _learner(self, cliques: Sequence[Clique]) -> NoiseAwareField:
        return NoiseAwareField(cliques, noise=self.noise)

    def _search(self) -> SearchedNetwork:
        return SearchedNetwork(
            self.max_parents, self.selection, self.counting, self.approximate_size, self.largest, noise=self.noise
        )
