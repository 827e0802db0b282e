"""Coordinates for fits of tables: far fewer than cells, with what is known of the curvature.

Each step of a flow (:mod:`.mirror`) maximises ⟨θ, t⟩ − A(θ) − ½Σ r_i θ_i², where rθ is the difference of two families
of tables that agree: it is a sum of interactions, θ = r⁻¹Bu =: Ku, of which there are far fewer than cells (16 columns
of two levels and all their triples: 696 of 4,480). In u the Hessian is Kᵀ(Cov_θ(cells) + r)K =: C + R, R diagonal. The
variances follow from a fit that is near, the correlations, brought nearer to 0, from some thousand records drawn from
it, whose counts are as near to what is expected as whole numbers can be. Divided by the roots of the diagonal of C + R
the least eigenvalue is so a tenth or more, and single precision is enough for the inverse, with which descents begin
(:mod:`.batched`). Values and gradients are exact: the sample decides how fast a descent goes, never where to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique
from ...inference.exact import get_engine
from .likelihood import Array, Field

Index = NDArray[np.intp]
MOST_INTERACTIONS = 5000
"""Numbers that tables which agree depend on, up to which the square of so many is worth its memory: 200 MB."""
_FEWEST_RECORDS, _MOST_RECORDS, _MOST_ENTRIES = 2000, 8000, 10_000_000
_FIRMEST = 0.5


def most_bytes(numbers: int) -> int:
    """What coordinates of at most so many numbers take while they are made: records, and a square."""
    return 4 * (max(_MOST_ENTRIES, _FEWEST_RECORDS * numbers) + numbers**2)


def _shrunk(numbers: int, records: int) -> float:
    """So much nearer to 0 correlations are taken to be than a sample has them, as it has small eigenvalues too small:
    the more, the fewer records there are for each number."""
    return min(0.1 + 0.2 * numbers / records, _FIRMEST)


class Coordinates:
    """z, the u times those roots, from the ridge r and a θ that is near; a column for each of several fits."""

    def __init__(self, field: Field, ridge: Array, theta: Array) -> None:
        from scipy.linalg.lapack import spotrf, spotri  # slow to import

        self._ridge, self._basis = ridge, _basis(field)
        self._lengths = np.asarray(self._basis.power(2).sum(axis=0))
        to_theta = (self._basis.T.multiply(1 / ridge)).T.tocsr()
        variances = _variances(field, theta, to_theta)
        settled = np.asarray(to_theta.multiply(self._basis).sum(axis=0))
        self._roots = np.sqrt(variances + settled)
        self._to_theta = (to_theta.multiply(1 / self._roots)).tocsr()
        records = _drawn(field, theta)
        records -= records.mean(axis=0)
        seen = np.sqrt(np.einsum("ij,ij->j", records, records) / len(records))
        records *= np.divide(np.sqrt(variances) / self._roots, seen, out=np.zeros_like(seen), where=seen > 0)
        curvature = records.T @ records
        curvature *= (1 - _shrunk(len(variances), len(records))) / len(records)
        np.fill_diagonal(curvature, 1)
        root, _ = spotrf(curvature.T, lower=1, overwrite_a=1)  # in Fortran's order, as is all that follows
        self._inverse, _ = spotri(root, lower=1, overwrite_c=1)  # of which the lower half alone is written, and read

    def of(self, theta: Array) -> Array:
        """The z whose tables rθ are nearest to these."""
        return np.asarray(self._roots * (self._basis.T @ (self._ridge * theta)) / self._lengths)

    def theta(self, z: Array) -> Array:
        return np.asarray(self._to_theta @ z)

    def gradient(self, by_theta: Array) -> Array:
        """By z, from that by θ."""
        return np.asarray(self._to_theta.T @ by_theta)

    def step(self, gradient: Array) -> Array:
        """Newton's, as far as the sample tells."""
        from scipy.linalg.blas import ssymm, ssymv

        single = gradient.astype(np.float32)
        if single.shape[1] == 1:
            return np.asarray(ssymv(1.0, self._inverse, single[:, 0], lower=1)[:, None], dtype=np.float64)
        return np.asarray(ssymm(1.0, self._inverse, np.asfortranarray(single), lower=1), dtype=np.float64, order="C")


def interactions(cliques: Sequence[Clique], shapes: Sequence[tuple[int, ...]]) -> int:
    """How many numbers tables of these cliques that agree, and hold 1 in all, depend on."""
    levels = {name: k for c, shape in zip(cliques, shapes, strict=True) for name, k in zip(c, shape, strict=True)}
    return sum(math.prod(levels[name] - 1 for name in part) for part in _closed(cliques))


def _closed(cliques: Sequence[Clique]) -> list[Clique]:
    """All sets of columns within a clique but the empty one."""
    return list(dict.fromkeys(part for c in cliques for r in range(len(c)) for part in combinations(c, r + 1)))


def _basis(field: Field) -> Any:
    """B: tables that agree, and hold nothing in all, as sums of interactions. That of a set of columns is spread evenly
    over the other columns of a clique; its own columns have orthonormal contrasts. Columns of B are orthogonal."""
    from scipy.sparse import csr_array  # slow to import

    width = {part: math.prod(field.domain[name].size - 1 for name in part) for part in _closed(field.cliques)}
    begin = dict(zip(width, np.cumsum([0, *width.values()]).tolist(), strict=False))
    rows, columns, values = [], [], []
    for clique, shape, (start, _) in zip(field.cliques, field.shapes, field.bounds, strict=True):
        for part in (p for r in range(len(clique)) for p in combinations(clique, r + 1)):
            row, column, value = _block(shape, tuple(n in part for n in clique))
            rows.append(row + start)
            columns.append(column + begin[part])
            values.append(value)
    at = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.concatenate(values), at), shape=(field.size, sum(width.values())))


@lru_cache(maxsize=1000)
def _block(shape: tuple[int, ...], contrasted: tuple[bool, ...]) -> tuple[Index, Index, Array]:
    """Rows, columns and values of an interaction within a table of this shape, of the columns that are contrasted."""
    table = reduce(
        np.kron, [_contrasts(k) if c else np.full((k, 1), 1 / k) for k, c in zip(shape, contrasted, strict=True)]
    )
    row, column = np.nonzero(table)
    return row, column, table[row, column]


@lru_cache(maxsize=1000)
def _contrasts(k: int) -> Array:
    """k × (k − 1), orthonormal and orthogonal to the constant (Helmert's)."""
    row, j = np.arange(k)[:, None], np.arange(1, k)
    return np.asarray(np.where(row < j, 1.0, np.where(row == j, -j, 0.0)) / np.sqrt(j * (j + 1.0)))


def _variances(field: Field, theta: Array, to_theta: Any) -> Array:
    """Of each interaction that a record lies in. It is the same function of the columns of the interaction in all
    cliques, times a number for each clique."""
    mu = field(theta)[1]
    size = sum(np.sqrt(to_theta[a:b].power(2).T @ mu[a:b]) for a, b in field.bounds)
    return np.asarray(np.maximum(size**2 - (to_theta.T @ mu) ** 2, 0))


def _drawn(field: Field, theta: Array) -> NDArray[np.float32]:
    """The interactions that each of some records lies in, drawn from the model. Each up to a factor: that of a set of
    columns is the same function of these columns in all cliques."""
    parts = _closed(field.cliques)
    numbers = interactions(field.cliques, field.shapes)
    n = min(max(_MOST_ENTRIES // numbers, _FEWEST_RECORDS), _MOST_RECORDS)
    engine = get_engine(field.domain, field.cliques)
    codes = engine.calibrate(field.potentials(theta)).sample_rounded(n, 0)
    out, begin = np.empty((n, numbers), dtype=np.float32), 0
    for part in parts:
        shape = tuple(field.domain[name].size for name in part)
        tables: list[Any] = [_contrasts(k) for k in shape]
        table = reduce(np.kron, tables).astype(np.float32)
        cells = np.ravel_multi_index(tuple(codes[:, field.domain.index(name)] for name in part), shape)
        out[:, begin : begin + table.shape[1]] = table[cells]
        begin += table.shape[1]
    return out
