"""Chains of an Ising model, many at once: columns that do not interact are redrawn together, by one matrix product.

For moments on graphs that are too wide for the junction tree. A persistent state makes it the oracle of stochastic
maximum likelihood: parameters move a little, the chains follow.

**The same chains on every machine.** A state depends on all before it, so that one last bit, which processors and
libraries round differently, would soon make other chains of them, and a release could not be checked elsewhere. So
weights are taken to multiples of 2⁻¹², whose sums are exact in any order, and what a spin does in a field is read off
a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Spins = NDArray[np.float32]
RandomState = int | np.random.Generator | None
_STEPS = 2**12  # of the grid, to one: sums of 4,096 in all are exact in single precision
_FAR = 10 * _STEPS  # beyond a field of 10, a spin is up but for one time in 10⁸
_tanh = np.tanh(np.arange(-_FAR, _FAR + 1) / _STEPS)
_MEAN = (np.round(_tanh * _STEPS) / _STEPS).astype(np.float32)  # on the grid too: means of chains are exact
_CHANCE = ((1 + _tanh) / 2).astype(np.float32)  # P(z = 1) = σ(2h)


def on_grid(weights: Array) -> Spins:
    """The nearest multiples of 2⁻¹²."""
    return np.asarray(np.round(weights * _STEPS) / _STEPS, dtype=np.float32)


def redrawn(field: Spins, rng: np.random.Generator) -> Spins:
    """Spins, each given its field, a multiple of 2⁻¹²."""
    up = rng.random(field.shape, dtype=np.float32) < _CHANCE[_place(field)]
    return np.where(up, np.float32(1), np.float32(-1))


def _place(field: Spins) -> NDArray[np.int32]:
    return np.asarray(np.clip(field * _STEPS, -_FAR, _FAR), dtype=np.int32) + _FAR


def colour_classes(A: Array) -> list[NDArray[np.intp]]:
    """Sets of columns without couplings inside, greedily: the columns with most couplings first."""
    linked = A != 0
    colour = np.full(len(A), -1)
    for i in np.argsort(-linked.sum(axis=1), kind="stable"):
        taken = set(colour[linked[i]].tolist())
        colour[i] = next(c for c in range(len(A) + 1) if c not in taken)
    return [np.flatnonzero(colour == c) for c in range(colour.max(initial=-1) + 1)]


def independent_spins(means: Array, chains: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """±1 with these means, a row for each chain."""
    return np.where(rng.random((chains, len(means))) < (1 + means) / 2, np.float32(1), np.float32(-1))


@dataclass
class SpinChains:
    """``chains`` states of p spins and their source of randomness. :meth:`moments` moves them."""

    states: Spins
    rng: np.random.Generator

    @classmethod
    def start(cls, means: Array, chains: int, random_state: RandomState = 0) -> SpinChains:
        """Independent spins with these means."""
        rng = np.random.default_rng(random_state)
        return cls(independent_spins(means, chains, rng), rng)

    def sweep(self, A: Array, theta: Array, classes: list[NDArray[np.intp]]) -> None:
        """Redraw every column of every chain once."""
        x, weights, own = self.states, on_grid(A), on_grid(theta)
        for block in classes:
            x[:, block] = redrawn(x @ weights[:, block] + own[block], self.rng)

    def moments(self, A: Array, theta: Array, sweeps: int = 1) -> tuple[Array, Array]:
        """E z_i and E z_i z_j estimated over this many sweeps, each with z_i replaced by its mean given the others."""
        classes = colour_classes(A)
        p = len(A)
        single, double = np.zeros(p), np.zeros((p, p))
        weights, own = on_grid(A), on_grid(theta)
        for _ in range(sweeps):
            self.sweep(A, theta, classes)
            mean = _MEAN[_place(self.states @ weights + own)]
            single += mean.sum(axis=0)
            double += mean.T @ self.states
        total = sweeps * len(self.states)
        return single / total, (double + double.T) / (2 * total)
