"""The number of records: public, or a noisy count. Many learners need it first, for two percent of the budget; others
only where what they measure depends on it, for one (:class:`CountToDecide`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ..errors import InputError
from ..measurement import Measurement, Measurements
from ..privacy.budget import ApproxDP, Budget
from ..privacy.calibration import NoiseChoice
from ..privacy.query import Marginals
from ..privacy.requests import Asking, Measure
from .consistency import total_and_variance
from .planned import measuring
from .procedure import Composition, Procedure, Step, Whole
from .shares import allocate

SIZE_SHARE = 2  # percent of the budget
COUNTED = Fraction(1, 100)
"""The part of the budget that buys the number of records, where that decides what is measured."""
TOLD = 3.0
"""A count tells that there are records from so many deviations of its noise on."""


def size_and_rest(budget: Budget, public_size: int | None) -> tuple[Budget | None, Budget]:
    """What counting may cost, None for nothing, and what is left."""
    if public_size is not None:
        return None, budget
    size, rest = budget.split([SIZE_SHARE, 100 - SIZE_SHARE])
    return size, rest


def counted_first(whole: Whole) -> tuple[tuple[Step, ...], tuple[Measurement, ...], Budget]:
    """The counting step, if one is needed; the public count, if there is one; and what is left of the budget."""
    counting, rest = size_and_rest(whole.budget, whole.public_size)
    if counting is not None:
        return (whole.count(counting),), (), rest
    return (), (Measurement.public(whole.domain, (), whole.public_size),), rest


def records_in(measurements: Measurements) -> float:
    """The number of records that these tell, the surest count of it, and at least 1."""
    sizes = sorted((m for m in measurements if m.clique == ()), key=lambda m: m.noise.variance)
    if not sizes:
        raise InputError("a number of records is needed, public or noisy, and none is among these measurements")
    return max(float(sizes[0].values), 1.0)


@dataclass(frozen=True)
class CountToDecide:
    """A noisy count, and the rest of the budget for tables that follow from it."""

    whole: Whole
    count: Step
    rest: Budget
    noise: NoiseChoice
    composition: Composition

    @classmethod
    def of(cls, whole: Whole, query: Marginals, noise: NoiseChoice) -> CountToDecide:
        """``query``: the tables in full. They and the count have noise of one kind, so that (ε, δ) composes well."""
        budget = whole.budget
        composition: Composition = "composed"
        within = budget.to_gaussian() if isinstance(budget, ApproxDP) and noise != "laplace" else None
        if isinstance(budget, ApproxDP):
            full = allocate(query, whole.unit, budget, noise)
            if within is not None and full.noise == "gaussian":
                budget, noise, composition = within, "gaussian", "as one Gaussian"
            else:
                budget, noise, composition = budget.to_pure(), "laplace", "in sequence"
        small, rest = budget.split([COUNTED, 1 - COUNTED])
        return cls(whole, whole.count(small), rest, noise, composition)

    @property
    def least(self) -> float:
        """As few records as the count can tell from none: what so many carry is measured without asking."""
        return TOLD * self.count.rows[0].standard_deviation

    def procedure(
        self, method: str, name: str, request: Callable[[float], Measure], notes: tuple[str, ...]
    ) -> Procedure:
        """The count, and what is asked for the number of records that it tells."""

        def asks(released: Measurements) -> Asking[None]:
            yield request(max(total_and_variance(released)[0], 1.0))

        tables = self.whole.later(name, self.rest, asks, measuring(self.rest))
        return Procedure(method, self.whole, (self.count, tables), notes, composition=self.composition)
