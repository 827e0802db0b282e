"""A block of encoded rows, and how it lies in bytes: column after column, then whose rows they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..encoding import Codes, can_hold, code_type
from ..errors import InputError
from . import coins

BLOCK_ROWS = 1 << 17
_WAITING = 1 << 20  # rows that are looked at together: numbering equal ones costs a sort, and a merge each time


@dataclass(frozen=True, repr=False)
class Block:
    """Codes of some rows, and 128 bits of identity for each when the table knows persons."""

    columns: Mapping[str, Codes]
    identity: NDArray[np.uint64] | None
    rows: int

    def __repr__(self) -> str:
        return "Block()"

    def take(self, rows: NDArray[Any]) -> Block:
        identity = None if self.identity is None else self.identity[:, rows]
        return Block({n: c[rows] for n, c in self.columns.items()}, identity, len(rows))

    @staticmethod
    def joined(blocks: Sequence[Block]) -> Block:
        if len(blocks) == 1:
            return blocks[0]
        columns = {n: np.concatenate([b.columns[n] for b in blocks]) for n in blocks[0].columns}
        known = [b.identity for b in blocks if b.identity is not None]
        return Block(columns, np.concatenate(known, axis=1) if known else None, sum(b.rows for b in blocks))


def empty_block(domain: Domain, has_persons: bool) -> Block:
    columns = {a.name: np.empty(0, dtype=code_type(a.size)) for a in domain.attributes}
    return Block(columns, np.empty((2, 0), dtype=np.uint64) if has_persons else None, 0)


class Layout:
    """Where each column of a block of so many rows stands."""

    def __init__(self, domain: Domain, has_persons: bool) -> None:
        self.domain, self.has_persons = domain, has_persons
        self._types = {a.name: code_type(a.size) for a in domain.attributes}

    @property
    def row_bytes(self) -> int:
        return sum(t.itemsize for t in self._types.values()) + 16 * self.has_persons

    def pack(self, block: Block) -> bytes:
        for a in self.domain.attributes:  # what is packed more tightly must not wrap around
            if not can_hold(block.columns[a.name].dtype, a.size):
                raise InputError(f"the codes of column {a.name!r} are of a type too small for its {a.size:,} levels")
        parts = [np.ascontiguousarray(block.columns[n], dtype=t).tobytes() for n, t in self._types.items()]
        if self.has_persons and block.identity is not None:
            parts.append(np.ascontiguousarray(block.identity).tobytes())
        return b"".join(parts)

    def spans(self, rows: int, names: Iterable[str] | None) -> Iterator[tuple[str, int, int]]:
        """Column, first byte and number of bytes, for these columns (None: all, and the identities as ``""``)."""
        wanted = None if names is None else set(names)
        at = 0
        for name, kind in self._types.items():
            if wanted is None or name in wanted:
                yield name, at, rows * kind.itemsize
            at += rows * kind.itemsize
        if self.has_persons and wanted is None:
            yield "", at, rows * 16

    def unpack(self, parts: Mapping[str, Any], rows: int) -> Block:
        """A block from the bytes of its columns."""
        columns = {n: np.frombuffer(part, dtype=self._types[n]) for n, part in parts.items() if n}
        identity = np.frombuffer(parts[""], dtype=np.uint64).reshape(2, rows) if "" in parts else None
        return Block(columns, identity, rows)

    def unpack_whole(self, data: Any, rows: int, names: Iterable[str] | None) -> Block:
        view = memoryview(data)
        return self.unpack({n: view[at : at + size] for n, at, size in self.spans(rows, names)}, rows)


# -- coins of blocks: what memory.py does with all rows at once --------------------------------------------------------


def content_of(block: Block, domain: Domain, key: bytes) -> NDArray[np.uint64]:
    """The keyed hash of what a row is, its person included."""
    words = coins.words_of([block.columns[n] for n in domain.names], domain.shape)
    return coins.keyed_hash(key, words if block.identity is None else [*block.identity, *words])


def home_of(block: Block, domain: Domain, key: bytes) -> NDArray[np.uint64]:
    """A hash that rows have in common which must be looked at together: those of a person, or equal ones."""
    if block.identity is not None:
        return coins.keyed_hash(key, list(block.identity))
    return content_of(block, domain, key)


def gathered(blocks: Iterable[Block], enough: int) -> Iterator[Block]:
    """The same rows in blocks of at least so many, the last one excepted."""
    waiting: list[Block] = []
    rows = 0
    for block in blocks:
        waiting.append(block)
        rows += block.rows
        if rows >= enough:
            yield Block.joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield Block.joined(waiting)


def coins_of(blocks: Iterable[Block], domain: Domain, key: bytes) -> Iterator[tuple[Block, NDArray[np.uint64]]]:
    """Each block with the coins of its rows, as :class:`~discreet.tables.memory.MemoryTable` flips them.

    Equal rows must all be among the blocks.
    """
    seen = coins.Seen()
    for block in gathered(blocks, _WAITING):
        home = home_of(block, domain, key)
        if block.identity is not None:
            yield block, home
        else:
            yield block, coins.keyed_hash(key, [home, seen.number(home)])


def split_blocks(
    blocks: Iterable[Block], domain: Domain, key: bytes, count: int
) -> Iterator[tuple[Block, NDArray[np.int64]]]:
    for block, coin in coins_of(blocks, domain, key):
        yield block, coins.block_of(coin, count)


def sample_blocks(blocks: Iterable[Block], domain: Domain, key: bytes, rate: Fraction) -> Iterator[Block]:
    for block, coin in coins_of(blocks, domain, key):
        yield block.take(np.flatnonzero(coins.is_heads(coin, rate)))


def clip_blocks(blocks: Iterable[Block], domain: Domain, key: bytes, max_rows: int) -> Iterator[Block]:
    """At most ``max_rows`` rows of each person; all rows of a person must be among the blocks.

    The smallest tickets of the whole are among the smallest of any part, so surplus rows are dropped as they come.
    """
    seen = coins.Seen()
    waiting: list[tuple[Block, NDArray[np.uint64]]] = []
    rows, limit = 0, _WAITING

    def clipped() -> tuple[Block, NDArray[np.uint64]]:
        block = Block.joined([b for b, _ in waiting])
        tickets = np.concatenate([t for _, t in waiting])
        assert block.identity is not None
        keep = coins.first_of_each(tickets, list(block.identity), max_rows)
        return block.take(keep), tickets[keep]

    for block in gathered(blocks, _WAITING):
        content = content_of(block, domain, key)
        waiting.append((block, coins.keyed_hash(key, [content, seen.number(content)])))
        rows += block.rows
        if rows > limit:
            waiting = [clipped()]
            rows = waiting[0][0].rows
            limit = max(2 * rows, _WAITING)
    if waiting:
        yield clipped()[0]


def by_number(block: Block, number: NDArray[np.int64]) -> dict[int, Block]:
    """The rows of a block by their numbers."""
    order = np.argsort(number, kind="stable")
    distinct, first = np.unique(number[order], return_index=True)
    return {int(t): block.take(rows) for t, rows in zip(distinct, np.split(order, first[1:]), strict=False)}


def sparse_cells(block: Block, clique: Clique) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells of a block that are not empty, and how many rows each has."""
    if not clique:
        return np.zeros((min(block.rows, 1), 0), dtype=np.int64), np.full(min(block.rows, 1), block.rows)
    return unique_rows(np.stack([block.columns[n].astype(np.int64) for n in clique], axis=1))


def unique_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows and how often each occurs; those of one column without NumPy's detour through bytes."""
    if rows.shape[1] != 1:
        return np.unique(rows, axis=0, return_counts=True)
    values, counts = np.unique(rows[:, 0], return_counts=True)
    return values[:, None], counts


def merged_cells(
    parts: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]], columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells of all parts, each once. What waits is never much more than the distinct ones so far."""
    cells, counts = np.empty((0, columns), dtype=np.int64), np.empty(0, dtype=np.int64)
    waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part[0])
        if size > _WAITING + len(cells):
            cells, counts = _merged([(cells, counts), *waiting])
            waiting, size = [], 0
    return _merged([(cells, counts), *waiting])


def _merged(
    parts: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    cells, counts = (np.concatenate(side) for side in zip(*parts, strict=True))
    if cells.shape[1] == 1:
        values, inverse = np.unique(cells[:, 0], return_inverse=True)
        distinct = values[:, None]
    else:
        distinct, inverse = np.unique(cells, axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, inverse.reshape(-1), counts)
    return distinct, total
