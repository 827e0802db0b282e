"""Distance to instability: release many yes-or-no findings at once, without splitting the budget between them, when all
of them are far from changing.

Every finding is a *level*: a whole number that one unit moves by at most 1, yes when it is at least 0. Let
d(D) = min over findings of ℓ (for ℓ ≥ 0) or −ℓ − 1 (below). We draw discrete Laplace noise of scale b ≥ 1/ε, let the
noisy distance d + noise out, and all signs if it is above τ, the least whole number with
P(noise > τ) = e^{−(τ+1)/b}/(1 + e^{−1/b}) ≤ δ.

Guarantee: (ε, δ)-DP, for the unit and the relation in which the levels move by at most 1. Let D, D′ be neighbours. d
moves by at most 1, because each level does. If all signs are the same on both, the output is a function of d + noise:
ε-DP. If some sign differs, that level is 0 on one side and −1 on the other, so d = 0 on both: the noisy distance has
the same law on both, and signs come out with probability at most P(noise > τ) ≤ δ. So a refusal shows the noisy
distance and nothing else, and that is paid for. [001 Section 6 names the frame; Dwork, Lei, STOC 2009; Smith, Thakurta,
COLT 2013. Compared with floor(max(0, |g| − 1)) for a real g that moves by at most 1, ⌈g⌉ − 1 for g > 0 and ⌊−g⌋ for
g ≤ 0 gains one step, and is what (G − 1)//K gives for g = G/K in whole numbers, without any rounding.]

Levels may be combined by minimum and maximum ("all of", "any of") at no cost: both keep the bound of 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute
from ..errors import BudgetError
from ..progress import listening, nobody
from ..tables.base import IntArray
from . import mechanisms
from .accounting import Cost
from .budget import ApproxDP, Budget
from .calibration import drawn
from .holder import Holder
from .levels import Released
from .mechanisms import NoiseCall
from .query import Noun, Query, named
from .unit import PrivacyUnit, Sensitivity

_ONE_STEP = Sensitivity(l1=1, l2_squared=1, linf=1, l0=1)


Ask = Callable[[Query], Sequence[IntArray]]  # sums over all records, exact: for levels, and never let out


class StabilityTest(ABC):
    """Findings about sums over the records, as levels that no unit moves by more than 1. Score and sensitivity in one
    object: ``levels`` divides every margin by how far a unit can move it.
    """

    noun: ClassVar[Noun] = ("test of stability", "tests of stability")
    needs_weights = False

    @property
    @abstractmethod
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that it may ask about, as they are in the domain that it was made for."""

    @abstractmethod
    def levels(self, ask: Ask, unit: PrivacyUnit) -> IntArray:
        """One whole number for each finding; at least 0 means yes. How many there are is public.

        What is asked for may depend on earlier sums, because nothing but the levels matters: they are what one unit
        moves by at most 1.
        """

    def describe(self) -> dict[str, Any]:
        return named("test", self)


@dataclass(frozen=True, eq=False)
class Stability:
    """The outcome of a test: signs (and for words, the word), or a refusal, with the noisy distance in any case."""

    signs: NDArray[np.bool_] | None
    word: str | None
    noisy_distance: int
    threshold: int
    scale: float

    @property
    def refused(self) -> bool:
        return self.signs is None

    @classmethod
    def of(cls, call: NoiseCall, released: Released) -> Stability:
        assert call.threshold is not None
        return cls(released.signs, released.word, released.noisy_distance, call.threshold, call.scale)


def plan_stability(share: Budget) -> tuple[NoiseCall, Cost]:
    """Noise, threshold and cost of one test."""
    if not isinstance(share, ApproxDP):
        raise BudgetError(
            f"a test of stability needs a δ; give the share as ApproxDP(ε, δ) instead of {share}, or use a learner for "
            "pure DP and zCDP (SelectedEdges)"
        )
    scale = mechanisms.laplace_scale(1, share.epsilon)
    threshold = mechanisms.stability_threshold(scale, share.delta)
    return NoiseCall("stability", scale, _ONE_STEP, threshold), Cost.approx(share.epsilon, share.delta)


def release(curator: Holder, test: StabilityTest, share: Budget | None) -> Stability:
    """See :meth:`Curator.release_if_stable`."""
    share = curator._share(share)
    call, cost = plan_stability(share)
    curator.require(test)
    curator._check((cost,))
    with listening(nobody):  # how often a test goes over the rows may depend on what it finds there
        levels = np.asarray(test.levels(curator._sum, curator.unit), dtype=np.int64)
    step = {**test.describe(), "noise": "stability", "share": share.to_dict()}
    curator._spend((cost,), {**step, **drawn([call], curator.unit)})
    return Stability.of(call, curator._gateway.release_stable(call, levels, ""))
