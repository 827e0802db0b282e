"""A bound as a value: what it says, where it is written, and what is known of its constant.

[001] is the full version of *Privately Learning Markov Random Fields* (Zhang, Kamath, Kulkarni, Wu), [000] the shorter
conference version with other numbers; items that only one of them has are named as such.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ...errors import InputError

Kind = Literal["upper", "lower"]
Goal = Literal["graph", "parameters", "risk", "queries"]
Notion = Literal["none", "approx", "zcdp", "pure"]
Constant = Literal["proved", "calibrated", "order only"]

NOTION_NAMES: dict[str, str] = {"none": "no privacy", "approx": "(ε, δ)", "zcdp": "zCDP", "pure": "pure ε"}


@dataclass(frozen=True)
class Bound:
    """A number of records that suffices (upper) or is needed by every method (lower), or an error (goal "risk").

    ``constant`` says how far to trust the number: *proved* (a derivation with every constant is in the docstring of
    the function), *calibrated* (fitted to our own experiments, with no proof), *order only* (the leading terms of the
    paper with every hidden constant set to one: read how it grows, not what it is).
    """

    item: str
    also: str
    kind: Kind
    goal: Goal
    notion: Notion
    formula: str
    value: float
    constant: Constant
    holds: str = ""

    @property
    def records(self) -> int | None:
        """The value as a whole number of records, if it is one and finite."""
        return math.ceil(self.value) if self.goal != "risk" and math.isfinite(self.value) else None

    def to_dict(self) -> dict[str, Any]:
        entry = asdict(self)
        if not math.isfinite(self.value):
            entry["value"] = None  # JSON knows no infinity
        return entry

    def __str__(self) -> str:
        where = f"{self.item}" + (f" ({self.also})" if self.also else "")
        what = "excess risk" if self.goal == "risk" else "n"
        sign = "≤" if self.goal == "risk" else ("≥" if self.kind == "lower" else "=")
        need = "is needed by every method" if self.kind == "lower" else "suffices"
        if self.constant == "order only" and self.goal != "risk":
            sign, need = "of the order of", "" if self.kind == "upper" else need
        tail = "" if self.goal == "risk" or not need else f" {need}"
        return f"{where}: {what} {sign} {readable(self.value)}{tail} [{self.formula}; constant: {self.constant}]"


def readable(value: float) -> str:
    """A number for people: two significant digits once it is large, a power of ten when it is absurd."""
    if not math.isfinite(value):
        return "—"
    if value < 1:
        return f"{value:.2g}"
    if value >= 1e9:
        return f"{value:.1e}".replace("e+", "e")
    digits = max(0, math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / 10**digits) * 10**digits:,}"


def probability(**numbers: float) -> None:
    """Refuse what is not strictly between 0 and 1, by its name."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise InputError(f"{name} must lie strictly between 0 and 1, got {name}={value!r}")


def power(base: float, exponent: float) -> float:
    """base**exponent, infinite instead of an overflow: bounds of this paper leave the range of a float."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def exponential(x: float) -> float:
    """eˣ, infinite instead of an overflow."""
    return math.exp(x) if x < 709 else math.inf
