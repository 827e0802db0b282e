"""Exponential families of parities, P(z) ∝ exp(Σ_I c_I Π_{i∈I} z_i) on {−1, +1}ᵖ, by enumeration of all 2ᵖ records.

The sums over I for all records at once are a Walsh–Hadamard transform, and so are all parity moments of a distribution:
2ᵖ·p additions instead of 2ᵖ·m products. The Fisher information costs nothing more: Cov(χ_I, χ_J) = E χ_{I△J} − E χ_I
E χ_J. So maximum likelihood is a few Newton steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_COLUMNS = 20  # a million records
_RADIX = 5  # columns a matrix product takes: blocks of 32
_NEWTON_STEPS = 40


def walsh_hadamard(x: Array) -> Array:
    """y[s] = Σ_I x[I] (−1)^|I ∩ s| over subsets as bit patterns; its own inverse up to a factor 2ᵖ."""
    out: Array = np.asarray(x, dtype=np.float64)
    left = out.size.bit_length() - 1
    while left:
        columns = min(_RADIX, left)
        # The last few bits are transformed by one product, and moved to the front: in the end all are back in place.
        out = (out.reshape(-1, 1 << columns) @ _hadamard(columns)).T.reshape(-1)
        left -= columns
    return out


def _hadamard(columns: int) -> Array:
    s = np.arange(1 << columns)
    return np.asarray(1.0 - 2.0 * (np.bitwise_count(s[:, None] & s) & 1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ParityFamily:
    """The family of these monomials over p columns, each monomial a tuple of positions."""

    p: int
    monomials: tuple[tuple[int, ...], ...]

    @cached_property
    def masks(self) -> NDArray[np.intp]:
        return np.array([sum(1 << (self.p - 1 - i) for i in I) for I in self.monomials], dtype=np.intp)

    @cached_property
    def _parity(self) -> Array:
        """(−1)^|I|: a record's bits are 0 for z = −1, so Π z_i = (−1)^|I| (−1)^|I ∩ s|."""
        return np.array([(-1.0) ** len(I) for I in self.monomials])

    def distribution(self, c: Array) -> tuple[Array, float]:
        """All 2ᵖ probabilities, and log Z."""
        table = np.zeros(1 << self.p)
        table[self.masks] = c * self._parity
        h = walsh_hadamard(table)
        top = float(h.max())
        weights = np.exp(h - top)
        total = float(weights.sum())
        return weights / total, top + math.log(total)

    def spectrum(self, probabilities: Array) -> Array:
        """E Π_{i∈I} z_i for every one of the 2ᵖ sets I."""
        return np.asarray(walsh_hadamard(probabilities) * self._signs, dtype=np.float64)

    @cached_property
    def _signs(self) -> Array:
        return np.asarray(1.0 - 2.0 * (np.bitwise_count(np.arange(1 << self.p)) & 1), dtype=np.float64)

    def fisher(self, spectrum: Array) -> Array:
        """Covariance of the parities of this family."""
        mean = spectrum[self.masks]
        out: Array = spectrum[self.masks[:, None] ^ self.masks] - np.outer(mean, mean)
        return out

    def fit(self, moments: Array, ridge: Array | float = 0.0, start: Array | None = None) -> tuple[Array, Array]:
        """Coefficients that minimise log Z − ⟨c, moments⟩ + ½ ridge·c², and the spectrum there.

        Newton's method with halving; the objective is convex, and strictly so with a ridge, which also makes a
        minimum exist when noise has moved the moments to where no distribution has them.
        """
        c = np.zeros(len(self.monomials)) if start is None else np.array(start, dtype=np.float64)
        weight = np.broadcast_to(np.asarray(ridge, dtype=np.float64), c.shape)

        def objective(at: Array) -> tuple[float, Array]:
            probabilities, log_z = self.distribution(at)
            return log_z - float(at @ moments) + 0.5 * float(weight @ at**2), probabilities

        value, probabilities = objective(c)
        spectrum = self.spectrum(probabilities)
        for _ in range(_NEWTON_STEPS):
            gradient = spectrum[self.masks] - moments + weight * c
            if np.abs(gradient).max(initial=0.0) < 1e-9:
                break
            hessian = self.fisher(spectrum)
            hessian[np.diag_indices_from(hessian)] += weight + 1e-12
            step = np.linalg.solve(hessian, gradient)
            expected = float(gradient @ step)
            size = min(1.0, 2.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
            while size > 1e-6:
                trial, trial_probabilities = objective(c - size * step)
                if trial <= value - 0.25 * size * expected + 1e-13 * abs(value):
                    break
                size /= 2
            else:
                break
            c, value, probabilities = c - size * step, trial, trial_probabilities
            spectrum = self.spectrum(probabilities)
        return c, spectrum

    def standard_errors(self, spectrum: Array, variances: Array, records: float) -> Array:
        """Of the coefficients: noise of these variances on the moments, plus the sampling of this many records.

        The coefficients respond to the moments by F⁻¹, so the covariance is F⁻¹(N + F/n)F⁻¹ with N diagonal.
        """
        inverse = np.linalg.pinv(self.fisher(spectrum), hermitian=True)
        return np.sqrt((inverse**2) @ variances + np.maximum(np.diag(inverse), 0.0) / records)


def positions(names: Sequence[str], monomials: Sequence[tuple[str, ...]]) -> tuple[tuple[int, ...], ...]:
    """Monomials by position instead of by name."""
    place = {name: i for i, name in enumerate(names)}
    return tuple(tuple(place[n] for n in I) for I in monomials)
