"""Under (ε, δ) and zCDP: the distances of all candidates at once, then the tables that are worth their noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ...domain import Clique
from ...errors import counted
from ...graph import triangulate
from ...measurement import Measurements
from ...privacy.budget import Budget
from ...privacy.queries.distances import Distances
from ...privacy.requests import Asking, Measure
from ..procedure import Found, Step, Whole
from .growth import batch, spanning_tree
from .purpose import Purpose
from .rounds import MOST_CANDIDATES, Rounds, because
from .tree import Tree

SHARES = (8, 2, 18, 2, 43, 2, 25)
"""Percent of the budget for each of the seven steps. Set on the sets that :mod:`.mirror` names."""


class DistanceRounds(Rounds):
    """The seven steps of :mod:`.adaptive`."""

    def __init__(self, whole: Whole, share: Budget, most_cells: int, purpose: Purpose, triples: bool) -> None:
        super().__init__(whole, share.split(SHARES), most_cells, purpose)
        self.triples = triples
        self.larger = purpose.larger(most_cells, min(len(self.pairs), MOST_CANDIDATES // 2)) if triples else []

    def steps(self) -> tuple[Step, ...]:
        count = f"{min(len(self.pairs), MOST_CANDIDATES):,} pairs"
        room = MOST_CANDIDATES - len(self.columns) - len(self.larger)
        again = f"{min(len(self.pairs), max(room, 0)):,} pairs"
        also = f", {again} and {counted(len(self.larger), 'larger table')}" if self.larger else f" and {again}"
        names = [
            "tables of single columns",
            f"distances of {count} from independent columns",
            "tables of a spanning tree",
            f"distances of columns{also} from the model so far",
            "tables of what the model misses",
            "distances inside the cliques of the model",
            "tables inside the cliques of the model",
        ]
        whole, shares = self.whole, self.shares
        gaussian = "gaussian"
        return (
            whole.measure(names[0], self.prices(0).request(self.columns)),
            whole.later(names[1], shares[1], self._first_distances, gaussian, kept=False),
            whole.later(names[2], shares[2], self._tree, gaussian),
            whole.later(names[3], shares[3], self._second_distances, gaussian, kept=False),
            whole.later(names[4], shares[4], self._missed, gaussian),
            whole.later(names[5], shares[5], self._inner_distances, gaussian, kept=False),
            whole.later(names[6], shares[6], self._inside, gaussian),
        )

    def _first_distances(self, released: Measurements) -> Asking[Found]:
        asked = self.fewest(self.pairs)
        return (yield from self._distances(released, asked, self.shares[1], "pairs"))

    def _tree(self, released: Measurements) -> Asking[Found]:
        prices = self.prices(2)
        distances = _said(released, "pairs")
        chosen = spanning_tree(prices, distances) or self.columns
        yield prices.request(chosen)
        return because(released, chosen, distances)

    def _second_distances(self, released: Measurements) -> Asking[Found]:
        first = _said(released, "pairs")
        sure = [*self.columns, *self.larger][:MOST_CANDIDATES]
        most = sorted(first, key=lambda c: (-first[c], c))[: MOST_CANDIDATES - len(sure)]
        return (yield from self._distances(released, [*sure, *sorted(most)], self.shares[3], "missed"))

    def _missed(self, released: Measurements) -> Asking[Found]:
        return (yield from self._batch(released, "missed", 4))

    def _inner_distances(self, released: Measurements) -> Asking[Found]:
        tree = triangulate(self.domain, Tree(self.domain, released.cliques, 0).cliques)
        sizes = (1, 2, 3) if self.triples else (1, 2)
        inside = {t for c in tree.cliques for k in sizes for t in combinations(c, k)}
        small = [self.domain.clique(t) for t in inside if self.domain.size(t) <= self.most_cells]
        return (yield from self._distances(released, self.fewest(small), self.shares[5], "inside"))

    def _inside(self, released: Measurements) -> Asking[Found]:
        return (yield from self._batch(released, "inside", 6))

    def _distances(self, released: Measurements, cliques: Sequence[Clique], share: Budget, name: str) -> Asking[Found]:
        expected = self.expected(released, cliques)
        (noisy,) = yield Measure(share, Distances(self.domain, cliques, expected), "gaussian")
        return {name: [[list(c), int(e)] for c, e in zip(cliques, noisy.counts, strict=True)]}

    def _batch(self, released: Measurements, name: str, step: int) -> Asking[Found]:
        prices = self.prices(step)
        tree = Tree(self.domain, released.cliques, self.most_cells)
        distances = _said(released, name)
        chosen = batch(prices, tree, distances) or self.columns
        yield prices.request(chosen)
        return because(released, chosen, distances)


def _said(released: Measurements, name: str) -> dict[Clique, float]:
    """Distances that were released; negative ones are noise."""
    return {tuple(c): float(e) for c, e in released.found[name]}
