"""Columns on their way out: as a frame of the library that people use, and as CSV; and public rows on their way in.

Only what is public comes here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .domain import level_text
from .errors import FileFormatError, InputError, MissingPackageError, did_you_mean
from .extras import needed

_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?")
BACKENDS = ("pandas", "polars", "pyarrow")


def frame_of(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """A frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"`` with these columns; the first that is installed by
    default."""
    import narwhals as nw  # commands that have no frame start without it

    return nw.from_dict(dict(columns), backend=library(backend)).to_native()


def library(backend: str | None = None) -> Any:
    """The library that makes frames: the one of this name, or the first of them that is installed."""
    if backend is None:
        first = next((found for found in map(_installed, BACKENDS) if found is not None), None)
        if first is None:
            raise MissingPackageError(
                "a frame needs the package pandas, polars or pyarrow, and none is installed: pip install pandas, or "
                "write CSV, which needs none"
            )
        return first
    if backend not in BACKENDS:
        raise InputError(
            f"backend must be one of {', '.join(map(repr, BACKENDS))}; got {backend!r}"
            + did_you_mean(str(backend), BACKENDS).partition("; known")[0]
        )
    found = _installed(backend)
    if found is None:
        others = ", ".join(name for name in BACKENDS if name != backend)
        raise InputError(f"{backend} is not installed: pip install {backend}, or ask for another of {others}")
    return found


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


def public_rows(path: Path) -> dict[str, Any]:
    """The columns of a CSV or Parquet file that holds nothing private; of CSV, lists of texts.

    What stands in the file is not repeated should it not be readable: a wrong one may have been named.
    """
    if not path.is_file():
        raise FileFormatError(f"there is no file {path}; name a CSV or Parquet file of public rows")
    if path.suffix.lower() == ".parquet":
        return _public_parquet(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            names = next(rows)
            _check_names(path, names)
            columns: list[list[str | None]] = [[] for _ in names]
            known: dict[str, str] = {}  # one text in memory for all that are equal
            for row in filter(None, rows):  # a line without anything is no row
                for column, text in zip(columns, row, strict=True):
                    column.append(known.setdefault(text, text) or None)
    except FileFormatError:
        raise
    except (csv.Error, OSError, StopIteration, ValueError) as error:
        raise _unreadable(path, error, "CSV in UTF-8 with as many fields in every row as in the first") from None
    return dict(zip(names, columns, strict=True))


def _public_parquet(path: Path) -> dict[str, Any]:
    import narwhals as nw

    pq = needed("pyarrow.parquet", f"reading {path}, a Parquet file,", "discreet[files]")
    try:
        rows = pq.ParquetFile(path)
        _check_names(path, rows.schema_arrow.names)
        frame = nw.from_native(rows.read())
    except FileFormatError:
        raise
    except (needed("pyarrow", "this").ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error, "a sound Parquet file") from None
    return {name: frame[name] for name in frame.columns}


def _unreadable(path: Path, error: Exception, form: str) -> FileFormatError:
    return FileFormatError(f"the rows of {path} cannot be read ({type(error).__name__}): is it {form}?")


def _check_names(path: Path, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise FileFormatError(f"{path} has two columns of one name; give each a name of its own")


def csv_text(value: object) -> str:
    """A field of a CSV file: nothing for an absent value, and an empty text in quotes."""
    if value is None:
        return ""
    text = level_text(value)
    if text == "" or text != text.strip() or any(c in text for c in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula: with an apostrophe before what would begin one. Numbers stay."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name for a further column, which the columns there are may have already."""
    while name in taken:
        name += "_"
    return name
