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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...domain import Clique, Domain
from ...errors import InputError
from ...measurement import Measurement, Measurements
from ...models.ising import check_binary
from ...privacy.budget import Budget, PureDP
from ...privacy.queries.parities import ParitySums, PartnerResiduals, all_monomials, measured_monomials
from ...privacy.requests import Asking, Measure, SelectEach
from ...privacy.unit import PrivacyUnit
from ..cards import card_of
from ..checks import as_measurements, check_plan
from ..counting import counted_first, records_in
from ..learner import Learner
from ..planned import measuring, selecting
from ..procedure import Found, Procedure, Step, Whole
from ..spins.ising_fit import Pair, fit_support, sparse_of
from ..spins.moments import SpinMoments
from .result import StructureResult

METHOD = "selected edges"
ALL_SUMS = "means and all pair sums"
MEANS_SHARE = 5
ROUND_SHARES = (42, 25, 15, 8)  # out of 105, as the other two; what a round does not use is not spent
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
class SelectedEdges(Learner[StructureResult]):
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
        if self.min_weight is not None and not 0 < self.min_weight < math.inf:
            raise InputError(f"min_weight must be positive and finite, got {self.min_weight}")
        if self.max_edges is not None and (type(self.max_edges) is not int or self.max_edges < 0):
            raise InputError(f"max_edges must be a whole number of at least 0, got {self.max_edges!r}")

    def prepare(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        public_size: int | None = None,
        approximate_size: float | None = None,
    ) -> Procedure:
        """A noisy count unless the size is public; then all pair sums at once, or means and rounds of selection."""
        check_plan(domain, unit, budget)
        check_binary(domain, "SelectedEdges")
        if len(domain) < 2:
            raise InputError(f"a graph needs at least two columns, there are {len(domain)}")
        whole = Whole(domain, unit, budget)
        count, given, rest = counted_first(whole, public_size)
        if _measures_all(len(domain), rest):
            everything = ParitySums(domain, all_monomials(domain, 2), label=ALL_SUMS)
            steps = [whole.measure(ALL_SUMS, Measure(rest, everything))]
        else:
            steps = self._steps(whole, rest)
        return Procedure(METHOD, whole, (*count, *steps), (), approximate_size, given)

    def _steps(self, whole: Whole, rest: Budget) -> list[Step]:
        domain = whole.domain
        for_means, *rounds, last = rest.split([MEANS_SHARE, *ROUND_SHARES, LAST_SHARE])
        means = ParitySums(domain, [(n,) for n in domain.names], label="means")
        steps = [whole.measure("means", Measure(for_means, means))]
        for number, share in enumerate(rounds, start=1):
            name = f"round {number}: a partner for each column, and their correlation"
            asks = partial(self._round, domain, share)
            steps.append(whole.later(name, share, asks, selecting(share), measuring(share)))
        again = partial(self._again, domain, last)
        return [*steps, whole.later("pairs that passed, again", last, again, measuring(last))]

    def _round(self, domain: Domain, share: Budget, released: Measurements) -> Asking[Found]:
        """Every column that is still looking selects a partner; new pairs are measured; who was disappointed stops."""
        moments = _moments(domain, released)
        p, known = moments.p, set(moments.measured_pairs())
        looking: list[int] = released.found.get("looking", list(range(p)))
        if not looking or len(known) == p * (p - 1) // 2:
            return {"looking": []}
        choosing, summing = share.split([SELECTING, 10 - SELECTING])
        # Means that are all noise would send the search after products of noise.
        means = np.where(np.abs(moments.single) > 3 * np.sqrt(moments.single_variance), moments.single, 0.0)
        score = PartnerResiduals(domain, moments.records * np.outer(means, means), sorted(known), looking)
        chosen: dict[int, Pair] = {}
        for i, selection in zip(looking, (yield SelectEach(choosing, score)), strict=True):
            j = selection.indices[0] + (selection.indices[0] >= i)
            chosen[i] = (min(i, j), max(i, j))
        new = sorted({*chosen.values()} - known)
        if new:
            measured = yield Measure(summing, _pairs_only(domain, new))
            moments = _moments(domain, (*released, *measured))
        return {"looking": [i for i in looking if self._passes(moments, chosen[i], 0.7)]}

    def _again(self, domain: Domain, share: Budget, released: Measurements) -> Asking[None]:
        moments = _moments(domain, released)
        pairs = [pair for pair in moments.measured_pairs() if self._passes(moments, pair, 0.5)]
        if pairs:
            yield Measure(share, _pairs_only(domain, pairs))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> StructureResult:
        """Maximum likelihood on the pairs that pass, and those couplings that pass then; post-processing only."""
        measured = as_measurements(measurements)
        domain = domain or measured.domain
        moments = _moments(domain, measured)
        passing = [pair for pair in moments.measured_pairs() if self._passes(moments, pair, 0.7)]
        fit = fit_support(domain, moments, passing, self.random_state)
        kept = sparse_of(fit, moments, passing, most=self.max_edges, least=self.min_weight or 0.0)
        names = domain.names
        evidence: dict[Clique, Any] = {(names[i], names[j]): {"noisy_coupling": float(fit.A[i, j])} for i, j in kept}
        return StructureResult(names, METHOD, tuple(evidence), evidence, card=card_of(measured, METHOD))

    def _passes(self, moments: SpinMoments, pair: Pair, part: float) -> bool:
        """Whether a measured pair may have an edge: by ``part`` of what η causes, or of what stands out of noise."""
        i, j = pair
        covariance = abs(float(moments.double[i, j] - moments.single[i] * moments.single[j]))
        if self.min_weight is not None:
            return covariance >= part / 1.4 * math.tanh(self.min_weight)  # 0.7: half of what η causes
        cut = math.sqrt(2 * math.log(max(moments.p, 2) ** 2))
        return covariance >= part * cut * math.sqrt(float(moments.double_variance[i, j]) + 1 / moments.records)


def _moments(domain: Domain, released: Iterable[Measurement]) -> SpinMoments:
    """Means and pair correlations from all sums so far."""
    known = Measurements(released)
    return SpinMoments.of(domain, records_in(known), [(measured_monomials(m), m) for m in known if m.clique is None])


def _pairs_only(domain: Domain, pairs: Sequence[Pair]) -> ParitySums:
    names = domain.names
    return ParitySums(domain, [(names[i], names[j]) for i, j in pairs], label="chosen pair correlations")
