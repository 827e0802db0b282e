"""Least squares over all distributions that a field has: mirror descent, stopped where only noise is left to be fitted.

The loss of a field with marginals μ against noisy tables y_t, t over cliques, is L(μ) = ½ Σ_t ‖μ_t − y_t/N‖²/v_t:
convex in μ, and the right weight for every table. Mirror descent with the entropy as its mirror moves the log potentials
against the gradient *in μ*, θ_t ← θ_t − α(μ_t − y_t/N)/v_t [BT03]; no table has to be a distribution, nor to agree with
the others, before. From θ = 0 it goes from the uniform distribution outwards, what stands out of the noise first.

*Where to stop.* At the truth the loss is that of the noise alone, which is known. Fitted to the end, it falls to what
noise no distribution can follow; on the way it passes the best place. We stop at STOP times the loss of the noise: the
discrepancy principle [M66], with a factor below one because a fit has as many freedoms to follow noise as it has cells
worth fitting. In total variation this beats the likelihood of projected tables
(:class:`~discreet.learn.fields.noise_aware.NoiseAwareField`, made for KL) on overlapping tables.

Everything here is post-processing of noisy tables, and deterministic.

[BT03] Beck, Teboulle, Operations Research Letters 31 (2003). [M66] Morozov, Soviet Mathematics Doklady 7 (1966).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...domain import Clique, Domain
from ...graph import DEFAULT_MEMORY_LIMIT
from ..consistency import Estimates
from .likelihood import Array, Field

STOP = 0.65
"""The loss, divided by that of the noise alone, at which a fit ends. Set on sachs, two generated networks, and half of
the rows and columns of Adult and of NLTCS; 0.6 to 0.75 are hardly to be told apart."""
ROUGH = 0.8
"""The same for fits that only say what to ask next."""
MOST_STEPS = 250
FIRST_STEP, LONGER, SHORTER, MOST_HALVINGS = 50.0, 1.5, 0.5, 40
EXACT = 0.01
"""A table without noise counts as one whose variance is this part of the least of the others."""


@dataclass(frozen=True, eq=False)
class MirrorFit:
    """Where a descent ended: log potentials, the loss divided by that of the noise, and how many steps it took."""

    field: Field
    theta: Array
    residual: float
    steps: int

    @property
    def potentials(self) -> dict[Clique, Array]:
        return self.field.split(self.theta)


def mirror_fit(
    domain: Domain,
    tables: Estimates,
    total: float,
    *,
    start: Mapping[Clique, Array] | None = None,
    stop: float = STOP,
    most_steps: int = MOST_STEPS,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> MirrorFit:
    """Fit a field on the cliques of these tables. ``start``: log potentials of an earlier fit on some of them."""
    cliques = [c for c in tables if c]
    field = Field(domain, cliques, memory_limit=memory_limit)
    noisy = [tables[c].variance for c in cliques if tables[c].variance > 0]
    least = min(noisy, default=1.0)
    weight = field.fill({c: 1 / EXACT if tables[c].variance == 0 else least / tables[c].variance for c in cliques})
    target = field.join({c: tables[c].values / total for c in cliques})
    # Every noisy cell adds ½·(weight)·(variance)/N² = ½·least/N² to the loss at the truth.
    noise = 0.5 * least / total**2 * sum(tables[c].cells for c in cliques if tables[c].variance > 0)
    known = start or {}
    theta = field.join({c: known.get(c, np.zeros(tables[c].values.shape)) for c in cliques})

    def loss(mu: Array) -> tuple[float, Array]:
        gap = mu - target
        return 0.5 * float(weight @ gap**2), weight * gap

    mu = field(theta)[1]
    value, gradient = loss(mu)
    length, steps = FIRST_STEP, 0
    while value > stop * noise and steps < most_steps:
        for _ in range(MOST_HALVINGS):
            there = theta - length * gradient
            mu_there = field(there)[1]
            value_there, gradient_there = loss(mu_there)
            # Mirror descent's own measure of a step that is short enough: at least half of what the slope promises.
            if value - value_there >= 0.5 * float(gradient @ (mu - mu_there)):
                break
            length *= SHORTER
        else:
            break  # no step is short enough: this is as far as rounding lets us go
        theta, mu, value, gradient = there, mu_there, value_there, gradient_there
        length, steps = length * LONGER, steps + 1
    return MirrorFit(field, theta, value / noise if noise else 0.0, steps)
