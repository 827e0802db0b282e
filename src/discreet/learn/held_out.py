"""Held-out log-likelihood on private records: clipped, noised, and paid for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..domain import Domain
from ..errors import InputError
from ..measurement import Measurements
from ..models.base import Model
from ..privacy.queries.likelihood import LogLikelihood
from ..privacy.requests import Measure
from .learner import Learner
from .procedure import Procedure, Whole


@dataclass(frozen=True)
class HeldOut(Learner[float]):
    """The mean log-likelihood of a private record under a public model: ``HeldOut(model).fit(curator)``.

    It comes from the noisy sum of max(log P(record), floor) over the curator's records and their noisy number, and lies
    between ``floor`` and 0. On public records ``model.log_prob(records).mean()`` is free. Guarantee: the budget, see
    :class:`LogLikelihood`.
    """

    model: Model
    floor: float = -20.0

    def prepare(self, whole: Whole) -> Procedure:
        tables = [(clique, factor.values) for clique, factor in self.model.potentials.items()]
        query = LogLikelihood(self.model.domain, tables, self.model.log_partition, self.floor)
        step = whole.measure("log-likelihood and number of records", Measure(whole.budget, query))
        return Procedure("held-out log-likelihood", whole, (step,))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> float:
        if len(measurements) != 2:
            raise InputError("a held-out log-likelihood comes from two noisy sums, as HeldOut.measure gives them")
        total, number = (float(m.values[0]) for m in measurements)
        return float(np.clip(total / max(number, 1.0), self.floor, 0.0))
