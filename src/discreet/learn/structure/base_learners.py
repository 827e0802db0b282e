"""The non-private learners that the paper imports; they run inside, on blocks, and see sums only.

* :class:`SparseLogistic` [WSD19]: for every column (and pair of its levels) a logistic regression on the others with a
  bound on the ℓ1 norm (ℓ2,1 for more than two levels), then an edge where the weight passes half of η.
* :class:`Sparsitron` [KM17]: multiplicative weights over all monomials of the other columns. The published one updates
  with one example at a time and keeps the best of its hypotheses; ours takes a step with the sum over all records of
  the block, which is what a table can be asked, and keeps the average.

All columns are learned at once: a step is one pass over the rows.
[WSD19] Wu, Sanghavi, Dimakis, NeurIPS 2019. [KM17] Klivans, Meka, FOCS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_positive, check_whole
from ...domain import Clique, Domain
from ...models.ising import check_binary
from ...privacy.curator import Curator
from ...privacy.queries.gradients import LevelGradients, LogisticGradients, SpinGradients
from ...privacy.queries.parities import all_monomials
from ...privacy.query import Marginals
from .result import maximal

Array = NDArray[np.float64]
WEIGHT_GRID = 2.0**-12  # weights are looked at on this grid: margins are whole numbers


def _sums(curator: Curator, gradients: LogisticGradients) -> Array:
    """Minus the gradient of the summed loss."""
    out: Array = curator.measure(gradients)[0].values
    return out


def _records(curator: Curator) -> float:
    return max(float(curator.measure(Marginals(curator.domain, [()]))[0].values), 1.0)


def _check(min_weight: float, width: float, steps: int) -> None:
    check_positive(min_weight=min_weight, width=width)
    check_whole(1, steps=steps)


@dataclass(frozen=True)
class SparseLogistic:
    """ℓ1-constrained logistic regression with a threshold, by accelerated projected gradient.

    ``width`` is λ: the ball has radius 2λ, because w = 2A. ``min_weight`` is η: an edge has |w|/2 ≥ η/2.
    """

    min_weight: float
    width: float
    steps: int = 60

    def __post_init__(self) -> None:
        _check(self.min_weight, self.width, self.steps)

    def candidates(self, domain: Domain) -> tuple[Clique, ...]:
        return tuple(combinations(domain.names, 2))

    def found(self, curator: Curator) -> tuple[Clique, ...]:
        """The edges, from exact sums over the curator's rows."""
        domain = curator.domain
        size = self._weights(curator)
        names = domain.names
        passes = (size + size.T) / 2 >= self.min_weight / 2
        return tuple((names[i], names[j]) for i, j in combinations(range(len(names)), 2) if passes[i, j])

    def _weights(self, curator: Curator) -> Array:
        """Of columns i and j: |A_ij|, or max |W_ij|, as the regression of column i sees it."""
        domain = curator.domain
        n = _records(curator)
        if max(domain.shape) == 2:
            monomials = [*((name,) for name in domain.names), ()]
            groups = np.arange(len(monomials))
            zero = np.zeros((len(domain), len(monomials)), dtype=np.int64)
            w = self._descend(curator, SpinGradients(domain, monomials, zero, WEIGHT_GRID), groups, n, 2 * self.width)
            out: Array = np.abs(w[:, : len(domain)]) / 2
            return out
        groups = np.repeat(np.arange(len(domain) + 1), [*domain.shape, 1])
        start = LevelGradients(domain, np.zeros(LevelGradients.shape_for(domain), dtype=np.int64), WEIGHT_GRID)
        w = self._descend(curator, start, groups, n, 2 * self.width * math.sqrt(max(domain.shape)))
        size = np.zeros((len(domain), len(domain)))
        for (i, _, _), row in zip(start.levels, w, strict=True):
            for j in range(len(domain)):
                block = row[groups == j]
                # W_i(u, ·) − W_i(v, ·), centred: halved it is at most max |W_ij| of a centred W.
                size[i, j] = max(size[i, j], float(np.abs(block - block.mean()).max()) / 2)
        return size

    def _descend(
        self, curator: Curator, start: LogisticGradients, groups: NDArray[np.intp], n: float, radius: float
    ) -> Array:
        """FISTA with restarts on the ball; the step is halved while the gradient's own change says it is too long.

        The number of passes is public: what a block takes in time depends on its size alone.
        """
        allowed = start.allowed()
        w = np.zeros(allowed.shape)
        at, momentum, rate = w, 1.0, 1.0
        previous: tuple[Array, Array] | None = None
        for _ in range(self.steps):
            v = np.rint(at / WEIGHT_GRID).astype(np.int64)
            gradient = np.where(allowed, -_sums(curator, start.at(v)) / n, 0.0)
            if previous is not None:
                moved, change = at - previous[0], gradient - previous[1]
                curvature = float(np.sqrt((change**2).sum(1) / np.maximum((moved**2).sum(1), 1e-12)).max())
                rate = min(rate, 1 / max(curvature, 1e-3))
            previous = (at, gradient)
            new = project_ball(at - rate * gradient, groups, radius)
            if float(((at - new) * (new - w)).sum()) > 0:  # momentum points uphill: restart
                momentum = 1.0
            faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            at = np.where(allowed, new + (momentum - 1) / faster * (new - w), 0.0)
            w, momentum = new, faster
        return w


def project_ball(w: Array, groups: NDArray[np.intp], radius: float) -> Array:
    """Each row's nearest point with Σ_g ‖w_g‖₂ ≤ radius; groups of one entry make it the ℓ1 ball."""
    count = int(groups.max()) + 1
    norm = np.sqrt(np.add.reduceat(w**2, np.searchsorted(groups, np.arange(count)), axis=1))  # groups stand in order
    order = -np.sort(-norm, axis=1)
    excess = np.cumsum(order, axis=1) - radius
    theta = excess / np.arange(1, count + 1)
    last = np.maximum((order > theta).sum(axis=1), 1) - 1
    cut = np.maximum(theta[np.arange(len(w)), last], 0.0)[:, None]
    scale = np.where(norm > cut, 1 - cut / np.maximum(norm, 1e-300), 0.0)
    out: Array = w * scale[:, groups]
    return out


@dataclass(frozen=True)
class Sparsitron:
    """Multiplicative weights for t-wise binary fields: the maximal interactions whose coefficient passes η/2.

    ``width`` is λ ≥ Σ|coefficients of ∂_i h|; the regression's weights have ℓ1 norm at most 2λ.
    """

    min_weight: float
    width: float
    order: int = 3
    steps: int = 150

    def __post_init__(self) -> None:
        _check(self.min_weight, self.width, self.steps)
        check_whole(2, order=self.order)

    def candidates(self, domain: Domain) -> tuple[Clique, ...]:
        check_binary(domain, "Sparsitron")
        return all_monomials(domain, self.order, least=2)

    def found(self, curator: Curator) -> tuple[Clique, ...]:
        domain = curator.domain
        weights = self._weights(curator)
        monomials = [(), *all_monomials(domain, self.order - 1)]
        place = {I: at for at, I in enumerate(monomials)}
        passing = []
        for I in self.candidates(domain):
            seen = [weights[domain.index(i), place[tuple(c for c in I if c != i)]] for i in I]
            if abs(float(np.mean(seen))) / 2 >= self.min_weight / 2:
                passing.append(I)
        return maximal(passing)

    def _weights(self, curator: Curator) -> Array:
        domain = curator.domain
        monomials = [(), *all_monomials(domain, self.order - 1)]
        n, radius = _records(curator), 2 * self.width
        shape = (len(domain), len(monomials))
        start = SpinGradients(domain, monomials, np.zeros(shape, dtype=np.int64), WEIGHT_GRID)
        allowed = start.allowed()
        # One expert for each sign of each monomial, and one that stands for zero, so that the norm may be smaller.
        log_plus, log_minus = np.zeros(shape), np.zeros(shape)
        idle = np.zeros(shape[0])
        total, w = np.zeros(shape), np.zeros(shape)
        for step in range(self.steps):
            v = np.rint(w / WEIGHT_GRID).astype(np.int64)
            gradient = np.where(allowed, -_sums(curator, start.at(v)) / n, 0.0)
            rate = 2.0 * radius / math.sqrt(1 + step / 10) / max(radius, 1.0)
            log_plus, log_minus = log_plus - rate * gradient, log_minus + rate * gradient
            high = np.maximum(np.maximum(log_plus, log_minus).max(axis=1), idle)[:, None]
            plus = np.where(allowed, np.exp(log_plus - high), 0.0)
            minus = np.where(allowed, np.exp(log_minus - high), 0.0)
            mass = (plus + minus).sum(axis=1, keepdims=True) + np.exp(idle[:, None] - high)
            w = radius * (plus - minus) / mass
            if step >= self.steps // 2:
                total += w
        return total / (self.steps - self.steps // 2)


BaseLearner = SparseLogistic | Sparsitron


def as_word(candidates: Sequence[Clique], found: Sequence[Clique]) -> str:
    """One character a candidate: what blocks vote with."""
    chosen = set(found)
    return "".join("1" if c in chosen else "0" for c in candidates)
