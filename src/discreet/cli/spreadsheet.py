"""Released tables as one file of delimited text, for spreadsheets: a line for each cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..frames import inert
from ..io.atomic import write_atomically
from ..measurement import Measurement, Measurements
from ..schema import free_label

_OURS = ("table", "count", "lower", "upper")
_POSITION = "position"  # of a sum that is no contingency table, and has no labels


def write_tables(released: Measurements, level: float, path: Path, *, safe: bool = False) -> int:
    """Write every cell of every table with its interval; returns how many there are.

    The columns are ``table``, one for each column of the tables (empty where a table does not have it), ``count``,
    ``lower`` and ``upper``. One of ours whose name a column has already stands in brackets. ``safe``: labels that a
    spreadsheet would take for a formula begin with an apostrophe.
    """
    shown = inert if safe else str
    columns = list(dict.fromkeys(name for m in released for name in _names(m)))
    table, count, lower, upper = (free_label(name, columns) for name in _OURS)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([table, *map(shown, columns), count, lower, upper])
    cells = 0
    for measurement in released:
        for labels, figures in _cells(measurement, level):
            texts = (measurement.label, *(labels.get(name, "") for name in columns))
            writer.writerow([*map(shown, texts), *map(_figure, figures)])
            cells += 1
    # With a byte-order mark: spreadsheets take text for UTF-8 only then.
    write_atomically(path, [text.getvalue().encode("utf-8-sig")])
    return cells


def _names(measurement: Measurement) -> tuple[str, ...]:
    return (_POSITION,) if measurement.told_of is None else measurement.told_of


def _cells(measurement: Measurement, level: float) -> Iterator[tuple[dict[str, str], tuple[float, float, float]]]:
    values, (lower, upper) = measurement.values, measurement.interval(level)
    for cell in np.ndindex(values.shape):
        if measurement.told_of is None:
            labels = {_POSITION: ", ".join(map(str, cell))}
        else:
            codes = zip(measurement.told_of, cell, strict=True)
            labels = {name: measurement.domain[name].labels[code] for name, code in codes}
        yield labels, (float(values[cell]), float(lower[cell]), float(upper[cell]))


def _figure(x: float) -> str:
    return str(int(x)) if x.is_integer() else repr(x)
