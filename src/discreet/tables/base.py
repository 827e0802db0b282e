"""What a table of rows can do: sum a query. The file, memory and Spark tables implement the same few methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..encoding import Codes

IntArray = NDArray[np.int64]
KEY_BYTES = 16


class RowQuery(Protocol):
    """A sum over rows, as a table sees it. :class:`discreet.privacy.query.Query` adds the privacy side to it."""

    @property
    def cliques(self) -> tuple[Clique, ...] | None:
        """Contingency tables from which the sums follow, or None when rows must be visited one by one."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose codes :meth:`sum_rows` needs."""

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """The sums, from the contingency tables of :attr:`cliques`."""

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        """The sums over one batch of rows. Integers only: they add up the same in any order and on any engine."""


class Table(ABC):
    """Rows under a domain. Nothing but a curator should hold one; no method lets a row out.

    ``unit_column`` names the column that says whose row it is, when the table was made with one.
    """

    domain: Domain
    unit_column: str | None

    def sum(self, query: RowQuery) -> tuple[IntArray, ...]:
        """Sum a query over all rows, exactly."""
        if query.cliques is not None:
            return query.combine(self.count(query.cliques))
        return self.stream(query)

    @abstractmethod
    def count(self, cliques: Sequence[Clique]) -> tuple[IntArray, ...]:
        """Contingency tables of many cliques in one pass, each of the shape of its clique."""

    @abstractmethod
    def stream(self, query: RowQuery) -> tuple[IntArray, ...]:
        """Sum ``query.sum_rows`` over batches of rows."""

    @abstractmethod
    def count_sparse(self, clique: Clique) -> dict[tuple[int, ...], int]:
        """The non-zero cells of one contingency table that may have far more cells than there are rows."""

    @abstractmethod
    def clip(self, max_rows: int, key: bytes) -> Table:
        """At most ``max_rows`` rows of each person, a uniform choice made by a keyed hash of the person's own rows."""

    @abstractmethod
    def split(self, blocks: int, key: bytes) -> tuple[Table, ...]:
        """Disjoint blocks; each person (or row) goes to one by its own keyed coin, whatever the other rows are."""

    @abstractmethod
    def sample(self, rate: Fraction, key: bytes) -> Table:
        """Poisson sample: each person (or row) stays with probability ``rate``, by its own keyed coin."""

    @abstractmethod
    def without_persons(self) -> Table:
        """The same rows, each its own unit."""
