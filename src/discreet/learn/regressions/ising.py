"""[001] Algorithm 2: an Ising model by one private sparse logistic regression for each column, all in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...measurement import Measurement
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ...privacy.queries.gradients import SpinGradients
from ..spins.measuring import size_and_rest
from .frank_wolfe import State, Variant, choose_steps, init, run

DEFAULT_WIDTH = 2.0  # λ when none is given: wide enough for three couplings of ½ and a field
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regressions:
    """The weights of all regressions, and what they were found with."""

    state: State
    size: Measurement | None
    steps: int


def regress_spins(
    curator: Curator,
    budget: Budget,
    monomials: list[tuple[str, ...]],
    width: float,
    variant: Variant,
    steps: int | None,
) -> Regressions:
    """Algorithm 2, lines 1–3 (Algorithm 4 with monomials of higher order): the ball has radius 2λ."""
    domain = curator.domain

    def problem(v: NDArray[np.int64], scale: float) -> SpinGradients:
        return SpinGradients(domain, monomials, v, scale)

    start = init(len(domain), len(monomials), 2 * width)
    size = None
    if steps is None:
        for_size, budget = size_and_rest(budget, size_is_public=curator.public_size is not None)
        size = curator.size(for_size)
        gradients = problem(start.v, start.scale)
        steps = choose_steps(variant, 2 * width, float(size.values), gradients, curator.unit, budget)
    return Regressions(run(curator, problem, start, steps, budget, variant), size, steps)


def couplings(state: State, p: int) -> tuple[Array, Array]:
    """Line 4: A_ij = w/2, here averaged over both regressions that estimate it; and θ_i = w/2 of the constant."""
    w = state.w / 2
    A = (w[:, :p] + w[:, :p].T) / 2
    np.fill_diagonal(A, 0.0)
    return A, w[:, p]
