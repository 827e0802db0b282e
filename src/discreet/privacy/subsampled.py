"""What rounds of Gaussian noise on Poisson samples cost together, under add-remove [MTZ19, Theorem 5 and Section 3.3].

For a whole order α the Rényi divergence of one round at rate q and noise multiplier σ is ln A / (α − 1) with
A = Σₖ C(α, k) (1 − q)^(α−k) qᵏ e^(k(k−1)/2σ²). The binomial weights add up to 1, so that A − 1 is a sum of terms of one
sign, which rounding cannot cancel. Rounds add up; of all orders the best conversion to (ε, δ) counts [CKS20,
Proposition 12].

[MTZ19] Mironov, Talwar, Zhang, arXiv:1908.10530. [CKS20] Canonne, Kamath, Steinke, arXiv:2004.00010.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetError

_SAFE = 1 + 1e-6
_FINE = 1e-7  # a multiplier is found up to this part of it
_LARGEST = 2.0**33
_LEAST_RATIO = 1e-6  # of the rate to the multiplier: below it, rounds would be paid for by next to nothing
_ORDERS = np.array([*range(2, 65), *range(72, 513, 8)])[:, None]


@lru_cache(maxsize=64)
def noise_multiplier(epsilon: float, delta: float, rate: float, rounds: int) -> float:
    """The least standard deviation, divided by the L2 sensitivity, for which the rounds are (ε, δ)-DP; rounded up."""
    low, high = 0.0, 1.0
    while epsilon_of_rounds(high, delta, rate, rounds) > epsilon and high < _LARGEST:
        low, high = high, 2 * high
    while high - low > _FINE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_of_rounds(middle, delta, rate, rounds) <= epsilon else (middle, high)
    if high >= _LARGEST or rate / high < _LEAST_RATIO:
        raise BudgetError(f"ε = {epsilon:g}, δ = {delta:g} is too small for {rounds} rounds at a rate of {rate:g}")
    return high * _SAFE


def epsilon_of_rounds(multiplier: float, delta: float, rate: float, rounds: int) -> float:
    """The ε that the rounds cost at this δ."""
    a = _ORDERS[:, 0]
    divergence = rounds * _divergence(multiplier, rate)
    with np.errstate(divide="ignore"):
        epsilon = divergence + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)
    # A divergence so small that δ alone pays for it: the total variation is at most √(1 − e^−divergence).
    return float(np.where(delta**2 + np.expm1(-divergence) > 0, 0.0, epsilon).min().clip(0.0))


def _divergence(sigma: float, q: float) -> NDArray[np.float64]:
    """Of one round, for each order."""
    if q == 1:
        return _ORDERS[:, 0] / (2 * sigma**2)
    from scipy.special import xlog1py  # slow to import, and only these rounds need it

    k, log_choose = _choices()
    with np.errstate(divide="ignore", over="ignore"):
        x = k * (k - 1) / (2 * sigma**2)
        log_terms = log_choose + xlog1py(_ORDERS - k, -q) + k * math.log(q) + x + np.log(-np.expm1(-x))
    log_terms[k > _ORDERS] = -np.inf
    log_surplus = np.logaddexp.reduce(log_terms, axis=1)
    return np.asarray(np.logaddexp(0.0, log_surplus) / (_ORDERS[:, 0] - 1), dtype=np.float64)


@cache
def _choices() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """k, and ln C(α, k) where k is at most α."""
    from scipy.special import gammaln

    k = np.arange(2.0, _ORDERS.max() + 1)[None]
    return k, gammaln(_ORDERS + 1) - gammaln(k + 1) - gammaln(np.maximum(_ORDERS - k, 0) + 1)
