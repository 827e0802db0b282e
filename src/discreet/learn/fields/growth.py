"""Which tables to measure next: decided from released numbers and public sizes alone.

A table t that is measured with noise of mean size s_t in each of its c_t cells is wrong by c_t·s_t records in L1. A
model that does without it is wrong by e_t, its distance from the records, of which a noisy value was bought. With a
share of the budget for a batch of tables, divided for the least sum of errors (:mod:`discreet.learn.shares`), the whole
batch costs

    (Σ y_t)^{3/2}·Δ/μ,  y_t = (w_t c_t √(2/π))^{2/3}     for Gaussian noise with μ² for the batch,
    (Σ y_t)²·Δ/ε,       y_t = (w_t c_t)^{1/2}            for Laplace noise with ε for the batch,

w_t a weight. So we go through the candidates by w_t e_t / y_t and take what makes Σ w_t e_t less this cost larger, as
long as the junction tree of all measured tables stays small enough [the rule is that of SWIFT (Google's dpsynth, 2026)
but for the weights of single columns and the distances from the current model].

**Interactions.** Under Gaussian noise, what is asked of a set is its table without its margins, once all smaller sets
are told of (:mod:`discreet.privacy.queries.interactions`). One unit moves that by a part κ_t of what it moves a table,
L2², and the noise counts in a part a_t of the directions, so that y_t = κ_t^{1/3}·(w_t c_t √(2a_t/π))^{2/3}: for two
columns of two levels 0.4 times that of the table. (Laplace noise is calibrated to L1, in which an interaction moves no
less than its table: under pure DP tables are asked for.)

What was bought before counts as bought: its y_t are among those that share the budget, and its precisions, each times
κ_t, are added to μ²/Δ². Shares are settled afterwards (:mod:`.allocation`).

The largest of many noisy distances owe most to their noise. So they are not taken at their word: see :func:`believed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...domain import Attribute, Clique, Domain
from ...privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP
from ...privacy.queries.interactions import Interactions
from ...privacy.query import Marginals
from ...privacy.requests import Measure
from ...privacy.unit import PrivacyUnit, Sensitivity
from .purpose import Purpose
from .tree import Tree

_PRECISION = 10**9


@dataclass(frozen=True)
class Prices:
    """What tables cost under a share, in records of expected error; see the module's text."""

    domain: Domain
    unit: PrivacyUnit
    share: Budget
    purpose: Purpose
    told: frozenset[Clique] = frozenset()
    """Sets of columns that noisy tables or interactions tell of already."""

    @property
    def is_pure(self) -> bool:
        return isinstance(self.share, PureDP)

    def weight(self, clique: Clique) -> float:
        return self.purpose.weight(clique)

    def alone(self, clique: Clique) -> bool:
        """Whether a set is asked for as an interaction: under Gaussian noise, where all smaller sets are told of."""
        smaller = (s for k in range(1, len(clique)) for s in combinations(clique, k))
        more = len(clique) > 1 or clique in self.told  # of a column, all but the number of records
        some = more and min(self.domain[n].size for n in clique) > 1
        return some and not self.is_pure and all(s in self.told for s in smaller)

    def moved(self, clique: Clique) -> float:
        """By how much one unit moves what is asked, L2², as a part of what it is for a table with as much noise."""
        if not self.alone(clique):
            return 1.0
        (own,) = Interactions(self.domain, [clique]).sensitivity(self.unit)
        return own.l2_squared / self.domain.size(clique) ** 2 / self._moved.l2_squared

    def directions(self, clique: Clique) -> float:
        """In which part of the directions the noise of what is asked counts."""
        return math.prod(1 - 1 / self.domain[n].size for n in clique) if self.alone(clique) else 1.0

    def part(self, clique: Clique) -> float:
        """y_t: the table's part of a share is in proportion to it."""
        cells = self.weight(clique) * self.domain.size(clique)
        if self.is_pure:
            return math.sqrt(cells)
        noise = cells * math.sqrt(2 / math.pi * self.directions(clique))
        return float(self.moved(clique) ** (1 / 3) * noise ** (2 / 3))

    @property
    def _moved(self) -> Sensitivity:
        (moved,) = Marginals(self.domain, [self.domain.names[:1]]).sensitivity(self.unit)
        return moved

    @property
    def precision(self) -> float:
        """1/variance in each cell of one table that had all of the share; of Gaussian noise."""
        return mu_squared(self.share) / self._moved.l2_squared

    @property
    def deviation(self) -> float:
        """Of the noise in each cell of one table that had all of the share."""
        if isinstance(self.share, PureDP):
            return math.sqrt(2) * self._moved.l1 / float(self.share.epsilon)
        return 1 / math.sqrt(self.precision)

    def cost(self, parts: float, before: float = 0.0) -> float:
        """Expected error of a batch whose y_t add up to ``parts``; ``before``: precision that was bought before."""
        if isinstance(self.share, PureDP):
            return parts**2 * self._moved.l1 / float(self.share.epsilon)
        return float(parts**1.5 / math.sqrt(self.precision + before))

    def request(self, cliques: Sequence[Clique]) -> Measure:
        """The tables, with the shares for which the sum of their errors is least."""
        parts = [self.part(c) for c in cliques]
        noise = "laplace" if self.is_pure else "gaussian"
        return Measure(self.share, Marginals(self.domain, cliques), noise, _weights(parts))  # type: ignore[arg-type]

    def levels_of(self, groups: str) -> Attribute:
        """The column whose levels are in these groups."""
        own = self.domain[groups].groups
        assert own is not None
        return own.of

    def requests(self, portions: Mapping[Clique, float]) -> list[Measure]:
        """What is asked for, tables and interactions, with these portions of the share; also single columns whose
        levels are in groups here."""
        columns = Domain(tuple(a.groups.of for a in self.domain.attributes if a.groups is not None))
        levels = [c for c in portions if c[0] in columns]
        others = [c for c in portions if c[0] not in columns]
        apart = [[c for c in others if self.alone(c) == alone] for alone in (False, True)]
        asked = (
            (Marginals, self.domain, apart[0]),
            (Interactions, self.domain, apart[1]),
            (Marginals, columns, levels),
        )
        kinds = [(query, domain, own) for query, domain, own in asked if own]
        shares = self.share.split(_weights([sum(portions[c] for c in own) for _, _, own in kinds]))
        return [
            Measure(share, query(domain, own), "gaussian", _weights([portions[c] for c in own]))
            for share, (query, domain, own) in zip(shares, kinds, strict=True)
        ]


def _weights(parts: Sequence[float]) -> list[int]:
    return [max(1, round(_PRECISION * y / max(parts))) for y in parts]


def mu_squared(share: Budget) -> float:
    if isinstance(share, GaussianDP):
        return float(share.mu_squared)
    rho = share.to_zcdp().rho if isinstance(share, ApproxDP) else share.rho if isinstance(share, ZCDP) else None
    assert rho is not None
    return 2 * float(rho)


def believed(distances: Mapping[Clique, float], deviation: float) -> dict[Clique, float]:
    """What distances e with Gaussian noise say of the true ones: posterior means.

    Before, true distances of tables with as many columns are taken to be exponential with the mean m that the released
    ones have (or that mean's own noise, if that is more). After, one is normal around e − deviation²/m, cut off at 0.
    Where noise is small nothing changes; where there is nothing but noise, all are taken to be small.
    """
    from scipy.special import log_ndtr  # 0.2 s to import: plans start without it

    if deviation == 0:
        return dict(distances)
    out: dict[Clique, float] = {}
    for size in {len(c) for c in distances}:
        alike = {c: e for c, e in distances.items() if len(c) == size}
        mean = max(sum(alike.values()) / len(alike), deviation / math.sqrt(len(alike)))
        for c, e in alike.items():
            z = e / deviation - deviation / mean
            hazard = math.exp(-z * z / 2 - float(log_ndtr(z))) / math.sqrt(2 * math.pi)
            out[c] = deviation * max(z + hazard, 0.0)
    return out


def spanning_tree(prices: Prices, distances: Mapping[Clique, float]) -> list[Clique]:
    """The pairs of a tree with the largest distances, those left out that noise would outweigh."""
    names = prices.domain.names
    home = {name: name for name in names}

    def root(name: str) -> str:
        while home[name] != name:
            name = home[name]
        return name

    out: list[Clique] = []
    # A table of a tree gets one part of the share in so many.
    dearer = len(names) - 1 if prices.is_pure else math.sqrt(len(names) - 1)
    gains = {c: prices.weight(c) * e for c, e in distances.items()}
    for pair in sorted(gains, key=lambda c: (-gains[c], c)):
        a, b = root(pair[0]), root(pair[1])
        if a != b and gains[pair] > prices.cost(prices.part(pair)) * dearer:
            home[a] = b
            out.append(pair)
    return out


def batch(prices: Prices, tree: Tree, distances: Mapping[Clique, float], known: Mapping[Clique, float]) -> list[Clique]:
    """The tables that are worth their noise, beside those that are known with some precision (1/variance) already,
    which share in the budget; see the module's text."""
    gains = {c: prices.weight(c) * e for c, e in distances.items() if e > 0}
    parts = {c: prices.part(c) for c in gains}
    before = sum(prices.moved(c) * p for c, p in known.items())
    out: list[Clique] = []
    gained, paid = 0.0, sum(prices.part(c) for c in known)
    best = -prices.cost(paid, before)
    for clique in sorted(gains, key=lambda c: (-gains[c] / parts[c], c)):
        value = gained + gains[clique] - prices.cost(paid + parts[clique], before)
        if value > best and tree.takes(clique):
            out.append(clique)
            gained, paid, best = gained + gains[clique], paid + parts[clique], value
    return out
