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

An interaction that was measured by itself (:mod:`discreet.privacy.queries.interactions`) tells of S = t only: it has a
part in the mean for its own clique, and in no other.

The variance in each cell of x_t is (1/|t|²) Σ_R D_R/ω_R over the closed R ⊆ t, where ω_R is the sum of the weights and
D_R the number of interactions (degrees of freedom) settled at R: |R| minus what was settled at smaller closed sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..count_table import CountTable
from ..domain import Clique, Domain
from ..errors import InputError
from ..measurement import MOST_RECORDS, Measurement, Measurements
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
    return {c: t for c, t in made.items() if c in set(items.told_of)}


def reconciled(domain: Domain, tables: Estimates) -> Estimates:
    """The same for tables with their variances, whatever they are: the map is linear in the tables."""
    lattice = _Lattice(domain, tables)
    lattice.agree()
    return {c: replace(t, variance=lattice.variance(c), together=None) for c, t in lattice.tables.items()}


def estimated_total(measurements: Measurements | Iterable[Measurement], least: float = 1.0) -> float:
    """The number of records as far as the noisy tables tell, never from the data; at least ``least``, and at most as
    many as there can be.

    This is the total of every table of :func:`consistent`: a weighted mean of the tables' totals.
    """
    return min(max(total_and_variance(measurements)[0], least), float(MOST_RECORDS))


def total_and_variance(measurements: Measurements | Iterable[Measurement]) -> tuple[float, float]:
    """The number of records as far as the tables tell (it may come out negative), and the variance of that number."""
    return _total(_pooled(_with_public_size(measurements)))


def _total(tables: Estimates) -> tuple[float, float]:
    telling = [t for t in tables.values() if math.isfinite(t.variance)]
    if not telling:
        raise InputError("no tables were measured, so nothing is known about the number of records")
    known = [t.total for t in telling if t.variance == 0]
    if known:
        return float(np.mean(known)), 0.0
    weights = np.array([1 / (t.variance * t.cells) for t in telling])
    totals = np.array([t.total for t in telling])
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
        if m.told_of is not None and not m.proportions:
            table = m.as_table()
            out[table.clique] = _pool(out[table.clique], table) if table.clique in out else table
    return out


def _pool(a: CountTable, b: CountTable) -> CountTable:
    if min(a.variance, b.variance) == 0 < max(a.variance, b.variance):  # what is known for certain is not changed
        return a if a.variance == 0 else b
    values, variance = _mean(a.values, a.variance, b.values, b.variance)
    if a.together is None and b.together is None:
        return CountTable(a.clique, values, variance)
    top, together = _mean(a.interaction, a.closely, b.interaction, b.closely)
    return CountTable(a.clique, values - CountTable(a.clique, values).interaction + top, variance, together)


def _mean(a: NDArray[np.float64], v: float, b: NDArray[np.float64], w: float) -> tuple[NDArray[np.float64], float]:
    """Weighted by precision, with its variance; an infinite one counts for nothing."""
    if math.isinf(v) or math.isinf(w):
        return (b, w) if math.isinf(v) else (a, v)
    if v == 0 or w == 0:
        return ((a + b) / 2 if v == w else a if v == 0 else b), 0.0
    weight = w / (v + w)
    return weight * a + (1 - weight) * b, weight * v


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
        self.weights = {s: {c: w for c in above if (w := self._weight(c, s))} for s, above in self.above.items()}
        """Of each closed set the tables that tell of it, with their weights 1/(v_t·|t|); infinite for certain ones."""
        self.freedom: dict[int, int] = {}
        """D_R: interactions settled at a closed set R."""
        for s in self.closed:
            settled = sum(d for r, d in self.freedom.items() if r & s == r)
            self.freedom[s] = domain.size(self._names(s)) - settled

    def _names(self, columns: int) -> Clique:
        return tuple(name for i, name in enumerate(self.domain.names) if columns >> i & 1)

    def _weight(self, clique: Clique, s: int) -> float:
        table = self.tables[clique]
        variance = table.closely if s == self.columns[clique] else table.variance
        return math.inf if variance == 0 else 1 / (variance * table.cells)

    def agree(self) -> None:
        """Go through the closed sets from small to large; afterwards all tables agree on all of them."""
        for s in self.closed:
            if len(self.above[s]) > 1 and self.weights[s]:
                self._agree_on(self._names(s), self.above[s], self.weights[s])

    def _agree_on(self, names: Clique, cliques: list[Clique], weights: Mapping[Clique, float]) -> None:
        certain = [c for c, w in weights.items() if math.isinf(w)]
        weight = {c: 1 / self.tables[c].cells for c in certain} if certain else weights
        margins = {c: self.tables[c].onto(names).values for c in cliques}
        mean = sum(w * margins[c] for c, w in weight.items()) / sum(weight.values())
        for c in cliques:
            if [c] != certain:
                self.tables[c] = self.tables[c].plus_evenly(CountTable(names, mean - margins[c]))

    @cached_property
    def _settled(self) -> list[tuple[int, float]]:
        """Of each closed set that nothing certain covers: what it adds to the variance of every table above it."""
        return [(s, self.freedom[s] / sum(w.values())) for s, w in self.weights.items() if w]

    def variance(self, clique: Clique) -> float:
        """Of each cell of a table, once all agree."""
        own = self.columns[clique]
        return sum(added for s, added in self._settled if s & own == s) / self.tables[clique].cells ** 2
