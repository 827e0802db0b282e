"""A row of the table: every command that reads private rows, on neighbours and with the same noise. Whatever it says or
leaves in files that differs was not paid for; also when it is stopped in the middle, or something fails there.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dates
import hashlib
import io
import random
import secrets
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import discreet.privacy.ledger_entries as entries_module
from discreet import ZCDP, ApproxDP, Ledger, PureDP
from discreet.cli import main as command_line
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import SecureGateway

from .table import Row, Seen

TWO = '[columns.a]\nlevels = ["y", "n"]\n[columns.d]\nlevels = ["y", "n"]\n'
SCHEMAS = {
    "two.toml": TWO + '[columns.f]\nlevels = ["u", "v"]\n',
    "more.toml": TWO + '[columns.b]\nlevels = [0, 1, 2, 3]\nmissing = "?"\n[columns.c]\nedges = [0, 10, 20, 30]\n',
}
SCHEMAS["found.toml"] = (
    SCHEMAS["more.toml"] + '[columns.e]\nbins = "private"\nrange = [0, 100]\n[columns.f]\nlevels = "discover"\n'
)
TOTALS: dict[str, Budget] = {
    "pure.db": PureDP(60),
    "zcdp.db": ZCDP(60),
    "approx.db": ApproxDP(60, "0.5"),
    "replaced.db": PureDP(60),
    "persons.db": PureDP(60),
}
USUAL = ["--schema", "more.toml", "--epsilon", "1"]
RHO = ["--schema", "more.toml", "--rho", "0.5", "--ledger", "zcdp.db"]
FIT = ["fit", "data.csv", "-o", "out.zip"]
CERTIFY = ["certify", "model.zip", "data.csv", "-o", "out.zip", "--epsilon", "0.5"]
COMMANDS = [
    [*FIT, *USUAL, "--ledger", "pure.db", "--card", "card.yaml"],
    [*FIT, *USUAL, "--delta", "1e-6", "--ledger", "approx.db", "--checkpoint", "answers"],
    [*FIT, *USUAL, "--delta", "1e-3", "--ledger", "approx.db", "--json"],
    [*FIT, "--schema", "found.toml", "--epsilon", "2", "--delta", "1e-3", "--ledger", "approx.db"],
    [*FIT, *USUAL, "--ledger", "persons.db", "--unit-column", "p", "--max-rows", "2", "--graph", "a -> b; b -> c"],
    [*FIT, *USUAL, "--ledger", "replaced.db", "--relation", "replace-one", "--family", "network"],
    [*FIT, *USUAL, "--ledger", "pure.db", "--target", "a", "--row-is-line"],
    [*FIT, *RHO, "--family", "pairwise"],
    [*FIT, *RHO, "--family", "network", "--method", "searched"],
    [*FIT, *USUAL, "--ledger", "pure.db", "--public-size", "5"],
    [*FIT, "--schema", "more.toml", "--epsilon", "99", "--ledger", "pure.db"],
    ["fit", "data.csv", *USUAL, "--ledger", "pure.db", "-o", "full.zip", "--force"],  # a disk that is full
    ["measure", "data.csv", *USUAL, "--ledger", "pure.db", "-o", "out.zip", "--table", "a,b", "--table", "c"],
    ["structure", "data.csv", "--schema", "two.toml", "--epsilon", "1", "--delta", "1e-3", "--ledger", "approx.db",
     "-o", "out.json"],
    ["structure", "data.csv", "--schema", "two.toml", "--epsilon", "1", "--method", "selected_edges",
     "--ledger", "pure.db", "-o", "out.json"],
    [*CERTIFY, "--delta", "1e-4", "--ledger", "approx.db"],
    [*CERTIFY, "--ledger", "pure.db", "--target", "a"],
]  # fmt: skip
ODD = [
    "", "Y ", "no", 'z"q', "a\rb", "a\nb", "\x00", "\ufeff", "9" * 400, "1e999", "-0", "nan", "1" * 5000, "=1+1",
    "é" * 30, "\u2028", "0x10", "1,5", "2020-13-45", "x" * 100_000, "null", " 3", "3.0", "03", "+3", "٣", "1_0",
]  # fmt: skip
LINES = [
    b"\xff\xfe\xff\n",
    b"y,1,2\n",
    b",,,,,,,,,,,,,\n",
    b"\x00\n",
    b"y" * 200_000 + b"\n",
    b"\n",
    b'"",""\n',
    b'y,"\n',
]
ERRORS = (KeyboardInterrupt, MemoryError, RuntimeError, OSError)
CALLS = ("add_noise", "select", "release_large", "release_stable", "secret")


class Tape:
    """What the gateway answered on one side, to be answered again on the other. It fails at one call, if asked to."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Any]] = []
        self.at, self.replays, self.inside = 0, False, False
        self.fails_at, self.error = 0, KeyboardInterrupt
        self._real: dict[str, Callable[..., Any]] = {name: getattr(SecureGateway, name) for name in CALLS}

    def put_in(self) -> None:
        for name in CALLS:
            setattr(SecureGateway, name, self._instead(name))

    def take_out(self) -> None:
        for name, own in self._real.items():
            setattr(SecureGateway, name, own)

    def _instead(self, name: str) -> Callable[..., Any]:
        def answer(gateway: SecureGateway, *given: Any) -> Any:
            if self.inside:  # one call of the gateway makes use of another
                return self._real[name](gateway, *given)
            self.at += 1
            if self.at == self.fails_at:
                raise self.error("stopped here")
            if self.replays:
                kind, known = self.answers[self.at - 1]
                assert kind == name and (name != "add_noise" or np.shape(known) == np.shape(given[1]))
                return known
            self.inside = True
            try:
                self.answers.append((name, self._real[name](gateway, *given)))
            finally:
                self.inside = False
            return self.answers[-1][1]

        return answer


class Stopped(dates.datetime):
    @classmethod
    def now(cls, tz: dates.tzinfo | None = None) -> Stopped:
        return cls(2026, 1, 1, tzinfo=tz)


@contextlib.contextmanager
def nothing_by_chance() -> Any:
    """Names of runs, rescue files and times are the same on both sides."""
    made = [0]

    def text(n: int | None = None) -> str:
        made[0] += 1
        return hashlib.sha256(str(made[0]).encode()).hexdigest()[: 2 * (n or 32)]

    before = secrets.token_hex, entries_module.datetime
    secrets.token_hex, entries_module.datetime = text, Stopped  # type: ignore[misc]
    try:
        yield
    finally:
        secrets.token_hex, entries_module.datetime = before  # type: ignore[misc]


def _said(words: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command_line(words)
    return code, out.getvalue(), err.getvalue()


def _row(rng: random.Random) -> list[str]:
    if rng.random() < 0.5:
        return [rng.choice(ODD) for _ in range(7)]
    numbers = [str(rng.randrange(most)) for most in (4, 30, 100, 3)]
    return [rng.choice("yn"), numbers[0], numbers[1], rng.choice("yn"), numbers[2], rng.choice("uvw"), numbers[3]]


def _pair(rng: random.Random, replaced: bool) -> tuple[list[list[str]], list[list[str]], bytes]:
    """Rows, those of a neighbour, and a line of any bytes that the neighbour has besides."""
    rows = [_row(rng) for _ in range(rng.choice((1, 3, 20, 60)))]
    others = list(rows)
    at = rng.randrange(len(rows))
    if replaced:
        others[at] = _row(rng)
        return rows, others, b""
    kind = rng.randrange(3)
    if kind == 0:
        others.insert(at, _row(rng))
    elif kind == 1:
        del others[at]
    return rows, others, rng.choice(LINES) + b"\n" if kind == 2 else b""


def _side(
    home: Path, rows: list[list[str]], line: bytes, words: list[str]
) -> tuple[tuple[int, str, str], dict[str, bytes]]:
    """What a command says, and what is there afterwards but for the rows."""
    folder = home.with_name("side")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(home, folder, symlinks=True)
    with contextlib.chdir(folder), nothing_by_chance():
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([list("abcdefp"), *rows])
        Path("data.csv").write_bytes(text.getvalue().encode() + line)
        said = _said(words)
        left = {str(p): p for p in Path().rglob("*") if p.is_file() and not p.is_symlink() and p.name != "data.csv"}
        return said, {name: _content(path) for name, path in sorted(left.items())}


def _content(path: Path) -> bytes:
    if path.suffix != ".db":
        return path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as database:
        return repr(database.execute("SELECT * FROM entries").fetchall()).encode()


def _desk() -> Path:
    home = Path("/proc/self/cwd").resolve() / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    with contextlib.chdir(home):
        for name, text in SCHEMAS.items():
            Path(name).write_text(text)
        for name, total in TOTALS.items():
            Ledger.create(name, total).close()
        Path("full.zip").symlink_to("/dev/full")
        Path("data.csv").write_text("a,b,c,d\n" + "y,1,5,n\nn,2,15,y\n" * 20)
        code, *said = _said(["fit", "data.csv", *USUAL, "--ledger", "pure.db", "-o", "model.zip"])
        assert code == 0, said
    return home


def on_neighbours(first: int, count: int, seen: Seen) -> None:
    home = _desk()
    for number in range(first, first + count):
        seen.at(number)
        rng = random.Random(f"commands {number}")
        words = COMMANDS[number % len(COMMANDS)]
        rows, others, line = _pair(rng, "--relation" in words)
        if rng.random() < 0.5:
            rows, others, line = (others, rows, line) if not line else (rows, others, line)
        tape = Tape()
        tape.fails_at, tape.error = rng.choice((0, 0, 0, 2, 3, 4, 6, 9)), rng.choice(ERRORS)
        tape.put_in()
        try:
            one = _side(home, rows, b"", words)
            called, tape.at, tape.replays = tape.at, 0, True
            other = _side(home, others, line, words)
        finally:
            tape.take_out()
        seen.count(f"ended with {one[0][0]}")
        if one != other or tape.at != called:
            files = [n for n in {*one[1], *other[1]} if one[1].get(n) != other[1].get(n)]
            seen.wrong(number, f"{words}: {called} and {tape.at} draws, files {files}, {one[0]} {other[0]}")


ROWS = [
    Row(
        "every command on neighbours",
        "with the same noise it says and leaves the same, also where it fails in the middle",
        10_000, 34, 17, on_neighbours, "pairs",
        lambda facts: ", ".join(f"{n:,.0f} {c}" for c, n in sorted(facts.items())),
    ),
]  # fmt: skip
