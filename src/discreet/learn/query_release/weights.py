"""Private multiplicative weights: a distribution over all records, corrected where it is privately found wrong.

Version: the offline form, MWEM [HLM12, Figure 1], of the multiplicative weights mechanism [HR10] that [001] cites, with
zCDP composition. The online form of [HR10] answers an unknown stream of queries and pays for finding out, by a sparse
vector, which of them need an update; here the list is known, so the exponential mechanism finds the worst one.

[HR10] Hardt, Rothblum, FOCS 2010. [HLM12] Hardt, Ligett, McSherry, NeurIPS 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...errors import InputError, counted
from ...privacy.budget import Budget
from ...privacy.requests import Asking, Measure, Select
from ..planned import measuring, selecting
from ..procedure import Step, Whole
from .answers import AnswersLearner, ReleasedAnswers
from .workload import Array, Workload, flat

_REPLAYS = 30  # passes over what was measured: post-processing
Measured = dict[int, tuple[Array, float]]


@dataclass(frozen=True)
class MultiplicativeWeights(AnswersLearner):
    """Each round privately selects the group (a parity, or a table) that the distribution answers worst, measures it,
    and reweights: exp(η·q(x)) with η in proportion to the error, going over all measurements several times.

    Guarantee: the budget's own, for the curator's unit, under add-remove and replace-one. A round costs one selection
    (exponential mechanism; permute-and-flip under a pure budget) by a score that one unit moves by at most the group's
    L1 sensitivity, and one noisy measurement of that group, half of the round's share each; rounds compose adaptively,
    and the distribution is a function of what was released. Rounds default to a fifth of the groups, 4 to 40.
    """

    rounds: int | None = None

    def __post_init__(self) -> None:
        self.workload.check_enumerable()
        groups = len(self.workload.groups)
        if self.rounds is not None and (type(self.rounds) is not int or not 1 <= self.rounds <= groups):
            raise InputError(
                f"rounds must lie between 1 and the number of parities or tables, {groups}; got {self.rounds}"
            )

    @property
    def method(self) -> str:
        return "multiplicative weights"

    @property
    def _rounds(self) -> int:
        groups = len(self.workload.groups)
        return self.rounds or int(min(max(math.ceil(groups / 5), 4), 40, groups))

    def step(self, whole: Whole, share: Budget) -> Step:
        name = f"{counted(self._rounds, 'round')}: what is answered worst, and its sums"
        return self._later(whole, share, name, selecting(share), measuring(share))

    def answering(self, share: Budget, records: float) -> Asking[ReleasedAnswers]:
        workload = self.workload
        log_weights = np.zeros(workload.cells)
        measured: Measured = {}
        for part in share.split([1] * self._rounds):
            for_choice, for_sum = part.split([1, 1])
            left = [g for g in range(len(workload.groups)) if g not in measured]
            score = workload.worst_group(left, records * workload.answers_under(_distribution(log_weights)))
            selection = yield Select(for_choice, score)
            chosen = left[selection.indices[0]]
            noisy = yield Measure(for_sum, workload.group_query(chosen))
            target = np.clip(flat(noisy) / records, workload.least, 1.0)
            measured[chosen] = (target, noisy[0].standard_deviation / records)
            log_weights = _replay(workload, log_weights, measured)
        answers = workload.answers_under(_distribution(log_weights))
        return ReleasedAnswers(answers, facts={"rounds": self._rounds})


def _distribution(log_weights: Array) -> Array:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _replay(workload: Workload, log_weights: Array, measured: Measured) -> Array:
    """Updates with η = (measured − answer)/2 for parities; for cells, of which a record is in one, iterative fitting
    damped by one half. Stops within the noise."""
    out = log_weights
    for _ in range(_REPLAYS):
        worst = 0.0
        for group, (target, deviation) in measured.items():
            answer = workload.answers_under(_distribution(out))[workload.groups[group]]
            gap = target - answer
            worst = max(worst, float(np.abs(gap).max()) - 0.1 * deviation)
            if len(gap) > 1:  # a table: the ratio of wanted to present, kept away from noise around zero
                floor = max(deviation, 1e-6)
                step = 0.5 * np.log(np.maximum(target, floor) / np.maximum(answer, floor))
            else:
                step = 0.5 * gap
            out = out + workload.spread(group, step)
        if worst <= 0:
            break
    return out
