"""Records drawn from calibrated beliefs, clique by clique from the root: exact, and vectorised over the records."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..factor import Array
from .schedule import Schedule

Codes = npt.NDArray[np.int32]
# Records handled together: small enough for the caches, large enough that NumPy's overhead vanishes.
_CHUNK = 1 << 16


def draw(schedule: Schedule, beliefs: Array, n: int, rng: np.random.Generator, *, rounded: bool) -> Codes:
    """n rows of codes in domain order. ``rounded`` replaces independent uniforms by stratified ones (see below)."""
    domain = schedule.tree.domain
    # Column by column in memory while drawing.
    codes = np.zeros((n, len(domain)), dtype=np.int32, order="F")
    tables = _conditional_tables(schedule, beliefs)
    chunk = max(n, 1) if rounded else _CHUNK
    for start in range(0, n, chunk):
        block = codes[start : start + chunk]
        for names, columns, above, shape_above, cumulative in tables:
            if above:
                given = np.ravel_multi_index(tuple(block[:, c] for c in above), shape_above)
            else:
                given = np.zeros(len(block), dtype=np.intp)
            uniform = _stratified(given, cumulative.shape[1], rng) if rounded else rng.random(len(block))
            found = _pick(cumulative, given, uniform)
            for column, values in zip(columns, np.unravel_index(found, names), strict=True):
                block[:, column] = values
    return np.ascontiguousarray(codes)


def draw_each(schedule: Schedule, beliefs: Array, entries: npt.NDArray[np.intp], rng: np.random.Generator) -> Codes:
    """One row of codes for each entry of the batch that is named: beliefs ``(cells, batch)``, rows in that order."""
    codes = np.zeros((len(entries), len(schedule.tree.domain)), dtype=np.int32, order="F")
    batch = beliefs.shape[1]
    for names, columns, above, shape_above, cumulative in _conditional_tables(schedule, beliefs):
        given = entries
        if above:
            cell = np.ravel_multi_index(tuple(codes[:, c] for c in above), shape_above)
            given = cell * batch + entries
        found = _pick(cumulative, given, rng.random(len(entries)))
        for column, values in zip(columns, np.unravel_index(found, names), strict=True):
            codes[:, column] = values
    return np.ascontiguousarray(codes)


_Table = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], Array]


def _conditional_tables(schedule: Schedule, beliefs: Array) -> list[_Table]:
    """Per clique, root first: sizes and positions of its new columns, of its separator, and P(new ≤ · | separator)."""
    domain = schedule.tree.domain
    out: list[_Table] = []
    cliques = [(0, ()), *((c, s) for (_, c), s in zip(schedule.tree.edges, schedule.tree.separators, strict=True))]
    for i, separator in cliques:
        a, b = schedule.bounds[i]
        axes, shape = schedule.axes[i], schedule.shapes[i]
        split = len(axes) - len(separator)
        # The residual columns come first in a table, so its columns are the separator's cells (and then the batch).
        cumulative = np.cumsum(beliefs[a:b].reshape(math.prod(shape[:split]), -1), axis=0)
        positions = tuple(domain.index(n) for n in axes)
        out.append((shape[:split], positions[:split], positions[split:], shape[split:], _thresholds(cumulative)))
    return out


def _thresholds(cumulative: Array) -> Array:
    """Normalised cumulative probabilities. From the last possible cell on they are exactly 1 (x / x), which no uniform
    reaches: whatever the rounding of the sum, no draw steps past it onto a structural zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Array = cumulative / cumulative[-1]
    return out


def _pick(cumulative: Array, given: npt.NDArray[np.intp], uniform: Array) -> npt.NDArray[np.intp]:
    """The first cell whose cumulative probability exceeds the uniform, by a binary search of all records at once."""
    cells, width = cumulative.shape
    flat = cumulative.reshape(-1)
    found = np.zeros(len(given), dtype=np.intp)
    step = 1 << max(cells - 1, 0).bit_length() >> 1
    while step:
        probe = found + step
        # Past the end: the last threshold is 1, and so never passed.
        np.minimum(probe, cells, out=probe)
        passed = flat[(probe - 1) * width + given] <= uniform
        np.copyto(found, probe, where=passed)
        step >>= 1
    return found


def _stratified(given: npt.NDArray[np.intp], groups: int, rng: np.random.Generator) -> Array:
    """Uniforms that share out evenly among the records of each separator cell.

    The m records of a group get, in random order, (k + u)/m for k = 0 … m − 1 with one uniform u a group (systematic
    sampling): a cell of conditional probability p then receives ⌊mp⌋ or ⌈mp⌉ of them, mp on average.
    """
    n = len(given)
    shuffled = rng.permutation(n)
    by_group = shuffled[np.argsort(given[shuffled], kind="stable")]
    size = np.bincount(given, minlength=groups)
    first = np.cumsum(size) - size
    mine = given[by_group]
    uniform = np.empty(n)
    uniform[by_group] = (np.arange(n) - first[mine] + rng.random(groups)[mine]) / size[mine]
    return uniform
