"""Tables of many cliques of one model at once: exactly where its graph allows it, otherwise from drawn records."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique
from ..graph import DEFAULT_MEMORY_LIMIT
from ..inference.exact import get_engine
from .base import Model

Array = NDArray[np.float64]
EXACTLY = "exactly"
DRAWN = 200_000  # records that stand for a model whose marginals cannot be computed
MOST_LEVELS = 8192
"""Levels of all columns together, up to which the tables of all pairs are made at once: 512 MiB."""

MOST_WHOLE = 1 << 13
"""Cells of all columns together, up to which many tables are sums of that one: far faster than a way for each."""


def marginals(model: Model, cliques: Sequence[Clique]) -> tuple[list[Array], str]:
    """What the model says of each clique, and how that was computed: exactly, or, where its graph is too wide, from
    records drawn from it, always the same ones."""
    if model.forecast.bytes <= DEFAULT_MEMORY_LIMIT:
        potentials = model.compact
        engine = get_engine(potentials.domain, potentials.cliques, memory_limit=DEFAULT_MEMORY_LIMIT)
        beliefs = engine.calibrate(potentials)
        levels = all(name in model.domain for c in cliques for name in c)  # and not groups of them
        if levels and len(cliques) > len(model.domain) and math.prod(model.domain.shape) <= MOST_WHOLE:
            whole = np.asarray(beliefs.probabilities(model.domain.names), dtype=np.float64)
            return [_onto(whole, [model.domain.index(name) for name in c]) for c in cliques], EXACTLY
        if len(cliques) < len(model.domain) or sum(model.domain.shape) > MOST_LEVELS:
            return [np.asarray(beliefs.probabilities(c)) for c in cliques], EXACTLY
        pairs = beliefs.pairs()  # all at once: the way between two columns is walked once for many
        found = [pairs[c[0], c[1]] if len(c) == 2 else beliefs.probabilities(c) for c in cliques]
        return [np.asarray(table, dtype=np.float64) for table in found], EXACTLY
    codes = model.sample(DRAWN, random_state=0, labels=True).codes
    at = {name: codes[:, i].astype(np.int64) for i, name in enumerate(model.domain.names)}
    out = []
    for clique in cliques:
        shape = tuple(model.domain[n].size for n in clique)
        cells = np.ravel_multi_index([at[n] for n in clique], shape)
        out.append(np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / DRAWN)
    return out, "from records drawn from the model"


def _onto(whole: Array, kept: Sequence[int]) -> Array:
    """The sums over all other axes, with the kept ones in this order."""
    summed = whole.sum(axis=tuple(a for a in range(whole.ndim) if a not in kept))
    rank = sorted(kept)
    return np.asarray(summed.transpose([rank.index(a) for a in kept]))


def from_independence(tables: Sequence[Array], weights: Sequence[int] = ()) -> float:
    """How far the model's own tables are from those of independent columns, in total variation, on average."""
    return float(np.average([np.abs(mu - _product(mu)).sum() / 2 for mu in tables], weights=weights or None))


def from_sampling(tables: Sequence[Array], records: float, weights: Sequence[int] = ()) -> float:
    """How far a fresh sample of so many records would be from these tables, in total variation, on average."""
    return float(np.average([_sampled(mu, records) for mu in tables], weights=weights or None))


def _sampled(p: Array, records: float) -> float:
    """Of one table.

    ½ Σ √(1 − p) E|X − λ| / n with X of Poisson's law of mean λ = np, where E|X − λ| = 2 e^−λ λ^(k+1) / k! for k = ⌊λ⌋.
    The root is what makes a count's variance binomial.
    """
    from scipy.special import gammaln

    expected = p[p > 0] * records
    whole = np.floor(expected)
    deviation = 2 * np.exp((whole + 1) * np.log(expected) - expected - gammaln(whole + 1))
    return float((np.sqrt(1 - np.minimum(p[p > 0], 1)) * deviation).sum() / 2 / records)


def _product(mu: Array) -> Array:
    out = np.ones(())
    for axis in range(mu.ndim):
        out = np.multiply.outer(out, mu.sum(axis=tuple(a for a in range(mu.ndim) if a != axis)))
    return out
