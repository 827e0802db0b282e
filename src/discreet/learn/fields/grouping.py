"""Levels that are taken together where there are too many of them for the records, and how they are told apart again.

Two columns of a hundred levels have ten thousand cells, of which noise hides nearly all. With levels taken together to
ten groups each, a hundred cells say how the columns depend on each other; and the noisy tables of single columns, which
are known well, how the levels of a group share what it has:

    P(x) = P(groups of x) · Π P(level | its group).

What is lost is how columns depend on each other within groups. So a group has just enough records to be seen: levels
are taken together, the smallest with the smaller of its neighbours (of names, which have none, the smallest two), until
each group has

    T = √(c·N·σ)

records, N their number and σ the noise of a table that shares the budget with twice as many tables as there are
columns: a cell of two such groups would hold T²/N = cσ records if they were independent. A level with more records than
that stays by itself.

All of it follows from noisy tables of single columns, which were released before: post-processing, which costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...attribute import Attribute, Groups
from ...domain import Domain, in_groups
from ...errors import counted
from ...frames import free_name
from ...measurement import Measurement, Measurements
from ...noise import Noise
from ..consistency import estimated_total, pooled
from .likelihood import Array

GROUPS = "groups"
"""Under which name it is found which levels are taken together."""
MANY = 12
"""Columns with more levels than this may have them taken together."""
SEEN = 0.4
"""c: how many records a cell of two groups would hold, in deviations of its noise."""


def may_group(domain: Domain) -> bool:
    """Whether there are columns with many levels: public. Rules speak of levels, so that all columns keep theirs."""
    return max(domain.shape, default=0) > MANY and not domain.impossible and not domain.dependencies


def groups_of(domain: Domain, released: Measurements, noise: float) -> dict[str, list[int]]:
    """By column the group of each level, where levels are to be taken together, as released tables of single columns
    say; ``noise``: σ of the module's text."""
    least = math.sqrt(SEEN * estimated_total(released) * noise)
    tables = pooled(released)
    found = {}
    for a in domain.attributes:
        if a.size > MANY and (a.name,) in tables:
            codes = _groups(np.maximum(tables[a.name,].values, 0.0), least, _in_order(a))
            if max(codes) + 1 < a.size:
                found[a.name] = codes
    return found


def as_grouped(domain: Domain, codes: Mapping[str, Sequence[int]]) -> Domain:
    """The columns with these levels taken together."""
    return in_groups(domain, [_attribute(domain[n], Groups(domain[n], tuple(own)), domain) for n, own in codes.items()])


def _in_order(a: Attribute) -> NDArray[np.intp] | None:
    """The levels in the order in which they lie next to each other; None for names, which do not."""
    if a.dates is None and not a.edges:
        return np.arange(a.size) if a.levels and all(type(level) is int for level in a.levels) else None
    if not a.heaps:
        return np.arange(a.size)
    ends = [*a.edges[:-1], *a.heaps]
    return np.array([*np.argsort(ends, kind="stable"), *range(len(ends), a.size)])


def _groups(counts: Array, least: float, order: NDArray[np.intp] | None) -> list[int]:
    """The group of each level; two groups at least."""
    groups = _of_neighbours(counts[order], least) if order is not None else _of_names(counts, least)
    levels = [list(map(int, g)) if order is None else [int(order[i]) for i in g] for g in groups]
    codes = [0] * len(counts)
    for number, group in enumerate(sorted(levels, key=min)):
        for level in group:
            codes[level] = number
    return codes


def _of_neighbours(counts: Array, least: float) -> list[list[int]]:
    groups, mass = [[i] for i in range(len(counts))], counts.copy()
    while len(groups) > 2:
        i = int(np.argmin(mass))
        if mass[i] >= least:
            break
        before = i > 0 and (i + 1 == len(mass) or mass[i - 1] <= mass[i + 1])
        first = i - 1 if before else i
        groups[first] += groups.pop(first + 1)
        mass[first] += mass[first + 1]
        mass = np.delete(mass, first + 1)
    return groups


def _of_names(counts: Array, least: float) -> list[list[int]]:
    heap = [(float(c), [i]) for i, c in enumerate(counts)]
    heapify(heap)
    while len(heap) > 2 and heap[0][0] < least:
        (a, own), (b, more) = heappop(heap), heappop(heap)
        heappush(heap, (a + b, own + more))
    return [own for _, own in heap]


def _attribute(a: Attribute, groups: Groups, domain: Domain) -> Attribute:
    labels = []
    for number in range(groups.number):
        own = [label for label, code in zip(a.labels, groups.codes, strict=True) if code == number]
        labels.append(own[0] if len(own) == 1 else f"{own[0]} and {counted(len(own) - 1, 'more level')}")
    name = free_name(f"{a.name} in groups", domain.names)
    return Attribute.categorical(name, labels, peeked=frozenset(), groups=groups)


# -- what was measured -------------------------------------------------------------------------------------------------


def split_domain(measurements: Measurements, domain: Domain | None) -> tuple[Domain, Domain]:
    """The columns, and the columns with groups in the place of levels as they were measured."""
    all_of_them = measurements.domain
    grouped = [a for a in all_of_them.attributes if a.groups is not None]
    own = domain or all_of_them.project([a.name for a in all_of_them.attributes if a.groups is None])
    return own, in_groups(own, grouped)


def seen_in(grouped: Domain, measurements: Measurements) -> Measurements:
    """The same tables over columns in groups: those of levels added up. Cells of larger groups are noisier then; all of
    a table count as noisy as they are on average."""
    instead = {a.groups.of.name: a for a in grouped.attributes if a.groups is not None}
    if not instead:
        return measurements
    return Measurements([_seen(m, grouped, instead) for m in measurements], dict(measurements.release))


def _seen(m: Measurement, grouped: Domain, instead: Mapping[str, Attribute]) -> Measurement:
    own = m.clique or ()
    axes = {i: g for i, n in enumerate(own) if n in instead and (g := instead[n].groups) is not None}
    clique = None if m.clique is None else tuple(instead[n].name if n in instead else n for n in own)
    if not axes:
        return replace(m, domain=grouped if m.clique is None else grouped.project(own))
    times = math.prod(g.of.size / g.number for g in axes.values())
    noise = Noise(m.noise.kind, m.noise.scale * math.sqrt(times)) if m.noise.variance else m.noise
    counts = together(m.counts, axes)
    return replace(m, counts=counts, noise=noise, clique=clique, domain=grouped.project(clique or ()))


def precisions(grouped: Domain, released: Measurements) -> dict[str, float]:
    """1/variance in the cells of the tables that tell the levels of a group apart, by the names of the groups."""
    tables = pooled(released)
    columns = [(a.name, a.groups.of.name) for a in grouped.attributes if a.groups is not None]
    return {name: 1 / max(tables[column,].variance, 1e-12) for name, column in columns}


def shares_within(grouped: Domain, measurements: Measurements, *, shrunk: bool = True) -> dict[str, Array]:
    """P(level | its group) of each column in groups, by its noisy table.

    Within a group the levels are shrunk towards equal shares, by as much as noise makes them differ [James and Stein];
    or not, which tells how far the noise leaves them open: the error of what is shrunk is no larger on average, but
    noise drawn anew around equal shares would be shrunk away and show none of it.
    """
    tables = pooled(measurements)
    out = {}
    for a in grouped.attributes:
        if a.groups is not None:
            table = tables[a.groups.of.name,]
            out[a.groups.of.name] = _shares(table.values, table.variance if shrunk else 0.0, np.asarray(a.groups.codes))
    return out


def _shares(counts: Array, variance: float, codes: NDArray[np.intp]) -> Array:
    members = np.bincount(codes)
    mean = np.bincount(codes, counts) / members
    apart = np.bincount(codes, (counts - mean[codes]) ** 2)
    kept = np.clip(1 - (members - 1) * variance / np.maximum(apart, 1e-300), 0.0, 1.0)
    shrunk = np.maximum(mean[codes] + kept[codes] * (counts - mean[codes]), 0.0)
    sums = np.bincount(codes, shrunk)
    return np.where(sums[codes] > 0, shrunk / np.maximum(sums, 1e-300)[codes], 1.0 / members[codes])


def together(table: NDArray[Any], groups: Mapping[int, Groups]) -> NDArray[Any]:
    """A table with the levels of some of its axes taken together: cells are added up."""
    for axis, own in groups.items():
        codes = np.asarray(own.codes)
        order = np.argsort(codes, kind="stable")
        firsts = np.searchsorted(codes[order], np.arange(own.number))
        table = np.add.reduceat(np.take(table, order, axis=axis), firsts, axis=axis)
    return table
