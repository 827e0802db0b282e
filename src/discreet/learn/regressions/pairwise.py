"""[001] Algorithm 3, corrected: a pairwise model by a private sparse logistic regression for each column and each pair
of its levels, all in one pass.

``vertices="group"`` searches a smaller ball whose vertices are a column with a sign for each of its levels
(:mod:`discreet.privacy.queries.group_vertices`); the radius is then 2λ instead of 2λk.

Corrections: sums instead of averages over the private number |S_uv|; unordered pairs of levels, as the regression of v
against u is that of u against v with the sign turned; a column's own value is no feature of its regressions; estimates
of W_ij and W_ji are averaged.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...errors import InputError
from ...models.pairwise import Pair
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ...privacy.queries.gradients import LevelGradients
from ...privacy.queries.group_vertices import GroupedLevelGradients, check_vertices
from ..spins.measuring import size_and_rest
from .frank_wolfe import State, Variant, choose_steps, init, run
from .ising import Regressions

Array = NDArray[np.float64]
Vertices = Literal["coordinate", "group"]


def regress_levels(
    curator: Curator, budget: Budget, width: float, variant: Variant, steps: int | None, vertices: Vertices
) -> Regressions:
    """Lines 1–6: the ball has radius 2λk, k the largest number of levels; with group vertices 2λ."""
    domain = curator.domain
    if max(domain.shape) < 2:
        raise InputError("every column has one level only: there is nothing to learn")
    grouped = vertices == "group"
    radius = 2 * width * (1 if grouped else max(domain.shape))
    if grouped:
        check_vertices(domain)

    def problem(v: NDArray[np.int64], scale: float) -> LevelGradients:
        return GroupedLevelGradients(domain, v, scale) if grouped else LevelGradients(domain, v, scale)

    start = init(*LevelGradients.shape_for(domain), radius)
    size = None
    if steps is None:
        for_size, budget = size_and_rest(budget, size_is_public=curator.public_size is not None)
        size = curator.size(for_size)
        steps = choose_steps(variant, radius, float(size.values), problem(start.v, 0.0), curator.unit, budget)
    return Regressions(run(curator, problem, start, steps, budget, variant), size, steps)


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
