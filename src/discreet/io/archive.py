"""The native file: a JSON header and raw arrays in a zip, with a checksum; never pickle.

Layout, in this order::

    header.json        format, version, whatever the caller gives, and for each array its dtype and shape
    arrays/NAME.bin    raw little-endian numbers in C order, sorted by name
    checksum           sha256:… of the bytes of the entries above, one after another
    signature          if there is one: a public key, and its signature of that checksum

so that ``unzip -p FILE header.json 'arrays/*' | sha256sum`` repeats the checksum. The same header and arrays give the
same bytes on every machine. The checksum finds damage; it does not prove who wrote the file. A signature proves that
the holder of its key did (:mod:`discreet.signing`).
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FileFormatError, ForeignFileError, InputError
from .atomic import Chunk, PathLike, write_atomically
from .container import Entry, container_chunks, is_entry_name, read_directory
from .limits import DEFAULT_LIMITS, MEBIBYTE, Limits
from .reading import open_checked, read_exactly
from .strictjson import dump_json, parse_json

FORMAT = "discreet"
VERSION = 1
MEASUREMENTS = "measurements"  # the kind of file that holds no model

AnyArray = npt.NDArray[Any]
Sign = Callable[[str], str]
"""From the digest of a file to the line of its signature."""

_KINDS = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
_DTYPES: dict[str, np.dtype[Any]] = {kind: np.dtype(kind).newbyteorder("<") for kind in _KINDS}
_PREFIX, _SUFFIX = "arrays/", ".bin"
_SIGNATURE, _LONGEST_SIGNATURE = "signature", 1000


def write_archive(
    path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, AnyArray], sign: Sign | None = None
) -> None:
    """Write a native file, completely or not at all; ``sign`` makes the line of its signature from its digest.

    ``header`` is JSON-able; ``format``, ``version`` and ``arrays`` are filled in. Arrays may hold −inf (a log of
    zero), never NaN or +inf.
    """
    write_atomically(path, archive_chunks(header, arrays, sign))


def archive_bytes(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> bytes:
    """The same bytes in memory."""
    return b"".join(archive_chunks(header, arrays))


def archive_chunks(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], sign: Sign | None = None
) -> Iterator[Chunk]:
    """The same bytes, piece by piece; everything is checked before the first piece comes out."""
    ready = {name: _prepare(name, np.asarray(arrays[name])) for name in sorted(arrays)}
    described = {name: {"dtype": array.dtype.name, "shape": list(array.shape)} for name, array in ready.items()}
    given = {key: value for key, value in header.items() if key not in ("format", "version", "arrays")}
    contents: list[tuple[str, Chunk]] = [
        ("header.json", dump_json({"format": FORMAT, "version": VERSION, **given, "arrays": described}))
    ]
    contents += [(_PREFIX + name + _SUFFIX, _raw(array)) for name, array in ready.items()]
    digest = hashlib.sha256()
    for _, data in contents:
        digest.update(data)
    contents.append(("checksum", _checksum_text(digest.hexdigest())))
    if sign is not None:
        contents.append((_SIGNATURE, f"{sign(digest.hexdigest())}\n".encode("ascii")))
    return container_chunks(contents)


def read_archive(
    source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Read a native file: ``(header, arrays)``.

    The file may come from anywhere: sizes are checked before anything is allocated, and all of it is verified in
    small pieces before the first array is built. Whatever is wrong is a :class:`FileFormatError`.
    """
    with open_checked(source, limits, "file_bytes") as (stream, size):
        entries = {entry.name: entry for entry in read_directory(stream, size, limits)}
        header = _read_header(stream, entries, limits)
        described = _described_arrays(header, entries, limits)
        _verify(stream, entries, described)
        return header, {name: _load(stream, entries[_entry_name(name)], *described[name]) for name in described}


def read_kind(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> str:
    """What a native file says that it holds. Its arrays are not looked at: :func:`read_archive` verifies them."""
    with open_checked(source, limits, "file_bytes") as (stream, size):
        entries = {entry.name: entry for entry in read_directory(stream, size, limits)}
        return str(_read_header(stream, entries, limits).get("kind"))


def read_signature(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[str, str | None]:
    """The digest of a native file and the line of its signature, None when it has none. Checks neither: it is for files
    that :func:`read_archive` has read."""
    with open_checked(source, limits, "file_bytes") as (stream, size):
        entries = {entry.name: entry for entry in read_directory(stream, size, limits)}
        texts = {}
        for name in ("checksum", _SIGNATURE):
            if name in entries:
                stream.seek(entries[name].offset)
                texts[name] = read_exactly(stream, min(entries[name].size, _LONGEST_SIGNATURE)).decode(
                    "ascii", "replace"
                )
        return texts.get("checksum", "").strip().removeprefix("sha256:"), texts.get(_SIGNATURE)


def _entry_name(name: str) -> str:
    return _PREFIX + name + _SUFFIX


def _checksum_text(hexdigest: str) -> bytes:
    return f"sha256:{hexdigest}\n".encode("ascii")


def _prepare(name: str, array: AnyArray) -> AnyArray:
    if not isinstance(name, str) or not is_entry_name(_entry_name(name)):
        raise InputError(f"an array needs a name of ASCII letters, digits, '_', '-' and '.', got {name!r}")
    if array.dtype.name not in _DTYPES:
        raise InputError(f"array {name!r} has dtype {array.dtype}; files hold {', '.join(_KINDS)}")
    if array.ndim > DEFAULT_LIMITS.array_dimensions:
        raise InputError(f"array {name!r} has {array.ndim} dimensions; at most {DEFAULT_LIMITS.array_dimensions} fit")
    array = np.asarray(array, dtype=_DTYPES[array.dtype.name], order="C")
    if array.dtype.kind == "f" and not np.all(array < np.inf):
        raise InputError(f"array {name!r} holds NaN or +inf, which no model has; nothing was written")
    return array


def _raw(array: AnyArray) -> Chunk:
    return array.reshape(-1).view(np.uint8).data if array.size else b""


def _read_header(stream: BufferedIOBase, entries: Mapping[str, Entry], limits: Limits) -> dict[str, Any]:
    for required in ("header.json", "checksum"):
        if required not in entries:
            raise ForeignFileError(f"it is a zip archive, but not a discreet file: it has no entry {required!r}")
    entry = entries["header.json"]
    limits.require("header_bytes", entry.size, "the size of its header in bytes,")
    stream.seek(entry.offset)
    header = parse_json(read_exactly(stream, entry.size), limits)
    if header.get("format") != FORMAT:
        raise ForeignFileError(f"its header says format {str(header.get('format'))[:40]!r} instead of {FORMAT!r}")
    version = header.get("version")
    if version != VERSION or isinstance(version, bool):
        raise FileFormatError(
            f"its format has version {str(version)[:40]}, and this release of discreet reads version {VERSION}; "
            "a newer release may read it"
        )
    return header


def _described_arrays(
    header: Mapping[str, Any], entries: Mapping[str, Entry], limits: Limits
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """dtype and shape of each array, after checking them against the entries and the limits."""
    table = header.get("arrays")
    if not isinstance(table, dict):
        raise FileFormatError("its header does not describe its arrays")
    expected = ["header.json", *(_entry_name(name) for name in sorted(table)), "checksum"]
    if _SIGNATURE in entries:
        expected.append(_SIGNATURE)
        if entries[_SIGNATURE].size > _LONGEST_SIGNATURE:
            raise FileFormatError(f"its signature has {entries[_SIGNATURE].size:,} bytes")
    if list(entries) != expected:
        odd = sorted(set(entries) ^ set(expected)) or ["their order"]
        raise FileFormatError(f"its entries are not those that the header lists: {', '.join(odd[:3])[:200]}")
    described = {}
    for name, entry in table.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape"}:
            raise FileFormatError(f"array {name!r} is not described by dtype and shape")
        dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
        if dtype is None:
            raise FileFormatError(f"array {name!r} has the dtype {str(entry['dtype'])[:40]!r}, which is not allowed")
        shape = _checked_shape(name, entry["shape"], limits)
        if math.prod(shape) * dtype.itemsize != entries[_entry_name(name)].size:
            raise FileFormatError(f"array {name!r} does not have the size that its shape {list(shape)} asks for")
        described[name] = (dtype, shape)
    return described


def _checked_shape(name: str, shape: Any, limits: Limits) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(n) is int for n in shape):
        raise FileFormatError(f"array {name!r}: its shape is not a list of whole numbers")
    limits.require("array_dimensions", len(shape), f"array {name[:60]!r}: the number of its dimensions,")
    if any(n < 0 for n in shape):
        raise FileFormatError(f"array {name[:60]!r} has the shape {str(shape)[:80]}, with a negative length")
    # The largest length counts too: an array with a zero among its lengths has no elements, however long the others.
    limits.require("array_elements", max(*shape, math.prod(shape), 0), f"array {name[:60]!r}: the number of elements,")
    return tuple(shape)


def _verify(
    stream: BufferedIOBase, entries: Mapping[str, Entry], described: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
) -> None:
    """One pass over the whole file in small pieces: checksums, and the values of the arrays."""
    dtypes = {_entry_name(name): dtype for name, (dtype, _) in described.items()}
    digest = hashlib.sha256()
    unusable: str | None = None
    for entry in entries.values():
        crc = 0
        stream.seek(entry.offset)
        for start in range(0, entry.size, MEBIBYTE):
            chunk = read_exactly(stream, min(MEBIBYTE, entry.size - start))
            crc = zlib.crc32(chunk, crc)
            if entry.name == "checksum":
                if chunk != _checksum_text(digest.hexdigest()):
                    raise FileFormatError("its checksum does not match: it was altered after it was written")
            elif entry.name != _SIGNATURE:
                digest.update(chunk)
                unusable = unusable or _unusable_values(entry.name, chunk, dtypes.get(entry.name))
        if crc != entry.crc:
            raise FileFormatError(f"the entry {entry.name!r} is damaged (its CRC does not match)")
    if entries["checksum"].size == 0:
        raise FileFormatError("it has no checksum")
    if unusable:
        raise FileFormatError(unusable)


def _unusable_values(name: str, chunk: bytes, dtype: np.dtype[Any] | None) -> str | None:
    if dtype is None:
        return None
    values = np.frombuffer(chunk, dtype=np.uint8 if dtype.kind == "b" else dtype)
    if dtype.kind == "f" and not np.all(values < np.inf):
        return f"the entry {name!r} holds NaN or +inf, which no model has"
    if dtype.kind == "b" and np.any(values > 1):
        return f"the entry {name!r} holds bytes that are neither true nor false"
    return None


def _load(stream: BufferedIOBase, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    array = np.empty(shape, dtype=dtype)
    stream.seek(entry.offset)
    if array.size:
        view = array.reshape(-1).view(np.uint8).data
        if stream.readinto(view) != len(view):
            raise FileFormatError("it ends too soon (truncated)")
    return array.astype(dtype.newbyteorder("="), copy=False)
