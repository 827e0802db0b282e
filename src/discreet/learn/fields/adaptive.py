"""Nobody knows the graph: a Markov random field whose tables are found in rounds, each asking what the last one missed.

1. The tables of single columns.
2. The *distances* of all pairs from what independent columns would have, all at once: one whole number a pair, Σ|x − r|
   with r public (:class:`~discreet.privacy.queries.distances.Distances`). They cost next to nothing.
3. The tables of a spanning tree of the largest distances.
4. The distances of all pairs from the model so far: what independence hid shows now.
5. The tables that are worth their noise, pairs and single columns, as long as exact inference stays small
   (:mod:`.growth`).
6. The distances of columns, pairs and triples inside the cliques of the junction tree, which cost inference nothing.
7. The tables that are worth their noise, again or for the first time.

After each round all tables are fitted together (:mod:`.mirror`). Every decision is made from released numbers and
public sizes.

Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike; see :mod:`..procedure`. Under
(ε, δ) and zCDP all steps are Gaussian noise. Within (ε, δ) they compose as one Gaussian
(:mod:`discreet.privacy.gaussian`), also though what is asked follows from earlier answers. Under pure DP noise is
Laplace's, and the pairs of the tree and of step 5 are selected one by one, because a hundred distances at once would
be a hundred times as noisy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT, triangulate
from ...inference.exact import get_engine
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ...privacy.budget import ApproxDP, Budget, PureDP
from ...privacy.curator import Selection
from ...privacy.queries.distances import MOST, Distances, WorthMeasuring
from ...privacy.requests import Asking, Measure, Select
from ...privacy.unit import PrivacyUnit
from ..cards import card_of
from ..checks import as_measurements, check_plan
from ..consistency import estimated_total, pooled
from ..learner import Learner
from ..planned import measuring, selecting
from ..procedure import Found, Procedure, Step, Whole
from .growth import Prices, Tree, batch, spanning_tree
from .likelihood import Array
from .mirror import MirrorFit, mirror_fit

METHOD = "adaptive"
SHARES = (8, 2, 18, 2, 43, 2, 25)
"""Percent of the budget for each of the seven steps. Set on the sets that :mod:`.mirror` names."""
PURE_SHARES = (20, 8, 28, 8, 36)
"""Under pure DP: columns; selection and tables of a tree; selection and tables of what the model misses."""
MOST_CANDIDATES = 3000
"""Distances that are asked for at once: beyond, those that were largest before, or that have fewest cells."""


@dataclass(frozen=True)
class AdaptiveField(Learner[MarkovRandomField]):
    """Learn a Markov random field when nobody knows the graph; nothing to tune.

    Parameters
    ----------
    most_cells:
        How large the junction tree of the model may be, in cells: memory and time of exact inference.
    triples:
        Whether tables of three columns may be measured (step 7).
    """

    finds_graph: ClassVar[bool] = True

    most_cells: int = 100_000
    triples: bool = True

    def __post_init__(self) -> None:
        if type(self.most_cells) is not int or self.most_cells < 1:
            raise InputError(f"most_cells is a number of cells of at least 1, got {self.most_cells!r}")
        if not isinstance(self.triples, bool):
            raise InputError(f"triples must be True or False, got {self.triples!r}")

    def prepare(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        public_size: int | None = None,
        approximate_size: float | None = None,
    ) -> Procedure:
        """Seven steps (five under pure DP), of which the first is known before."""
        check_plan(domain, unit, budget)
        whole = Whole(domain, unit, budget)
        within = budget.to_gaussian() if isinstance(budget, ApproxDP) else None
        steps: tuple[Step, ...]
        if len(domain) == 1:
            share: Budget = within or budget
            steps = (whole.measure("table of the column", Prices(domain, unit, share).request([domain.names])),)
        elif isinstance(budget, PureDP):
            steps = _Rounds(self, whole, budget.split(PURE_SHARES)).by_selection()
        else:
            steps = _Rounds(self, whole, (within or budget).split(SHARES)).by_distances()
        one_gaussian = within is not None
        notes = (
            f"Tables are added while the junction tree keeps within {self.most_cells:,} cells; what is asked follows "
            "from what was released before.",
        )
        return Procedure(
            METHOD, whole, steps, notes, approximate_size, composition="as one Gaussian" if one_gaussian else "composed"
        )

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The field from all tables; post-processing only."""
        measured = Measurements([m for m in as_measurements(measurements) if m.clique], dict(measurements.release))
        columns = domain or measured.domain
        fit = fitted(columns, measured)
        card = card_of(
            measured,
            METHOD,
            estimated_total(measured),
            inference=fit.field.inference,
            estimation="least squares, as far as the noise allows",
            misfit=round(fit.residual, 3),
            tables=[list(c) for c in fit.field.cliques if len(c) > 1],
        )
        return MarkovRandomField(columns, fit.field.potentials(fit.theta), card)


def fitted(domain: Domain, measured: Measurements, *, rough: bool = False) -> MirrorFit:
    """All tables fitted together; a column that is in none of them is taken to be uniform."""
    tables = {c: t for c, t in pooled(measured).items() if c}
    return mirror_fit(domain, tables, estimated_total(measured), rough=rough)


class _Rounds:
    """The steps of one procedure; every decision follows from what was released."""

    def __init__(self, learner: AdaptiveField, whole: Whole, shares: Sequence[Budget]) -> None:
        self.learner, self.whole, self.shares = learner, whole, shares
        self.domain, self.unit = whole.domain, whole.unit
        self.columns: list[Clique] = [(name,) for name in self.domain.names]
        self.pairs: list[Clique] = [
            c for c in combinations(self.domain.names, 2) if self.domain.size(c) <= learner.most_cells
        ]

    # -- the steps -----------------------------------------------------------------------------------------------------

    def by_distances(self) -> tuple[Step, ...]:
        """Under (ε, δ) and zCDP."""
        count = f"{min(len(self.pairs), MOST_CANDIDATES):,} pairs"
        names = [
            "tables of single columns",
            f"distances of {count} from independent columns",
            "tables of a spanning tree",
            f"distances of columns and {count} from the model so far",
            "tables of what the model misses",
            "distances inside the cliques of the model",
            "tables inside the cliques of the model",
        ]
        whole, shares = self.whole, self.shares
        gaussian = "gaussian"
        return (
            whole.measure(names[0], Prices(self.domain, self.unit, shares[0]).request(self.columns)),
            whole.later(names[1], shares[1], self._first_distances, gaussian, kept=False),
            whole.later(names[2], shares[2], self._tree, gaussian),
            whole.later(names[3], shares[3], self._second_distances, gaussian, kept=False),
            whole.later(names[4], shares[4], self._missed, gaussian),
            whole.later(names[5], shares[5], self._inner_distances, gaussian, kept=False),
            whole.later(names[6], shares[6], self._inside, gaussian),
        )

    def by_selection(self) -> tuple[Step, ...]:
        """Under pure DP."""
        whole, shares = self.whole, self.shares
        noise, selection = measuring(shares[0]), selecting(shares[1])
        most = f"at most {len(self.domain) - 1} selections of a pair"
        return (
            whole.measure("tables of single columns", Prices(self.domain, self.unit, shares[0]).request(self.columns)),
            whole.later(f"{most} for a tree", shares[1], self._select_tree, selection),
            whole.later("tables of the tree", shares[2], self._selected_tree, noise),
            whole.later(f"{most} that the model misses", shares[3], self._select, selection),
            whole.later("tables of what the model misses, and columns again", shares[4], self._selected, noise),
        )

    # -- by distances --------------------------------------------------------------------------------------------------

    def _first_distances(self, released: Measurements) -> Asking[Found]:
        asked = self._fewest(self.pairs)
        return (yield from self._distances(released, asked, self.shares[1], "pairs"))

    def _tree(self, released: Measurements) -> Asking[Found]:
        prices = Prices(self.domain, self.unit, self.shares[2])
        chosen = spanning_tree(prices, _said(released, "pairs")) or self.columns
        yield prices.request(chosen)
        return {}

    def _second_distances(self, released: Measurements) -> Asking[Found]:
        first = _said(released, "pairs")
        most = sorted(first, key=lambda c: (-first[c], c))[: MOST_CANDIDATES - len(self.columns)]
        return (yield from self._distances(released, [*self.columns, *sorted(most)], self.shares[3], "missed"))

    def _missed(self, released: Measurements) -> Asking[Found]:
        return (yield from self._batch(released, "missed", self.shares[4]))

    def _inner_distances(self, released: Measurements) -> Asking[Found]:
        tree = triangulate(self.domain, Tree(self.domain, released.cliques, 0).cliques)
        sizes = (1, 2, 3) if self.learner.triples else (1, 2)
        inside = {t for c in tree.cliques for k in sizes for t in combinations(c, k)}
        small = [self.domain.clique(t) for t in inside if self.domain.size(t) <= self.learner.most_cells]
        return (yield from self._distances(released, self._fewest(small), self.shares[5], "inside"))

    def _inside(self, released: Measurements) -> Asking[Found]:
        return (yield from self._batch(released, "inside", self.shares[6]))

    def _distances(self, released: Measurements, cliques: Sequence[Clique], share: Budget, name: str) -> Asking[Found]:
        expected = self._expected(released, cliques)
        (noisy,) = yield Measure(share, Distances(self.domain, cliques, expected), "gaussian")
        return {name: [[list(c), int(e)] for c, e in zip(cliques, noisy.counts, strict=True)]}

    def _batch(self, released: Measurements, name: str, share: Budget) -> Asking[Found]:
        prices = Prices(self.domain, self.unit, share)
        tree = Tree(self.domain, released.cliques, self.learner.most_cells)
        chosen = batch(prices, tree, _said(released, name)) or self.columns
        yield prices.request(chosen)
        return {}

    # -- by selection --------------------------------------------------------------------------------------------------

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
        yield Prices(self.domain, self.unit, self.shares[2]).request(chosen or self.columns)
        return {}

    def _select(self, released: Measurements) -> Asking[Found]:
        tree = Tree(self.domain, released.cliques, self.learner.most_cells)
        return {"chosen": (yield from self._chosen(released, 3, lambda pair: True, tree.takes))}

    def _selected(self, released: Measurements) -> Asking[Found]:
        chosen = [tuple(c) for c in released.found["chosen"]]
        yield Prices(self.domain, self.unit, self.shares[4]).request([*self.columns, *chosen])
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
        prices = Prices(self.domain, self.unit, self.shares[step + 1])
        expected = dict(zip(self.pairs, self._expected(released, self.pairs), strict=True))
        left, chosen, paid = list(self.pairs), list[Clique](), 0.0
        for share in self.shares[step].split([1] * (len(self.domain) - 1)):
            left = [pair for pair in left if fits(pair)]
            if not left:
                break
            dearer = [prices.cost(paid + prices.part(pair)) - prices.cost(paid) for pair in left]
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

    # -- what the model so far expects ---------------------------------------------------------------------------------

    def _expected(self, released: Measurements, cliques: Iterable[Clique]) -> list[Array]:
        """Expected counts: public, made of released tables alone."""
        fit = fitted(self.domain, released, rough=True)
        engine = get_engine(self.domain, fit.field.cliques, memory_limit=DEFAULT_MEMORY_LIMIT)
        beliefs = engine.calibrate(fit.potentials)
        total = estimated_total(released)
        return [total * np.asarray(beliefs.marginal(c).exp()) for c in cliques]

    def _fewest(self, cliques: Iterable[Clique]) -> list[Clique]:
        """At most so many, those with fewest cells."""
        by_size = sorted(cliques, key=lambda c: (self.domain.size(c), c))[:MOST_CANDIDATES]
        return sorted(by_size, key=lambda c: (len(c), c))


def _said(released: Measurements, name: str) -> dict[Clique, float]:
    """Distances that were released; negative ones are noise."""
    return {tuple(c): float(e) for c, e in released.found[name]}
