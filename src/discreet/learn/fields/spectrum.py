"""The spectrum of a large symmetric matrix, seen through a few vectors: Lanczos' method.

For each vector q it gives a quadrature of its measure on the eigenvalues h: nodes and weights with
qᵀf(A)q ≈ Σ weight·f(h). A step takes one product with the matrix; a few tell what smooth functions f need.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_STEPS, CHECKED, SETTLED = 32, 4, 0.1
"""Steps at most; fewer where the logarithm of what is sought changes by less than 0.1 from one check to the next, every
four steps. What is sought is a minimiser, and the minimum is flat."""
LEAST_EIGENVALUE = 1e-15  # below it is rounding
_ROUNDING = 1e-12  # of the largest product seen


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Σ f(h)·weight over nodes: for vectors distributed as the prior with σ² = 1, and for those like the noise."""

    h: Array
    prior: Array
    noise_h: Array
    noise: Array


def lanczos(product: Callable[[Array], Array], probes: Array, sought: Callable[[Spectrum], float]) -> Spectrum:
    """Through the rows of ``probes``, the first half of them the prior's; ``product`` is that of the matrix with each
    row, and ``sought`` the positive number that the spectrum is needed for."""
    lengths = np.sqrt((probes**2).sum(axis=1))
    basis = [probes / np.maximum(lengths, 1e-300)[:, None]]
    diagonal: list[Array] = []
    beside: list[Array] = []
    last = 0.0
    for step in range(1, MOST_STEPS + 1):
        q = basis[-1]
        out = product(q)
        diagonal.append((out * q).sum(axis=1))
        for _ in range(2):  # once is not enough to stay orthogonal
            for b in basis:
                out -= (out * b).sum(axis=1, keepdims=True) * b
        left = np.sqrt((out**2).sum(axis=1))
        # Few cells are soon exhausted. What is left then is rounding, and must not be blown up to a direction.
        left[left <= _ROUNDING * np.abs(diagonal).max(axis=0)] = 0.0
        beside.append(left)
        if step % CHECKED == 0:
            seen = _quadrature(np.array(diagonal), np.array(beside[:-1]), lengths)
            found = sought(seen)
            if last and abs(math.log(found / last)) < SETTLED:
                break
            last = found
        basis.append(np.divide(out, left[:, None], out=np.zeros_like(out), where=left[:, None] > 0))
    return seen


def _quadrature(diagonal: Array, beside: Array, lengths: Array) -> Spectrum:
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
    return Spectrum(h[:half], w[:half], h[half:], w[half:])


def signs(count: int, number: int = 0, *, start: int | None = None) -> Array:
    """Fixed signs without a pattern: one bit of a mixed counter (splitmix64), from the ``number``-th of 2³² or from
    ``start``. They protect nothing."""
    first = (number << 32) if start is None else start
    z = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where((z >> np.uint64(63)).astype(bool), 1.0, -1.0)
