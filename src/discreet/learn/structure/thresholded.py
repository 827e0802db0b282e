"""A graph by way of the parameters: learn them privately, keep what passes. Post-processing of another learner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurements
from ...models.pairwise import PairwiseModel
from ..fields.pairwise import PairwiseField
from ..learner import Learner
from ..procedure import Procedure, Whole
from ..regressions.frank_wolfe import Variant
from ..regressions.pairwise import PairwiseRegressions
from ..regressions.spins import SpinRegressions
from ..spins.coefficients import coefficients_of
from ..spins.field import SpinField
from .result import StructureResult, maximal

METHOD = "thresholded parameters"


@dataclass(frozen=True)
class ThresholdedParameters(Learner[StructureResult]):
    """The graph of the model that noisy moments give, under any budget.

    The model is of spins where every column has two levels, and pairwise otherwise. The guarantee is its learner's.

    Parameters
    ----------
    min_weight:
        η: parameters below η/2 are dropped ([001] Theorem 3.8 with α = η/2 recovers the graph).
    max_edges:
        A public bound on the number of interactions.
    order:
        t > 2: interactions of up to t binary columns; maximal ones are reported.
    """

    refits: ClassVar[bool] = False

    min_weight: float = 0.0
    max_edges: int | None = None
    order: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(2, order=self.order)
        self._spins()

    def prepare(self, whole: Whole) -> Procedure:
        """The procedure of the model's learner."""
        inner = self._learner(whole.domain).prepare(whole)
        return replace(inner, method=f"{METHOD}, {inner.method}")

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> StructureResult:
        """The model, and of it what is large enough; post-processing only."""
        domain = domain or measurements.domain
        model = self._learner(domain).estimate(measurements, domain)
        found: dict[Clique, Any]
        if isinstance(model, PairwiseModel):
            found = {(a, b): {"noisy_weight": float(abs(model.weights(a, b)).max())} for a, b in model.edges}
        else:
            h = coefficients_of(model)
            large = [I for I, value in h.items() if len(I) > 1 and abs(value) > self.min_weight / 2]
            found = {I: {"noisy_coupling": float(h[I])} for I in maximal(large)}
        card = model.card or {}
        method = f"{METHOD}, {card.get('method', '')}"
        return StructureResult(domain.names, method, tuple(found), found, card={**card, "method": method})

    def _learner(self, domain: Domain) -> Learner[Any]:
        if max(domain.shape, default=2) == 2:
            return self._spins()
        if self.order > 2:
            raise InputError("interactions of more than two columns are for columns with two levels each")
        return self._levels()

    def _spins(self) -> Learner[Any]:
        return SpinField(self.order, max_edges=self.max_edges, min_weight=self.min_weight)

    def _levels(self) -> Learner[Any]:
        return PairwiseField(max_edges=self.max_edges, min_weight=self.min_weight)


@dataclass(frozen=True)
class ThresholdedRegressions(ThresholdedParameters):
    """The same for the model of private sparse logistic regressions ([001] Algorithms 2 to 4).

    ``width`` (λ), ``variant`` and ``steps`` are those of the regressions.
    """

    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None

    def _spins(self) -> Learner[Any]:
        bounds = self.max_edges, self.min_weight
        return SpinRegressions(self.order, self.width, self.variant, self.steps, *bounds, fitted=False)

    def _levels(self) -> Learner[Any]:
        bounds = self.max_edges, self.min_weight
        return PairwiseRegressions(self.width, self.variant, self.steps, "coordinate", *bounds, fitted=False)
