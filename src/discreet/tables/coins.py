"""Secret coins for records: the same record flips the same coin wherever and however often it is visited.

Blocks, samples and clipped contributions must not depend on a row's *position*: under add-remove, deleting one row
would shift all the others. So a record's coin is a keyed hash (SipHash-2-4 [AB12], vectorised) of what the record is
and of how many equal ones came before it. Equal records are interchangeable, so the set of coins of D differs from
that of a neighbour D′ by exactly the coin of the changed record, and the coins are those of independent fair draws
as far as SipHash is a pseudo-random function. The key is drawn from the operating system for one curator and never
leaves it.

[AB12] Aumasson, Bernstein. SipHash: a fast short-input PRF. INDOCRYPT 2012.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
_IN_CACHE = 1 << 12  # rows that are hashed together


def _rotate(x: U64, bits: int) -> U64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def keyed_hash(key: bytes, words: Sequence[U64]) -> U64:
    """SipHash-2-4 of one message a row; message i is ``words[0][i], words[1][i], …`` as 64-bit little-endian words."""
    rows = len(words[0])
    out = np.empty(rows, dtype=np.uint64)
    for lo in range(0, rows, _IN_CACHE):
        part = slice(lo, lo + _IN_CACHE)
        out[part] = _siphash(key, [w[part] for w in words])
    return out


def _siphash(key: bytes, words: Sequence[U64]) -> U64:
    k0, k1 = (np.uint64(k) for k in struct.unpack("<QQ", key))
    shape = words[0].shape
    v0, v1, v2, v3 = (
        np.full(shape, k ^ np.uint64(c), dtype=np.uint64)
        for k, c in (
            (k0, 0x736F6D6570736575),
            (k1, 0x646F72616E646F6D),
            (k0, 0x6C7967656E657261),
            (k1, 0x7465646279746573),
        )
    )

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0, v2 = v0 + v1, v2 + v3
            v1, v3 = _rotate(v1, 13) ^ v0, _rotate(v3, 16) ^ v2
            v0, v2 = _rotate(v0, 32) + v3, v2 + v1
            v1, v3 = _rotate(v1, 17) ^ v2, _rotate(v3, 21) ^ v0
            v2 = _rotate(v2, 32)

    # The last block holds the message length in bytes modulo 256 in its top byte; ours are whole words.
    last = np.full(shape, np.uint64((8 * len(words)) % 256 << 56), dtype=np.uint64)
    for m in (*words, last):
        v3 = v3 ^ m
        rounds(2)
        v0 = v0 ^ m
    v2 = v2 ^ np.uint64(0xFF)
    rounds(4)
    return np.asarray(v0 ^ v1 ^ v2 ^ v3, dtype=np.uint64)


def occurrence(keys: U64, group: NDArray[np.int64] | None = None) -> U64:
    """For each entry, how many equal entries (of the same group) precede it: 0, 1, 2, …"""
    order = np.argsort(keys, kind="stable") if group is None else np.lexsort((keys, group))
    sorted_keys = keys[order]
    new = np.ones(len(keys), dtype=bool)
    if group is None:
        new[1:] = sorted_keys[1:] != sorted_keys[:-1]
    else:
        new[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (group[order][1:] != group[order][:-1])
    position = np.arange(len(keys))
    start = np.maximum.accumulate(np.where(new, position, 0))
    out = np.empty(len(keys), dtype=np.uint64)
    out[order] = (position - start).astype(np.uint64)
    return out


class Seen:
    """Occurrence numbers of entries that come batch by batch: how many equal ones came before, in all batches."""

    def __init__(self) -> None:
        self._keys: U64 = np.empty(0, dtype=np.uint64)
        self._counts: U64 = np.empty(0, dtype=np.uint64)

    def number(self, keys: U64) -> U64:
        order = np.argsort(keys, kind="stable")
        in_order = keys[order]
        start = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]][: len(keys)])
        distinct, counts = in_order[start], np.diff(np.r_[start, len(keys)])
        place = np.searchsorted(self._keys, distinct)
        known = place < len(self._keys)
        known[known] = self._keys[place[known]] == distinct[known]
        before = np.zeros(len(distinct), dtype=np.uint64)
        before[known] = self._counts[place[known]]
        self._counts[place[known]] += counts[known].astype(np.uint64)
        self._keys = np.insert(self._keys, place[~known], distinct[~known])
        self._counts = np.insert(self._counts, place[~known], counts[~known].astype(np.uint64))
        out = np.empty(len(keys), dtype=np.uint64)
        out[order] = np.arange(len(keys), dtype=np.uint64) + np.repeat(before - start.astype(np.uint64), counts)
        return out


def words_of(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> list[U64]:
    """The codes of each row as few 64-bit words: numbers in a mixed radix, as many columns to a word as fit.

    One-to-one for given sizes, which are public: rows have equal words if and only if they are equal.
    """
    words: list[U64] = []
    cells = 1
    for column, size in zip(codes, sizes, strict=True):
        cells *= size
        if not words or cells > 2**64:
            words.append(column.astype(np.uint64))
            cells = size
        else:
            words[-1] *= np.uint64(size)
            words[-1] += column.astype(np.uint64)
    return words


def first_of_each(tickets: U64, owner: Sequence[NDArray[Any]], most: int) -> NDArray[np.intp]:
    """The rows with the ``most`` smallest tickets of each owner, in their order; ``owner`` is one key or several."""
    order = np.lexsort((tickets, *owner))
    first = np.zeros(len(order), dtype=bool)
    first[:1] = True
    for part in owner:
        first[1:] |= part[order[1:]] != part[order[:-1]]
    position = np.arange(len(order))
    rank = position - np.maximum.accumulate(np.where(first, position, 0))
    return np.sort(order[rank < most])


def block_of(coins: U64, blocks: int) -> NDArray[np.int64]:
    """Uniform block 0 … blocks − 1 from the top 32 bits of the coin."""
    return ((coins >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)).astype(np.int64)


def is_heads(coins: U64, rate: Fraction) -> NDArray[np.bool_]:
    """True with probability at most ``rate`` (the largest multiple of 2⁻⁶⁴ that is not above it)."""
    threshold = int(rate * 2**64)
    return np.ones(coins.shape, dtype=bool) if threshold >= 2**64 else coins < np.uint64(threshold)
