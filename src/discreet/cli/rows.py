"""Where the commands get their rows from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileFormatError
from .console import note
from .options import Text

if TYPE_CHECKING:
    from ..domain import Domain
    from ..tables.base import Table
    from ..tables.delimited import DelimitedFile
    from ..tables.sources import SourceFile
    from ..tables.windows import Windows

_OTHER_FILES = (".parquet", ".pq")


def _open_text(data: Path, text: Text) -> DelimitedFile:
    from ..tables.delimited import open_delimited

    return open_delimited(data, text.delimiter, row_is_line=bool(text.row_is_line))


def open_one(data: Path, text: Text) -> SourceFile:
    """One file of rows, CSV or Parquet, of which the public part has been read."""
    from ..tables.sources import find_files, open_file

    if text.delimiter is not None:
        return _open_text(data, text)
    if data.is_dir() and any(data.iterdir()):
        example = find_files(data)[0]
        raise FileFormatError(f"{data} is a folder; name one of its files, say {example}")
    return open_file(data, row_is_line=bool(text.row_is_line))


def check_there(data: Path) -> None:
    """Whether there is such a file, or a pattern of names that may be some; nothing of it is read."""
    if not data.exists() and "*" not in str(data):
        raise FileFormatError(f"there is no file {data}")


def check_rows(
    data: Path, text: Text, domain: Domain, unit_column: str | None, engine: str, windows: Windows | None = None
) -> None:
    """What can be found wrong with the data before anything is planned or spent."""
    if windows is not None:
        check_there(data)
        windows.check(data, text.delimiter, row_is_line=bool(text.row_is_line))
        if not windows.format and is_delimited(data):
            note(
                f"The times in {windows.time!r} are read as numbers or ISO dates; other text would be put in the order "
                "of its letters. Dates of another spelling need --time-format."
            )
        return
    if is_delimited(data) and engine != "spark":
        # The first line is public: a wrong file is found before there is any talk of a plan.
        file = _open_text(data, text)
        file.require(domain.names, "column of the schema")
        if unit_column is not None:
            file.require([unit_column], "unit column", credible=True)
        return
    check_there(data)
    if engine in ("auto", "duckdb"):
        open_rows(data, text, domain, unit_column, "duckdb")  # reads nothing yet but the names of the columns


def open_rows(
    data: Path, text: Text, domain: Domain, unit_column: str | None, engine: str, windows: Windows | None = None
) -> Table:
    """The rows as a table that a curator can hold."""
    if windows is not None:
        return windows.open(data, text.delimiter, row_is_line=bool(text.row_is_line))
    from ..tables.open import open_table

    return open_table(
        data,
        domain,
        unit=unit_column,
        engine=engine,  # type: ignore[arg-type]
        delimiter=text.delimiter,
        row_is_line=bool(text.row_is_line),
    )


def is_delimited(data: Path) -> bool:
    """Delimited text, unless the name says otherwise, or it is a folder or a pattern of several files."""
    return (
        data.suffix.lower() not in _OTHER_FILES and "*" not in data.name and not (data.is_dir() and any(data.iterdir()))
    )
