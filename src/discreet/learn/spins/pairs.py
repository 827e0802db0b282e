"""What is special about order 2, an Ising model: matrices instead of lists of monomials make many columns fast.

Couplings of all pairs at once from the inverse of the correlations (Bethe approximation [RT12]), and maximum likelihood
by chains that redraw all columns of a colour together.

[RT12] Ricci-Tersenghi, "The Bethe approximation for solving the inverse Ising problem", J. Stat. Mech. 2012.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique
from ...inference.spins import SpinChains
from .enumeration import positions
from .moments import Moments

Array = NDArray[np.float64]
Index = tuple[NDArray[np.intp], NDArray[np.intp]]
_CHAINS, _ROUNDS, _SWEEPS = 1500, 60, 4
_DENSE = 3  # pairs a column beyond which the couplings of all pairs together are the better start


def index_of(names: Sequence[str], pairs: Sequence[Clique]) -> Index:
    """Rows and columns of these pairs in a p × p matrix."""
    both = np.array(positions(names, pairs), dtype=np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def matrix_of(p: int, index: Index, values: Array) -> Array:
    out = np.zeros((p, p))
    i, j = index
    out[i, j] = out[j, i] = values
    return out


# -- all couplings at once ---------------------------------------------------------------------------------------------


def bethe_couplings(moments: Moments) -> Array:
    """All couplings at once from the inverse of the connected correlations: exact on trees [RT12, eq. 20]."""
    m = moments.matrices.single.clip(-0.99, 0.99)
    inverse = _inverse_correlations(moments)
    mm, v = np.outer(m, m), np.outer(1 - m**2, 1 - m**2)
    c = np.where(np.abs(inverse) < 1e-12, 1e-12, inverse)
    root = np.sqrt(1 + 4 * v * c**2)
    inner = np.sqrt(np.maximum((root - 2 * mm * c) ** 2 - 4 * c**2, 0.0))
    J = -np.arctanh(np.clip((root - 2 * mm * c - inner) / (2 * c), -0.99, 0.99))
    np.fill_diagonal(J, 0.0)
    return np.asarray((J + J.T) / 2)


def bethe_errors(moments: Moments) -> Array:
    """Standard errors of :func:`bethe_couplings`: noise E that is independent from pair to pair moves C⁻¹ by C⁻¹EC⁻¹;
    that of n Gaussian records is Wishart."""
    inverse = _inverse_correlations(moments)
    variance = moments.matrices.double_variance
    noise = np.where(np.isfinite(variance), variance, 0.0)
    squares, own = inverse**2, np.diag(inverse)
    return np.sqrt(squares @ noise @ squares + (np.outer(own, own) + squares) / moments.records)


def _inverse_correlations(moments: Moments) -> Array:
    single, double, _, variance = moments.matrices
    m = single.clip(-0.99, 0.99)
    C = np.where(np.isfinite(variance), double, np.outer(m, m)) - np.outer(m, m)
    np.fill_diagonal(C, 1 - m**2)
    values, vectors = np.linalg.eigh(C)
    # Noise may have made it indefinite; below a tenth nothing is certain, and the inverse would explode.
    return np.asarray((vectors / np.maximum(values, 0.1)) @ vectors.T)


def lone_errors(moments: Moments) -> Array:
    """Standard errors of couplings on these pairs as if pairs hardly influenced each other."""
    mean, variance = moments.at(moments.joint)
    spread = np.maximum(1 - mean**2, 0.2)
    return np.asarray(1.3 * np.sqrt(variance + spread / moments.records) / spread)


# -- maximum likelihood ------------------------------------------------------------------------------------------------


def lone_start(moments: Moments) -> Array:
    """Each coupling from its own pair alone: exact for a matching, a start for the rest."""
    i, j = index_of(moments.domain.names, moments.joint)
    single = moments.matrices.single
    m_i, m_j, m_ij = single[i], single[j], moments.at(moments.joint)[0]
    plus, minus = 1 + m_ij, 1 - m_ij
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = (plus**2 - (m_i + m_j) ** 2) / (minus**2 - (m_i - m_j) ** 2)
        coupling = np.where(np.isfinite(odds) & (odds > 0), 0.25 * np.log(np.abs(odds)), 0.0)
    theta = np.zeros_like(single) if len(i) > _DENSE * moments.p else 0.5 * np.arctanh(np.clip(single, -0.95, 0.95))
    return np.concatenate([theta, coupling.clip(-1, 1)])


def on_coloured_chains(moments: Moments, ridge: Array, random_state: int) -> Array:
    """Stochastic maximum likelihood: chains follow the parameters, steps shrink, the second half is averaged."""
    p = moments.p
    i, j = index = index_of(moments.domain.names, moments.joint)
    single = moments.matrices.single
    dense = len(i) > _DENSE * p
    c = np.concatenate([np.zeros(p), bethe_couplings(moments)[i, j] if dense else lone_start(moments)[p:]])
    m = single.clip(-0.95, 0.95)
    c[:p] = np.asarray(np.arctanh(m) - matrix_of(p, index, c[p:]) @ m).clip(-2, 2)
    chains = SpinChains.start(single.clip(-0.999, 0.999), _CHAINS, random_state)
    average, count = np.zeros_like(c), 0
    for t in range(_ROUNDS):
        means, products = chains.moments(matrix_of(p, index, c[p:]), c[:p], 10 if t == 0 else _SWEEPS)
        found = np.concatenate([means, products[i, j]])
        spread = np.maximum(1 - found**2, 0.1)
        rate = 0.9 / (1 + max(t - _ROUNDS // 4, 0)) ** 0.6
        c = c - rate * np.clip((found - moments.mean + ridge * c) / (spread + ridge), -0.3, 0.3)
        if t >= _ROUNDS // 2:
            average, count = average + c, count + 1
    return average / count


def parities_by_chains(A: Array, theta: Array, random_state: int) -> tuple[Array, Array]:
    """E z_i and E z_i z_j of an Ising model with many columns."""
    chains = SpinChains.start(np.zeros(len(A)), _CHAINS, random_state)
    chains.moments(A, theta, 10 * _SWEEPS)
    return chains.moments(A, theta, _ROUNDS)
