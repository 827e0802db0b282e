"""Writing a file so that it is there completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable

from ..errors import FileFormatError

Chunk = bytes | memoryview
PathLike = str | os.PathLike[str]


def write_atomically(path: PathLike, chunks: Iterable[Chunk]) -> None:
    """Write ``chunks`` to ``path``: into a temporary file beside it, flushed to disk, then renamed over it.

    Whatever goes wrong on the way (disk full, an exception while making the chunks, a kill), the old file is intact
    and the new one is not half there. A symbolic link stays a link: the file it points to is replaced. What is not a
    regular file (``/dev/stdout``, a pipe) is written to directly. A file of that name is replaced, unless it is one
    that nobody means to lose (:func:`refuse_to_lose`); whether others may be, the command line asks before any work.
    """
    target = os.path.realpath(path)
    refuse_to_lose(target)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
        return
    directory, name = os.path.split(target)
    temporary = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(6)}.tmp")
    # os.open and not tempfile: the new file gets the permissions that an ordinary one would get here.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(OSError):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _flush_directory(directory)


def refuse_to_lose(path: PathLike) -> None:
    """An error where a file of that name is a ledger or a private key."""
    begins = b""
    if os.path.isfile(path):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            begins = file.read(40)
    kept = "a ledger (a database)" if begins.startswith(b"SQLite format 3\0") else ""
    kept = "a private key" if b"PRIVATE KEY" in begins else kept
    if kept:
        raise FileFormatError(
            f"{os.fspath(path)} is {kept}, which is not overwritten, not even by force; choose another name"
        )


def _flush_directory(directory: str) -> None:
    """Make the rename itself durable; some systems cannot open a directory, and there it is left to them."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
