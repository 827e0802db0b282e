"""The data player of a query-release game: records that maximise what was asked for so far, plus a random perturbation.

Public: it sees which queries were selected, never a row. See :mod:`discreet.learn.query_release.leader`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .best_record import Array, Oracle, Records, Terms

Perturbation = Literal["separator", "exponential"]


@dataclass
class DataPlayer:
    """``samples`` records a round, each for a fresh perturbation of scale ``scale``."""

    terms: Terms
    oracle: Oracle
    perturbation: Perturbation
    scale: float
    samples: int
    random_state: int | np.random.Generator | None
    weights: Array = field(init=False)  # how often each query was selected, with its sign
    gap: float = field(init=False, default=0.0)  # the largest so far; nan once it is unknown

    def __post_init__(self) -> None:
        self.weights = np.zeros(len(self.terms))
        self._rng = np.random.default_rng(self.random_state)

    def ask_for(self, query: int, sign: int) -> None:
        """Count a selected query: its answer should be larger (sign 1) or smaller (−1)."""
        self.weights[query] += sign

    def play(self) -> Records:
        """This round's records."""
        best = self.oracle.solve(self.terms, self.weights, self._perturbed(), self._rng)
        self.gap = float(np.maximum(self.gap, best.gap))  # nan stays nan
        return best.records

    def _perturbed(self) -> Array:
        coordinates = int(self.terms.starts[-1])
        if self.perturbation == "exponential":
            return self._rng.exponential(self.scale, (self.samples, coordinates))
        if all(k == 2 for k in self.terms.shape):  # z_i tells both levels apart: one draw a column
            noise = self._rng.laplace(0.0, self.scale, (self.samples, len(self.terms.shape)))
            return np.stack([-noise, noise], axis=2).reshape(self.samples, coordinates)
        return self._rng.laplace(0.0, self.scale, (self.samples, coordinates))
