"""One way in for rows that live in files or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from ..arguments import require_domain
from ..domain import Domain
from ..errors import EngineError, InputError, did_you_mean
from .base import Table
from .delimited import DelimitedFile
from .files import FileTable
from .sources import find_files, open_file
from .spark import SparkTable

Engine = Literal["auto", "memory", "duckdb", "spark"]


def open_table(
    path: Any,
    domain: Domain,
    *,
    unit: str | None = None,
    engine: Engine = "auto",
    memory_limit: int | str | None = None,
    threads: int | None = None,
    delimiter: str | None = None,
    row_is_line: bool = False,
) -> Table:
    """The rows of files or of a Spark DataFrame under a domain, for a curator: ``open_table("rows.parquet", domain)``.

    Every engine gives the same sums from the same rows. Nothing is read yet but the names of the columns.

    Parameters
    ----------
    path:
        CSV (plain, gzip, zstd) or Parquet: a file, a folder (``year=2020/…`` inside it are columns), or a glob pattern.
        Or a Spark DataFrame.
    domain:
        What is publicly known about the columns. Columns that it does not name are not read.
    unit:
        The column that says whose row it is. It need not be in the domain.
    engine:
        ``"duckdb"`` reads files larger than memory (default for paths); ``"memory"`` keeps the codes in memory;
        ``"spark"`` reads them on the active Spark session (default for a DataFrame).
    memory_limit:
        What ``"duckdb"`` may use, in bytes or as ``"2GB"`` (default).
    delimiter:
        What stands between the fields of CSV; by default what the first line uses.
    row_is_line:
        A row of CSV is a line, whatever its quotes are. By default a quoted field may hold line ends: that is right
        for files of sound writers, and wrong for files whose quotes may be left open (docs/privacy.md).
    """
    require_domain(domain)
    if engine not in get_args(Engine):
        hint = did_you_mean(str(engine), get_args(Engine))
        raise InputError(f"engine must be one of {', '.join(get_args(Engine))}; got {engine!r}{hint}")
    if hasattr(path, "mapInArrow"):
        if engine not in ("auto", "spark"):
            raise InputError(f"a Spark DataFrame is summed by Spark; got engine={engine!r}")
        return SparkTable(path, domain, unit=unit)
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"open_table takes a path, a glob pattern or a Spark DataFrame, got a {type(path).__name__}; frames in "
            "memory go to encode(rows, domain)"
        )
    if engine == "spark":
        wanted = list(dict.fromkeys([*domain.names, *([unit] if unit is not None else [])]))
        return SparkTable(_spark_frame(os.fspath(path), delimiter, row_is_line, wanted), domain, unit=unit)
    table = FileTable(
        path,
        domain,
        unit=unit,
        memory_limit=memory_limit,
        threads=threads,
        delimiter=delimiter,
        row_is_line=row_is_line,
    )
    if engine != "memory":
        return table
    inner = table.in_memory()
    inner.source = table.source
    return inner


def _spark_frame(path: str, delimiter: str | None, row_is_line: bool, wanted: Sequence[str]) -> Any:
    """A DataFrame of files, on the active session or a local one."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError("engine='spark' needs pyspark: pip install 'discreet[spark]'") from None
    spark = SparkSession.builder.getOrCreate()
    if "://" in path:
        return spark.read.parquet(path)
    files = [open_file(p, delimiter, row_is_line=row_is_line) for p in find_files(path)]
    text = [replace(f, path=f.path.absolute()) for f in files if isinstance(f, DelimitedFile)]
    if not text:
        return spark.read.parquet(path)
    if len(text) < len(files) or len({f.names for f in text}) > 1:
        raise InputError(f"the files of {path} differ in format or columns; Spark needs them alike")
    text[0].require(wanted, "column of the schema, or unit column")

    def read(numbers: Iterable[Any]) -> Iterator[Any]:
        """With our own reader, a file in a task: Spark's lets a record change how those after it are read."""
        import pyarrow as pa

        for number in (n for batch in numbers for n in batch.column(0).to_pylist()):
            for piece in text[number].pieces():
                arrays = [texts.to_arrow() for texts in text[number].batch(piece, wanted)]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    columns = [f"c{i}" for i in range(len(wanted))]
    frame = spark.range(len(text), numPartitions=len(text))
    return frame.mapInArrow(read, ", ".join(f"{c} string" for c in columns)).toDF(*wanted)
