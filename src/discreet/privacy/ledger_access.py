"""Reading and writing the database of a ledger: patient while another process has it, in words when it is damaged."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import DamagedLedgerError, DiscreetError, LedgerError
from ..progress import remark

WAIT_SECONDS = 120.0
SLICE_SECONDS = 0.1
"""How long the database itself waits: within it Ctrl-C is not heard."""
_SILENT_SECONDS = 1.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_DAMAGE = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_NOTADB,  # another file altogether
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    *_BUSY,
)


def patiently(connection: sqlite3.Connection, path: Path | None, statement: str, values: Sequence[Any] = ()) -> Any:
    """What the statement finds. While another process has the file it is tried again, for up to two minutes; Ctrl-C is
    heard, and after a second whoever listens is told what is waited for."""
    begun, told = time.monotonic(), False
    while True:
        try:
            return connection.execute(statement, values).fetchall()
        except UnicodeDecodeError:  # the database quotes what it stumbled over
            raise DamagedLedgerError(f"cannot read the ledger {path}: its description of itself is damaged") from None
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY:
                raise
            waited = time.monotonic() - begun
            if waited > WAIT_SECONDS:
                raise LedgerError(
                    f"the ledger {path} has been in use by another process for {WAIT_SECONDS:.0f} seconds, and cannot "
                    "be written; try again when that has ended"
                ) from None
            if waited > _SILENT_SECONDS and not told:
                remark(f"Waiting for the ledger {path}, which another process is using. Ctrl-C stops waiting.")
                told = True
            time.sleep(SLICE_SECONDS / 2)  # what waits in the database sleeps between its tries anyway


@contextmanager
def in_words(path: Path | None) -> Iterator[None]:
    """Whatever is wrong with the content of a ledger is one kind of error, which says so."""
    try:
        yield
    except sqlite3.Error as error:
        kind = LedgerError if _code(error) in _NO_DAMAGE else DamagedLedgerError
        raise kind(f"cannot read the ledger {path}: {error}") from None
    except LedgerError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        reason = f": {error}" if isinstance(error, DiscreetError) else ""
        raise DamagedLedgerError(
            f"the ledger {path} holds an entry that cannot be read{reason}; run `discreet ledger verify`, and bring "
            "back the newest copy that is whole"
        ) from None


def _code(error: sqlite3.Error) -> int:
    """The kind of failure, as the database names it; -1 for what Python itself found."""
    return int(getattr(error, "sqlite_errorcode", -1)) & 0xFF if hasattr(error, "sqlite_errorcode") else -1
