"""What is tried against us, in 27 rows, and what came of it: `./test --table`.

A row is something that can be tried again and again: attempt number i is decided by i (and, where protective noise or
the moment of a kill is concerned, by luck). By default a sample is tried; `--slow` asks for the whole, which takes days
of processor time; `--share 0.01` for a part of the whole. What was tried is written down as it comes, so that a run
that was stopped goes on where it was; it is forgotten when the code or the rows change.

Attempts are made some at a time in a fork of a process that has imported everything. A fork that dies or hangs is a
finding, and which attempt it was at stands in shared memory.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import mmap
import os
import pickle
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KNOWN = ROOT / ".table.json"
BESIDE = ("", "privacy", "learn", "cli", "io")  # folders of the tests whose helpers the rows use
STUCK = 300  # seconds without a step
SHOWN = 5  # findings of a row that are kept in words


class Seen:
    """What a fork says while it works: at which attempt it is, what it found, and how far things went."""

    def __init__(self, place: mmap.mmap) -> None:
        self._place = place
        self.findings: list[str] = []
        self.facts: dict[str, float] = {}

    def at(self, attempt: int) -> None:
        self._place[:8] = struct.pack("<q", attempt)

    def wrong(self, attempt: int, what: str) -> None:
        self.findings.append(f"{attempt}: {what[:300]}")

    def most(self, what: str, value: float) -> None:
        self.facts[what] = max(value, self.facts.get(what, value))

    def count(self, what: str, more: int = 1) -> None:
        self.facts[what] = self.facts.get(what, 0) + more


@dataclass(frozen=True)
class Row:
    """Something to be tried. ``run(first, count, seen)`` makes so many attempts from the first on.

    ``bound``: what must hold, in words. ``facts``: how what was seen is put, from the facts of all forks.
    """

    name: str
    bound: str
    whole: int
    sample: int
    chunk: int
    run: Callable[[int, int, Seen], None]
    unit: str = ""
    facts: Callable[[dict[str, float]], str] = lambda facts: ""


Found = tuple[int, list[str], dict[str, float], float]  # attempts, findings, facts, seconds


@dataclass
class Outcome:
    """What is known of a row. ``asked``: attempts that were begun, of which those behind a broken one were not made."""

    asked: int = 0
    done: int = 0
    wrong: int = 0
    findings: list[str] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def take_in(self, asked: int, done: int, findings: list[str], facts: dict[str, float], seconds: float) -> None:
        self.asked += asked
        self.done += done
        self.wrong += len(findings)
        self.findings += findings[: max(0, SHOWN - len(self.findings))]
        for what, value in facts.items():
            known = self.facts.get(what, 0)
            self.facts[what] = max(known, value) if what.startswith("most ") else known + value
        self.seconds += seconds


def rows() -> list[Row]:
    """All of them, in the order of the table."""
    for folder in BESIDE:
        place = str(ROOT / "tests" / folder)
        if place not in sys.path:
            sys.path.append(place)
    from hardening import accidents, auditing, commands, parsers

    return [*auditing.ROWS, *commands.ROWS, *accidents.ROWS, *parsers.ROWS]


def mark() -> str:
    """Of all that decides what comes of an attempt."""
    digest = hashlib.sha256()
    for folder in (ROOT / "src", HERE):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


# -- trying ------------------------------------------------------------------------------------------------------------


@dataclass
class Fork:
    """Some attempts of a row in a process of their own."""

    row: Row
    first: int
    count: int
    place: mmap.mmap = field(init=False)
    said: Path = field(init=False)
    pid: int = 0
    moved: float = 0.0
    last: bytes = b""

    def start(self, folder: Path) -> None:
        self.place = mmap.mmap(-1, 8)
        self.said = folder / f"{time.monotonic_ns()}"
        self.moved = time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            code = 3
            try:
                os.setsid()
                own = folder / f"{os.getpid()}"
                own.mkdir()
                os.chdir(own)
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1), os.dup2(quiet, 2)
                seen, done = Seen(self.place), self.count
                try:
                    self.row.run(self.first, self.count, seen)
                except BaseException as error:
                    done = self._at() - self.first
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    seen.wrong(self._at(), f"{type(error).__name__} at {where.filename}:{where.lineno}: {error}")
                used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds = sum(u.ru_utime + u.ru_stime for u in used)
                self.said.write_bytes(pickle.dumps((done, seen.findings, seen.facts, seconds)))
                code = 0
            finally:
                os._exit(code)

    def _at(self) -> int:
        return max(self.first, int(struct.unpack("<q", self.place[:8])[0]))

    def ended(self) -> Found | None:
        """What came of it, if it is done."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done:
            now = self.place[:8]
            if now != self.last:
                self.last, self.moved = now, time.monotonic()
            if time.monotonic() - self.moved < STUCK:
                return None
            self.stop()
            return self._at() - self.first, [f"{self._at()}: it hangs"], {}, float(STUCK)
        if status or not self.said.exists():
            return self._at() - self.first, [f"{self._at()}: the process ended with {status}"], {}, 0.0
        found: Found = pickle.loads(self.said.read_bytes())
        return found

    def stop(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def try_all(wanted: Sequence[tuple[Row, int]], known: dict[str, Outcome], cores: int) -> Iterator[tuple[Row, Outcome]]:
    """Each time when some attempts have ended, their row and what is known of it. Rows take turns."""
    asked = {row.name: known.setdefault(row.name, Outcome()).asked for row, _ in wanted}
    forks: list[Fork] = []
    with tempfile.TemporaryDirectory(prefix="table-") as folder:
        try:
            while True:
                open_rows = [(row, number) for row, number in wanted if asked[row.name] < number]
                while open_rows and len(forks) < cores:
                    row, number = min(open_rows, key=lambda w: asked[w[0].name] / w[1])
                    count = min(row.chunk, number - asked[row.name])
                    fork = Fork(row, asked[row.name], count)
                    fork.start(Path(folder))
                    asked[row.name] += count
                    forks.append(fork)
                    open_rows = [(row, number) for row, number in wanted if asked[row.name] < number]
                if not forks:
                    return
                for fork in list(forks):
                    found = fork.ended()
                    if found is not None:
                        forks.remove(fork)
                        known[fork.row.name].take_in(fork.count, *found)
                        yield fork.row, known[fork.row.name]
                time.sleep(0.01)
        finally:
            for fork in forks:
                fork.stop()


# -- saying ------------------------------------------------------------------------------------------------------------


def line(row: Row, outcome: Outcome) -> list[str]:
    if not outcome.asked:
        result = "not tried"
    elif outcome.wrong:
        result = f"**{outcome.wrong:,} findings**"
    else:
        result = "none found"
    facts = row.facts(outcome.facts) if outcome.done else ""
    tried = f"{outcome.done:,} of {row.whole:,}{f' {row.unit}' if row.unit else ''}"
    return [row.name, tried, row.bound, f"{result}; {facts}" if facts else result]


def show(every: Sequence[Row], known: dict[str, Outcome]) -> str:
    lines = [["what", "tried", "must hold", "result"], ["---"] * 4]
    lines += [line(row, known.get(row.name, Outcome())) for row in every]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def load(marked: str) -> dict[str, Outcome]:
    if not KNOWN.exists():
        return {}
    kept = json.loads(KNOWN.read_text())
    return {name: Outcome(**facts) for name, facts in kept["rows"].items()} if kept["mark"] == marked else {}


def save(marked: str, known: dict[str, Outcome]) -> None:
    beside = KNOWN.with_suffix(".new")
    beside.write_text(json.dumps({"mark": marked, "rows": {n: vars(o) for n, o in known.items()}}))
    os.replace(beside, KNOWN)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="./test --table", description="Try what is said to be tried; print the table."
    )
    parser.add_argument("--row", action="append", metavar="WORDS", help="only rows whose name holds these words")
    parser.add_argument("--slow", action="store_true", help="the whole of every row: days of processor time")
    parser.add_argument("--share", type=float, metavar="X", help="this part of the whole of every row")
    parser.add_argument("--count", type=int, metavar="N", help="so many attempts a row")
    parser.add_argument("--attempt", type=int, metavar="I", help="this attempt alone, here; with --row")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="forget what was tried")
    parser.add_argument("--show", action="store_true", help="try nothing; print what is known")
    asked = parser.parse_args(words)
    every = rows()
    chosen = [r for r in every if not asked.row or any(w in r.name for w in asked.row)]
    if not chosen:
        parser.error(f"no row has these words in its name; there are: {', '.join(r.name for r in every)}")
    if asked.attempt is not None:
        return _one(chosen[0], asked.attempt)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    marked = mark()
    known = {} if asked.again else load(marked)
    wanted = [(row, _number(row, asked)) for row in chosen]
    told = {name: outcome.wrong for name, outcome in known.items()}
    for row, outcome in () if asked.show else try_all(wanted, known, asked.cores):
        save(marked, known)
        if outcome.wrong > told.get(row.name, 0):
            told[row.name] = outcome.wrong
            print(f"FOUND in {row.name}, attempt {outcome.findings[-1]}", flush=True)
    print(show(every if not asked.row else chosen, known))
    for row in chosen:
        for found in known.get(row.name, Outcome()).findings:
            print(f"FOUND in {row.name}, attempt {found}")
    seconds = sum(known.get(row.name, Outcome()).seconds for row in chosen)
    print(f"{seconds:,.0f} seconds of processor time. One attempt again: ./test --table --row WORDS --attempt I")
    return 1 if any(known.get(row.name, Outcome()).wrong for row in chosen) else 0


def _number(row: Row, asked: Any) -> int:
    if asked.count is not None:
        return min(row.whole, asked.count)
    if asked.share is not None:
        return min(row.whole, max(1, round(row.whole * asked.share)))
    return row.whole if asked.slow else row.sample


def _one(row: Row, attempt: int) -> int:
    """In this process, so that it can be looked at."""
    seen = Seen(mmap.mmap(-1, 8))
    with tempfile.TemporaryDirectory(prefix="table-") as folder:
        os.chdir(folder)
        os.environ["TABLE_SHOWS"] = "1"
        row.run(attempt, 1, seen)
    print("\n".join(seen.findings) or "nothing was found", seen.facts)
    return 1 if seen.findings else 0


if __name__ == "__main__":
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ["DISCREET_CACHE"] = "off"
    sys.path.insert(0, str(ROOT / "tests"))
    importlib.import_module("hardening.table")
    raise SystemExit(sys.modules["hardening.table"].main())
