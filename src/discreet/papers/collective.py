"""Collective graphical models: expectation–maximisation over the exact tables behind the noisy ones [BMSSHM17].

Algorithm 2 alternates between the most probable exact tables n given the noisy y and the parameters θ_t (Algorithm 1,
non-linear belief propagation: NLBP), and maximum likelihood θ_{t+1} from n.

What a step computes. NLBP looks for the stationary point n = N·μ(θ′), θ′ = θ_t + ∇ log p(y | n). At that point θ′ has
the marginals n/N, so the M-step is free: θ_{t+1} = θ′. For Laplace noise of scale b the gradient of −|y − n|/b is any
number in [−1/b, 1/b] where n = y and ±1/b elsewhere; so θ_{t+1} is exactly **maximum likelihood on the raw noisy table
within the box |θ − θ_t| ≤ 1/b**. For Gaussian noise of variance v the gradient is (y − n)/v and the step is maximum
likelihood with the penalty (v/2)·‖θ − θ_t‖². ``solver="dual"`` solves these convex problems; they give the same
iterates as NLBP many times faster, also where damped NLBP does not settle (its gradient jumps for Laplace noise).

Run to convergence, EM maximises log p(y | n) over all tables that some distribution has: stopping early is its only
regulariser. Each step moves a parameter by at most 1/b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..arguments import check_whole
from ..errors import InputError
from ..learn.consistency import estimated_total
from ..learn.fields.learner import Array, FieldLearner
from ..learn.fields.likelihood import Field
from ..measurement import Measurements

DAMPING = 0.1
"""Of NLBP, as published."""
LEAST_RIDGE = 1e-9
"""Keeps parameters finite where a cell of a table without noise is empty."""


@dataclass(frozen=True)
class NoisyTables:
    """The observed tables, flat and stacked, with the model's cliques they belong to."""

    field: Field
    y: Array
    """Noisy counts, cell by cell."""
    total: float
    """N, from the noisy tables."""
    reach: Array
    """Laplace: 1/b in each cell. Gaussian: 0. No noise: ∞."""
    variance: Array
    """Gaussian: the variance in each cell. Otherwise 0."""

    @classmethod
    def of(cls, field: Field, measurements: Measurements) -> NoisyTables:
        """One measurement for each clique of the model, the first there is."""
        y, reach, variance = {}, {}, {}
        found = {frozenset(m.clique): m for m in reversed(measurements) if m.clique and not m.proportions}
        for clique in field.cliques:
            m = found.get(frozenset(clique))
            shape = tuple(field.domain[n].size for n in clique)
            if m is None and any(set(clique) < other for other in found):
                # Its potential is part of the larger clique's, so it needs none of its own.
                y[clique], reach[clique], variance[clique] = np.zeros(shape), 0.0, 0.0
                continue
            if m is None:
                raise InputError(f"no table of {clique} was measured; there are {list(measurements.cliques)}")
            scale = m.noise.scale * float(m.grid)
            y[clique] = m.as_table().onto(clique).values
            reach[clique] = 0.0 if m.noise.kind == "gaussian" else 1 / scale if scale else np.inf
            variance[clique] = m.standard_deviation**2 if m.noise.kind == "gaussian" else 0.0
        total = estimated_total(measurements)
        return cls(field, field.join(y), total, field.fill(reach), field.fill(variance))

    def gradient(self, n: Array) -> Array:
        """∇_n log p(y | n): Algorithm 1, line 1."""
        slope = np.where(self.variance > 0, (self.y - n) / np.where(self.variance > 0, self.variance, 1.0), 0.0)
        out: Array = slope + np.where(self.reach > 0, self.reach * np.sign(self.y - n), 0.0)
        return out


def nlbp(
    tables: NoisyTables, theta: Array, *, damping: float | None = 0.1, iterations: int = 200, tolerance: float = 1e-6
) -> tuple[Array, bool]:
    """Algorithm 1: the most probable exact tables n given y and θ, and whether the iteration settled.

    ``damping`` is the paper's α; None takes 2/(k + 2) in round k, which converges where a constant does not.
    """
    if np.isinf(tables.reach).any():
        raise InputError("NLBP needs noise in every table; without it use solver='dual', or plain maximum likelihood")
    field, N = tables.field, tables.total
    n = N * field(theta)[1]
    for k in range(iterations):
        fresh = N * field(theta + tables.gradient(n))[1]
        a = 2 / (k + 2) if damping is None else damping
        moved = a * (fresh - n)
        n = n + moved
        if np.abs(moved).max() <= tolerance * N:
            return n, True
    return n, False


def dual_step(tables: NoisyTables, theta: Array, *, tolerance: float = 1e-7) -> Array:
    """One step of EM in closed form of its parameters: boxed (Laplace) or penalised (Gaussian) maximum likelihood."""
    field, N = tables.field, tables.total
    ridge = tables.variance / N
    boxed = tables.variance == 0
    low = np.where(boxed, theta - tables.reach, -np.inf)
    high = np.where(boxed, theta + tables.reach, np.inf)
    pull = ridge * theta  # ½r‖θ − θ_t‖² is ½r‖θ‖² − r⟨θ_t, θ⟩ and a constant
    found = field.maximise(
        tables.y / N + pull,
        ridge + LEAST_RIDGE,
        start=theta,
        box=(low, high) if boxed.any() else None,
        tolerance=tolerance,
    )
    return found.theta


def em_step(tables: NoisyTables, theta: Array, *, damping: float | None = 0.1, iterations: int = 200) -> Array:
    """One step of Algorithm 2 as published: NLBP, then maximum likelihood from its tables."""
    n, _ = nlbp(tables, theta, damping=damping, iterations=iterations)
    found = tables.field.maximise(
        n / tables.total, np.full(tables.field.size, LEAST_RIDGE), start=theta, curvature=n / tables.total
    )
    return found.theta


@dataclass(frozen=True)
class CollectiveField(FieldLearner):
    """The paper's method: EM for collective graphical models, from θ = 0.

    Parameters
    ----------
    iterations:
        Steps of EM. They are its only regulariser: a parameter moves by at most 1/b a step (Laplace).
    solver:
        ``"dual"`` (fast) or ``"nlbp"`` (Algorithms 1 and 2 as published). Both give the same iterates where
        NLBP settles: with decreasing damping (``damping=None``), not with the published constant one.
    damping:
        α of Algorithm 1; None decreases it.
    tolerance:
        EM ends when no parameter moved by more than this.
    """

    iterations: int = 25
    solver: Literal["dual", "nlbp"] = "dual"
    damping: float | None = DAMPING
    tolerance: float = 1e-4
    method: ClassVar[str] = "cgm"
    passes: ClassVar[int] = 2500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, iterations=self.iterations)
        if self.damping is not None and not 0 < self.damping <= 1:
            raise InputError(f"damping lies in (0, 1], or is None to decrease by itself; got {self.damping!r}")
        if self.solver == "dual" and self.damping != DAMPING:
            raise InputError(f"damping={self.damping!r} is for solver='nlbp'; the dual has nothing to damp")
        if not self.tolerance >= 0:
            raise InputError(f"tolerance is a number of at least 0, got {self.tolerance!r}")

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        tables = NoisyTables.of(field, measurements)
        theta = np.zeros(field.size)
        moved, steps = np.inf, 0
        while steps < self.iterations and moved > self.tolerance:
            before, steps = theta, steps + 1
            dual = self.solver == "dual"
            theta = dual_step(tables, before) if dual else em_step(tables, before, damping=self.damping)
            moved = float(np.abs(theta - before).max())
        return theta, {"steps_of_em": steps, "converged": moved <= self.tolerance}
