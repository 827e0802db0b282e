"""Maximum likelihood in a Markov random field from tables: convex, on one flat vector of log potentials.

The log-likelihood of tables that say μ̂ is ⟨θ, μ̂⟩ − A(θ), its gradient μ̂ − μ(θ): log-partition and marginals of the
model, one run of the engine [BMSSHM17, section 3]. A ridge ½Σ r_i θ_i² makes it strictly convex, so there is one
answer for any μ̂, inside the marginal polytope or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import CostError, InputError
from ...factor import CliqueVector
from ...graph import DEFAULT_MEMORY_LIMIT
from ...inference.exact import ExactEngine, get_engine
from ...inference.loopy import loopy_marginals
from ...inference.margins import Margins
from ...threads import one_thread

Array = NDArray[np.float64]
Inference = Literal["auto", "exact", "loopy"]
_MEMORY = 20  # pairs of vectors that L-BFGS keeps
_LEAST_CURVATURE = 1e-6
_BATCHED = 200
"""Cells in a table of the tree, by vectors, up to which all vectors together cost less than one after the other."""


class Field:
    """The log-partition and the marginals of a Markov random field, as functions of one flat vector θ; the log
    potentials are ``strength``·θ.

    ``inference``: ``"exact"`` on a junction tree, refused when it would be too large; ``"loopy"`` belief propagation,
    an approximation that leaves an error no amount of data removes; ``"auto"``: exact, and loopy where that is refused.
    """

    def __init__(
        self,
        domain: Domain,
        cliques: Iterable[Iterable[str]],
        *,
        inference: Inference = "auto",
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> None:
        if inference not in ("auto", "exact", "loopy"):
            raise InputError(f"inference must be 'auto', 'exact' or 'loopy', got {inference!r}")
        self.domain = domain
        self.cliques: tuple[Clique, ...] = tuple(domain.clique(c) for c in cliques)
        self.shapes = [tuple(domain[n].size for n in c) for c in self.cliques]
        self.sizes = [domain.size(c) for c in self.cliques]
        ends = np.cumsum([0, *self.sizes])
        self.bounds = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        self.size = int(ends[-1])
        self.strength = np.ones(self.size)
        self.runs = 0
        self._engine: ExactEngine | None = None
        self._margins: Margins | None = None
        if inference != "loopy":
            try:
                self._engine = get_engine(domain, self.cliques, memory_limit=memory_limit)
                margins = Margins(self._engine.schedule, self.cliques)
                self._margins = margins if margins.fits else None
            except CostError:
                if inference == "exact":
                    raise

    @property
    def of_rows(self) -> Domain:
        """The columns of the records."""
        return self.domain

    @property
    def hits(self) -> Iterator[tuple[Clique, tuple[int, ...], int]]:
        """What a record counts in: columns, the shape of their table, and where in the vector that begins."""
        for clique, shape, (begin, _) in zip(self.cliques, self.shapes, self.bounds, strict=True):
            yield clique, shape, begin

    @property
    def inference(self) -> str:
        return "loopy" if self._engine is None else "exact"

    @property
    def cells(self) -> int:
        """Of the junction tree, or of the tables where there is none."""
        return self.size if self._engine is None else self._engine.schedule.total

    def split(self, vector: Array) -> dict[Clique, Array]:
        """The tables within a vector, as views."""
        return {c: vector[a:b].reshape(s) for c, s, (a, b) in zip(self.cliques, self.shapes, self.bounds, strict=True)}

    def join(self, tables: Mapping[Clique, Any]) -> Array:
        """One vector from a table for each clique."""
        return np.concatenate([np.asarray(tables[c], dtype=np.float64).reshape(-1) for c in self.cliques])

    def fill(self, numbers: Mapping[Clique, float]) -> Array:
        """One number a clique, repeated for all its cells."""
        return np.repeat([float(numbers[c]) for c in self.cliques], self.sizes)

    def potentials(self, theta: Array) -> CliqueVector:
        return CliqueVector(self.domain, dict(self.split(theta)))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """A(θ) and the marginals μ(θ) of all cliques."""
        self.runs += 1
        if self._engine is not None and self._margins is not None:
            log_partition, mu = self._engine.marginals(self._margins, theta)
            return float(log_partition), mu
        tables = self.split(theta)
        if self._engine is None:
            beliefs = loopy_marginals(self.domain, tables, damping=0.3)
            return float(beliefs.log_partition), self.join({c: beliefs.marginal(c).exp() for c in self.cliques})
        exact = self._engine.calibrate(tables)
        return float(exact.log_partition), self.join({c: exact.probabilities(c) for c in self.cliques})

    def marginals(self, thetas: Array) -> Array:
        """μ of several vectors, a row each."""
        return self.many(np.ascontiguousarray(thetas.T))[1].T

    def many(self, thetas: Array) -> tuple[Array, Array]:
        """A and μ of several vectors, a column each."""
        count = thetas.shape[1]
        if self._engine is None or np.mean(self._engine.schedule.sizes) > _BATCHED * count:
            each = [self(theta) for theta in np.ascontiguousarray(thetas.T)]
            return np.array([a for a, _ in each]), np.stack([mu for _, mu in each], axis=1)
        self.runs += count
        if self._margins is not None:
            return self._engine.marginals(self._margins, thetas)
        rows = np.ascontiguousarray(thetas.T)
        tables = {
            c: rows[:, a:b].reshape(-1, *s) for c, s, (a, b) in zip(self.cliques, self.shapes, self.bounds, strict=True)
        }
        exact = self._engine.calibrate(tables)
        mu = np.concatenate([exact.probabilities(c).reshape(count, -1) for c in self.cliques], axis=1)
        return np.asarray(exact.log_partition), mu.T

    def uniform(self) -> Array:
        """The marginals of θ = 0."""
        return np.repeat(1.0 / np.array(self.sizes), self.sizes)

    @one_thread()
    def maximise(
        self,
        target: Array,
        ridge: Array,
        *,
        start: Array | None = None,
        curvature: Array | None = None,
        box: tuple[Array, Array] | None = None,
        tolerance: float = 1e-7,
        iterations: int = 1000,
    ) -> Solution:
        """argmax ⟨θ, target⟩ − A(θ) − ½Σ ridge·θ², optionally within low ≤ θ ≤ high.

        L-BFGS on θ·√h, where h = μ + ridge is about the diagonal of the Hessian: cells of very different probability
        then have curvatures of about 1. ``curvature`` is a guess of μ, by default uniform.
        """
        from scipy.optimize import minimize  # slow to import, and who asks a model fits none

        h = np.sqrt((self.uniform() if curvature is None else curvature) + ridge + _LEAST_CURVATURE)

        def loss(scaled: Array) -> tuple[float, Array]:
            theta = scaled / h
            log_partition, mu = self(theta)
            pull = ridge * theta
            value = float(log_partition - theta @ target + 0.5 * (theta @ pull))
            return value, (mu - target + pull) / h

        first = np.zeros(self.size) if start is None else start
        bounds = None if box is None else np.stack([box[0] * h, box[1] * h], axis=1)
        found = minimize(
            loss,
            first * h,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={
                "maxiter": iterations,
                "maxfun": 2 * iterations,
                "ftol": tolerance,
                "gtol": 1e-9,
                "maxcor": _MEMORY,
            },
        )
        # Where a box leaves nothing to search, there were no steps.
        return Solution(found.x / h, float(found.fun), bool(found.success), int(found.get("nit", 0)))


@dataclass(frozen=True)
class Solution:
    """Where a maximisation ended."""

    theta: Array
    loss: float
    converged: bool
    iterations: int
