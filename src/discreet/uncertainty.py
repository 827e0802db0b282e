"""How far the noise can have moved an answer: intervals for any question to a model learned from measurements.

Parametric bootstrap. The noise is public: its distribution and scale are part of every measurement. So take tables that
are as near to the exact ones as the noisy ones tell (consistent, and projected to non-negative counts), add fresh noise
of the same kind, refit with the same estimator, and see how far the answers move from what the estimator makes of those
tables without fresh noise. That movement imitates how far the real answer moved from its target. The half-width is the
root mean square of the moves times the normal quantile: it counts the estimator's bias as well as its spread, and needs
fewer draws than quantiles of the moves do.

*Target of an interval*: the answer of the same estimator on the exact tables. The intervals are about privacy noise;
they do not speak of the sampling of the records, nor of a graph that is wrong.

All of it is post-processing: it costs no budget. ``random_state`` seeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DiscreetError, InputError
from .estimation.consistency import consistent, estimated_total
from .estimation.projection import project_table
from .measurement import Measurement, Measurements, Noise
from .models.base import Model
from .models.records import RandomState
from .progress import track

Array = NDArray[np.float64]
Refit = Callable[[Measurements], Model]
Expected = Callable[[Model], Sequence[NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper ends around an estimate, entry by entry, that cover the target with probability ``level``."""

    estimate: Array
    lower: Array
    upper: Array
    level: float

    def covers(self, target: Any) -> NDArray[np.bool_]:
        return np.asarray((self.lower <= target) & (target <= self.upper))

    def __repr__(self) -> str:
        def show(x: Array) -> str:
            return np.array2string(np.asarray(x), precision=4, suppress_small=True)

        return f"Interval({show(self.estimate)}, {self.level:.0%} between {show(self.lower)} and {show(self.upper)})"


@dataclass(frozen=True, eq=False)
class NoiseIntervals:
    """Refits under fresh noise, ready for questions. Made by :func:`noise_intervals`."""

    model: Model
    centre: Model
    """What the estimator makes of the tables that fresh noise is added to, without it."""
    draws: tuple[Model, ...]
    level: float

    def of(self, question: Callable[[Model], Any]) -> Interval:
        """An interval for any numbers that can be computed from a model, probabilities or not."""
        estimate = np.asarray(question(self.model), dtype=np.float64)
        centre = np.asarray(question(self.centre), dtype=np.float64)
        moves = np.stack([np.asarray(question(m), dtype=np.float64) for m in self.draws]) - centre
        half = NormalDist().inv_cdf((1 + self.level) / 2) * np.sqrt(np.mean(moves**2, axis=0))
        return Interval(estimate, estimate - half, estimate + half, self.level)

    def marginal(self, names: Iterable[str] | str, given: Mapping[str, object] | None = None) -> Interval:
        """For each cell of P(names | given)."""
        wanted = names if isinstance(names, str | Mapping) else tuple(names)  # asked of many models
        found = self.of(lambda m: m.marginal(wanted, given).probabilities)
        return Interval(found.estimate, np.clip(found.lower, 0, 1), np.clip(found.upper, 0, 1), found.level)

    def conditional(self, names: Iterable[str] | str, given: Mapping[str, object]) -> Interval:
        return self.marginal(names, given)

    def probability(self, event: Mapping[str, object], given: Mapping[str, object] | None = None) -> Interval:
        found = self.of(lambda m: m.probability(event, given))
        return Interval(found.estimate, np.clip(found.lower, 0, 1), np.clip(found.upper, 0, 1), found.level)

    def map_survival(
        self, names: Iterable[str] | str | None = None, given: Mapping[str, object] | None = None
    ) -> float:
        """How often a refit under fresh noise gives the same most probable values as without it."""
        centre = dict(self.centre.map(names, given))
        return sum(dict(m.map(names, given)) == centre for m in self.draws) / len(self.draws)


def noise_intervals(
    refit: Refit,
    measurements: Measurements,
    model: Model,
    level: float = 0.9,
    draws: int = 100,
    random_state: RandomState = None,
    *,
    expected: Expected | None = None,
) -> NoiseIntervals:
    """Simulate how far the noise of ``measurements`` can have moved what ``refit`` makes of them.

    Parameters
    ----------
    refit:
        The estimator: ``lambda measurements: learner.estimate(measurements)``.
    model:
        What it made of ``measurements``.
    expected:
        The sums that a model expects, one array a measurement on the scale of its ``values``. Needed only when some
        measurement is not a contingency table.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, got {level}")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 2:
        raise InputError(f"draws must be a whole number of at least 2, got {draws!r}")
    if not any(m.noise.variance for m in measurements):
        raise InputError("none of these measurements has noise, so there is nothing to be uncertain about")
    rng = np.random.default_rng(random_state)
    tables = _likely_tables(measurements) if expected is None else list(expected(model))
    if len(tables) != len(measurements):
        raise InputError(f"{len(measurements)} measurements need as many expected tables, got {len(tables)}")
    centre = refit(_with_counts(measurements, tables, None))
    refits = [refit(_with_counts(measurements, tables, rng)) for _ in track(range(draws), draws, "noise intervals")]
    return NoiseIntervals(model, centre, tuple(refits), level)


def _likely_tables(measurements: Measurements) -> list[Array]:
    """Consistent, non-negative tables near the noisy ones."""
    total = estimated_total(measurements)
    found = consistent(measurements)
    out = []
    for m in measurements:
        if m.clique is None:
            raise InputError(f"{m.label!r} is not a contingency table; say with expected=… what a model expects of it")
        out.append(project_table(found[m.clique][0], total))
    return out


def _with_counts(
    measurements: Measurements, tables: Sequence[NDArray[Any]], rng: np.random.Generator | None
) -> Measurements:
    """The same measurements with expected counts, and fresh noise if there is a generator; public tables stay."""
    items = []
    for m, table in zip(measurements, tables, strict=True):
        if m.noise.variance == 0:
            items.append(m)
            continue
        counts = np.rint(np.asarray(table, dtype=np.float64) / float(m.grid)).astype(np.int64)
        if counts.shape != m.counts.shape:
            raise InputError(f"the expected table of {m.label!r} must have shape {m.counts.shape}, got {counts.shape}")
        if rng is not None:
            counts = counts + simulated_noise(m.noise, counts.shape, rng)
        items.append(Measurement(m.label, counts, m.noise, m.domain, m.clique, m.grid, m.origin, m.cost))
    return Measurements(items, measurements.release)


def simulated_noise(noise: Noise, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws of a noise distribution for simulations. Not for protection: the generator is an ordinary one."""
    if noise.variance == 0:
        return np.zeros(shape, dtype=np.int64)
    if noise.kind == "laplace":  # the difference of two geometric numbers is discrete Laplace
        stop = -np.expm1(-1 / noise.scale)
        return np.asarray(rng.geometric(stop, shape) - rng.geometric(stop, shape), dtype=np.int64)
    if noise.scale > 10:  # a rounded normal differs from the discrete Gaussian by far less than shows here
        return np.rint(rng.normal(0, noise.scale, shape)).astype(np.int64)
    reach = int(np.ceil(12 * noise.scale)) + 2
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-(z.astype(np.float64) ** 2) / (2 * noise.scale**2))
    return np.asarray(rng.choice(z, size=shape, p=weights / weights.sum()), dtype=np.int64)


def coverage(intervals: Iterable[Interval], targets: Iterable[Any]) -> float:
    """The part of all entries of the targets that their intervals cover: for tests and benchmarks."""
    hits = [i.covers(np.asarray(t)).reshape(-1) for i, t in zip(intervals, targets, strict=True)]
    if not hits:
        raise DiscreetError("no intervals to judge")
    return float(np.concatenate(hits).mean())
