"""Many noisy sums of small random samples as one paid step: what private stochastic gradient descent asks for.

Each round draws a Poisson sample of the units by fresh secret coins, sums a query over it and adds Gaussian noise. The
rounds are paid together, in advance, at the (ε, δ) of the composition of Poisson-sampled Gaussian mechanisms under
add-remove (``subsampled.py``). The noise is a discrete Gaussian on a grid of at least 2¹⁰ units for one
standard deviation; its sums differ from the integrals of the continuous one by a factor 1 ± e^(−2π²·2²⁰), far below
the accountant's own rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...errors import BudgetError, InputError
from ...measurement import Measurement, Measurements, Noise
from ..accounting import Cost
from ..budget import ZCDP, Amount, ApproxDP, Budget
from ..calibration import moved_by, noise_of, require_room
from ..curator import Curator
from ..mechanisms import Gateway, NoiseCall, fitting
from ..query import Query
from ..requests import Request
from ..subsampled import noise_multiplier
from ..unit import PrivacyUnit, as_probability

LEAST_SCALE = 2.0**10
_SAFE = 1 + 1e-6


def multiplier_for(unit: PrivacyUnit, budget: Budget, rate: Amount, rounds: int) -> float:
    """The noise multiplier of ``rounds`` sampled rounds, from public things only; refuses what is not accounted for."""
    if unit.relation != "add-remove":
        raise InputError("sampled rounds are accounted for under add-remove only; use another method for replace-one")
    if not isinstance(budget, ApproxDP):
        raise BudgetError(f"sampled rounds need a δ: give the budget as ApproxDP(ε, δ) instead of {budget}")
    require_room(budget)
    return noise_multiplier(float(budget.epsilon), float(budget.delta), float(as_probability(rate)), rounds)


def noise_scale(query: Query, unit: PrivacyUnit, multiplier: float) -> float:
    """The standard deviation of a round's noise, in grid units; a grid too coarse for it is refused."""
    (part,), (sensitivity,) = query.parts, query.sensitivity(unit)
    scale = math.nextafter(multiplier * math.sqrt(sensitivity.l2_squared) * _SAFE, math.inf)
    if scale < LEAST_SCALE:
        raise InputError(f"the grid of {part.label!r} is too coarse for its noise; make it finer")
    return fitting(scale)


@dataclass(frozen=True)
class SampledRounds(Request):
    """``rounds`` sums over Poisson samples of the records, ``share`` in all. The answer is a measurement a round.

    ``query`` makes each round's query from what the rounds before released, which is public; it has one part, and its
    L2 sensitivity is what its noise is scaled to. Exactly the rounds that are paid for are done.
    """

    rate: Amount
    rounds: int
    query: Callable[[Sequence[Measurement]], Query]

    def ask(self, curator: Curator) -> Measurements:
        multiplier, inside = self.pay(curator)
        done: list[Measurement] = []
        for _ in range(self.rounds):
            done.append(self.one_round(curator, inside, self.query(done), multiplier))
        return Measurements(done, curator.statement())

    def describe(self) -> dict[str, Any]:
        rate = str(as_probability(self.rate))
        return {
            "query": "subsample",
            "rate": rate,
            "rounds": self.rounds,
            "noise": "gaussian",
            "share": self.share.to_dict(),
        }

    def pay(self, curator: Curator) -> tuple[float, Gateway]:
        """Book all rounds at once: their noise multiplier, and the gateway that draws their noise."""
        multiplier = multiplier_for(curator.unit, self.share, self.rate, self.rounds)
        cost = Cost.of(self.share)
        curator._check((cost,))
        curator._spend((cost,), {**self.describe(), "multiplier": multiplier, "unit": moved_by(curator.unit)})
        # Given the coins a unit may be in every sample; then the rounds cost what they cost without sampling.
        return multiplier, curator._gateway.inside(ZCDP(Fraction(self.rounds) / (2 * Fraction(multiplier) ** 2)))

    def one_round(self, curator: Curator, inside: Gateway, query: Query, multiplier: float) -> Measurement:
        """A fresh sample, summed and noised."""
        curator.require(query)
        (part,), (sensitivity,) = query.parts, query.sensitivity(curator.unit)
        call = NoiseCall("gaussian", noise_scale(query, curator.unit, multiplier), sensitivity)
        with curator._root._lock:
            curator._check_open()
        (total,) = curator._rows.sample(as_probability(self.rate), curator._gateway.secret()).sum(query)
        return Measurement(
            part.label,
            inside.add_noise(call, total.reshape(part.shape)),
            Noise("none") if inside.origin == "exact" else noise_of(call),
            curator.domain,
            grid=part.grid,
            origin=inside.origin,
            cost={"kind": call.kind, "scale": repr(call.scale)},
            about=part.about,
        )
