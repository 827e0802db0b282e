"""One way in for rows that live in files or on a cluster."""

from __future__ import annotations

import os
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
) -> Table:
    """The rows of files or of a Spark DataFrame under a domain, for a curator: ``open_table("rows.parquet", domain)``.

    Every engine gives the same sums from the same rows. (Spark reads *malformed* CSV in its own way: rows that are not
    UTF-8 count, and stray quotes end elsewhere. Convert such files to Parquet first.) Nothing is read yet but the names
    of the columns.

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
        return SparkTable(_spark_frame(os.fspath(path)), domain, unit=unit)
    table = FileTable(path, domain, unit=unit, memory_limit=memory_limit, threads=threads)
    return table.in_memory() if engine == "memory" else table


def _spark_frame(path: str) -> Any:
    """A DataFrame of files, on the active session or a local one."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError("engine='spark' needs pyspark: pip install 'discreet[spark]'") from None
    spark = SparkSession.builder.getOrCreate()
    if "://" in path:
        return spark.read.parquet(path)
    files = [open_file(p) for p in find_files(path)]
    text = [f for f in files if isinstance(f, DelimitedFile)]
    if not text:
        return spark.read.parquet(path)
    if len(text) < len(files) or len({(f.names, f.delimiter) for f in text}) > 1:
        raise InputError(f"the files of {path} differ in format or columns; Spark needs them alike")
    columns = ", ".join(f"c{i} string" for i in range(len(text[0].names)))
    reader = spark.read.schema(columns).options(
        header=True,
        sep=text[0].delimiter,
        quote='"',
        escape='"',
        multiLine=True,
        mode="PERMISSIVE",
        enforceSchema=True,
        maxColumns=1 << 22,  # a row with too many fields must not make the others fail
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
    )
    return reader.csv([os.path.abspath(f.path) for f in text]).toDF(*text[0].names)
