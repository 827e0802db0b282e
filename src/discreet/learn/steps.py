"""Steps that several learners make: the number of records before the rest, and several steps as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..measurement import Measurement, Measurements
from ..privacy.budget import Budget
from ..privacy.requests import Asking
from .procedure import Found, Step, Whole

SIZE_SHARE = 2
"""Percent of the budget for the number of records, where a learner needs it and it is not public."""


def size_and_rest(budget: Budget, *, size_is_public: bool) -> tuple[Budget | None, Budget]:
    """What pays for the number of records, and what is left for the rest."""
    if size_is_public:
        return None, budget
    size, rest = budget.split([SIZE_SHARE, 100 - SIZE_SHARE])
    return size, rest


def size_first(
    whole: Whole, public_size: int | None, share: Budget | None = None
) -> tuple[tuple[Step, ...], tuple[Measurement, ...], Budget]:
    """The step that counts the records, or their public number; and what is left of ``share`` (the whole budget)."""
    budget = whole.budget if share is None else share
    for_size, rest = size_and_rest(budget, size_is_public=public_size is not None)
    if public_size is not None:
        return (), (Measurement.public(whole.domain, (), public_size),), rest
    assert for_size is not None
    return (whole.count(for_size),), (), rest


def surest_size(released: Iterable[Measurement]) -> Measurement | None:
    """The number of records with the least noise, if there is one."""
    return min((m for m in released if m.clique == ()), key=lambda m: m.noise.variance, default=None)


def records_of(size: Measurement) -> float:
    """As many as it says, at least one."""
    return max(float(size.values), 1.0)


def in_turn(steps: Iterable[Step], released: Measurements) -> Asking[Found]:
    """The requests of several steps as those of one, each made from what the ones before released."""
    found: dict[str, Any] = {}
    for step in steps:
        asking, answer = step.asks(released), None
        measured: list[Measurement] = []
        while True:
            try:
                request = asking.send(answer)
            except StopIteration as end:
                found |= end.value or {}
                break
            answer = yield request
            if isinstance(answer, Measurements):
                measured.extend(answer)
        released = Measurements([*released, *measured], {"found": {**released.found, **found}})
    return found
