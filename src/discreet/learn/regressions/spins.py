"""[001] Algorithms 2 and 4: a field of spins by a private sparse logistic regression for each column, all in one pass.

The regression of column i on the monomials of the others of order at most t − 1 has the weight 2·h̄(I ∪ {i}) at I; the
ball has radius 2λ. Order 2 is Algorithm 2, where the monomials are the other columns.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import counted
from ...measurement import Measurements
from ...models.ising import SIGNS
from ...privacy.budget import Budget
from ...privacy.queries.gradients import SpinGradients
from ...privacy.queries.parities import all_monomials
from ...privacy.unit import PrivacyUnit
from ..cards import card_of
from ..learner import Learner
from ..procedure import Procedure, Whole
from ..spins.coefficients import (
    Coefficients,
    SpinModel,
    check_bounds,
    largest,
    order_in,
    spin_model,
)
from .descent import Descent, state_of
from .division import width_for
from .fitted import descended, fitted, fitted_procedure, lone_parities
from .frank_wolfe import State, Variant, choose_steps, init, told

DEFAULT_WIDTH = 2.0  # λ when none is given: wide enough for three couplings of ½ and a field
WIDTHS = 0.5, 4.0
"""The narrowest and the widest where the field is fitted, and the width follows from what the selections tell."""


def features_of(domain: Domain, order: int) -> list[Clique]:
    """Of the regressions (Algorithm 4, lines 2 and 5): all monomials of order at most t − 1, the constant last."""
    return [*all_monomials(domain, order - 1), ()]


def spin_descent(
    domain: Domain, unit: PrivacyUnit, order: int, width: float | None, variant: Variant, steps: int | None
) -> Descent:
    """Algorithm 2, lines 1–3 (Algorithm 4 with monomials of higher order)."""
    radius, monomials = 2 * (width or DEFAULT_WIDTH), features_of(domain, order)

    def problem(v: NDArray[np.int64], scale: float) -> SpinGradients:
        return SpinGradients(domain, monomials, v, scale)

    start = init(len(domain), len(monomials), radius)
    zero = problem(start.v, 0.0)

    def choose(records: float, share: Budget) -> int:
        return choose_steps(variant, radius, records, zero, unit, share)

    def least(records: float, share: Budget) -> float:
        number = steps or choose(records, share)
        return told(records, 2 * zero.feature_count, zero.joint(unit), number, share)

    parities = "" if order <= 2 else f" on parities up to order {order - 1}"
    what = f"a vertex for each of {counted(len(domain), 'regression')}{parities}"
    return Descent(problem, start, variant, steps, choose, what, least)


def regression_coefficients(domain: Domain, monomials: list[Clique], state: State) -> Coefficients:
    """Algorithm 4, lines 4–5; a coefficient that several regressions estimate is their mean, not the first one's."""
    found: dict[Clique, list[float]] = defaultdict(list)
    for name, row in zip(domain.names, state.w / 2, strict=True):
        for I, value in zip(monomials, row, strict=True):
            if name not in I:
                found[domain.clique((*I, name))].append(float(value))
    return {I: float(np.mean(values)) for I, values in found.items()}


@dataclass(frozen=True)
class SpinRegressions(Learner[SpinModel]):
    """Learn the coefficients of a field of spins: an Ising model for order 2, a :class:`BinaryMRF` beyond.

    Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike; every step is one private
    selection (:mod:`discreet.learn.regressions.frank_wolfe`).

    Parameters
    ----------
    order:
        t, the largest number of columns that interact.
    width:
        λ ≥ max_i ‖∂_i h‖₁, a public bound on what the regressions find. By default it follows from what the selections
        can tell; 2 where the field is not fitted.
    variant, steps:
        ``"tight"`` or ``"published"`` (see :mod:`discreet.learn.regressions.frank_wolfe`), and how many steps; by
        default from the public or noisy number of records, and none where these are too few.
    fitted:
        Whether a part of the budget buys means and an energy, to which the field of the regressions is fitted
        (:mod:`.fitted`, and :mod:`.division` for which part; all of it for the means where the records carry no
        regressions); by default for the tight variant. Without it, the regressions are all there is.
    max_edges, min_weight:
        Public bounds on the number of interactions of two and more columns, and on the least |h̄(I)| of one that is
        there.
    """

    order: int = 2
    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None
    max_edges: int | None = None
    min_weight: float = 0.0
    fitted: bool | None = None

    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, order=self.order)
        check_whole(1, or_none=True, steps=self.steps)
        check_bounds(self.width, self.min_weight, self.max_edges)

    def prepare(self, whole: Whole) -> Procedure:
        """Frank–Wolfe steps, after a noisy count where their number is not known; means before and an energy after them
        where the field is fitted."""
        domain = whole.domain

        def descent_for(least: float) -> Descent:
            width = self.width or (width_for(least, *WIDTHS) if self._fits else DEFAULT_WIDTH)
            return spin_descent(domain, whole.unit, self._order(domain), width, self.variant, self.steps)

        if not self._fits:
            return descent_for(0.0).procedure(self._method, whole)
        means = lone_parities(domain)
        return fitted_procedure(
            self._method, whole, means, descent_for, lambda state: interactions(self._found(state, domain))
        )

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> SpinModel:
        """The field that the regressions found make, fitted where that was asked for; post-processing."""
        columns = domain or measurements.domain
        state = descended(measurements) if self._fits else state_of(measurements)
        found = self._found(state, columns)
        facts: dict[str, Any] = {}
        if state is not None:
            facts = {"frank_wolfe_steps": state.steps, "width": round(state.radius / 2, 4)}
        if self._fits:
            fit = fitted(columns, measurements, interactions(found))
            found = {I: fit.scale * value for I, value in found.items() if len(I) > 1 and fit.scale > 0}
            found |= {(name,): float(theta[1]) for name, theta in fit.singles.items()}
            facts |= fit.facts(measurements)
        card = card_of(measurements, self._method, **facts)
        return spin_model(self.order, found, columns, card)

    def _found(self, state: State | None, columns: Domain) -> Coefficients:
        if state is None:
            return {}
        monomials = features_of(columns, self._order(columns))
        found = regression_coefficients(columns, monomials, state)
        return largest(found, self.max_edges, self.min_weight)

    def _order(self, columns: Domain) -> int:
        return order_in(columns, self.order)

    @property
    def _fits(self) -> bool:
        return self.variant == "tight" if self.fitted is None else self.fitted

    @property
    def _method(self) -> str:
        return f"frank_wolfe, {self.variant}"


def interactions(coefficients: Coefficients) -> dict[Clique, NDArray[np.float64]]:
    """The tables of all interactions that are there."""
    return {
        I: value * np.asarray(reduce(np.multiply.outer, [SIGNS] * len(I)))
        for I, value in coefficients.items()
        if len(I) > 1 and value != 0
    }
