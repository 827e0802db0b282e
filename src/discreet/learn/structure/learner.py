"""The default structure learner: which one, by the notion of the budget and the kind of columns."""

from __future__ import annotations

from dataclasses import dataclass

from ...domain import Domain
from ...privacy.budget import ApproxDP, Budget
from ...privacy.curator import Curator
from ...privacy.unit import PrivacyUnit
from ..fields.pairwise import PairwiseLearner
from ..procedure import Plan
from .result import StructureResult
from .selected_edges import SelectedEdges
from .stable_edges import StableEdges
from .thresholded import ThresholdedParameters


@dataclass(frozen=True)
class StructureLearner:
    """Learn which columns interact: :class:`StableEdges` under (ε, δ), :class:`SelectedEdges` under zCDP and pure DP
    (for columns with more than two levels, thresholded parameters).

    ``min_weight`` is η, a public lower bound on the weight of an edge, if one is known.
    """

    min_weight: float | None = None

    def __post_init__(self) -> None:
        StableEdges(self.min_weight)  # the same bounds, the same errors

    def chosen(self, domain: Domain, budget: Budget) -> StableEdges | SelectedEdges | ThresholdedParameters:
        """The learner for these columns and this notion."""
        if isinstance(budget, ApproxDP):
            return StableEdges(self.min_weight)
        if max(domain.shape, default=2) > 2:
            return ThresholdedParameters(PairwiseLearner(min_weight=self.min_weight or 0.0))
        return SelectedEdges(self.min_weight)

    def plan(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        approximate_size: float | None = None,
        *,
        size_is_public: bool = False,
    ) -> Plan:
        """What will be asked, before a row is read."""
        learner = self.chosen(domain, budget)
        if isinstance(learner, ThresholdedParameters):
            return learner.plan(domain, unit, budget, approximate_size)
        return learner.plan(domain, unit, budget, approximate_size, size_is_public=size_is_public)

    def fit(self, curator: Curator, share: Budget | None = None) -> StructureResult:
        """Ask the curator with ``share`` (all that remains, by default)."""
        budget = share or curator.remaining or curator.budget
        return self.chosen(curator.domain, budget).fit(curator, budget)
