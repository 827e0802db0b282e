"""From codes and numbers to values as they stood in the original column: its types, its decimals, its dates."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute

_START = datetime(1970, 1, 1)
_SECONDS = 86_400


def value_table(attribute: Attribute) -> tuple[list[Any], str]:
    """The original value of each code, and the kind of the column: ``"int"``, ``"bool"`` or ``"str"``.

    A column whose levels are numbers or booleans but which also has an ``other`` level comes back as text: one column
    holds one kind, whether or not the other level was drawn.
    """
    levels: tuple[Any, ...] = attribute.levels
    if attribute.dates is not None and attribute.dates.by == "hour of day":
        levels = tuple(range(24))
    kinds = {type(level) for level in levels}
    kind = kinds.pop().__name__ if len(kinds) == 1 and attribute.other is None else "str"
    values: list[Any] = [None if label == attribute.missing else label for label in attribute.labels]
    if kind in ("int", "bool"):
        values[: len(levels)] = levels
    return values, kind if kind in ("int", "bool") else "str"


def has_numbers(attribute: Attribute) -> bool:
    """Whether records draw a number, or a day, within what the code says."""
    return attribute.is_numeric or (attribute.dates is not None and attribute.dates.first is not None)


def number_kind(attribute: Attribute) -> str:
    """The kind of a column that is drawn as numbers: ``"int"``, ``"float"``, ``"date"``, or ``"moment"``."""
    if attribute.dates is not None:
        return "moment" if attribute.dates.has_clock else "date"
    return "int" if attribute.precision == 0 else "float"


def may_be_missing(attribute: Attribute) -> bool:
    """Whether some of its codes are no number."""
    return attribute.missing is not None or attribute.other is not None


def time_of_day(attribute: Attribute, rows: int, rng: np.random.Generator) -> NDArray[np.float64] | float:
    """What is added to days where dates are written with a clock."""
    return rng.integers(0, _SECONDS, rows) / _SECONDS if number_kind(attribute) == "moment" else 0.0


def number_column(attribute: Attribute, x: NDArray[np.float64]) -> NDArray[Any]:
    """Numbers (NaN where there is none) with the type of the column; None, NaN or NaT where there is none."""
    kind = number_kind(attribute)
    if kind == "float":
        return x
    gaps = np.isnan(x)
    if kind in ("date", "moment"):
        steps = np.where(gaps, 0, x if kind == "date" else np.rint(x * _SECONDS)).astype(np.int64)
        out: NDArray[Any] = steps.astype("M8[D]" if kind == "date" else "M8[s]")
        out[gaps] = np.datetime64("NaT")
        return out
    whole = np.where(gaps, 0, x).astype(np.int64)
    if not may_be_missing(attribute):
        return whole
    with_gaps = whole.astype(object)
    with_gaps[gaps] = None
    return with_gaps


def number_texts(attribute: Attribute, x: NDArray[np.float64]) -> list[str]:
    """Numbers and dates as they are written in a file, with the decimals or in the format that the schema states."""
    if attribute.dates is not None:
        spelled = attribute.dates.format or "%Y-%m-%d"
        found, which = np.unique(x, return_inverse=True)
        moments = [None if np.isnan(day) else _START + timedelta(seconds=round(day * _SECONDS)) for day in found]
        texts = np.array(["" if moment is None else moment.strftime(spelled) for moment in moments], dtype=object)
        return list(texts[which])
    values = number_column(attribute, x).tolist()
    digits = attribute.precision
    if digits and np.array_equal(np.round(x, digits), x, equal_nan=True):
        return ["" if v != v else f"{v:.{digits}f}" for v in values]
    return ["" if v is None or v != v else repr(v) for v in values]
