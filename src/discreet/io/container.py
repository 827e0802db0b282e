"""The zip container: entries are stored, not compressed, and every byte of it is determined by its contents.

Storing has three merits: the bytes do not depend on the compressor's version, a small file cannot unfold into a large
one, and sizes are known before reading. The reader accepts this one layout and nothing else, so whatever differs —
another compression, encryption, extra fields, gaps, a second entry of the same name — is an error. Any zip tool can
open what is written here.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase

from ..errors import FileFormatError, ForeignFileError, InputError
from .atomic import Chunk
from .limits import Limits
from .reading import read_exactly

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOOKED_AT = 4096  # bytes by which a table of rows is told from a file that is cut short
_END = struct.Struct("<4s4H2LH")
_MADE_BY_UNIX, _NEEDED, _STORED, _MIDNIGHT, _FIRST_OF_1980 = 0x0314, 20, 0, 0, 33
_ORDINARY_FILE = 0o100644 << 16
_LARGEST = 0xFFFFFFFF  # beyond it the zip64 extension would be needed
_MOST_ENTRIES = 0xFFFF
_ENCRYPTED = 0x1
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*)(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?", re.ASCII)
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Entry:
    """One file of the container, and where its bytes are."""

    name: str
    size: int
    crc: int
    offset: int

    @property
    def start(self) -> int:
        return self.offset - _LOCAL.size - len(self.name)

    def local_header(self) -> bytes:
        fields = (_NEEDED, 0, _STORED, _MIDNIGHT, _FIRST_OF_1980, self.crc, self.size, self.size, len(self.name), 0)
        return _LOCAL.pack(b"PK\x03\x04", *fields) + self.name.encode("ascii")

    def central_header(self) -> bytes:
        fields = (_MADE_BY_UNIX, _NEEDED, 0, _STORED, _MIDNIGHT, _FIRST_OF_1980, self.crc, self.size, self.size)
        rest = (len(self.name), 0, 0, 0, 0, _ORDINARY_FILE, self.start)
        return _CENTRAL.pack(b"PK\x01\x02", *fields, *rest) + self.name.encode("ascii")


def is_entry_name(name: str) -> bool:
    """Plain ASCII, at most one folder, no dots in front: nothing that could lead out of a directory."""
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def container_chunks(contents: Sequence[tuple[str, Chunk]]) -> Iterator[Chunk]:
    """The container's bytes, piece by piece."""
    entries: list[Entry] = []
    position = 0
    for name, data in contents:
        size = len(data)
        entry = Entry(name, size, zlib.crc32(data), position + _LOCAL.size + len(name))
        position = entry.offset + size
        if position > _LARGEST:
            raise InputError(f"the file would exceed {_LARGEST:,} bytes, the most that this format can hold")
        entries.append(entry)
        if len(entries) > _MOST_ENTRIES:
            raise InputError(f"the file would have more than {_MOST_ENTRIES:,} entries, the most that it can hold")
        yield entry.local_header()
        yield data
    directory = b"".join(entry.central_header() for entry in entries)
    yield directory
    count = len(entries)
    yield _END.pack(b"PK\x05\x06", 0, 0, count, count, len(directory), position, 0)


def read_directory(stream: BufferedIOBase, size: int, limits: Limits) -> tuple[Entry, ...]:
    """The entries of a container, after checking that its layout is exactly the one written above."""
    start, directory_bytes, count = _read_end(stream, size, limits)
    stream.seek(start)
    directory = read_exactly(stream, directory_bytes)
    entries: list[Entry] = []
    names: set[str] = set()
    position = cursor = 0
    for _ in range(count):
        entry = _parse_central(directory, cursor)
        if entry.name in names:
            raise FileFormatError(f"it holds the entry {entry.name!r} twice")
        if entry.start != position:
            raise FileFormatError(f"the entry {entry.name!r} is not where the directory says")
        names.add(entry.name)
        entries.append(entry)
        position = entry.offset + entry.size
        cursor += _CENTRAL.size + len(entry.name)
    if cursor != directory_bytes or position != start:
        raise FileFormatError("its directory does not add up to its size")
    for entry in entries:
        stream.seek(entry.start)
        if stream.read(_LOCAL.size + len(entry.name)) != entry.local_header():
            raise FileFormatError(f"the entry {entry.name!r} contradicts the directory")
    return tuple(entries)


def _read_end(stream: BufferedIOBase, size: int, limits: Limits) -> tuple[int, int, int]:
    if size == 0:
        raise ForeignFileError("it is empty")
    start = stream.read(_LOOKED_AT)
    if not start.startswith(b"PK\x03\x04") or size < _END.size + _CENTRAL.size + _LOCAL.size:
        what = "a table of rows" if start.startswith(b"PAR1") else "text, such as a table of rows"
        is_rows = start.startswith(b"PAR1") or (b"\n" in start and b"\x00" not in start and start[:1].isascii())
        said = f"this is {what}, not a release" if is_rows else "not a zip archive, or cut short"
        raise ForeignFileError(f"it is not a discreet file ({said})")
    stream.seek(size - _END.size)
    mark, disk, first_disk, here, count, directory_bytes, start, comment = _END.unpack(read_exactly(stream, _END.size))
    if mark != b"PK\x05\x06" or disk or first_disk or comment:
        raise FileFormatError("its end is missing or altered (truncated, or not written by discreet)")
    limits.require("entries", count, "its number of entries,")
    if here != count or start + directory_bytes + _END.size != size:
        raise FileFormatError("its directory does not add up to its size")
    if directory_bytes > count * (_CENTRAL.size + _LONGEST_NAME):
        raise FileFormatError(f"its directory has {directory_bytes:,} bytes for {count} entries")
    return start, directory_bytes, count


def _parse_central(directory: bytes, cursor: int) -> Entry:
    if cursor + _CENTRAL.size > len(directory):
        raise FileFormatError("its directory ends too soon")
    fields = _CENTRAL.unpack_from(directory, cursor)
    flags, method, crc, stored_size, real_size, name_length, start = (fields[i] for i in (3, 4, 7, 8, 9, 10, 16))
    raw = directory[cursor + _CENTRAL.size : cursor + _CENTRAL.size + name_length]
    name = raw.decode("ascii", errors="replace")
    if not is_entry_name(name):
        raise FileFormatError(f"it holds an entry with the name {name[:60]!r}, which is not allowed")
    if flags & _ENCRYPTED:
        raise FileFormatError(f"the entry {name!r} is encrypted")
    if method != _STORED or stored_size != real_size:
        raise FileFormatError(
            f"the entry {name!r} is compressed ({stored_size:,} bytes for {real_size:,}); "
            "discreet stores its entries uncompressed"
        )
    entry = Entry(name, real_size, crc, start + _LOCAL.size + name_length)
    if directory[cursor : cursor + _CENTRAL.size + name_length] != entry.central_header():
        raise FileFormatError(f"the entry {name!r} was altered, or not written by discreet")
    return entry
