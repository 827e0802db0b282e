"""What is added up over batches of rows, as a value that can travel to where the rows are.

A job sums a batch into whole numbers. Whole numbers add up the same in any order: neither the threads of one machine,
nor the retried or speculative tasks of a cluster, can show in a total.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import numpy as np

from ..domain import Attribute, Clique, Domain
from ..encoding import Codes, code_type
from . import counting
from .base import IntArray, RowQuery, Table
from .products import Products, worth_a_product


class Job(Protocol):
    """A sum over batches: start from :meth:`zero`, add :meth:`sum_batch` of each, :meth:`finish` the totals.

    ``finish`` is linear, so that it may be applied to the totals of each part of the rows.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    def zero(self) -> list[IntArray]: ...

    def sum_batch(self, batch: Mapping[str, Codes]) -> Sequence[IntArray]: ...

    def finish(self, totals: Sequence[IntArray]) -> tuple[IntArray, ...]: ...


@dataclass(frozen=True)
class Counting:
    """Contingency tables of many cliques, counted in groups; where there are very many pairs, these by a product."""

    domain: Domain
    cliques: tuple[Clique, ...]
    grouped: tuple[Attribute, ...] = ()
    """Columns of the domain that rows do not hold: each of their levels is a group of levels of another."""

    @classmethod
    def of(cls, domain: Domain, cliques: Sequence[Clique], grouped: Sequence[Attribute]) -> Counting:
        columns = Domain((*domain.attributes, *grouped)) if grouped else domain
        return cls(columns, tuple(cliques), tuple(grouped))

    @cached_property
    def _groups(self) -> dict[str, tuple[str, Codes]]:
        """The column that each of these is made of, and the group of each of its levels."""
        return {
            a.name: (a.groups.of.name, np.array(a.groups.codes, dtype=code_type(a.size)))
            for a in self.grouped
            if a.groups is not None
        }

    @cached_property
    def products(self) -> Products | None:
        """What counts the pairs, if there are so many that it is worthwhile."""
        pairs = [c for c in self.cliques if len(c) == 2]
        if not worth_a_product(self.domain, pairs):
            return None
        return Products(self.domain, self.domain.clique({n for c in pairs for n in c}))

    @cached_property
    def groups(self) -> tuple[tuple[Clique, tuple[int, ...]], ...]:
        if self.products is None:
            return counting.plan_groups(self.domain, self.cliques)
        others = tuple(i for i, c in enumerate(self.cliques) if len(c) != 2)
        planned = counting.plan_groups(self.domain, tuple(self.cliques[i] for i in others))
        return tuple((group, tuple(others[k] for k in positions)) for group, positions in planned)

    @property
    def columns(self) -> tuple[str, ...]:
        used = {name for c in self.cliques for name in c}
        named = self.domain.clique({self._groups[n][0] if n in self._groups else n for n in used})
        return named or self.domain.names[:1]  # the number of rows is the length of any column

    def zero(self) -> list[IntArray]:
        product = [] if self.products is None else [self.products.zero()]
        return counting.zero_groups(self.domain, self.groups) + product

    def sum_batch(self, batch: Mapping[str, Codes]) -> list[IntArray]:
        if self.grouped:
            batch = {**batch, **{n: codes[batch[column]] for n, (column, codes) in self._groups.items()}}
        product = [] if self.products is None else [self.products.count(batch)]
        return [counting.count_group(self.domain, group, batch) for group, _ in self.groups] + product

    def finish(self, totals: Sequence[IntArray]) -> tuple[IntArray, ...]:
        tables: dict[int, IntArray] = {}
        if self.products is not None:
            *totals, product = totals
            pairs = [i for i, c in enumerate(self.cliques) if len(c) == 2]
            found = self.products.tables(product, [self.cliques[i] for i in pairs])
            tables |= dict(zip(pairs, found, strict=True))
        for (group, positions), total in zip(self.groups, totals, strict=True):
            for i in positions:
                tables[i] = counting.sum_out(self.domain, group, total, self.cliques[i])
        return tuple(tables[i] for i in range(len(self.cliques)))


@dataclass(frozen=True)
class Summing:
    """The sums of a query that visits rows."""

    domain: Domain
    query: RowQuery

    @property
    def columns(self) -> tuple[str, ...]:
        return self.query.columns or self.domain.names[:1]

    def zero(self) -> list[IntArray]:
        empty = {n: np.empty(0, dtype=code_type(self.domain[n].size)) for n in self.columns}
        return [np.array(part) for part in self.query.sum_rows(empty)]

    def sum_batch(self, batch: Mapping[str, Codes]) -> Sequence[IntArray]:
        return self.query.sum_rows(batch)

    def finish(self, totals: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return tuple(totals)


MOST_KEPT = 1 << 22
"""Cells of all contingency tables that are kept: 32 MB."""
_Key = tuple[Clique, tuple[Attribute, ...]]


class JobTable(Table):
    """A table that knows how to run a job over its rows.

    What was counted is kept, up to ``MOST_KEPT`` cells: a search for a graph asks for distances of all pairs, then for
    the tables that matter, then for distances again, always of the same rows. What is kept is as private as the rows:
    it stays inside, and is gone with them. Whether something is there depends on what was asked alone.
    """

    _counted: Mapping[_Key, IntArray] = MappingProxyType({})

    def count(self, cliques: Sequence[Clique], grouped: Sequence[Attribute] = ()) -> tuple[IntArray, ...]:
        self._require_rows()
        kept = self._counted  # never changed, but replaced: another thread may count as well
        keys: list[_Key] = [(tuple(c), tuple(a for a in grouped if a.name in c)) for c in cliques]
        missing = list(dict.fromkeys(key for key in keys if key not in kept))
        found: dict[_Key, IntArray] = {}
        if missing:
            used = dict.fromkeys(a for _, groups in missing for a in groups)
            counted = self.count_rows([clique for clique, _ in missing], tuple(used))
            found = dict(zip(missing, counted, strict=True))
        room = MOST_KEPT - sum(table.size for table in kept.values())
        new = {key: table.copy() for key, table in found.items() if (room := room - table.size) >= 0}
        if new:
            self._counted = {**kept, **new}
        tables = {**kept, **found}
        last = {key: place for place, key in enumerate(keys)}  # each answer is an array of its own
        return tuple(
            tables[key] if key in found and last[key] == place else tables[key].copy() for place, key in enumerate(keys)
        )

    def count_rows(self, cliques: Sequence[Clique], grouped: Sequence[Attribute] = ()) -> tuple[IntArray, ...]:
        """The same by going over the rows, whatever was counted before."""
        return self._run(Counting.of(self.domain, cliques, grouped))

    def forget(self) -> None:
        super().forget()
        self._counted = MappingProxyType({})

    def _require_rows(self) -> None:
        """Refuse to answer for rows that were let go."""

    def stream(self, query: RowQuery) -> tuple[IntArray, ...]:
        return self._run(Summing(self.domain, query))

    @abstractmethod
    def _run(self, job: Job) -> tuple[IntArray, ...]: ...
