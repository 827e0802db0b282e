"""The default for Markov random fields: tables made consistent, then a likelihood whose ridge minimises expected KL.

Write z for the consistent tables divided by N, μ̂ for their projections to the simplex, and e for the noise that is left
in μ̂. From θ₀ = 0, step by step up to θ_m = θ̂, θ_t maximises the convex

    ⟨θ, μ̂⟩ − A(θ) − ½ρ Σ d (θ − θ_{t−1})²,

d the deviation of the noise in a cell's table divided by the mean one. Linearised at θ̂, with H = ∂μ/∂θ and D =
diag(d), what is learned along an eigenvector of D^-½ H D^-½ is the share g = 1 − (ρ/(h + ρ))^m of it, h the eigenvalue.
One step is the usual ridge; more steps tell strong directions from weak ones more sharply, as the best linear filter
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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...arguments import check_whole
from ...domain import Clique
from ...errors import InputError, counted
from ...measurement import Measurements
from ...privacy.query import Marginals
from ...privacy.requests import Measure
from ..checks import checked_size
from ..counting import CountToDecide
from ..procedure import Procedure, Whole
from .carried import Tables, cut_down, in_words, left_out
from .evidence import Evidence
from .learner import TABLES, Array, FieldLearner
from .likelihood import Field
from .spectrum import Spectrum, lanczos

# What is tuned was set on some 200 draws of models with Dirichlet(0.3, 1, 5) tables of 2 to 10 states: trees, chains,
# third-order chains and random graphs of 8 to 15 columns. docs/collective.md has the figures on others.
SOFTER, FIRMER = 0.8, 1.7
"""The ridge divided by the minimiser of F: where tables are all signal, and where they are all noise. F knows nothing
of θ that are large just where h is small, nor of what a σ² that is too high by chance costs. The second one was set on
stress runs at the noise floor (ε = 0.01), where a softer ridge gave models further from the truth than the uniform."""
MOST_ORDER, FELT = 3, 0.01
"""Steps m, and the noise divided by the average cell at which half of the additional ones are made. Further
steps from this noise on were measured to be better or equal on the same models, at less noise up to 1.5 times worse."""
LEAST_VARIANCE, FIRST_VARIANCE, MOST_VARIANCE = 0.05, 2.0, 12.0
"""Bounds of σ²; the second one of its first guess. Beyond them tables are all noise, or nearly deterministic: log
potentials of a Dirichlet(5) model have a variance of 0.2, of a Dirichlet(0.3) one some 12."""
AGAIN = 1.2
"""A ridge whose F is this many times the least one is not good enough to judge the next by; set on the same models."""

# What is not tuned: how exactly things are computed, and what goes without saying.
USUAL_VARIANCE = 1.0
"""σ² where there is no noise, and so nothing to weigh: the ridge is then that of sampling."""
CELLS_PROBED = 1000
"""Of models with more cells than that the number of vectors falls as one over it: one of 2,000 cells tells a trace to
some 3 %."""
PROBES, PROBES_OF_FIRST_VERSION = 8, 2
"""Where nearly all is noise, a table's noise may be a corner of its simplex, with a single sign for all its cells; and
two ridges can each be the best by what is seen at their own fit. With two vectors these signs chose: other ones led to
ridges up to 56 times as large, with eight 3 times, on 91 held-out sets of tables. KL is the same on average."""
MOST_PROBES = 100
RIDGES = np.geomspace(1e-3, 1e3, 300)
"""Where the minimum of F is looked for, in units of the mean deviation: 4.7 % from one to the next."""
ROUGH, FINE = 1e-3, 1e-3
"""Where fits stop: at steps that change the loss by so many nats, to be judged; by this part of the expected KL, to be
released."""
UNKNOWN = (
    "the tables do not stand out from their noise: all answers are those of the uniform model, whatever the records "
    "are, and noise intervals do not cover that"
)


@dataclass(frozen=True)
class NoiseAwareField(FieldLearner):
    """Learn a Markov random field from noisy tables; nothing to tune.

    Guarantee: that of the m tables it asks for (L1 sensitivity m and L2 √m under add-remove, 2m and √(2m) under
    replace-one, times ``max_rows`` for persons), and of a noisy count where what is asked follows from it; all the rest
    is post-processing.

    Parameters
    ----------
    step_back:
        Whether cliques whose tables the records cannot carry are measured as smaller tables (:mod:`.carried`); the
        plan, or where a count decides the card, says which. Otherwise every clique is measured in full.
    approximate_size:
        About how many records there are, if that is public: then no noisy count is bought.
    probes:
        How many vectors the noise is seen through at most, to choose the ridge; fewer on more than 1,000 cells.
    """

    step_back: bool = True
    approximate_size: float | None = None
    probes: int = PROBES

    method: ClassVar[str] = "noise_aware"
    passes: ClassVar[int] = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_size(self.approximate_size)
        check_whole(1, probes=self.probes)
        if self.probes > MOST_PROBES:
            raise InputError(f"probes is at most {MOST_PROBES}, got {self.probes:,}")

    def prepare(self, whole: Whole) -> Procedure:
        """One step, the tables; and before it the number of records, where that is not public and what is measured
        would depend on it."""
        size = self.approximate_size if whole.public_size is None else whole.public_size
        query = self.query(whole.domain)
        if not self.step_back:
            return self._one_step(whole, query)
        if size is not None:
            tables = Tables(whole.domain, query.cliques, whole.unit, whole.budget, self.noise).carried(size)
            notes = in_words(whole.domain, query.cliques, tables)
            return self._one_step(whole, Marginals(whole.domain, tables), notes)
        asked = CountToDecide.of(whole, query, self.noise)
        choice = Tables(whole.domain, query.cliques, whole.unit, asked.rest, asked.noise)
        if choice.carried(asked.least) == query.cliques:
            return self._one_step(whole, query)

        def request(records: float) -> Measure:
            tables = Marginals(whole.domain, choice.carried(records))
            return self.request(tables, whole.unit, asked.rest, asked.noise)[0]

        return asked.procedure(self.method, TABLES, request, (_by_count(choice, asked.least, whole.size),))

    def _within(self, cliques: tuple[Clique, ...], measured: Measurements) -> tuple[tuple[Clique, ...], dict[str, Any]]:
        tables = tuple(m.clique for m in measured if m.clique)
        gone = left_out(cliques, tables)
        # A column that no table has was forgotten, not left out: that is an error, which names it.
        if not self.step_back or not gone or {n for c in cliques for n in c} - {n for t in tables for n in t}:
            return cliques, {}
        return cut_down(cliques, tables), {"stepped_back": [list(c) for c in gone]}

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        evidence = Evidence.of(field, measurements)
        if evidence is None:
            return np.zeros(field.size), {"caution": UNKNOWN}
        if evidence.noisy:
            ridge, rough = _weighed(evidence, self.probes)
        else:
            ridge = Ridge(1 / (USUAL_VARIANCE * evidence.total), 1, USUAL_VARIANCE, field.size / (2 * evidence.total))
            rough = fitted(evidence, ridge, ROUGH)
        found = fitted(evidence, ridge, FINE * ridge.expected, rough)
        facts = {"ridge": ridge.rho, "ridge_steps": ridge.order, "prior_variance": ridge.prior, "probes": self.probes}
        return found.theta, {**facts, "converged": found.converged}


def _by_count(choice: Tables, least: float, size: float | None) -> str:
    """What the noisy count will decide, in words: how many cliques are measured in full for how many records."""
    every = len(choice.cliques)
    sizes = [size] if size is not None else [s for s in (1e3, 1e4, 1e5, 1e6) if s > least]
    parts = []
    for s in sizes:
        tables = choice.carried(s)
        full = every - len(left_out(choice.cliques, tables))
        parts.append(f"with {s:,.0f} records {'all' if full == every else f'{full:,}'} in full")
        if full == every:
            break
    return (
        "Cliques that the records cannot carry are measured as smaller tables, and the noisy number of records says "
        f"which: of {counted(every, 'clique')} are {'; '.join(parts)}. A public or approximate size saves the count."
    )


def _weighed(evidence: Evidence, probes: int) -> tuple[Ridge, Fit]:
    """The ridge with the least expected KL, and the fit that it was judged by."""
    risk = Risk.of(evidence, probes)
    ridge = risk.first()
    fit = fitted(evidence, ridge, ROUGH)
    for _ in range(2):
        ridge, too_much = risk.improved(ridge, fit)
        if too_much < AGAIN:
            break
        fit = fitted(evidence, ridge, ROUGH, fit)
    return ridge, fit


# -- the fit at a ridge ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ridge:
    """ρ for m steps, the prior's variance σ² that it is for, and the KL that is expected of it."""

    rho: float
    order: int
    prior: float
    expected: float

    def learned(self, h: Array) -> Array:
        """g: the share that is learned of what lies along an eigenvector."""
        return learned(h, self.rho, self.order)


def learned(h: Array, rho: Array | float, order: int) -> Array:
    """g = 1 − (ρ/(h + ρ))^m."""
    return np.asarray(1 - (rho / (h + rho)) ** order)


@dataclass(frozen=True, eq=False)
class Fit:
    """θ₁ … θ_m, the marginals of the last, and whether it was reached."""

    path: tuple[Array, ...]
    mu: Array
    converged: bool

    @property
    def theta(self) -> Array:
        return self.path[-1]


def fitted(evidence: Evidence, ridge: Ridge, tolerance: float, before: Fit | None = None) -> Fit:
    """θ̂ for a ridge, until the loss changes by less than ``tolerance``; starting from a fit at another one."""
    field = evidence.field
    scale = max(1.0, math.log(evidence.domain.size()))
    pull = ridge.rho * evidence.root**2
    mu = field.uniform() if before is None else before.mu
    theta, path = np.zeros(field.size), []
    for step in range(ridge.order):
        # What a step leaves undone the next ones do, so only the last has to be exact.
        enough = tolerance if step == ridge.order - 1 else max(tolerance, ROUGH)
        start = theta if before is None else before.path[step]
        target = evidence.target + pull * theta
        found = field.maximise(target, pull, start=start, curvature=mu, tolerance=enough / scale)
        theta = found.theta
        path.append(theta)
    return Fit(tuple(path), field(theta)[1], found.converged)


# -- which ridge -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Risk:
    """F(ρ): the KL to expect of a ridge, as far as the noisy tables tell."""

    evidence: Evidence
    order: int
    probes: Array

    @classmethod
    def of(cls, evidence: Evidence, probes: int = PROBES) -> Risk:
        felt = evidence.relative_noise / (evidence.relative_noise + FELT)
        count = max(1, min(probes, probes * CELLS_PROBED // evidence.field.size))
        return cls(evidence, 1 + round((MOST_ORDER - 1) * felt), evidence.probes(count))

    def first(self) -> Ridge:
        """From the noise and a first guess of σ², before there is a fit to judge by."""
        prior = min(max(self.evidence.prior_variance, LEAST_VARIANCE), FIRST_VARIANCE)
        return Ridge(self.order * self.evidence.level / math.sqrt(prior), self.order, prior, 1.0)

    def improved(self, ridge: Ridge, fit: Fit) -> tuple[Ridge, float]:
        """σ² and the ridge from the spectrum at a fit; and how many times the least F the present one has."""
        seen = self.spectrum(ridge, fit)
        prior = self._prior(seen, ridge, fit)
        better = self._least(seen, prior)
        before = float(self.expected(seen, prior, np.array([ridge.rho]))[0])
        return better, before / better.expected if better.expected else 1.0  # 0: there is nothing to learn

    def spectrum(self, ridge: Ridge, fit: Fit) -> Spectrum:
        """Of D^-½ H D^-½ at a fit, as far as the ridge depends on it."""
        field, root = self.evidence.field, self.evidence.root

        def curvature(directions: Array) -> Array:
            """Of each row, by a difference of marginals."""
            along = directions / root
            short = 1e-3 / np.maximum(np.abs(along).max(axis=1, keepdims=True), 1e-300)
            return np.asarray((field.marginals(fit.theta + short * along) - fit.mu) / short / root)

        return lanczos(curvature, self.probes, lambda seen: self._least(seen, ridge.prior).rho)

    def expected(self, seen: Spectrum, prior: float, rho: Array) -> Array:
        """F at each ρ."""
        g, g_noise = (learned(h, rho[:, None], self.order) for h in (seen.h, seen.noise_h))
        by_noise = (seen.noise * g_noise**2 / seen.noise_h).sum(axis=1)
        others = (seen.prior * (g**2 / self.evidence.total + prior * seen.h * (1 - g) ** 2)).sum(axis=1)
        return np.asarray(0.5 * (by_noise + others))

    def _least(self, seen: Spectrum, prior: float) -> Ridge:
        """The minimiser of F, made softer or firmer as the tables are signal or noise."""
        rho = self.evidence.level * RIDGES
        found = self.expected(seen, prior, rho)
        best = int(found.argmin())
        firm = SOFTER + (FIRMER - SOFTER) * self.evidence.loudness
        return Ridge(float(firm * rho[best]), self.order, prior, float(found[best]))

    def _prior(self, seen: Spectrum, ridge: Ridge, fit: Fit) -> float:
        """σ² times (|θ̂|² divided by its expectation), as far as the prior and not the noise makes that expectation."""
        size = float((self.evidence.identified(self.evidence.root * fit.theta) ** 2).sum())
        learned, by_noise = ridge.learned(seen.h), ridge.learned(seen.noise_h)
        signal = ridge.prior * float((seen.prior * learned**2).sum())
        noise = float((seen.noise * (by_noise / seen.noise_h) ** 2).sum())
        noise += float((seen.prior * learned**2 / seen.h).sum()) / self.evidence.total
        expected = signal + noise
        new = ridge.prior * (size / expected) ** (signal / expected) if size > 0 else LEAST_VARIANCE
        return min(max(new, LEAST_VARIANCE), MOST_VARIANCE)
