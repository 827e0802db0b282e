"""What to ask about spins, and for how much: all parities and the important ones again, all of them once, or (for order
2) a private choice of pairs.

With half of the budget *all* parities up to the order are measured; what may stand out of their noise is measured again
with the other half, and everything else is known to be small. Where nothing stands out because nearly everything does,
all are measured again: nothing is lost, as two Gaussian halves are one whole. When the noise of all pairs together
would hide typical couplings, each column privately selects its most correlated partners instead, and only those pairs
are measured.

Every decision is made from public quantities: the budget, the number of columns, the public or noisy number of
records, and sums that were already released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.queries.parities import ParitySums, PartnerResiduals, all_monomials, measured_monomials
from ...privacy.requests import Asking, Measure, SelectEach
from ..counting import records_in
from ..planned import measuring, selecting
from ..procedure import Found, Step, Whole
from ..steps import in_turn
from .moments import Moments
from .support import can_explain, explained, significant

Strategy = Literal["auto", "all", "selected", "one shot"]
STRATEGIES = ("auto", "all", "selected", "one shot")
LIMIT = 0.08  # of what stands out among all pair correlations, beyond which pairs are selected first
PARTNERS = 4  # that a column selects
SELECTED_SHARES = (8, 32, 60)  # means; selection; means and chosen pairs
EITHER = "means and pair sums: all pairs, or selected pairs, as the noisy number of records says"


def all_sums(domain: Domain, order: int) -> ParitySums:
    """All parities up to an order."""
    return ParitySums(domain, all_monomials(domain, order), label=_all_name(order))


def chosen_sums(domain: Domain, joint: Sequence[Clique]) -> ParitySums:
    """The parities of all single columns and of these monomials."""
    label = "means and chosen pair sums" if all(len(I) == 2 for I in joint) else "chosen parities"
    return ParitySums(domain, [*((n,) for n in domain.names), *joint], label=label if joint else "means")


def _all_name(order: int) -> str:
    return {1: "means", 2: "means and all pair sums"}.get(order, f"all parities up to order {order}")


@dataclass(frozen=True)
class Sums:
    """The noisy sums of spins among measurements, and the number of records (the surest that there is)."""

    records: float
    parts: tuple[tuple[tuple[Clique, ...], Measurement], ...]

    @classmethod
    def among(cls, released: Measurements) -> Sums:
        parts = tuple((measured_monomials(m), m) for m in released if "parities" in m.about)
        if not parts or not any(m.clique == () for m in released):
            raise InputError(
                "a field of spins is estimated from a number of records and sums of parities, as SpinField.measure "
                f"gives them; got {', '.join(repr(m.label) for m in released)}"
            )
        return cls(records_in(released), parts)

    @property
    def domain(self) -> Domain:
        return self.parts[0][1].domain

    @property
    def moments(self) -> Moments:
        return Moments.of(self.domain, self.records, self.parts)

    @property
    def last(self) -> tuple[Clique, ...] | None:
        """The interactions measured last, because they may be there; None when everything was measured once."""
        return None if len(self.parts) == 1 else tuple(I for I in self.parts[-1][0] if len(I) > 1)

    @property
    def strategy(self) -> str:
        """Whether pairs were selected shows in what was measured first: means alone."""
        if len(self.parts) == 1:
            return "one shot"
        selected = all(len(I) == 1 for I in self.parts[0][0]) and bool(self.last)
        return "selected" if selected else "all"


@dataclass(frozen=True)
class Asked:
    """The steps that measure parities up to an order, within a share of the budget. ``most`` and ``least`` are public
    bounds on the number and size of interactions."""

    whole: Whole
    share: Budget
    order: int
    most: int | None = None
    least: float = 0.0
    random_state: int = 0

    @property
    def domain(self) -> Domain:
        return self.whole.domain

    def choose(self, wish: Strategy, size: float | None) -> Strategy:
        """What a wish comes to, from the noise that all pairs would get; ``"auto"`` when that takes a number of records
        that is not known yet."""
        p = len(self.domain)
        pairs = p * (p - 1) // 2
        if wish == "one shot" or self.order > 2 or pairs <= PARTNERS * p:
            return wish if wish == "one shot" else "all"
        if wish != "auto" or size is None:
            return wish
        half = self.share.split([1, 1])[0]
        noise = noise_of(plan_noise(all_sums(self.domain, 2), self.whole.unit, half).calls[0])
        hidden = noise.standard_deviation / max(size, 1.0) * (math.sqrt(2 * math.log(pairs)) + 0.5)
        return "selected" if hidden > LIMIT else "all"

    def steps(self, strategy: Strategy) -> tuple[Step, ...]:
        """The steps of a strategy that :meth:`choose` gave."""
        if strategy == "auto":
            words = (measuring(self.share), f"{selecting(self.share)} or {measuring(self.share)}")
            return (self.whole.later(EITHER, self.share, self._either, *words),)
        if strategy == "one shot":
            return (self._all(self.share),)
        return self._twice() if strategy == "all" else self._selected()

    def _all(self, share: Budget) -> Step:
        return self.whole.measure(_all_name(self.order), Measure(share, all_sums(self.domain, self.order)))

    def _either(self, released: Measurements) -> Asking[Found]:
        # Without noise there is nothing that pairs would have to be selected for.
        exact = any(m.origin == "exact" for m in released)
        strategy = "all" if exact else self.choose("auto", records_in(released))
        return (yield from in_turn(self.steps(strategy), released))

    def _twice(self) -> tuple[Step, ...]:
        first, second = self.share.split([1, 1])

        def again(released: Measurements) -> Asking[Found]:
            chosen, dense = self._candidates(Sums.among(released).moments)
            yield Measure(second, all_sums(self.domain, self.order) if dense else chosen_sums(self.domain, chosen))
            return {"dense": dense}

        return self._all(first), self.whole.later("those that stand out, again", second, again, measuring(second))

    def _candidates(self, moments: Moments) -> tuple[list[Clique], bool]:
        """What may turn out to be there, and whether that is most of all."""
        bounds = {"most": self.most, "least": self.least, "random_state": self.random_state}
        found, dense = significant(moments, **bounds, generous=True)  # type: ignore[arg-type]
        if not dense and self.most is None and self.least == 0 and can_explain(moments):
            found = list(explained(moments, found, random_state=self.random_state).moments.joint)
        return found, dense

    def _selected(self) -> tuple[Step, ...]:
        for_means, for_choice, for_sums = self.share.split(list(SELECTED_SHARES))
        domain, partners = self.domain, min(PARTNERS, len(self.domain) - 1)

        def choose(released: Measurements) -> Asking[Found]:
            sums = Sums.among(released)
            (_, first), means = sums.parts[0], sums.moments.matrices.single
            # Means that are all noise would send the search after products of noise.
            means = np.where(np.abs(means) > 2 * first.standard_deviation / sums.records, means, 0.0)
            score = PartnerResiduals(domain, sums.records * np.outer(means, means))
            found = set()
            for name, selection in zip(domain.names, (yield SelectEach(for_choice, score, partners)), strict=True):
                others = [n for n in domain.names if n != name]
                found |= {domain.clique((name, others[c])) for c in selection.indices}
            return {"pairs": [list(I) for I in all_monomials(domain, 2, least=2) if I in found]}

        def measure(released: Measurements) -> Asking[None]:
            yield Measure(for_sums, chosen_sums(domain, [tuple(pair) for pair in released.found["pairs"]]))

        return (
            self.whole.measure("means", Measure(for_means, chosen_sums(domain, []))),
            self.whole.later(f"selection of {partners} partners a column", for_choice, choose, selecting(for_choice)),
            self.whole.later("means and chosen pair sums", for_sums, measure, measuring(for_sums)),
        )
