"""Maximum likelihood of an Ising model from noisy moments: post-processing, whatever the noise was.

Exact by enumeration up to 20 columns, exact on the junction tree when the chosen couplings form a graph that is narrow
enough, and otherwise by persistent Gibbs chains from a Bethe start [RT12]. The model says which.

[RT12] Ricci-Tersenghi, "The Bethe approximation for solving the inverse Ising problem", J. Stat. Mech. 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ...domain import Clique, Domain
from ...errors import CostError
from ...inference.exact import ExactEngine, get_engine
from ...inference.spins import SpinChains
from ...models.ising import PRODUCTS, SIGNS
from .enumeration import MOST_COLUMNS, ParityFamily
from .moments import SpinMoments

Array = NDArray[np.float64]
Pair = tuple[int, int]
TREE_CELLS = 1 << 19  # of a junction tree that will be calibrated some fifty times
PRIOR = 0.3  # typical size of a coupling: where noise is far larger than signal, estimates go to zero
GENEROUS_CUT = 2.5  # standard errors beyond which a coupling is looked at again
BOUNDED_CUT = 3.0  # standard errors that a coupling must show when a bound on their number keeps out the false ones
_CHAINS, _ROUNDS, _SWEEPS = 1500, 60, 4
_REWEIGHTINGS = 3
_AT_ONCE = 3  # pairs added before the next fit


@dataclass(frozen=True, eq=False)
class IsingFit:
    """Couplings, fields, and how they were found."""

    A: Array
    theta: Array
    how: str


def fit_support(domain: Domain, moments: SpinMoments, pairs: Sequence[Pair], random_state: int = 0) -> IsingFit:
    """Maximum likelihood with couplings on these pairs only."""
    p = moments.p
    if p <= MOST_COLUMNS:
        return _enumerated(moments, pairs)
    names = domain.names
    cliques = [(n,) for n in names] + [(names[i], names[j]) for i, j in pairs]
    try:
        engine = get_engine(domain, cliques, memory_limit=TREE_CELLS * 8)
    except CostError:
        return _sampled(moments, pairs, random_state)
    return _on_tree(domain, engine, moments, pairs)


def ridge_of(variance: Array) -> Array:
    """Of a noisy moment, in the likelihood: a normal prior of standard deviation ``PRIOR`` against its noise."""
    return np.minimum(variance / PRIOR**2, 1e6)


def _enumerated(moments: SpinMoments, pairs: Sequence[Pair]) -> IsingFit:
    p = moments.p
    family = ParityFamily(p, (*((i,) for i in range(p)), *pairs))
    target, variance = _flat(moments, pairs)
    plain = ridge_of(variance)
    ridge = plain
    # Where the Fisher information F is small, noise is amplified by 1/F, and the ridge of a posterior mode is too.
    for _ in range(_REWEIGHTINGS):
        c, spectrum = family.fit(target, ridge)
        inverse = np.linalg.inv(family.fisher(spectrum) + np.diag(ridge + 1e-9))
        ridge = plain * np.maximum(np.diag(inverse), 1.0)
    return _unflat(c, p, pairs, "maximum likelihood by enumeration")


def _flat(moments: SpinMoments, pairs: Sequence[Pair]) -> tuple[Array, Array]:
    i, j = _index(pairs)
    return (
        np.concatenate([moments.single, moments.double[i, j]]),
        np.concatenate([moments.single_variance, moments.double_variance[i, j]]),
    )


def _index(pairs: Sequence[Pair]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    both = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _unflat(c: Array, p: int, pairs: Sequence[Pair], how: str) -> IsingFit:
    i, j = _index(pairs)
    A = np.zeros((p, p))
    A[i, j] = A[j, i] = c[p:]
    return IsingFit(A, c[:p].copy(), how)


def _on_tree(domain: Domain, engine: ExactEngine, moments: SpinMoments, pairs: Sequence[Pair]) -> IsingFit:
    p, names = moments.p, domain.names
    target, variance = _flat(moments, pairs)
    ridge = ridge_of(variance)
    keys: list[Clique] = [*((n,) for n in names), *((names[i], names[j]) for i, j in pairs)]

    def objective(c: Array) -> tuple[float, Array]:
        tables = {k: v * (SIGNS if len(k) == 1 else PRODUCTS) for k, v in zip(keys, c, strict=True)}
        beliefs = engine.calibrate(tables)
        found = np.array([float((beliefs.probabilities(k) * (SIGNS if len(k) == 1 else PRODUCTS)).sum()) for k in keys])
        value = float(beliefs.log_partition) - float(c @ target) + 0.5 * float(ridge @ c**2)
        return value, found - target + ridge * c

    start = _local(moments, pairs)
    out = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 60, "gtol": 1e-6, "maxcor": 30})
    return _unflat(out.x, p, pairs, "maximum likelihood on the junction tree")


def _local(moments: SpinMoments, pairs: Sequence[Pair]) -> Array:
    """Each coupling from its own pair alone: exact for a matching, a start for the rest."""
    i, j = _index(pairs)
    m_i, m_j, m_ij = moments.single[i], moments.single[j], moments.double[i, j]
    plus, minus = 1 + m_ij, 1 - m_ij
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = (plus**2 - (m_i + m_j) ** 2) / (minus**2 - (m_i - m_j) ** 2)
        coupling = np.where(np.isfinite(odds) & (odds > 0), 0.25 * np.log(np.abs(odds)), 0.0)
    theta = np.arctanh(np.clip(moments.single, -0.95, 0.95))
    return np.concatenate([np.zeros_like(theta) if len(pairs) > 3 * moments.p else theta * 0.5, coupling.clip(-1, 1)])


def _sampled(moments: SpinMoments, pairs: Sequence[Pair], random_state: int) -> IsingFit:
    """Stochastic maximum likelihood: chains follow the parameters, steps shrink, the second half is averaged."""
    p = moments.p
    i, j = _index(pairs)
    target, variance = _flat(moments, pairs)
    ridge = ridge_of(variance)
    c = np.concatenate(
        [np.zeros(p), bethe_couplings(moments)[i, j] if len(pairs) > 3 * p else _local(moments, pairs)[p:]]
    )
    c[:p] = _fields(moments, _unflat(c, p, pairs, "").A)
    chains = SpinChains.start(moments.single.clip(-0.999, 0.999), _CHAINS, random_state)
    average, count = np.zeros_like(c), 0
    for t in range(_ROUNDS):
        model = _unflat(c, p, pairs, "")
        single, double = chains.moments(model.A, model.theta, 10 if t == 0 else _SWEEPS)
        found = np.concatenate([single, double[i, j]])
        spread = np.maximum(1 - found**2, 0.1)
        rate = 0.9 / (1 + max(t - _ROUNDS // 4, 0)) ** 0.6
        c = c - rate * np.clip((found - target + ridge * c) / (spread + ridge), -0.3, 0.3)
        if t >= _ROUNDS // 2:
            average, count = average + c, count + 1
    return _unflat(average / count, p, pairs, "maximum likelihood by persistent Gibbs chains, approximate")


def spin_moments(A: Array, theta: Array, random_state: int = 0) -> tuple[Array, Array]:
    """E z_i and E z_i z_j of a model: by enumeration, or by Gibbs chains where there are too many columns for it."""
    p = len(A)
    if p > MOST_COLUMNS:
        chains = SpinChains.start(np.zeros(p), _CHAINS, random_state)
        chains.moments(A, theta, 10 * _SWEEPS)
        return chains.moments(A, theta, _ROUNDS)
    pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
    family = ParityFamily(p, (*((i,) for i in range(p)), *pairs))
    i, j = _index(pairs)
    spectrum = family.spectrum(family.distribution(np.concatenate([theta, A[i, j]]))[0])[family.masks]
    double = np.eye(p)
    double[i, j] = double[j, i] = spectrum[p:]
    return spectrum[:p], double


def _fields(moments: SpinMoments, A: Array) -> Array:
    m = moments.single.clip(-0.95, 0.95)
    return np.asarray(np.arctanh(m) - A @ m).clip(-2, 2)


# -- which couplings are there ---------------------------------------------------------------------------------------


def bethe_couplings(moments: SpinMoments) -> Array:
    """All couplings at once from the inverse of the connected correlations: exact on trees [RT12, eq. 20]."""
    m = moments.single.clip(-0.99, 0.99)
    inverse = _inverse_correlations(moments)
    mm, v = np.outer(m, m), np.outer(1 - m**2, 1 - m**2)
    c = np.where(np.abs(inverse) < 1e-12, 1e-12, inverse)
    root = np.sqrt(1 + 4 * v * c**2)
    inner = np.sqrt(np.maximum((root - 2 * mm * c) ** 2 - 4 * c**2, 0.0))
    J = -np.arctanh(np.clip((root - 2 * mm * c - inner) / (2 * c), -0.99, 0.99))
    np.fill_diagonal(J, 0.0)
    return np.asarray((J + J.T) / 2)


def _inverse_correlations(moments: SpinMoments) -> Array:
    m = moments.single.clip(-0.99, 0.99)
    C = np.where(np.isfinite(moments.double_variance), moments.double, np.outer(m, m)) - np.outer(m, m)
    np.fill_diagonal(C, 1 - m**2)
    values, vectors = np.linalg.eigh(C)
    # Noise may have made it indefinite; below a tenth nothing is certain, and the inverse would explode.
    return np.asarray((vectors / np.maximum(values, 0.1)) @ vectors.T)


def coupling_scores(domain: Domain, moments: SpinMoments) -> tuple[Array, Array]:
    """Couplings of all measured pairs together, and each in units of its own standard error."""
    p = moments.p
    pairs = moments.measured_pairs()
    noise = np.where(np.isfinite(moments.double_variance), moments.double_variance, 0.0)
    if p <= MOST_COLUMNS:
        family = ParityFamily(p, (*((i,) for i in range(p)), *pairs))
        target, variance = _flat(moments, pairs)
        c, spectrum = family.fit(target, ridge_of(variance))
        A = _unflat(c, p, pairs, "").A
        error = _unflat(family.standard_errors(spectrum, variance, moments.records), p, pairs, "").A
    else:
        A = np.where(np.isfinite(moments.double_variance), bethe_couplings(moments), 0.0)
        # Noise E that is independent from pair to pair moves C⁻¹ by C⁻¹EC⁻¹; that of n Gaussian records is Wishart.
        inverse = _inverse_correlations(moments)
        squares, own = inverse**2, np.diag(inverse)
        error = np.sqrt(squares @ noise @ squares + (np.outer(own, own) + squares) / moments.records)
    return A, np.divide(A, error, out=np.zeros_like(A), where=error > 0)


def significant_pairs(
    domain: Domain,
    moments: SpinMoments,
    *,
    most: int | None = None,
    least: float = 0.0,
    generous: bool = False,
) -> tuple[list[Pair], bool]:
    """The measured pairs whose coupling stands out of the noise, and whether nearly all pairs seem to have one.

    Among m couplings of nothing but noise the largest is some √(2 ln m) standard errors: what lies above that, with
    half a standard error to spare, is taken. Where more than half of all couplings look real, leaving out the small
    ones would cost as much as it saves, and all are kept. ``most`` keeps the largest, ``least`` those of that size.
    ``generous`` names all that may turn out to be real when they are measured again, and some that will not.
    """
    A, z = coupling_scores(domain, moments)
    pairs = moments.measured_pairs()
    if not pairs:
        return [], False
    i, j = _index(pairs)
    size, strength = np.abs(z[i, j]), np.abs(A[i, j])
    dense = most is None and least == 0 and mostly_real(size < 1, 0.683)
    cut = math.sqrt(2 * math.log(max(len(pairs), 2))) + 0.5
    if most is not None:
        cut = min(cut, BOUNDED_CUT)
    if generous:
        cut, least, most = min(cut, GENEROUS_CUT), 0.0, None if most is None else 2 * most
    keep = np.ones(len(pairs), dtype=bool) if dense else size > cut
    if least > 0:
        keep = (strength >= least / 2) & (size > 1)
    if most is not None and keep.sum() > most:
        order = np.argsort(-np.where(keep, size, -1.0), kind="stable")
        keep = np.zeros(len(pairs), dtype=bool)
        keep[order[:most]] = True
    return [pair for pair, kept in zip(pairs, keep, strict=True) if kept], dense


def mostly_real(small: NDArray[np.bool_], probability: float) -> bool:
    """Whether clearly more than half of many estimates are of something: far fewer of them are small than there would
    be if half were noise, of which this part is small."""
    m = len(small)
    expected = 0.5 * m * probability
    slack = 1.5 * math.sqrt(expected * (1 - probability))
    return m > 3 and float(small.sum()) < expected - slack


def project_width(A: Array, theta: Array, width: float) -> tuple[Array, Array]:
    """Scale down rows that are wider than λ, and keep A symmetric: each coupling by the stricter of its two rows."""
    row = np.abs(A).sum(axis=1) + np.abs(theta)
    factor = np.minimum(1.0, np.divide(width, row, out=np.ones_like(row), where=row > 0))
    return A * np.minimum(factor[:, None], factor), theta * factor


def explained(moments: SpinMoments, pairs: Sequence[Pair]) -> list[Pair]:
    """These pairs, and as many more as it takes until no measured correlation contradicts the fit.

    Where columns are strongly correlated, no coupling may stand out of the noise although together they are plainly
    there. Pairs are added by how far the fit is from what was measured, while that is more than noise. Up to 20
    columns, where a fit is cheap.
    """
    found = list(pairs)
    measured = moments.measured_pairs()
    if moments.p > MOST_COLUMNS or not measured:
        return found
    i, j = _index(measured)
    cut = math.sqrt(2 * math.log(max(len(measured), 2))) + 0.5
    error = np.sqrt(moments.double_variance[i, j] + (1 - moments.double[i, j] ** 2) / moments.records)
    everything = ParityFamily(moments.p, tuple(measured))
    while len(found) < len(measured):
        fit = _enumerated(moments, found)
        family = ParityFamily(moments.p, (*((k,) for k in range(moments.p)), *found))
        a, b = _index(found)
        spectrum = family.spectrum(family.distribution(np.concatenate([fit.theta, fit.A[a, b]]))[0])
        misfit = np.abs(moments.double[i, j] - spectrum[everything.masks]) / error
        misfit[[measured.index(pair) for pair in found]] = 0.0
        worst = [at for at in np.argsort(-misfit, kind="stable")[:_AT_ONCE] if misfit[at] > cut]
        if not worst:
            break
        found += [measured[at] for at in worst]
    return sorted(found)


def sparse_of(
    fit: IsingFit, moments: SpinMoments, pairs: Sequence[Pair], *, most: int | None = None, least: float = 0.0
) -> list[Pair]:
    """Of fitted couplings on a few pairs, those that stand out; on more columns than can be enumerated, with errors as
    if pairs hardly influenced each other."""
    i, j = _index(pairs)
    strength = np.abs(fit.A[i, j])
    if moments.p <= MOST_COLUMNS:
        family = ParityFamily(moments.p, (*((k,) for k in range(moments.p)), *pairs))
        c = np.concatenate([fit.theta, fit.A[i, j]])
        spectrum = family.spectrum(family.distribution(c)[0])
        error = family.standard_errors(spectrum, _flat(moments, pairs)[1], moments.records)[moments.p :]
    else:
        spread = np.maximum(1 - moments.double[i, j] ** 2, 0.2)
        error = 1.3 * np.sqrt(moments.double_variance[i, j] + spread / moments.records) / spread
    cut = math.sqrt(2 * math.log(max(moments.p * (moments.p - 1) // 2, 2))) + 0.5
    if most is not None:
        cut = min(cut, BOUNDED_CUT)
    keep = strength > cut * error if least == 0 else strength >= least / 2
    if most is not None and keep.sum() > most:
        keep[np.argsort(-np.where(keep, strength / error, -1.0), kind="stable")[most:]] = False
    return [pair for pair, kept in zip(pairs, keep, strict=True) if kept]
