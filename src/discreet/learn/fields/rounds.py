"""What the rounds of :mod:`.adaptive` have in common: candidates, and what the model so far expects of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Self

from ...domain import Clique, Domain
from ...errors import CostError
from ...graph import DEFAULT_MEMORY_LIMIT, size_text
from ...inference.exact import get_engine
from ...measurement import Measurements
from ...models.marginals import MOST_LEVELS
from ...privacy.budget import Budget
from ..consistency import estimated_total, pooled
from ..procedure import Found, Step, Whole
from .coordinates import MOST_INTERACTIONS, most_bytes
from .evidence import records_and_known
from .grouping import GROUPS, as_grouped, groups_of, may_group, precisions
from .growth import Prices
from .likelihood import Array
from .mirror import MOST_ITERATIONS_CLOSELY, STEPS, MirrorFit, mirror_fit
from .purpose import Purpose

COLUMNS_ALONE = "columns_alone"
"""Under which name it is found that single columns were all that was asked."""
MOST_CANDIDATES = 3000
"""Distances that are asked for at once: beyond, those that were largest before, or that have fewest cells."""
MOST_PAIRS = 500_000
"""Pairs that are looked at in all. With more, those of columns that are near each other in the schema."""
_ROOM_FOR_MORE = 2**26
"""Bytes that the model so far may take with tables beside those of its tree."""
_BYTES_PER_PAIR, _SECONDS_PER_PAIR = 700, 5e-5
_SECONDS, _SECONDS_PER_CELL, _SECONDS_PER_COLUMN = 0.2, 6.5e-8, 5e-3
"""Measured on one core: of every fit; a pair that is looked at; a cell of the junction tree, in each iteration of the
last fit (other fits, and the descent's own work, included); a column. Where noise is small a fit takes all the
iterations it may (Adult at ε = 100: 11.3 s), and whether noise is small depends on the number of records."""


def fitted(domain: Domain, measured: Measurements, *, rough: bool = False) -> MirrorFit:
    """All tables fitted together; a column that is in none of them is taken to be uniform."""
    tables = {c: t for c, t in pooled(measured).items() if c}
    total, known = records_and_known(measured, tables)
    return mirror_fit(domain, tables, total, known=known, rough=rough)


def candidate_pairs(domain: Domain, most_cells: float) -> list[Clique]:
    """Pairs with few enough cells, by public things alone. Beyond a thousand columns not all of them: those that stand
    near each other, as what belongs together often does."""
    names, sizes = domain.names, domain.shape
    reach = len(names) if len(names) ** 2 <= 2 * MOST_PAIRS else max(1, MOST_PAIRS // len(names))
    return [
        (name, names[j])
        for i, name in enumerate(names)
        for j in range(i + 1, min(len(names), i + 1 + reach))
        if sizes[i] * sizes[j] <= most_cells
    ]


def most_work(domain: Domain, most_cells: int) -> tuple[int, float]:
    """Bytes and seconds at most, if the junction tree grows to ``most_cells``; of public things alone."""
    levels = sum(domain.shape)
    pairs = len(domain) * (len(domain) - 1) // 2
    entries = min(levels, MOST_LEVELS) ** 2
    cells = min(most_cells, domain.size())
    memory = 3 * 8 * entries + _BYTES_PER_PAIR * min(pairs, MOST_PAIRS) + 8 * 40 * cells
    memory += most_bytes(min(cells, MOST_INTERACTIONS))
    seconds = _SECONDS + _SECONDS_PER_PAIR * min(pairs, MOST_PAIRS) + _SECONDS_PER_COLUMN * len(domain)
    seconds += _SECONDS_PER_CELL * cells * STEPS * MOST_ITERATIONS_CLOSELY
    return memory, seconds


def _require_room(domain: Domain, pairs: Sequence[Clique]) -> None:
    """Refuse more columns than this way is made for, before anything is asked."""
    levels = sum(domain.shape)
    if levels > MOST_LEVELS and len(pairs) > MOST_CANDIDATES:
        raise CostError(
            f"the graph of {len(domain):,} columns with {levels:,} levels in all is not known; to look for it takes "
            f"tables of all pairs: {size_text(3 * 8 * levels**2)}. This is done for {MOST_LEVELS:,} levels at most. "
            "Nothing was asked. Ways out: fewer columns, or coarser ones; a part of the columns at a time; a graph or "
            "cliques that are publicly known"
        )


def because(released: Measurements, chosen: Iterable[Clique], distances: Mapping[Clique, float]) -> Found:
    """Why tables are measured, added to what was said before: the released distance of each, in the order in which they
    are asked for; None for what was measured before."""
    said = [[list(c), None if c not in distances else round(distances[c])] for c in chosen]
    return {"chosen_by": [*released.found.get("chosen_by", []), *said]}


class Rounds:
    """The steps of one procedure; every decision follows from what was released.

    Where there are fewer than ``enough`` records, noise would hide which pairs matter, and single columns are all that
    is asked.
    """

    def __init__(self, whole: Whole, shares: Sequence[Budget], most_cells: int, purpose: Purpose, groups: bool) -> None:
        self.shares, self.most_cells = shares, most_cells
        self._look_at(whole, purpose)
        self.groups = groups and may_group(self.domain)
        self.codes: Mapping[str, Sequence[int]] = {}
        self.apart: Mapping[str, float] = {}
        # Of levels that will be taken together there will be fewer.
        self.pairs = candidate_pairs(self.domain, math.inf if self.groups else most_cells)
        _require_room(self.domain, self.pairs)

    def _look_at(self, whole: Whole, purpose: Purpose) -> None:
        self.whole, self.domain, self.unit, self.purpose = whole, whole.domain, whole.unit, purpose
        self.columns: list[Clique] = [(name,) for name in self.domain.names]

    @property
    def shared_noise(self) -> float:
        """The noise in the cells of a table that shares the budget with twice as many tables as there are columns."""
        raise NotImplementedError

    def grouped(self, released: Measurements) -> Self:
        """These rounds over columns with levels taken together, where there are too many for the records. Which are is
        found once, and holds for all steps."""
        codes = released.found.get(GROUPS)
        if codes is None:
            codes = groups_of(self.domain, released, self.shared_noise) if self.groups else {}
        return self.in_groups(codes, released) if self.groups else self

    def in_groups(self, codes: Mapping[str, Sequence[int]], released: Measurements) -> Self:
        """Where it is known which levels are taken together. Now pairs can be told that are too large, all the same."""
        domain = as_grouped(self.domain, codes)
        rounds = copy(self)
        rounds._look_at(replace(self.whole, domain=domain), self.purpose.in_groups(domain))
        rounds.codes, rounds.apart = codes, precisions(domain, released)
        name = dict(zip(self.domain.names, domain.names, strict=True))
        pairs = [(name[a], name[b]) for a, b in self.pairs]
        rounds.pairs = [pair for pair in pairs if domain.size(pair) <= self.most_cells]
        return rounds

    @property
    def also(self) -> str:
        """For the plan: what else there is to say of it."""
        return ""

    @property
    def enough(self) -> float:
        raise NotImplementedError

    def steps(self) -> tuple[Step, ...]:
        raise NotImplementedError

    def columns_alone(self, whole: Whole, share: Budget) -> Step:
        """All of a share for single columns."""
        return whole.measure(
            "tables of single columns", Prices(self.domain, self.unit, share, self.purpose).request(self.columns)
        )

    @property
    def is_known(self) -> bool:
        """Whether the number of records is public."""
        return self.whole.public_size is not None and self.whole.unit.column is None

    @property
    def too_few(self) -> bool:
        """Whether records are publicly known to be too few for pairs."""
        return self.is_known and float(self.whole.public_size or 0) < self.enough

    @property
    def note(self) -> str:
        """For the plan: when pairs are not asked for."""
        enough = float(f"{self.enough:.2g}")
        hidden = f"fewer than some {enough:,.0f} records noise would hide which pairs of columns matter"
        if self.too_few:
            return f"The model will be that of independent columns: with {hidden}."
        then = "then the whole budget goes to single columns, and the model is that of independent columns"
        return f"With {hidden}: {then}.{self.also}"

    def prices(self, step: int) -> Prices:
        """What tables cost under the share of a step."""
        return Prices(self.domain, self.unit, self.shares[step], self.purpose)

    def expected(self, released: Measurements, cliques: Iterable[Clique]) -> list[Array]:
        """Expected counts: public, made of released tables alone."""
        fit = fitted(self.domain, released, rough=True)
        wanted = list(cliques)
        engine = get_engine(self.domain, fit.field.cliques, memory_limit=DEFAULT_MEMORY_LIMIT)
        # Those inside the cliques of one tree need not be inside those of another for the same graph.
        outside = [c for c in wanted if len(c) > 2 and engine.tree.find_home(c) is None]
        if outside:
            # A target with any two others joins all columns: then each is found by itself.
            with suppress(CostError):
                engine = get_engine(self.domain, [*fit.field.cliques, *outside], memory_limit=_ROOM_FOR_MORE)
        beliefs = engine.calibrate(fit.potentials)
        total = estimated_total(released)
        if sum(len(c) == 2 for c in wanted) < len(self.domain) or sum(self.domain.shape) > MOST_LEVELS:
            return [total * beliefs.probabilities(c) for c in wanted]
        pairs = beliefs.pairs()
        pairs.matrix *= total
        return [pairs[c[0], c[1]] if len(c) == 2 else total * beliefs.probabilities(c) for c in wanted]

    def fewest(self, cliques: Iterable[Clique]) -> list[Clique]:
        """At most so many, those with fewest cells."""
        by_size = sorted(cliques, key=lambda c: (self.domain.size(c), c))[:MOST_CANDIDATES]
        return sorted(by_size, key=lambda c: (len(c), c))
