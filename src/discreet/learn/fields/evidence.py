"""What noisy tables say before any fit: shares of the records, how far noise may have moved them, and how much of what
they show is signal. Post-processing of noisy tables."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from ...count_table import CountTable
from ...domain import Domain
from ...measurement import Measurements
from ..consistency import Estimates, pooled, reconciled, total_and_variance
from ..projection import project_table
from .learner import Array, on_cliques
from .likelihood import Field
from .spectrum import signs

DOUBTED = 3.0
"""N counts as unknown up to √3 standard deviations. Set on stress runs at the noise floor (ε = 0.01), where models up
to 1.9 times as far from the truth as the uniform one had come out."""
DROWNED = 1.5
"""Where N is public: tables say nothing when the noise in each cell is so many times N. Set on pairs of columns of
*asia* with 500 records at ε from 0.001 to 0.01."""


def records_and_known(measurements: Measurements, tables: Estimates) -> tuple[float, float]:
    """The number of records as far as noisy tables tell, and how far they stand out from their noise: from 1 to next
    to nothing."""
    total, variance = total_and_variance(measurements)
    total, noises = max(total, 1.0), [t.closely for t in tables.values()]
    if not noises or min(noises) == 0:
        return total, 1.0
    return total, max(1 - max(DOUBTED * variance, float(np.mean(noises)) / DROWNED**2) / total**2, 1e-6)


@dataclass(frozen=True, eq=False)
class Evidence:
    """One set of noisy tables, on the cliques of a field."""

    field: Field
    domain: Domain
    given: Estimates
    """The tables as they were measured, several of one clique pooled."""
    total: float
    """N, the number of records as far as they tell."""
    doubt: float
    """Noise counts as so many times larger, because N itself is noisy."""
    shares: Array
    """z: the consistent tables divided by N."""
    target: Array
    """μ̂: z projected to the simplex, table by table."""
    deviation: Array
    """Of the noise in z, times the doubt; 0 in tables without noise."""

    @classmethod
    def of(cls, field: Field, measurements: Measurements) -> Evidence | None:
        """None where the tables do not stand out from their noise.

        As N comes down to √DOUBTED standard deviations of its own noise, noise as a share of it goes to infinity.
        """
        total, variance = total_and_variance(measurements)
        total = max(total, 1.0)
        domain, given = Measurements(measurements).domain, pooled(measurements)
        noise = [t.variance for c, t in given.items() if c] or [0.0]
        known = 1 - max(DOUBTED * variance, float(np.mean(noise)) / DROWNED**2) / total**2
        if known <= 0 and all(v > 0 for v in noise):
            return None
        doubt = 1 / max(known, 1e-6)
        tables = on_cliques(field.cliques, reconciled(domain, given))
        shares = {c: t.values / total for c, t in tables.items()}
        return cls(
            field,
            domain,
            given,
            total,
            doubt,
            field.join(shares),
            field.join({c: project_table(share) for c, share in shares.items()}),
            doubt / total * np.sqrt(field.fill({c: t.variance for c, t in tables.items()})),
        )

    @cached_property
    def noisy(self) -> bool:
        return bool((self.deviation > 0).any())

    @cached_property
    def _weights(self) -> Array:
        """Exact tables among noisy ones keep the ridge of sampling, one record."""
        return np.maximum(self.deviation, 1 / self.total)

    @cached_property
    def level(self) -> float:
        """The mean deviation of the noise."""
        return float(self._weights.mean())

    @cached_property
    def root(self) -> Array:
        """D^½: the root of each cell's deviation divided by the mean one."""
        return np.asarray(np.sqrt(self._weights / self.level))

    @property
    def relative_noise(self) -> float:
        """The mean deviation divided by the average cell."""
        return self.level * self.field.size / len(self.field.cliques)

    @cached_property
    def _away(self) -> tuple[float, float]:
        """|z − u|², u the uniform model: what signal and what noise have a part in it."""
        noise = float((self.deviation**2).sum()) / self.doubt**2
        return max(float(((self.shares - self.field.uniform()) ** 2).sum()) - noise, 0.0), noise

    @property
    def loudness(self) -> float:
        """The share of noise in |z − u|²."""
        signal, noise = self._away
        return noise / (noise + signal)

    @property
    def prior_variance(self) -> float:
        """σ² = (|z − u|² less what noise adds to it) / tr H₀²: a first guess."""
        return self._away[0] / max(curvature_squared(self.field), 1e-300)

    # -- vectors that the spectrum is seen through ---------------------------------------------------------------------

    def probes(self, count: int) -> Array:
        """``count`` vectors distributed as the prior with σ² = 1, in D^½θ, and as many like the noise, in D^-½e."""
        prior = [self.identified(self.root * signs(self.field.size, 2 * k)) for k in range(count)]
        return np.stack(prior + [self._noise(2 * k + 1) for k in range(count)])

    def identified(self, vector: Array) -> Array:
        """The part of D^½θ that changes the model: the nearest D^-½u with u consistent tables that add up to zero."""
        weights = self.field.split(self.root**2)
        given = {
            c: CountTable(c, table, float(weights[c].flat[0]))
            for c, table in self.field.split(self.root * vector).items()
        }
        made = on_cliques(self.field.cliques, reconciled(self.domain, given))
        return self.field.join({c: t.values - t.values.mean() for c, t in made.items()}) / self.root

    def _noise(self, number: int) -> Array:
        """D^-½e for signs in place of noise: made consistent as the tables were, and through the projection."""
        drawn: Estimates = {}
        start, corners = number << 32, len(self.field.bounds)
        for clique, t in sorted(self.given.items(), key=lambda entry: not entry[0]):
            # The number of records comes last: with and without it tables are judged by the same signs.
            own = signs(t.cells, start=start if clique else start + corners)
            drawn[clique] = replace(t, values=math.sqrt(t.variance) * own.reshape(t.values.shape))
            start += t.cells if clique else 0
        tables = on_cliques(self.field.cliques, reconciled(self.domain, drawn))
        e = self.field.join({c: self.doubt / self.total * t.values for c, t in tables.items()})
        kept = self.target > 0
        e = np.where(kept, e, 0.0)
        away = self.target - self.field.uniform()
        for (a, b), sign in zip(self.field.bounds, signs(corners, start=start), strict=True):
            # Cells that the projection made zero stay, the others keep their sum.
            e[a:b] -= np.where(kept[a:b], e[a:b].sum() / kept[a:b].sum(), 0.0)
            # Where it left next to nothing but a corner of the simplex, that corner is the noise.
            corner = self.loudness * (away[a:b] @ away[a:b])
            if self.deviation[a] > 0 and e[a:b] @ e[a:b] < 0.5 * corner:
                e[a:b] = sign * math.sqrt(self.loudness) * away[a:b]
        return self.identified(e / self.root)


def curvature_squared(field: Field) -> float:
    """tr H₀², H₀ = ∂μ/∂θ at θ = 0. There columns are independent and H₀ falls apart into interactions, one for each set
    S of columns: eigenvalue Σ 1/|t| over the tables t that contain S, in ∏(levels − 1) directions."""
    eigenvalue: dict[tuple[str, ...], float] = defaultdict(float)
    for clique, size in zip(field.cliques, field.sizes, strict=True):
        for r in range(1, len(clique) + 1):
            for s in combinations(clique, r):
                eigenvalue[s] += 1 / size
    return sum(math.prod(field.domain[n].size - 1 for n in s) * h * h for s, h in eigenvalue.items())
