"""Release by noise on every answer: Gaussian, or Laplace under a pure budget. Also what every release returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...measurement import Measurement
from ...privacy.budget import Budget
from ...privacy.curator import Curator
from ..planned_sums import release_card
from ..spins.measuring import size_and_rest
from .workload import Array, Workload, flat


@dataclass(frozen=True, eq=False)
class ReleasedAnswers:
    """Answers to a workload, in its order, as means over the records; public, with a card that says what they cost.

    ``records`` are the synthetic records that the answers were read off, for methods that make some. ``gap`` is the
    largest relative gap that the method's optimisation oracle left: 0 when every answer of it was proved best, nan
    when it proves nothing. Privacy does not depend on it.
    """

    answers: Array
    card: Mapping[str, Any]
    records: NDArray[np.int64] | None = None
    gap: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def number_of_records(curator: Curator, workload: Workload, budget: Budget | None) -> tuple[Measurement, float, Budget]:
    """The public or noisy number of records (two percent of the budget) and the rest of the budget."""
    curator.require(workload.query)  # before the number of records is paid for
    whole = budget or curator.remaining or curator.budget
    for_size, rest = size_and_rest(whole, size_is_public=curator.public_size is not None)
    size = curator.size(for_size)
    return size, max(float(size.values), 1.0), rest


def release_gaussian(curator: Curator, workload: Workload, budget: Budget | None = None) -> ReleasedAnswers:
    """Every sum with noise, divided by the public or noisy number of records, clipped to what is possible.

    Guarantee: the budget's own (pure, zCDP or (ε, δ)), for the curator's unit, under add-remove and replace-one: noise
    calibrated to the L2 (L1) sensitivity of all sums together. For all m parities of given orders that is √m under
    add-remove and 2√c under replace-one, c as in :class:`ParitySums`; for m tables √m and √(2m).
    """
    size, n, rest = number_of_records(curator, workload, budget)
    measured = curator.measure(workload.query, rest)
    answers = np.clip(flat(measured) / n, workload.least, 1.0)
    return ReleasedAnswers(
        answers, release_card(curator.statement(), [size, *measured], method="noise on every answer")
    )
