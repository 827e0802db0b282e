"""What the rounds of :mod:`.adaptive` have in common: candidates, and what the model so far expects of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from ...domain import Clique, Domain
from ...graph import DEFAULT_MEMORY_LIMIT
from ...inference.exact import get_engine
from ...measurement import Measurements
from ...privacy.budget import Budget
from ..consistency import estimated_total, pooled
from ..procedure import Found, Whole
from .growth import Prices
from .likelihood import Array
from .mirror import MirrorFit, mirror_fit
from .purpose import Purpose

MOST_CANDIDATES = 3000
"""Distances that are asked for at once: beyond, those that were largest before, or that have fewest cells."""
MOST_LEVELS = 4096
"""Levels of all columns together, up to which the tables of all pairs are made at once: 128 MiB."""


def fitted(domain: Domain, measured: Measurements, *, rough: bool = False) -> MirrorFit:
    """All tables fitted together; a column that is in none of them is taken to be uniform."""
    tables = {c: t for c, t in pooled(measured).items() if c}
    return mirror_fit(domain, tables, estimated_total(measured), rough=rough)


def because(released: Measurements, chosen: Iterable[Clique], distances: Mapping[Clique, float]) -> Found:
    """Why tables are measured, added to what was said before: the released distance of each, in the order in which they
    are asked for; None for a column that is measured for want of anything better."""
    said = [[list(c), None if c not in distances else round(distances[c])] for c in chosen]
    return {"chosen_by": [*released.found.get("chosen_by", []), *said]}


class Rounds:
    """The steps of one procedure; every decision follows from what was released."""

    def __init__(self, whole: Whole, shares: Sequence[Budget], most_cells: int, purpose: Purpose) -> None:
        self.whole, self.shares, self.most_cells, self.purpose = whole, shares, most_cells, purpose
        self.domain, self.unit = whole.domain, whole.unit
        self.columns: list[Clique] = [(name,) for name in self.domain.names]
        self.pairs: list[Clique] = [c for c in combinations(self.domain.names, 2) if self.domain.size(c) <= most_cells]

    def prices(self, step: int) -> Prices:
        """What tables cost under the share of a step."""
        return Prices(self.domain, self.unit, self.shares[step], self.purpose)

    def expected(self, released: Measurements, cliques: Iterable[Clique]) -> list[Array]:
        """Expected counts: public, made of released tables alone."""
        fit = fitted(self.domain, released, rough=True)
        engine = get_engine(self.domain, fit.field.cliques, memory_limit=DEFAULT_MEMORY_LIMIT)
        beliefs = engine.calibrate(fit.potentials)
        total = estimated_total(released)
        wanted = list(cliques)
        if sum(len(c) == 2 for c in wanted) < len(self.domain) or sum(self.domain.shape) > MOST_LEVELS:
            return [total * beliefs.probabilities(c) for c in wanted]
        pairs = beliefs.pairs()
        pairs.matrix *= total
        return [pairs[c[0], c[1]] if len(c) == 2 else total * beliefs.probabilities(c) for c in wanted]

    def fewest(self, cliques: Iterable[Clique]) -> list[Clique]:
        """At most so many, those with fewest cells."""
        by_size = sorted(cliques, key=lambda c: (self.domain.size(c), c))[:MOST_CANDIDATES]
        return sorted(by_size, key=lambda c: (len(c), c))
