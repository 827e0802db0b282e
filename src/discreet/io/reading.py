"""Opening files that may be anything: every failure becomes one typed error that names the file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from io import BufferedIOBase, BytesIO

from ..errors import FileFormatError
from .atomic import PathLike
from .limits import Limits


def shown(source: PathLike | bytes) -> str:
    """How a source is called in messages."""
    return "the bytes given" if isinstance(source, bytes) else os.fspath(source)


@contextlib.contextmanager
def open_checked(source: PathLike | bytes, limits: Limits, field: str) -> Iterator[tuple[BufferedIOBase, int]]:
    """Open a regular file that is not larger than the limit ``field``; yields the stream and its size.

    Errors raised in the body, by the operating system or by a parser, come out as :class:`FileFormatError` with the
    name of the file in front.
    """
    try:
        if isinstance(source, bytes):
            size = len(source)
        else:
            status = os.stat(source)
            if not stat.S_ISREG(status.st_mode):
                raise FileFormatError("it is not a regular file")
            size = status.st_size
        limits.require(field, size, "its size in bytes,")
        with BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as stream:
            yield stream, size
    except FileFormatError as error:
        raise type(error)(f"cannot read {shown(source)}: {error}") from error.__cause__
    except FileNotFoundError as error:
        raise FileFormatError(f"there is no file {shown(source)}") from error
    except OSError as error:
        raise FileFormatError(f"cannot read {shown(source)}: {error.strerror or error}") from error
    except (MemoryError, RecursionError, ValueError, OverflowError) as error:
        # A parser met something that no check foresaw: still the file's fault, and still one kind of error.
        raise FileFormatError(f"cannot read {shown(source)}: it is damaged ({type(error).__name__})") from error


def read_exactly(stream: BufferedIOBase, count: int) -> bytes:
    """``count`` bytes, or an error that says the file ends too soon."""
    data = stream.read(count)
    if len(data) != count:
        raise FileFormatError("it ends too soon (truncated)")
    return data


def read_text(source: PathLike | bytes, limits: Limits) -> str:
    """A whole text file: UTF-8, with or without a byte-order mark, any line ends, no NUL characters."""
    with open_checked(source, limits, "text_bytes") as (stream, size):
        data = read_exactly(stream, size)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileFormatError(f"it is not UTF-8 text (byte {error.start})") from error
        if "\x00" in text:
            raise FileFormatError("it is not a text file (it holds NUL characters)")
        return text
