"""Broken files, made in many ways: by accident (bits, bytes, lengths) and on purpose (sealed with a valid checksum)."""

import hashlib
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable

from discreet.io.container import container_chunks


def sealed(
    header: bytes, arrays: dict[str, bytes] | None = None, extra: list[tuple[str, bytes]] | None = None
) -> bytes:
    """A container with a valid checksum around any header and any array bytes: what a malicious writer can make."""
    contents = [("header.json", header)]
    contents += [(f"arrays/{name}.bin", data) for name, data in sorted((arrays or {}).items())]
    digest = hashlib.sha256(b"".join(data for _, data in contents)).hexdigest()
    return b"".join(container_chunks([*contents, *(extra or []), ("checksum", f"sha256:{digest}\n".encode())]))


def header_with(arrays: dict[str, dict], **keys) -> bytes:
    return json.dumps({"format": "discreet", "version": 1, **keys, "arrays": arrays}).encode()


def taken_apart(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [n for n in archive.namelist() if n.startswith("arrays/")]
    return archive.read("header.json"), {n[len("arrays/") : -len(".bin")]: archive.read(n) for n in names}


def rezipped(data: bytes, method: int = zipfile.ZIP_DEFLATED, rename: Callable[[str], str] = str) -> bytes:
    old, out = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as new:
        for name in old.namelist():
            new.writestr(rename(name), old.read(name))
    return out.getvalue()


# -- accidents: every one of these must be noticed -------------------------------------------------------------------


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(2, 50)):
        data = flip_bit(data, rng)
    return data


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def behead(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randint(1, len(data)) :]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 64)) + data[at:]


def delete(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 64) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at : at + rng.randint(1, 200)] + data[at:]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    at, patch = (
        rng.randrange(len(data)),
        rng.choice([b"\xff\xff\xff\xff", b"\x00" * 8, rng.randbytes(16), b"PK\x05\x06"]),
    )
    return data[:at] + patch + data[at + len(patch) :]


def lie_in_directory(data: bytes, rng: random.Random) -> bytes:
    """Overwrite one field of a central or local record (sizes, offsets, counts, flags, names)."""
    out = bytearray(data)
    mark = rng.choice([b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"])
    places = [i for i in range(len(data) - 22) if data[i : i + 4] == mark] or [len(data) - 22]
    at = rng.choice(places) + rng.randrange(4, 22)
    out[at : at + 4] = struct.pack("<L", rng.choice([0, 1, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF, rng.getrandbits(32)]))
    return bytes(out[: len(data)])


def compress(data: bytes, rng: random.Random) -> bytes:
    return rezipped(data, rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED]))


def traverse(data: bytes, rng: random.Random) -> bytes:
    prefix = rng.choice(["../", "/", "../../etc/", "C:\\", "arrays/../", "./", "arrays//"])
    return rezipped(data, zipfile.ZIP_STORED, lambda name: prefix + name)


def join_twice(data: bytes, rng: random.Random) -> bytes:
    return data + data


ACCIDENTS = [flip_bit, flip_bits, truncate, behead, insert, delete, repeat, overwrite]
ACCIDENTS += [lie_in_directory, compress, traverse, join_twice]


# -- malice: sealed again with a valid checksum, so the checks behind it are reached ---------------------------------

_ODD_VALUES = [
    "NaN",
    "-Infinity",
    "1e999",
    "-1",
    "0",
    "1e400",
    "9" * 50,
    "null",
    "true",
    '"x"',
    "[]",
    "{}",
    "[[[[1]]]]",
]
_ODD_VALUES += [
    "4611686018427387904",
    "0.5",
    '"\\ud800"',
    '"\\u0000"',
    "[" * 40 + "]" * 40,
    '{"a":1,"a":2}',
    '"' + "x" * 500 + '"',
]


def swap_header_value(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    document = json.loads(header)
    spots: list[tuple] = []

    def walk(node) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            spots.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(document)
    for _ in range(rng.randint(1, 3)):
        node, key = rng.choice(spots)
        if rng.random() < 0.2 and isinstance(node, dict):
            node.pop(key, None)
        else:
            node[key] = "@@ODD@@"
    text = json.dumps(document)
    while '"@@ODD@@"' in text:
        text = text.replace('"@@ODD@@"', rng.choice(_ODD_VALUES), 1)
    return sealed(text.encode(), arrays)


def flip_header_bits(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    return sealed(flip_bits(header, rng), arrays)


def duplicate_key(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    key = rng.choice(["format", "version", "arrays", "kind", "domain", "model"])
    return sealed(header.replace(b"{", b'{"%s": 1, "%s": 2, ' % (key.encode(), key.encode()), 1), arrays)


def spoil_array(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    name = rng.choice(sorted(arrays))
    spoilt = bytearray(arrays[name])
    at = 8 * rng.randrange(max(1, len(spoilt) // 8))
    number = rng.choice([float("nan"), float("inf"), -float("inf"), -1.0, 1e3, 2.0])
    spoilt[at : at + 8] = struct.pack("<d", number)
    return sealed(header, {**arrays, name: bytes(spoilt)})


def resize_array(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    name = rng.choice(sorted(arrays))
    return sealed(header, {**arrays, name: arrays[name] + rng.randbytes(rng.choice([1, 8, 64]))})


def lose_array(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    arrays.pop(rng.choice(sorted(arrays)))
    return sealed(header, arrays)


def add_entry(data: bytes, rng: random.Random) -> bytes:
    header, arrays = taken_apart(data)
    return sealed(
        header, arrays, [(rng.choice(["notes.txt", "arrays/more.bin", "header.json", "setup.py"]), b"12345678")]
    )


MALICE = [swap_header_value, flip_header_bits, duplicate_key, spoil_array, resize_array, lose_array, add_entry]
