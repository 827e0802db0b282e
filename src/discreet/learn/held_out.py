"""Held-out log-likelihood on private records: clipped, noised, and paid for."""

from __future__ import annotations

import numpy as np

from ..measurement import Measurements
from ..models.base import Model
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.queries.likelihood import LogLikelihood


def measure_log_likelihood(
    model: Model, curator: Curator, share: Budget | None = None, *, floor: float = -20.0
) -> Measurements:
    """The noisy sum of max(log P(record), floor) over the curator's records, and their noisy number.

    On public records ``model.log_prob(records).mean()`` is free. Guarantee: ``share``, see :class:`LogLikelihood`.
    """
    tables = [(clique, factor.values) for clique, factor in model.potentials.items()]
    query = LogLikelihood(model.domain, tables, model.log_partition, floor)
    return curator.measure(query, share)


def held_out_log_likelihood(
    model: Model, curator: Curator, share: Budget | None = None, *, floor: float = -20.0
) -> float:
    """Mean log-likelihood of a private record, from :func:`measure_log_likelihood`; between ``floor`` and 0."""
    total, number = measure_log_likelihood(model, curator, share, floor=floor)
    return float(np.clip(total.values[0] / max(number.values[0], 1.0), floor, 0.0))
