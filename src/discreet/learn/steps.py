"""Several steps as one: a step that chooses what to do on the way, or that is asked of a block of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..measurement import Measurement, Measurements
from ..privacy.budget import Budget
from ..privacy.requests import Asking
from .procedure import Found, Step


def in_turn(steps: Sequence[Step], released: Measurements) -> Asking[Found]:
    """The requests of all these steps, each made from what the ones before released."""
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


def in_block(block: int, share: Budget, steps: Sequence[Step]) -> Step:
    """These steps as one, named for the last of them, which is asked of a block of the records."""
    rows = tuple(row for step in steps for row in step.rows)
    return replace(steps[-1], share=share, rows=rows, asks=lambda released: in_turn(steps, released), block=block)
