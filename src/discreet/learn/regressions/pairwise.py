"""[001] Algorithm 3, corrected: a pairwise model by a private sparse logistic regression for each column and each pair
of its levels, all in one pass.

``vertices="group"`` searches a smaller ball whose vertices are a column with a sign for each of its levels
(:mod:`discreet.privacy.queries.group_vertices`); the radius is then 2λ instead of 2λk.

Corrections: sums instead of averages over the private number |S_uv|; unordered pairs of levels, as the regression of v
against u is that of u against v with the sign turned; a column's own value is no feature of its regressions; estimates
of W_ij and W_ji are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import InputError, counted
from ...measurement import Measurements
from ...models.pairwise import Pair, PairwiseModel
from ...privacy.budget import Budget
from ...privacy.queries.gradients import LevelGradients
from ...privacy.queries.group_vertices import MOST_LEVELS, GroupedLevelGradients, check_vertices
from ...privacy.query import Marginals
from ...privacy.unit import PrivacyUnit
from ..cards import card_of
from ..learner import Learner
from ..procedure import Procedure, Whole
from ..spins.coefficients import check_bounds
from .descent import Descent, state_of
from .division import width_for
from .fitted import descended, fitted, fitted_procedure
from .frank_wolfe import State, Variant, choose_steps, init, told
from .spins import DEFAULT_WIDTH

Array = NDArray[np.float64]
Vertices = Literal["auto", "coordinate", "group"]
WIDTHS = 0.5, 2.0
"""The narrowest and the widest where the field is fitted, and the width follows from what the selections tell."""
FEW_VERTICES = 1 << 17
"""Group vertices up to which they are the default: a second of noise for each step."""


@dataclass(frozen=True)
class PairwiseRegressions(Learner[PairwiseModel]):
    """Learn a pairwise model over columns with any numbers of levels.

    Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike; every step is one private
    selection (:mod:`discreet.learn.regressions.frank_wolfe`).

    Parameters
    ----------
    width:
        λ, a public bound on max_{i,a} Σ_j max_b |W_ij(a, b)| + |θ_i(a)|. By default it follows from what the
        selections can tell; 2 where the field is not fitted.
    variant, steps, fitted:
        As for :class:`SpinRegressions`.
    vertices:
        ``"coordinate"``, one level of one column at a time as in the paper, or ``"group"``, a column with a sign for
        each of its levels, in a ball whose radius is smaller by the number of levels; ``"auto"``: the latter where the
        field is fitted and they are few enough.
    max_edges, min_weight:
        Public bounds on the number of edges, and on max |W_ij| of one.
    """

    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None
    vertices: Vertices = "auto"
    max_edges: int | None = None
    min_weight: float = 0.0
    fitted: bool | None = None

    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, steps=self.steps)
        check_bounds(self.width, self.min_weight, self.max_edges)

    def prepare(self, whole: Whole) -> Procedure:
        """Frank–Wolfe steps, after a noisy count where their number is not known; columns before and an energy after
        them where the field is fitted."""
        domain = whole.domain
        method = f"frank_wolfe, {self.variant}"
        if not self._fits:
            return self._descent(domain, whole.unit, self.width or DEFAULT_WIDTH).procedure(method, whole)

        def descent_for(least: float) -> Descent:
            return self._descent(domain, whole.unit, self.width or width_for(least, *WIDTHS))

        columns = Marginals(domain, [(name,) for name in domain.names])
        return fitted_procedure(
            method, whole, columns, descent_for, lambda state: as_interactions(self._found(state, domain)[0])
        )

    def _descent(self, domain: Domain, unit: PrivacyUnit, width: float) -> Descent:
        """Lines 1–6: the ball has radius 2λk, k the largest number of levels; with group vertices 2λ."""
        if max(domain.shape) < 2:
            raise InputError("every column has one level only: there is nothing to learn")
        grouped = self._grouped(domain)
        radius = 2 * width * (1 if grouped else max(domain.shape))
        regressions, features = LevelGradients.shape_for(domain)
        what = f"a vertex for each of {counted(regressions, 'regression')}"
        if grouped:
            what += f", out of {check_vertices(domain):,} group vertices in all"

        def problem(v: NDArray[np.int64], scale: float) -> LevelGradients:
            return GroupedLevelGradients(domain, v, scale) if grouped else LevelGradients(domain, v, scale)

        start = init(regressions, features, radius)
        zero = problem(start.v, 0.0)

        def choose(records: float, share: Budget) -> int:
            return choose_steps(self.variant, radius, records, zero, unit, share)

        def least(records: float, share: Budget) -> float:
            number = self.steps or choose(records, share)
            vertices = max(zero.score(adaptive=True).groups) if grouped else 2 * zero.feature_count
            return told(records, vertices, zero.joint(unit), number, share)

        return Descent(problem, start, self.variant, self.steps, choose, what, least)

    def _grouped(self, domain: Domain) -> bool:
        return self.vertices == "group" or (self.vertices == "auto" and self._fits and few_vertices(domain))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> PairwiseModel:
        """The model that the regressions found make, fitted where that was asked for; post-processing."""
        columns = domain or measurements.domain
        state = descended(measurements) if self._fits else state_of(measurements)
        W, Theta = self._found(state, columns)
        grouped = self._grouped(columns)
        method = f"frank_wolfe, {self.variant}, {'group' if grouped else 'coordinate'} vertices"
        facts: dict[str, Any] = {}
        if state is not None:
            width = state.radius / 2 / (1 if grouped else max(columns.shape))
            facts = {"frank_wolfe_steps": state.steps, "width": round(width, 4)}
        if self._fits:
            fit = fitted(columns, measurements, as_interactions(W))
            W = {pair: fit.scale * table for pair, table in W.items() if fit.scale > 0}
            Theta = dict(fit.singles)
            facts |= fit.facts(measurements)
        return PairwiseModel(W, Theta, columns, card_of(measurements, method, **facts))

    def _found(self, state: State | None, columns: Domain) -> tuple[dict[Pair, Array], dict[str, Array]]:
        """Weights, the largest as far as their number and size are bounded, and fields."""
        if state is None:
            return {}, {}
        W, Theta = weights_of(columns, state)
        size = {pair: float(np.abs(table).max()) for pair, table in W.items()}
        kept = sorted((pair for pair in W if size[pair] >= self.min_weight / 2), key=lambda pair: -size[pair])
        return {pair: W[pair] for pair in kept[: self.max_edges]}, Theta

    @property
    def _fits(self) -> bool:
        return self.variant == "tight" if self.fitted is None else self.fitted


def few_vertices(domain: Domain) -> bool:
    """Whether group vertices take little time."""
    return max(domain.shape) <= MOST_LEVELS and check_vertices(domain) <= FEW_VERTICES


def as_interactions(W: Mapping[Pair, Array]) -> dict[Clique, Array]:
    return {(a, b): table for (a, b), table in W.items()}


def weights_of(domain: Domain, state: State) -> tuple[dict[Pair, Array], dict[str, Array]]:
    """Lines 7–9: centre by equation 1, average over the levels that u was set against, and over both directions."""
    shape, names = domain.shape, domain.names
    p = len(shape)
    starts = np.cumsum([0, *shape])
    U = [np.zeros((k, k, starts[-1])) for k in shape]
    constant = [np.zeros((k, k)) for k in shape]
    for (i, u, v), w in zip(LevelGradients(domain, state.v, state.scale).levels, state.w, strict=True):
        centred, shift = w[:-1].copy(), w[-1]
        for j in range(p):
            block = slice(starts[j], starts[j + 1])
            mean = centred[block].mean()
            centred[block] -= mean
            shift += mean
        U[i][u, v], U[i][v, u] = centred, -centred
        constant[i][u, v], constant[i][v, u] = shift, -shift
    directed = [u.mean(axis=1) for u in U]  # Σ_v U_uv / k, with U_uu = 0
    W: dict[Pair, Array] = {}
    for i in range(p):
        for j in range(i + 1, p):
            there = directed[i][:, starts[j] : starts[j + 1]]
            back = directed[j][:, starts[i] : starts[i + 1]]
            W[names[i], names[j]] = (there + back.T) / 2
    return W, {names[i]: constant[i].mean(axis=1) for i in range(p)}
