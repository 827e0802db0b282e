"""[001] Algorithms 4 and 5: binary fields of order t by a private sparse logistic regression for each column.

Algorithm 4 reads h̄(I ∪ {i}) off the regression of column i. Algorithm 5 averages the regression's derivatives over the
records, by way of released parities: ∂_I v_i(x) is an estimate of the constant h̄(I ∪ {i}) at most x when I ∪ {i} is a
*maximal* monomial, where a coefficient of v_i may be off. Line 9, corrected (as printed it multiplies the wrong
coefficient): with v_i = Σ_K v̄_i(K) x_K, the derivative ∂_I v_i is Σ_{I′} v̄_i(I ∪ I′) x_{I′} over I′ disjoint from
I ∪ {i}, so its mean is

    ū(I ∪ {i}) = Σ_{I′} v̄_i(I ∪ I′) · Q̂(I′),   |I′| ≤ t − 1 − |I|,   Q̂(∅) = 1.

Parities of order at most t − 1 suffice. For monomials that are not maximal ū estimates E ∂_{I∪{i}} h, not h̄.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from ...domain import Clique, Domain
from ...privacy.queries.parities import all_monomials
from .frank_wolfe import State

Coefficients = dict[Clique, float]


def features_of(domain: Domain, order: int) -> list[Clique]:
    """Of the regressions (lines 2 and 5): all monomials of order at most t − 1, the constant last."""
    return [*all_monomials(domain, order - 1), ()]


def regression_coefficients(domain: Domain, monomials: list[Clique], state: State) -> Coefficients:
    """Algorithm 4, lines 4–5; a coefficient that several regressions estimate is their mean, not the first one's."""
    found: dict[Clique, list[float]] = defaultdict(list)
    for name, row in zip(domain.names, state.w / 2, strict=True):
        for I, value in zip(monomials, row, strict=True):
            if name not in I:
                found[domain.clique((*I, name))].append(float(value))
    return {I: float(np.mean(values)) for I, values in found.items()}


def averaged_derivatives(
    domain: Domain, monomials: list[Clique], state: State, parities: Mapping[Clique, float]
) -> Coefficients:
    """Algorithm 5, lines 7–9; again the mean over all columns of a monomial, each of which has the guarantee."""
    total: dict[Clique, float] = defaultdict(float)
    for name, row in zip(domain.names, state.w / 2, strict=True):
        for k in np.flatnonzero(row):
            K, value = monomials[k], float(row[k])
            for size in range(len(K) + 1):
                for I in combinations(K, size):
                    rest = tuple(n for n in K if n not in I)
                    total[domain.clique((*I, name))] += value * (parities[rest] if rest else 1.0)
    return {J: value / len(J) for J, value in total.items()}


def maximal_first(averaged: Coefficients, plain: Coefficients, least: float) -> Coefficients:
    """A field with these maximal monomials: from large to small, those with |ū| ≥ η/2 that lie in none found before.

    Below them the coefficients are Algorithm 4's, since ū estimates something else there; of those, too, the ones of
    at least η/2 are kept, and all single columns.
    """
    maximal: list[Clique] = []
    for I in sorted(averaged, key=lambda I: (-len(I), I)):
        if abs(averaged[I]) >= least / 2 and not any(set(I) <= set(J) for J in maximal):
            maximal.append(I)
    out = {I: averaged[I] for I in maximal}
    for I, value in plain.items():
        below = any(set(I) < set(J) for J in maximal)
        if I not in out and below and (len(I) == 1 or abs(value) >= least / 2):
            out[I] = value
    return out
