"""Random neighbouring tables on a domain: small ones, where every edge case lives. Synthetic rows, no private data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Domain
from ..encoding import Codes, code_type
from ..privacy.unit import PrivacyUnit
from ..tables.memory import MemoryTable, Persons

# Batches of two rows, so that what depends on how rows are batched shows.
_SMALL: dict[str, Any] = {"threads": 1, "batch_rows": 2}


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

    def table(self, domain: Domain, unit: PrivacyUnit) -> MemoryTable:
        columns: list[Codes] = [self.codes[:, i].astype(code_type(a.size)) for i, a in enumerate(domain.attributes)]
        identity = np.arange(2 * (int(self.owners.max(initial=0)) + 1), dtype=np.uint64).reshape(-1, 2)
        persons = Persons(self.owners.astype(np.int64), identity)
        if unit.column is not None:
            return MemoryTable(domain, columns, persons=persons, unit_column=unit.column, **_SMALL)
        if unit.relation == "replace-one":
            return CoupledTable(domain, columns, persons=persons, unit_column="place", **_SMALL)
        return MemoryTable(domain, columns, **_SMALL)


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
    shape = np.array(domain.shape)

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


def _rows_of(unit: PrivacyUnit, rng: np.random.Generator) -> int:
    return 1 if unit.column is None else int(rng.integers(1, 2 * unit.max_rows + 1))
