"""The answers of a procedure, written down one by one: a long run can be stopped and go on without paying twice.

Answers are public: they were noised and paid for. A procedure is a function of public things and of the answers so far;
with the same answers it comes to the same place, and goes on asking from there.

Guarantee: that of the procedure. An answer is in the file before anything is done with it. What was drawn and did not
get there was seen by nobody, and may be drawn again. What is in the file is booked again in memory, charged to the
ledger once and for all by the first run, and never asked again. The ledger counts the answers: a copy of the file from
before the last of them is refused, since going on from it would answer a question twice for one price.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..domain import Domain
from ..errors import FileFormatError, InputError
from ..measurement import Measurement, Measurements, Noise
from ..privacy.account import Booking
from ..privacy.curator import Curator, Selection
from ..privacy.requests import Request
from ..privacy.stability import Stability
from ..privacy.voting import Vote

FORMAT = "discreet-transcript-1"


class Transcript:
    """A file of answers. ``Transcript(path)`` begins one, or takes up the one that is there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lines = self._read()
        self._at = 1  # the next line to be played again; the first is the heading
        self._count = max(len(self._lines) - 1, 0)

    @property
    def resumes(self) -> bool:
        """Whether there are answers to go on from."""
        return self._count > 0

    def begin(self, curator: Curator, plan: Mapping[str, Any]) -> None:
        """Check that these are answers to this very procedure, for the same budget, unit and columns; and that none
        is missing that the ledger knows of. The rows must be the same, too, which nobody can check."""
        heading = {"format": FORMAT, "plan": _digest({**plan, "domain": curator.domain.fingerprint})}
        if not self._lines:
            return self._write(heading)
        told = {key: self._lines[0].get(key) for key in heading}
        if told != heading:
            raise InputError(
                f"{self.path} holds the answers of another run (another plan, other columns, or another version); "
                "name another file, or remove it, and the budget that it was charged stays spent"
            )
        charges = [line["charge"] for line in self._lines[1:]]
        curator.resume(charges[-1] if charges else None, self._count)
        return None

    def ask(self, request: Request, curator: Curator) -> Any:
        """The answer from the file, booked again; or a fresh one, which goes into the file first."""
        if self._at <= self._count:
            line = self._lines[self._at]
            self._at += 1
            if line.get("request") != _digest(request.describe()):
                raise InputError(f"{self.path} holds the answer to another question than the one that is asked now")
            try:
                answer = answer_from(line["answer"], curator.domain)
                booked = [Booking.from_dict(entry) for entry in line["booked"]]
            except (KeyError, TypeError, ValueError, IndexError) as error:
                raise FileFormatError(f"{self.path} holds an answer that cannot be read ({error})") from None
            curator.book_again(booked)
            return answer
        before = len(curator.bookings)
        answer = request.ask(curator)
        line = {
            "request": _digest(request.describe()),
            "charge": curator.charge,
            "booked": [booking.to_dict() for booking in curator.bookings[before:]],
            "answer": plain_answer(answer),
        }
        self._write(line)
        self._count, self._at = self._count + 1, self._at + 1
        curator.count_answers(self._count)
        return answer

    def remove(self) -> None:
        """Once the release is saved: it holds all of it."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        try:
            out = [json.loads(line) for line in lines[:-1]]  # what follows the last line end was cut off, and not seen
        except ValueError:
            raise FileFormatError(f"{self.path} is no file of answers of a stopped run") from None
        if out and (not all(isinstance(line, dict) for line in out) or out[0].get("format") != FORMAT):
            raise FileFormatError(f"{self.path} is no file of answers of a stopped run")
        if lines[-1] and out:  # take the rest away, so that the next answer begins a line
            with self.path.open("r+b") as file:
                file.truncate(len(("\n".join(lines[:-1]) + "\n").encode()))
        return out

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._lines.append(json.loads(text))


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
        grid=Fraction(entry["grid"]),
        origin=entry["origin"],
        cost=entry["cost"],
        about=entry["about"],
    )
