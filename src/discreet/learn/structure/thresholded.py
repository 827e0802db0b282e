"""A graph by way of the parameters: learn them privately, keep what passes. Post-processing of another learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...domain import Clique, Domain
from ...models.binary import BinaryMRF
from ...models.ising import IsingModel
from ...models.pairwise import PairwiseModel
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ...privacy.unit import PrivacyUnit
from ..fields.pairwise import PairwiseLearner
from ..procedure import Plan
from ..spins.binary_learner import BinaryMRFLearner
from ..spins.ising_learner import IsingLearner
from .result import StructureResult, maximal


@dataclass(frozen=True)
class ThresholdedParameters:
    """The graph of the model that ``learner`` learns, moments or Frank–Wolfe, for any budget that it takes.

    Give the learner ``min_weight`` = η: it drops couplings below η/2 ([001] Theorem 3.8 with α = η/2 recovers the
    graph). The guarantee is the learner's.
    """

    learner: IsingLearner | PairwiseLearner | BinaryMRFLearner

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """The learner's own plan."""
        return self.learner.plan(domain, unit, budget, approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> StructureResult:
        """Ask the curator with ``share`` (all that remains, by default)."""
        model = self.learner.fit(curator, share)
        found: dict[Clique, Any]
        if isinstance(model, BinaryMRF):
            least = self.learner.min_weight / 2
            large = [I for I, h in model.coefficients.items() if len(I) > 1 and abs(h) > least]
            found = {I: {"noisy_coefficient": float(model.coefficients[I])} for I in maximal(large)}
        elif isinstance(model, PairwiseModel):
            found = {(a, b): {"noisy_weight": float(abs(model.weights(a, b)).max())} for a, b in model.edges}
        else:
            assert isinstance(model, IsingModel)
            found = {pair: {"noisy_coupling": a} for pair, a in model.edge_strength().items()}
        method = f"thresholded parameters, {(model.card or {}).get('method', '')}"
        return StructureResult(
            curator.domain, method, tuple(found), found, card={**(model.card or {}), "method": method}
        )
