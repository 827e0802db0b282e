"""The same measurements with other noise: tables that are as near to the exact ones as the noisy ones tell, and fresh
noise of the same kind on them. For simulations; nothing here protects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..learn.consistency import consistent, estimated_total
from ..learn.projection import project_table
from ..measurement import Measurement, Measurements, Noise

Array = NDArray[np.float64]


def likely_tables(measurements: Measurements) -> list[Array]:
    """Consistent, non-negative tables near the noisy ones."""
    total = estimated_total(measurements)
    found = consistent(measurements)
    out = []
    for m in measurements:
        if m.told_of is None:
            raise InputError(f"{m.label!r} is not a contingency table; say with expected=… what a model expects of it")
        out.append(m.of_table(project_table(found[m.told_of].values, total)))
    return out


def whole(m: Measurement, table: NDArray[Any]) -> NDArray[np.int64]:
    counts = np.rint(np.asarray(table, dtype=np.float64) / float(m.grid)).astype(np.int64)
    if counts.shape != m.counts.shape:
        raise InputError(f"the expected table of {m.label!r} must have shape {m.counts.shape}, got {counts.shape}")
    return counts


def with_counts(
    measurements: Measurements, tables: Sequence[NDArray[Any]], rng: np.random.Generator | None
) -> Measurements:
    """The same measurements with expected counts, and fresh noise if there is a generator; public tables stay."""
    items = []
    for m, table in zip(measurements, tables, strict=True):
        if m.noise.variance == 0:
            items.append(m)
            continue
        counts = whole(m, table)
        if rng is not None:
            counts = counts + simulated_noise(m.noise, counts.shape, rng)
        items.append(replace(m, counts=counts))
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
