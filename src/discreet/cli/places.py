"""Places of files: where a result can be put, and where none may be."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..errors import FileFormatError
from ..io.atomic import refuse_to_lose


def writable(path: Path, *, force: bool) -> Path:
    """A place where a new file can be put, checked before any work is done."""
    if path.is_dir():
        raise FileFormatError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise FileFormatError(f"{path} exists already; choose another name, or --force to overwrite it")
    if path.is_file() and not os.access(path, os.W_OK):
        raise FileFormatError(f"{path} is protected from writing; choose another name")
    refuse_to_lose(path)
    if not path.parent.is_dir():
        raise FileFormatError(f"the folder {path.parent} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise FileFormatError(f"the folder {path.parent} cannot be written to; choose another place")
    return path


def ledger_files(ledger: Path) -> list[Path]:
    """The ledger, its key, and what the database keeps beside it while it writes."""
    from ..privacy.ledger_entries import key_path

    real = ledger.resolve()
    return [ledger, key_path(ledger), *(real.with_name(real.name + end) for end in ("-journal", "-wal", "-shm"))]


def same_file(one: Path, other: Path) -> bool:
    """Whether two names mean one file: by links of either kind, too."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return one.resolve() == other.resolve()
