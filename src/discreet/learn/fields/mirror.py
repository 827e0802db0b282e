"""Least squares over all distributions that a field has, from the uniform one outwards, as far as the noise allows.

The loss of a field with marginals μ against noisy tables y_t, t over cliques, is L(μ) = ½ Σ_t ‖μ_t − ŷ_t‖²/s_t², with
ŷ_t = y_t/N and s_t the deviation of its noise: convex in μ, with the right weight for every table, and no table has to
be a distribution, or to agree with the others, before. The *mirror flow* of the entropy moves the log potentials
against the gradient in μ,

    dθ_t/dτ = (ŷ_t − μ_t(θ))·w_t,   w_t = s²/s_t²,  s the least of the s_t,   from θ = 0,

and reaches the least loss for τ → ∞ [mirror descent: BT03]. On the way, what stands out most comes first: along an
eigenvector of ∂μ/∂θ with the eigenvalue h, a part 1 − e^{−hτ} of the signal is learned at the time τ. With log
potentials of size σ, the signal there is hσ and the noise s; the best linear filter learns half of it where h = s/σ,
so we stop at

    τ = TIME·σ/s  with σ = 1,

a public number. (Earlier than that, structure is lost; later, noise is fitted: total variation has its least near
TIME = 1 on trees and on dense graphs, for two levels and for hundreds.) In total variation this beats the likelihood of
projected tables, :class:`~discreet.learn.fields.noise_aware.NoiseAwareField`, which is made for KL.

The flow is integrated by a few implicit steps, θ ← θ + Δτ·w·(ŷ − μ(θ_new)): each is the maximum of
⟨θ, ŷ⟩ − A(θ) − Σ ‖θ − θ_old‖²/(2wΔτ), strictly concave, by L-BFGS. Everything here is post-processing of noisy tables,
and deterministic.

[BT03] Beck, Teboulle, Operations Research Letters 31 (2003).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...domain import Clique, Domain
from ...graph import DEFAULT_MEMORY_LIMIT
from ..consistency import Estimates
from .likelihood import Array, Field

TIME = 1.1
"""Where the flow stops. Set on sachs, generated networks, child, Adult and NLTCS (whole, and half of their rows and
columns); from 0.8 to 1.5 the mean total variation changes by a few percent."""
STEPS, TOLERANCE = 4, 1e-6
ROUGH_STEPS, ROUGH_TOLERANCE = 2, 1e-5
"""For fits that only say what to ask next."""
MOST_ITERATIONS, MOST_ITERATIONS_CLOSELY = 120, 500
"""Closely: where noise is so small that the loss must be right to more digits (its errors are of the order s²)."""
EXACT = 0.1
"""A table without noise counts as one whose noise is this part of the least of the others; if none has noise, all count
as right to a record. (Likelihood has no maximum where tables contradict one another, if only by rounding.)"""


@dataclass(frozen=True, eq=False)
class MirrorFit:
    """Where the flow stopped: log potentials, and the loss divided by that of the noise alone."""

    field: Field
    theta: Array
    residual: float

    @property
    def potentials(self) -> dict[Clique, Array]:
        return self.field.split(self.theta)


def mirror_fit(
    domain: Domain, tables: Estimates, total: float, *, rough: bool = False, memory_limit: int = DEFAULT_MEMORY_LIMIT
) -> MirrorFit:
    """Fit a field on the cliques of these tables."""
    cliques = [c for c in tables if c]
    field = Field(domain, cliques, memory_limit=memory_limit)
    target = field.join({c: tables[c].values / total for c in cliques})
    noises = [tables[c].variance for c in cliques if tables[c].variance > 0]
    least, exact = (min(noises), EXACT**2 * min(noises)) if noises else (1.0, 1.0)
    variance = field.fill({c: tables[c].variance or exact for c in cliques})
    time = TIME * total / math.sqrt(least)
    steps, tolerance = (ROUGH_STEPS, ROUGH_TOLERANCE) if rough else (STEPS, min(TOLERANCE, least / total**2))
    iterations = MOST_ITERATIONS_CLOSELY if tolerance < TOLERANCE else MOST_ITERATIONS
    ridge = steps / time * (variance / least)
    theta, mu = np.zeros(field.size), field.uniform()
    for _ in range(steps):
        pulled = target + ridge * theta
        theta = field.maximise(
            pulled, ridge, start=theta, curvature=mu, tolerance=tolerance, iterations=iterations
        ).theta
        mu = field(theta)[1]
    # At the truth every noisy cell adds 1 to this sum, on average.
    noisy = field.fill({c: tables[c].variance > 0 for c in cliques}) > 0
    gap = ((mu - target) ** 2 * total**2 / variance)[noisy]
    return MirrorFit(field, theta, float(gap.mean()) if noisy.any() else 0.0)
