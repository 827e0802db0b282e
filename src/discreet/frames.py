"""Columns on their way out: as a frame of the library that people use, and as CSV; and public rows on their way in.

Only what is public comes here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .domain import level_text
from .errors import FileFormatError, InputError, did_you_mean

_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?")
BACKENDS = ("pandas", "polars", "pyarrow")


def frame_of(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """A frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"`` with these columns; the first that is installed by
    default."""
    import narwhals as nw  # commands that have no frame start without it

    return nw.from_dict(dict(columns), backend=library(backend)).to_native()


def library(backend: str | None = None) -> Any:
    """The library that makes frames: the one of this name, or the first of them that is installed (pyarrow always
    is)."""
    if backend is None:
        return next(found for found in map(_installed, BACKENDS) if found is not None)
    if backend not in BACKENDS:
        raise InputError(
            f"backend must be one of {', '.join(map(repr, BACKENDS))}; got {backend!r}"
            + did_you_mean(str(backend), BACKENDS).partition("; known")[0]
        )
    found = _installed(backend)
    if found is None:
        others = ", ".join(name for name in BACKENDS if name != backend)
        raise InputError(f"{backend} is not installed; install it, or ask for another of {others}")
    return found


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


def public_rows(path: Path) -> Any:
    """An Arrow table of all rows of a CSV or Parquet file that holds nothing private; of CSV, texts.

    What stands in the file is not repeated should it not be readable: a wrong one may have been named.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if not path.is_file():
        raise FileFormatError(f"there is no file {path}; name a CSV or Parquet file of public rows")
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        if is_parquet:
            rows = pyarrow.parquet.ParquetFile(path)
            _check_names(path, rows.schema_arrow.names)
            return rows.read()
        names = pyarrow.csv.open_csv(path).schema.names
        _check_names(path, names)
        types = dict.fromkeys(names, pa.string())
        texts = pyarrow.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
        return pyarrow.csv.read_csv(path, convert_options=texts)
    except FileFormatError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        form = "a sound Parquet file" if is_parquet else "CSV in UTF-8 with as many fields in every row as in the first"
        raise FileFormatError(f"the rows of {path} cannot be read ({type(error).__name__}): is it {form}?") from None


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
