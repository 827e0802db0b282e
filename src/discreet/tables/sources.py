"""Files of rows as blocks of codes, file by file: delimited text (see delimited.py), and Parquet.

How a file is read follows from its first line or its footer and the schema, which are public, and never from another
file: each is asked for its own columns and types. Nothing fails on what a row holds. Messages name files and columns,
never values; those of Arrow and DuckDB, which may quote a row, are not shown.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np

from ..domain import Attribute, Domain
from ..encoding import Codes, Hashed
from ..errors import EngineError, FileFormatError, InputError, did_you_mean
from ..extras import needed
from .arrow import ArrowColumn, is_text
from .blocks import BLOCK_ROWS, Block
from .delimited import DelimitedFile, open_delimited
from .texts import Identities, Texts

_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class Column(Protocol):
    """What a batch holds of one column."""

    def __len__(self) -> int: ...

    def codes(self, attribute: Attribute) -> Codes: ...

    def identities(self) -> Identities: ...

    def among(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]: ...

    def to_list(self) -> list[Any]: ...


class SourceFile(Protocol):
    """One file, of which the public part has been read."""

    @property
    def path(self) -> Path: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def column(self, name: str) -> str:
        """What the column is called in SQL: c0, c1, … by its place in the file."""

    def relation(self, connection: Any, names: Sequence[str]) -> Any:
        """These columns as something for DuckDB to select from, once."""

    def require(self, names: Iterable[str], role: str, *, credible: bool = False) -> None: ...


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file whose footer has been read."""

    path: Path
    names: tuple[str, ...]

    def column(self, name: str) -> str:
        return f"c{self.names.index(name)}"

    def require(self, names: Iterable[str], role: str, *, credible: bool = True) -> None:
        """Every one of these columns is there, or an error that says which is not. A footer is no row."""
        for name in names:
            if name not in self.names:
                hint = did_you_mean(name, self.names)
                raise InputError(f"the footer of {self.path} names no column {name!r} ({role}){hint}")

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Rows of these columns. By Arrow, which takes every value as it is: DuckDB checks them (is a text UTF-8, or
        JSON where it says so; has a day 24 hours), and one that fails would fail the file.
        """
        pq = _parquet(self.path)
        with pq.ParquetFile(self.path) as file:
            texts = [f.name for f in file.schema_arrow if is_text(f.type)]
        with pq.ParquetFile(self.path, read_dictionary=texts) as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=list(names))

    def relation(self, connection: Any, names: Sequence[str]) -> Any:
        columns = ", ".join(f"c{i}" for i in range(len(self.names)))
        chosen = ", ".join(map(self.column, names)) or "1 AS nothing"
        source = f"read_parquet(?, hive_partitioning = false, file_row_number = false) AS t({columns})"
        return connection.sql(f"SELECT {chosen} FROM {source}", params=[literal_pattern(self.path)])


def literal_pattern(path: Path) -> str:
    """The path for DuckDB, which would take * and ? and [ in it as wildcards."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in os.path.abspath(path))


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a path, a folder or a glob pattern stands for, in order."""
    text = os.fspath(path)
    if "://" in text:
        raise InputError(f"{text} is not a local path; open it with Spark and give the DataFrame, or copy the files")
    if os.path.isdir(text):
        inner = sorted(p for p in Path(text).rglob("*") if p.is_file() and not _hidden(p.relative_to(text)))
        if not inner:
            raise FileFormatError(f"there are no files in the folder {text}")
        return inner
    if os.path.exists(text) or not glob.has_magic(text):
        return [Path(text)]
    found = sorted(Path(p) for p in glob.glob(text, recursive=True) if os.path.isfile(p))
    if not found:
        raise FileFormatError(f"no file matches {text}")
    return found


def _hidden(path: Path) -> bool:
    """What Spark and others leave beside the data: _SUCCESS, .crc files."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def open_file(path: Path, delimiter: str | None = None, *, row_is_line: bool = False) -> SourceFile:
    """Read the public part of a file: the first line of text, the footer of Parquet. The rest is said of text only."""
    try:
        with open(path, "rb") as stream:
            is_parquet = stream.read(4) == b"PAR1"
    except OSError:
        is_parquet = False  # delimited.py says what is wrong with it
    if not is_parquet:
        return open_delimited(path, delimiter, row_is_line=row_is_line)
    pq = _parquet(path)
    try:
        return ParquetFile(path, tuple(pq.read_schema(path).names))
    except _unreadable():
        raise FileFormatError(
            f"{path} begins like a Parquet file, but its footer cannot be read; is it whole?"
        ) from None


def _parquet(path: Path) -> Any:
    return needed("pyarrow.parquet", f"reading {path}, a Parquet file,", "discreet[files]")


class Sources:
    """All files of a table, checked against the schema before a row is read."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        domain: Domain,
        unit: str | None,
        delimiter: str | None = None,
        *,
        row_is_line: bool = False,
    ) -> None:
        self.domain, self.unit = domain, unit
        self.files = [open_file(p, delimiter, row_is_line=row_is_line) for p in find_files(path)]
        self._wanted = wanted = list(dict.fromkeys([*domain.names, *([unit] if unit is not None else [])]))
        for file in self.files:
            known = [*file.names, *partitions(file.path)]
            for name in wanted:
                if name not in known:
                    role = "unit column" if name == unit and name not in domain else "column of the schema"
                    # Names are suggested only when some are as expected: a first line may be a row.
                    hint = did_you_mean(name, known) if any(w in known for w in wanted) else ""
                    where = "the footer" if isinstance(file, ParquetFile) else "the first line"
                    one_field = file.one_field() if isinstance(file, DelimitedFile) else ""
                    raise InputError(
                        f"{where} of {file.path} names no column {name!r} ({role})"
                        + (hint or one_field or "; it must name the columns as the schema does")
                    )
                if file.names.count(name) > 1:
                    raise InputError(f"the footer of {file.path} names the column {name!r} twice; rename one of them")

    def under(self, domain: Domain) -> Sources:
        """The same files, to be read under another domain of some of the same columns."""
        other = copy(self)
        other.domain = domain
        return other

    def texts(self, file: SourceFile, batch: Any, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        """Which texts of a column have these numbers, in a batch."""
        columns, rows = self._columns(file, batch)
        return self._column(file, columns, attribute.name, rows).among(attribute, numbers)

    def batches(self) -> Iterator[tuple[SourceFile, Any]]:
        """What the files hold in the wanted columns, some rows at a time; :meth:`encode` makes blocks of it."""
        for file in self.files:
            with failures_of(file):
                yield from ((file, batch) for batch in self._read(file))

    def _read(self, file: SourceFile) -> Iterator[Any]:
        if isinstance(file, DelimitedFile):
            yield from file.pieces()
        elif isinstance(file, ParquetFile):
            yield from file.batches([name for name in self._wanted if name in file.names])

    def _columns(self, file: SourceFile, batch: Any) -> tuple[dict[str, Column], int]:
        """The columns of a batch that are in the file, and how many rows it has."""
        if not isinstance(file, DelimitedFile):
            return dict(zip(batch.schema.names, map(ArrowColumn, batch.columns), strict=True)), batch.num_rows
        names = [name for name in self._wanted if name in file.names]
        read = file.batch(batch, names or file.names[:1])  # without any column, how many rows is lost
        return dict(zip(names, read, strict=False)), len(read[0])

    def _column(self, file: SourceFile, columns: Mapping[str, Column], name: str, rows: int) -> Column:
        """A column that is in the file, or stands in its path."""
        if name in columns:
            return columns[name]
        return Texts(np.zeros(rows, dtype=np.int64), [partitions(file.path)[name]])

    def encode(self, file: SourceFile, batch: Any) -> Block:
        """A block of codes. Runs in any thread."""
        columns, rows = self._columns(file, batch)
        codes = {a.name: self._column(file, columns, a.name, rows).codes(a) for a in self.domain.attributes}
        block = Block(codes, None, rows)
        if self.unit is None:
            return block
        kept, identity = self._column(file, columns, self.unit, rows).identities()
        if kept is not None:
            block = block.take(np.flatnonzero(kept))
        return Block(block.columns, identity, block.rows)


def batches_of(file: SourceFile, names: Sequence[str]) -> Iterator[Sequence[Column]]:
    """These columns of a file, in this order, some rows at a time."""
    if isinstance(file, DelimitedFile):
        yield from (file.batch(piece, names) for piece in file.pieces())
    elif isinstance(file, ParquetFile):
        yield from (list(map(ArrowColumn, batch.select(list(names)).columns)) for batch in file.batches(names))


def partitions(path: Path) -> dict[str, str | None]:
    """Columns that stand in the path, as in ``year=2020/part-0.parquet``; their values are text."""
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return {unquote(name): None if value == _NO_PARTITION else unquote(value) for name, value in pairs if name}


# -- DuckDB ------------------------------------------------------------------------------------------------------------


@contextmanager
def tool(file: SourceFile) -> Iterator[Any]:
    """A private DuckDB for tools of the curator: it fetches no extensions, and spills no rows to the disk."""
    duckdb = needed("duckdb", "looking at rows to draft or check a schema", "discreet[files]")
    connection = duckdb.connect(
        config={
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "threads": most_threads(None),
            "preserve_insertion_order": False,
        }
    )
    try:
        connection.execute("SET enable_progress_bar = false")  # it would draw on the standard output
        yield connection
    except duckdb.Error:
        with failures_of(file):
            raise
    finally:
        connection.close()


@contextmanager
def failures_of(file: SourceFile) -> Iterator[None]:
    """Errors of Arrow and DuckDB in our words: the kind of the error is all that may be said."""
    try:
        yield
    except _unreadable() as error:
        # Through Arrow, errors of every kind come as text. It is looked at, and not shown.
        kind = str(error)[:200].lower()
        if isinstance(error, _of("duckdb", "InterruptException")) or "interrupt error" in kind:
            raise KeyboardInterrupt from None
        if isinstance(error, (*_of("duckdb", "OutOfMemoryException"), MemoryError)) or "out of memory error" in kind:
            raise EngineError(
                f"reading {file.path} needs more memory than there is; write the file in smaller row groups. "
                "Nothing was spent by this step"
            ) from None
        what = "a Parquet file" if isinstance(file, ParquetFile) else "delimited text"
        raise FileFormatError(
            f"cannot read {file.path} as {what}; is it whole, and in UTF-8? Nothing was spent by this step"
        ) from None


def _unreadable() -> tuple[type[Exception], ...]:
    """What reading a file can raise."""
    return (*_of("duckdb", "Error"), *_of("pyarrow", "ArrowException"), OSError, RuntimeError, ValueError)


def _of(package: str, name: str) -> tuple[type[Exception], ...]:
    """A kind of error, if the package is in use at all."""
    module = sys.modules.get(package)
    return () if module is None else (getattr(module, name),)


def most_threads(threads: int | None) -> int:
    return threads or min(8, os.cpu_count() or 1)


def memory_bytes(limit: int | str | None) -> int:
    """A number of bytes, or ``"2GB"`` as people write it."""
    if limit is None:
        return 2 << 30
    units = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
    units |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
    text = str(limit).strip().lower()
    digits = text.rstrip("kmgtib ")
    unit = text[len(digits) :].strip()
    try:
        if isinstance(limit, bool):
            raise ValueError
        size = float(digits) * units[unit]
        if not 1e6 <= size < 1e18:
            raise ValueError
    except (KeyError, ValueError):
        raise InputError(
            f'memory_limit is a number of bytes or a text like "2GB", at least 1MB; got {limit!r}'
        ) from None
    return int(size)
