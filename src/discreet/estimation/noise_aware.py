"""The default for Markov random fields: tables made consistent, then a likelihood whose ridge knows the noise.

Write y for the consistent tables, N for their total, v for the variance of noise in a cell. Under the model, y − Nμ(θ)
has variance v + Nμ in a cell: noise and sampling. With a normal prior of variance σ² on the log potentials, the most
probable θ solves N·Cov(θ)·W·(y − Nμ(θ)) = θ/σ² with W = 1/(v + Nμ). Taking Cov for its diagonal μ this becomes, cell by
cell, y − Nμ(θ) = (1 + v/Nμ)·θ/σ²: maximum likelihood with **ridge (1 + v/(Nμ))/σ²**. It is a convex problem but for the
μ in the ridge, which is taken from the solution before: three rounds, starting from uniform.

Where noise is small this is maximum likelihood; where it dominates, θ goes to 0 like N²μ/v, so the model never does
worse than uniform by more than a trace; and no μ̂ outside the marginal polytope can make it diverge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ..measurement import Measurements
from .consistency import consistent, total_and_variance
from .field_learner import Array, FieldLearner, maximal, on_cliques
from .likelihood import Field
from .projection import project_table

PRIOR_VARIANCE = 1.2
"""σ² of a free parameter in a tree; see :func:`prior_variance`."""
STRONG_SIGNAL = 1e4
LARGEST_FACTOR = 3.0
"""Where there are 10⁴ records for one standard deviation of noise in a cell the prior is twice as wide, and at most
three times: the diagonal stands for Cov less well the more the noise matters, and a narrower prior makes up for that.
Measured, not derived."""
TOLERANCES = (1e-4, 1e-5, 1e-7)
"""Of the three rounds: the first two only serve to weigh the cells of the third."""
LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class NoiseAwareField(FieldLearner):
    """Learn a Markov random field from noisy tables; nothing to tune."""

    method: ClassVar[str] = "noise_aware"

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        total, doubt = total_and_variance(measurements)
        total = max(total, 1.0)
        # N itself is noisy. Tables whose total does not stand out from its noise say nothing at all: as N comes down
        # to two standard deviations, what the ridge takes for N goes to (nearly) zero, and θ with it.
        records = max(total * (1 - 4 * doubt / total**2), 1e-3)
        tables = on_cliques(field.cliques, consistent(measurements))
        target = field.join({c: project_table(y / total) for c, (y, _) in tables.items()})
        variance = field.fill({c: v for c, (_, v) in tables.items()})
        signal = records / math.sqrt(float(np.median(variance)) + 1e-12)
        prior = prior_variance(field) * min(1 + signal / STRONG_SIGNAL, LARGEST_FACTOR)
        mu = field.uniform()
        theta = np.zeros(field.size)
        for tolerance in TOLERANCES:
            ridge = (1 + variance / (records * mu)) / (prior * records)
            found = field.maximise(target, ridge, start=theta, curvature=mu, tolerance=tolerance)
            theta = found.theta
            mu = np.maximum(field(theta)[1], LEAST_PROBABILITY)
        return theta, {"converged": found.converged}


def prior_variance(field: Field) -> float:
    """σ² of a cell, from the shape of the model alone.

    An overcomplete table with c cells of which only f directions are free has the same size of θ spread over more cells
    when it is written with the least norm, so σ² shrinks by f/c. And the more cliques there are than a tree would have,
    the further Cov is from its diagonal, for which the square root of their ratio makes up. Measured, not derived.
    """
    sets = {s for c in field.cliques for r in range(1, len(c) + 1) for s in combinations(c, r)}
    free = sum(math.prod(field.domain[n].size - 1 for n in s) for s in sets)
    joined = sum(len(c) - 1 for c in maximal(field.cliques)) / max(len(field.domain) - 1, 1)
    return PRIOR_VARIANCE * free / field.size / math.sqrt(max(joined, 1.0))
