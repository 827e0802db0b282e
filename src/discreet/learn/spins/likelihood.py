"""Maximum likelihood of a field of spins from noisy parities: post-processing, whatever the noise was.

By enumeration up to 20 columns. Beyond, exact on the junction tree where the chosen monomials form a narrow graph, and
otherwise by persistent Gibbs chains: coloured ones for order 2 (:mod:`.pairs`), Newton steps on the chains' own
covariance for higher orders. The fit says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import CostError
from ...inference.exact import ExactEngine, get_engine
from ...inference.parity_chains import ParityChains, parity_features
from ...models.ising import SIGNS
from ...privacy.queries.parities import ParitySums
from ...threads import one_thread
from .enumeration import MOST_COLUMNS, ParityFamily, positions
from .moments import Moments
from .pairs import lone_errors, lone_start, on_coloured_chains

Array = NDArray[np.float64]
PRIOR = 0.3  # typical size of a coupling: where noise is far larger than signal, estimates go to zero
PAIR_TREE_CELLS = 1 << 19  # of a junction tree that is calibrated some fifty times
TREE_CELLS = 1 << 17  # the same in each of several fits: higher orders are searched fit by fit
_REWEIGHTINGS = 3
_CHAINS, _ROUNDS, _SWEEPS, _RECORDS = 3000, 24, 3, 20_000
_ON_CHAINS = "maximum likelihood by persistent Gibbs chains on a grid, approximate"


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients, how they were found, and what the model expects of other parities: all of them where it was
    enumerated, otherwise (beyond order 2) records of the model."""

    moments: Moments
    c: Array
    how: str
    spectrum: Array | None = None
    records: NDArray[np.int64] | None = None

    @property
    def coefficients(self) -> dict[Clique, float]:
        return dict(zip(self.moments.monomials, map(float, self.c), strict=True))

    @property
    def joint(self) -> Array:
        """The coefficients of ``moments.joint``."""
        return self.c[self.moments.p :]

    def errors(self) -> Array:
        """Standard errors of :attr:`joint`, from the noise and from the sampling of the records."""
        moments = self.moments
        if self.spectrum is not None:
            family = family_of(moments.domain, moments.monomials)
            return family.standard_errors(self.spectrum, moments.variance, moments.records)[moments.p :]
        if self.records is None:
            return lone_errors(moments)
        F = _fisher(parity_features(self.records, positions(moments.domain.names, moments.monomials)))
        inverse = np.linalg.inv(F + 1e-3 * np.eye(len(F)))
        squared = (inverse**2) @ moments.variance + np.maximum(np.diag(inverse), 0.0) / moments.records
        return np.asarray(np.sqrt(squared)[moments.p :])

    def expected(self, monomials: Sequence[Clique]) -> tuple[Array, float]:
        """What the model says of these parities, and from how many independent records that is estimated."""
        domain = self.moments.domain
        if self.spectrum is not None:
            return self.spectrum[family_of(domain, monomials).masks], np.inf
        assert self.records is not None
        return parities_of_records(domain, monomials, self.records), float(len(self.records))


def family_of(domain: Domain, monomials: Sequence[Clique]) -> ParityFamily:
    return ParityFamily(len(domain), positions(domain.names, monomials))


def parities_of_records(domain: Domain, monomials: Sequence[Clique], records: NDArray[np.int64]) -> Array:
    """Means over records of codes."""
    batch = {name: records[:, i].astype(np.uint8) for i, name in enumerate(domain.names)}
    (sums,) = ParitySums(domain, monomials).sum_rows(batch)
    return sums / len(records)


def ridge_of(variance: Array) -> Array:
    """Of a noisy moment, in the likelihood: a normal prior of standard deviation ``PRIOR`` against its noise."""
    return np.minimum(variance / PRIOR**2, 1e6)


@one_thread()
def fit_terms(moments: Moments, start: Mapping[Clique, float] | None = None, random_state: int = 0) -> Fit:
    """Maximum likelihood with exactly these monomials (single columns first, see :meth:`Moments.only`), under a ridge
    that makes it exist for any noise."""
    begin = np.array([(start or {}).get(I, 0.0) for I in moments.monomials])
    if moments.p <= MOST_COLUMNS:
        return _enumerated(moments, begin)
    ridge, pairs = ridge_of(moments.variance), moments.order <= 2
    cells = PAIR_TREE_CELLS if pairs else TREE_CELLS
    try:
        engine = get_engine(moments.domain, moments.monomials, memory_limit=cells * 8)
    except CostError:
        if pairs:
            return Fit(moments, on_coloured_chains(moments, ridge, random_state), _ON_CHAINS)
        return _on_chains(moments, ridge, begin, random_state)
    return _on_tree(engine, moments, ridge, lone_start(moments) if pairs else begin, random_state)


@one_thread()
def plain_fit(moments: Moments, start: Array | None = None) -> Fit:
    """By enumeration, each coefficient with the ridge of its own noise."""
    family = family_of(moments.domain, moments.monomials)
    c, spectrum = family.fit(moments.mean, ridge_of(moments.variance), start)
    return Fit(moments, c, "maximum likelihood by enumeration", spectrum)


def _enumerated(moments: Moments, begin: Array) -> Fit:
    fit = plain_fit(moments, begin)
    if moments.order > 2:
        return fit
    family = family_of(moments.domain, moments.monomials)
    plain = ridge = ridge_of(moments.variance)
    c, spectrum = fit.c, fit.spectrum
    assert spectrum is not None
    # Where the Fisher information F is small, noise is amplified by 1/F, and the ridge of a posterior mode is too.
    for _ in range(_REWEIGHTINGS - 1):
        inverse = np.linalg.inv(family.fisher(spectrum) + np.diag(ridge + 1e-9))
        ridge = plain * np.maximum(np.diag(inverse), 1.0)
        c, spectrum = family.fit(moments.mean, ridge, c)
    return Fit(moments, c, fit.how, spectrum)


def _on_tree(engine: ExactEngine, moments: Moments, ridge: Array, begin: Array, random_state: int) -> Fit:
    signs = {I: np.asarray(reduce(np.multiply.outer, [SIGNS] * len(I))) for I in moments.monomials}

    def tables(c: Array) -> dict[Clique, Array]:
        return {I: v * signs[I] for I, v in zip(moments.monomials, c, strict=True)}

    def objective(c: Array) -> tuple[float, Array]:
        beliefs = engine.calibrate(tables(c))
        found = np.array([float((beliefs.probabilities(I) * signs[I]).sum()) for I in moments.monomials])
        value = float(beliefs.log_partition) - float(c @ moments.mean) + 0.5 * float(ridge @ c**2)
        return value, found - moments.mean + ridge * c

    from scipy.optimize import minimize  # slow to import

    out = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60, "gtol": 1e-6, "maxcor": 30})
    records = None
    if moments.order > 2:
        records = np.asarray(engine.calibrate(tables(out.x)).sample(_RECORDS, random_state), dtype=np.int64)
    return Fit(moments, out.x, "maximum likelihood on the junction tree", records=records)


def _on_chains(moments: Moments, ridge: Array, begin: Array, random_state: int) -> Fit:
    """Newton steps with the chains' own covariance; steps shrink, the second half is averaged."""
    c = begin.copy()
    where = positions(moments.domain.names, moments.monomials)
    chains = ParityChains.start(moments.mean[: moments.p].clip(-0.999, 0.999), _CHAINS, random_state)
    chains.sweep(where, c, 10)
    average, kept = np.zeros_like(c), []
    for t in range(_ROUNDS):
        x = []
        for _ in range(_SWEEPS):
            chains.sweep(where, c)
            x.append(chains.features(where))
        features = np.concatenate(x)
        gradient = features.sum(axis=0) / np.float64(len(features)) - moments.mean + ridge * c
        step = np.linalg.solve(_fisher(features) + np.diag(ridge + 0.02), gradient)
        rate = 1.0 / (1 + max(t - _ROUNDS // 4, 0)) ** 0.7
        c = c - rate * np.clip(step, -0.3, 0.3)
        if t >= _ROUNDS // 2:
            average = average + c
            kept.append(chains.codes)
    return Fit(moments, average / len(kept), _ON_CHAINS, records=np.concatenate(kept[-6:]))


def _fisher(features: NDArray[np.float32]) -> Array:
    """Covariances of features of ±1, whose sums are whole numbers and so the same on every machine."""
    mean = features.sum(axis=0) / np.float64(len(features))
    return np.asarray(features.T @ features / np.float64(len(features)) - np.outer(mean, mean))
