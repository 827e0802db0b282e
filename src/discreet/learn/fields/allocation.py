"""How a share is divided among tables that overlap, with what was bought before: for the least error of what is wanted.

A table T over its columns is wrong by the noise of all that it is made of: its interaction, those of smaller sets, and
single columns. With u_S = (number of cells)²·(noise variance in a cell) of each part S, its error in L1 is about

    √(2/π)·√(Σ_{S ⊆ T} u_S),

where u of a set that nobody measures is its distance, squared, instead. Let P_S be the precision (1/variance) that was
bought before, and κ_S the price of one more. Then Σ_T w_T·√(…) is least, under Σ κ_S·q_S = B, where

    P_S + q_S = max(P_S, √(g_S·a_S c_S²/(λ κ_S))),  g_S = Σ_{T ⊇ S} w_T / (2√(Σ_{R ⊆ T} u_R)),

a_S the part of directions that counts and c_S the cells: the price λ is found by bisection, and g by a few rounds. So
what was measured before and is good enough gets nothing, and what is short gets more. Public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from ...domain import Clique
from .growth import Prices

ROUNDS = 12
"""Of g; after it changes no more than a hundredth."""
LEAST = 1e-6
"""Portions below this part of the largest are left out."""


def portions(
    prices: Prices,
    chosen: Sequence[Clique],
    known: Mapping[Clique, float],
    distances: Mapping[Clique, float],
    apart: Mapping[str, float],
) -> dict[Clique, float]:
    """Of the share, for each set that is to be measured: those chosen, and those known with precisions P_S already.

    ``distances``: of sets that nobody measures, which count with them. ``apart``: the precisions of the tables that
    tell apart the levels of a group (:mod:`.grouping`), which count with every set that has the groups.
    """
    from scipy.sparse import csr_array  # slow to import

    parts = list(dict.fromkeys([*known, *chosen]))
    at = {c: i for i, c in enumerate(parts)}
    wanted = list(dict.fromkeys([*parts, *distances]))
    within_groups = {name: len(parts) + i for i, name in enumerate(apart)}
    rows, columns = [], []
    for i, t in enumerate(wanted):
        for k in range(1, len(t) + 1):
            inside = [at[s] for s in combinations(t, k) if s in at]
            rows += [i] * len(inside)
            columns += inside
        levels = [within_groups[n] for n in t if n in apart]
        rows += [i] * len(levels)
        columns += levels
    within = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(wanted), len(parts) + len(apart)))
    weight = np.array([prices.weight(t) if len(t) > 1 else 1.0 for t in wanted])
    missed = np.array([0.0 if t in at else math.pi / 2 * max(distances[t], 0.0) ** 2 for t in wanted])
    before = np.array([*(known.get(c, 0.0) for c in parts), *apart.values()])
    of = [(prices.domain[n], prices.levels_of(n)) for n in apart]
    # The levels of a group are told apart by what a table of all levels says beside what one of groups says.
    levels_scale = [column.size**2 * (1 - groups.size / column.size) for groups, column in of]
    scale = np.array([*(prices.directions(c) * prices.domain.size(c) ** 2 for c in parts), *levels_scale])
    price = np.array([*(prices.moved(c) for c in parts), *[1.0] * len(apart)])
    budget = prices.precision
    bought = np.full(len(price), budget / price.sum())
    for _ in range(ROUNDS):
        u = scale / (before + bought)
        worth = within.T @ (weight / (2 * np.sqrt(missed + within @ u)))
        level = np.sqrt(worth * scale / price)
        bought = _filled(level, before, price, budget)
    spent = price * bought
    names = [*parts, *((column.name,) for _, column in of)]
    return {c: float(x) for c, x in zip(names, spent, strict=True) if x > LEAST * spent.max()}


def _filled(level: np.ndarray, before: np.ndarray, price: np.ndarray, budget: float) -> np.ndarray:
    """q = max(level·z − P, 0) with the z for which Σ κq is the budget: exact, by the order in which parts come in."""
    order = np.argsort(before / level)
    floor, slope = np.cumsum((price * before)[order]), np.cumsum((price * level)[order])
    z = (budget + floor) / slope  # if the first so many take part
    last = int(np.flatnonzero(z >= (before / level)[order])[-1])
    return np.asarray(np.maximum(level * z[last] - before, 0.0))
