"""Gateways that write down what is asked of them, and gateways that give the same answers again on a neighbour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from ..measurement import Origin
from ..privacy.accounting import Cost
from ..privacy.budget import Budget, rho_of_pure
from ..privacy.curator import Curator
from ..privacy.gaussian import cost_of
from ..privacy.ledger import Ledger
from ..privacy.levels import Released, distance_of
from ..privacy.mechanisms import Gateway, NoiseCall, SecureGateway
from ..progress import listening, nobody
from ..tables.base import IntArray
from .findings import Finding
from .losses import instability_loss, threshold_loss, within

Answer = TypeVar("Answer")
MOVED, SPENT = "within the declared sensitivity", "within the budget"


@dataclass(frozen=True)
class Recorded:
    """One call of the gateway: what it was about, what went in, what came out."""

    call: NoiseCall | None  # None: a secret key
    values: Any
    answer: Any


@dataclass
class Transcript:
    """What an outsider could see of a run, and what the gateway saw."""

    calls: list[Recorded] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    public: Any = None
    returned: bool = False


class RecordingGateway:
    """Draws real noise, writes everything down, and insists that the ledger was charged first."""

    origin: Origin = "release"

    def __init__(self, transcript: Transcript, ledger: Ledger, inner: Gateway | None = None) -> None:
        self._transcript = transcript
        self._ledger = ledger
        self._inner = inner or SecureGateway()

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        self._paid()
        if np.asarray(values).dtype != np.int64:
            self._problem("whole 64-bit sums", f"noise was asked for {np.asarray(values).dtype} values")
        with listening(nobody):  # the size of a draw is public, and so may its progress be
            noisy = self._inner.add_noise(call, values)
        return self._keep(call, np.array(values), noisy)

    def select(self, call: NoiseCall, scores: IntArray) -> int:
        self._paid()
        return self._keep(call, np.array(scores), self._inner.select(call, scores))

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        self._paid()
        return self._keep(call, dict(histogram), self._inner.release_large(call, histogram))

    def release_stable(self, call: NoiseCall, levels: IntArray, word: str) -> Released:
        self._paid()
        return self._keep(call, (np.array(levels), word), self._inner.release_stable(call, levels, word))

    def secret(self) -> bytes:
        return self._keep(None, None, self._inner.secret())

    def inside(self, budget: Budget) -> Gateway:
        return self

    def _keep(self, call: NoiseCall | None, values: Any, answer: Answer) -> Answer:
        self._transcript.calls.append(Recorded(call, values, answer))
        return answer

    def _paid(self) -> None:
        if self._ledger.spent is None:
            self._problem("paid before noise is drawn", "noise was drawn while the ledger showed nothing spent")

    def _problem(self, name: str, detail: str) -> None:
        self._transcript.problems.append(Finding(name, False, detail))


@dataclass
class Cursor:
    """Where a replay stands; shared with the samples that are drawn on the way."""

    position: int = 0


class ReplayingGateway:
    """Gives recorded answers, and checks what is asked against what was recorded."""

    origin: Origin = "release"

    def __init__(self, recorded: Transcript, replay: Transcript, budget: Budget) -> None:
        self._recorded = recorded
        self._replay = replay
        self._cursor = Cursor()
        self._samples: list[ReplayingGateway] = []
        self._losses: list[tuple[int, Cost]] = []  # each with the number of the entry that has paid for it
        self._budget = budget
        self._books: Curator | None = None
        self.inputs: list[tuple[NoiseCall, Any, Any, int]] = []
        """Of every draw its call, what went in on either side, and the number of the entry that has paid for it."""

    def watch(self, curator: Curator) -> None:
        """Whose books say what each draw may cost."""
        self._books = curator

    @property
    def _entry(self) -> int:
        """The number of the last entry: a draw belongs to the one before it."""
        return 0 if self._books is None else len(self._books.steps)

    def share(self, entry: int) -> Budget | None:
        """What an entry has paid for its draws."""
        if self._books is None or not 0 < entry <= len(self._books.steps):
            return None
        share = self._books.steps[entry - 1].get("share")
        return None if share is None else Budget.from_dict(dict(share))

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        before = self._next(call)
        if before is None:
            return np.array(values)
        if np.shape(values) != np.shape(before.values):
            self._problem("same shapes", f"a {call.kind} draw of {np.shape(before.values)} became {np.shape(values)}")
            return np.asarray(before.answer)
        self.inputs.append((call, before.values, np.array(values), self._entry))
        change = _difference(values, before.values)
        self._compare(call, change)
        l1, l2 = sum(map(abs, change)), sum(c * c for c in change)
        scale = Fraction(call.scale)
        if l1 and call.kind == "laplace":
            self._lost(Cost.pure(Fraction(int(l1)) / scale))
        elif l2:
            self._lost(Cost(rho=Fraction(int(l2)) / (2 * scale**2), mu_squared=cost_of(int(l2), call.scale)))
        return np.asarray(before.answer)

    def select(self, call: NoiseCall, scores: IntArray) -> int:
        before = self._next(call)
        if before is None:
            return 0
        if np.shape(scores) != np.shape(before.values):
            self._problem("same shapes", f"{len(before.values)} candidates became {len(scores)}")
            return int(before.answer)
        self.inputs.append((call, before.values, np.array(scores), self._entry))
        change = _difference(scores, before.values)
        self._compare(call, change, only_linf=True)
        # The exact range of the privacy loss: scores that all move together cost nothing.
        spread = Fraction(int(max(change, default=0) - min(change, default=0))) / Fraction(call.scale)
        if spread:
            rho = spread**2 / 8 if call.kind == "exponential" else rho_of_pure(spread)
            self._lost(Cost(epsilon=spread, rho=min(rho, rho_of_pure(spread))))
        return int(before.answer)

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        before = self._next(call)
        if before is None:
            return dict(histogram)
        keys = sorted({*histogram, *before.values})
        change = np.array([histogram.get(k, 0) - before.values.get(k, 0) for k in keys], dtype=object)
        self._compare(call, change)
        if any(change):
            self._lost(threshold_loss(call, change))
        return dict(before.answer)

    def release_stable(self, call: NoiseCall, levels: IntArray, word: str) -> Released:
        before = self._next(call)
        if before is None:
            return Released(0)
        old, old_word = before.values
        answer: Released = before.answer
        if np.shape(levels) != np.shape(old):
            self._problem("same shapes", f"{np.size(old)} levels became {np.size(levels)}")
            return answer
        self._compare(call, _difference(levels, old), only_linf=True)
        here, there = distance_of(levels), distance_of(old)
        if np.array_equal(np.asarray(levels) >= 0, old >= 0) and word == old_word:
            if here != there:
                self._lost(Cost.pure(Fraction(abs(here - there)) / Fraction(call.scale)))
        else:
            self._lost(instability_loss(call, here, there))
        return answer

    def secret(self) -> bytes:
        before = self._next(None)
        return SecureGateway().secret() if before is None else bytes(before.answer)

    def inside(self, budget: Budget) -> Gateway:
        """Draws on a Poisson sample: given its coins they may cost what the sample may spend, and no more."""
        sampled = ReplayingGateway(self._recorded, self._replay, budget)
        sampled._cursor = self._cursor
        self._samples.append(sampled)
        return sampled

    def finish(self) -> None:
        """Checks at the end: every call was made again, and the losses seen compose within the budget."""
        if self._cursor.position < len(self._recorded.calls):
            missing = len(self._recorded.calls) - self._cursor.position
            self._problem("same calls", f"{missing} of {len(self._recorded.calls)} draws were not made again")
        self._check_losses()

    def _check_losses(self) -> None:
        for sampled in self._samples:
            sampled._check_losses()
        if not within(self._budget, [loss for _, loss in self._losses]):
            self._problem(SPENT, f"the draws cost more than {self._budget}")
        by_entry: dict[int, list[Cost]] = defaultdict(list)
        for entry, loss in self._losses:
            by_entry[entry].append(loss)
        for entry, losses in by_entry.items():
            share = self.share(entry)
            if share is not None and not within(share, losses, is_share=True):
                self._problem(SPENT, f"the draws of entry {entry} cost more than {share}, which it has paid")

    def _lost(self, loss: Cost) -> None:
        self._losses.append((self._entry, loss))

    def _next(self, call: NoiseCall | None) -> Recorded | None:
        if self._cursor.position >= len(self._recorded.calls):
            self._problem("same calls", f"an additional draw was made: {call.kind if call else 'secret'}")
            return None
        before = self._recorded.calls[self._cursor.position]
        self._cursor.position += 1
        if before.call != call:
            self._problem("same calls", f"{_words(before.call)} became {_words(call)}")
            kinds = (before.call.kind if before.call else None, call.kind if call else None)
            return before if kinds[0] == kinds[1] else None
        return before

    def _compare(self, call: NoiseCall, change: np.ndarray, *, only_linf: bool = False) -> None:
        s = call.sensitivity
        size = [abs(int(c)) for c in change]
        seen = {
            "L1": (sum(size), s.l1),
            "L2 squared": (sum(c * c for c in size), s.l2_squared),
            "L∞": (max(size, default=0), s.linf),
            "number of cells": (sum(c > 0 for c in size), s.l0),
        }
        for norm, (moved, declared) in seen.items():
            if moved > declared and (norm == "L∞" or not only_linf):
                self._problem(MOVED, f"{norm} moved by {moved}, declared was {declared}")

    def _problem(self, name: str, detail: str) -> None:
        self._replay.problems.append(Finding(name, False, detail))


def _difference(after: Any, before: Any) -> np.ndarray:
    """Entry by entry, as Python integers: nothing can overflow."""
    flat = [np.asarray(x).reshape(-1).astype(object) for x in (after, before)]
    return np.asarray(flat[0] - flat[1], dtype=object)


def _words(call: NoiseCall | None) -> str:
    if call is None:
        return "a secret key"
    return f"a {call.kind} draw of scale {call.scale:g}" + (f", threshold {call.threshold}" if call.threshold else "")
