"""Private sparse logistic regression of one column on others ([001] Algorithm 1, Corollary 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_positive, check_whole
from ...domain import Domain
from ...measurement import Measurements
from ...privacy.budget import Budget
from ...privacy.queries.value_gradients import ValueGradients
from ...privacy.unit import PrivacyUnit
from ..cards import card_of
from ..learner import Learner
from ..procedure import Procedure, Whole
from .descent import Descent, state_of
from .frank_wolfe import Variant, choose_steps, init

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogisticWeights:
    """P(label 1) = σ(⟨w, x⟩ + intercept), with x in [−1, 1]."""

    names: tuple[str, ...]
    w: Array
    intercept: float
    card: Mapping[str, Any]


@dataclass(frozen=True)
class LogisticLearner(Learner[LogisticWeights]):
    """Logistic regression with ‖(w, intercept)‖₁ ≤ radius.

    ``values`` gives for each feature column the number of each code, in whole units of 1/``resolution``; ``labels`` −1,
    1 or 0 (a record that does not take part) for each code of the target.

    Guarantee: that of the curator's budget, for rows and persons, add-remove and replace-one; every step is one private
    selection (:mod:`discreet.learn.regressions.frank_wolfe`).
    """

    target: str
    values: Mapping[str, Sequence[int]]
    resolution: int = 1
    radius: float = 4.0
    variant: Variant = "tight"
    steps: int | None = None
    labels: Sequence[int] = (-1, 1)

    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, steps=self.steps)
        check_positive(radius=self.radius)

    def prepare(self, whole: Whole) -> Procedure:
        """Frank–Wolfe steps, after a noisy count where their number is not known."""
        return self._descent(whole.domain, whole.unit).procedure(self._method, whole)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> LogisticWeights:
        """The weights that the steps found."""
        state = state_of(measurements)
        card = card_of(measurements, self._method, frank_wolfe_steps=state.steps, radius=self.radius)
        return LogisticWeights(tuple(self.values), state.w[0, :-1], float(state.w[0, -1]), card)

    @property
    def _method(self) -> str:
        return f"logistic regression by frank_wolfe, {self.variant}"

    def _descent(self, domain: Domain, unit: PrivacyUnit) -> Descent:
        def problem(v: NDArray[np.int64], scale: float) -> ValueGradients:
            return ValueGradients(domain, self.target, self.values, self.resolution, v, scale, self.labels)

        start = init(1, len(self.values) + 1, self.radius)
        zero = problem(start.v, 0.0)

        def choose(records: float, share: Budget) -> int:
            return choose_steps(self.variant, self.radius, records, zero, unit, share)

        return Descent(problem, start, self.variant, self.steps, choose, f"a vertex of {2 * zero.feature_count}")
