"""The number of records, which many learners need first: public, or a noisy count for two percent of the budget."""

from __future__ import annotations

from ..errors import InputError
from ..measurement import Measurement, Measurements
from ..privacy.budget import Budget
from .procedure import Step, Whole

SIZE_SHARE = 2  # percent of the budget


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
