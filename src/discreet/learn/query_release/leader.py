"""Follow the perturbed leader with the exponential mechanism: FEM and sepFEM [VTBSW20], for data with many columns.

A game between two players. The *query player* privately selects, by the exponential mechanism over +q and −q of all
queries, one that the current synthetic records answer too low. The *data player* answers with records that maximise the
sum of all queries selected so far plus a random linear perturbation, found by an optimisation oracle. The records of
all rounds together are the synthetic data.

* ``"separator"`` — sepFEM of [VTBSW20], the one that [001] cites: Laplace noise of scale η on a small set of functions
  that tells any two records apart. For binary columns that is z₁ … z_p; in general, the levels of the columns.
* ``"exponential"`` — FEM of [VTBSW20]: exponential noise of mean η on every one-hot coordinate.

Privacy, and why it does not depend on the oracle. Rows are looked at in one place only: the selection of each round.
Its score is sum − n̂·(answer on the synthetic records), with n̂ public or already paid for, and the records made before;
so one unit moves it by at most the query's L∞ sensitivity Δ (parities 1, or 2 under replace-one; cells 1 under both),
and the exponential mechanism of scale b costs Δ²/(2b²) in zCDP. (The authors' code books ε₀²/2 for a selection of range
ε₀; bounded range [CR21] gives ε₀²/8.) Everything that the data player does — perturbing, optimising badly, running out
of time — is a function of selections that were released and of randomness that is independent of the data:
post-processing, under adaptive composition. The perturbation protects nobody and may be seeded and published. In code,
the oracle lives in :mod:`discreet.inference`, which cannot import rows, curators or noise. A poor oracle makes poor
answers, no less private ones.

[VTBSW20] Vietri, Tian, Bun, Steinke, Wu, "New oracle-efficient algorithms for private synthetic data release", ICML
2020. [CR21] Cesar, Rogers, ALT 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_positive, check_whole
from ...errors import counted
from ...inference.best_record import AnnealedSearch, Enumeration, Oracle
from ...inference.perturbed_leader import DataPlayer, Perturbation
from ...privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ...privacy.queries.residuals import SignedResiduals
from ...privacy.requests import Asking, Select
from ..planned import selecting
from ..procedure import Step, Whole
from .answers import AnswersLearner, ReleasedAnswers
from .workload import Workload

LEAST_ROUNDS, MOST_ROUNDS, MOST_SEARCHED = 20, 1000, 200
SCALE = 0.5  # η = ½√T: a fixed scale lets the game stall, one that grows as √T lets its regret vanish
FEWEST_SAMPLES, MOST_TRIED = 100, 2**17


@dataclass(frozen=True)
class PerturbedLeader(AnswersLearner):
    """Synthetic records by the game above, and the workload's answers on them.

    Guarantee: the budget's own (zCDP, (ε, δ), or pure by permute-and-flip), for the curator's unit, under add-remove
    and replace-one; whatever the oracle does.

    Parameters
    ----------
    oracle:
        By default all records are tried where they are few (65,536), and :class:`AnnealedSearch` is used otherwise;
        :class:`IntegerProgram` has a time limit and says how far it may be from the best.
    rounds, samples, scale:
        How many selections T, by default from public quantities; how many records a round, by default
        :func:`samples_of`; η, by default ½√T.
    random_state:
        Of the data player only. Noise that protects is never seeded.
    """

    oracle: Oracle | None = None
    perturbation: Perturbation = "separator"
    rounds: int | None = None
    samples: int | None = None
    scale: float | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, rounds=self.rounds, samples=self.samples)
        check_positive(or_none=True, scale=self.scale)

    @property
    def method(self) -> str:
        return f"perturbed leader, {self.perturbation}"

    def step(self, whole: Whole, share: Budget) -> Step:
        most = MOST_ROUNDS if few_records(self.workload) else MOST_SEARCHED
        name = f"{LEAST_ROUNDS} to {most} selections of a query, by the noisy number of records"
        if self.rounds is not None or whole.public_size is not None:
            name = f"{counted(self._rounds(whole.public_size or 1, share), 'selection')} of a query"
        return self._later(whole, share, name, selecting(share))

    def answering(self, share: Budget, records: float) -> Asking[ReleasedAnswers]:
        workload, rounds = self.workload, self._rounds(records, share)
        oracle = self.oracle or (Enumeration() if few_records(workload) else AnnealedSearch())
        scale = self.scale or SCALE * math.sqrt(rounds)
        samples = self.samples or samples_of(workload, rounds)
        player = DataPlayer(workload.terms, oracle, self.perturbation, scale, samples, self.random_state)
        made = []
        for part in share.split([1] * rounds):
            made.append(player.play())
            score = SignedResiduals(workload.query, records * workload.answers_on(made[-1]))
            selection = yield Select(part, score)
            chosen = selection.indices[0]
            player.ask_for(chosen % len(workload), 1 if chosen < len(workload) else -1)
        everything = np.concatenate(made)
        facts = {"rounds": rounds, "samples": samples, "scale": scale, "oracle": type(oracle).__name__}
        return ReleasedAnswers(workload.answers_on(everything), {}, everything, player.gap, facts)

    def _rounds(self, records: float, share: Budget) -> int:
        return self.rounds or choose_rounds(self.workload, max(records, 1.0), share)


def few_records(workload: Workload) -> bool:
    """Whether all possible records can be tried each round."""
    return workload.cells <= Enumeration.most


def samples_of(workload: Workload, rounds: int) -> int:
    """Half as many records a round as there are rounds, where trying all is cheap; at least 100.

    A selection sees the answers of a round's records, so that it follows their sampling error once gaps are smaller.
    With so many as rounds that error falls as fast as the regret (Lemma 4.6 has T of them); with a fixed number it soon
    is the larger part.
    """
    return max(FEWEST_SAMPLES, min(rounds // 2, MOST_TRIED // workload.cells))


def choose_rounds(workload: Workload, size: float, budget: Budget) -> int:
    """So many that the noise of one selection, b·ln 2m counts, is about the regret of the data player, n/√T.

    With b = √(T/2ρ) (pure: 2T/ε) that is T = n√(2ρ)/ln 2m, and (nε/(2 ln 2m))^⅔. At least 20, and at most 1,000 where
    all records are tried, 200 where a search takes its time.
    """
    logarithm = math.log(2 * len(workload))
    if isinstance(budget, PureDP):
        wanted = (size * float(budget.epsilon) / (2 * logarithm)) ** (2 / 3)
    else:
        share = budget.to_zcdp() if isinstance(budget, ApproxDP) else budget
        assert isinstance(share, ZCDP)
        rho = share.rho
        wanted = size * math.sqrt(2 * rho) / logarithm
    return int(min(max(wanted, LEAST_ROUNDS), MOST_ROUNDS if few_records(workload) else MOST_SEARCHED))
