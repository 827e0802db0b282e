"""How levels and numbers are spelled in files, labels and questions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)
"""Whole numbers as Python spells them."""
_RATIONAL = re.compile(r"[0-9]+(/[0-9]+)?", re.ASCII)


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value it stands for; anything else unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def written(text: Any) -> Fraction:
    """A rational as files of ours write it. Nothing else: a file that says 1e999999999 must not fill the memory."""
    if not isinstance(text, str) or not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)


def first_twice(items: Iterable[str]) -> str | None:
    """The first name that occurs again, if one does."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def level_text(level: object) -> str:
    """The label of a level as it is written in files and queries: ``True`` → ``true``, ``3`` → ``3``."""
    level = plain(level)
    if isinstance(level, bool):
        return "true" if level else "false"
    return str(level)


def tidy(x: float) -> int | float:
    """A whole number without its ``.0``, as people write it; beyond 2⁵³ the digits would be misleading."""
    return int(x) if x.is_integer() and abs(x) <= 2**53 else x


def number_text(x: float) -> str:
    return repr(tidy(x))


def number_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
