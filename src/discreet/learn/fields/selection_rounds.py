"""Under pure DP: pairs selected one by one for a tree, and again for what the model misses; then their tables."""

from __future__ import annotations

from collections.abc import Callable

from ...domain import Clique
from ...measurement import Measurements
from ...privacy.budget import Budget
from ...privacy.curator import Selection
from ...privacy.queries.distances import Distances, WorthMeasuring
from ...privacy.query import MOST
from ...privacy.requests import Asking, Select
from ..planned import measuring, selecting
from ..procedure import Found, Step, Whole
from .purpose import Purpose
from .rounds import Rounds
from .tree import Tree

SHARES = (20, 8, 28, 8, 36)
"""Percent of the budget: columns; selection and tables of a tree; selection and tables of what the model misses."""


class SelectionRounds(Rounds):
    """Five steps: a hundred distances at once would be a hundred times as noisy as one."""

    def __init__(self, whole: Whole, share: Budget, most_cells: int, purpose: Purpose) -> None:
        super().__init__(whole, share.split(SHARES), most_cells, purpose)

    def steps(self) -> tuple[Step, ...]:
        whole, shares = self.whole, self.shares
        noise, selection = measuring(shares[0]), selecting(shares[1])
        most = f"at most {len(self.domain) - 1} selections of a pair"
        return (
            whole.measure("tables of single columns", self.prices(0).request(self.columns)),
            whole.later(f"{most} for a tree", shares[1], self._select_tree, selection),
            whole.later("tables of the tree", shares[2], self._selected_tree, noise),
            whole.later(f"{most} that the model misses", shares[3], self._select, selection),
            whole.later("tables of what the model misses, and columns again", shares[4], self._selected, noise),
        )

    def _select_tree(self, released: Measurements) -> Asking[Found]:
        joined: dict[str, set[str]] = {name: {name} for name in self.domain.names}

        def fits(pair: Clique) -> bool:
            return joined[pair[0]] is not joined[pair[1]]

        def take(pair: Clique) -> None:
            together = joined[pair[0]] | joined[pair[1]]
            joined.update(dict.fromkeys(together, together))

        return {"tree": (yield from self._chosen(released, 1, fits, take))}

    def _selected_tree(self, released: Measurements) -> Asking[Found]:
        chosen = [tuple(c) for c in released.found["tree"]]
        yield self.prices(2).request(chosen or self.columns)
        return {}

    def _select(self, released: Measurements) -> Asking[Found]:
        tree = Tree(self.domain, released.cliques, self.most_cells)
        return {"chosen": (yield from self._chosen(released, 3, lambda pair: True, tree.takes))}

    def _selected(self, released: Measurements) -> Asking[Found]:
        chosen = [tuple(c) for c in released.found["chosen"]]
        yield self.prices(4).request([*self.columns, *chosen])
        return {}

    def _chosen(
        self,
        released: Measurements,
        step: int,
        fits: Callable[[Clique], bool],
        take: Callable[[Clique], bool | None],
    ) -> Asking[list[list[str]]]:
        """Pairs selected one by one with equal parts of a share, while they are worth the noise that they will get from
        the next one. Which are left to choose from follows from those chosen before."""
        prices = self.prices(step + 1)
        expected = dict(zip(self.pairs, self.expected(released, self.pairs), strict=True))
        left, chosen, paid = list(self.pairs), list[Clique](), 0.0
        for share in self.shares[step].split([1] * (len(self.domain) - 1)):
            left = [pair for pair in left if fits(pair)]
            if not left:
                break
            dearer = [(prices.cost(paid + prices.part(c)) - prices.cost(paid)) / prices.weight(c) for c in left]
            asked = Distances(self.domain, left, [expected[pair] for pair in left])
            score = WorthMeasuring(asked, [min(round(d), MOST - 1) for d in dearer])
            selection: Selection = yield Select(share, score)
            if selection.indices[0] == len(left):
                break
            pair = left.pop(selection.indices[0])
            if take(pair) is not False:
                chosen.append(pair)
                paid += prices.part(pair)
        return [list(pair) for pair in chosen]
