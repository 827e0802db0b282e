"""Generated networks and fields whose families are too large for the records. They are log-linear, so that some parents
tell much and others next to nothing. The library's weights were chosen on networks of another kind."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from discreet.domain import Domain
from discreet.factor import CliqueVector
from discreet.models import BayesianNetwork, MarkovRandomField

LEVELS = (2, 2, 3, 3, 4, 6, 10, 16, 24)
WINDOW, MOST_PARENTS = 6, 5
SMALLEST_FAMILY, LARGEST_FAMILY = 1.5, 4.7
"""Powers of ten between which the cells of families lie."""


def thin_network(columns: int, seed: int) -> BayesianNetwork:
    """Each column has parents among the few before it, until its family has about as many cells as were drawn for it;
    the log odds are main effects of each parent, with strengths from none to several, and a little interaction."""
    rng = np.random.default_rng(10_000 + seed)
    names = [f"x{i}" for i in range(columns)]
    levels = rng.choice(LEVELS, columns)
    parents: dict[str, tuple[str, ...]] = {}
    tables = {}
    for i, name in enumerate(names):
        room, cells, above = 10 ** rng.uniform(SMALLEST_FAMILY, LARGEST_FAMILY), int(levels[i]), []
        before = np.arange(max(0, i - WINDOW), i)
        rng.shuffle(before)
        for j in before:
            if len(above) < MOST_PARENTS and cells * levels[j] <= room:
                above.append(j)
                cells *= int(levels[j])
        shape = [*(int(levels[j]) for j in above), int(levels[i])]
        odds = np.zeros(shape) + rng.normal(0, 1, levels[i]) + 0.4 * rng.normal(0, 1, shape)
        for axis, j in enumerate(above):
            effect = rng.gamma(1.0, 1.2) * rng.normal(0, 1, (levels[j], levels[i]))
            odds += effect.reshape([levels[j] if a == axis else 1 for a in range(len(above))] + [levels[i]])
        rows = np.exp(odds - odds.max(axis=-1, keepdims=True)) + 1e-9
        parents[name] = tuple(names[j] for j in above)
        tables[name] = rows / rows.sum(axis=-1, keepdims=True)
    return BayesianNetwork(Domain.of(dict(zip(names, map(int, levels), strict=True))), parents, tables)


def thin_field(columns: int, window: int, seed: int) -> tuple[MarkovRandomField, list[tuple[str, ...]]]:
    """A field on windows of columns that overlap in two, log-linear as above: pairs with strengths from none to
    several, and a little of everything else; and its cliques."""
    rng = np.random.default_rng(20_000 + seed)
    names = [f"x{i}" for i in range(columns)]
    levels = dict(zip(names, map(int, rng.choice(LEVELS[:6], columns)), strict=True))
    domain = Domain.of(levels)
    cliques = [tuple(names[i : i + window]) for i in range(0, columns - window + 1, max(1, window - 2))]
    tables = {}
    for clique in cliques:
        shape = [levels[n] for n in clique]
        odds = 0.2 * rng.normal(0, 1, shape)
        for a, b in combinations(range(window), 2):
            effect = rng.gamma(1.0, 0.7) * rng.normal(0, 1, (shape[a], shape[b]))
            odds += effect.reshape([shape[k] if k in (a, b) else 1 for k in range(window)])
        tables[clique] = odds
    return MarkovRandomField(domain, CliqueVector(domain, tables)), cliques
