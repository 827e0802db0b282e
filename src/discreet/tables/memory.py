"""Rows in memory: one compact array of codes a column, counted in batches by several threads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute, Clique, Domain
from ..encoding import Codes, can_hold, code_type
from ..errors import InputError
from ..threads import one_thread
from . import coins
from .base import IntArray
from .blocks import unique_rows
from .jobs import Job, JobTable

BATCH_ROWS = 1 << 17


@dataclass(frozen=True, repr=False)
class Persons:
    """Whose row it is: a number a row, and 128 bits of identity a person (a digest of the identifier)."""

    of_row: NDArray[np.int64]
    identity: NDArray[np.uint64]

    def __repr__(self) -> str:
        return "Persons()"

    def take(self, rows: NDArray[Any]) -> Persons:
        return Persons(self.of_row[rows], self.identity)


class MemoryTable(JobTable):
    """Encoded rows in memory. Make one with :func:`discreet.tables.encode.encode`.

    Its representation says nothing about the rows, their number included.
    """

    def __init__(
        self,
        domain: Domain,
        columns: Sequence[Codes],
        *,
        persons: Persons | None = None,
        unit_column: str | None = None,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        if len(columns) != len(domain):
            raise InputError(f"the domain has {len(domain)} columns, got codes for {len(columns)}")
        if (persons is None) != (unit_column is None):
            raise InputError("a table with a unit column needs to know whose row each row is, and the other way round")
        self.domain = domain
        self.unit_column = unit_column
        self._columns = {a.name: _checked(a, c) for a, c in zip(domain.attributes, columns, strict=True)}
        lengths = {len(c) for c in self._columns.values()} | ({len(persons.of_row)} if persons is not None else set())
        if len(lengths) > 1:
            raise InputError("the columns differ in length; every row needs a code in every column, and its person")
        self._persons = persons
        self._rows = len(columns[0]) if columns else 0
        self._threads = threads or min(8, os.cpu_count() or 1)
        self._batch_rows = batch_rows

    def __repr__(self) -> str:
        return f"MemoryTable({len(self.domain)} columns)"

    def count_sparse(self, clique: Clique) -> dict[tuple[int, ...], int]:
        if not self._rows:
            return {}
        if not clique:
            return {(): self._rows}
        cells, counts = unique_rows(np.stack([self._columns[n].astype(np.int64) for n in clique], axis=1))
        return {tuple(cell): count for cell, count in zip(cells.tolist(), counts.tolist(), strict=True)}

    def clip(self, max_rows: int, key: bytes) -> MemoryTable:
        persons = self._persons
        if persons is None:
            raise InputError("only a table made with a unit column can bound the rows of a person")
        # A person's rows are ranked by the keyed hash of (person, content, how many equal ones precede): the choice
        # depends on that person's rows alone, so one person changes at most `max_rows` rows of the clipped table.
        content = coins.keyed_hash(key, [*persons.identity[persons.of_row].T, *self._words()])
        ticket = coins.keyed_hash(key, [content, coins.occurrence(content, persons.of_row)])
        return self._take(coins.first_of_each(ticket, [persons.of_row], max_rows))

    def split(self, blocks: int, key: bytes) -> tuple[MemoryTable, ...]:
        block = coins.block_of(self._coins(key), blocks)
        return tuple(self._take(np.flatnonzero(block == b)) for b in range(blocks))

    def sample(self, rate: Fraction, key: bytes) -> MemoryTable:
        return self._take(np.flatnonzero(coins.is_heads(self._coins(key), rate)))

    def without_persons(self) -> MemoryTable:
        columns = list(self._columns.values())
        return MemoryTable(self.domain, columns, threads=self._threads, batch_rows=self._batch_rows)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _coins(self, key: bytes) -> NDArray[np.uint64]:
        """One coin a row: the person's when the table knows persons, the record's otherwise."""
        if self._persons is not None:
            return coins.keyed_hash(key, list(self._persons.identity.T))[self._persons.of_row]
        content = coins.keyed_hash(key, self._words())
        return coins.keyed_hash(key, [content, coins.occurrence(content)])

    def _words(self) -> list[NDArray[np.uint64]]:
        return coins.words_of(list(self._columns.values()), self.domain.shape)

    def _take(self, rows: NDArray[Any]) -> Self:
        part = copy(self)  # its codes were checked when the whole was made
        part._columns = {name: codes[rows] for name, codes in self._columns.items()}
        part._persons = None if self._persons is None else self._persons.take(rows)
        part._rows = len(rows)
        part.source = None  # which has all rows: a block that read it again would be no block
        return part

    def _batches(self, columns: Iterable[str]) -> Iterable[dict[str, Codes]]:
        chosen = {name: self._columns[name] for name in columns}
        for lo in range(0, self._rows, self._batch_rows):
            yield {name: c[lo : lo + self._batch_rows] for name, c in chosen.items()}

    def _run(self, job: Job) -> tuple[IntArray, ...]:
        if 0 < self._rows <= self._batch_rows:  # one batch, as blocks that vote are: nothing to add up
            return job.finish(job.sum_batch(next(iter(self._batches(job.columns)))))
        totals = job.zero()

        def add(parts: Iterable[Sequence[IntArray]]) -> None:
            for part in parts:
                for total, increment in zip(totals, part, strict=True):
                    total += increment

        if self._threads == 1 or not self._rows:
            add(map(job.sum_batch, self._batches(job.columns)))
        else:
            with one_thread("numpy"), ThreadPoolExecutor(self._threads) as pool:
                add(pool.map(job.sum_batch, self._batches(job.columns)))
        return job.finish(totals)


def _checked(attribute: Attribute, codes: Codes) -> Codes:
    """The codes of a column. Their type is refused if it is too small; a code beyond the levels is taken for the last
    one (below them, the first), so that what a row holds can neither fail nor move another cell than its own."""
    if not isinstance(codes, np.ndarray) or codes.ndim != 1 or not can_hold(codes.dtype, attribute.size):
        raise InputError(
            f"column {attribute.name!r} has {attribute.size:,} levels: its codes must be an array of whole numbers of "
            f"a type that holds {attribute.size - 1:,}, such as {code_type(attribute.size)}"
        )
    if len(codes) and (int(codes.min()) < 0 or int(codes.max()) >= attribute.size):
        codes = np.clip(codes, 0, attribute.size - 1)
    return np.ascontiguousarray(codes, dtype=code_type(attribute.size))
