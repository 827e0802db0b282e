"""The default under zCDP and pure DP: select pairs privately, measure those, and keep what passes.

Rounds. In each, every column that is still looking selects the partner with which its correlation is worst explained
by the means; the new pairs are measured; a column whose partner did not pass stops looking. An edge is found when
*either* end selects it, so single selections may fail now and then. With few columns, measuring every pair is cheaper,
which follows from public numbers. Then maximum likelihood on the measured pairs, and a threshold on the couplings.

Guarantee: that of the budget, by composition: a measurement or a selection is all that is ever asked. What is asked in
a round depends on what earlier rounds released, and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurement
from ...models.ising import check_binary
from ...privacy.budget import Budget, PureDP
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.queries.parities import ParitySums, PartnerResiduals
from ...privacy.query import Marginals
from ...privacy.unit import PrivacyUnit
from ..planned_sums import PlannedSums, measuring, release_card, selecting, settled_later
from ..procedure import Plan
from ..spins.ising_fit import Pair, fit_support, sparse_of
from ..spins.ising_learner import IsingLearner
from ..spins.measuring import SIZE_SHARE, chosen_sums, pair_sums, size_and_rest
from ..spins.moments import SpinMoments
from .result import StructureResult

MEANS_SHARE = 5
ROUND_SHARES = (42, 25, 15, 8)  # of what is left after means; unused rounds go to the last measurement
SELECTING = 7  # tenths of a round; the rest measures
LAST_SHARE = 10


def _measures_all(columns: int, budget: Budget) -> bool:
    """Whether noise on all pairs hides less than selections do; from public numbers.

    Noise on all pairs must stay below half of what an edge causes, noise on scores below all of it: hence the 2.
    """
    pairs = columns * (columns - 1) / 2
    if pairs <= columns:
        return True
    part = ROUND_SHARES[0] / 100 * SELECTING / 10
    search = math.log(25 * columns)
    if isinstance(budget, PureDP):  # noise pairs/ε, and 2·columns/ε' with permute-and-flip
        return 2 * pairs * math.log(pairs) < 2 * columns / part * search
    return 2 * math.sqrt(pairs * 2 * math.log(pairs)) < math.sqrt(columns / part) * search


@dataclass(frozen=True)
class SelectedEdges:
    """Learn the graph of an Ising model under any budget; it never refuses.

    Parameters
    ----------
    min_weight:
        η, a public lower bound on the size of an edge's coupling A_ij; half of it passes. Without it, what stands
        out of noise and sampling error passes.
    max_edges:
        A public bound on the number of edges.
    """

    min_weight: float | None = None
    max_edges: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        IsingLearner(max_edges=self.max_edges, min_weight=self.min_weight or 0.0)  # the same bounds, the same errors

    def plan(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        approximate_size: float | None = None,
        *,
        size_is_public: bool = False,
    ) -> Plan:
        """What will be asked, before a row is read."""
        check_binary(domain, "SelectedEdges")
        for_size, rest = size_and_rest(budget, size_is_public=size_is_public)
        whole, entries = 1.0, []
        if for_size is not None:
            whole = 1 - SIZE_SHARE / 100
            noise = noise_of(plan_noise(Marginals(domain, [()]), unit, for_size).calls[0])
            entries.append(PlannedSums((), 1, SIZE_SHARE / 100, noise, name="number of records"))
        if _measures_all(len(domain), rest):
            query = pair_sums(domain)
            noise = noise_of(plan_noise(query, unit, rest).calls[0])
            entries.append(PlannedSums((), query.parts[0].cells, whole, noise, name="means and all pair sums"))
        else:
            means = rest.split([MEANS_SHARE, *ROUND_SHARES, LAST_SHARE])[0]
            total = MEANS_SHARE + sum(ROUND_SHARES) + LAST_SHARE
            alone = chosen_sums(domain, [])
            noise = noise_of(plan_noise(alone, unit, means).calls[0])
            entries.append(PlannedSums((), len(domain), whole * MEANS_SHARE / total, noise, name="means"))
            for at, weight in enumerate(ROUND_SHARES):
                name = f"round {at + 1}: a partner a column, and its correlation"
                entries.append(settled_later(name, whole * weight / total, selecting(rest), measuring(rest)))
            entries.append(settled_later("pairs that passed, again", whole * LAST_SHARE / total, measuring(rest)))
        return Plan("selected edges", unit, budget, tuple(entries), (), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> StructureResult:
        """Ask the curator with ``share`` (all that remains, by default)."""
        domain = curator.domain
        check_binary(domain, "SelectedEdges")
        if len(domain) < 2:
            raise InputError(f"a graph needs at least two columns, there are {len(domain)}")
        budget = share or curator.remaining or curator.budget
        for_size, rest = size_and_rest(budget, size_is_public=curator.public_size is not None)
        size = curator.size(for_size)
        n = max(float(size.values), 1.0)
        if _measures_all(len(domain), rest):
            query = pair_sums(domain)
            sums = [(query.monomials, curator.measure(query, rest)[0])]
        else:
            sums = self._rounds(curator, rest, n)
        moments = SpinMoments.of(domain, n, sums)
        passing = [pair for pair in moments.measured_pairs() if self._passes(moments, pair, 0.7)]
        fit = fit_support(domain, moments, passing, self.random_state)
        kept = sparse_of(fit, moments, passing, most=self.max_edges, least=self.min_weight or 0.0)
        names = domain.names
        edges = tuple((names[i], names[j]) for i, j in kept)
        evidence: dict[Clique, Any] = {(names[i], names[j]): {"noisy_coupling": float(fit.A[i, j])} for i, j in kept}
        card = release_card(curator.statement(), [size, *(m for _, m in sums)], method="selected edges")
        return StructureResult(domain, "selected edges", edges, evidence, card=card)

    def _rounds(self, curator: Curator, rest: Budget, n: float) -> list[tuple[tuple[Clique, ...], Measurement]]:
        domain = curator.domain
        p = len(domain)
        for_means, *rounds, last = rest.split([MEANS_SHARE, *ROUND_SHARES, LAST_SHARE])
        alone = chosen_sums(domain, [])
        sums = [(alone.monomials, curator.measure(alone, for_means)[0])]
        means = SpinMoments.of(domain, n, sums).single
        # Means that are all noise would send the search after products of noise.
        means = np.where(np.abs(means) > 3 * sums[0][1].standard_deviation / n, means, 0.0)
        found: set[Pair] = set()
        active = list(range(p))
        for this in rounds:
            if not active or len(found) == p * (p - 1) // 2:
                break
            choosing, measuring = this.split([SELECTING, 10 - SELECTING])
            score = PartnerResiduals(domain, n * np.outer(means, means), sorted(found), active)
            chosen: dict[int, Pair] = {}
            for i, selection in zip(active, curator.select_each(score, choosing), strict=True):
                j = selection.indices[0] + (selection.indices[0] >= i)
                chosen[i] = (min(i, j), max(i, j))
            new = sorted({*chosen.values()} - found)
            found |= set(new)
            if new:
                query = _pairs_only(domain, new)
                sums.append((query.monomials, curator.measure(query, measuring)[0]))
            moments = SpinMoments.of(domain, n, sums)
            active = [i for i in active if self._passes(moments, chosen[i], 0.7)]
        moments = SpinMoments.of(domain, n, sums)
        again = [pair for pair in sorted(found) if self._passes(moments, pair, 0.5)]
        if again:
            query = _pairs_only(domain, again)
            sums.append((query.monomials, curator.measure(query, last)[0]))
        return sums

    def _passes(self, moments: SpinMoments, pair: Pair, part: float) -> bool:
        """Whether a measured pair may have an edge: by ``part`` of what η causes, or of what stands out of noise."""
        i, j = pair
        covariance = abs(float(moments.double[i, j] - moments.single[i] * moments.single[j]))
        if self.min_weight is not None:
            return covariance >= part / 1.4 * math.tanh(self.min_weight)  # 0.7: half of what η causes
        cut = math.sqrt(2 * math.log(max(moments.p, 2) ** 2))
        return covariance >= part * cut * math.sqrt(float(moments.double_variance[i, j]) + 1 / moments.records)


def _pairs_only(domain: Domain, pairs: Sequence[Pair]) -> ParitySums:
    names = domain.names
    return ParitySums(domain, [(names[i], names[j]) for i, j in pairs], label="chosen pair correlations")
