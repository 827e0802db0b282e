"""Drawing a column given its parents, for all records at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def draw_column(
    table: NDArray[np.float64],
    above: Sequence[NDArray[Any]],
    n: int,
    rng: np.random.Generator,
    rounded: bool = False,
) -> NDArray[np.uint32]:
    """Codes of a column with table P(x | parents) (parents first) for ``n`` records whose parents are ``above``.

    With ``rounded`` the uniform numbers of all records with the same parents are spread evenly over [0, 1) (one common
    random offset, shuffled over those records), so that every count is its expected value rounded up or down, and
    right on average.
    """
    size = table.shape[-1]
    rows = table.reshape(-1, size)
    row = np.zeros(n, dtype=np.intp)
    for codes, levels in zip(above, table.shape, strict=False):
        row = row * levels + codes
    u = _even_uniforms(row, len(rows), rng) if rounded else rng.random(n)
    thresholds = _thresholds(rows)
    out = np.zeros(n, dtype=np.uint32)
    for level in range(size - 1):
        out += u >= thresholds[level][row]
    return out


def _thresholds(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulated probabilities (level, row). From the last possible level on they are out of reach, so that a sum that
    rounds to less than one does not let an impossible last level through."""
    cumulated = np.cumsum(rows, axis=1).T.copy()
    possible = rows > 0
    last = rows.shape[1] - 1 - possible[:, ::-1].argmax(axis=1)
    cumulated[np.arange(rows.shape[1])[:, None] >= last] = 2.0
    return cumulated


def _even_uniforms(row: NDArray[np.intp], rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform numbers, within each group of equal ``row`` spread evenly and in random order."""
    shuffled = rng.permutation(len(row))
    order = shuffled[np.argsort(row[shuffled], kind="stable")]
    count = np.bincount(row, minlength=rows)
    start = np.cumsum(count) - count
    grouped = row[order]
    u = np.empty(len(row))
    u[order] = (np.arange(len(row)) - start[grouped] + rng.random(rows)[grouped]) / count[grouped]
    return u
