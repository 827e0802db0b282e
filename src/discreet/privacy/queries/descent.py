"""Many noisy sums of small random samples as one paid step: what private stochastic gradient descent asks for.

Each round draws a Poisson sample of the units by fresh secret coins, sums a query over it and adds Gaussian noise. The
rounds are paid together, in advance, at the (ε, δ) that dp-accounting computes for the composition of Poisson-sampled
Gaussian mechanisms under add-remove [MTZ19]. The noise is a discrete Gaussian on a grid of at least 2¹⁰ units for one
standard deviation; its sums differ from the integrals of the continuous one by a factor 1 ± e^(−2π²·2²⁰), far below
the accountant's own rounding.

[MTZ19] Mironov, Talwar, Zhang, arXiv:1908.10530.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import dp_accounting as dp
import numpy as np
from dp_accounting import rdp
from numpy.typing import NDArray

from ...errors import BudgetError, InputError
from ..accounting import Cost
from ..budget import ZCDP, Amount, ApproxDP, Budget
from ..curator import Curator
from ..mechanisms import NoiseCall
from ..query import Query
from ..unit import PrivacyUnit, as_probability

LEAST_SCALE = 2.0**10
_SAFE = 1 + 1e-6
_ORDERS = [*range(2, 65), *range(72, 513, 8)]  # whole ones: sums in closed form


@lru_cache(maxsize=64)
def noise_multiplier(epsilon: float, delta: float, rate: float, rounds: int) -> float:
    """The least standard deviation, divided by the L2 sensitivity, for which the rounds are (ε, δ)-DP; rounded up."""

    def event(multiplier: float) -> Any:
        inner = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))
        return dp.SelfComposedDpEvent(inner, rounds)

    found = dp.calibrate_dp_mechanism(
        lambda: rdp.RdpAccountant(_ORDERS), event, epsilon, delta, dp.LowerEndpointAndGuess(0.0, 10.0), tol=1e-4
    )
    return float(found) * _SAFE


def multiplier_for(unit: PrivacyUnit, budget: Budget, rate: Amount, rounds: int) -> float:
    """The noise multiplier of ``rounds`` sampled rounds, from public things only; refuses what is not accounted for."""
    if unit.relation != "add-remove":
        raise InputError("sampled rounds are accounted for under add-remove only; use another method for replace-one")
    if not isinstance(budget, ApproxDP):
        raise BudgetError(f"sampled rounds need a δ: give the budget as ApproxDP(ε, δ) instead of {budget}")
    return noise_multiplier(float(budget.epsilon), float(budget.delta), float(as_probability(rate)), rounds)


def noise_scale(query: Query, unit: PrivacyUnit, multiplier: float) -> float:
    """The standard deviation of a round's noise, in grid units; a grid too coarse for it is refused."""
    (part,), (sensitivity,) = query.parts, query.sensitivity(unit)
    scale = math.nextafter(multiplier * math.sqrt(sensitivity.l2_squared) * _SAFE, math.inf)
    if scale < LEAST_SCALE:
        raise InputError(f"the grid of {part.label!r} is too coarse for its noise; make it finer")
    return scale


def sampled_rounds(
    curator: Curator, share: Budget | None, rate: Amount, rounds: int
) -> tuple[float, Callable[[Query], NDArray[np.float64]]]:
    """Pay for ``rounds`` sums over Poisson samples. Returns the noise multiplier and a function that does one round.

    Every query must have one part and the L2 sensitivity for which its noise is scaled; a round more than was paid for
    is refused.
    """
    budget = curator._share(share)
    multiplier = multiplier_for(curator.unit, budget, rate, rounds)
    q = as_probability(rate)
    cost = Cost.of(budget)
    curator._check((cost,))
    step = {"query": "subsample", "rate": str(q), "rounds": rounds, "noise": "gaussian", "share": budget.to_dict()}
    curator._spend((cost,), step)
    # Given the coins a unit may be in every sample; then the rounds cost what they cost without sampling.
    inside = curator._gateway.inside(ZCDP(Fraction(rounds) / (2 * Fraction(multiplier) ** 2)))
    left = [rounds]

    def one_round(query: Query) -> NDArray[np.float64]:
        with curator._root._lock:
            curator._check_open()
            if not left[0]:
                raise BudgetError(f"{rounds} rounds were paid for, and all of them are done")
            left[0] -= 1
        (part,), (sensitivity,) = query.parts, query.sensitivity(curator.unit)
        scale = noise_scale(query, curator.unit, multiplier)
        (total,) = curator._rows.sample(q, curator._gateway.secret()).sum(query)
        noisy = inside.add_noise(NoiseCall("gaussian", scale, sensitivity), total.reshape(part.shape))
        return np.asarray(noisy * float(part.grid), dtype=np.float64)

    return multiplier, one_round
