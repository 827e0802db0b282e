"""The default for Markov random fields: tables made consistent, then a likelihood whose ridge knows the noise.

Write z for the consistent tables, N for their total, v for the variance of noise in a cell, c for the cells of a table
and s = √v/N, q = s·c: the noise in a cell, as a share of all records and by the average cell. θ̂ maximises

    ⟨θ, μ̂⟩ − A(θ) − ½Σ r θ²  within |θ| ≤ 6,

μ̂ the projection of z/N to the simplex. It is convex and has one solution for any μ̂, inside the marginal polytope or
not; the bound matters where noise put μ̂ outside, so that some θ would grow without end as r gets small.

*The ridge, on average.* With a normal prior of variance σ² on θ a cell of average size has r = 1/(σ²N) + s·q/σ²:
sampling and noise. That is right as long as q is small. For large q it shrinks too much, since θ solves rθ = μ̂ − μ,
which is of the size of s: r = s√(1 + q) at most. σ² is 0.6 by the share of directions of θ that are free.

*From cell to cell.* Taking Cov(θ) for its diagonal the prior asks for r ∝ 1 + v/(Nμ), with the μ of the cell. Where
columns are strongly coupled the diagonal is far from the truth and equal r does better, so we take the square root of
it. μ comes from a first rough fit.

*How strong in all.* KL(truth ‖ θ̂) is A(θ̂) − ⟨θ̂, μ⟩ and a constant. With noisy tables in place of the exact μ that is
too low by E⟨θ̂, z − Nμ⟩/N, which by Stein's lemma is tr(Σ ∂θ̂/∂z)/N, Σ the known covariance of the noise in z. So

    risk = A(θ̂) − ⟨θ̂, z/N⟩ + tr(Σ ∂θ̂/∂z)/N

estimates KL from noisy tables only. ∂θ̂/∂z = (H + R)⁻¹J/N with H = ∂μ/∂θ, R = diag(r), J the derivative of the
projection; the trace is taken by probes δ = Σ^½·signs, and (H + R)u = Jδ is solved by conjugate gradients with
differences of marginals for H. The ridge is doubled as long as this risk falls by more than half a standard deviation
of its own noise. It is never halved: where noise put μ̂ outside the polytope the estimate is too low for weak ridges.

The constants (0.6, 6, the square roots, half a deviation) were measured, not derived; docs/collective.md has on what.
Everything is post-processing of noisy tables, and deterministic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ..domain import Clique, Domain
from ..measurement import Measurements
from .consistency import Estimates, pooled, reconciled, total_and_variance
from .field_learner import Array, FieldLearner, on_cliques
from .likelihood import Field
from .projection import project_table

PRIOR_VARIANCE = 0.6
LARGEST_POTENTIAL = 6.0
LEAST_SHARE = 0.01
"""A cell's μ counts as at least this part of the average one in its ridge."""
CAUTION = 0.5
"""Standard deviations by which the risk must fall for a stronger ridge."""
MOST_DOUBLINGS = 5
FREE_ITERATIONS = 100
NOTHING = 1e-3
"""Where a first fit finds no potential larger than this there is nothing to weigh or to judge."""
ROUGH, FINE = 1e-4, 1e-6
"""Tolerances of fits: for weighing cells, and to be judged and released."""
CELLS_PROBED, MOST_PROBES = 2000, 4
"""One probe tells the trace of 2,000 cells to some 3 %; smaller models get more, four at most."""
MOST_STEPS, ENOUGH = 15, 0.1
"""Of conjugate gradients; some five steps are usual for a residual of 10 %."""


@dataclass(frozen=True)
class NoiseAwareField(FieldLearner):
    """Learn a Markov random field from noisy tables; nothing to tune.

    Guarantee: that of the m tables it asks for (L1 sensitivity m and L2 √m under add-remove, 2m and √(2m) under
    replace-one, times ``max_rows`` for persons); all the rest is post-processing.
    """

    method: ClassVar[str] = "noise_aware"

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        problem = _Problem(field, measurements)
        doublings = problem.strength()
        found = problem.fits[doublings]
        return found.theta, {"ridge_doubled": doublings, "converged": found.converged}


@dataclass(frozen=True)
class _Fit:
    theta: Array
    mu: Array
    log_partition: float
    converged: bool


class _Problem:
    """One set of tables: fits for each strength of the ridge, and what is estimated of their risk."""

    def __init__(self, field: Field, measurements: Measurements) -> None:
        self.field = field
        total, doubt = total_and_variance(measurements)
        self.total = max(total, 1.0)
        # N itself is noisy. Tables whose total does not stand out from its noise say nothing at all: as N comes down
        # to two standard deviations, what the ridge takes for N goes to (nearly) zero, and θ with it.
        records = max(self.total * (1 - 4 * doubt / self.total**2), 1e-3)
        domain, given = Measurements(measurements).domain, pooled(measurements)
        tables = on_cliques(field.cliques, reconciled(domain, given))
        self.raw = field.join({c: y / self.total for c, (y, _) in tables.items()})
        self.target = field.join({c: project_table(y / self.total) for c, (y, _) in tables.items()})
        self.variance = field.fill({c: v for c, (_, v) in tables.items()})
        self.fits: dict[int, _Fit] = {}
        uniform, noise = field.uniform(), np.sqrt(self.variance) / records
        relative, prior = noise / uniform, PRIOR_VARIANCE * _free_directions(field) / field.size
        self.ridge = noise * np.minimum(relative / prior, np.sqrt(1 + relative)) + 1 / (prior * records)
        self.noisy = bool((self.variance > 0).any())
        if self.noisy:
            first = self._fitted(0, ROUGH)
            self.noisy = bool(np.abs(first.theta).max() > NOTHING)
        if self.noisy:
            own = np.maximum(first.mu, LEAST_SHARE * uniform)
            by_sampling = self.variance / records
            self.ridge *= np.sqrt((1 + by_sampling / own) / (1 + by_sampling / uniform))
            weights = _stein_weights(measurements, given, field.split(self.total * first.mu))
            count = max(1, min(MOST_PROBES, CELLS_PROBED // field.size))
            self.probes = np.stack([self._probe(domain, given, weights, k) for k in range(count)])
        self._fitted(0, FINE)

    def strength(self) -> int:
        """How often the ridge is doubled: as long as the estimated risk falls."""
        if not self.noisy:
            return 0
        best, risk = 0, self._risk(0)
        while best < MOST_DOUBLINGS:
            self._fitted(best + 1, FINE)
            stronger = self._risk(best + 1)
            if stronger >= risk:
                break
            best, risk = best + 1, stronger
        return best

    def _fitted(self, doublings: int, tolerance: float) -> _Fit:
        start = self.fits[max(self.fits)] if self.fits else None
        theta, mu = (None, None) if start is None else (start.theta, start.mu)
        ridge, box = 2.0**doublings * self.ridge, np.full(self.field.size, LARGEST_POTENTIAL)
        # Bounds slow the search down and are rarely met: first without, and not for long.
        found = self.field.maximise(
            self.target, ridge, start=theta, curvature=mu, tolerance=tolerance, iterations=FREE_ITERATIONS
        )
        if not found.converged or np.abs(found.theta).max() > LARGEST_POTENTIAL:
            theta = np.clip(found.theta, -box, box)
            found = self.field.maximise(
                self.target, ridge, start=theta, curvature=mu, box=(-box, box), tolerance=tolerance
            )
        log_partition, mu = self.field(found.theta)
        self.fits[doublings] = _Fit(found.theta, mu, log_partition, found.converged)
        return self.fits[doublings]

    def _risk(self, doublings: int) -> float:
        fit = self.fits[doublings]
        moved = fit.theta - self.fits[0].theta
        deviation = math.sqrt(float((self.variance * moved**2).sum())) / self.total
        return fit.log_partition - float(fit.theta @ self.raw) + self._trace(doublings) + CAUTION * deviation

    # -- the trace ---------------------------------------------------------------------------------------------------

    def _probe(self, domain: Domain, given: Estimates, weights: dict[Clique, Array], number: int) -> Array:
        """Signs times √w, made consistent as the tables were, by N: its covariance is Σ."""
        drawn: Estimates = {}
        start = number << 32
        for clique, (table, variance) in given.items():
            drawn[clique] = (np.sqrt(weights[clique]) * _signs(table.size, start).reshape(table.shape), variance)
            start += table.size
        tables = on_cliques(self.field.cliques, reconciled(domain, drawn))
        return self.field.join({c: y / self.total for c, (y, _) in tables.items()})

    def _trace(self, doublings: int) -> float:
        """tr(Σ ∂θ̂/∂z)/N: the mean of δ·(H + R)⁻¹Jδ over the probes."""
        wanted = np.stack([self._along_projection(d) for d in self.probes])
        solved = self._inverse(self.fits[doublings], 2.0**doublings * self.ridge, wanted)
        return float((self.probes * solved).sum() / len(self.probes))

    def _along_projection(self, direction: Array) -> Array:
        """J·direction: cells that the projection made zero stay, the others keep their sum."""
        kept = self.target > 0
        out: Array = np.where(kept, direction, 0.0)
        for a, b in self.field.bounds:
            out[a:b] -= np.where(kept[a:b], out[a:b].sum() / kept[a:b].sum(), 0.0)
        return out

    def _inverse(self, fit: _Fit, ridge: Array, wanted: Array) -> Array:
        """(H + R)⁻¹ of each row, by conjugate gradients scaled with the diagonal of H + R."""
        scale = fit.mu + ridge
        x, residual = np.zeros_like(wanted), wanted.copy()
        direct = residual / scale
        energy = first = (residual * direct).sum(axis=1)
        for _ in range(MOST_STEPS):
            if (energy <= ENOUGH**2 * first).all():
                break
            short = 1e-3 / np.maximum(np.abs(direct).max(axis=1, keepdims=True), 1e-300)
            change = (self.field.marginals(fit.theta + short * direct) - fit.mu) / short
            curved = change + ridge * direct
            length = energy / np.maximum((direct * curved).sum(axis=1), 1e-300)
            x += length[:, None] * direct
            residual -= length[:, None] * curved
            scaled = residual / scale
            fresh = (residual * scaled).sum(axis=1)
            direct = scaled + (fresh / np.maximum(energy, 1e-300))[:, None] * direct
            energy = fresh
        return x


def _stein_weights(measurements: Measurements, given: Estimates, expected: dict[Clique, Array]) -> dict[Clique, Array]:
    """w with E[η f(y)] = E[w f′(y)]: the variance for Gaussian noise, b² + b|η| for Laplace noise of scale b.

    For |η| stands the residual of a first fit, brought to its mean b where that fit is too rough for it. A table
    pooled of several is taken for Gaussian.
    """
    kinds = [(m.clique, m.noise.kind) for m in measurements]
    out: dict[Clique, Array] = {}
    for clique, (table, variance) in given.items():
        out[clique] = np.full(table.shape, variance)
        if [k for c, k in kinds if c == clique] == ["laplace"] and clique in expected:
            b = math.sqrt(variance / 2)
            residual = np.abs(table - expected[clique])
            out[clique] = b * b + b * residual * min(1.0, b / max(float(residual.mean()), 1e-300))
    return out


def _free_directions(field: Field) -> int:
    """An overcomplete table spreads the same potential over more cells, so a cell's σ² is smaller by free/cells."""
    sets = {s for c in field.cliques for r in range(1, len(c) + 1) for s in combinations(c, r)}
    return sum(math.prod(field.domain[n].size - 1 for n in s) for s in sets)


def _signs(count: int, start: int) -> Array:
    """Fixed signs without a pattern: one bit of a mixed counter (splitmix64). They protect nothing."""
    z = (np.arange(start, start + count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where((z >> np.uint64(63)).astype(bool), 1.0, -1.0)
