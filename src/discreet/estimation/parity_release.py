"""Release of many parities at once: Gaussian noise on all of them, or private multiplicative weights.

Both return estimates of the mean of Π_{i∈I} z_i over the records, one for each monomial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique
from ..errors import CostError, InputError
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.parities import ParityResiduals, ParitySums
from .enumeration import ParityFamily, positions
from .spin_measuring import size_and_rest

Array = NDArray[np.float64]
MOST_COLUMNS = 16
_REPLAYS = 30  # passes over what was measured: post-processing


def gaussian_parities(curator: Curator, monomials: Sequence[Clique], budget: Budget | None = None) -> Array:
    """Noise on every sum (Laplace under a pure budget), divided by the public or noisy number of records."""
    whole = budget or curator.remaining or curator.budget
    for_size, rest = size_and_rest(whole, size_is_public=curator.public_size is not None)
    n = max(float(curator.size(for_size).values), 1.0)
    measured = curator.measure(ParitySums(curator.domain, monomials), rest)[0]
    return np.clip(measured.values / n, -1, 1)


def multiplicative_weights_parities(
    curator: Curator, monomials: Sequence[Clique], budget: Budget | None = None, *, rounds: int | None = None
) -> Array:
    """Private multiplicative weights in its offline form [HLM12, Figure 1], with zCDP composition.

    A distribution over all 2ᵖ records starts uniform. Each round privately selects the parity that it answers worst
    and measures that one; the distribution is then reweighted, going over all measurements several times. [001] cites
    the online form of [HR10]; the offline form answers a known list of queries with the same guarantee and less noise.
    Half of each round's share is for selection. Rounds default to a fifth of the monomials, 4 to 40.

    [HR10] Hardt, Rothblum, FOCS 2010. [HLM12] Hardt, Ligett, McSherry, NeurIPS 2012.
    """
    domain = curator.domain
    p = len(domain)
    if p > MOST_COLUMNS:
        raise CostError(f"multiplicative weights keep 2ᵖ records; up to {MOST_COLUMNS} columns, got {p}")
    if rounds is None:
        rounds = int(min(max(math.ceil(len(monomials) / 5), 4), 40, len(monomials)))
    if not 1 <= rounds <= len(monomials):
        raise InputError(f"rounds must lie between 1 and the number of monomials, got {rounds}")
    whole = budget or curator.remaining or curator.budget
    for_size, rest = size_and_rest(whole, size_is_public=curator.public_size is not None)
    n = max(float(curator.size(for_size).values), 1.0)
    family = ParityFamily(p, positions(domain.names, monomials))
    log_weights = np.zeros(1 << p)
    measured: dict[int, tuple[float, float]] = {}
    for share in rest.split([1] * rounds):
        for_choice, for_sum = share.split([1, 1])
        answers = _answers(family, log_weights)
        left = [i for i in range(len(monomials)) if i not in measured]
        score = ParityResiduals(domain, [monomials[i] for i in left], n * answers[left])
        chosen = left[curator.select(score, for_choice).indices[0]]
        noisy = curator.measure(ParitySums(domain, [monomials[chosen]]), for_sum)[0]
        measured[chosen] = (float(np.clip(noisy.values[0] / n, -1, 1)), noisy.standard_deviation / n)
        log_weights = _replay(family, log_weights, measured)
    return _answers(family, log_weights)


def _answers(family: ParityFamily, log_weights: Array) -> Array:
    weights = np.exp(log_weights - log_weights.max())
    return family.spectrum(weights / weights.sum())[family.masks]


def _replay(family: ParityFamily, log_weights: Array, measured: dict[int, tuple[float, float]]) -> Array:
    """Multiplicative updates exp(η·χ_I(z)) with η = (measured − answer)/2, over and over; stops within the noise."""
    states = np.arange(1 << family.p)
    sign = {
        i: (1.0 - 2.0 * (np.bitwise_count(states & family.masks[i]) & 1)) * (-1.0) ** len(family.monomials[i])
        for i in measured
    }
    out = log_weights
    for _ in range(_REPLAYS):
        worst = 0.0
        for i, (target, deviation) in measured.items():
            weights = np.exp(out - out.max())
            gap = target - float(weights @ sign[i] / weights.sum())
            worst = max(worst, abs(gap) - 0.1 * deviation)
            out = out + 0.5 * gap * sign[i]
        if worst <= 0:
            break
    return out
