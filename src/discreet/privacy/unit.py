"""Who is protected: a row, or a person with many rows; and what makes two tables neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from ..arguments import check_whole
from ..errors import InputError, counted

Relation = Literal["add-remove", "replace-one"]
RELATIONS: tuple[Relation, ...] = ("add-remove", "replace-one")


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move a sum, in whole units of the query's grid.

    ``l2_squared`` is kept squared so that it stays a whole number; ``l0`` is the number of cells that can change.
    """

    l1: int
    l2_squared: int
    linf: int
    l0: int

    @classmethod
    def largest(cls, several: Iterable[Sensitivity]) -> Sensitivity:
        """The largest of each norm."""
        columns = zip(*((s.l1, s.l2_squared, s.linf, s.l0) for s in several), strict=True)
        return cls(*(max(c) for c in columns))

    def times(self, rows: int) -> Sensitivity:
        """For a unit of up to ``rows`` rows: the triangle inequality, attained when all rows fall in one cell."""
        return Sensitivity(self.l1 * rows, self.l2_squared * rows**2, self.linf * rows, self.l0 * rows)


@dataclass(frozen=True)
class PrivacyUnit:
    """What the guarantee protects: ``PrivacyUnit()``, a row; ``PrivacyUnit("patient", max_rows=5)``, a person.

    Parameters
    ----------
    column:
        None: a row is a unit. Otherwise the column that says whose row it is; all rows of one person are one unit.
    max_rows:
        At most this many rows of a person count, chosen uniformly inside the curator. Rows without a person (a null
        in the unit column) do not count: nobody could be protected by leaving them in.
    relation:
        ``"add-remove"``: neighbours differ by the presence of one unit, and the number of records is private.
        ``"replace-one"``: neighbours differ by the value of one unit.
    """

    column: str | None = None
    max_rows: int = 1
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise InputError(f"relation must be one of {', '.join(map(repr, RELATIONS))}; got {self.relation!r}")
        check_whole(1, max_rows=self.max_rows)
        if self.column is None and self.max_rows != 1:
            raise InputError(
                f"max_rows={self.max_rows} needs a unit column that says whose row it is; give PrivacyUnit(column=…)"
            )

    def __str__(self) -> str:
        who = "one row"
        if self.column is not None:
            who = f"one value of {self.column!r} (at most {counted(self.max_rows, 'row')})"
        return f"{who}, {self.relation}"

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "max_rows": self.max_rows, "relation": self.relation}

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> PrivacyUnit:
        return cls(entry["column"], entry["max_rows"], entry["relation"])


def as_probability(rate: float | str | Fraction) -> Fraction:
    """A rate in (0, 1] as an exact fraction."""
    try:
        value = Fraction(rate) if isinstance(rate, Fraction | int) else Fraction(str(rate))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"a sampling rate is a number in (0, 1], got {rate!r}") from None
    if not 0 < value <= 1:
        raise InputError(f"a sampling rate lies in (0, 1], got {float(value)}")
    return value
