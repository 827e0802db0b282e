"""What a table of rows can do: sum a query. The file, memory and Spark tables implement the same few methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..arguments import require_columns
from ..domain import Attribute, Clique, Domain
from ..encoding import Codes, Hashed
from ..errors import InputError

IntArray = NDArray[np.int64]
KEY_BYTES = 16
WEIGHT_UNITS = 2**20
"""Grid units in one person's weight: divisible enough that rounding 1/K down costs nothing to speak of."""


class Asked(Protocol):
    """Anything that rows are asked for: a query, a score or a test."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that it uses, as they are in the domain that it was made for."""

    @property
    def needs_weights(self) -> bool:
        """Whether each row of a person with K rows counts 1/K, which only some tables know."""


class RowQuery(Asked, Protocol):
    """A sum over rows, as a table sees it. :class:`discreet.privacy.query.Query` adds the privacy side to it."""

    @property
    def cliques(self) -> tuple[Clique, ...] | None:
        """Contingency tables from which the sums follow, or None when rows must be visited one by one."""

    @property
    def grouped(self) -> tuple[Attribute, ...]:
        """Columns of the cliques that rows do not hold, because their levels are groups of levels of others."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose codes :meth:`sum_rows` needs."""

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """The sums, from the contingency tables of :attr:`cliques`."""

    @property
    def asked_again(self) -> bool:
        """Whether it is asked many times and never changes, so that its sums, which are few, are worth keeping."""

    def sum_rows(self, batch: Mapping[str, Codes]) -> tuple[IntArray, ...]:
        """The sums over one batch of rows. Integers only: they add up the same in any order and on any engine."""


class Source(Protocol):
    """Rows that can be read again: under the domain that was found, or for the texts of a column."""

    def table(self, domain: Domain) -> Table:
        """The same rows under another domain."""

    def texts(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        """Which texts of the column have these numbers."""


class Table(ABC):
    """Rows under a domain. Nothing but a curator should hold one; no method lets a row out.

    ``unit_column`` names the column that says whose row it is, when the table was made with one.
    """

    domain: Domain
    unit_column: str | None
    source: Source | None = None
    """Where the rows can be had again, for a table whose columns are still to be found."""
    _last: tuple[object, tuple[IntArray, ...]] = (None, ())
    for_persons_alone = False  # whether a row of it is made of several of a person, so that no row can be a unit
    knows_weights = False  # whether it can let each row of a person with K rows count 1/K: it counted them itself

    def require(self, asked: Asked) -> None:
        """Refuse what was made for other columns than these, by public things alone and before a row is touched.

        A record with a level that a query does not foresee would make it fail, or move it by more than it says.
        """
        what = type(asked).__name__
        if asked.needs_weights and not self.knows_weights:
            raise InputError(
                f"{what} weighs the rows of a person by how many there are; only a table made by "
                "discreet.tables.windows counts them itself. Make one, or take bound='rows'"
            )
        require_columns(what, asked.attributes, self.domain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was kept of the rows."""
        self.forget()

    def forget(self) -> None:
        """Let go of sums that were kept; who asks again has the rows read again."""
        self._last = (None, ())

    def __getstate__(self) -> dict[str, object]:
        """Without the sums that are kept: a copy may get other rows."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_last", "_counted")}

    def sum(self, query: RowQuery) -> tuple[IntArray, ...]:
        """Sum a query over all rows, exactly."""
        self.require(query)
        if query.cliques is None:
            return self.stream(query)
        if query.needs_weights:
            if query.grouped:
                raise InputError("levels that are taken together cannot be counted with weights")
            return query.combine(self.weighed(query.cliques))
        if not query.asked_again:
            return query.combine(self.count(query.cliques, query.grouped))
        # Selections one after the other ask for the same sums again. They are kept by the query itself, and only of one
        # that never changes: others would be answered with old sums, and noise for their sensitivity of today.
        asked, sums = self._last
        if asked is not query:
            sums = query.combine(self.count(query.cliques, query.grouped))
            self._last = (query, sums)
        return tuple(part.copy() for part in sums)  # who works in place has their own

    def under(self, domain: Domain) -> Table:
        """The same rows under another domain, with the same unit column; only where columns are still to be found."""
        if self.source is None:
            raise InputError("these rows were encoded once and for all; open them again under the other domain")
        return self.source.table(domain)

    def texts(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        """The texts of a column that have these numbers: inside, for numbers that were released."""
        if self.source is None:
            raise InputError("these rows were encoded once and for all, and their texts are gone")
        return self.source.texts(attribute, numbers)

    @abstractmethod
    def count(self, cliques: Sequence[Clique], grouped: Sequence[Attribute] = ()) -> tuple[IntArray, ...]:
        """Contingency tables of many cliques in one pass, each of the shape of its clique; ``grouped``: columns among
        theirs whose levels are groups of the levels of a column of the rows (:class:`discreet.attribute.Groups`)."""

    def weighed(self, cliques: Sequence[Clique]) -> tuple[IntArray, ...]:
        """The same with weights: each of the K rows of a person counts ⌊2²⁰/K⌋."""
        raise InputError(f"a {type(self).__name__} did not count the rows of its persons")

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
