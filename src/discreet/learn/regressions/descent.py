"""The steps of a procedure that descends by Frank–Wolfe: how many noisy steps, and what pays for knowing that.

With a given or computable number of steps (a public number of records) nothing else is asked. Otherwise a noisy number
of records is bought first, from which the steps follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import InputError, counted
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.requests import Asking
from ..planned import selecting
from ..procedure import Found, Step, Whole
from ..steps import in_turn, size_and_rest, size_first, surest_size
from .frank_wolfe import Problems, State, Variant, descend, selection_of

NOTE = "Selections, not sums: their noise is on the scores inside."


def check_steps(variant: str, steps: int | None) -> None:
    """Of Frank–Wolfe."""
    if variant not in ("tight", "published"):
        raise InputError(f"variant must be 'tight' or 'published', got {variant!r}")
    if steps is not None and (type(steps) is not int or steps < 1):
        raise InputError(f"steps must be a whole number of at least 1, got {steps!r}")


def state_of(measurements: Measurements) -> State:
    """Where a run of :class:`Descent` ended."""
    state = measurements.found.get("state")
    if not isinstance(state, State):
        raise InputError("these measurements do not say where the steps of Frank–Wolfe ended; use fit(curator)")
    return state


@dataclass(frozen=True)
class Descent:
    """Frank–Wolfe on some problems from a start, with ``steps`` noisy steps, or as many as ``choose`` makes of the
    number of records and the share. ``what``: what each step selects, in words."""

    problem: Problems
    start: State
    variant: Variant
    steps: int | None
    choose: Callable[[float, Budget], int]
    what: str

    def prepared(
        self, whole: Whole, public_size: int | None, share: Budget | None = None
    ) -> tuple[tuple[Step, ...], tuple[Measurement, ...]]:
        """The steps, with a noisy count first where one is needed, for ``share`` (the whole budget) in all; and what is
        given. They find the ``state`` where it ends, and ``frank_wolfe_steps``."""
        if self.steps is not None:
            return (self._step(whole, whole.budget if share is None else share, self.steps),), ()
        count, given, rest = size_first(whole, public_size, share)
        return (*count, self._step(whole, rest, None if public_size is None else self.choose(public_size, rest))), given

    def in_a_block(self, whole: Whole, block: int) -> Step:
        """All of it as one step, asked of a block of the records, whose number is not public."""
        steps, _ = self.prepared(whole, None)
        rows = tuple(row for step in steps for row in step.rows)
        return replace(
            steps[-1], share=whole.budget, rows=rows, asks=lambda released: in_turn(steps, released), block=block
        )

    def notes(self, whole: Whole, public_size: int | None, approximate_size: float | None) -> tuple[str, ...]:
        """Words for a plan; with the number of steps to expect where only a guess of the number of records is known."""
        if self.steps is not None or public_size is not None or approximate_size is None:
            return (NOTE,)
        _, rest = size_and_rest(whole.budget, size_is_public=False)
        steps = counted(self.choose(approximate_size, rest), "step")
        return (NOTE, f"The noisy number of records decides how many; n ≈ {approximate_size:g} makes {steps}.")

    def _step(self, whole: Whole, share: Budget, steps: int | None) -> Step:
        def asks(released: Measurements) -> Asking[Found]:
            number = steps
            if number is None:
                size = surest_size(released)
                assert size is not None
                number = self.choose(float(size.values), share)
            state = yield from descend(self.problem, self.start, number, share, self.variant)
            return {"state": state, "frank_wolfe_steps": number}

        name = f"{'some steps' if steps is None else counted(steps, 'step')}, {self.what}"
        return whole.later(name, share, asks, selecting(share, selection_of(self.variant)))
