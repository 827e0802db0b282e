"""What an attacker sees of a release: its form, its numbers, and the likelihood ratio of its noisy tables.

The attacker knows all records but one (or one person's), the method, and the law of the noise. Of noisy contingency
tables that makes the likelihood ratio exact. Everything else that came out is taken as it is: its form (which tables,
which words) and its numbers, of which shadow runs tell what they mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute, Clique, Domain
from ..measurement import Measurement, Measurements
from ..models.base import Model
from ..privacy.queries.interactions import together
from ..privacy.unit import PrivacyUnit
from ..tables.memory import MemoryTable
from .neighbours import Rows

Array = NDArray[np.float64]
_MOST_NUMBERS, _BATCH = 4000, 1 << 16
_OF_THE_BOOKS = ("release", "cost", "domain", "noise", "spec", "remark")  # public before a row is read, or statements


class Seen(NamedTuple):
    """One release as the attacker sees it; ``loss`` is the log likelihood ratio of its tables."""

    form: Hashable
    loss: float
    numbers: Array


@dataclass(frozen=True, eq=False)
class World:
    """Two neighbouring tables, of which one has the canary."""

    domain: Domain
    unit: PrivacyUnit
    absent: Rows
    present: Rows
    what: str

    @cached_property
    def tables(self) -> tuple[MemoryTable, MemoryTable]:
        """Without the canary, and with it."""
        without, with_it = (r.table(self.domain, self.unit, _BATCH) for r in (self.absent, self.present))
        return without, with_it

    @cached_property
    def _exact(self) -> dict[tuple[Clique, tuple[Attribute, ...]], tuple[Any, Any]]:
        return {}

    def exact(self, clique: Clique, grouped: tuple[Attribute, ...] = ()) -> tuple[Any, Any]:
        """The true tables, of rows of which no person has more than the unit allows."""
        asked = clique, grouped
        if asked not in self._exact:
            without, with_it = (table.count([clique], grouped)[0] for table in self.tables)
            self._exact[asked] = (without, with_it)
        return self._exact[asked]

    def look(self, released: Any) -> Seen:
        """The release as the attacker sees it."""
        forms: list[Hashable] = []
        numbers: list[float] = []
        loss = 0.0
        for leaf in _leaves(released, 0):
            if isinstance(leaf, Measurement):
                forms.append((leaf.label, leaf.counts.shape))
                numbers += (leaf.counts.ravel()[:_MOST_NUMBERS] * float(leaf.grid)).tolist()
                loss += self._ratio(leaf)
            elif isinstance(leaf, np.ndarray):
                forms.append(leaf.shape)
                numbers += leaf.ravel()[:_MOST_NUMBERS].astype(np.float64).tolist()
            elif isinstance(leaf, float):
                forms.append("number")
                numbers.append(leaf)
            else:
                forms.append(leaf)
        return Seen(tuple(forms), loss, np.nan_to_num(np.array(numbers[:_MOST_NUMBERS], dtype=np.float64)))

    def _ratio(self, noisy: Measurement) -> float:
        if noisy.told_of is None or not noisy.noise.variance or self.domain.sought:
            return 0.0
        if noisy.clique is not None and noisy.grid != 1:
            return 0.0
        grouped = tuple(a for n in noisy.told_of if (a := noisy.domain[n]).groups is not None)
        without, with_it = self.exact(noisy.told_of, grouped)
        if noisy.clique is None:
            without, with_it = together(without), together(with_it)
        if noisy.counts.shape != without.shape:
            return 0.0  # of another domain than was said
        off, on = (np.abs((noisy.counts - exact).astype(np.float64)) for exact in (without, with_it))
        if noisy.noise.kind == "laplace":
            return float((off - on).sum() / noisy.noise.scale)
        return float((off**2 - on**2).sum() / (2 * noisy.noise.scale**2))


def _leaves(value: Any, depth: int) -> Iterator[Any]:
    """Measurements, arrays, floats and words in what was released, in order."""
    if depth > 8:
        return
    if isinstance(value, Measurement | np.ndarray):
        yield value
    elif isinstance(value, bool | str | None | type):
        yield repr(value)
    elif isinstance(value, int | float | np.number):
        yield float(value)
    elif isinstance(value, Measurements):
        yield from value
        yield from _leaves(value.found, depth + 1)
    elif isinstance(value, Model):
        header, arrays = value.to_archive()
        yield from _leaves(header["model"], depth + 1)
        yield from arrays.values()
    elif isinstance(value, BaseException):
        yield type(value).__name__
        yield str(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _leaves(inner, depth + 1)
    elif isinstance(value, Sequence | set | frozenset):
        for inner in value:
            yield from _leaves(inner, depth + 1)
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in _OF_THE_BOOKS:
                yield from _leaves(getattr(value, field.name), depth + 1)


def worlds(
    domain: Domain, unit: PrivacyUnit, rows: NDArray[Any] | None, sizes: Sequence[int], seed: int
) -> list[World]:
    """Candidates for the worst case: a crowd that is all alike, of two kinds, varied, lacks levels, or is nobody (or
    these public rows); and a canary that is like none of them, like the first of them, or like anything. Crowds of
    several sizes: what a threshold decides is nearest to it at one of them."""
    rng = np.random.default_rng(seed)
    shape = np.array(domain.shape)
    first, last = np.zeros(len(shape), dtype=np.int64), shape - 1
    crowds: dict[str, NDArray[Any]] = {"no other record": np.zeros((0, len(shape)))}
    for size in sizes:
        crowds[f"{size} records that are all alike"] = np.tile(first, (size, 1))
        crowds[f"{size} records of two kinds"] = np.where(np.arange(size)[:, None] % 2, last, first)
        crowds[f"{size} varied records"] = rng.integers(0, shape, size=(size, len(shape)))
        lacking = rng.integers(0, np.maximum(shape - 1, 1), size=(size, len(shape)))
        crowds[f"{size} records without the last levels"] = lacking
    if rows is not None:
        crowds = {"the public rows": rows}
    canaries = {"one of the last levels": last, "one of the first levels": first, "any": rng.integers(0, shape)}
    out = []
    for crowd, others in crowds.items():
        alone = Rows(others.astype(np.int64), np.arange(len(others)))
        for kind, record in canaries.items():
            mine = np.tile(record, (unit.max_rows, 1))
            present = alone.with_rows(mine, len(others), len(others))
            absent = alone
            if unit.relation == "replace-one":
                other = np.where(record == last, first, last)
                absent = alone.with_rows(np.tile(other, (unit.max_rows, 1)), len(others), len(others))
            out.append(World(domain, unit, absent, present, f"{kind}, among {crowd}"))
    return out
