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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..count_table import CountTable
from ..domain import Clique, Domain
from ..errors import InputError
from ..measurement import Measurement, Measurements
from .public_tables import check_public, fits

Estimates = dict[Clique, CountTable]


def consistent(measurements: Measurements | Iterable[Measurement]) -> Estimates:
    """For each measured clique, the generalised-least-squares table (on the scale of counts; may hold negative cells)
    with the variance that the noise leaves in each of its cells.

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
    return {c: replace(t, variance=lattice.variance(c)) for c, t in lattice.tables.items()}


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
    known = [t.total for t in tables.values() if t.variance == 0]
    if known:
        return float(np.mean(known)), 0.0
    weights = np.array([1 / (t.variance * t.cells) for t in tables.values()])
    totals = np.array([t.total for t in tables.values()])
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
                known = CountTable(m.clique, m.values * max(total, 1.0))
                out[m.clique] = _pool(out[m.clique], known) if m.clique in out else known
    return out


def _pooled(items: Iterable[Measurement]) -> Estimates:
    out: Estimates = {}
    for m in items:
        if m.clique is not None and not m.proportions:
            table = m.as_table()
            out[m.clique] = _pool(out[m.clique], table) if m.clique in out else table
    return out


def _pool(a: CountTable, b: CountTable) -> CountTable:
    if a.variance == 0 or b.variance == 0:  # what is known for certain is not changed by what is not
        both = a.variance == b.variance
        return replace(a, values=(a.values + b.values) / 2) if both else a if a.variance == 0 else b
    weight = b.variance / (a.variance + b.variance)
    return CountTable(a.clique, weight * a.values + (1 - weight) * b.values, weight * a.variance)


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


class _Lattice:
    """The measured tables and all intersections of their cliques; sets of columns are bits."""

    def __init__(self, domain: Domain, tables: Estimates) -> None:
        self.domain = domain
        self.tables = dict(tables)
        self.columns = {c: sum(1 << domain.index(n) for n in c) for c in tables}
        closed: set[int] = {0}
        for columns in self.columns.values():
            closed |= {columns & s for s in closed} | {columns}
        self.closed = sorted(closed, key=lambda s: (s.bit_count(), s))
        self.above = {s: [c for c, columns in self.columns.items() if columns & s == s] for s in self.closed}
        self.freedom: dict[int, int] = {}
        """D_R: interactions settled at a closed set R."""
        for s in self.closed:
            settled = sum(d for r, d in self.freedom.items() if r & s == r)
            self.freedom[s] = domain.size(self._names(s)) - settled

    def _names(self, columns: int) -> Clique:
        return tuple(name for i, name in enumerate(self.domain.names) if columns >> i & 1)

    def agree(self) -> None:
        """Go through the closed sets from small to large; afterwards all tables agree on all of them."""
        for s in self.closed:
            if len(self.above[s]) > 1:
                self._agree_on(self._names(s), self.above[s])

    def _agree_on(self, names: Clique, cliques: list[Clique]) -> None:
        certain = [c for c in cliques if self.tables[c].variance == 0]
        weight = {c: 1 / ((self.tables[c].variance or 1.0) * self.tables[c].cells) for c in certain or cliques}
        margins = {c: self.tables[c].onto(names).values for c in cliques}
        mean = sum(w * margins[c] for c, w in weight.items()) / sum(weight.values())
        for c in cliques:
            if [c] != certain:
                self.tables[c] = self.tables[c].plus_evenly(CountTable(names, mean - margins[c]))

    @cached_property
    def _settled(self) -> list[tuple[int, float]]:
        """Of each closed set that nothing certain covers: what it adds to the variance of every table above it."""
        out = []
        for s in self.closed:
            above = [self.tables[c] for c in self.above[s]]
            if all(t.variance > 0 for t in above):
                out.append((s, self.freedom[s] / sum(1 / (t.variance * t.cells) for t in above)))
        return out

    def variance(self, clique: Clique) -> float:
        """Of each cell of a table, once all agree."""
        own = self.columns[clique]
        return sum(added for s, added in self._settled if s & own == s) / self.tables[clique].cells ** 2
