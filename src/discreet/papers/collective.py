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
regulariser.

Two things differ from the text, and can be had as published (``likelihood="noise"``, ``stopping="converged"``).

* **The law of the noise.** n is the most probable table, a mode. With Laplace noise it pushes what the tables
  contradict each other in into as few cells as it can, and a small cell that gets it ruins KL: even with the best step
  of all, chosen by the truth, EM can be 2.6 times as far from the truth as naive likelihood. With a normal law of the
  same variance the contradiction is spread over all cells, as by least squares.
* **When to stop.** ``"discrepancy"`` takes the first step at which the tables of the model are as far from the noisy
  ones as noise is on average, and goes on for a public multiple of it (``patience``). It sees released numbers only.

After 20 steps several are made at once, one in twenty of those made so far, with a box (or a variance) to match: the
iterates of EM are those of a smooth flow, and 5 % of it are followed to within a percent or so of KL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..arguments import check_whole
from ..errors import InputError
from ..learn.consistency import estimated_total
from ..learn.fields.learner import Array, FieldLearner
from ..learn.fields.likelihood import Field
from ..measurement import Measurements

Likelihood = Literal["normal", "noise"]
PUBLISHED_DAMPING = 0.1
MOST_STEPS = {"dual": 200_000, "nlbp": 2_000}
"""Of EM, where nothing is said: caps that a rule should reach first. NLBP makes its steps one by one."""
AT_ONCE = 20
"""One in so many of the steps made so far are made at once."""
PRECISE = 1e-9
"""Of a step, in the loss. At 1e-7 it ends before the last cells have moved: EM stands still where noise is small."""
PATIENCE = 0.75, 1.6
"""Normal law: 1 + 0.75·ln(distance at the start); Laplace: 1.6. Set on 32 draws of models that are not reported."""
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
    expected: Array
    """E|noise| in each cell; nan where nothing was measured."""

    @classmethod
    def of(cls, field: Field, measurements: Measurements, likelihood: Likelihood = "noise") -> NoisyTables:
        """One measurement for each clique of the model, the first there is.

        ``likelihood="normal"`` takes Laplace noise for normal noise of the same variance.
        """
        y, reach, variance, expected = {}, {}, {}, {}
        found = {frozenset(m.clique): m for m in reversed(measurements) if m.clique and not m.proportions}
        for clique in field.cliques:
            m = found.get(frozenset(clique))
            shape = tuple(field.domain[n].size for n in clique)
            if m is None and any(set(clique) < other for other in found):
                # Its potential is part of the larger clique's, so it needs none of its own.
                y[clique], reach[clique], variance[clique], expected[clique] = np.zeros(shape), 0.0, 0.0, math.nan
                continue
            if m is None:
                raise InputError(f"no table of {clique} was measured; there are {list(measurements.cliques)}")
            scale = m.noise.scale * float(m.grid)
            y[clique] = m.as_table().onto(clique).values
            gaussian = m.noise.kind == "gaussian"
            smooth = gaussian or (likelihood == "normal" and scale > 0)
            reach[clique] = 0.0 if smooth else 1 / scale if scale else np.inf
            variance[clique] = m.standard_deviation**2 if smooth else 0.0
            expected[clique] = m.standard_deviation * math.sqrt(2 / math.pi) if gaussian else scale
        total = estimated_total(measurements)
        return cls(field, field.join(y), total, field.fill(reach), field.fill(variance), field.fill(expected))

    def distance(self, n: Array) -> float:
        """Mean |y − n| of the measured cells, in units of what noise alone makes it. 0 without any noise."""
        seen = self.expected > 0  # not nan either
        return float(np.mean(np.abs(self.y - n)[seen] / self.expected[seen])) if seen.any() else 0.0

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


def dual_step(
    tables: NoisyTables, theta: Array, *, steps: int = 1, curvature: Array | None = None, tolerance: float = PRECISE
) -> Array:
    """One step of EM in closed form of its parameters: boxed (Laplace) or penalised (Gaussian) maximum likelihood.

    ``steps`` of them at once have a box that is as many times as wide, or a penalty that is as many times as weak.
    """
    field, N = tables.field, tables.total
    ridge = tables.variance / N / steps
    boxed = tables.variance == 0
    low = np.where(boxed, theta - steps * tables.reach, -np.inf)
    high = np.where(boxed, theta + steps * tables.reach, np.inf)
    pull = ridge * theta  # ½r‖θ − θ_t‖² is ½r‖θ‖² − r⟨θ_t, θ⟩ and a constant
    found = field.maximise(
        tables.y / N + pull,
        ridge + LEAST_RIDGE,
        start=theta,
        curvature=curvature,
        box=(low, high) if boxed.any() else None,
        tolerance=tolerance,
    )
    return found.theta


def em_step(tables: NoisyTables, theta: Array, *, damping: float | None = None, iterations: int = 200) -> Array:
    """One step of Algorithm 2 as published: NLBP, then maximum likelihood from its tables."""
    n, _ = nlbp(tables, theta, damping=damping, iterations=iterations)
    found = tables.field.maximise(
        n / tables.total, np.full(tables.field.size, LEAST_RIDGE), start=theta, curvature=n / tables.total
    )
    return found.theta


def patience(tables: NoisyTables, start: float) -> float:
    """By how much the step of the discrepancy is multiplied: public, by the distance of the uniform model."""
    slope, constant = PATIENCE
    if not (tables.variance > 0).any():
        return constant
    return 1 + slope * math.log(max(start, 1.0))


@dataclass(frozen=True)
class CollectiveField(FieldLearner):
    """The paper's method: EM for collective graphical models, from θ = 0.

    Parameters
    ----------
    stopping:
        ``"discrepancy"``: a public multiple of the first step at which the model is as near to the noisy tables as the
        noise lets the exact ones be; ``"converged"``, as published: until the tables no longer move.
    likelihood:
        ``"normal"``: of the variance that the noise has; ``"noise"``: Laplace noise by its own law, as published.
    iterations:
        Steps of EM at most; by default a cap that the rules reach before.
    solver:
        ``"dual"`` (fast) or ``"nlbp"`` (Algorithms 1 and 2 as published). They give the same iterates where NLBP
        settles: on Laplace noise with decreasing damping, not with the published constant one.
    damping:
        α of Algorithm 1; by default it decreases. 0.1 is the published one.
    tolerance:
        EM has converged when a step moves no cell of its tables by more than this part of the noise.
    """

    stopping: Literal["discrepancy", "converged"] = "discrepancy"
    likelihood: Likelihood = "normal"
    iterations: int | None = None
    solver: Literal["dual", "nlbp"] = "dual"
    damping: float | None = None
    tolerance: float = 1e-3
    method: ClassVar[str] = "cgm"
    passes: ClassVar[int] = 2500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, iterations=self.iterations)
        if self.damping is not None and not 0 < self.damping <= 1:
            raise InputError(f"damping lies in (0, 1], or is None to decrease by itself; got {self.damping!r}")
        if self.solver == "dual" and self.damping not in (None, PUBLISHED_DAMPING):  # older files state the published
            raise InputError(f"damping={self.damping!r} is for solver='nlbp'; the dual has nothing to damp")
        if not self.tolerance >= 0:
            raise InputError(f"tolerance is a number of at least 0, got {self.tolerance!r}")

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        tables = NoisyTables.of(field, measurements, self.likelihood)
        theta = np.zeros(field.size)
        mu = field(theta)[1]
        start = tables.distance(tables.total * mu)
        scale = np.where(tables.expected > 0, tables.expected, 1e-6 * tables.total)
        last, steps, converged, found = self.iterations or MOST_STEPS[self.solver], 0, False, False
        while steps < last and not converged:
            if self.solver == "nlbp":
                made, theta = 1, em_step(tables, theta, damping=self.damping)
            else:
                made = min(max(steps // AT_ONCE, 1), last - steps)
                theta = dual_step(tables, theta, steps=made, curvature=mu)
            before, mu = mu, field(theta)[1]
            steps += made
            converged = bool((tables.total * np.abs(mu - before) <= self.tolerance * made * scale).all())
            if self.stopping == "discrepancy" and not found and tables.distance(tables.total * mu) <= 1:
                found, last = True, min(last, math.ceil(patience(tables, start) * steps))
        return theta, {"steps_of_em": steps, "converged": converged, "likelihood": self.likelihood}
