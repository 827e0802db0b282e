"""Noisy parity moments of any order, and maximum likelihood from them: post-processing, whatever the noise was.

By enumeration up to 20 columns. Beyond, exact on the junction tree where the chosen monomials form a narrow graph, and
otherwise by Newton steps on persistent Gibbs chains; the fit says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ...domain import Clique, Domain
from ...errors import CostError
from ...inference.exact import ExactEngine, get_engine
from ...inference.parity_chains import ParityChains, parity_features
from ...measurement import Measurement
from ...models.ising import SIGNS
from ...privacy.queries.parities import ParitySums
from .enumeration import MOST_COLUMNS, ParityFamily, positions
from .ising_fit import ridge_of

Array = NDArray[np.float64]
TREE_CELLS = 1 << 17  # of a junction tree that is calibrated some fifty times in each of several fits
_CHAINS, _ROUNDS, _SWEEPS, _RECORDS = 3000, 24, 3, 20_000


@dataclass(frozen=True, eq=False)
class ParityMoments:
    """E Π_{i∈I} z_i as measured, with the variances of the noise. ``records``: public or noisy, at least 1."""

    domain: Domain
    monomials: tuple[Clique, ...]
    mean: Array
    variance: Array
    records: float

    @classmethod
    def of(cls, domain: Domain, n: float, sums: Iterable[tuple[Sequence[Clique], Measurement]]) -> ParityMoments:
        """From noisy sums; what was measured several times is averaged with weights 1/variance."""
        total: dict[Clique, float] = {}
        weight: dict[Clique, float] = {}
        for monomials, measured in sums:
            # Exact sums would have infinite weight; a thousandth of a record is as good as exact.
            w = 1 / max(measured.standard_deviation / n, 1e-3 / n) ** 2
            for I, value in zip(monomials, measured.values, strict=True):
                total[I] = total.get(I, 0.0) + w * float(value) / n
                weight[I] = weight.get(I, 0.0) + w
        variance = np.array([1 / weight[I] for I in total])
        mean = np.clip(np.array(list(total.values())) * variance, -1, 1)
        return cls(domain, tuple(total), mean, variance, n)

    def only(self, monomials: Sequence[Clique]) -> ParityMoments:
        place = {I: k for k, I in enumerate(self.monomials)}
        at = [place[I] for I in monomials]
        return ParityMoments(self.domain, tuple(monomials), self.mean[at], self.variance[at], self.records)


@dataclass(frozen=True, eq=False)
class ParityFit:
    """Coefficients, their standard errors, how they were found, and what the model expects of other parities."""

    monomials: tuple[Clique, ...]
    c: Array
    error: Array
    how: str
    records: NDArray[np.int64] | None = None  # of the fitted model, when it was not enumerated

    @property
    def coefficients(self) -> dict[Clique, float]:
        return dict(zip(self.monomials, map(float, self.c), strict=True))


def fit_parities(
    moments: ParityMoments, start: Mapping[Clique, float] | None = None, random_state: int = 0
) -> ParityFit:
    """Maximum likelihood with exactly these monomials, under a ridge that makes it exist for any noise."""
    domain, monomials = moments.domain, moments.monomials
    ridge = ridge_of(moments.variance)
    if len(domain) <= MOST_COLUMNS:
        family = ParityFamily(len(domain), positions(domain.names, monomials))
        c, spectrum = family.fit(moments.mean, ridge)
        error = family.standard_errors(spectrum, moments.variance, moments.records)
        return ParityFit(monomials, c, error, "maximum likelihood by enumeration")
    begin = np.array([(start or {}).get(I, 0.0) for I in monomials])
    try:
        engine = get_engine(domain, [*((n,) for n in domain.names), *monomials], memory_limit=TREE_CELLS * 8)
    except CostError:
        return _on_chains(moments, ridge, begin, random_state)
    return _on_tree(engine, moments, ridge, begin, random_state)


def expected_parities(fit: ParityFit, domain: Domain, monomials: Sequence[Clique]) -> tuple[Array, float]:
    """What a fitted model says of these parities, and from how many independent records it is estimated."""
    if fit.records is None:
        family = ParityFamily(len(domain), positions(domain.names, fit.monomials))
        masks = ParityFamily(len(domain), positions(domain.names, monomials)).masks
        return family.spectrum(family.distribution(fit.c)[0])[masks], np.inf
    batch = {name: fit.records[:, i].astype(np.uint8) for i, name in enumerate(domain.names)}
    (sums,) = ParitySums(domain, monomials).sum_rows(batch)
    return sums / len(fit.records), float(len(fit.records))


def _on_tree(engine: ExactEngine, moments: ParityMoments, ridge: Array, begin: Array, random_state: int) -> ParityFit:
    signs = {I: _signs(len(I)) for I in moments.monomials}

    def tables(c: Array) -> dict[Clique, Array]:
        return {I: v * signs[I] for I, v in zip(moments.monomials, c, strict=True)}

    def objective(c: Array) -> tuple[float, Array]:
        beliefs = engine.calibrate(tables(c))
        found = np.array([float((beliefs.probabilities(I) * signs[I]).sum()) for I in moments.monomials])
        value = float(beliefs.log_partition) - float(c @ moments.mean) + 0.5 * float(ridge @ c**2)
        return value, found - moments.mean + ridge * c

    out = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60, "gtol": 1e-6, "maxcor": 30})
    records = np.asarray(engine.calibrate(tables(out.x)).sample(_RECORDS, random_state), dtype=np.int64)
    F = _fisher(parity_features(records, positions(moments.domain.names, moments.monomials)))
    how = "maximum likelihood on the junction tree"
    return ParityFit(moments.monomials, out.x, _errors(F, moments), how, records)


def _on_chains(moments: ParityMoments, ridge: Array, begin: Array, random_state: int) -> ParityFit:
    """Newton steps with the chains' own covariance; steps shrink, the second half is averaged."""
    p, c = len(moments.domain), begin.copy()
    where = positions(moments.domain.names, moments.monomials)
    means = np.zeros(p)
    for I, value in zip(where, moments.mean, strict=True):
        if len(I) == 1:
            means[I[0]] = value
    chains = ParityChains.start(means.clip(-0.999, 0.999), _CHAINS, random_state)
    chains.sweep(where, c, 10)
    average, kept, F = np.zeros_like(c), [], np.eye(len(c))
    for t in range(_ROUNDS):
        x = []
        for _ in range(_SWEEPS):
            chains.sweep(where, c)
            x.append(chains.features(where))
        features = np.concatenate(x)
        F = _fisher(features)
        gradient = features.mean(axis=0) - moments.mean + ridge * c
        step = np.linalg.solve(F + np.diag(ridge + 0.02), gradient)
        rate = 1.0 / (1 + max(t - _ROUNDS // 4, 0)) ** 0.7
        c = c - rate * np.clip(step, -0.3, 0.3)
        if t >= _ROUNDS // 2:
            average = average + c
            kept.append(chains.codes)
    how = "maximum likelihood by persistent Gibbs chains, approximate"
    c = average / len(kept)
    return ParityFit(moments.monomials, c, _errors(F, moments), how, np.concatenate(kept[-6:]))


def _fisher(features: NDArray[np.float32]) -> Array:
    centred = features - features.mean(axis=0)
    return np.asarray(centred.T @ centred / len(features), dtype=np.float64)


def _errors(F: Array, moments: ParityMoments) -> Array:
    inverse = np.linalg.inv(F + 1e-3 * np.eye(len(F)))
    return np.sqrt((inverse**2) @ moments.variance + np.maximum(np.diag(inverse), 0.0) / moments.records)


def _signs(order: int) -> Array:
    return np.asarray(reduce(np.multiply.outer, [SIGNS] * order))
