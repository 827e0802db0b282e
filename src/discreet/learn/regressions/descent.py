"""The steps of a procedure that descends by Frank–Wolfe: how many noisy steps, and what pays for knowing that.

With a given or computable number of steps (a public number of records) nothing else is asked. Otherwise a noisy number
of records is bought first, from which the steps follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import InputError, counted
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.requests import Asking
from ..counting import counted_first, records_in, size_and_rest
from ..planned import selecting
from ..procedure import Found, Procedure, Step, Whole
from .frank_wolfe import Problems, State, Variant, descend, selection_of

NOTE = "Selections, not sums: their noise is on the scores inside."


def state_of(measurements: Measurements) -> State:
    """Where a run of :class:`Descent` ended."""
    state = measurements.found.get("state")
    if not isinstance(state, State):
        raise InputError("these measurements do not say where the steps of Frank–Wolfe ended; use fit(curator)")
    return state


@dataclass(frozen=True)
class Descent:
    """Frank–Wolfe on some problems from a start, with ``steps`` noisy steps, or as many as ``choose`` makes of the
    number of records and the share. ``what``: what each step selects, in words; ``told``: the least correlation that
    the selections tell from none."""

    problem: Problems
    start: State
    variant: Variant
    steps: int | None
    choose: Callable[[float, Budget], int]
    what: str
    told: Callable[[float, Budget], float] = lambda records, share: 0.0

    def procedure(self, method: str, whole: Whole) -> Procedure:
        """The descent and nothing else, with a noisy count first where one is needed. A guess of the number of records
        tells how many steps to expect."""
        steps, given = self.prepared(whole)
        return Procedure(method, whole, steps, self.notes(whole, size_and_rest(whole.budget, None)[1]), given)

    def notes(self, whole: Whole, share: Budget) -> tuple[str, ...]:
        """What a plan says of a descent for ``share``."""
        if self.steps is not None or whole.public_size is not None or whole.size is None:
            return (NOTE,)
        expected = counted(self.choose(max(whole.size, 1.0), share), "step")
        return NOTE, f"The noisy number of records decides how many: {expected} at n ≈ {whole.size:g}."

    def prepared(self, whole: Whole) -> tuple[tuple[Step, ...], tuple[Measurement, ...]]:
        """All there is to do with the whole budget, a noisy count first where one is needed; and what is given."""
        if self.steps is not None:
            return (self.step(whole, whole.budget),), ()
        count, given, rest = counted_first(whole)
        return (*count, self.step(whole, rest)), given

    def step(self, whole: Whole, share: Budget) -> Step:
        """The selections, for ``share``; a noisy number of records must come before unless it is public or their number
        given. Finds the ``state`` where it ends."""
        steps = self.steps
        if steps is None and whole.public_size is not None:
            steps = self.choose(whole.public_size, share)

        def asks(released: Measurements) -> Asking[Found]:
            return {"state": (yield from self.run(1.0 if self.steps else records_in(released), share))}

        name = f"{'some steps' if steps is None else counted(steps, 'step')}, {self.what}"
        return whole.later(name, share, asks, selecting(share, selection_of(self.variant)))

    def run(self, records: float, share: Budget) -> Asking[State]:
        """The selections: so many as were given, or as are right for so many records."""
        number = self.choose(records, share) if self.steps is None else self.steps
        return (yield from descend(self.problem, self.start, number, share, self.variant))
