"""Rows of a Spark DataFrame, on the user's own session.

Rows are encoded where they are, by the same code as files, and cached once as blocks of codes: a Spark row holds some
65,000 records, column after column, so that a pass moves bytes and not rows. A pass sums its blocks in every partition
through the same kernels as rows in memory; the sums of partitions are added up in a tree, and only sums reach the
driver. Sums are whole numbers and tasks are pure functions of their rows, so a retried or speculative task changes
nothing. Queries and secret keys travel as broadcast variables, never as literals of a plan, which Spark would write to
its event log. Spark's own messages may quote rows and are not shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..arguments import require_domain
from ..domain import Clique, Domain
from ..encoding import Hashed
from ..errors import EngineError, InputError, did_you_mean
from ..progress import Hundredths
from . import blocks as rows_of
from .arrow import encode_arrow, identities, texts_among
from .base import IntArray
from .blocks import Block, Layout
from .jobs import Job, JobTable

SPARK_BLOCK_ROWS = 1 << 16
_FAN_IN = 32  # partial sums that one task adds up
_BLOCKS = "target int, rows int, data binary"
Batches = Iterable[Any]
Choose = Callable[[Iterable[Block]], Iterator[dict[int, Block]]]


class SparkTable(JobTable):
    """Rows of a Spark DataFrame. Make one with :func:`discreet.open_table`; close it to free the cache.

    discreet must be installed on the workers.
    """

    def __init__(self, frame: Any, domain: Domain, *, unit: str | None = None) -> None:
        self.domain = require_domain(domain)
        self.unit_column = unit
        wanted = list(dict.fromkeys([*domain.names, *([unit] if unit is not None else [])]))
        for name in wanted:
            if frame.columns.count(name) != 1:
                problem = "has two columns" if name in frame.columns else "has no column"
                raise InputError(f"the DataFrame {problem} {name!r}{did_you_mean(name, frame.columns)}")
        if domain.sought:
            self.source = Frame(frame, unit)
        self._spark = frame.sparkSession
        self._owned: list[Callable[[], Any]] = []
        self._layout = Layout(domain, unit is not None)
        chosen = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))  # names with dots or in two cases
        chosen = chosen.select([f"c{frame.columns.index(name)}" for name in wanted])
        with failures():
            function = self._travelling(_encode, domain, unit, wanted)
            self._blocks = chosen.mapInArrow(function, _BLOCKS).persist()
            self._owned.append(self._blocks.unpersist)

    def __repr__(self) -> str:
        return f"SparkTable({len(self.domain)} columns)"

    def close(self) -> None:
        """Free the cached rows, of tables made from this one too, and forget what travelled, keys included."""
        super().close()
        self._let_go(0)

    def count_sparse(self, clique: Clique) -> dict[tuple[int, ...], int]:
        with failures(), self._passing(), self._watched():
            cells = self._blocks.mapInArrow(self._travelling(_sparse, self._layout, clique), "cell binary, n long")
            found = cells.groupBy("cell").sum("n").collect()
        return {tuple(np.frombuffer(row[0], dtype=np.int64).tolist()): int(row[1]) for row in found}

    def clip(self, max_rows: int, key: bytes) -> SparkTable:
        if self.unit_column is None:
            raise InputError("only a table made with a unit column can bound the rows of a person")
        return self._chosen(partial(_clip, self.domain, max_rows, key), 1, key)[0]

    def split(self, blocks: int, key: bytes) -> tuple[SparkTable, ...]:
        return self._chosen(partial(_split, self.domain, blocks, key), blocks, key)

    def sample(self, rate: Fraction, key: bytes) -> SparkTable:
        return self._chosen(partial(_sample, self.domain, rate, key), 1, key)[0]

    def without_persons(self) -> SparkTable:
        if self.unit_column is None:
            return self
        return self._derived(self._blocks, self._layout, None)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _run(self, job: Job) -> tuple[IntArray, ...]:
        totals = job.finish(job.zero())
        with failures(), self._passing(), self._watched():
            sums = self._blocks.mapInArrow(self._travelling(_sum, self._layout, job), "sums binary")
            parts = sums.rdd.getNumPartitions()
            while parts > _FAN_IN:
                parts = -(-parts // _FAN_IN)
                sums = sums.repartition(parts).mapInArrow(_add_up, "sums binary")
            collected = [np.frombuffer(row[0], dtype=np.int64) for row in sums.collect()]
        flat = (
            np.sum(collected, axis=0, dtype=np.int64) if collected else np.zeros(sum(t.size for t in totals), np.int64)
        )
        ends = np.cumsum([t.size for t in totals])[:-1]
        return tuple(part.reshape(t.shape) for part, t in zip(np.split(flat, ends), totals, strict=True))

    def _chosen(self, choose: Choose, targets: int, key: bytes) -> tuple[SparkTable, ...]:
        """Tables of the rows that ``choose`` sends to each target. Rows that must be looked at together (a person's,
        or equal ones) are brought together by their hash first."""
        with failures():
            parts = max(1, self._blocks.rdd.getNumPartitions())
            layout = Layout(self.domain, self.unit_column is not None)
            route = self._travelling(_route, self._layout, layout, key, 8 * parts)
            together = self._blocks.mapInArrow(route, _BLOCKS).repartition(parts, "target")
            chosen = together.mapInArrow(self._travelling(_choose, layout, choose), _BLOCKS).persist()
            self._owned.append(chosen.unpersist)
            blocks = [chosen.filter(f"target = {t}") for t in range(targets)]
            return tuple(self._derived(b, layout, self.unit_column) for b in blocks)

    def _derived(self, blocks: Any, layout: Layout, unit: str | None) -> SparkTable:
        table = SparkTable.__new__(SparkTable)
        table.domain, table.unit_column, table._spark = self.domain, unit, self._spark
        table._layout, table._blocks, table._owned = layout, blocks, self._owned
        return table

    def _travelling(self, function: Callable[..., Iterator[Any]], *values: Any) -> Callable[[Batches], Iterator[Any]]:
        """The function for ``mapInArrow``, with values that are broadcast."""
        box = self._spark.sparkContext.broadcast(values)
        self._owned.append(box.destroy)

        def apply(batches: Batches) -> Iterator[Any]:
            yield from function(*box.value, batches)

        return apply

    @contextmanager
    def _passing(self) -> Iterator[None]:
        """What travels for one pass over the rows is let go of when the pass is over."""
        mark = len(self._owned)
        try:
            yield
        finally:
            self._let_go(mark)

    def _let_go(self, mark: int) -> None:
        while len(self._owned) > mark:
            with suppress(Exception):  # the session may be gone already
                self._owned.pop()()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell how far the tasks are."""
        progress = Hundredths("reading the rows")
        if not progress:
            yield
            return
        tracker = self._spark.sparkContext.statusTracker()
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(0.2):
                with suppress(Exception):
                    stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
                    known = [s for s in stages if s is not None and s.numTasks]
                    if known:
                        done, total = (sum(getattr(s, n) for s in known) for n in ("numCompletedTasks", "numTasks"))
                        progress.reached(100 * done // total)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()
        progress.reached(100)


@dataclass(frozen=True, repr=False)
class Frame:
    """A DataFrame that will be read again, once it is known how."""

    frame: Any
    unit: str | None

    def table(self, domain: Domain) -> SparkTable:
        return SparkTable(self.frame, domain, unit=self.unit)

    def texts(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        place = self.frame.columns.index(attribute.name)
        chosen = self.frame.toDF(*(f"c{i}" for i in range(len(self.frame.columns)))).select(f"c{place}")
        box = self.frame.sparkSession.sparkContext.broadcast((attribute, numbers))

        def among(batches: Batches) -> Iterator[Any]:
            for batch in batches:
                found = texts_among(batch.column(0), *box.value)
                yield _batch(n=(found.keys(), "int64"), text=(found.values(), "string"))

        with failures():
            try:
                rows = chosen.mapInArrow(among, "n long, text string").distinct().collect()
            finally:
                box.destroy()
        return {int(row[0]): row[1] for row in rows}


@contextmanager
def failures() -> Iterator[None]:
    """Spark's errors in our words. They may quote a row: only their kind is told."""
    try:
        yield
    except (InputError, EngineError):
        raise
    except Exception as error:
        raise EngineError(
            f"Spark could not finish the work ({type(error).__name__}): perhaps executors were lost, memory or disk "
            "ran out, a file changed, or discreet is not installed on the workers. Its logs, which may hold private "
            "values, say more. Nothing was spent by this step"
        ) from None


# -- what runs on the workers ------------------------------------------------------------------------------------------


def _batch(**columns: tuple[Iterable[Any], str]) -> Any:
    """An Arrow batch of these columns, each with its type."""
    import pyarrow as pa

    arrays = [pa.array(values, pa.type_for_alias(kind)) for values, kind in columns.values()]
    return pa.record_batch(arrays, names=list(columns))


def _rows_out(parts: Iterable[tuple[int, Block]], layout: Layout) -> Iterator[Any]:
    for target, block in parts:
        yield _batch(target=([target], "int32"), rows=([block.rows], "int32"), data=([layout.pack(block)], "binary"))


def _rows_in(layout: Layout, batches: Batches, names: Iterable[str] | None = None) -> Iterator[Block]:
    for batch in batches:
        for rows, data in zip(batch.column("rows"), batch.column("data"), strict=True):
            yield layout.unpack_whole(data.as_buffer(), rows.as_py(), names)


def _encode(domain: Domain, unit: str | None, wanted: Sequence[str], batches: Batches) -> Iterator[Any]:
    layout = Layout(domain, unit is not None)

    def encoded() -> Iterator[Block]:
        for batch in batches:
            columns = dict(zip(wanted, batch.columns, strict=True))
            codes = {a.name: encode_arrow(columns[a.name], a) for a in domain.attributes}
            block = Block(codes, None, batch.num_rows)
            if unit is not None:
                kept, identity = identities(columns[unit])
                block = block if kept is None else block.take(np.flatnonzero(kept))
                block = Block(block.columns, identity, block.rows)
            yield block

    yield from _rows_out(((0, b) for b in rows_of.gathered(encoded(), SPARK_BLOCK_ROWS)), layout)


def _sum(layout: Layout, job: Job, batches: Batches) -> Iterator[Any]:
    totals = job.zero()
    for block in rows_of.gathered(_rows_in(layout, batches, job.columns), rows_of.BLOCK_ROWS):
        for total, increment in zip(totals, job.sum_batch(block.columns), strict=True):
            total += increment
    flat = np.concatenate([np.asarray(t, dtype=np.int64).reshape(-1) for t in job.finish(totals)] or [np.empty(0, int)])
    yield _one_sum(flat)


def _add_up(batches: Batches) -> Iterator[Any]:
    total: IntArray | None = None
    for batch in batches:
        for data in batch.column("sums"):
            part = np.frombuffer(data.as_buffer(), dtype=np.int64)
            total = part.copy() if total is None else total + part
    if total is not None:
        yield _one_sum(total)


def _one_sum(flat: IntArray) -> Any:
    return _batch(sums=([flat.tobytes()], "binary"))


def _sparse(layout: Layout, clique: Clique, batches: Batches) -> Iterator[Any]:
    for block in _rows_in(layout, batches, clique or layout.domain.names[:1]):
        cells, counts = rows_of.sparse_cells(block, clique)
        yield _batch(cell=([c.tobytes() for c in cells], "binary"), n=(counts, "int64"))


def _route(layout: Layout, kept: Layout, key: bytes, homes: int, batches: Batches) -> Iterator[Any]:
    """Rows by their homes; whose they are is forgotten when the table no longer knows persons."""
    for block in _rows_in(layout, batches, None if kept.has_persons else layout.domain.names):
        home = rows_of.home_of(block, layout.domain, key) % np.uint64(homes)
        yield from _rows_out(rows_of.by_number(block, home.astype(np.int64)).items(), kept)


def _choose(layout: Layout, choose: Choose, batches: Batches) -> Iterator[Any]:
    for parts in choose(_rows_in(layout, batches)):
        yield from _rows_out(parts.items(), layout)


def _clip(domain: Domain, max_rows: int, key: bytes, part: Iterable[Block]) -> Iterator[dict[int, Block]]:
    for block in rows_of.clip_blocks(part, domain, key, max_rows):
        yield from _pieces({0: block})


def _split(domain: Domain, count: int, key: bytes, part: Iterable[Block]) -> Iterator[dict[int, Block]]:
    for block, number in rows_of.split_blocks(part, domain, key, count):
        yield from _pieces(rows_of.by_number(block, number))


def _sample(domain: Domain, rate: Fraction, key: bytes, part: Iterable[Block]) -> Iterator[dict[int, Block]]:
    for block in rows_of.sample_blocks(part, domain, key, rate):
        yield from _pieces({0: block})


def _pieces(parts: dict[int, Block]) -> Iterator[dict[int, Block]]:
    """Blocks as large as a Spark row should be."""
    for target, block in parts.items():
        for lo in range(0, block.rows, SPARK_BLOCK_ROWS):
            yield {target: block.take(np.arange(lo, min(lo + SPARK_BLOCK_ROWS, block.rows)))}
