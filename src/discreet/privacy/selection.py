"""Private selection: the best of public candidates by scores of the rows, alone or in groups.

The mechanisms and their guarantees are in :mod:`.mechanisms`; how a share is divided over rounds and groups is here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .accounting import Cost
from .budget import ZCDP, ApproxDP, Budget
from .calibration import SelectionChoice, drawn, plan_selection
from .holder import Holder
from .query import GroupedScore, Score


@dataclass(frozen=True)
class Selection:
    """What private selection chose: positions and names of candidates, in the order chosen."""

    indices: tuple[int, ...]
    names: tuple[str, ...]
    scale: float


def select(curator: Holder, score: Score, share: Budget | None, k: int) -> Selection:
    """See :meth:`.Curator.select`."""
    share = curator._share(share)
    names = score.candidates
    if not 1 <= k <= len(names):
        raise InputError(f"k must lie between 1 and the number of candidates, {len(names)}; got k={k}")
    (per_round,) = set(share.split([1] * k))
    call, cost = plan_selection(score.linf(curator.unit), per_round)
    costs = (cost,) * k
    curator._check(costs)
    scores = np.asarray(score.scores(curator._sum(score.query)), dtype=np.int64)
    step = {**score.describe(), "k": k, "noise": call.kind, "share": share.to_dict()}
    curator._spend(costs, {**step, **drawn([call] * k, curator.unit)})
    left = list(range(len(names)))
    chosen = [left.pop(curator._gateway.select(call, scores[left])) for _ in range(k)]
    return Selection(tuple(chosen), tuple(names[i] for i in chosen), call.scale)


def select_each(
    curator: Holder, score: GroupedScore, share: Budget | None, k: int, mechanism: SelectionChoice
) -> tuple[Selection, ...]:
    """See :meth:`.Curator.select_each`."""
    share = curator._share(share)
    names, sizes = score.candidates, score.groups
    if sum(sizes) != len(names) or not all(1 <= k <= size for size in sizes):
        raise InputError(f"every group must have at least k={k} of the {len(names)} candidates, got {list(sizes)}")
    # Every mechanism's ε is linear in the change of its scores. The exponential mechanism's ρ is its square; the ρ
    # of other ε-DP mechanisms is convex in ε, so that half the change costs at most half.
    linear, squared = score.joint(curator.unit)
    notion = share.to_zcdp() if isinstance(share, ApproxDP) else share
    joint = squared if isinstance(notion, ZCDP) and mechanism == "auto" else linear
    per_round = notion.split([1, k * joint - 1])[0] if k * joint > 1 else notion
    linfs = score.linfs(curator.unit)
    planned = {linf: plan_selection(linf, per_round, mechanism)[0] for linf in set(linfs)}
    calls = [planned[linf] for linf in linfs]
    # Every call is within its part of the share, so the whole is within the share; thousands of steps with a scale
    # each would otherwise be added up with ever longer fractions.
    cost = Cost.of(notion)
    curator._check((cost,))
    scores = np.asarray(score.scores(curator._sum(score.query)), dtype=np.int64)
    step = {**score.describe(), "k": k, "noise": calls[0].kind, "joint": str(joint), "share": share.to_dict()}
    curator._spend((cost,), {**step, **drawn(planned.values(), curator.unit)})
    out, start = [], 0
    for call, size in zip(calls, sizes, strict=True):
        left = list(range(start, start + size))
        chosen = [left.pop(curator._gateway.select(call, scores[left])) for _ in range(k)]
        out.append(Selection(tuple(c - start for c in chosen), tuple(names[c] for c in chosen), call.scale))
        start += size
    return tuple(out)
