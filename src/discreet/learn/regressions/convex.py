"""Private Frank–Wolfe for any loss with a bounded gradient and any polytope given by its vertices ([001] Lemma 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...errors import InputError
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ...privacy.queries.polytope import LinearLoss, Loss, Polytope, Problem
from ...privacy.unit import PrivacyUnit
from ..planned_sums import release_card
from ..procedure import Plan
from ..spins.learning import check_steps, selection_plan
from ..spins.measuring import size_and_rest
from .frank_wolfe import State, Variant, run, steps_for

Array = NDArray[np.float64]
ONE_PROBLEM = (Fraction(1), Fraction(1))


@dataclass(frozen=True)
class ConvexWeights:
    """The point of the polytope that was found, and how."""

    w: Array
    card: Mapping[str, Any]


@dataclass(frozen=True)
class ConvexLearner:
    """Minimise the sum of a loss over the records within a polytope.

    Guarantee: that of the curator's budget, for rows and persons, add-remove and replace-one; each of the T − 1 steps
    is one private selection among the vertices (:mod:`discreet.learn.regressions.frank_wolfe`), and its sensitivity is
    read off a public table (:mod:`discreet.privacy.queries.polytope`), whatever loss is given.
    """

    loss: Loss | LinearLoss
    polytope: Polytope
    variant: Variant = "tight"
    steps: int | None = None

    def __post_init__(self) -> None:
        check_steps(self.variant, self.steps)

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
        self._problem(domain, self._start())  # refuses what does not fit

        def steps(size: float, rest: Budget) -> int:
            return self._steps(size, rest)

        what = f"a vertex of {len(self.polytope.vertices)}"
        method = f"private Frank–Wolfe, {self.variant}"
        size = approximate_size
        return selection_plan(method, domain, unit, budget, size, size_is_public, self.steps, steps, what, self.variant)

    def fit(self, curator: Curator, share: Budget | None = None) -> ConvexWeights:
        """Frank–Wolfe steps with ``share`` (all that remains, by default)."""
        budget = share or curator.remaining or curator.budget
        start = self._start()
        self._problem(curator.domain, start)
        measured, steps = [], self.steps
        if steps is None:
            for_size, budget = size_and_rest(budget, size_is_public=curator.public_size is not None)
            measured = [curator.size(for_size)]
            steps = self._steps(float(measured[0].values), budget)

        def problem(v: NDArray[np.int64], scale: float) -> Problem:
            return self.loss.at(curator.domain, self.polytope, v, scale)

        state = run(curator, problem, start, steps, budget, self.variant)
        method = f"private Frank–Wolfe, {self.variant}"
        card = release_card(curator.statement(), measured, method=method, frank_wolfe_steps=steps)
        return ConvexWeights(state.w[0], card)

    def _start(self) -> State:
        return State(self.polytope.start[None], 0, self.polytope.unit)

    def _problem(self, domain: Domain, state: State) -> Problem:
        problem = self.loss.at(domain, self.polytope, state.v, state.scale)
        if problem.score(adaptive=True).groups != (len(self.polytope.vertices),):
            raise InputError("the loss does not score the vertices of this polytope")
        return problem

    def _steps(self, size: float, budget: Budget) -> int:
        """[001] Lemma 3.3's T from Γ, L₁ and ‖C‖₁."""
        L, C = self.loss.bound, self.polytope.norm
        curvature = self.loss.curvature if self.loss.curvature is not None else L * C
        pull = curvature / (L * C) * max(size, 1.0)
        return steps_for(self.variant, pull, len(self.polytope.vertices), ONE_PROBLEM, budget)
