"""Noisy tables that overlap, made to agree: exact generalised least squares, in closed form.

The problem: noisy tables y_t = x_t + noise of variance v_t in each cell, t over cliques of columns; find the tables x_t
that are margins of one (signed) table over all columns and minimise Σ_t ‖y_t − x_t‖²/v_t.

Why it has a closed form. Split each table into its interactions, one for each subset S of t. The S-interaction of x_t
is the S-interaction of its S-margin, spread evenly over the |t|/|S| cells that share a cell of S; so x_t are margins of
one table if and only if, for each S, all tables that contain S have the same S-interaction in their S-margin. That
interaction is measured by table t with an independent error of variance v_t·|t|/|S| in each direction. So the problem
falls apart into one weighted mean for each S, over all t ⊇ S, with weights 1/(v_t·|t|), |t| the number of cells.

All S that lie in the same tables have the same weights. Hence it is enough to go through the *closed* sets (all
intersections of measured cliques, the empty one included, and the cliques themselves) from small to large: replace the
margin of each table by the weighted mean of all of them, and spread the difference evenly. The smaller interactions
agree already at that point, so they stay as they are. Nothing is clipped in between; clip, or project, afterwards.

The variance in each cell of x_t is (1/|t|²) Σ_R D_R/ω_R over the closed R ⊆ t, where ω_R is the sum of the weights and
D_R the number of interactions (degrees of freedom) settled at R: |R| minus what was settled at smaller closed sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..errors import InputError
from ..measurement import Measurement, Measurements
from .public_tables import check_public, fits

Array = NDArray[np.float64]
Estimates = dict[Clique, tuple[Array, float]]


def consistent(measurements: Measurements | Iterable[Measurement]) -> Estimates:
    """For each measured clique, the generalised-least-squares table (on the scale of counts; may hold negative cells)
    and the variance that the noise leaves in each of its cells.

    Public tables count as known for certain: see :mod:`.public_tables`. Several measurements of one clique are pooled.
    A number of records that the curator was told to be public is used as well.
    """
    tables = pooled(measurements)
    if not tables:
        return {}
    items = Measurements(measurements)
    made = reconciled(items.domain, tables)
    return {c: t for c, t in made.items() if c in set(items.cliques)}


def reconciled(domain: Domain, tables: Estimates) -> Estimates:
    """The same for tables with their variances, whatever they are: the map is linear in the tables."""
    lattice = _Lattice(domain, tables)
    lattice.agree()
    return {t.clique: (t.values, lattice.variance(t)) for t in lattice.tables}


def estimated_total(measurements: Measurements | Iterable[Measurement], least: float = 1.0) -> float:
    """The number of records as far as the noisy tables tell, never from the data; at least ``least``.

    This is the total of every table of :func:`consistent`: a weighted mean of the tables' totals.
    """
    return max(total_and_variance(measurements)[0], least)


def total_and_variance(measurements: Measurements | Iterable[Measurement]) -> tuple[float, float]:
    """The number of records as far as the tables tell (it may come out negative), and the variance of that number."""
    return _total(_pooled(_with_public_size(measurements)))


def _total(tables: Estimates) -> tuple[float, float]:
    if not tables:
        raise InputError("no tables were measured, so nothing is known about the number of records")
    known = [float(y.sum()) for y, v in tables.values() if v == 0]
    if known:
        return float(np.mean(known)), 0.0
    weights = np.array([1 / (v * y.size) for y, v in tables.values()])
    totals = np.array([y.sum() for y, _ in tables.values()])
    return float(weights @ totals / weights.sum()), float(1 / weights.sum())


def pooled(measurements: Measurements | Iterable[Measurement]) -> Estimates:
    """One table and variance a clique, several measurements of a clique weighted by their precision; public proportions
    as counts of as many records as the other tables tell. Public tables that cannot be true are refused."""
    items = _with_public_size(measurements)
    out = _pooled(items)
    if any(m.origin == "public" for m in items):
        total, variance = _total(out)
        check_public(items, max(total, 1.0), variance)
        for m in items:
            if m.proportions and m.clique is not None:
                known = (m.values * max(total, 1.0), 0.0)
                out[m.clique] = _pool(out[m.clique], known) if m.clique in out else known
    return out


def _pooled(items: Iterable[Measurement]) -> Estimates:
    out: Estimates = {}
    for m in items:
        if m.clique is None or m.proportions:
            continue
        values, variance = m.values, m.standard_deviation**2
        if m.clique in out:
            values, variance = _pool(out[m.clique], (values, variance))
        out[m.clique] = (values, variance)
    return out


def _pool(a: tuple[Array, float], b: tuple[Array, float]) -> tuple[Array, float]:
    if a[1] == 0 or b[1] == 0:  # what is known for certain is not changed by what is not
        return ((a[0] + b[0]) / 2, 0.0) if a[1] == b[1] else (a if a[1] == 0 else b)
    weight = b[1] / (a[1] + b[1])
    return weight * a[0] + (1 - weight) * b[0], weight * a[1]


def _with_public_size(measurements: Measurements | Iterable[Measurement]) -> list[Measurement]:
    items = list(measurements)
    release: Mapping[str, object] = getattr(measurements, "release", {})
    size, unit = release.get("public_size"), release.get("unit")
    # Where persons have several rows the stated size is not the number of rows that were counted.
    by_row = isinstance(unit, Mapping) and unit.get("column") is None
    if isinstance(size, int) and by_row and items and not any(m.clique == () and m.noise.variance == 0 for m in items):
        stated = Measurement.public(items[0].domain, (), size)
        if fits(stated, items):
            items.append(stated)
    return items


@dataclass(eq=False)
class _Table:
    clique: Clique
    columns: int  # the set of columns, as bits
    values: Array
    variance: float


class _Lattice:
    """The measured tables and all intersections of their cliques."""

    def __init__(self, domain: Domain, tables: Estimates) -> None:
        self.domain = domain
        self.tables = [_Table(c, self._bits(c), np.array(y), v) for c, (y, v) in tables.items()]
        closed: set[int] = {0}
        for t in self.tables:
            closed |= {t.columns & s for s in closed} | {t.columns}
        self.closed = sorted(closed, key=lambda s: (s.bit_count(), s))
        self.above = {s: [t for t in self.tables if t.columns & s == s] for s in self.closed}
        self.freedom: dict[int, int] = {}
        """D_R: interactions settled at a closed set R."""
        for s in self.closed:
            settled = sum(d for r, d in self.freedom.items() if r & s == r)
            self.freedom[s] = self._cells(s) - settled

    def _bits(self, clique: Iterable[str]) -> int:
        return sum(1 << self.domain.index(n) for n in clique)

    def _cells(self, columns: int) -> int:
        return math.prod(k for i, k in enumerate(self.domain.shape) if columns >> i & 1)

    def agree(self) -> None:
        """Go through the closed sets from small to large; afterwards all tables agree on all of them."""
        for s in self.closed:
            if len(self.above[s]) > 1:
                self._agree_on(s, self.above[s])

    def _agree_on(self, columns: int, tables: list[_Table]) -> None:
        certain = [t for t in tables if t.variance == 0]
        weight = {id(t): 1 / ((t.variance or 1.0) * t.values.size) for t in certain or tables}
        axes = {id(t): self._away(t, columns) for t in tables}
        margins = {id(t): t.values.sum(axis=axes[id(t)]) for t in tables}
        mean = sum(w * margins[k] for k, w in weight.items()) / sum(weight.values())
        for t in tables:
            if [t] == certain:
                continue
            spread = (mean - margins[id(t)]) * (self._cells(columns) / t.values.size)
            t.values += np.expand_dims(spread, axes[id(t)])

    def _away(self, table: _Table, columns: int) -> tuple[int, ...]:
        return tuple(i for i, n in enumerate(table.clique) if not columns >> self.domain.index(n) & 1)

    def variance(self, table: _Table) -> float:
        total = 0.0
        for s in self.closed:
            if s & table.columns == s and all(t.variance > 0 for t in self.above[s]):
                total += self.freedom[s] / sum(1 / (t.variance * t.values.size) for t in self.above[s])
        return total / table.values.size**2
