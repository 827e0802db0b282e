"""Delimited text (CSV): the header line, which is public, and the rows behind it as texts.

The first line names the columns, and it alone decides the delimiter and how lines end. Everything else is private, so
how the file is read must not depend on it, and how a row is read must depend on that row alone (see lines.py). Nothing
is sniffed, every column is text, and a row that is not well-formed is read as far as it goes: missing fields are
absent, surplus fields are dropped, and a row that is not UTF-8 is left out. Messages name the file and the column,
never what stands in a row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ..errors import FileFormatError, InputError, did_you_mean
from ..extras import needed
from .lines import Form, Piece, batch_of, pieces
from .texts import Texts

DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 20
_SAVE = "save the rows as a CSV file in UTF-8"
_SIGNATURES = {
    b"PAR1": f"a Parquet file; {_SAVE}",
    b"PK\x03\x04": f"a zip archive or a spreadsheet; {_SAVE}",
    b"\xff\xfe": f"UTF-16 text; {_SAVE}, or convert it: iconv -f UTF-16 -t UTF-8 OLD.csv > NEW.csv",
    b"\xfe\xff": f"UTF-16 text; {_SAVE}, or convert it: iconv -f UTF-16 -t UTF-8 OLD.csv > NEW.csv",
    b"SQLite format 3": f"a database; {_SAVE}",
}
TO_UTF8 = "save it as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8 OLD.csv > NEW.csv (LATIN1, … as it may be)"
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class DelimitedFile:
    """A file whose first line has been read, and nothing else. ``names`` are its columns in order."""

    path: Path
    names: tuple[str, ...]
    form: Form
    compression: str = "none"
    start: int = 0  # where the rows begin in the unpacked bytes

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
                    + (hint or self.one_field() or "; it must name the columns as the schema does")
                )

    def one_field(self) -> str:
        """What may be wrong with a first line of one field: who has a delimiter of their own learns which was used."""
        if len(self.names) > 1:
            return ""
        at = self.form.delimiter.decode()
        return f"; divided at {at!r} it has one field alone: say --delimiter CHAR if another is meant"

    def pieces(self) -> Iterator[Piece]:
        """The records, some at a time; :meth:`batch` makes columns of them."""
        try:
            yield from pieces(self._opened, self.form)
        except (OSError, EOFError, zlib.error):
            raise FileFormatError(f"cannot read {self.path} to its end; is it whole?") from None

    @contextmanager
    def _opened(self, at: int) -> Iterator[IO[bytes]]:
        """The rows, from a number of bytes on."""
        with _unpacked(self.path, self.compression) as stream:
            missing = self.start + at
            if self.compression == "none":
                stream.seek(missing)
                missing = 0
            while missing and (passed := len(stream.read(min(missing, _LONGEST_HEADER)))):
                missing -= passed
            yield stream

    def batch(self, piece: Piece, names: Sequence[str]) -> list[Texts]:
        """These columns of some records."""
        return batch_of(piece, self.form, [self.names.index(name) for name in names])

    # -- for queries in SQL: columns are called c0, c1, … because DuckDB does not tell "A" from "a" ------------------

    def column(self, name: str) -> str:
        return f"c{self.names.index(name)}"

    def relation(self, connection: Any, names: Sequence[str]) -> Any:
        """These columns as something to select from, once."""
        pa = needed("pyarrow", "handing rows to DuckDB", "discreet[files]")
        schema = pa.schema([(self.column(name), pa.string()) for name in names])
        batches = (
            pa.RecordBatch.from_arrays([texts.to_arrow() for texts in self.batch(piece, names)], schema=schema)
            for piece in self.pieces()
        )
        return connection.from_arrow(pa.RecordBatchReader.from_batches(schema, batches))


def open_delimited(
    path: str | os.PathLike[str], delimiter: str | None = None, *, row_is_line: bool = False
) -> DelimitedFile:
    """Read the first line of a file. Byte-order marks and quoted names are understood."""
    path = Path(path)
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise InputError(f"a delimiter is one ASCII character, not a quote or a line end; got {delimiter!r}")
    compression, line, line_end, start = _first_line(path)
    chosen = delimiter or max(DELIMITERS, key=lambda d: len(_fields(line, d)))
    names = tuple(_fields(line, chosen))
    for position, name in enumerate(names, start=1):
        problem = _not_a_name(name, names[: position - 1])
        if problem:
            raise FileFormatError(
                f"the first line of {path} must name the columns, and field {position} of it {problem}; "
                "put a line of names on top, or replace that line, if it is one of names"
            )
    return DelimitedFile(path, names, Form(len(names), chosen.encode(), line_end, row_is_line), compression, start)


# -- the first line ----------------------------------------------------------------------------------------------------


def _unpacked(path: Path, compression: str) -> IO[bytes]:
    if compression == "none":
        return open(path, "rb")
    if compression == "gzip":
        return cast(IO[bytes], gzip.open(path, "rb"))
    pa = needed("pyarrow", f"reading {path}, which is compressed by {compression},", "discreet[files]")
    return cast(IO[bytes], pa.input_stream(str(path), compression=compression))


def _first_line(path: Path) -> tuple[str, str, bytes, int]:
    """How the file is compressed, its first line, how that ends, and where the next one begins."""
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
        with _unpacked(path, compression) as stream:
            text = stream.read(_LONGEST_HEADER)
    except (OSError, EOFError, zlib.error):
        raise FileFormatError(f"{path} is compressed ({compression}), and cannot be unpacked; is it whole?") from None
    mark = len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0
    # A header is one line: a quoted name that ran on would take rows into it. What comes after is not looked at.
    end = re.compile(rb"\r\n|\n|\r|\Z").search(text, mark)
    assert end is not None
    if not end[0] and len(text) == _LONGEST_HEADER:
        raise FileFormatError(f"the first line of {path} is longer than {_LONGEST_HEADER} bytes; is it a text file?")
    if end[0] == b"\r":
        raise FileFormatError(
            f"the first line of {path} ends in a carriage return alone; convert it: tr '\\r' '\\n' < OLD.csv > NEW.csv"
        )
    try:
        line = text[mark : end.start()].decode("utf-8")
    except UnicodeDecodeError:
        raise FileFormatError(f"the first line of {path} is not UTF-8 text; {TO_UTF8}") from None
    if "\x00" in line:
        raise FileFormatError(f"the first line of {path} holds NUL characters; it is not a text file")
    if line.count('"') % 2:
        raise FileFormatError(f"the first line of {path} has a quote that is not closed; mend the line of names")
    return compression, line, end[0] or b"\n", end.end()


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
