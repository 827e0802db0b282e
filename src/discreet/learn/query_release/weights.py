"""Private multiplicative weights: a distribution over all records, corrected where it is privately found wrong.

Version: the offline form, MWEM [HLM12, Figure 1], of the multiplicative weights mechanism [HR10] that [001] cites, with
zCDP composition. The online form of [HR10] answers an unknown stream of queries and pays for finding out, by a sparse
vector, which of them need an update; here the list is known, so the exponential mechanism finds the worst one.

[HR10] Hardt, Rothblum, FOCS 2010. [HLM12] Hardt, Ligett, McSherry, NeurIPS 2012.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import InputError
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ..planned_sums import release_card
from .additive import ReleasedAnswers, number_of_records
from .workload import Array, Workload, flat

_REPLAYS = 30  # passes over what was measured: post-processing
Measured = dict[int, tuple[Array, float]]


def release_multiplicative_weights(
    curator: Curator, workload: Workload, budget: Budget | None = None, *, rounds: int | None = None
) -> ReleasedAnswers:
    """Each round privately selects the group (a parity, or a table) that the distribution answers worst, measures it,
    and reweights: exp(η·q(x)) with η in proportion to the error, going over all measurements several times.

    Guarantee: the budget's own, for the curator's unit, under add-remove and replace-one. A round costs one selection
    (exponential mechanism; permute-and-flip under a pure budget) by a score that one unit moves by at most the group's
    L1 sensitivity, and one noisy measurement of that group, half of the round's share each; rounds compose adaptively,
    and the distribution is a function of what was released. Rounds default to a fifth of the groups, 4 to 40.
    """
    workload.check_enumerable()
    groups = len(workload.groups)
    if rounds is None:
        rounds = int(min(max(math.ceil(groups / 5), 4), 40, groups))
    if not 1 <= rounds <= groups:
        raise InputError(f"rounds must lie between 1 and the number of parities or tables, {groups}; got {rounds}")
    size, n, rest = number_of_records(curator, workload, budget)
    log_weights = np.zeros(workload.cells)
    measured: Measured = {}
    sums = [size]
    for share in rest.split([1] * rounds):
        for_choice, for_sum = share.split([1, 1])
        left = [g for g in range(groups) if g not in measured]
        score = workload.worst_group(left, n * workload.answers_under(_distribution(log_weights)))
        chosen = left[curator.select(score, for_choice).indices[0]]
        noisy = curator.measure(workload.group_query(chosen), for_sum)
        sums += noisy
        target = np.clip(flat(noisy) / n, workload.least, 1.0)
        measured[chosen] = (target, noisy[0].standard_deviation / n)
        log_weights = _replay(workload, log_weights, measured)
    card = release_card(curator.statement(), sums, method="multiplicative weights", rounds=rounds)
    return ReleasedAnswers(workload.answers_under(_distribution(log_weights)), card, facts={"rounds": rounds})


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
