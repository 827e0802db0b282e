"""Euclidean projection onto the simplex: the nearest table that is non-negative and has the right total."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError

Array = NDArray[np.float64]


def project_simplex(vectors: ArrayLike, total: ArrayLike = 1.0) -> Array:
    """The nearest point of {x ≥ 0, Σx = total} to each row (the last axis), all rows at once.

    The answer is max(x − τ, 0) with one τ a row. Sorted downwards, the cells that stay positive are the first k, where
    k is the last position at which the k-th largest exceeds (sum of the k largest − total)/k [DSSC08, Fig. 1].

    ``total`` is one number, or one for each row; 0 gives a row of zeros. [DSSC08] Duchi, Shalev-Shwartz, Singer,
    Chandra, ICML 2008.
    """
    x: Array = np.asarray(vectors, dtype=np.float64)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise InputError(f"a projection needs rows of at least one cell, got an array of shape {x.shape}")
    z: Array = np.broadcast_to(np.asarray(total, dtype=np.float64), x.shape[:-1])[..., None]
    if not np.all(np.isfinite(z)) or np.any(z < 0):
        raise InputError(f"the total of a simplex must be finite and not negative, got {total!r}")
    # Shifting a row changes nothing, and keeps the running sums small.
    shifted = x - x.max(axis=-1, keepdims=True)
    down = -np.sort(-shifted, axis=-1)
    sums = np.cumsum(down, axis=-1) - z
    rank = np.arange(1, x.shape[-1] + 1)
    positive = down * rank > sums
    count = np.maximum(positive.sum(axis=-1, keepdims=True), 1)
    threshold = np.take_along_axis(sums, count - 1, axis=-1) / count
    out: Array = np.maximum(shifted - threshold, 0.0)
    sums_out = out.sum(axis=-1, keepdims=True)
    # Rounding leaves the total off by some 1e-16 of it; make it right.
    scale = np.divide(z, sums_out, out=np.zeros_like(sums_out), where=sums_out > 0)
    scaled: Array = out * scale
    return scaled


def project_table(table: Array, total: float = 1.0) -> Array:
    """The same for one table of any shape."""
    flat: Any = project_simplex(np.asarray(table).reshape(1, -1), total)
    out: Array = flat.reshape(np.shape(table))
    return out
