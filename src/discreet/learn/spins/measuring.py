"""What to ask about spins, and for how much: all moments and the important ones again, all of them once, or a private
choice of pairs.

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
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.queries.parities import ParitySums, PartnerResiduals
from ...privacy.unit import PrivacyUnit
from .ising_fit import Pair, explained, significant_pairs
from .moments import SpinMoments

Strategy = Literal["auto", "all pairs", "selected pairs", "one shot"]
STRATEGIES = ("auto", "all pairs", "selected pairs", "one shot")
SIZE_SHARE = 2  # percent of the budget for the number of records, when it is not public
LIMIT = 0.08  # of what stands out among all pair correlations, beyond which pairs are selected first
PARTNERS = 4  # that a column selects
SELECTED_SHARES = (8, 32, 60)  # means; selection; means and chosen pairs
_ALL = "means and all pair sums"
_CHOSEN = "means and sums of pairs"  # followed by positions, so that what was measured can be read off


@dataclass(frozen=True)
class Measured:
    """What was released, read as moments."""

    moments: SpinMoments
    strategy: str
    pairs: tuple[Pair, ...] | None  # measured last, because they may have a coupling; None: all were, once
    dense: bool

    @classmethod
    def of(cls, measurements: Measurements) -> Measured:
        """From the number of records and noisy sums, as :func:`measure_spins` returns them."""
        sizes = sorted((m for m in measurements if m.clique == ()), key=lambda m: m.noise.variance)  # the surest first
        sums = [m for m in measurements if m.clique is None]
        if not sizes or not sums:
            raise InputError(
                "an Ising model is estimated from a number of records and sums of spins, as IsingLearner.measure gives "
                f"them; got {', '.join(repr(m.label) for m in measurements) or 'nothing'}"
            )
        domain = sums[0].domain
        monomials = [monomials_of(m) for m in sums]
        moments = SpinMoments.of(domain, max(float(sizes[0].values), 1.0), zip(monomials, sums, strict=True))
        if len(sums) == 1:
            return cls(moments, "one shot", None, False)
        names = {name: i for i, name in enumerate(domain.names)}
        last = tuple((names[I[0]], names[I[1]]) for I in monomials[-1] if len(I) == 2)
        everything = [m.label == _ALL for m in sums]
        return cls(moments, "all pairs" if everything[0] else "selected pairs", last, all(everything))


def pair_sums(domain: Domain) -> ParitySums:
    """All single and pair sums."""
    singles = [(n,) for n in domain.names]
    return ParitySums(domain, [*singles, *combinations(domain.names, 2)], label=_ALL)


def chosen_sums(domain: Domain, pairs: Sequence[Pair]) -> ParitySums:
    names = domain.names
    chosen = [(names[i], names[j]) for i, j in pairs]
    label = " ".join([_CHOSEN, *(f"{i}-{j}" for i, j in pairs)])
    return ParitySums(domain, [*((n,) for n in names), *chosen], label=label)


def monomials_of(measurement: Measurement) -> tuple[Clique, ...]:
    """Which sums these are: all, or those that the label names by position."""
    domain, label = measurement.domain, measurement.label
    pairs: list[Pair] = []
    if label.startswith(_CHOSEN):
        found = re.findall(r" (\d+)-(\d+)", label.removeprefix(_CHOSEN))
        pairs = [(int(i), int(j)) for i, j in found if int(i) < int(j) < len(domain)]
    query = pair_sums(domain) if label == _ALL else chosen_sums(domain, pairs)
    if query.parts[0].label != label or query.parts[0].shape != measurement.counts.shape:
        raise InputError(f"{label!r} are not sums of the spins of these columns, as IsingLearner.measure gives them")
    return query.monomials


def size_and_rest(budget: Budget, *, size_is_public: bool) -> tuple[Budget | None, Budget]:
    if size_is_public:
        return None, budget
    size, rest = budget.split([SIZE_SHARE, 100 - SIZE_SHARE])
    return size, rest


def choose(domain: Domain, unit: PrivacyUnit, rest: Budget, size: float | None, wish: Strategy) -> str:
    """Which of the two ways: from the noise that all pairs would get, and the public or noisy number of records."""
    p = len(domain)
    pairs = p * (p - 1) // 2
    if wish == "one shot":
        return wish
    if pairs <= PARTNERS * p or (wish == "auto" and size is None):
        return "all pairs"
    if wish != "auto":
        return wish
    assert size is not None
    half = rest.split([1, 1])[0]
    deviation = noise_of(plan_noise(pair_sums(domain), unit, half).calls[0]).standard_deviation
    hidden = deviation / max(size, 1.0) * (math.sqrt(2 * math.log(pairs)) + 0.5)
    return "selected pairs" if hidden > LIMIT else "all pairs"


def measure_spins(
    curator: Curator, budget: Budget, wish: Strategy, *, most: int | None = None, least: float = 0.0
) -> Measurements:
    """Ask the curator: the number of records, then sums. ``most`` and ``least`` are public bounds on the number and
    size of couplings."""
    for_size, rest = size_and_rest(budget, size_is_public=curator.public_size is not None)
    size = curator.size(for_size)
    n = max(float(size.values), 1.0)
    exact = size.origin == "exact"
    strategy = "all pairs" if exact and wish == "auto" else choose(curator.domain, curator.unit, rest, n, wish)
    if strategy == "one shot":
        sums = [curator.measure(pair_sums(curator.domain), rest)[0]]
    elif strategy == "all pairs":
        sums = _all_pairs(curator, rest, n, most, least)
    else:
        sums = _selected_pairs(curator, rest, n)
    return Measurements([size, *sums], curator.statement())


def _all_pairs(curator: Curator, rest: Budget, n: float, most: int | None, least: float) -> list[Measurement]:
    domain = curator.domain
    everything = pair_sums(domain)
    for_all, for_chosen = rest.split([1, 1])
    first = curator.measure(everything, for_all)[0]
    moments = SpinMoments.of(domain, n, [(everything.monomials, first)])
    pairs, dense = significant_pairs(domain, moments, most=most, least=least, generous=True)
    if not dense and most is None and least == 0:
        pairs = explained(moments, pairs)
    return [first, curator.measure(everything if dense else chosen_sums(domain, pairs), for_chosen)[0]]


def _selected_pairs(curator: Curator, rest: Budget, n: float) -> list[Measurement]:
    domain = curator.domain
    for_means, for_choice, for_sums = rest.split(list(SELECTED_SHARES))
    alone = chosen_sums(domain, [])
    first = curator.measure(alone, for_means)[0]
    means = SpinMoments.of(domain, n, [(alone.monomials, first)]).single
    # Means that are all noise would send the search after products of noise.
    means = np.where(np.abs(means) > 2 * first.standard_deviation / n, means, 0.0)
    score = PartnerResiduals(domain, n * np.outer(means, means))
    found: set[Pair] = set()
    for i, selection in enumerate(curator.select_each(score, for_choice, k=min(PARTNERS, len(domain) - 1))):
        for c in selection.indices:
            j = c if c < i else c + 1
            found.add((min(i, j), max(i, j)))
    return [first, curator.measure(chosen_sums(domain, sorted(found)), for_sums)[0]]
