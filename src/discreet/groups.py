"""Levels taken together: a column each of whose levels is a group of levels of another column.

Where a column has more levels than the records can fill, tables of groups say more for the same noise. Which levels
form a group is public: it follows from what was released (:mod:`discreet.learn.fields.grouping`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import SchemaError

if TYPE_CHECKING:
    from .attribute import Attribute


@dataclass(frozen=True)
class Groups:
    """``codes``: the group of each level of the column ``of``. No group is empty."""

    of: Attribute
    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        codes = self.codes
        if self.of.groups is not None:
            raise SchemaError(f"the levels of {self.of.name!r} are groups already")
        if any(type(c) is not int for c in codes) or len(codes) != self.of.size:
            raise SchemaError(f"the groups of {self.of.name!r} name one group for each of its {self.of.size} levels")
        if not codes or {*codes} != {*range(max(codes) + 1)}:
            raise SchemaError(f"the groups of {self.of.name!r} are numbered 0, 1, …, and none of them is empty")

    @property
    def number(self) -> int:
        return max(self.codes) + 1

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.of.name, "of": self.of.to_dict(), "codes": list(self.codes)}


def together(table: NDArray[Any], groups: Mapping[int, Groups]) -> NDArray[Any]:
    """A table with the levels of some of its axes taken together: cells are added up."""
    for axis, own in groups.items():
        codes = np.asarray(own.codes)
        order = np.argsort(codes, kind="stable")
        firsts = np.searchsorted(codes[order], np.arange(own.number))
        table = np.add.reduceat(np.take(table, order, axis=axis), firsts, axis=axis)
    return table
