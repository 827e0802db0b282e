"""Rows of the table about accidents: kills, many at once, clocks, disks, old copies; and canaries in failing runs."""

from __future__ import annotations

import contextlib
import datetime as dates
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from command_desk import CANARIES, SCHEMA
from command_desk import ROWS as DATA

import discreet.privacy.ledger_entries as entries_module
from discreet import Ledger, PrivacyUnit, PureDP, Release
from discreet.cli import main as command_line
from discreet.errors import BudgetError, LedgerError

from .table import Row, Seen

FIT = ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--graph", "smoke -> city", "--no-plan"]
MEASURE = ["measure", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--table", "smoke,city"]
STRUCTURE = ["structure", "data.csv", "--schema", "schema.toml", "--epsilon", "1"]
AT_ONCE = 16
LINE = PureDP("1/100")


def desk(name: str, total: str = "3") -> Path:
    """A folder with rows, schema and a ledger; current from here on."""
    folder = Path("/proc/self/cwd").resolve() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    Path("data.csv").write_text(DATA)
    Path("schema.toml").write_text(SCHEMA)
    Ledger.create("ledger.db", PureDP(total)).close()
    return folder


@contextlib.contextmanager
def at_a_desk(name: str, total: str = "3") -> Iterator[Path]:
    home = Path("/proc/self/cwd").resolve()
    try:
        yield desk(name, total)
    finally:
        os.chdir(home)


def begun(words: list[str], first: Callable[[], None] | None = None) -> int:
    """A command line in a fork; what it says goes to two files."""
    pid = os.fork()
    if not pid:
        code = 99
        try:
            streams = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("out.txt", "err.txt")]
            os.dup2(streams[0], 1), os.dup2(streams[1], 2)
            sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if first is not None:
                first()
            code = command_line(words)
            sys.stdout.flush()
        finally:
            os._exit(code)
    return pid


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def said() -> str:
    return Path("out.txt").read_text(errors="replace") + Path("err.txt").read_text(errors="replace")


def spent(path: str = "ledger.db") -> Fraction:
    with Ledger.open(path) as ledger:
        problems = ledger.verify()
        assert not problems, problems
        return Fraction(0) if ledger.spent is None else ledger.spent.epsilon  # type: ignore[attr-defined]


# -- kills -------------------------------------------------------------------------------------------------------------


def kills(first: int, count: int, seen: Seen) -> None:
    """A fit with a checkpoint is killed at any moment, and begun again until it ends: one charge, one release."""
    with at_a_desk("usual"):
        begin = time.monotonic()
        assert ended(begun([*FIT, "--ledger", "ledger.db", "-o", "m.zip"])) == 0, said()
        usual = time.monotonic() - begin
    done = first
    while done < first + count:
        with at_a_desk("killed"):
            words = [*FIT, "--ledger", "ledger.db", "--checkpoint", "c.jsonl", "-o", "m.zip", "--force"]
            for _ in range(4):
                if done == first + count:
                    break
                seen.at(done)
                pid = begun(words)
                time.sleep(random.random() * 1.2 * usual)  # luck decides
                os.kill(pid, signal.SIGKILL)
                ended(pid)
                paid = spent()
                if not (paid == 0 or 0.999 < paid <= 1) or (Path("m.zip").exists() and not paid):
                    seen.wrong(done, f"a release and {paid} spent")
                if Path("m.zip").exists():
                    Release.load("m.zip")  # whole, or not there
                seen.count("before the charge" if not paid else "after the charge")
                done += 1
                if Path("m.zip").exists():
                    break
            if not Path("m.zip").exists():
                code = ended(begun(words))
                if code != 0 or spent() > 1 or not Path("m.zip").exists():
                    seen.wrong(done - 1, f"begun again it ends with {code}, {spent()} spent: {said()[-300:]}")


# -- many at once ------------------------------------------------------------------------------------------------------


def spends(first: int, count: int, seen: Seen) -> None:
    """Sixteen processes spend as often as asked, of a ledger that has less than they want."""
    want = AT_ONCE * count
    total = PureDP(Fraction(want * 9 // 10, 100))
    with at_a_desk("many"):
        Ledger.create("many.db", total).close()
        pids = [_spender(count, number) for number in range(AT_ONCE)]
        codes = [ended(pid) for pid in pids]
        admitted = sum(int(Path(f"spent{number}").read_text()) for number in range(AT_ONCE))
        seen.at(first)
        if any(codes):
            seen.wrong(first, f"spenders ended with {codes}")
        if spent("many.db") != Fraction(admitted, 100) or admitted != want * 9 // 10:
            seen.wrong(first, f"{admitted} of {want} were admitted, {spent('many.db')} is booked of {total}")
        seen.count("admitted", admitted)


def _spender(count: int, number: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code, admitted = 1, 0
    try:
        with Ledger.open("many.db") as ledger:
            for _ in range(count):
                with contextlib.suppress(BudgetError):
                    ledger.charge(LINE, PrivacyUnit())
                    admitted += 1
        Path(f"spent{number}").write_text(str(admitted))
        code = 0
    finally:
        os._exit(code)


# -- clocks ------------------------------------------------------------------------------------------------------------


def clocks(first: int, count: int, seen: Seen) -> None:
    """The clock says anything between two charges; books and order do not care."""
    real = entries_module.datetime
    for number in range(first, first + count):
        seen.at(number)
        rng = random.Random(f"clock {number}")
        moments = [
            dates.datetime(
                rng.choice([1, 1970, 1999, 2026, 2038, 9999]), rng.randint(1, 12), rng.randint(1, 28), tzinfo=dates.UTC
            )
            for _ in range(6)
        ]

        class Clock(real):  # type: ignore[valid-type, misc]
            @classmethod
            def now(cls, zone: Any = None, moments: list[Any] = moments, rng: random.Random = rng) -> Any:
                return rng.choice(moments)

        with at_a_desk("clock"):
            entries_module.datetime = Clock  # type: ignore[misc]
            try:
                with Ledger.open("ledger.db") as ledger:
                    numbers = [ledger.charge(LINE, PrivacyUnit()) for _ in range(5)]
                    head = ledger.head
                    ledger.settle(numbers[2], None)
                with Ledger.open("ledger.db") as ledger:
                    wrong = ledger.verify(head)
                    if wrong or numbers != sorted(set(numbers)) or ledger.spent != PureDP("4/100"):
                        seen.wrong(number, f"{wrong}, {numbers}, {ledger.spent}")
            finally:
                entries_module.datetime = real  # type: ignore[misc]


# -- disks -------------------------------------------------------------------------------------------------------------


def disks(first: int, count: int, seen: Seen) -> None:
    """Files may grow to a size that is drawn: before the spend nothing is spent; after it nothing is lost."""
    for number in range(first, first + count):
        seen.at(number)
        rng = random.Random(f"disk {number}")
        words = rng.choice((FIT, MEASURE, STRUCTURE))
        largest = rng.choice((rng.randrange(0, 6_000), rng.randrange(6_000, 60_000), rng.randrange(20_000, 30_000)))
        name = "out.json" if words is STRUCTURE else "out.zip"
        with at_a_desk("disk"):
            begin = [os.open(n, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for n in ("out.txt", "err.txt")]
            for opened in begin:
                os.close(opened)
            code = _through_pipes([*words, "--ledger", "ledger.db", "-o", name], largest)
            paid, text = spent(), said()
            there = Path(name).exists() or any(Path().glob("*.rescued-*")) or "printed" in text
            seen.count(f"code {code}")
            if code not in (0, 3, 4, 9, 10):
                seen.wrong(number, f"at {largest} bytes {words[0]} ends with {code}: {text[-200:]}")
            elif code == 0 and not Path(name).exists():
                seen.wrong(number, f"at {largest} bytes {words[0]} ends well without a file")
            elif paid and not there:
                seen.wrong(number, f"at {largest} bytes {words[0]} loses what was paid for ({code}): {text[-300:]}")
            elif not paid and "counts as spent" in text:
                seen.wrong(number, f"at {largest} bytes {words[0]} says that it was charged, and it was not")
            elif paid and "nothing was spent" in text:
                seen.wrong(number, f"at {largest} bytes {words[0]} says that nothing was spent, and {paid} was")


def _through_pipes(words: list[str], largest: int) -> int:
    """As :func:`begun`, where no file may grow beyond so many bytes; what is said goes through pipes."""
    import selectors

    pipes = [os.pipe(), os.pipe()]
    pid = os.fork()
    if not pid:
        code = 99
        try:
            for number, (_, writing) in enumerate(pipes, start=1):
                os.dup2(writing, number)
            for ends in pipes:
                os.close(ends[0]), os.close(ends[1])
            sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            sys.dont_write_bytecode = True  # a compiled module would be cut off as well, and stay so
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
            code = command_line(words)
            sys.stdout.flush()
        finally:
            os._exit(code)
    texts = {reading: b"" for reading, _ in pipes}
    with selectors.DefaultSelector() as selector:
        for reading, writing in pipes:
            os.close(writing)
            selector.register(reading, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                piece = os.read(key.fd, 65_536)
                texts[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    code = ended(pid)
    for name, text in zip(("out.txt", "err.txt"), texts.values(), strict=True):
        Path(name).write_bytes(text)
    return code


# -- old copies --------------------------------------------------------------------------------------------------------


def copies(first: int, count: int, seen: Seen) -> None:
    """An old copy, a cut end, another ledger or an altered entry takes the place of a ledger: a head that is kept
    elsewhere tells, and a process that had it open does not go on. (Where an entry before the last one was altered, it
    may go by what it has read; here it is the last.)"""
    for number in range(first, first + count):
        seen.at(number)
        rng = random.Random(f"copies {number}")
        kind = ("old copy", "cut", "other", "altered")[number % 4]
        with at_a_desk("copies"):
            opened = Ledger.open("ledger.db")
            for _ in range(rng.randint(1, 4)):
                opened.charge(LINE, PrivacyUnit())
            shutil.copy("ledger.db", "old.db")
            for _ in range(rng.randint(1, 4)):
                opened.charge(LINE, PrivacyUnit())
            head, key = opened.head, opened.public_key
            changes = Path("ledger.db").read_bytes()[24:28]
            _tamper(kind, rng)
            if rng.random() < 0.5:  # as many changes as before: the database then goes by the pages that it has
                with open("ledger.db", "r+b") as file:
                    for place in (24, 92):
                        file.seek(place)
                        file.write(changes)
            try:
                opened.charge(LINE, PrivacyUnit())
                seen.wrong(number, f"{kind}: the process that had it open goes on charging")
            except LedgerError:
                seen.count("noticed by the open process")
            opened.close()
            try:
                with Ledger.open("ledger.db") as again:
                    problems = again.verify(head, key)
            except LedgerError as error:
                problems = [str(error)]
            if not problems:
                seen.wrong(number, f"{kind}: the head that was kept does not tell")


def _tamper(kind: str, rng: random.Random) -> None:
    if kind == "old copy":
        Path("ledger.db").write_bytes(Path("old.db").read_bytes())
        return
    if kind == "other":
        Ledger.create("other.db", PureDP(3)).close()
        with Ledger.open("other.db") as other:
            for _ in range(rng.randint(0, 9)):
                other.charge(LINE, PrivacyUnit())
        Path("ledger.db").write_bytes(Path("other.db").read_bytes())
        return
    with contextlib.closing(sqlite3.connect("ledger.db", isolation_level=None)) as database:
        (last,) = database.execute("SELECT max(number) FROM entries").fetchone()
        if kind == "cut":
            database.execute("DELETE FROM entries WHERE number > ?", (last - 1,))
        else:
            database.execute(
                "UPDATE entries SET details = replace(details, '1/100', '1/900') WHERE number = ?", (last,)
            )


# -- canaries ----------------------------------------------------------------------------------------------------------


def canaries(first: int, count: int, seen: Seen) -> None:
    """Runs that fail, of rows that hold names: nothing that they say or leave holds one."""
    for number in range(first, first + count):
        seen.at(number)
        rng = random.Random(f"canaries {number}")
        with at_a_desk("canaries"):
            begun_with = set(Path().iterdir())
            words, what = _failing(rng)
            pid = begun(words, what)
            code = ended(pid)
            text = said()
            left = [
                p for p in Path().rglob("*") if p.is_file() and p not in begun_with and not p.name.startswith("in-")
            ]
            found = [c for c in CANARIES if c in text or any(c.encode() in p.read_bytes() for p in left)]
            seen.count("failed" if code else "did not fail")
            if found:
                seen.wrong(number, f"{found} after {words}: {text[-200:]}")
            if code == 70 and what is None:
                seen.wrong(number, f"a defect after {words}: {text[-200:]}")


def _failing(rng: random.Random) -> tuple[list[str], Callable[[], None] | None]:
    """A command line with something wrong, and what goes wrong besides."""
    words = list(rng.choice((FIT, MEASURE, STRUCTURE, ["schema", "check", "data.csv", "schema.toml"])))
    private = DATA.replace("eve", rng.choice(["eve", '"eve', "e\x00ve", "é" * 50, "\x1b[31m", "eve\r"]))
    Path("data.csv").write_text(private)
    kind = rng.randrange(12)
    if kind == 0:
        Path("schema.toml").write_text(SCHEMA.replace("smoke", rng.choice(["smokes", "Quetzal", "patient"])))
    elif kind == 1:  # rows without a line of names
        Path("data.csv").write_text(private.split("\n", 1)[1])
    elif kind == 2:  # the rows where a file of another kind is meant
        words = [w if w != "schema.toml" else "data.csv" for w in words]
    elif kind == 3:
        words = [*words, "--graph", "data.csv"] if words[0] == "fit" else [*words, "--cliques", "data.csv"]
    elif kind == 4:
        words = [*words, "--run", "data.csv"]
    elif kind == 5:
        words += ["--unit", rng.choice(["patient", "patients", "age"]), *rng.choice(([], ["--max-rows", "2"]))]
    elif kind == 6:
        words += ["--delimiter", rng.choice([";", "\t", "|", "a", '"'])]
    elif kind == 7:
        Path("data.csv").write_bytes(private.encode() + rng.randbytes(30) + b"\nQuetzalcoatl,\xff\xfe,1,Xochimilco\n")
    elif kind == 8:
        words = [w if w != "1" else rng.choice(["0", "-1", "1e-300", "x", "99"]) for w in words]
    elif kind == 9:
        command = rng.choice(["show", "verify", "query", "sample", "report", "map"])
        words = [command, "data.csv", *(["P(smoke)"] if command == "query" else [])]
    elif kind == 10:
        words = ["schema", rng.choice(["show", "draft", "import"]), "data.csv"][: rng.choice((2, 3))]
        if words[1:2] == ["draft"]:  # which shows values, as it says: without its file
            words = ["schema", "draft", "data.csv", "-o", "/nowhere/schema.toml"]
    if words[0] in ("fit", "measure", "structure"):
        words += ["--ledger", "ledger.db", "-o", "out.json" if words[0] == "structure" else "out.zip"]
    if kind == 11 or rng.random() < 0.3:
        return words, lambda: _break(rng.randrange(4))
    return words, None


def _break(kind: int) -> None:
    """A defect in the middle, with a row in its hands."""
    from discreet.privacy.mechanisms import SecureGateway
    from discreet.tables.base import Table

    def fail(*args: Any, **named: Any) -> Any:
        raise (ValueError, KeyError, RuntimeError, MemoryError)[kind](f"{CANARIES[0]} {args[1:2]} {CANARIES[2]}")

    if kind % 2:
        SecureGateway.add_noise = fail  # type: ignore[method-assign]
    else:
        Table.sum = fail  # type: ignore[method-assign]


def _kill_facts(facts: dict[str, float]) -> str:
    return f"{facts.get('before the charge', 0):,.0f} before the charge, {facts.get('after the charge', 0):,.0f} after"


ROWS = [
    Row(
        "kills in the middle of a fit",
        "charged once or not at all; a release is whole or not there; begun again it ends",
        1_000, 20, 10, kills, "kills", _kill_facts,
    ),
    Row(
        "16 processes spend at once",
        "what was admitted is what is booked, and all of the total",
        1_000, 10, 1_000, spends, "spends each", lambda f: f"{f.get('admitted', 0):,.0f} admitted",
    ),
    Row("clocks that go wrong", "books and order do not change", 1_000, 20, 20, clocks, "ledgers"),
    Row(
        "disks that are full",
        "what is paid for is kept, and what is said about the money is true",
        1_000, 20, 5, disks, "runs",
        lambda facts: ", ".join(f"{n:,.0f} with {c}" for c, n in sorted(facts.items()) if c.startswith("code")),
    ),
    Row(
        "old copies, cut ends, other ledgers, altered entries",
        "a head kept elsewhere tells; an open process does not go on",
        1_000, 20, 20, copies, "ledgers",
    ),
    Row(
        "canaries through failing runs",
        "no value of a row in what is said or left",
        1_000, 40, 10, canaries, "runs", lambda facts: f"{facts.get('failed', 0):,.0f} failed",
    ),
]  # fmt: skip
