"""Private sparse logistic regression of one column on others ([001] Algorithm 1, Corollary 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.gradients import ValueGradients
from .frank_wolfe import Variant, choose_steps, init, run
from .planned_sums import release_card
from .spin_measuring import size_and_rest

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogisticWeights:
    """P(second level) = σ(⟨w, x⟩ + intercept), with x in [−1, 1]."""

    names: tuple[str, ...]
    w: Array
    intercept: float
    card: Mapping[str, Any]


@dataclass(frozen=True)
class LogisticLearner:
    """Logistic regression with ‖(w, intercept)‖₁ ≤ radius.

    ``values`` gives for each feature column the number of each code, in whole units of 1/``resolution``.
    """

    target: str
    values: Mapping[str, Sequence[int]]
    resolution: int = 1
    radius: float = 4.0
    variant: Variant = "tight"
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is not None and (type(self.steps) is not int or self.steps < 1):
            raise InputError(f"steps must be a whole number of at least 1, got {self.steps!r}")

    def fit(self, curator: Curator, share: Budget | None = None) -> LogisticWeights:
        """Frank–Wolfe steps with ``share`` (all that remains, by default)."""
        budget = share or curator.remaining or curator.budget

        def problem(v: NDArray[np.int64], scale: float) -> ValueGradients:
            return ValueGradients(curator.domain, self.target, self.values, self.resolution, v, scale)

        start = init(1, len(self.values) + 1, self.radius)
        measured, steps = [], self.steps
        gradients = problem(start.v, 0.0)
        if steps is None:
            for_size, budget = size_and_rest(budget, size_is_public=curator.public_size is not None)
            measured = [curator.size(for_size)]
            size = float(measured[0].values)
            steps = choose_steps(self.variant, self.radius, size, gradients, curator.unit, budget)
        state = run(curator, problem, start, steps, budget, self.variant)
        method = f"logistic regression by frank_wolfe, {self.variant}"
        card = release_card(curator.statement(), measured, method=method, frank_wolfe_steps=steps, radius=self.radius)
        return LogisticWeights(gradients.feature_names[:-1], state.w[0, :-1], float(state.w[0, -1]), card)
