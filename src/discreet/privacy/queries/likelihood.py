"""How well a public model fits private records: the clipped log-likelihood as a query, and so at a price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...encoding import Codes
from ...errors import InputError
from ...tables.base import IntArray
from ..query import Part, Query
from ..unit import Relation, Sensitivity

UNITS = 1024  # grid units between the floor and 0


class LogLikelihood(Query):
    """Σ max(log P(record), floor), and the number of records.

    P is public: log P(record) = Σ of table entries − log Z, one lookup a table. Each is added to the record's own sum
    in the order of the tables, so a record's value is the same to the last bit whatever rows stand beside it; then it
    is clipped to [floor, 0] and rounded to the grid −floor/1024.

    Sensitivity: a record adds at most 1024 units to the first sum and 1 to the second. Replacing one moves the first
    by at most 1024 units (both values lie in an interval of that length), the second not at all.
    """

    def __init__(
        self,
        domain: Domain,
        tables: Sequence[tuple[Clique, NDArray[np.float64]]],
        log_partition: float,
        floor: float = -20.0,
    ) -> None:
        if not -1e6 <= floor <= -1e-3:
            raise InputError(f"floor is the least log-probability that counts, between −1e6 and −1e-3; got {floor}")
        super().__init__(domain)
        self.floor = Fraction(repr(float(floor)))
        self._tables = [(clique, np.asarray(table, dtype=np.float64)) for clique, table in tables]
        for clique, table in self._tables:
            if table.shape != domain.project(clique).shape:
                raise InputError(
                    f"the table of {clique} must have shape {domain.project(clique).shape}, got {table.shape}"
                )
        self._log_partition = float(log_partition)

    @property
    def parts(self) -> tuple[Part, ...]:
        return Part("log-likelihood", (1,), grid=-self.floor / UNITS), Part("number of records", (1,))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.domain.names

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        count = 1 if relation == "add-remove" else 0
        return Sensitivity(UNITS, UNITS**2, UNITS, 1), Sensitivity(count, count, count, count)

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        records = len(next(iter(batch.values())))
        value = np.full(records, -self._log_partition)
        for clique, table in self._tables:
            value += table[tuple(batch[name] for name in clique)]
        low = float(self.floor)
        value = np.where(np.isnan(value), low, value)
        units = np.rint(np.clip(value, low, 0.0) * (UNITS / -low)).astype(np.int64)
        return np.array([units.sum()]), np.array([records], dtype=np.int64)
