"""Private sparse logistic regression of one column on others ([001] Algorithm 1, Corollary 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...errors import InputError
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ...privacy.queries.value_gradients import ValueGradients
from ...privacy.unit import PrivacyUnit
from ..planned_sums import release_card
from ..procedure import Plan
from ..spins.learning import check_steps, selection_plan
from ..spins.measuring import size_and_rest
from .frank_wolfe import Variant, choose_steps, init, run

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogisticWeights:
    """P(label 1) = σ(⟨w, x⟩ + intercept), with x in [−1, 1]."""

    names: tuple[str, ...]
    w: Array
    intercept: float
    card: Mapping[str, Any]


@dataclass(frozen=True)
class LogisticLearner:
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

    def __post_init__(self) -> None:
        check_steps(self.variant, self.steps)
        if not 0 < self.radius < float("inf"):
            raise InputError(f"radius must be positive and finite, got {self.radius}")

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
        gradients = self._at_zero(domain)

        def steps(size: float, rest: Budget) -> int:
            return choose_steps(self.variant, self.radius, size, gradients, unit, rest)

        what = f"a vertex of {2 * gradients.feature_count}"
        size = approximate_size
        return selection_plan(
            self._method, domain, unit, budget, size, size_is_public, self.steps, steps, what, self.variant
        )

    def fit(self, curator: Curator, share: Budget | None = None) -> LogisticWeights:
        """Frank–Wolfe steps with ``share`` (all that remains, by default)."""
        budget = share or curator.remaining or curator.budget
        gradients = self._at_zero(curator.domain)

        def problem(v: NDArray[np.int64], scale: float) -> ValueGradients:
            return self._gradients(curator.domain, v, scale)

        measured, steps = [], self.steps
        if steps is None:
            for_size, budget = size_and_rest(budget, size_is_public=curator.public_size is not None)
            measured = [curator.size(for_size)]
            size = float(measured[0].values)
            steps = choose_steps(self.variant, self.radius, size, gradients, curator.unit, budget)
        state = run(curator, problem, init(1, gradients.feature_count, self.radius), steps, budget, self.variant)
        card = release_card(
            curator.statement(), measured, method=self._method, frank_wolfe_steps=steps, radius=self.radius
        )
        return LogisticWeights(gradients.feature_names[:-1], state.w[0, :-1], float(state.w[0, -1]), card)

    @property
    def _method(self) -> str:
        return f"logistic regression by frank_wolfe, {self.variant}"

    def _gradients(self, domain: Domain, v: NDArray[np.int64], scale: float) -> ValueGradients:
        return ValueGradients(domain, self.target, self.values, self.resolution, v, scale, self.labels)

    def _at_zero(self, domain: Domain) -> ValueGradients:
        return self._gradients(domain, np.zeros((1, len(self.values) + 1), dtype=np.int64), 0.0)
