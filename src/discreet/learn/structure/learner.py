"""The default structure learner: which one, by the notion of the budget and the kind of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...arguments import check_positive
from ...domain import Domain
from ...measurement import Measurements
from ...privacy.budget import ApproxDP
from ..learner import Learner
from ..procedure import Procedure, Whole
from .result import StructureResult
from .selected_edges import SelectedEdges
from .stable_edges import StableEdges
from .thresholded import ThresholdedParameters


@dataclass(frozen=True)
class StructureLearner(Learner[StructureResult]):
    """Learn which columns interact: :class:`StableEdges` under (ε, δ), :class:`SelectedEdges` under zCDP and pure DP
    (for columns with more than two levels, :class:`ThresholdedParameters`).

    ``min_weight`` is η, a public lower bound on the weight of an edge, if one is known.
    """

    refits: ClassVar[bool] = False

    min_weight: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(or_none=True, min_weight=self.min_weight)

    def prepare(self, whole: Whole) -> Procedure:
        chosen = self._chosen(whole.domain, stable=isinstance(whole.budget, ApproxDP))
        return chosen.prepare(whole)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> StructureResult:
        """By the learner that was chosen; only a test of stability has found the graph itself."""
        columns = domain or measurements.domain
        return self._chosen(columns, stable="interactions" in measurements.found).estimate(measurements, columns)

    def _chosen(self, domain: Domain, *, stable: bool) -> Learner[StructureResult]:
        """The learner for these columns and this notion."""
        if stable:
            return StableEdges(self.min_weight)
        if max(domain.shape, default=2) > 2:
            return ThresholdedParameters(self.min_weight or 0.0)
        return SelectedEdges(self.min_weight)
