"""A chain with the same potential at every time, as a likelihood of two tables: φ(x₁)·Π_t ψ(x_t, x_{t+1}) [BMSSHM17
section 4.2], of any order.

Its sufficient statistics are the table of starts and the sum of the tables of all times. Divided by their number e,
that sum is the table of a move at a random time, with as many records as the table of starts has. So the two are tables
of one make-believe domain, columns of "start" beside columns of "move", and all that denoises tables of cliques works
on them: consistency (they share their total), projection, likelihoods, EM. Only the engine knows better: log φ is
θ_start and log ψ is θ_move/e, and the gradient of the log-partition is the start's marginal and the mean of those of
all times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...domain import Attribute, Clique, Domain
from ...factor import CliqueVector
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurements
from ...privacy.queries.chains import MOVES, moves_of
from ..fields.likelihood import Array, Field


class TiedField(Field):
    """The log-partition and the marginals of a tied chain, as functions of one vector: θ_start, then θ_move."""

    def __init__(self, windows: Domain, order: int, *, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> None:
        self.windows = windows
        moves = moves_of(windows, order)
        start = moves[0][:order]
        states = windows.attributes[0]
        self.start = tuple(f"start {t + 1}" for t in range(order))
        self.move = tuple(f"move {t}" for t in range(order + 1))
        columns = Domain(tuple(Attribute.categorical(n, states.labels) for n in (*self.start, *self.move)))
        super().__init__(columns, (self.start, self.move), inference="exact")
        self.times = len(moves)
        self.chain = Field(windows, (start, *moves), inference="exact", memory_limit=memory_limit)
        (begun, _), (first, last) = self.bounds
        assert begun == 0
        self._place = np.concatenate([np.arange(first), np.tile(np.arange(first, last), self.times)])
        self.strength = np.concatenate([np.ones(first), np.full(last - first, 1 / self.times)])
        self._part = self.strength[self._place]

    @property
    def of_rows(self) -> Domain:
        return self.windows

    @property
    def hits(self) -> Iterator[tuple[Clique, tuple[int, ...], int]]:
        for t, (clique, shape) in enumerate(zip(self.chain.cliques, self.chain.shapes, strict=True)):
            yield clique, shape, self.bounds[min(t, 1)][0]

    @property
    def cells(self) -> int:
        return self.chain.cells

    def __call__(self, theta: Array) -> tuple[float, Array]:
        self.runs += 1
        log_partition, mu = self.chain(self._part * theta[self._place])
        return log_partition, np.asarray(np.bincount(self._place, self._part * mu, self.size), dtype=np.float64)

    def many(self, thetas: Array) -> tuple[Array, Array]:
        self.runs += thetas.shape[1]
        log_partition, mu = self.chain.many(self._part[:, None] * thetas[self._place])
        first = self.bounds[0][1]
        means = mu[first:].reshape(self.times, self.size - first, -1).mean(axis=0)
        return log_partition, np.concatenate([mu[:first], means])

    def potentials(self, theta: Array) -> CliqueVector:
        """Of the windows."""
        return self.chain.potentials(self._part * theta[self._place])

    def tables(self, measurements: Measurements) -> Measurements:
        """What was measured of the windows, as tables of starts and of moves."""
        start = self.chain.cliques[0]
        found = []
        for m in measurements:
            if m.clique in (start, ()):
                found.append(replace(m, domain=self.domain, clique=self.start if m.clique else ()))
            elif MOVES in m.about:
                found.append(replace(m, domain=self.domain, clique=self.move, grid=m.grid * Fraction(1, self.times)))
        return Measurements(found, measurements.release)
