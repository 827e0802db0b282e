"""The default for Markov random fields: tables made consistent, then a likelihood whose ridge minimises expected KL.

Write z for the consistent tables by N, μ̂ for their projections to the simplex, and e for the noise that is left in μ̂.
From θ₀ = 0, step by step up to θ_m = θ̂, θ_t maximises the convex

    ⟨θ, μ̂⟩ − A(θ) − ½ρ Σ d (θ − θ_{t−1})²,

d the deviation of the noise in a cell's table by the mean one. Linearised at θ̂, with H = ∂μ/∂θ and D = diag(d), what is
learned along an eigenvector of D^-½ H D^-½ is the share g = 1 − (ρ/(h + ρ))^m of it, h the eigenvalue. One step is the
usual ridge; more steps tell strong directions from weak ones more sharply, as the best linear filter
h²σ²/(h²σ² + s²) does. (Steps of EM for collective graphical models are of this kind, with ρ fixed by the noise: there
their number is the regulariser.) Expected KL, ½E(θ̂ − θ)ᵀH(θ̂ − θ), is then

    F(ρ) = ½ Σ (g²·(noise/h + 1/N) + (1 − g)²·h·prior),

summed over eigenvectors; noise and prior are the variances of D^-½e and D^½θ along them, 1/N is for sampling. We take
the ρ that minimises F. Where all h are alike and m = 1 that is the prior's ridge (s² + h/N)/(σ²h), s the deviation of
noise; where many are small (strongly coupled columns, tables that no model has) it comes near s/σ. Neither rule is
right for both.

*The spectrum* is that of H at a first fit, seen through a few random vectors, some distributed as the prior and some as
the noise after projection (cells that were made zero carry none; where a corner of the simplex is all that is left,
that corner is the noise): Lanczos' method gives for each a quadrature of its measure on h. It takes a run of the
engine a vector and step, until ρ settles. Where F says that the first ridge was off, both are done once more.

*The prior's variance* σ² comes from the tables themselves. At the uniform model u, θ moves μ by H₀θ, so E|μ − u|² =
σ²·tr H₀²; and |z − u|² is larger by the known variance of the noise. Later, at a fit, |θ̂|² is compared with what σ² and
noise together lead to expect, and σ² follows as far as the signal has a share in that.

*Steps.* m = 3 where noise is strongly felt, 1 where it is little: for cells of very small probability, whose θ is far
out, F is too hopeful about larger ρ, and at little noise these cells are what is left of KL.

Where N itself does not stand out from its noise (or is public, and smaller than the noise of a cell), noise counts as
larger, up to infinite: the answer is then the uniform model, and the card warns. Everything is post-processing of noisy
tables, and deterministic.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ...measurement import Measurements
from ..consistency import Estimates, pooled, reconciled, total_and_variance
from ..projection import project_table
from .learner import Array, FieldLearner, on_cliques
from .likelihood import Field

USUAL_VARIANCE = 1.0
"""σ² where there is no noise, and so nothing to weigh: the ridge is then that of sampling."""
LEAST_VARIANCE, FIRST_VARIANCE, MOST_VARIANCE = 0.05, 2.0, 12.0
"""Bounds of σ²; the second one of its first guess. Beyond them tables are all noise, or nearly deterministic."""
DOUBTED = 3.0
"""N counts as unknown up to √3 standard deviations."""
DROWNED = 1.5
"""Where N is public: tables say nothing when the noise in each cell is so many times N."""
MOST_ORDER, FELT = 3, 0.01
"""Steps m, and the noise by the average cell at which half of the additional ones are made."""
CELLS_PROBED, MOST_PROBES = 2000, 2
"""One vector tells a trace over 2,000 cells to some 3 %; smaller models get two."""
MOST_STEPS, CHECKED, SETTLED = 32, 4, 0.1
"""Of Lanczos' method: until log ρ changes by less than this from one check to the next."""
LEAST_EIGENVALUE = 1e-15
UNKNOWN = (
    "the tables do not stand out from their noise: all answers are those of the uniform model, whatever the records "
    "are, and noise intervals do not cover that"
)
SOFTER, FIRMER = 0.8, 1.7
"""The ridge by the minimiser of F: where tables are all signal, and where they are all noise. F knows nothing of θ that
are large just where h is small, nor of what a σ² that is too high by chance costs; measured to be better."""
AGAIN = 1.2
"""A ridge whose F is this many times the least one is not good enough to judge the next by."""
ROUGH, FINE = 1e-3, 1e-3
"""Where fits stop: at steps that change the loss by so many nats, to be judged; by this part of the expected KL, to be
released."""


@dataclass(frozen=True)
class NoiseAwareField(FieldLearner):
    """Learn a Markov random field from noisy tables; nothing to tune.

    Guarantee: that of the m tables it asks for (L1 sensitivity m and L2 √m under add-remove, 2m and √(2m) under
    replace-one, times ``max_rows`` for persons); all the rest is post-processing.
    """

    method: ClassVar[str] = "noise_aware"
    passes: ClassVar[int] = 300

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        problem = _Problem(field, measurements)
        if problem.nothing_known:
            return problem.theta, {"caution": UNKNOWN}
        problem.fit(ROUGH)
        for _ in range(2):
            if problem.improve() < AGAIN:
                break
            problem.fit(ROUGH)
        converged = problem.fit(FINE * problem.expected)
        found = {"ridge": problem.rho, "ridge_steps": problem.order, "prior_variance": problem.prior}
        return problem.theta, {**found, "converged": converged}


@dataclass(frozen=True)
class _Spectrum:
    """Σ f(h)·weight over nodes: for vectors distributed as the prior with σ² = 1, and for those like the noise."""

    h: Array
    prior: Array
    noise_h: Array
    noise: Array


class _Problem:
    """One set of tables: the ridge, the prior's variance and the fit as they improve each other."""

    def __init__(self, field: Field, measurements: Measurements) -> None:
        self.field = field
        total, variance = total_and_variance(measurements)
        self.total = max(total, 1.0)
        self.domain, self.given = Measurements(measurements).domain, pooled(measurements)
        noise = [v for c, (_, v) in self.given.items() if c] or [0.0]
        # N itself is noisy. Tables whose total does not stand out from its noise say nothing at all: as N comes down
        # to √DOUBTED standard deviations, the noise as a share of it goes to infinity, and θ to zero.
        known = 1 - max(DOUBTED * variance, float(np.mean(noise)) / DROWNED**2) / self.total**2
        self.doubt = 1 / max(known, 1e-6)
        self.theta: Array = np.zeros(field.size)
        self.nothing_known = known <= 0 and all(v > 0 for v in noise)
        if self.nothing_known:
            return
        tables = on_cliques(field.cliques, reconciled(self.domain, self.given))
        self.target = field.join({c: project_table(y / self.total) for c, (y, _) in tables.items()})
        z = field.join({c: y / self.total for c, (y, _) in tables.items()})
        deviation = self.doubt / self.total * np.sqrt(field.fill({c: v for c, (_, v) in tables.items()}))
        self.deviation, self.noisy = deviation, bool((deviation > 0).any())
        self.order = 1
        self.path: list[Array] = []
        self.mu = field.uniform()
        # Exact tables among noisy ones keep the ridge of sampling, one record.
        weights = np.maximum(deviation, 1 / self.total)
        self.level = float(weights.mean())
        self.root = np.sqrt(weights / self.level)
        if not self.noisy:
            self.prior, self.rho = USUAL_VARIANCE, 1 / (USUAL_VARIANCE * self.total)
            self.expected = field.size / (2 * self.total)
            return
        self.prior, self.loudness = self._first_guess(z, float((deviation**2).sum()) / self.doubt**2)
        relative = self.level * field.size / len(field.cliques)
        self.order = 1 + round((MOST_ORDER - 1) * relative / (relative + FELT))
        self.rho = self.order * self.level / math.sqrt(self.prior)
        self.expected = 1.0
        count = max(1, min(MOST_PROBES, CELLS_PROBED // field.size))
        self.probes = np.stack(
            [self._identified(self.root * _signs(field.size, 2 * k)) for k in range(count)]
            + [self._noise(2 * k + 1) for k in range(count)]
        )

    def fit(self, tolerance: float) -> bool:
        """θ̂ for the present ridge, until the loss changes by less than ``tolerance``; whether that was reached."""
        scale = max(1.0, math.log(self.domain.size()))
        ridge = self.rho * self.root**2
        theta = np.zeros(self.field.size)
        for step in range(self.order):
            # What a step leaves undone the next ones do, so only the last has to be exact.
            enough = tolerance if step == self.order - 1 else max(tolerance, ROUGH)
            start = self.path[step] if step < len(self.path) else theta
            found = self.field.maximise(
                self.target + ridge * theta, ridge, start=start, curvature=self.mu, tolerance=enough / scale
            )
            theta = found.theta
            self.path[step : step + 1] = [theta]
        self.theta = theta
        self.mu = self.field(theta)[1]
        return found.converged

    def improve(self) -> float:
        """Prior and ridge from the spectrum at the present fit; how many times the least F the present ridge has."""
        if not self.noisy:
            return 1.0
        seen = self._spectrum()
        self.prior = self._prior(seen)
        before = float(self._expected(seen, np.array([self.rho]))[0])
        self.rho, self.expected = self._least(seen)
        return before / self.expected

    # -- σ² ----------------------------------------------------------------------------------------------------------

    def _first_guess(self, z: Array, noise: float) -> tuple[float, float]:
        """σ² = (|z − u|² − what noise adds to it) / tr H₀²; and the share of noise in |z − u|²."""
        signal = max(float(((z - self.field.uniform()) ** 2).sum()) - noise, 0.0)
        prior = signal / max(_curvature_squared(self.field), 1e-300)
        return min(max(prior, LEAST_VARIANCE), FIRST_VARIANCE), noise / (noise + signal)

    def _prior(self, seen: _Spectrum) -> float:
        """σ² times (|θ̂|² by its expectation), as far as the prior and not the noise makes that expectation."""
        size = float((self._identified(self.root * self.theta) ** 2).sum())
        learned, by_noise = self._learned(seen.h, self.rho), self._learned(seen.noise_h, self.rho)
        signal = self.prior * float((seen.prior * learned**2).sum())
        noise = float((seen.noise * (by_noise / seen.noise_h) ** 2).sum())
        noise += float((seen.prior * learned**2 / seen.h).sum()) / self.total
        expected = signal + noise
        new = self.prior * (size / expected) ** (signal / expected) if size > 0 else LEAST_VARIANCE
        return min(max(new, LEAST_VARIANCE), MOST_VARIANCE)

    # -- F(ρ) --------------------------------------------------------------------------------------------------------

    def _expected(self, seen: _Spectrum, rho: Array) -> Array:
        r = rho[:, None]
        g, g_noise = self._learned(seen.h, r), self._learned(seen.noise_h, r)
        by_noise = (seen.noise * g_noise**2 / seen.noise_h).sum(axis=1)
        others = (seen.prior * (g**2 / self.total + self.prior * seen.h * (1 - g) ** 2)).sum(axis=1)
        return np.asarray(0.5 * (by_noise + others))

    def _learned(self, h: Array, rho: Array | float) -> Array:
        return np.asarray(1 - (rho / (h + rho)) ** self.order)

    def _least(self, seen: _Spectrum) -> tuple[float, float]:
        rho = self.level * np.geomspace(1e-3, 1e3, 300)
        found = self._expected(seen, rho)
        best = int(found.argmin())
        return float((SOFTER + (FIRMER - SOFTER) * self.loudness) * rho[best]), float(found[best])

    # -- the spectrum of D^-½ H D^-½ ---------------------------------------------------------------------------------

    def _spectrum(self) -> _Spectrum:
        lengths = np.sqrt((self.probes**2).sum(axis=1))
        basis = [self.probes / np.maximum(lengths, 1e-300)[:, None]]
        diagonal: list[Array] = []
        beside: list[Array] = []
        last = 0.0
        for step in range(1, MOST_STEPS + 1):
            q = basis[-1]
            out = self._curvature(q)
            diagonal.append((out * q).sum(axis=1))
            for _ in range(2):  # once is not enough to stay orthogonal
                for b in basis:
                    out -= (out * b).sum(axis=1, keepdims=True) * b
            beside.append(np.sqrt((out**2).sum(axis=1)))
            if step % CHECKED == 0:
                seen = _quadrature(np.array(diagonal), np.array(beside[:-1]), lengths)
                rho = self._least(seen)[0]
                if last and abs(math.log(rho / last)) < SETTLED:
                    break
                last = rho
            basis.append(out / np.maximum(beside[-1], 1e-300)[:, None])
        return seen

    def _curvature(self, directions: Array) -> Array:
        """D^-½ H D^-½ of each row, by a difference of marginals."""
        along = directions / self.root
        short = 1e-3 / np.maximum(np.abs(along).max(axis=1, keepdims=True), 1e-300)
        return np.asarray((self.field.marginals(self.theta + short * along) - self.mu) / short / self.root)

    def _identified(self, vector: Array) -> Array:
        """The part of D^½θ that changes the model: the nearest D^-½u with u consistent tables that add up to zero."""
        tables = self.field.split(self.root * vector)
        weights = self.field.split(self.root**2)
        given = {c: (t, float(weights[c].flat[0])) for c, t in tables.items()}
        made = on_cliques(self.field.cliques, reconciled(self.domain, given))
        return self.field.join({c: u - u.mean() for c, (u, _) in made.items()}) / self.root

    def _noise(self, number: int) -> Array:
        """D^-½e for signs in place of noise: made consistent as the tables were, and through the projection."""
        drawn: Estimates = {}
        start = number << 32
        for clique, (table, variance) in self.given.items():
            drawn[clique] = (math.sqrt(variance) * _signs(table.size, number, start).reshape(table.shape), variance)
            start += table.size
        tables = on_cliques(self.field.cliques, reconciled(self.domain, drawn))
        out = self.field.join({c: self.doubt / self.total * y for c, (y, _) in tables.items()})
        kept = self.target > 0
        out = np.where(kept, out, 0.0)
        away = self.target - self.field.uniform()
        signs = _signs(len(self.field.bounds), number, start)
        for (a, b), sign in zip(self.field.bounds, signs, strict=True):
            # Cells that the projection made zero stay, the others keep their sum.
            out[a:b] -= np.where(kept[a:b], out[a:b].sum() / kept[a:b].sum(), 0.0)
            # Where it left next to nothing but a corner of the simplex, that corner is the noise.
            corner = self.loudness * (away[a:b] @ away[a:b])
            if self.deviation[a] > 0 and out[a:b] @ out[a:b] < 0.5 * corner:
                out[a:b] = sign * math.sqrt(self.loudness) * away[a:b]
        return self._identified(out / self.root)


def _curvature_squared(field: Field) -> float:
    """tr H₀², H₀ = ∂μ/∂θ at θ = 0. There columns are independent and H₀ falls apart into interactions, one for each set
    S of columns: eigenvalue Σ 1/|t| over the tables t that contain S, in ∏(levels − 1) directions."""
    eigenvalue: dict[tuple[str, ...], float] = defaultdict(float)
    for clique, size in zip(field.cliques, field.sizes, strict=True):
        for r in range(1, len(clique) + 1):
            for s in combinations(clique, r):
                eigenvalue[s] += 1 / size
    return sum(math.prod(field.domain[n].size - 1 for n in s) * h * h for s, h in eigenvalue.items())


def _quadrature(diagonal: Array, beside: Array, lengths: Array) -> _Spectrum:
    """Nodes and weights from the tridiagonal matrices of all vectors (steps first): the first half are the prior's."""
    count = len(lengths) // 2
    nodes, weights = [], []
    for k, length in enumerate(lengths):
        matrix = np.diag(diagonal[:, k]) + np.diag(beside[:, k], 1) + np.diag(beside[:, k], -1)
        h, vectors = np.linalg.eigh(matrix)
        nodes.append(np.maximum(h, LEAST_EIGENVALUE))
        weights.append(vectors[0] ** 2 * length**2 / count)
    h, w = np.concatenate(nodes), np.concatenate(weights)
    half = count * len(diagonal)
    return _Spectrum(h[:half], w[:half], h[half:], w[half:])


def _signs(count: int, number: int, start: int | None = None) -> Array:
    """Fixed signs without a pattern: one bit of a mixed counter (splitmix64). They protect nothing."""
    first = (number << 32) if start is None else start
    z = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where((z >> np.uint64(63)).astype(bool), 1.0, -1.0)
