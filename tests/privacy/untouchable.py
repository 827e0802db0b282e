"""A table for tests of what is refused before a row is touched."""

from __future__ import annotations

from typing import Any

from discreet.domain import Domain
from discreet.tables.base import Table


class Untouchable(Table):
    """Rows that must not be looked at. It promises whatever a table can promise."""

    knows_weights = True

    def __init__(self, domain: Domain, unit_column: str | None = None) -> None:
        self.domain, self.unit_column = domain, unit_column

    def _touched(self, *_: Any) -> Any:
        raise AssertionError("the rows were touched")

    count = stream = count_sparse = clip = split = sample = without_persons = _touched
