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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import BudgetError, InputError
from ...measurement import Measurements
from ...privacy.budget import ApproxDP, Budget
from ...privacy.calibration import plan_threshold
from ...privacy.curator import Curator
from ...privacy.requests import Asking, Poll
from ...privacy.stability import Stability, plan_stability
from ...privacy.unit import Sensitivity
from ...privacy.voting import ABSTAIN, Vote
from ..learner import Learner
from ..procedure import Found, Procedure, Whole
from .base_learners import BaseLearner, SparseLogistic, Sparsitron, as_word
from .result import STABILITY, StructureResult, check_columns, graph_found, nothing_found, refusal, result_of, tested

Base = Literal["logistic", "sparsitron"]
How = Literal["histogram", "propose-test-release", "each edge"]


def blocks_for(budget: ApproxDP, how: How) -> int:
    """Enough blocks that a graph which nine of ten find is released in nine of ten runs; public."""
    scale, threshold = _planned(budget, how)
    wanted = threshold + 1 + 2 * scale
    return math.ceil(wanted / 0.9 if how == "histogram" else (2 * wanted + 1) / 0.8)


@dataclass(frozen=True)
class StableMode(Learner[StructureResult]):
    """The paper's structure learner.

    Parameters
    ----------
    min_weight, width:
        η and λ: public bounds on the size of an interaction that is there, and on the weights around a column.
    base:
        What learns on a block: ``"logistic"`` (:class:`SparseLogistic`: pairs) or ``"sparsitron"``
        (:class:`Sparsitron`: interactions of up to ``order`` binary columns).
    how, blocks:
        How the blocks vote, as above, and how many there are: by default enough for the threshold.
    steps:
        Of the base learner, each a pass over the rows: 60, or 150 of the Sparsitron.
    """

    refits: ClassVar[bool] = False

    min_weight: float
    width: float
    base: Base = "logistic"
    order: int = 2
    how: How = "histogram"
    blocks: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, blocks=self.blocks)
        self.base_learner()  # checks the rest

    def base_learner(self) -> BaseLearner:
        """What runs on each block."""
        steps = {} if self.steps is None else {"steps": self.steps}
        if self.base == "sparsitron":
            return Sparsitron(self.min_weight, self.width, self.order, **steps)
        if self.base != "logistic":
            raise InputError(f"base must be 'logistic' or 'sparsitron', got {self.base!r}")
        if self.order != 2:
            raise InputError(f"base='logistic' finds pairs only; for order={self.order!r} take base='sparsitron'")
        return SparseLogistic(self.min_weight, self.width, **steps)

    @property
    def method(self) -> str:
        return f"stable mode, {self.how}, {type(self.base_learner()).__name__}"

    def prepare(self, whole: Whole) -> Procedure:
        """One step: the blocks vote."""
        approx, base = self._check(whole.domain, whole.budget), self.base_learner()
        m, candidates = self.blocks or blocks_for(approx, self.how), base.candidates(whole.domain)

        def learn(block: Curator) -> str:
            return as_word(candidates, base.found(block))

        def asks(released: Measurements) -> Asking[Found]:
            return _read(candidates, m, (yield Poll(approx, learn, m, self.how, len(candidates))))

        scale, threshold = _planned(approx, self.how)
        note = f"A graph is released above {threshold}; each block has 1/{m} of the records."
        mechanism = "stability histogram" if self.how == "histogram" else STABILITY
        vote = tested(whole, f"votes of {m} blocks, {self.how}", approx, scale, asks, mechanism)
        return Procedure(self.method, whole, (vote,), (note,))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> StructureResult:
        """The graph that the vote released, or its refusal."""
        return result_of(measurements, domain, self.method)

    def _check(self, domain: Domain, budget: Budget) -> ApproxDP:
        if not isinstance(budget, ApproxDP):
            raise BudgetError(f"stable mode needs a whole (ε, δ) budget, and there is {budget}")
        check_columns(domain)
        return budget


def _planned(budget: ApproxDP, how: How) -> tuple[float, int]:
    """The scale of the noise, and the threshold."""
    one_vote = Sensitivity(2, 2, 1, 2)  # one count falls and another rises
    call, _ = plan_threshold(one_vote, budget) if how == "histogram" else plan_stability(budget)
    assert call.threshold is not None
    return call.scale, call.threshold


def _read(candidates: Sequence[Clique], blocks: int, out: Vote | Stability) -> Found:
    """What the vote released, as plain data."""
    facts: dict[str, int] = {"blocks": blocks}
    if isinstance(out, Vote):
        if out.winner is None:
            reason = (
                f"No graph had more than {out.threshold} of {blocks} noisy votes. More records a block make blocks "
                "agree; with the same records, a larger ε needs fewer blocks."
            )
            return nothing_found(reason, {"votes": out.threshold or 0}, **facts)
        word, known = out.winner, {"noisy_votes": out.counts[out.winner], **facts}
    else:
        # Each edge has a sign of its own; a word may also be that most blocks could not learn.
        word = out.word or "".join("1" if s else "0" for s in (() if out.signs is None else out.signs))
        if out.refused or word == ABSTAIN:
            return refusal(out, "blocks (and records)", **facts)
        facts["noisy_distance"] = out.noisy_distance
        known = facts
    return graph_found({c: known for c, yes in zip(candidates, word, strict=True) if yes == "1"}, **facts)
