"""A name for a file that is yet to be written: one process at a time may mean to write it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import FileFormatError
from .atomic import PathLike

try:
    import fcntl
except ImportError:  # where there are no such locks, a claim that a crash left behind is to be removed by hand
    fcntl = None  # type: ignore[assignment]


@contextmanager
def claimed(path: PathLike) -> Iterator[None]:
    """Keep ``path`` for this process until the end of the block; refused while another one has it.

    The claim is a locked file beside it, which goes with its process: whoever is killed leaves nothing in the way. That
    it can be made shows that the folder takes new files, too. What is no regular file (a pipe) is nobody's own.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        yield
        return
    folder, name = os.path.split(target)
    claim = os.path.join(folder, f".{name[:100]}.claim")
    descriptor = _locked(claim, path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(claim)  # while it is locked: who comes next makes another one
        os.close(descriptor)


def _locked(claim: str, path: PathLike) -> int:
    while True:
        try:
            descriptor = os.open(claim, os.O_RDWR | os.O_CREAT | (os.O_EXCL if fcntl is None else 0), 0o600)
        except FileExistsError:
            raise _taken(path) from None
        except OSError as error:
            raise FileFormatError(f"nothing can be written to {os.fspath(path)}: {error.strerror}") from None
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(claim)):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise _taken(path) from None
        except OSError:  # a file system without locks
            return descriptor
        os.close(descriptor)  # its owner has just removed it


def _taken(path: PathLike) -> FileFormatError:
    return FileFormatError(f"another process is about to write {os.fspath(path)}; choose another name, or wait for it")
