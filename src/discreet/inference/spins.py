"""Chains of an Ising model, many at once: columns that do not interact are redrawn together, by one matrix product.

For moments on graphs that are too wide for the junction tree. A persistent state makes it the oracle of stochastic
maximum likelihood: parameters move a little, the chains follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RandomState = int | np.random.Generator | None


def colour_classes(A: Array) -> list[NDArray[np.intp]]:
    """Sets of columns without couplings inside, greedily: the columns with most couplings first."""
    linked = A != 0
    colour = np.full(len(A), -1)
    for i in np.argsort(-linked.sum(axis=1), kind="stable"):
        taken = set(colour[linked[i]].tolist())
        colour[i] = next(c for c in range(len(A) + 1) if c not in taken)
    return [np.flatnonzero(colour == c) for c in range(colour.max(initial=-1) + 1)]


@dataclass
class SpinChains:
    """``chains`` states of p spins and their source of randomness. :meth:`moments` moves them."""

    states: NDArray[np.float32]
    rng: np.random.Generator

    @classmethod
    def start(cls, means: Array, chains: int, random_state: RandomState = 0) -> SpinChains:
        """Independent spins with these means."""
        rng = np.random.default_rng(random_state)
        up = rng.random((chains, len(means))) < (1 + means) / 2
        return cls(np.where(up, np.float32(1), np.float32(-1)), rng)

    def sweep(self, A: Array, theta: Array, classes: list[NDArray[np.intp]]) -> None:
        """Redraw every column of every chain once."""
        x = self.states
        for block in classes:
            field = x @ A[:, block].astype(np.float32) + theta[block].astype(np.float32)
            u = self.rng.random(field.shape, dtype=np.float32)
            # P(z = 1) = σ(2h); u < σ(2h) as u·(1 + e^{−2h}) < 1 would overflow silently, tanh does not
            x[:, block] = np.where(2 * u - 1 < np.tanh(field), np.float32(1), np.float32(-1))

    def moments(self, A: Array, theta: Array, sweeps: int = 1) -> tuple[Array, Array]:
        """E z_i and E z_i z_j estimated over this many sweeps, each with z_i replaced by its mean given the others."""
        classes = colour_classes(A)
        p = len(A)
        single, double = np.zeros(p), np.zeros((p, p))
        A4, theta4 = A.astype(np.float32), theta.astype(np.float32)
        for _ in range(sweeps):
            self.sweep(A, theta, classes)
            mean = np.tanh(self.states @ A4 + theta4)
            single += mean.mean(axis=0)
            double += mean.T @ self.states
        double /= sweeps * len(self.states)
        return single / sweeps, (double + double.T) / 2
