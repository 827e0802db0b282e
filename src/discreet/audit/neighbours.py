"""Random neighbouring tables on a domain: small ones, where every edge case lives, and large ones, where the number of
records may matter. Synthetic rows, no private data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Attribute, Domain
from ..encoding import Codes, code_type
from ..privacy.unit import PrivacyUnit
from ..tables.encode import encode
from ..tables.memory import MemoryTable, Persons

SMALL_BATCH, LARGER_BATCH = 2, 1000  # rows, so that what depends on how rows are batched shows


@dataclass(frozen=True)
class Rows:
    """Codes and owners of a synthetic table, as plain arrays."""

    codes: np.ndarray
    owners: np.ndarray

    def without(self, owner: int) -> Rows:
        keep = self.owners != owner
        return Rows(self.codes[keep], self.owners[keep])

    def with_rows(self, codes: np.ndarray, owner: int, at: int) -> Rows:
        owners = np.full(len(codes), owner)
        return Rows(np.insert(self.codes, at, codes, axis=0), np.insert(self.owners, at, owners))

    def table(self, domain: Domain, unit: PrivacyUnit, batch_rows: int | None = None) -> MemoryTable:
        if domain.sought:
            return self._to_be_found(domain, unit)
        usual = SMALL_BATCH if len(self.codes) < LARGER_BATCH else LARGER_BATCH
        how: dict[str, Any] = {"threads": 1, "batch_rows": batch_rows or usual}
        columns: list[Codes] = [self.codes[:, i].astype(code_type(a.size)) for i, a in enumerate(domain.attributes)]
        identity = np.arange(2 * (int(self.owners.max(initial=0)) + 1), dtype=np.uint64).reshape(-1, 2)
        persons = Persons(self.owners.astype(np.int64), identity)
        if unit.column is not None:
            return MemoryTable(domain, columns, persons=persons, unit_column=unit.column, **how)
        if unit.relation == "replace-one":
            return CoupledTable(domain, columns, persons=persons, unit_column="place", **how)
        return MemoryTable(domain, columns, **how)

    def _to_be_found(self, domain: Domain, unit: PrivacyUnit) -> MemoryTable:
        """Rows whose columns are still to be found hold values, not codes: they are encoded twice."""
        raw = [
            [_value(a, code) for code in range(n)] for a, n in zip(domain.attributes, _raw_shape(domain), strict=True)
        ]
        rows = {a.name: [raw[i][c] for c in self.codes[:, i]] for i, a in enumerate(domain.attributes)}
        owners = {} if unit.column is None else {unit.column: [f"person {owner}" for owner in self.owners]}
        return encode({**rows, **owners}, domain, unit=unit.column)


def _value(attribute: Attribute, code: int) -> Any:
    """A value of this code; of a column whose levels are to be found, codes beyond the known ones are more texts."""
    if code >= attribute.size:
        return f"text {code}"
    if attribute.sought is not None and code < attribute.bins:
        return (attribute.edges[code] + attribute.edges[code + 1]) / 2
    return attribute.value(code)


def _raw_shape(domain: Domain) -> list[int]:
    """How many different values rows are drawn from: some more texts than levels where these are to be found."""
    more = {a.name for a in domain.sought if a.sought is not None and a.sought.what == "levels"}
    return [a.size + 3 * (a.name in more) for a in domain.attributes]


class CoupledTable(MemoryTable):
    """Rows under replace-one whose secret coins belong to their place, not to their content.

    The old and the new record have coins of the same law, independent of all others, so a privacy proof may let them
    share one (a coupling); with fixed coins an audit must do the same to see one block change and not two.
    """

    def without_persons(self) -> MemoryTable:
        return self


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables and a word on how they differ."""

    left: Rows
    right: Rows
    what: str


def pairs(domain: Domain, unit: PrivacyUnit, count: int, seed: int = 0, largest: int = 6) -> Iterator[Pair]:
    """``count`` random neighbouring pairs: sizes from 0 up, constant and varied rows, changes at any position.

    A person has up to twice as many rows as the unit allows, so that clipping is exercised.
    """
    rng = np.random.default_rng(seed)
    shape = np.array(_raw_shape(domain))

    def draw_rows(n: int) -> np.ndarray:
        if rng.random() < 0.2:  # all alike: the largest counts and the emptiest tables
            return np.tile(rng.integers(0, shape), (n, 1)).reshape(n, len(shape))
        return rng.integers(0, shape, size=(n, len(shape)))

    for number in range(count):
        persons = number % (largest + 1)
        rows = Rows(np.zeros((0, len(shape)), dtype=np.int64), np.zeros(0, dtype=np.int64))
        for owner in range(persons):
            rows = rows.with_rows(draw_rows(_rows_of(unit, rng)), owner, int(rng.integers(0, len(rows.codes) + 1)))
        newcomer = persons
        at = int(rng.integers(0, len(rows.codes) + 1))
        more = rows.with_rows(draw_rows(_rows_of(unit, rng)), newcomer, at)
        if unit.relation == "add-remove":
            yield Pair(rows, more, "one unit added") if rng.random() < 0.5 else Pair(more, rows, "one unit removed")
        else:
            replaced = rows.with_rows(draw_rows(_rows_of(unit, rng)), newcomer, at)
            yield Pair(more, replaced, "one unit replaced")


def large_tables(domain: Domain, unit: PrivacyUnit, sizes: Iterable[int], seed: int = 0) -> Iterator[Rows]:
    """Random tables of so many units each."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        rows = np.ones(size, dtype=np.int64)
        if unit.column is not None:
            rows = rng.integers(1, 2 * unit.max_rows + 1, size)
        owners = rng.permutation(np.repeat(np.arange(size), rows))
        # Some tables favour the first levels, so that not all cells are alike.
        drawn = rng.random((len(owners), len(domain))) ** rng.integers(1, 4)
        yield Rows((drawn * np.array(_raw_shape(domain))).astype(np.int64), owners)


def large_pairs(domain: Domain, unit: PrivacyUnit, sizes: Iterable[int], seed: int = 0) -> Iterator[Pair]:
    """Neighbouring pairs of so many units each."""
    rng = np.random.default_rng(seed + 1)
    for rows in large_tables(domain, unit, sizes, seed):
        newcomer = int(rows.owners.max(initial=-1)) + 1
        at = int(rng.integers(0, len(rows.codes) + 1))

        def with_newcomer(rows: Rows = rows, newcomer: int = newcomer, at: int = at) -> Rows:
            codes = rng.integers(0, _raw_shape(domain), size=(_rows_of(unit, rng), len(domain)))
            return rows.with_rows(codes, newcomer, at)

        if unit.relation == "add-remove":
            yield Pair(with_newcomer(), rows, "one unit removed")
        else:
            yield Pair(with_newcomer(), with_newcomer(), "one unit replaced")


def _rows_of(unit: PrivacyUnit, rng: np.random.Generator) -> int:
    return 1 if unit.column is None else int(rng.integers(1, 2 * unit.max_rows + 1))
