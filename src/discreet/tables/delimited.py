"""Delimited text (CSV): the header, and rows as text, read through DuckDB without ever looking at them to decide how.

The first line is public: it names the columns, and it alone decides the delimiter. Everything else is private, so how
the file is read must not depend on it. Nothing is sniffed, every column is text, and a row that is not well-formed is
read as far as it goes: missing fields are absent, surplus fields are dropped, and a row that is not UTF-8 is left out.
Messages name the file and the column, never what stands in a row; for that reason DuckDB's own are not shown.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import duckdb

from ..domain import Domain
from ..errors import FileFormatError, InputError, did_you_mean
from .encode import encode
from .memory import MemoryTable

DELIMITERS = ",;\t|"
_BATCH = 50_000
_LONGEST_HEADER = 1 << 20
_SAVE = "save the rows as a CSV file in UTF-8"
_SIGNATURES = {
    b"PAR1": f"a Parquet file; {_SAVE}",
    b"PK\x03\x04": f"a zip archive or a spreadsheet; {_SAVE}",
    b"\xff\xfe": f"UTF-16 text; {_SAVE}, or convert it: iconv -f UTF-16 -t UTF-8 OLD.csv > NEW.csv",
    b"\xfe\xff": f"UTF-16 text; {_SAVE}, or convert it: iconv -f UTF-16 -t UTF-8 OLD.csv > NEW.csv",
    b"SQLite format 3": f"a database; {_SAVE}",
}
# Other encodings are not read as they are: DuckDB fails on bytes that one of them does not have, and whether a fit
# fails must not depend on what a row holds.
TO_UTF8 = "save it as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8 OLD.csv > NEW.csv (LATIN1, … as it may be)"
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class DelimitedFile:
    """A file whose first line has been read, and nothing else. ``names`` are its columns in order."""

    path: Path
    names: tuple[str, ...]
    delimiter: str
    compression: str = "none"

    def open_text(self, errors: str = "surrogateescape") -> IO[str]:
        """The text, line ends as they are."""
        return _text(self.path, self.compression, errors)

    def require(self, names: Iterable[str], role: str, *, credible: bool = False) -> None:
        """Every one of these columns is there, or an error that says which is not.

        A near name is suggested only when the first line is credible as a header, that is when it holds some of the
        names (or is known to hold others): otherwise it may be a row, and would be echoed.
        """
        wanted = list(names)
        credible = credible or any(name in self.names for name in wanted)
        for name in wanted:
            if name not in self.names:
                hint = did_you_mean(name, self.names) if credible else ""
                raise InputError(
                    f"the first line of {self.path} names no column {name!r} ({role})"
                    + (hint or "; it must name the columns as the schema does")
                )

    def rows(self, names: Sequence[str]) -> Iterator[list[tuple[str | None, ...]]]:
        """Batches of rows, only these columns, every value as text or None."""
        columns = ", ".join(self.column(name) for name in names)
        with self.connection() as connection:
            result = connection.execute(f"SELECT {columns} FROM {self.source}", [self.pattern])
            while batch := result.fetchmany(_BATCH):
                yield batch

    # -- for queries in SQL: columns are called c0, c1, … because DuckDB does not tell "A" from "a" ------------------

    def column(self, name: str) -> str:
        return f"c{self.names.index(name)}"

    @property
    def source(self) -> str:
        """The table function to select from; its one parameter is :attr:`pattern`."""
        types = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(self.names)))
        delimiter = self.delimiter.replace("'", "''")
        return (
            f"read_csv(?, auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', escape = '\"', "
            f"columns = {{{types}}}, null_padding = true, strict_mode = false, ignore_errors = true, "
            f"compression = '{self.compression}', parallel = false, max_line_size = 33554432)"
        )

    @property
    def pattern(self) -> str:
        """The path for DuckDB, which would take * and ? and [ in it as wildcards."""
        return "".join(f"[{c}]" if c in "*?[" else c for c in os.path.abspath(self.path))

    @contextmanager
    def connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A private connection: it fetches no extensions, and spills no private rows to the disk."""
        options: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        connection = duckdb.connect(config=options)
        try:
            connection.execute("SET enable_progress_bar = false")  # it would draw on the standard output
            yield connection
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            # The message may quote a row. The kind of the error is all that may be said.
            raise FileFormatError(
                f"cannot read {self.path} as delimited text ({type(error).__name__}); is it UTF-8, with "
                f"{self.delimiter!r} between the fields and quotes that are closed?"
            ) from None
        finally:
            connection.close()


def open_delimited(path: str | os.PathLike[str], delimiter: str | None = None) -> DelimitedFile:
    """Read the first line of a file. Byte-order marks and quoted names are understood."""
    path = Path(path)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"a delimiter is one character, not a quote or a line end; got {delimiter!r}")
    compression, line = _first_line(path)
    chosen = delimiter or max(DELIMITERS, key=lambda d: len(_fields(line, d)))
    names = tuple(_fields(line, chosen))
    for position, name in enumerate(names, start=1):
        problem = _not_a_name(name, names[: position - 1])
        if problem:
            raise FileFormatError(
                f"the first line of {path} must name the columns, and field {position} of it {problem}; "
                "put a line of names on top"
            )
    return DelimitedFile(path, names, chosen, compression)


def read_delimited(file: DelimitedFile, domain: Domain, *, unit: str | None = None) -> MemoryTable:
    """Encode the columns of a domain; columns that it does not name are not read."""
    file.require(domain.names, "column of the schema")
    if unit is not None:
        file.require([unit], "unit column", credible=True)
    names = list(dict.fromkeys([*domain.names, *([unit] if unit is not None else [])]))
    columns: dict[str, list[str | None]] = {name: [] for name in names}
    # Equal texts are kept once, so that a row costs a pointer a column and not a string a column.
    known: list[dict[str | None, str | None]] = [{} for _ in names]
    for batch in file.rows(names):
        for name, seen, values in zip(names, known, zip(*batch, strict=True), strict=True):
            columns[name].extend(map(seen.setdefault, values, values))
    return encode(columns, domain, unit=unit)


# -- the first line ----------------------------------------------------------------------------------------------------


def _text(path: Path, compression: str, errors: str = "strict") -> IO[str]:
    if compression == "gzip":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="", errors=errors)
    if compression == "zstd":
        import pyarrow

        return io.TextIOWrapper(pyarrow.input_stream(str(path), compression="zstd"), "utf-8-sig", errors, newline="")
    return open(path, encoding="utf-8-sig", newline="", errors=errors)


def _first_line(path: Path) -> tuple[str, str]:
    """How the file is compressed, and its first line."""
    if path.is_dir():
        raise FileFormatError(f"{path} is a folder; name a file of delimited text (CSV)")
    if not path.exists():
        raise FileFormatError(f"there is no file {path}")
    if not path.is_file():
        raise FileFormatError(f"{path} is not a regular file; save the rows as a CSV file first")
    try:
        with open(path, "rb") as stream:
            start = stream.read(16)
    except OSError as error:
        raise FileFormatError(f"cannot read {path}: {error.strerror}") from None
    for signature, what in _SIGNATURES.items():
        if start.startswith(signature):
            raise FileFormatError(f"{path} is {what}")
    if not start:
        raise FileFormatError(f"{path} is empty; its first line must name the columns")
    compression = next((how for mark, how in _COMPRESSED.items() if start.startswith(mark)), "none")
    try:
        # What comes after the first line may be anything: it is not looked at.
        with _text(path, compression, "surrogateescape") as text:
            line = _up_to_line_end(text.read(_LONGEST_HEADER))
    except (OSError, EOFError, zlib.error):
        raise FileFormatError(f"{path} is compressed ({compression}), and cannot be unpacked; is it whole?") from None
    if not is_unicode(line):
        raise FileFormatError(f"the first line of {path} is not UTF-8 text; {TO_UTF8}")
    if "\x00" in line:
        raise FileFormatError(f"the first line of {path} holds NUL characters; it is not a text file")
    if line.count('"') % 2:
        raise FileFormatError(f"the first line of {path} has a quote that is not closed; mend the line of names")
    return compression, line


def _up_to_line_end(text: str) -> str:
    """A header is one line: a quoted name that ran on would take rows into it."""
    return re.split(r"[\r\n]", text, maxsplit=1)[0]


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line] if line else [""], delimiter=delimiter), [""])
    except csv.Error:
        return [""]


def _not_a_name(name: str, before: Sequence[str]) -> str:
    """Why a field of the first line is no name of a column. The field itself is not shown: it may be a value."""
    if not name.strip():
        return "is empty"
    if _NUMBER.fullmatch(name):
        return "is a number"
    if name in before:
        return f"repeats field {list(before).index(name) + 1}"
    return ""


def is_unicode(text: str) -> bool:
    """False when bytes that were not UTF-8 were smuggled in as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
