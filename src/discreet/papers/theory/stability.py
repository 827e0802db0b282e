"""[001] Lemma 6.1 ([000] Lemma 5.1): from a learner that is mostly right to a private one, by the most frequent answer.

The records are split into m blocks, the learner answers on each, the answers are counted, Laplace(2/ε) noise is added
to the counts of answers that occurred, and the answer with the largest noisy count is released if that exceeds
1 + 2 ln(2/δ)/ε (Vadhan's stability histogram; a record changes one vote, hence two counts by one).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_positive
from ...errors import InputError
from .bound import probability

Array = NDArray[np.float64]


def threshold(epsilon: float, delta: float) -> float:
    """What a noisy count must exceed to be released."""
    check_positive(epsilon=epsilon)
    probability(delta=delta)
    return 1 + 2 * math.log(2 / delta) / epsilon


def mode_failure(blocks: int, epsilon: float, delta: float, base_success: float = 2 / 3) -> float:
    """An upper bound on the probability that the right answer is *not* released; **proved**.

    Exact in the number of right votes, c ~ Bin(m, s); given it, a union of "c + noise ≤ threshold" and "some wrong
    answer has the larger noisy count". The chance of the latter is convex in each wrong count, so the worst split of
    the m − c wrong votes is all for one answer or each for its own.
    """
    from scipy.stats import binom

    c = np.arange(blocks + 1, dtype=np.float64)
    chance = binom.pmf(c, blocks, base_success)
    b = 2 / epsilon
    too_low = _laplace_tail(c - threshold(epsilon, delta), b)
    wrong = blocks - c
    one = np.where(wrong > 0, _difference_tail(c - wrong, b), 0.0)
    many = wrong * _difference_tail(c - 1, b)
    failure = np.minimum(1.0, too_low + np.maximum(one, many))
    return float(min(1.0, chance @ failure))


def _laplace_tail(margin: Array, b: float) -> Array:
    """P(Laplace(b) ≤ −margin)."""
    half = 0.5 * np.exp(-np.abs(margin) / b)
    out: Array = np.where(margin >= 0, half, 1 - half)
    return out


def _difference_tail(margin: Array, b: float) -> Array:
    """P(L₁ − L₂ ≥ margin) for two independent Laplace(b)."""
    x = np.abs(margin) / b
    tail = (0.5 + x / 4) * np.exp(-x)
    out: Array = np.where(margin >= 0, tail, 1 - tail)
    return out


def blocks_needed(epsilon: float, delta: float, *, success: float, base_success: float = 2 / 3) -> int:
    """The least number of blocks with which the right answer is released with probability ``success``; **proved**."""
    probability(success=success, base_success=base_success)
    if base_success <= 0.5:
        raise InputError(f"the learner must be right more often than not, got base_success={base_success}")
    high = 1
    while mode_failure(high, epsilon, delta, base_success) > 1 - success:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if mode_failure(middle, epsilon, delta, base_success) <= 1 - success else (middle, high)
        )
    return high
