"""What is compared: the rows, and models or other people's synthetic rows. Of each, tables of cliques and some records.

Rows are read through the tables of :mod:`discreet.tables`, by counts alone: one pass for all cliques, and one for the
distinct records of a random sample. So files larger than memory and Spark do as well as rows in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..errors import InputError
from ..models.base import Model
from ..models.marginals import marginals
from ..tables.base import KEY_BYTES, Table

Array = NDArray[np.float64]
SAMPLE = 20_000
"""Records that classifiers see of each side."""
LARGEST_TABLE, MOST_CELLS = 2**20, 2**24
MOST_PAIRS = 5000
_KEY = bytes(KEY_BYTES)  # nothing is released: the same sample every time is a virtue


@dataclass(frozen=True, eq=False)
class Side:
    """Tables (proportions, in the order of the cliques) and records, as codes; how the tables were computed."""

    name: str
    tables: tuple[Array, ...]
    codes: NDArray[np.int64]
    computed: str
    records: int | None = None


@dataclass(frozen=True)
class Asked:
    """The cliques that are compared, and how many pairs and triples there are in all."""

    columns: tuple[Clique, ...]
    pairs: tuple[Clique, ...]
    triples: tuple[Clique, ...]
    every_pair: int
    every_triple: int

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return (*self.columns, *self.pairs, *self.triples)


def asked_of(domain: Domain, most_triples: int) -> Asked:
    """All columns, all pairs that a table can be held of, and some triples: by a public rule, like any others."""
    columns = tuple((name,) for name in domain.names)
    pairs, every_pair = _some(domain, 2, MOST_PAIRS)
    triples, every_triple = _some(domain, 3, most_triples)
    return Asked(columns, pairs, triples, every_pair, every_triple)


def _some(domain: Domain, k: int, most: int) -> tuple[tuple[Clique, ...], int]:
    """At most so many cliques of k columns, and so many cells in all; those whose names have the smallest digests."""
    every = list(combinations(domain.names, k))
    order = sorted(range(len(every)), key=lambda i: hashlib.sha256("\0".join(every[i]).encode()).digest())
    chosen: list[int] = []
    cells = 0
    for i in order:
        size = domain.size(every[i])
        if size <= LARGEST_TABLE and cells + size <= MOST_CELLS and len(chosen) < most:
            chosen.append(i)
            cells += size
    return tuple(every[i] for i in sorted(chosen)), len(every)


def rows_side(name: str, table: Table, asked: Asked, *, with_records: bool = True) -> Side:
    """Rows, by count queries."""
    counts = table.count([(), *asked.cliques])
    rows = int(counts[0])
    if rows == 0:
        raise InputError(f"{name} holds no rows, so that there is nothing to compare")
    tables = tuple(count / rows for count in counts[1:])
    codes = _records(table, rows) if with_records else np.zeros((0, len(table.domain)), dtype=np.int64)
    return Side(name, tables, codes, "counted", rows)


def _records(table: Table, rows: int) -> NDArray[np.int64]:
    some = table if rows <= SAMPLE else table.sample(Fraction(SAMPLE, rows), _KEY)
    found = some.count_sparse(table.domain.names)
    cells = np.array(list(found), dtype=np.int64).reshape(len(found), len(table.domain))
    codes = np.repeat(cells, list(found.values()), axis=0)
    return np.random.default_rng(0).permutation(codes)


def model_side(name: str, model: Model, asked: Asked, *, with_records: bool = True) -> Side:
    """A model: its exact marginals where its graph allows them, and drawn records."""
    tables, computed = _in_parts(model, asked)
    codes = (
        model.sample(SAMPLE, random_state=0, labels=True).codes if with_records else np.zeros((0, len(model.domain)))
    )
    return Side(name, tables, codes.astype(np.int64), computed)


def _in_parts(model: Model, asked: Asked) -> tuple[tuple[Array, ...], str]:
    """Pairs are cheapest when all are asked for at once, by themselves."""
    out: list[Array] = []
    computed = ""
    for part in (asked.columns, asked.pairs, asked.triples):
        found, computed = marginals(model, part)
        out += found
    return tuple(out), computed


def require_comparable(name: str, what: Model | Table, domain: Domain) -> None:
    """A release has the columns and levels by which the rows are counted."""
    if what.domain.fingerprint != domain.fingerprint:
        if what.domain.found or domain.found:
            raise InputError(
                f"{name} has other bins or levels than the rows are counted by, and distances over other bins do not "
                "compare. Evaluate a release that has found its own by itself, with the schema that left them open, or "
                "with none; or compare records of several under one schema that lists bins and levels: `discreet "
                "sample` draws them, and `discreet evaluate one.csv other.csv rows.csv --schema listed.toml`"
            )
        raise InputError(
            f"{name} has other columns or levels than the schema of the rows, so that they cannot be compared; give "
            "the schema that it was learned with"
        )


def side(name: str, what: Model | Table, asked: Asked, *, with_records: bool = True) -> Side:
    """A release, a model or synthetic rows under the domain of the rows."""
    if isinstance(what, Model):
        return model_side(name, what, asked, with_records=with_records)
    return rows_side(name, what, asked, with_records=with_records)


def real_singles(real: Side, asked: Asked) -> dict[str, Array]:
    """The tables of single columns, by name."""
    return {clique[0]: table for clique, table in zip(asked.columns, real.tables, strict=False)}


def parts(values: Sequence[float], asked: Asked) -> tuple[Array, Array, Array]:
    """One number a clique, apart: columns, pairs, triples."""
    numbers = np.array(values, dtype=np.float64)
    first, second = len(asked.columns), len(asked.columns) + len(asked.pairs)
    return numbers[:first], numbers[first:second], numbers[second:]
