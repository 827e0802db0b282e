"""Votes of blocks: a learner is run on each of many disjoint random blocks, and only a private vote is let out.

A unit goes to one block by its own coin (or its person's), so it changes at most one block's vote, under add-remove and
under replace-one (there the old and the new value can be taken to share a coin), however many rows a person has.

This holds for learners that are functions of their block alone. A learner that remembers something from one call to the
next (a cache, a warm start, a random generator that all calls share) lets one unit change many votes, and nobody can
protect its outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..progress import listening, nobody
from ..tables.base import Table
from .budget import Budget
from .calibration import drawn, plan_selection, plan_threshold
from .holder import Holder
from .stability import Stability, plan_stability
from .unit import Sensitivity

ABSTAIN = "⊥"
Learner = Callable[[Any], str | None]
"""From a curator that answers exactly about one block to a word, or None to abstain."""
_NOUN = ["vote of blocks", "votes of blocks"]
# One unit is in one block, so it changes one vote: one candidate loses it and another gains it.
_ONE_VOTE = Sensitivity(l1=2, l2_squared=2, linf=1, l0=2)


@dataclass(frozen=True)
class Vote:
    """The outcome of a private vote. ``winner`` is None when no outcome had enough votes to be shown safely."""

    winner: str | None
    counts: Mapping[str, int]
    threshold: int | None


def vote(
    curator: Holder, learner: Learner, blocks: int, share: Budget | None, candidates: Sequence[str] | None
) -> Vote:
    """See :meth:`Curator.vote`."""
    share = curator._share(share)
    check_blocks(blocks)
    if candidates is not None:
        if len(set(candidates)) != len(candidates) or not candidates:
            raise InputError("candidates must be distinct and at least one")
        call, cost = plan_selection(_ONE_VOTE.linf, share)
    else:
        call, cost = plan_threshold(_ONE_VOTE, share)
    curator._check((cost,))
    ballots = _ballots(curator, learner, blocks)
    step = {"query": "vote", "noun": _NOUN, "blocks": blocks, "noise": call.kind, "share": share.to_dict()}
    curator._spend((cost,), {**step, **drawn([call], curator.unit)})
    if candidates is not None:
        counts = np.array([ballots.count(c) for c in candidates], dtype=np.int64)
        return Vote(candidates[curator._gateway.select(call, counts)], {}, None)
    released = curator._gateway.release_large(call, {b: ballots.count(b) for b in set(ballots)})
    released = {b: n for b, n in released.items() if b != ABSTAIN}
    winner = max(sorted(released), key=lambda b: released[b]) if released else None
    return Vote(winner, released, call.threshold)


def vote_for_each(curator: Holder, learner: Learner, questions: int, blocks: int, share: Budget | None) -> Stability:
    """See :meth:`Curator.vote_for_each`. A question with v of m votes has the level ⌊(2v − m − 1)/2⌋: yes for more than
    half of the votes, and one vote moves it by at most one. A learner that fails, or does not answer with a word of 0
    and 1 of the right length, has voted no everywhere.
    """
    share = curator._share(share)
    check_blocks(blocks)
    if type(questions) is not int or questions < 1:
        raise InputError(f"the number of questions must be a whole number of at least 1, got {questions!r}")
    call, cost = plan_stability(share)
    curator._check((cost,))
    yes = np.zeros(questions, dtype=np.int64)
    for word in _ballots(curator, learner, blocks):
        if len(word) == questions and set(word) <= {"0", "1"}:
            yes += np.frombuffer(word.encode(), dtype=np.uint8) == ord("1")
    levels = (2 * yes - blocks - 1) // 2
    step = {"query": "vote for each", "noun": _NOUN, "questions": questions, "blocks": blocks, "share": share.to_dict()}
    curator._spend((cost,), {**step, **drawn([call], curator.unit)})
    return Stability.of(call, curator._gateway.release_stable(call, levels, ""))


def vote_and_test(curator: Holder, learner: Learner, blocks: int, share: Budget | None) -> Stability:
    """See :meth:`Curator.vote_and_test`. The level is ⌊(lead − 1)/2⌋, at least 0, for the lead of the most frequent
    word over the next. One vote moves the lead by at most 2; if another word leads on a neighbour, the lead was at
    most 2 on both, and the level 0 on both.
    """
    share = curator._share(share)
    check_blocks(blocks)
    call, cost = plan_stability(share)
    curator._check((cost,))
    counts = Counter(_ballots(curator, learner, blocks))
    first, second = [*sorted(counts.items(), key=lambda item: (-item[1], item[0])), (ABSTAIN, 0)][:2]
    level = max(0, (first[1] - second[1] - 1) // 2)
    step = {"query": "vote and test", "noun": _NOUN, "blocks": blocks, "share": share.to_dict()}
    curator._spend((cost,), {**step, **drawn([call], curator.unit)})
    return Stability.of(call, curator._gateway.release_stable(call, np.array([level], dtype=np.int64), first[0]))


def check_blocks(blocks: int) -> None:
    if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
        raise InputError(f"the number of blocks must be a whole number of at least 1, got {blocks!r}")


def _ballots(curator: Holder, learner: Learner, blocks: int) -> list[str]:
    tables = curator._rows.split(blocks, curator._gateway.secret())
    return [_ballot(curator, learner, table) for table in tables]


def _ballot(curator: Holder, learner: Learner, block: Table) -> str:
    """One block's vote. Whatever goes wrong inside stays inside: it is an abstention."""
    try:
        with listening(nobody):  # progress inside a block would tell how large it is
            word = learner(curator._exact(block))
    except (Exception, SystemExit, GeneratorExit):  # Ctrl-C is the user's, and goes through
        return ABSTAIN
    finally:
        block.forget()  # there are many blocks
    return word if isinstance(word, str) else ABSTAIN
