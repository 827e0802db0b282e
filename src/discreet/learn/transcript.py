"""The answers of a procedure, written down one by one: a long run can be stopped and go on without paying twice.

Answers are public: they were noised and paid for. A procedure is a function of public things and of the answers so far;
with the same answers it comes to the same place, and goes on asking from there.

Guarantee: that of the procedure. An answer is in the file before anything is done with it. What was drawn and did not
get there was seen by nobody, and may be drawn again. What is in the file is booked again in memory, charged to the
ledger once and for all by the first run, and never asked again. The ledger knows the run by a random name, so that it
is charged once wherever it was stopped, and has the number and a digest of its answers: a copy of the file from before
the last of them is refused, and so are two processes at once, since a question would be answered twice for one price.
(An answer is counted after it was written; of two processes that drew one at the same time, the second is refused, and
takes its own out of its file again. Who pulls the plug in between, and has kept a copy from before, can have that one
again: no order of the two writes does without such a moment, and this one never loses an answer.) Which rows of a
person count, and who is in a sample, is drawn anew when a run goes on: each answer keeps its own guarantee, for its own
coins, and they compose; :attr:`Procedure.not_resumable` says where they would not. The file is trusted as the rows are:
it lies with who holds them, and who writes other costs into it deceives only their own ledger.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..domain import Domain, in_groups
from ..errors import BudgetError, FileFormatError, InputError, LedgerError
from ..measurement import Measurement, Measurements, Noise
from ..privacy.account import Booking
from ..privacy.curator import Curator
from ..privacy.ledger_entries import Had
from ..privacy.requests import Ask, Measure, Request
from ..privacy.selection import Selection
from ..privacy.stability import Stability
from ..privacy.unlisted import Unlisted
from ..privacy.voting import Vote
from ..spelling import written

try:
    import fcntl
except ImportError:  # where there are no such locks the ledger alone watches
    fcntl = None  # type: ignore[assignment]

FORMAT = "discreet-transcript-1"
_OPENING = f'{{"format": "{FORMAT}"'.encode()


class Transcript:
    """A file of answers. ``Transcript(path)`` begins one, or takes up the one that is there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lines = _lines(self.path, self._content())
        self._at = 1  # the next line to be played again; the first is the heading
        self._had = [Had()]  # of no answer, of the first, of the first two, …
        self._file: IO[bytes] | None = None

    @property
    def answers(self) -> int:
        """How many there are to go on from."""
        return max(len(self._lines) - 1, 0)

    @property
    def run(self) -> str | None:
        """By which the ledger knows this run; None before it has begun."""
        return self._lines[0]["run"] if self._lines else None

    @contextmanager
    def of(self, curator: Curator, plan: Mapping[str, Any]) -> Iterator[Ask]:
        """What puts requests to the curator, or has their answers already.

        Checked is that these are answers to this very procedure, for the same budget, unit and columns; and that none
        is missing that the ledger knows of. The rows must be the same, too, which nobody can check. Afterwards the
        curator answers nothing more: what it did would not stand here. If the run is stopped nothing is given back.
        """
        with self._locked():
            self._begin(curator, plan)
            try:
                yield self._ask
                curator.finish()
            except BaseException:
                curator.suspend()
                raise

    def remove(self) -> None:
        """Once the release is saved: it holds all of it."""
        self.path.unlink(missing_ok=True)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _begin(self, curator: Curator, plan: Mapping[str, Any]) -> None:
        # Selections do not say whether their noise protects; so research and release are different runs.
        public = {key: curator.statement()[key] for key in ("domain", "origin", "version")}
        told = _digest({**plan, **public})
        if not self._lines:
            run = secrets.token_hex(16)
            curator.take_up(run, Had())
            return self._write({"format": FORMAT, "plan": told, "run": run, "ledger": curator.has_ledger})
        heading = self._lines[0]
        if heading["plan"] != told:
            raise InputError(
                f"{self.path} holds the answers of another run (another plan, other columns, or another version); "
                "name another file, or remove it, and the budget that it was charged stays spent"
            )
        if heading["ledger"] != curator.has_ledger:
            raise BudgetError("a stopped run goes on with the ledger that it was charged to, or without one as before")
        before = self._had[-2] if self.answers else None
        return curator.take_up(heading["run"], self._had[-1], before)

    def _ask(self, request: Request, curator: Curator) -> Any:
        """The answer from the file, booked again; or a fresh one, which goes into the file first."""
        asked = _digest(request.describe())
        if self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.get("request") != asked:
                raise InputError(f"{self.path} holds the answer to another question than the one that is asked now")
            try:
                answer = answer_from(line["answer"], _columns(request, curator.domain))
                booked = [Booking.from_dict(entry) for entry in line["booked"]]
            except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError) as error:
                raise FileFormatError(
                    f"{self.path} holds an answer that cannot be read ({type(error).__name__})"
                ) from None
            curator.book_again(booked)
            return answer
        curator.check_answers(self._had[-1])
        before = len(curator.bookings)
        answer = request.ask(curator)
        paid = [booking.to_dict() for booking in curator.bookings[before:]]
        # Two draws of one question may come out alike; what tells them apart is no part of the answer.
        once = secrets.token_hex(8)
        self._write({"request": asked, "booked": paid, "answer": plain_answer(answer), "once": once})
        self._at += 1
        try:
            curator.count_answer(self._had[-2], self._had[-1])
        except LedgerError:
            self._take_back()
            raise
        return answer

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The file, for this process alone; two that go on from it at once would ask the same questions twice."""
        with self.path.open("a+b") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise InputError(f"another process goes on with the run of {self.path} just now") from None
            content = self._content()
            self._lines, self._at = _lines(self.path, content), 1
            self._had = list(accumulate(self._lines[1:], _sealed, initial=Had()))
            file.truncate(content.rfind(b"\n") + 1)  # what was cut off was not seen; the next answer begins a line
            self._file = file
            try:
                yield
            finally:
                self._file = None
                if not self._lines:  # it was refused before it began
                    self.remove()

    def _content(self) -> bytes:
        if not self.path.exists():
            return b""
        if not self.path.is_file():
            raise FileFormatError(f"{self.path} is no ordinary file, and answers are kept in one; name another place")
        return self.path.read_bytes()

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._file is not None
        text = json.dumps(line)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._lines:
            self._had.append(_sealed(self._had[-1], json.loads(text)))
        self._lines.append(json.loads(text))

    def _take_back(self) -> None:
        """The last answer, which nobody has seen and which is not paid for."""
        assert self._file is not None
        self._file.truncate(self._content().rstrip(b"\n").rfind(b"\n") + 1)
        os.fsync(self._file.fileno())
        del self._lines[-1], self._had[-1]


def _lines(path: Path, content: bytes) -> list[dict[str, Any]]:
    """The whole lines of a file; anything but a file of answers is refused, and never written to."""
    *whole, rest = content.split(b"\n")
    try:
        out = [json.loads(line) for line in whole]
    except (ValueError, RecursionError):
        out = [None]
    known = all(isinstance(line, dict) for line in out)
    if known and out:
        known = out[0].get("format") == FORMAT and {"plan", "run", "ledger"} <= {*out[0]}
    elif known:  # not even the heading was written to the end
        known = _OPENING.startswith(rest[: len(_OPENING)])
    if not known:
        raise FileFormatError(f"{path} is no file of answers of a stopped run; name another one")
    return out


def _columns(request: Request, domain: Domain) -> Domain:
    """Of the tables that a request asks for."""
    return in_groups(domain, request.query.grouped) if isinstance(request, Measure) else domain


def _sealed(before: Had, line: Mapping[str, Any]) -> Had:
    return Had(before.answers + 1, _digest({"before": before.seal, "line": line}))


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


# -- answers as plain data ---------------------------------------------------------------------------------------------


def plain_answer(answer: Any) -> dict[str, Any]:
    """An answer of a curator as JSON has it."""
    if isinstance(answer, Measurements):
        return {"measurements": [_plain_measurement(m) for m in answer]}
    if isinstance(answer, Selection):
        return {"selections": [_plain_selection(answer)], "alone": True}
    if isinstance(answer, tuple) and all(isinstance(s, Selection) for s in answer):
        return {"selections": [_plain_selection(s) for s in answer], "alone": False}
    if isinstance(answer, Stability):
        signs = None if answer.signs is None else [bool(s) for s in answer.signs]
        rest = [answer.word, answer.noisy_distance, answer.threshold, answer.scale]
        return {"stability": [signs, *rest]}
    if isinstance(answer, Unlisted):
        return {"unlisted": [dict(answer.counts), answer.threshold, answer.scale]}
    if isinstance(answer, Vote):
        return {"vote": [answer.winner, dict(answer.counts), answer.threshold]}
    raise TypeError(f"an answer of the kind {type(answer).__name__} cannot be written down")


def answer_from(plain: Mapping[str, Any], domain: Domain) -> Any:
    """What :func:`plain_answer` wrote."""
    if "measurements" in plain:
        return Measurements([_measurement(entry, domain) for entry in plain["measurements"]])
    if "selections" in plain:
        found = tuple(Selection(tuple(i), tuple(names), scale) for i, names, scale in plain["selections"])
        return found[0] if plain["alone"] else found
    if "stability" in plain:
        signs, word, distance, threshold, scale = plain["stability"]
        return Stability(None if signs is None else np.array(signs, dtype=bool), word, distance, threshold, scale)
    if "unlisted" in plain:
        return Unlisted(*plain["unlisted"])
    winner, counts, threshold = plain["vote"]
    return Vote(winner, counts, threshold)


def _plain_selection(s: Selection) -> list[Any]:
    return [[int(i) for i in s.indices], list(s.names), s.scale]


def _plain_measurement(m: Measurement) -> dict[str, Any]:
    return {
        "label": m.label,
        "shape": list(m.counts.shape),
        "counts": m.counts.reshape(-1).tolist(),
        "noise": [m.noise.kind, m.noise.scale],
        "columns": list(m.domain.names),
        "clique": None if m.clique is None else list(m.clique),
        "grid": str(m.grid),
        "origin": m.origin,
        "cost": dict(m.cost),
        "about": dict(m.about),
    }


def _measurement(entry: Mapping[str, Any], domain: Domain) -> Measurement:
    kind, scale = entry["noise"]
    return Measurement(
        entry["label"],
        np.array(entry["counts"], dtype=np.int64).reshape(entry["shape"]),
        Noise(kind, scale),
        domain.project(entry["columns"]),
        clique=None if entry["clique"] is None else tuple(entry["clique"]),
        grid=written(entry["grid"]),
        origin=entry["origin"],
        cost=entry["cost"],
        about=entry["about"],
    )
