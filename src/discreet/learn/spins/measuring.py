"""What to ask about spins, and for how much: all parities and the important ones again, all of them once, or a private
choice of interactions.

With half of the budget *all* parities up to the order are measured; what may stand out of their noise is measured again
with the other half, and everything else is known to be small. Where nothing stands out because nearly everything does,
all are measured again: nothing is lost, as two Gaussian halves are one whole. When the noise of all pairs together
would hide typical couplings, each column privately selects its most correlated partners instead, and only those pairs
are measured. Beyond order 2 a model of all pairs comes first then, and the interactions of more columns that it fits
worst are selected and measured; where pairs are hidden too, there are no larger ones.

Every decision is made from public quantities: the budget, the number of columns, the public or noisy number of
records, and sums that were already released.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.queries.parities import ParityResiduals, ParitySums, PartnerResiduals, all_monomials, measured_monomials
from ...privacy.requests import Asking, Measure, Select, SelectEach
from ..counting import records_in
from ..planned import measuring, selecting
from ..procedure import Found, Step, Whole
from ..steps import in_turn
from .moments import Moments
from .support import can_explain, cut_among, estimated, explained, significant

Strategy = Literal["auto", "all", "selected", "one shot"]
STRATEGIES = ("auto", "all", "selected", "one shot")
LIMIT = 0.08  # of what stands out among all pair correlations, beyond which pairs are selected first
PARTNERS = 4  # that a column selects
SELECTED_SHARES = (8, 32, 60)  # means; selection; means and chosen pairs
LARGER_SHARES = (80, 8, 12)  # means and all pairs; selection and sums of larger interactions
LARGER_LIMIT = 0.02  # as many of them are selected as keep what stands out of their noise below it
EITHER_LARGER = (
    "means and all pair sums, and parities of more columns: all, or selected ones, as the noisy number of records says"
)
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
        return None if len(self.parts) == 1 or self._larger_last else tuple(I for I in self.parts[-1][0] if len(I) > 1)

    @property
    def strategy(self) -> str:
        """Whether pairs were selected shows in what was measured first: means alone."""
        if len(self.parts) == 1:
            return "one shot"
        alone = all(len(I) == 1 for I in self.parts[0][0]) and bool(self.last)
        return "selected" if alone or self._larger_last else "all"

    @property
    def _larger_last(self) -> bool:
        """Whether what was measured last are larger interactions, beside all pairs, which come once."""
        return len(self.parts) > 1 and min(len(I) for I in self.parts[-1][0]) > 2


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
        joint = sum(math.comb(p, k) for k in range(2, self.order + 1))
        if wish == "one shot" or (self.order <= 2 and joint <= PARTNERS * p):
            return wish if wish == "one shot" else "all"
        if wish != "auto" or size is None:
            return wish
        half = self.share.split([1, 1])[0]
        noise = noise_of(plan_noise(all_sums(self.domain, self.order), self.whole.unit, half).calls[0])
        hidden = noise.standard_deviation / max(size, 1.0) * cut_among(joint)
        return "selected" if hidden > LIMIT else "all"

    def settled(self, wish: Strategy, size: float | None) -> tuple[Asked, Strategy]:
        """What a wish comes to, and of which order: where pairs are hidden themselves, there is nothing larger."""
        strategy, pairs = self.choose(wish, size), replace(self, order=min(self.order, 2))
        hidden = wish == "auto" and strategy == "selected" and pairs.choose("auto", size) == "selected"
        return (pairs if hidden else self), strategy

    def steps(self, strategy: Strategy) -> tuple[Step, ...]:
        """The steps of a strategy that :meth:`choose` gave."""
        if strategy == "auto":
            words = (measuring(self.share), f"{selecting(self.share)} or {measuring(self.share)}")
            name = EITHER if self.order <= 2 else EITHER_LARGER
            return (self.whole.later(name, self.share, self._either, *words),)
        if strategy == "one shot":
            return (self._all(self.share),)
        if strategy == "all":
            return self._twice()
        return self._selected() if self.order <= 2 else self._larger()

    def _all(self, share: Budget) -> Step:
        return self.whole.measure(_all_name(self.order), Measure(share, all_sums(self.domain, self.order)))

    def _either(self, released: Measurements) -> Asking[Found]:
        # Without noise there is nothing that pairs would have to be selected for.
        exact = any(m.origin == "exact" for m in released)
        asked, strategy = self.settled("all" if exact else "auto", records_in(released))
        return (yield from in_turn(asked.steps(strategy), released))

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

    def _larger(self) -> tuple[Step, ...]:
        """All pairs; then the larger interactions that a field of pairs fits worst, selected and measured."""
        domain = self.domain
        for_pairs, for_choice, for_sums = self.share.split(list(LARGER_SHARES))
        every = all_monomials(domain, self.order, least=3)

        def choose(released: Measurements) -> Asking[Found]:
            number = self._number(every, for_choice, records_in(released))
            # Of the order wanted, so that a fit by samples says what it expects of larger parities.
            moments = replace(Sums.among(released).moments, order=self.order)
            expected, _ = estimated(moments, None, random_state=self.random_state).expected(every)
            chosen = yield Select(for_choice, ParityResiduals(domain, every, moments.records * expected), number)
            return {"larger": [list(every[k]) for k in sorted(chosen.indices)]}

        def measure(released: Measurements) -> Asking[None]:
            larger = [tuple(I) for I in released.found["larger"]]
            yield Measure(for_sums, ParitySums(domain, larger, label="chosen parities"))

        return (
            self.whole.measure(_all_name(2), Measure(for_pairs, all_sums(domain, 2))),
            self.whole.later("selection of larger interactions", for_choice, choose, selecting(for_choice)),
            self.whole.later("chosen parities", for_sums, measure, measuring(for_sums)),
        )

    def _number(self, every: Sequence[Clique], share: Budget, size: float) -> int:
        """How many of these can be told from noise, at least two."""
        most = LARGER_LIMIT / cut_among(len(every)) * max(size, 1.0)

        def hidden(k: int) -> bool:
            query = ParitySums(self.domain, every[: k + 1])
            return noise_of(plan_noise(query, self.whole.unit, share).calls[0]).standard_deviation > most

        return min(max(bisect_left(range(len(every)), True, key=hidden), 2), len(every))
