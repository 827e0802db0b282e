"""Where the commands get their rows from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileFormatError

if TYPE_CHECKING:
    from ..domain import Domain
    from ..tables.base import Table
    from ..tables.delimited import DelimitedFile
    from ..tables.sources import SourceFile

_OTHER_FILES = (".parquet", ".pq")


def open_first_line(data: Path, delimiter: str | None, names: Sequence[str], unit_column: str | None) -> DelimitedFile:
    """The file with its first line read, which is public: a wrong file is found before there is any talk of a plan."""
    from ..tables.delimited import open_delimited

    file = open_delimited(data, delimiter)
    file.require(names, "column of the schema")
    if unit_column is not None:
        file.require([unit_column], "unit column", credible=True)
    return file


def open_one(data: Path, delimiter: str | None) -> SourceFile:
    """One file of rows, CSV or Parquet, of which the public part has been read."""
    from ..tables.delimited import open_delimited
    from ..tables.sources import find_files, open_file

    if delimiter is not None:
        return open_delimited(data, delimiter)
    if data.is_dir() and any(data.iterdir()):
        example = find_files(data)[0]
        raise FileFormatError(f"{data} is a folder; name one of its files, say {example}")
    return open_file(data)


def check_rows(data: Path, delimiter: str | None, domain: Domain, unit_column: str | None, engine: str) -> None:
    """What can be found wrong with the data before anything is planned or spent."""
    if is_delimited(data) and engine != "spark":
        open_first_line(data, delimiter, domain.names, unit_column)
    elif not data.exists() and "*" not in str(data):
        raise FileFormatError(f"there is no file {data}")
    elif engine in ("auto", "duckdb"):
        from ..tables.open import open_table

        open_table(data, domain, unit=unit_column, engine="duckdb")  # reads nothing yet but the names of the columns


def open_rows(data: Path, delimiter: str | None, domain: Domain, unit_column: str | None, engine: str) -> Table:
    """The rows as a table that a curator can hold."""
    from ..tables.delimited import read_delimited
    from ..tables.open import open_table

    if delimiter is not None and is_delimited(data):
        return read_delimited(open_first_line(data, delimiter, domain.names, unit_column), domain, unit=unit_column)
    return open_table(data, domain, unit=unit_column, engine=engine)  # type: ignore[arg-type]


def is_delimited(data: Path) -> bool:
    """Delimited text, unless the name says otherwise, or it is a folder or a pattern of several files."""
    return (
        data.suffix.lower() not in _OTHER_FILES and "*" not in data.name and not (data.is_dir() and any(data.iterdir()))
    )
