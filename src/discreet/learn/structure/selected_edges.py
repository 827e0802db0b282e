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
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arguments import check_positive, check_whole
from ...domain import Clique, Domain
from ...measurement import Measurement, Measurements
from ...models.ising import check_binary
from ...privacy.budget import Budget, PureDP
from ...privacy.queries.parities import ParitySums, PartnerResiduals
from ...privacy.requests import Asking, Measure, SelectEach
from ..cards import card_of
from ..checks import as_measurements
from ..counting import counted_first
from ..learner import Learner
from ..planned import measuring, selecting
from ..procedure import Found, Procedure, Step, Whole
from ..spins.likelihood import fit_terms
from ..spins.measuring import Sums, all_sums, chosen_sums
from ..spins.moments import Moments
from ..spins.support import standing_out
from .result import StructureResult, check_columns

METHOD = "selected edges"
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
    random_state:
        Of approximate maximum likelihood on wide graphs; noise that protects is never seeded.
    """

    min_weight: float | None = None
    max_edges: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(or_none=True, min_weight=self.min_weight)
        check_whole(0, or_none=True, max_edges=self.max_edges)

    def prepare(self, whole: Whole) -> Procedure:
        """A noisy count unless the size is public; then all pair sums at once, or means and rounds of selection."""
        domain = whole.domain
        check_binary(domain, "SelectedEdges")
        check_columns(domain)
        count, given, rest = counted_first(whole)
        if _measures_all(len(domain), rest):
            everything = all_sums(domain, 2)
            steps = [whole.measure(everything.parts[0].label, Measure(rest, everything))]
        else:
            steps = self._steps(whole, rest)
        return Procedure(METHOD, whole, (*count, *steps), given=given)

    def _steps(self, whole: Whole, rest: Budget) -> list[Step]:
        domain = whole.domain
        for_means, *rounds, last = rest.split([MEANS_SHARE, *ROUND_SHARES, LAST_SHARE])
        steps = [whole.measure("means", Measure(for_means, chosen_sums(domain, [])))]
        for number, share in enumerate(rounds, start=1):
            name = f"round {number}: a partner for each column, and their correlation"
            asks = partial(self._round, domain, share)
            steps.append(whole.later(name, share, asks, selecting(share), measuring(share)))
        again = partial(self._again, domain, last)
        return [*steps, whole.later("pairs that passed, again", last, again, measuring(last))]

    def _round(self, domain: Domain, share: Budget, released: Measurements) -> Asking[Found]:
        """Every column that is still looking selects a partner; new pairs are measured; who was disappointed stops."""
        moments, p = _moments(released), len(domain)
        known = set(moments.joint)
        looking: list[str] = released.found.get("looking", list(domain.names))
        if not looking or len(known) == p * (p - 1) // 2:
            return {"looking": []}
        choosing, summing = share.split([SELECTING, 10 - SELECTING])
        means, _, variance, _ = moments.matrices
        # Means that are all noise would send the search after products of noise.
        means = np.where(np.abs(means) > 3 * np.sqrt(variance), means, 0.0)
        there, active = [(domain.index(a), domain.index(b)) for a, b in known], [*map(domain.index, looking)]
        score = PartnerResiduals(domain, moments.records * np.outer(means, means), there, active)
        chosen: dict[str, Clique] = {}
        for name, selection in zip(looking, (yield SelectEach(choosing, score)), strict=True):
            others = [n for n in domain.names if n != name]
            chosen[name] = domain.clique((name, others[selection.indices[0]]))
        new = {*chosen.values()} - known
        if new:
            measured = yield Measure(summing, _pairs_only(domain, new))
            moments = _moments([*released, *measured])
        return {"looking": [name for name in looking if self._passes(moments, chosen[name], 0.7)]}

    def _again(self, domain: Domain, share: Budget, released: Measurements) -> Asking[None]:
        pairs = self._passing(_moments(released), 0.5)
        if pairs:
            yield Measure(share, _pairs_only(domain, pairs))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> StructureResult:
        """Maximum likelihood on the pairs that pass, and those couplings that pass then; post-processing only."""
        measured = as_measurements(measurements)
        moments = _moments(measured)
        fit = fit_terms(moments.only(self._passing(moments, 0.7)), None, self.random_state)
        kept, couplings = standing_out(fit, self.max_edges, self.min_weight or 0.0), fit.coefficients
        evidence = {I: {"noisy_coupling": couplings[I]} for I in kept}
        columns = (domain or measured.domain).names
        return StructureResult(columns, METHOD, tuple(kept), evidence, card=card_of(measured, METHOD))

    def _passing(self, moments: Moments, part: float) -> list[Clique]:
        return [I for I in _in_order(moments.domain, moments.joint) if self._passes(moments, I, part)]

    def _passes(self, moments: Moments, pair: Clique, part: float) -> bool:
        """Whether a measured pair may have an edge: by ``part`` of what η causes, or of what stands out of noise."""
        (one, other, both), (_, _, variance) = moments.at([pair[:1], pair[1:], pair])
        covariance = abs(float(both - one * other))
        if self.min_weight is not None:
            return covariance >= part / 1.4 * math.tanh(self.min_weight)  # 0.7: half of what η causes
        cut = math.sqrt(2 * math.log(max(moments.p, 2) ** 2))
        return covariance >= part * cut * math.sqrt(float(variance) + 1 / moments.records)


def _moments(released: Iterable[Measurement]) -> Moments:
    """Means and pair correlations from all sums so far."""
    return Sums.among(Measurements(released)).moments


def _in_order(domain: Domain, pairs: Iterable[Clique]) -> list[Clique]:
    return sorted(pairs, key=lambda pair: [domain.index(name) for name in pair])


def _pairs_only(domain: Domain, pairs: Iterable[Clique]) -> ParitySums:
    return ParitySums(domain, _in_order(domain, pairs), label="chosen pair correlations")
