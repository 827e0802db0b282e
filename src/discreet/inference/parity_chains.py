"""Persistent Gibbs chains of P(z) ∝ exp(Σ_I c_I Π_{i∈I} z_i), many at once, for monomials of any order.

They are the same on every machine, see :mod:`.spins`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .spins import Array, Spins, independent_spins, on_grid, redrawn

Monomials = Sequence[tuple[int, ...]]


@dataclass
class ParityChains:
    """``states`` has one row a chain and one column a spin, and a last column that is always +1."""

    states: Spins
    rng: np.random.Generator

    @classmethod
    def start(cls, means: Array, chains: int, random_state: int = 0) -> ParityChains:
        """Independent spins with these means."""
        rng = np.random.default_rng(random_state)
        spins = independent_spins(means, chains, rng)
        return cls(np.hstack([spins, np.ones((chains, 1), dtype=np.float32)]), rng)

    @property
    def codes(self) -> NDArray[np.int64]:
        """The chains' states as records of codes 0 and 1."""
        return np.asarray(self.states[:, :-1] > 0, dtype=np.int64)

    def features(self, monomials: Monomials) -> Spins:
        """Π_{i∈I} z_i, one column a monomial."""
        return np.asarray(self.states[:, _filled(monomials, self.states.shape[1] - 1)].prod(axis=2))

    def sweep(self, monomials: Monomials, c: Array, sweeps: int = 1) -> None:
        """Redraw every column of every chain this many times."""
        p = self.states.shape[1] - 1
        fields: list[tuple[NDArray[np.intp], Spins]] = []
        for i in range(p):
            mine = [k for k, I in enumerate(monomials) if i in I]
            others = _filled([tuple(j for j in monomials[k] if j != i) for k in mine], p)
            fields.append((others, on_grid(c[mine])))
        for _ in range(sweeps):
            for i, (others, weights) in enumerate(fields):
                self.states[:, i] = redrawn(self.states[:, others].prod(axis=2) @ weights, self.rng)


def parity_features(codes: NDArray[np.int64], monomials: Monomials) -> Spins:
    """Π_{i∈I} z_i of records of codes 0 and 1, one column a monomial."""
    spins = np.hstack([2 * codes - 1, np.ones((len(codes), 1))]).astype(np.float32)
    return np.asarray(spins[:, _filled(monomials, codes.shape[1])].prod(axis=2))


def _filled(monomials: Monomials, one: int) -> NDArray[np.intp]:
    """The columns of each monomial, filled up with the column that is always +1."""
    width = max((len(I) for I in monomials), default=0) or 1
    rows = [[*I, *([one] * (width - len(I)))] for I in monomials]
    return np.array(rows, dtype=np.intp).reshape(len(monomials), width)
