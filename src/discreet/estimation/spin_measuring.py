"""What to ask about spins, and for how much: all moments and the important ones again, or a private choice of pairs.

The number of records, when it is not public, costs two percent. With half of the rest *all* means and pair sums are
measured; what may stand out of their noise is measured again with the other half, and everything else is known to be
small. Where nothing stands out because nearly everything does, all sums are measured again: nothing is lost, as two
Gaussian halves are one whole. When the noise of all pairs together would hide typical couplings, each column privately
selects its most correlated partners instead, and only those pairs are measured.

Every decision is made from public quantities: the budget, the number of columns, the public or noisy number of
records, and sums that were already released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from ..domain import Clique, Domain
from ..measurement import Measurement
from ..privacy.budget import Budget
from ..privacy.calibration import noise_of, plan_noise
from ..privacy.curator import Curator
from ..privacy.parities import ParitySums, PartnerResiduals
from ..privacy.unit import PrivacyUnit
from .ising_fit import Pair, explained, significant_pairs
from .spin_moments import SpinMoments

Strategy = Literal["auto", "all pairs", "selected pairs"]
SIZE_SHARE = 2  # percent of the budget for the number of records, when it is not public
LIMIT = 0.15  # of what stands out among all pair correlations, beyond which pairs are selected first
PARTNERS = 4  # that a column selects
SELECTED_SHARES = (8, 32, 60)  # means; selection; means and chosen pairs


@dataclass(frozen=True)
class Measured:
    """What was released, and the moments that follow from it."""

    moments: SpinMoments
    sums: tuple[tuple[tuple[Clique, ...], Measurement], ...]
    strategy: str
    size: Measurement
    pairs: tuple[Pair, ...]  # that may have a coupling: measured last
    dense: bool


def pair_sums(domain: Domain) -> ParitySums:
    """All single and pair sums."""
    singles = [(n,) for n in domain.names]
    return ParitySums(domain, [*singles, *combinations(domain.names, 2)], label="means and pair correlations")


def chosen_sums(domain: Domain, pairs: list[Pair]) -> ParitySums:
    names = domain.names
    chosen = [(names[i], names[j]) for i, j in pairs]
    return ParitySums(domain, [*((n,) for n in names), *chosen], label="means and chosen pair correlations")


def size_and_rest(budget: Budget, *, size_is_public: bool) -> tuple[Budget | None, Budget]:
    if size_is_public:
        return None, budget
    size, rest = budget.split([SIZE_SHARE, 100 - SIZE_SHARE])
    return size, rest


def choose(domain: Domain, unit: PrivacyUnit, rest: Budget, size: float | None, wish: Strategy) -> str:
    """Which of the two ways: from the noise that all pairs would get, and the public or noisy number of records."""
    p = len(domain)
    pairs = p * (p - 1) // 2
    if wish != "auto" or pairs <= 2 * PARTNERS * p:
        return "all pairs" if wish == "auto" or pairs <= PARTNERS * p else wish
    if size is None:
        return "all pairs"
    half = rest.split([1, 1])[0]
    deviation = noise_of(plan_noise(pair_sums(domain), unit, half).calls[0]).standard_deviation
    hidden = deviation / max(size, 1.0) * (math.sqrt(2 * math.log(pairs)) + 0.5)
    return "selected pairs" if hidden > LIMIT else "all pairs"


def measure_spins(
    curator: Curator, budget: Budget, wish: Strategy, *, most: int | None = None, least: float = 0.0
) -> Measured:
    """Ask the curator. ``most`` and ``least`` are public bounds on the number and size of couplings."""
    for_size, rest = size_and_rest(budget, size_is_public=curator.public_size is not None)
    size = curator.size(for_size)
    n = max(float(size.values), 1.0)
    exact = size.origin == "exact"
    strategy = "all pairs" if exact and wish == "auto" else choose(curator.domain, curator.unit, rest, n, wish)
    if strategy == "all pairs":
        return _all_pairs(curator, rest, n, size, most, least)
    return _selected_pairs(curator, rest, n, size)


def _all_pairs(curator: Curator, rest: Budget, n: float, size: Measurement, most: int | None, least: float) -> Measured:
    domain = curator.domain
    everything = pair_sums(domain)
    first, second = rest.split([1, 1])
    sums = [(everything.monomials, curator.measure(everything, first)[0])]
    moments = SpinMoments.of(domain, n, sums)
    pairs, dense = significant_pairs(domain, moments, most=most, least=least, generous=True)
    if not dense and most is None and least == 0:
        pairs = explained(moments, pairs)
    again = everything if dense else chosen_sums(domain, pairs)
    sums.append((again.monomials, curator.measure(again, second)[0]))
    return Measured(SpinMoments.of(domain, n, sums), tuple(sums), "all pairs", size, tuple(pairs), dense)


def _selected_pairs(curator: Curator, rest: Budget, n: float, size: Measurement) -> Measured:
    domain = curator.domain
    for_means, for_choice, for_sums = rest.split(list(SELECTED_SHARES))
    alone = chosen_sums(domain, [])
    sums = [(alone.monomials, curator.measure(alone, for_means)[0])]
    means = SpinMoments.of(domain, n, sums).single
    # Means that are all noise would send the search after products of noise.
    noise = sums[0][1].standard_deviation / n
    means = np.where(np.abs(means) > 2 * noise, means, 0.0)
    score = PartnerResiduals(domain, n * np.outer(means, means))
    found: set[Pair] = set()
    for i, selection in enumerate(curator.select_each(score, for_choice, k=min(PARTNERS, len(domain) - 1))):
        for c in selection.indices:
            j = c if c < i else c + 1
            found.add((min(i, j), max(i, j)))
    chosen = chosen_sums(domain, sorted(found))
    sums.append((chosen.monomials, curator.measure(chosen, for_sums)[0]))
    pairs = tuple(sorted(found))
    return Measured(SpinMoments.of(domain, n, sums), tuple(sums), "selected pairs", size, pairs, False)
