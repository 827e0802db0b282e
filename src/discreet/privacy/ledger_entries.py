"""The entries of a ledger and the SQLite file that they are in: made, appended, and held against their signatures."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from .._version import __version__
from ..errors import LedgerError
from ..io.strictjson import refuse_private
from ..signing import SigningKey, is_signed
from .budget import Budget, GaussianDP
from .ledger_access import SLICE_SECONDS, in_words, patiently

FORMAT = "discreet-ledger-1"
_COLUMNS = "number, time, kind, details, chain"
Kind = Literal["open", "charge", "settle", "steps", "key", "answers"]


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    number: int
    time: str
    kind: Kind
    details: Mapping[str, Any]
    chain: str
    signature: str | None = None

    @classmethod
    def read(cls, number: Any, time: Any, kind: Any, details: Any, chain: Any, signature: Any = None) -> Entry:
        """A line of the database, which may hold anything."""
        body = json.loads(details)
        texts = (time, kind, chain, "" if signature is None else signature)
        if type(number) is not int or not isinstance(body, dict) or not all(isinstance(text, str) for text in texts):
            raise ValueError("not an entry")
        return cls(number, time, cast(Kind, kind), body, chain, signature)

    @property
    def head(self) -> str:
        """Its number and the hash of all up to it: what is signed."""
        return f"{self.number}:{self.chain}"

    def digest(self, previous: str) -> str:
        body = json.dumps(
            [previous, self.number, self.time, self.kind, self.details], sort_keys=True, ensure_ascii=True
        )
        return hashlib.sha256(body.encode()).hexdigest()


class Had(NamedTuple):
    """The answers that a run has had: how many, and a digest of all of them in order. Two that went on from the same
    place have as many, and not the same."""

    answers: int = 0
    seal: str = ""


@dataclass
class Runs:
    """What the entries tell of runs that may be stopped and go on (:mod:`discreet.learn.transcript`)."""

    charges: dict[str, int] = field(default_factory=dict)
    """By the names of the runs."""
    answers: dict[int, Had] = field(default_factory=dict)
    """What the run of a charge has had, where there are any."""
    over: set[int] = field(default_factory=set)
    """Charges whose steps are written down, or that were settled."""

    def take_in(self, entry: Entry) -> None:
        if entry.kind == "charge" and "run" in entry.details:
            self.charges[entry.details["run"]] = entry.number
        elif entry.kind == "answers":
            self.answers[entry.details["charge"]] = Had(entry.details["answers"], entry.details["seal"])
        elif entry.kind in ("steps", "settle"):
            self.over.add(entry.details["charge"])

    def check(self, charge: int, had: Had) -> None:
        """Refuse another answer to a run that is over, or has had others than are at hand."""
        if charge in self.over:
            raise LedgerError(f"the run of charge number {charge} is over, and nothing more can be asked for it")
        self.check_same(charge, had)

    def check_same(self, charge: int, had: Had) -> None:
        known = self.answers.get(charge, Had())
        if known != had:
            which = f"{had.answers} others" if known.answers == had.answers else str(had.answers)
            raise LedgerError(
                f"the run of charge number {charge} has had {known.answers} answers, and the file holds {which}: going "
                "on from an older copy, or twice at once, would answer a question twice for one price; take the latest "
                "file"
            )


def make_file(path: Path, total: Budget) -> bool:
    """Make a whole ledger under another name and put it in place in one step; False when there is one already.

    So nobody ever meets half a ledger, neither a process that opens it at this moment nor one that comes after a crash.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"the folder {path.parent} does not exist; make it first")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        key = SigningKey.made_at(key_path(path))  # first: a ledger whose key was lost in a crash could not be used
        connection = connect(draft, "rwc")
        try:
            initialise(connection, total, key)
        finally:
            connection.close()
        os.link(draft, path)
    except FileExistsError:
        return False
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"cannot create the ledger {path}: {error}") from None
    finally:
        draft.unlink(missing_ok=True)
    return True


def connect(path: Path, mode: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}",
            uri=True,
            timeout=SLICE_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise LedgerError(f"cannot open the ledger {path}: {error}") from None
    try:
        with in_words(path):  # the commit survives a power cut, the directory entry included
            patiently(connection, path, "PRAGMA synchronous = EXTRA")
    except BaseException:
        connection.close()
        raise
    return connection


def initialise(connection: sqlite3.Connection, total: Budget, key: SigningKey | None = None) -> None:
    if isinstance(total, GaussianDP):
        raise LedgerError("a ledger keeps ε, ρ or (ε, δ): μ² is a notion for shares within an (ε, δ) budget")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, "
        "details TEXT NOT NULL, chain TEXT NOT NULL)"
    )
    opening = {"format": FORMAT, "total": total.to_dict(), "version": __version__}
    if key is not None:
        add_signatures(connection)
        opening["key"] = key.public
    insert(connection, "open", opening, key)
    connection.execute("COMMIT")


def add_signatures(connection: sqlite3.Connection) -> None:
    """A column more: a version that knows no signatures then fails instead of appending an entry without one."""
    if not any(column[1] == "signature" for column in connection.execute("PRAGMA table_info(entries)")):
        connection.execute("ALTER TABLE entries ADD COLUMN signature TEXT")


def key_path(ledger: Path) -> Path:
    """Where the private key of a ledger is kept: beside the file itself, not beside a link to it."""
    real = ledger.resolve()
    return real.with_name(f"{real.name}.key")


def key_in(entry: Entry) -> str | None:
    """The key that an entry announces: the first one, or one that was added later."""
    names_one = entry.kind in ("open", "key") and isinstance(entry.details, dict)
    found = entry.details.get("key") if names_one else None
    return found if isinstance(found, str) else None


def is_authentic(entry: Entry, public: str | None) -> bool:
    if public is None:
        return True
    return isinstance(entry.signature, str) and is_signed(public, "ledger entry", entry.head, entry.signature)


def against_head(entries: Sequence[Entry], head: str, public: str | None) -> list[str]:
    """What a head that was kept elsewhere contradicts."""
    number, _, rest = head.strip().partition(":")
    chain, _, signature = rest.partition(":")
    if not number.isascii() or not number.isdigit() or not 0 < len(number) < 19 or len(chain) != 64:
        raise LedgerError("a head is what `discreet ledger head` prints: a number, a hash and a signature")
    if signature and not is_signed(public or "", "ledger entry", f"{int(number)}:{chain}", signature):
        return ["the head that was kept elsewhere is not of this ledger: another key has signed it"]
    if int(number) > len(entries):
        return [
            f"its end was cut off, or it is an old copy: it has {len(entries)} entries, and the head that was kept "
            f"elsewhere is of entry {int(number)}"
        ]
    if entries[int(number) - 1].chain != chain:
        return [f"its entries up to {int(number)} are not those of the head that was kept elsewhere"]
    return []


def insert(
    connection: sqlite3.Connection, kind: Kind, details: Mapping[str, Any], key: SigningKey | None
) -> tuple[int, str]:
    """Append an entry; its number and hash."""
    last = connection.execute("SELECT number, chain FROM entries ORDER BY number DESC LIMIT 1").fetchone()
    number, previous = (last[0] + 1, last[1]) if last else (1, "")
    # Through JSON and back: the hash is of what will be read again.
    text = json.dumps(details)
    refuse_private(text)
    details = json.loads(text)
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    chain = Entry(number, time, kind, details, "").digest(previous)
    values = [number, time, kind, text, chain]
    if key is None:
        connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", values)
    else:
        values.append(key.sign("ledger entry", Entry(number, time, kind, details, chain).head))
        connection.execute(f"INSERT INTO entries ({_COLUMNS}, signature) VALUES (?, ?, ?, ?, ?, ?)", values)
    return number, chain
