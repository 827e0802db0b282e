"""Requests: what a learner may ask of a curator, as plain values.

A learner never holds a curator. It yields requests and is sent the answers, which are public::

    def asking(released):
        tables = yield Measure(query, share)
        best = yield Select(score_made_from(tables), share)
        return {"chosen": best.names}

Whoever runs it (:meth:`discreet.learn.procedure.Procedure.run`) puts each request to the curator, which checks it,
charges it and draws the noise. The guarantees are those of the curator's methods of the same name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeVar

from ..measurement import Measurement, Measurements
from .budget import Amount, Budget
from .calibration import NoiseChoice, SelectionChoice
from .curator import Curator
from .query import GroupedScore, Query, Score
from .selection import Selection
from .stability import Stability, StabilityTest
from .unlisted import Unlisted
from .voting import Learner, Vote

T = TypeVar("T")


@dataclass(frozen=True)
class Request(ABC):
    """One question and what it may cost."""

    share: Budget

    @abstractmethod
    def ask(self, curator: Curator) -> Any:
        """Put it to a curator."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public words for it, by which two requests can be told apart."""


Asking = Generator[Request, Any, T]
"""Requests going out, answers coming back, and at the end what was found."""


@dataclass(frozen=True)
class Measure(Request):
    """Noisy sums: :meth:`Curator.measure`. The answer is :class:`Measurements`."""

    query: Query
    noise: NoiseChoice = "auto"
    weights: Sequence[Amount] | None = None

    def ask(self, curator: Curator) -> Measurements:
        return curator.measure(self.query, self.share, noise=self.noise, weights=self.weights)

    def describe(self) -> dict[str, Any]:
        about = [dict(part.about) for part in self.query.parts]
        weights = None if self.weights is None else [str(w) for w in self.weights]
        how = {"noise": self.noise, "weights": weights, "share": self.share.to_dict()}
        return {**self.query.describe(), "about": about, **how}


@dataclass(frozen=True)
class Select(Request):
    """The best k of public candidates: :meth:`Curator.select`."""

    score: Score
    k: int = 1

    def ask(self, curator: Curator) -> Selection:
        return curator.select(self.score, self.share, k=self.k)

    def describe(self) -> dict[str, Any]:
        return _of_candidates(self)


@dataclass(frozen=True)
class SelectEach(Request):
    """The best k of each group of candidates: :meth:`Curator.select_each`."""

    score: GroupedScore
    k: int = 1
    mechanism: SelectionChoice = "auto"

    def ask(self, curator: Curator) -> tuple[Selection, ...]:
        return curator.select_each(self.score, self.share, k=self.k, mechanism=self.mechanism)

    def describe(self) -> dict[str, Any]:
        return _of_candidates(self)


def _of_candidates(request: Select | SelectEach) -> dict[str, Any]:
    names = list(request.score.candidates)
    return {**request.score.describe(), "candidates": names, "k": request.k, "share": request.share.to_dict()}


@dataclass(frozen=True)
class FindLevels(Request):
    """The texts of a column that stand out: :meth:`Curator.find_levels`."""

    column: str
    delta: Fraction

    def ask(self, curator: Curator) -> Unlisted:
        return curator.find_levels(self.column, self.share, self.delta)

    def describe(self) -> dict[str, Any]:
        return {"query": "Unlisted", "column": self.column, "delta": str(self.delta), "share": self.share.to_dict()}


@dataclass(frozen=True)
class TestStability(Request):
    """All findings of a test, or a refusal: :meth:`Curator.release_if_stable`."""

    test: StabilityTest

    def ask(self, curator: Curator) -> Stability:
        return curator.release_if_stable(self.test, self.share)

    def describe(self) -> dict[str, Any]:
        return {**self.test.describe(), "share": self.share.to_dict()}


@dataclass(frozen=True)
class Poll(Request):
    """What most of many random blocks find: :meth:`Curator.vote` and its kin, by ``how``."""

    learner: Learner
    blocks: int
    how: Literal["histogram", "propose-test-release", "each edge"] = "histogram"
    questions: int = 1

    def ask(self, curator: Curator) -> Vote | Stability:
        if self.how == "histogram":
            return curator.vote(self.learner, self.blocks, self.share)
        if self.how == "propose-test-release":
            return curator.vote_and_test(self.learner, self.blocks, self.share)
        return curator.vote_for_each(self.learner, self.questions, self.blocks, self.share)

    def describe(self) -> dict[str, Any]:
        return {"query": "vote", "how": self.how, "blocks": self.blocks, "share": self.share.to_dict()}


Ask = Callable[[Request, Curator], Any]


def put(request: Request, curator: Curator) -> Any:
    """Ask the curator, as each kind of request does (``Request.ask`` itself would be that of none)."""
    return request.ask(curator)


def answered(curator: Curator, asking: Asking[T], ask: Ask = put) -> tuple[list[Measurement], T]:
    """Put every request to the curator and hand its answer back: all noisy sums, and what was found at the end.

    ``ask`` may have an answer of its own, that of a run which was stopped.
    """
    measured: list[Measurement] = []
    answer: Any = None
    while True:
        try:
            request = asking.send(answer)
        except StopIteration as end:
            return measured, end.value
        answer = ask(request, curator)
        if isinstance(answer, Measurements):
            measured.extend(answer)
