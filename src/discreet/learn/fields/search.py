"""A Markov random field whose cliques are found privately: a greedy search, then noisy tables of what it found.

The search is that of :mod:`discreet.learn.networks.search` (its scores, sensitivities and argument); the families of
the network that it finds are the cliques of the field, whose tables go to :class:`NoiseAwareField`.

Guarantee: the budget, for the curator's unit under add-remove and replace-one alike, by composition of a noisy count,
the selections and the tables. What is done with them afterwards is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ...privacy.budget import Budget
from ...privacy.calibration import NoiseChoice
from ...privacy.requests import Measure
from ..checks import check_noise
from ..graph_files import Parents
from ..learner import Learner
from ..networks.search import GraphSearch
from ..procedure import Procedure, Whole
from .learner import maximal
from .noise_aware import NoiseAwareField

METHOD = "searched field"


@dataclass(frozen=True)
class SearchedField(GraphSearch, Learner[MarkovRandomField]):
    """Learn cliques and potentials from one budget. Options as those of :class:`GraphSearch`: a column joins at most
    ``max_parents`` others that came before it. ``noise`` is that of the tables, as for :class:`NoiseAwareField`."""

    finds_graph: ClassVar[bool] = True

    max_parents: int = 1
    noise: NoiseChoice = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise)

    def prepare(self, whole: Whole) -> Procedure:
        def tables(share: Budget, parents: Parents) -> Measure:
            return self._learner(_cliques(whole.domain, parents)).request(whole.domain, whole.unit, share)[0]

        return self.search_and_measure(METHOD, whole, tables)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The field from what was measured, on the cliques that were found; post-processing only. Noise intervals from
        these tables take the cliques as they are."""
        found, parents = measurements.found.get("cliques"), measurements.found.get("parents")
        if isinstance(parents, Mapping):
            found = _cliques(domain or measurements.domain, {n: tuple(above) for n, above in parents.items()})
        if not isinstance(found, list | tuple):
            raise InputError(
                "these measurements do not say which cliques were found, so SearchedField.measure did not make them; "
                "with cliques of your own use NoiseAwareField(cliques).estimate"
            )
        model = self._learner([tuple(c) for c in found]).estimate(measurements, domain)
        return model.with_card({**(model.card or {}), "method": METHOD, "cliques": [list(c) for c in found]})

    def _learner(self, cliques: Iterable[Clique]) -> NoiseAwareField:
        return NoiseAwareField(cliques, noise=self.noise)


def _cliques(domain: Domain, parents: Parents) -> tuple[Clique, ...]:
    """The families of the network that was found, those inside others left out."""
    return maximal([domain.clique((*above, child)) for child, above in parents.items()])
