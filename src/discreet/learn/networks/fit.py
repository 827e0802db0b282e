"""Fit of the whole network to noisy tables: where noise dominates, the graph knows more than a table alone.

The family tables of one network constrain each other beyond their shared margins: columns that the graph makes
independent must be so in every table. Take the exact tables C_t as unknown counts of n records drawn from the network
with parameters Θ. Given Θ, a cell of C_t has mean nμ_t and variance near nμ_t, and the noisy cell g_t has variance v_t
around C_t; so the best linear guess of the exact cell is

    Ĉ_t = nμ_t + nμ_t/(nμ_t + v_t) · (g_t − nμ_t),

the noisy cell itself where the signal dominates (nμ_t ≫ v_t: the closed form) and the network's expectation where the
noise does. Setting Θ to the conditional rows of Ĉ, and again, is expectation–maximisation for the maximum-likelihood
fit of the network to the noisy tables. It starts from the smoothed rows, which are the prior as well (the maximum a
posteriori fit), and is stopped early: what they know about rows that no table says anything about is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...count_table import CountTable
from ...domain import Clique
from ...errors import CostError
from ...factor import Array
from ...graph import DEFAULT_MEMORY_LIMIT
from ...inference.exact import ExactEngine, get_engine
from .families import Families

STEPS = 4
PRIOR = 30.0
"""Every row counts for so many standard deviations of noise, in records, as it was at the start: what the start knows
of rows with few records is not lost. (With next to nothing instead, KL on *alarm* at ε = 10 was 1.25 times that.)"""
LEAST = 1e-6


def engine_for(families: Families, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> ExactEngine | None:
    """The engine for the network's graph, or None when exact inference on it would take too much memory."""
    try:
        return get_engine(families.domain, tuple(families.cliques.values()), memory_limit=memory_limit)
    except CostError:
        return None


def fit_network(
    families: Families,
    engine: ExactEngine,
    rows: Mapping[str, Array],
    tables: Mapping[Clique, CountTable],
    homes: Mapping[str, Clique],
    total: float,
    steps: int = STEPS,
) -> dict[str, Array]:
    """Conditional rows after some steps from ``rows``. ``tables`` are the noisy tables, ``homes`` says which of them
    each column's family is taken from."""
    current = dict(rows)
    used = [tables[c] for c in dict.fromkeys(homes.values())]
    # Tables that no node of the tree holds would need elimination: they are left as they are.
    noisy = {t.clique for t in used if t.variance > 0 and engine.tree.find_home(t.clique) is not None}
    guess = {t.clique: replace(t, values=np.maximum(t.values, 0.0)) for t in used}
    for _ in range(steps):
        beliefs = engine.calibrate(_potentials(families, current))
        for c in noisy:
            g, v = tables[c].values, tables[c].variance
            expected = total * beliefs.probabilities(c)
            # nμ + nμ/(nμ + v)·(g − nμ), kept positive
            guess[c] = replace(guess[c], values=expected * np.maximum(1 + (g - expected) / (expected + v), LEAST))
        for name in families.domain:
            if homes[name] in noisy:
                deviation = families.table(name, tables[homes[name]]).variance ** 0.5
                counts = families.table(name, guess[homes[name]]).values
                current[name] = _rows(counts, rows[name], PRIOR * deviation)
    return current


def _rows(table: Array, start: Array, records: float) -> Array:
    counts = table + records * start
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _potentials(families: Families, rows: Mapping[str, Array]) -> dict[Clique, Array]:
    out: dict[Clique, Array] = {}
    for name, table in rows.items():
        scope, clique = (*families.parents[name], name), families.cliques[name]
        with np.errstate(divide="ignore"):
            values = np.log(np.transpose(table, [scope.index(n) for n in clique]))
        out[clique] = out[clique] + values if clique in out else values
    return out
