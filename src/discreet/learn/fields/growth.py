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

A single column counts for more than itself: its error is in every pair that it is part of. It needs no asking, as every
column is measured: it is wrong by its noise, a public number.

The largest of many noisy distances owe most to their noise. So they are not taken at their word: see :func:`believed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...domain import Clique, Domain
from ...privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP
from ...privacy.query import Marginals
from ...privacy.requests import Measure
from ...privacy.unit import PrivacyUnit
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

    @property
    def is_pure(self) -> bool:
        return isinstance(self.share, PureDP)

    def weight(self, clique: Clique) -> float:
        return self.purpose.weight(clique)

    def part(self, clique: Clique) -> float:
        """y_t: the table's part of a share is in proportion to it."""
        cells = self.weight(clique) * self.domain.size(clique)
        return math.sqrt(cells) if self.is_pure else float((cells * math.sqrt(2 / math.pi)) ** (2 / 3))

    def cost(self, parts: float) -> float:
        """Expected error of a batch whose y_t add up to ``parts``."""
        (moved,) = Marginals(self.domain, [self.domain.names[:1]]).sensitivity(self.unit)
        if isinstance(self.share, PureDP):
            return parts**2 * moved.l1 / float(self.share.epsilon)
        return float(parts**1.5 * math.sqrt(moved.l2_squared / mu_squared(self.share)))

    def request(self, cliques: Sequence[Clique]) -> Measure:
        """The tables, with the shares for which the sum of their errors is least."""
        parts = [self.part(c) for c in cliques]
        weights = [max(1, round(_PRECISION * y / max(parts))) for y in parts]
        noise = "laplace" if self.is_pure else "gaussian"
        return Measure(self.share, Marginals(self.domain, cliques), noise, weights)  # type: ignore[arg-type]


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


def batch(prices: Prices, tree: Tree, distances: Mapping[Clique, float]) -> list[Clique]:
    """The tables that are worth their noise; see the module's text."""
    gains = {c: prices.weight(c) * e for c, e in distances.items() if e > 0}
    parts = {c: prices.part(c) for c in gains}
    out: list[Clique] = []
    gained = paid = best = 0.0
    for clique in sorted(gains, key=lambda c: (-gains[c] / parts[c], c)):
        value = gained + gains[clique] - prices.cost(paid + parts[clique])
        if value > best and tree.takes(clique):
            out.append(clique)
            gained, paid, best = gained + gains[clique], paid + parts[clique], value
    return out
