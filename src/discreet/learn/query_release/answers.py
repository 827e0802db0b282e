"""What every release of answers returns and has in common, and the simplest of them: noise on every answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import require_columns
from ...domain import Domain
from ...errors import InputError
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.query import Marginals
from ...privacy.requests import Asking, Measure
from ..cards import card_of
from ..checks import as_measurements
from ..counting import counted_first, records_in, size_and_rest
from ..learner import Learner
from ..procedure import Found, Procedure, Step, Whole
from .workload import Array, Workload, flat


@dataclass(frozen=True, eq=False)
class ReleasedAnswers:
    """Answers to a workload, in its order, as means over the records; public, with a card that says what they cost.

    ``records`` are the synthetic records that the answers were read off, for methods that make some. ``gap`` is the
    largest relative gap that the method's optimisation oracle left: 0 when every answer of it was proved best, nan
    when it proves nothing. Privacy does not depend on it.
    """

    answers: Array
    card: Mapping[str, Any] = field(default_factory=dict)
    records: NDArray[np.int64] | None = None
    gap: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswersLearner(Learner[ReleasedAnswers]):
    """Answers to ``workload``: first the number of records, two percent of the budget unless it is public."""

    refits: ClassVar[bool] = False

    workload: Workload

    @property
    @abstractmethod
    def method(self) -> str:
        """In words, for plan and card."""

    @abstractmethod
    def answering(self, share: Budget, records: float) -> Asking[ReleasedAnswers]:
        """The requests for a public or noisy number of records, and in the end the answers, without a card."""

    @abstractmethod
    def step(self, whole: Whole, share: Budget) -> Step:
        """The step that makes these requests."""

    def asks(self, share: Budget, public_size: int | None = None) -> Asking[ReleasedAnswers]:
        """All requests, for a learner that has a use for the answers (``yield from``). Guarantee: ``share``."""
        counting, rest = size_and_rest(share, public_size)
        if counting is None:
            size = Measurement.public(self.workload.domain, (), public_size)
        else:
            (size,) = yield Measure(counting, Marginals(self.workload.domain, [()]))
        return (yield from self.answering(rest, records_in(Measurements([size]))))

    def prepare(self, whole: Whole) -> Procedure:
        workload = self.workload
        require_columns(type(workload).__name__, workload.query.attributes, whole.domain)  # before the count is paid
        count, given, rest = counted_first(whole)
        return Procedure(self.method, whole, (*count, self.step(whole, rest)), given=given)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> ReleasedAnswers:
        """The answers that were found, with their card."""
        released = measurements.found.get("released")
        if not isinstance(released, ReleasedAnswers):
            raise InputError(f"these measurements hold no answers, so {type(self).__name__}.measure did not make them")
        return replace(released, card=card_of(measurements, self.method, **released.facts))

    def _later(self, whole: Whole, share: Budget, name: str, *mechanisms: str) -> Step:
        def asks(released: Measurements) -> Asking[Found]:
            return {"released": (yield from self.answering(share, records_in(released)))}

        return whole.later(name, share, asks, *mechanisms)


@dataclass(frozen=True)
class GaussianAnswers(AnswersLearner):
    """Every sum with noise (Gaussian, or Laplace under a pure budget), divided by the number of records, clipped to
    what is possible.

    Guarantee: the budget's own (pure, zCDP or (ε, δ)), for the curator's unit, under add-remove and replace-one: noise
    calibrated to the L2 (L1) sensitivity of all sums together. For all m parities of given orders that is √m under
    add-remove and 2√c under replace-one, c as in :class:`ParitySums`; for m tables √m and √(2m).
    """

    refits: ClassVar[bool] = True

    @property
    def method(self) -> str:
        return "noise on every answer"

    def answering(self, share: Budget, records: float) -> Asking[ReleasedAnswers]:
        return self._clipped((yield Measure(share, self.workload.query)), records)

    def step(self, whole: Whole, share: Budget) -> Step:
        return whole.measure("all answers", Measure(share, self.workload.query))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> ReleasedAnswers:
        """From the noisy sums of :meth:`measure`, in their order; post-processing only."""
        measured = as_measurements(measurements)
        sums = [m for m in measured if m.clique != ()]
        if sum(m.counts.size for m in sums) != len(self.workload):
            raise InputError("these are not the sums of this workload, so this learner's measure did not make them")
        return replace(self._clipped(sums, records_in(measured)), card=card_of(measured, self.method))

    def _clipped(self, sums: Iterable[Measurement], records: float) -> ReleasedAnswers:
        return ReleasedAnswers(np.clip(flat([*sums]) / records, self.workload.least, 1.0))
