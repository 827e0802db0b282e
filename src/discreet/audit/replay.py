"""Record and replay: a private algorithm may depend on its rows through the noise gateway only.

Run it on D and record every call of the gateway with its answer. Run it again on a neighbour D′, give the *same*
answers, and compare. Whatever differs left the curator without being paid for: another number of calls, another shape
or scale, another result, message, log line or exception. What may differ is the input of a call, by no more than the
sensitivity it declares; and the losses that follow from the inputs that were seen must compose within the budget.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from ..domain import Domain
from ..measurement import Origin
from ..privacy.accounting import Accountant, Cost
from ..privacy.budget import ApproxDP, Budget, rho_of_pure
from ..privacy.curator import Curator
from ..privacy.gaussian import cost_of
from ..privacy.ledger import Ledger
from ..privacy.levels import Released, distance_of
from ..privacy.mechanisms import Gateway, NoiseCall, SecureGateway
from ..privacy.unit import PrivacyUnit
from ..progress import listening, nobody
from ..tables.base import IntArray, Table
from .findings import Finding, canonical
from .losses import all_fit, delta_of_tests, instability_loss, threshold_loss
from .neighbours import pairs

Algorithm = Callable[[Curator], Any]
MakeCurator = Callable[..., Curator]
Answer = TypeVar("Answer")


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
        self._losses: list[Cost] = []
        self._budget = budget

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        before = self._next(call)
        if before is None:
            return np.array(values)
        if np.shape(values) != np.shape(before.values):
            self._problem("same shapes", f"a {call.kind} draw of {np.shape(before.values)} became {np.shape(values)}")
            return np.asarray(before.answer)
        change = _difference(values, before.values)
        self._compare(call, change)
        l1, l2 = sum(map(abs, change)), sum(c * c for c in change)
        scale = Fraction(call.scale)
        if l1 and call.kind == "laplace":
            self._losses.append(Cost.pure(Fraction(int(l1)) / scale))
        elif l2:
            self._losses.append(Cost(rho=Fraction(int(l2)) / (2 * scale**2), mu_squared=cost_of(int(l2), call.scale)))
        return np.asarray(before.answer)

    def select(self, call: NoiseCall, scores: IntArray) -> int:
        before = self._next(call)
        if before is None:
            return 0
        if np.shape(scores) != np.shape(before.values):
            self._problem("same shapes", f"{len(before.values)} candidates became {len(scores)}")
            return int(before.answer)
        change = _difference(scores, before.values)
        self._compare(call, change, only_linf=True)
        # The exact range of the privacy loss: scores that all move together cost nothing.
        spread = Fraction(int(max(change, default=0) - min(change, default=0))) / Fraction(call.scale)
        if spread:
            rho = spread**2 / 8 if call.kind == "exponential" else rho_of_pure(spread)
            self._losses.append(Cost(epsilon=spread, rho=min(rho, rho_of_pure(spread))))
        return int(before.answer)

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        before = self._next(call)
        if before is None:
            return dict(histogram)
        keys = sorted({*histogram, *before.values})
        change = np.array([histogram.get(k, 0) - before.values.get(k, 0) for k in keys], dtype=object)
        self._compare(call, change)
        if any(change):
            self._losses.append(threshold_loss(call, change))
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
                self._losses.append(Cost.pure(Fraction(abs(here - there)) / Fraction(call.scale)))
        else:
            self._losses.append(instability_loss(call, here, there))
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
        # The losses of one pair are fixed numbers: any sound way to add them up may show that they are within.
        own = delta_of_tests(self._budget, self._losses)
        ways = [Accountant(self._budget, delta_for_tests=own), Accountant(self._budget, composition="basic")]
        gaussian = self._budget.to_gaussian() if isinstance(self._budget, ApproxDP) else None
        if gaussian is not None:
            ways.append(Accountant(gaussian))
        if not any(all_fit(accountant, self._losses) for accountant in ways):
            self._problem("within the budget", f"the draws cost more than {self._budget}")

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
                self._problem("within the declared sensitivity", f"{norm} moved by {moved}, declared was {declared}")

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


# -- running -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _watched(seen: list[Any]) -> Iterator[None]:
    """Collect what a run says: standard output and error, log lines, warnings, progress."""
    out, err = io.StringIO(), io.StringIO()
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as caught,
            listening(lambda label, done, total: lines.append(f"{label} {done}/{total}")),
        ):
            warnings.simplefilter("always")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        seen.extend([out.getvalue(), err.getvalue(), lines, [str(w.message) for w in caught]])


def _run(algorithm: Algorithm, curator: Curator, ledger: Ledger, transcript: Transcript) -> None:
    said: list[Any] = []
    outcome: Any
    with _watched(said):
        try:
            outcome = ("returned", canonical(algorithm(curator)))
            transcript.returned = True
        except Exception as error:
            outcome = ("raised", canonical(error))
    curator.close()
    transcript.public = {
        "result or exception": outcome,
        "output, logs, warnings, progress": canonical(said),
        "what was spent": canonical(curator.statement()),
        "ledger": canonical([(entry.kind, entry.details) for entry in ledger.entries]),
    }


@dataclass(frozen=True)
class Outcome:
    """The problems found on one pair of neighbours, and whether the algorithm returned at all."""

    problems: tuple[Finding, ...]
    returned: bool


def replay_pair(
    algorithm: Algorithm,
    left: Table,
    right: Table,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    make_curator: MakeCurator = Curator,
    gateway: Gateway | None = None,
    **options: Any,
) -> Outcome:
    """Record on one table, replay on the other."""
    recorded, replay = Transcript(), Transcript()
    with Ledger.in_memory(budget) as ledger:
        recording = RecordingGateway(recorded, ledger, gateway)
        curator = make_curator(left, unit, budget, ledger, gateway=recording, **options)
        _run(algorithm, curator, ledger, recorded)
    replaying = ReplayingGateway(recorded, replay, budget)
    with Ledger.in_memory(budget) as other_ledger:
        again = make_curator(right, unit, budget, other_ledger, gateway=replaying, **options)
        _run(algorithm, again, other_ledger, replay)
    replaying.finish()
    problems = recorded.problems + replay.problems
    for what, value in recorded.public.items():
        if replay.public[what] != value:
            problems.append(Finding(f"same {what}", False, "neighbours can be told apart without noise"))
    return Outcome(tuple(problems), recorded.returned)


def audit_replay(
    algorithm: Algorithm,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    count: int = 200,
    seed: int = 0,
    largest: int = 5,
    make_curator: MakeCurator = Curator,
    gateway: Gateway | None = None,
    **options: Any,
) -> list[Finding]:
    """Record/replay on many random neighbours. Returns one finding a failed check (with the first pair that showed
    it), or a single passed finding."""
    first: dict[str, Finding] = {}
    returned = False
    for number, pair in enumerate(pairs(domain, unit, count, seed, largest)):
        left, right = pair.left.table(domain, unit), pair.right.table(domain, unit)
        outcome = replay_pair(
            algorithm, left, right, unit, budget, make_curator=make_curator, gateway=gateway, **options
        )
        returned = returned or outcome.returned
        for finding in outcome.problems:
            detail = f"{finding.detail} (pair {number}, {pair.what}, {len(pair.left.codes)} rows)"
            first.setdefault(finding.name, Finding(finding.name, False, detail))
    if not returned:  # an audit of an algorithm that always fails would show nothing
        first["the algorithm returns"] = Finding("the algorithm returns", False, f"it raised on all {count} tables")
    return list(first.values()) or [Finding(f"record and replay on {count} neighbours, {unit.relation}", True)]
