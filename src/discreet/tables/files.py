"""Rows in files that may be larger than memory: CSV and Parquet, kept as codes on disk.

The files are read and encoded once, when the first sum is asked for. The codes, a byte or so for each row and column,
go to a file without a name (see scratch.py); every later pass reads them block by block, in several threads, through
the same kernels as rows in memory. Measured against SQL, this counts all pairs of 20 columns faster than GROUPING SETS
or one query a pair (docs/scale.md), so no count is sent to SQL.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from ..domain import Clique, Domain
from ..encoding import Hashed
from ..errors import InputError
from ..progress import in_hundredths
from ..threads import one_thread
from . import blocks as rows_of
from .base import IntArray
from .blocks import BLOCK_ROWS, Block, Layout, empty_block
from .jobs import Job, JobTable
from .memory import MemoryTable, Persons
from .scratch import Place, Scratch, Sorter
from .sources import Sources, memory_bytes, most_threads

A = TypeVar("A")
B = TypeVar("B")
_READING = "reading the rows"
_PARTS_OF_MEMORY = 8  # a part that is held in memory is sorted and joined: it needs several times its size


class FileTable(JobTable):
    """Rows of CSV or Parquet files. Make one with :func:`discreet.open_table`; close it when done.

    Its representation says nothing about the rows, their number included.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        domain: Domain,
        *,
        unit: str | None = None,
        memory_limit: int | str | None = None,
        threads: int | None = None,
        delimiter: str | None = None,
        row_is_line: bool = False,
    ) -> None:
        self._set_up(domain, unit, memory_bytes(memory_limit), most_threads(threads))
        sources = Sources(path, domain, unit, delimiter, row_is_line=row_is_line)
        self._sources: Sources | None = sources
        if domain.sought:
            self.source = Files(sources, unit, self._memory, self._threads)
        self._scratch: Scratch | None = None
        self._places: list[Place] = []

    def _set_up(self, domain: Domain, unit: str | None, memory: int, threads: int) -> None:
        self.domain = domain
        self.unit_column = unit
        self._memory, self._threads = memory, threads
        self._closed = False

    def __repr__(self) -> str:
        return f"FileTable({len(self.domain)} columns)"

    def close(self) -> None:
        """Let go of the encoded rows. The disk space comes back when no table that was made with them needs it."""
        super().close()
        self._sources, self._scratch, self._closed = None, None, True

    def _require_rows(self) -> None:
        if self._closed:
            raise InputError("this table is closed; open the files again")

    def count_sparse(self, clique: Clique) -> dict[tuple[int, ...], int]:
        names = clique or self.domain.names[:1]
        parts = (rows_of.sparse_cells(self._block(place, names), clique) for place in self._encoded())
        cells, rows = rows_of.merged_cells(parts, len(clique))
        return dict(zip(map(tuple, cells.tolist()), rows.tolist(), strict=True))

    def clip(self, max_rows: int, key: bytes) -> FileTable:
        if self.unit_column is None:
            raise InputError("only a table made with a unit column can bound the rows of a person")

        def choose(part: Iterable[Block]) -> Iterator[dict[int, Block]]:
            for block in rows_of.clip_blocks(part, self.domain, key, max_rows):
                yield {0: block}

        return self._sorted(choose, 1, key)[0]

    def split(self, blocks: int, key: bytes) -> tuple[FileTable, ...]:
        def choose(part: Iterable[Block]) -> Iterator[dict[int, Block]]:
            for block, number in rows_of.split_blocks(part, self.domain, key, blocks):
                yield rows_of.by_number(block, number)

        return self._sorted(choose, blocks, key)

    def sample(self, rate: Fraction, key: bytes) -> FileTable:
        def choose(part: Iterable[Block]) -> Iterator[dict[int, Block]]:
            for block in rows_of.sample_blocks(part, self.domain, key, rate):
                yield {0: block}

        return self._sorted(choose, 1, key)[0]

    def in_memory(self) -> MemoryTable:
        """The same rows in memory."""
        blocks = [self._block(place, None) for place in self._encoded()]
        whole = Block.joined(blocks) if blocks else empty_block(self.domain, self._has_persons)
        columns = [whole.columns[n] for n in self.domain.names]
        if whole.identity is None:
            return MemoryTable(self.domain, columns, threads=self._threads)
        identity, owner = np.unique(whole.identity.T, axis=0, return_inverse=True)
        persons = Persons(owner.reshape(-1).astype(np.int64), identity)
        return MemoryTable(self.domain, columns, persons=persons, unit_column=self.unit_column, threads=self._threads)

    def without_persons(self) -> FileTable:
        if self.unit_column is None:
            return self
        return _Anonymous(self)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _encoded(self) -> list[Place]:
        """Where the blocks of codes stand; the first call reads the files."""
        self._require_rows()
        if self._sources is not None:
            sources = self._sources
            scratch = Scratch(Layout(self.domain, self.unit_column is not None))
            sorter = Sorter(scratch, 1, BLOCK_ROWS * scratch.layout.row_bytes - 1)
            batches = sources.batches()
            for block in in_threads(lambda item: sources.encode(*item), batches, self._threads):
                sorter.add({0: block})
            sorter.flush()
            self._scratch, self._places, self._sources = scratch, sorter.places[0], None
        return self._places

    def _block(self, place: Place, names: Iterable[str] | None) -> Block:
        assert self._scratch is not None
        return self._scratch.read(place, names)

    def _run(self, job: Job) -> tuple[IntArray, ...]:
        totals = job.zero()
        places = self._encoded()
        columns = job.columns

        def sum_block(place: Place) -> Sequence[IntArray]:
            return job.sum_batch(self._block(place, columns).columns)

        with one_thread("numpy"):
            for part in in_threads(sum_block, in_hundredths(places, len(places), _READING), self._threads):
                for total, increment in zip(totals, part, strict=True):
                    total += increment
        return job.finish(totals)

    def _sorted(
        self, choose: Callable[[Iterable[Block]], Iterator[dict[int, Block]]], targets: int, key: bytes
    ) -> tuple[FileTable, ...]:
        """Tables of the rows that ``choose`` sends to each target, part by part."""
        scratch = Scratch(Layout(self.domain, self._has_persons))
        sorter = Sorter(scratch, targets, self._memory // _PARTS_OF_MEMORY)
        for part in self._parts(key):
            for chosen in choose(part):
                sorter.add(chosen)
            sorter.flush()
        return tuple(_Chosen(self, scratch, places) for places in sorter.places)

    @property
    def _has_persons(self) -> bool:
        return self.unit_column is not None

    def _parts(self, key: bytes) -> Iterator[Iterator[Block]]:
        """The rows in parts that fit into memory; all rows of a person, or all equal rows, are in one part."""
        places = self._encoded()
        layout = Layout(self.domain, self._has_persons)
        most = self._memory // _PARTS_OF_MEMORY
        count = -(-sum(p.rows for p in places) * (layout.row_bytes + 16) // most)
        everything = in_hundredths(places, len(places), _READING)
        if count <= 1:
            yield (self._block(place, None) for place in everything)
            return

        def route(place: Place) -> dict[int, Block]:
            block = self._block(place, None)
            home = rows_of.home_of(block, self.domain, key)
            return rows_of.by_number(block, (home % np.uint64(count)).astype(np.int64))

        scratch = Scratch(layout)
        sorter = Sorter(scratch, count, most)
        for routed in in_threads(route, everything, self._threads):
            sorter.add(routed)
        sorter.flush()
        for part in sorter.places:
            yield (scratch.read(place) for place in part)


@dataclass(frozen=True, repr=False)
class Files:
    """Files that will be read again, once it is known how."""

    sources: Sources
    unit: str | None
    memory: int
    threads: int

    def table(self, domain: Domain) -> FileTable:
        table = FileTable.__new__(FileTable)
        table._set_up(domain, self.unit, self.memory, self.threads)
        table._sources, table._scratch, table._places = self.sources.under(domain), None, []
        return table

    def texts(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for part in in_threads(
            lambda item: self.sources.texts(*item, attribute, numbers), self.sources.batches(), self.threads
        ):
            found |= part
        return found


class _Chosen(FileTable):
    """Rows chosen from another table."""

    def __init__(self, parent: FileTable, scratch: Scratch, places: list[Place]) -> None:
        self._set_up(parent.domain, parent.unit_column, parent._memory, parent._threads)
        self._sources, self._scratch, self._places = None, scratch, places


class _Anonymous(FileTable):
    """The rows of another table, each its own unit."""

    def __init__(self, parent: FileTable) -> None:
        self._set_up(parent.domain, None, parent._memory, parent._threads)
        self._parent = parent
        self._sources = None

    def close(self) -> None:
        super().close()
        self._parent.close()

    def _require_rows(self) -> None:
        self._parent._require_rows()

    def _encoded(self) -> list[Place]:
        return self._parent._encoded()

    def _block(self, place: Place, names: Iterable[str] | None) -> Block:
        return self._parent._block(place, self.domain.names if names is None else names)


def in_threads(function: Callable[[A], B], items: Iterable[A], threads: int) -> Iterator[B]:
    """``map`` in several threads and in order, never more than a few items ahead: memory stays bounded."""
    if threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[B]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
