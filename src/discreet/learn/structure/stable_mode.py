"""[001] Lemma 6.1: split the records into blocks, learn a graph on each, release the one that most blocks agree on.

* :class:`StableMode`, ``how="histogram"``: the most frequent graph by a stability histogram, Laplace(2/ε) noise on the
  counts of graphs that occur and the threshold 1 + 2 ln(2/δ)/ε. A unit is in one block: one count falls by one and
  another rises, hence the 2 (the lemma's source counts replacing and leaves the constant open). (ε, δ)-DP.
* ``how="propose-test-release"``: the most frequent graph if its lead over the next is stable, one Laplace(1/ε) draw.
* ``how="each edge"``: edge by edge the majority of the blocks, released jointly if no few votes could change any.
  Blocks need not agree on the whole graph: the black box to use when a base learner is all there is.

Blocks are by the records' own coins, their number is public, and every block votes, also an empty one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ...domain import Domain
from ...errors import BudgetError, InputError
from ...measurement import Noise
from ...privacy.budget import ApproxDP, Budget
from ...privacy.calibration import plan_threshold
from ...privacy.curator import Curator
from ...privacy.stability import Stability, plan_stability
from ...privacy.unit import PrivacyUnit, Sensitivity
from ..planned_sums import PlannedSums
from ..procedure import Plan
from .base_learners import BaseLearner, as_word
from .result import StructureResult, refusal

How = Literal["histogram", "propose-test-release", "each edge"]


def blocks_for(budget: ApproxDP, how: How) -> int:
    """Enough blocks that a graph which nine of ten find is released in nine of ten runs; public."""
    if how == "histogram":
        call, _ = plan_threshold(Sensitivity(2, 2, 1, 2), budget)
        assert call.threshold is not None
        return math.ceil((call.threshold + 1 + 2 * call.scale) / 0.9)
    call, _ = plan_stability(budget)
    assert call.threshold is not None
    return math.ceil((2 * (call.threshold + 1 + 2 * call.scale) + 1) / 0.8)


@dataclass(frozen=True)
class StableMode:
    """The paper's structure learner; ``base`` is SparseLogistic(η, λ) or Sparsitron(η, λ, t)."""

    base: BaseLearner
    how: How = "histogram"
    blocks: int | None = None

    def __post_init__(self) -> None:
        if self.how not in ("histogram", "propose-test-release", "each edge"):
            raise InputError(f"how must be 'histogram', 'propose-test-release' or 'each edge', got {self.how!r}")
        if self.blocks is not None and (type(self.blocks) is not int or self.blocks < 1):
            raise InputError(f"blocks must be a whole number of at least 1, got {self.blocks!r}")

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """What will be asked, before a row is read."""
        approx = self._check(domain, budget)
        m = self.blocks or blocks_for(approx, self.how)
        call, _ = plan_threshold(Sensitivity(2, 2, 1, 2), approx) if self.how == "histogram" else plan_stability(approx)
        entry = PlannedSums((), 1, 1.0, Noise("laplace", call.scale), name=f"votes of {m} blocks, {self.how}")
        note = f"A graph is released above {call.threshold}; each block has 1/{m} of the records."
        return Plan(f"stable mode, {self.how}", unit, budget, (entry,), (note,), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> StructureResult:
        """Ask the curator with ``share`` (all that remains, by default)."""
        domain = curator.domain
        budget = self._check(domain, share or curator.remaining or curator.budget)
        m = self.blocks or blocks_for(budget, self.how)
        candidates = self.base.candidates(domain)
        method = f"stable mode, {self.how}, {type(self.base).__name__}"

        def learn(block: Curator) -> str:
            return as_word(candidates, self.base.found(block))

        out: Stability
        if self.how == "histogram":
            vote = curator.vote(learn, m, budget)
            card = {**curator.statement(), "method": method, "blocks": m}
            if vote.winner is None:
                reason = (
                    f"No graph had more than {vote.threshold} of {m} noisy votes. More records a block make blocks "
                    "agree; with the same records, a larger ε needs fewer blocks."
                )
                return StructureResult(domain, method, None, {}, reason, {"votes": vote.threshold or 0}, card)
            word, facts = vote.winner, {"noisy_votes": vote.counts[vote.winner], "blocks": m}
        else:
            if self.how == "each edge":
                out = curator.vote_for_each(learn, len(candidates), m, budget)
                word = "" if out.signs is None else "".join("1" if s else "0" for s in out.signs)
            else:
                out = curator.vote_and_test(learn, m, budget)
                word = out.word or ""
            card = {**curator.statement(), "method": method, "blocks": m, "noisy_distance": out.noisy_distance}
            if out.refused or len(word) != len(candidates):
                return refusal(domain, method, out, card, "blocks (and records)")
            facts = {"noisy_distance": out.noisy_distance, "blocks": m}
        cliques = tuple(c for c, yes in zip(candidates, word, strict=True) if yes == "1")
        return StructureResult(domain, method, cliques, dict.fromkeys(cliques, facts), card=card)

    def _check(self, domain: Domain, budget: Budget) -> ApproxDP:
        if not isinstance(budget, ApproxDP):
            raise BudgetError(f"stable mode needs a whole (ε, δ) budget, and there is {budget}")
        if len(domain) < 2:
            raise InputError(f"a graph needs at least two columns, there are {len(domain)}")
        return budget
