"""A ledger's file as a log: entries that are only ever appended, each with a hash of all before it, and signed.

One connection to the database, opened again by its name before every look, so that another file in its place is seen;
one transaction at a time, and what it wrote must be found in the file afterwards. What entries mean is not known here
(:mod:`.ledger`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import DamagedLedgerError, LedgerError
from ..signing import SigningKey
from .ledger_access import in_words, patiently
from .ledger_entries import Entry, Kind, add_signatures, connect, insert, is_authentic, key_in, key_path


class EntryLog:
    """The entries of one file (or in memory), as far as they were taken in, and the key that signs them."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._process = os.getpid()  # a connection must not cross a fork
        self.path = path
        self._place = None if path is None else path.absolute()  # wherever the process goes to
        self._closed = False
        self._read = 0  # number of the last entry that was taken in
        self._chain = ""  # its hash
        self._previous = ""  # and that of the one before
        self._own = ""  # the hash of the last entry that was signed here
        self._wrote = 0  # and its number, whether it was committed or not
        self._appended = False  # whether this transaction has written anything
        self._signing: SigningKey | None = None
        self._key_path = None if path is None else key_path(path)
        self._public: str | None = None  # what entries are signed with; a ledger without a key may get one

    @property
    def entries(self) -> list[Entry]:
        with self._lock:
            return self._entries(0)

    @property
    def last(self) -> int:
        """The number of the last entry that was read."""
        return self._read

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()

    # -- the key -----------------------------------------------------------------------------------------------------

    @property
    def public_key(self) -> str | None:
        """Whose signature the entries have; None for a ledger without a key."""
        with self._lock:
            self._catch_up()
            return self._public

    def make_key(self) -> str:
        """Give a ledger that has no key one: from now on its entries are signed. Returns the public key."""
        if self._key_path is None:
            raise LedgerError("a ledger in memory is gone with its process; it needs no key")
        with self._transaction():
            self._catch_up()
            if self._public is None:
                key = SigningKey.made_at(self._key_path)
                add_signatures(self._connection)
                insert(self._connection, "key", {"key": key.public, "version": __version__}, key)
        public = self.public_key
        assert public is not None
        return public

    @property
    def signer(self) -> Callable[[str], str] | None:
        """What signs the digest of a release: key and signature in one line; None for a ledger without a key."""
        with self._lock:
            self._catch_up()
            key = self._key()
        return None if key is None else lambda digest: f"{key.public} {key.sign('release', digest)}"

    @property
    def head(self) -> str:
        """The number of the last entry, the hash of all, and its signature. Keep it elsewhere: :meth:`verify` tells by
        it when the end was cut off, or an old copy put back."""
        with self._lock:
            self._catch_up()
            last = self._entries(self._read - 1)[-1]
            return last.head if last.signature is None else f"{last.head}:{last.signature}"

    # -- taking in ---------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Take in what this or another process has appended since the last look; altered entries stop everything."""
        entries = self._entries(max(self._read - 1, 0))
        if self._read:  # the last one that was seen must still be there, as it was
            found = [(e.number, e.chain, e.digest(self._previous)) for e in entries[:1]]
            if found != [(self._read, self._chain, self._chain)]:
                raise DamagedLedgerError(
                    f"the ledger {self.path} was put back to an earlier state while it was open, altered, or replaced "
                    "by another one; it cannot be used. Bring back the newest copy"
                )
            entries = entries[1:]
        self._public = self._authentic(entries)
        for entry in entries:
            with in_words(self.path):
                self._take_in(entry)

    def _take_in(self, entry: Entry) -> None:
        """Whoever knows what entries mean learns of each one here, in order."""
        self._read, self._previous, self._chain = entry.number, self._chain, entry.chain

    def _authentic(self, entries: Sequence[Entry]) -> str | None:
        """Check that these entries continue what was read; the key that they are signed with. The last signature covers
        all before it, through the hashes."""
        number, chain, public = self._read, self._chain, self._public
        for entry in entries:
            number += 1
            public = public or key_in(entry)
            whole = entry.number == number and entry.chain == entry.digest(chain) and key_in(entry) in (None, public)
            is_last = entry is entries[-1]
            if not whole or (is_last and entry.chain != self._own and not is_authentic(entry, public)):
                raise DamagedLedgerError(
                    f"the ledger {self.path} was altered at entry {entry.number} or before; it cannot be used. "
                    "`discreet ledger verify` says more"
                )
            chain = entry.chain
        return public

    def _key(self) -> SigningKey | None:
        """The private key, when this ledger has one; an entry without a signature would be taken for a forgery."""
        if self._signing is not None and self._signing.public == self._public:
            return self._signing
        if self._key_path is None:
            return None
        place = self._key_path
        if self._public is None:
            if place.exists():
                raise LedgerError(
                    f"the ledger {self.path} names no key, and {place} is one: the ledger was altered, or a key was "
                    f"being made and that was cut short. If it was, `discreet ledger key {self.path}` makes it good"
                )
            return None
        if self._signing is None:
            if not place.exists():
                raise LedgerError(
                    f"the key {place} of the ledger {self.path} is missing, so nothing can be charged; bring it back "
                    "from where you keep a copy, or begin a new ledger"
                )
            self._signing = SigningKey.of(place)
        if self._signing.public != self._public:
            raise LedgerError(f"{place} is not the key of the ledger {self.path}")
        return self._signing

    # -- reading and appending ---------------------------------------------------------------------------------------

    def _entries(self, after: int, limit: int = -1) -> list[Entry]:
        self._afresh()
        every = "SELECT * FROM entries WHERE number > ? ORDER BY number LIMIT ?"  # with signatures, if there are any
        with in_words(self.path):
            rows = patiently(self._connection, self.path, every, (after, limit))
        return [self._entry(*row) for row in rows]

    def _entry(self, number: Any, *rest: Any) -> Entry:
        try:
            return Entry.read(number, *rest)
        except (ValueError, TypeError, RecursionError):
            raise DamagedLedgerError(
                f"the ledger {self.path} cannot be read: entry {str(number)[:20]} was altered; `discreet ledger "
                "verify` says more"
            ) from None

    def _afresh(self) -> None:
        """Open the file again by its name. A database goes by the pages and the file that it has in its hands while a
        count of changes is the same: another ledger that has as many, or another file, would not be seen."""
        if self._place is None or self._closed or self._connection.in_transaction:
            return
        before, self._connection = self._connection, connect(self._place, "rw")
        before.close()

    def _append(self, kind: Kind, details: Mapping[str, Any]) -> int:
        self._wrote, self._own = insert(self._connection, kind, details, self._key())
        self._appended = True
        return self._wrote

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if os.getpid() != self._process:
            raise LedgerError(f"the ledger {self.path or 'in memory'} was opened by another process; open it here")
        with self._lock:
            self._afresh()
            try:
                # Takes the write lock before anything is read.
                patiently(self._connection, self.path, "BEGIN IMMEDIATE")
            except sqlite3.DatabaseError as error:
                raise LedgerError(f"the ledger {self.path} cannot be written: {error}") from None
            self._appended = False
            try:
                yield
                patiently(self._connection, self.path, "COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise LedgerError(f"the ledger {self.path} could not be written, nothing was spent: {error}") from None
            except BaseException:
                self._roll_back()
                raise
            if self._appended:  # its number does not tell: a write that failed had the same
                self._require_written()

    def _require_written(self) -> None:
        """What was written must stand in the file that now has the ledger's name: another file may have been put there,
        or another's bytes over ours, after this one was opened and before the commit. Noise is drawn after this look.
        And it is what was seen last: the next look tells when the file is put back to before it."""
        number = self._wrote
        if [(e.number, e.chain) for e in self._entries(number - 1, limit=1)] != [(number, self._own)]:
            raise DamagedLedgerError(
                f"the ledger {self.path} was replaced by another one while entry {number} was being written; it does "
                "not have that entry, so nothing is drawn. Bring back the newest copy"
            )
        self._catch_up()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):  # what failed is on its way; without a commit nothing stands
                self._connection.execute("ROLLBACK")
