"""Private Frank–Wolfe for any loss with a bounded gradient and any polytope given by its vertices ([001] Lemma 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...domain import Domain
from ...errors import InputError
from ...measurement import Measurements
from ...privacy.budget import Budget
from ...privacy.queries.polytope import LinearLoss, Loss, Polytope, Problem
from ..cards import card_of
from ..learner import Learner
from ..procedure import Procedure, Whole
from .descent import Descent, state_of
from .frank_wolfe import State, Variant, steps_for

Array = NDArray[np.float64]
ONE_PROBLEM = (Fraction(1), Fraction(1))


@dataclass(frozen=True)
class ConvexWeights:
    """The point of the polytope that was found, and how."""

    w: Array
    card: Mapping[str, Any]


@dataclass(frozen=True)
class ConvexLearner(Learner[ConvexWeights]):
    """Minimise the sum of a loss over the records within a polytope.

    Guarantee: that of the curator's budget, for rows and persons, add-remove and replace-one; each of the T − 1 steps
    is one private selection among the vertices (:mod:`discreet.learn.regressions.frank_wolfe`), and its sensitivity is
    read off a public table (:mod:`discreet.privacy.queries.polytope`), whatever loss is given.
    """

    loss: Loss | LinearLoss
    polytope: Polytope
    variant: Variant = "tight"
    steps: int | None = None

    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, steps=self.steps)

    def prepare(self, whole: Whole) -> Procedure:
        """Frank–Wolfe steps, after a noisy count where their number is not known."""
        return self._descent(whole.domain).procedure(self._method, whole)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> ConvexWeights:
        """The point where the steps ended."""
        state = state_of(measurements)
        return ConvexWeights(state.w[0], card_of(measurements, self._method, frank_wolfe_steps=state.steps))

    @property
    def _method(self) -> str:
        return f"private Frank–Wolfe, {self.variant}"

    def _descent(self, domain: Domain) -> Descent:
        def problem(v: NDArray[np.int64], scale: float) -> Problem:
            return self.loss.at(domain, self.polytope, v, scale)

        start, vertices = State(self.polytope.start[None], 0, self.polytope.unit), len(self.polytope.vertices)
        if problem(start.v, start.scale).score(adaptive=True).groups != (vertices,):
            raise InputError("the loss does not score the vertices of this polytope")
        return Descent(problem, start, self.variant, self.steps, self._steps, f"a vertex of {vertices}")

    def _steps(self, size: float, budget: Budget) -> int:
        """[001] Lemma 3.3's T from Γ, L₁ and ‖C‖₁."""
        L, C = self.loss.bound, self.polytope.norm
        curvature = self.loss.curvature if self.loss.curvature is not None else L * C
        pull = curvature / (L * C) * max(size, 1.0)
        return steps_for(self.variant, pull, len(self.polytope.vertices), ONE_PROBLEM, budget)
