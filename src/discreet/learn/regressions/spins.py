"""[001] Algorithms 2 and 4: a field of spins by a private sparse logistic regression for each column, all in one pass.

The regression of column i on the monomials of the others of order at most t − 1 has the weight 2·h̄(I ∪ {i}) at I; the
ball has radius 2λ. Order 2 is Algorithm 2, where the monomials are the other columns.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import counted
from ...measurement import Measurements
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
from .frank_wolfe import State, Variant, choose_steps, init

DEFAULT_WIDTH = 2.0  # λ when none is given: wide enough for three couplings of ½ and a field


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

    parities = "" if order <= 2 else f" on parities up to order {order - 1}"
    what = f"a vertex for each of {counted(len(domain), 'regression')}{parities}"
    return Descent(problem, start, variant, steps, choose, what)


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
        λ ≥ max_i ‖∂_i h‖₁, a public bound; 2 by default.
    variant, steps:
        ``"tight"`` or ``"published"`` (see :mod:`discreet.learn.regressions.frank_wolfe`), and how many steps; by
        default from the public or noisy number of records.
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

    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, order=self.order)
        check_whole(1, or_none=True, steps=self.steps)
        check_bounds(self.width, self.min_weight, self.max_edges)

    def prepare(self, whole: Whole) -> Procedure:
        """Frank–Wolfe steps, after a noisy count where their number is not known."""
        order = order_in(whole.domain, self.order)
        descent = spin_descent(whole.domain, whole.unit, order, self.width, self.variant, self.steps)
        return descent.procedure(self._method, whole)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> SpinModel:
        """The field that the regressions found make; post-processing."""
        columns, state = domain or measurements.domain, state_of(measurements)
        found = regression_coefficients(columns, features_of(columns, order_in(columns, self.order)), state)
        facts = {"frank_wolfe_steps": state.steps, "width": self.width or DEFAULT_WIDTH}
        card = card_of(measurements, self._method, **facts)
        return spin_model(self.order, largest(found, self.max_edges, self.min_weight), columns, card)

    @property
    def _method(self) -> str:
        return f"frank_wolfe, {self.variant}"
