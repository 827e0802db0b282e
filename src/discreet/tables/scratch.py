"""Encoded rows on disk, in a file without a name: nobody else can open it, and it is gone when the process is, however
the process ends."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import EngineError
from .blocks import Block, Layout


class Place(NamedTuple):
    """Where a block stands in the file."""

    offset: int
    rows: int


class Scratch:
    """Blocks of rows, written once and read by several threads."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (lives as long as the table)
        except OSError as error:
            raise _failure(error) from None
        self._end = 0
        self._lock = threading.Lock()

    def append(self, block: Block) -> Place:
        data = memoryview(self.layout.pack(block))
        place = Place(self._end, block.rows)
        try:
            with self._lock:
                self._file.seek(place.offset)
                while data:
                    data = data[self._file.write(data) :]
        except OSError as error:
            raise _failure(error) from None
        self._end += block.rows * self.layout.row_bytes
        return place

    def read(self, place: Place, names: Iterable[str] | None = None) -> Block:
        """A block, or only these of its columns (None: everything)."""
        parts: dict[str, Any] = {}
        for name, at, size in self.layout.spans(place.rows, names):
            parts[name] = self._bytes(place.offset + at, size)
        return self.layout.unpack(parts, place.rows)

    def __del__(self) -> None:  # the file goes with the last table that reads it
        if hasattr(self, "_file"):
            self._file.close()

    def _bytes(self, offset: int, size: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                data = os.pread(self._file.fileno(), size, offset)
            else:
                with self._lock:
                    self._file.seek(offset)
                    data = self._file.read(size) or b""
        except OSError as error:
            raise _failure(error) from None
        if len(data) != size:
            raise EngineError("the temporary file of encoded rows cannot be read back; nothing was spent by this step")
        return data


class Sorter:
    """Rows sent to one of several lists of blocks. They wait in memory until a block is worth writing."""

    def __init__(self, scratch: Scratch, targets: int, waiting_bytes: int) -> None:
        self.places: list[list[Place]] = [[] for _ in range(targets)]
        self._scratch, self._most = scratch, waiting_bytes
        self._waiting: list[list[Block]] = [[] for _ in range(targets)]
        self._bytes = 0

    def add(self, parts: Mapping[int, Block]) -> None:
        for target, block in parts.items():
            if block.rows:
                self._waiting[target].append(block)
                self._bytes += block.rows * self._scratch.layout.row_bytes
        if self._bytes > self._most:
            self.flush()

    def flush(self) -> None:
        for target, blocks in enumerate(self._waiting):
            if blocks:
                self.places[target].append(self._scratch.append(Block.joined(blocks)))
                blocks.clear()
        self._bytes = 0


def _failure(error: OSError) -> EngineError:
    where = tempfile.gettempdir()
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return EngineError(
            f"the disk under {where} is full: encoded rows are kept there for as long as they are in use, about a byte "
            "for each row and column. Set TMPDIR to a folder with more room. Nothing was spent by this step"
        )
    return EngineError(
        f"cannot keep encoded rows under {where}: {error.strerror}; set TMPDIR to a private folder with room. "
        "Nothing was spent by this step"
    )
