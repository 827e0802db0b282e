"""Private stochastic gradient descent for Markov random fields: the paper's comparison method, under (ε, δ).

Each round takes a Poisson sample, sums the records' gradients s(x) − μ(θ) clipped to a norm R, adds Gaussian noise and
steps. The rounds are accounted for together; see :mod:`discreet.privacy.subsampled`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_positive, check_whole
from ..domain import Domain
from ..errors import BudgetError, InputError
from ..learn.cards import card_of
from ..learn.checks import as_measurements
from ..learn.fields.learner import Array, as_cliques, covering, maximal
from ..learn.fields.likelihood import Field
from ..learn.learner import Learner
from ..learn.planned import PlannedTable
from ..learn.procedure import Found, Procedure, Step, Whole
from ..measurement import Measurement, Measurements, Noise
from ..models.markov import MarkovRandomField
from ..privacy.budget import ApproxDP
from ..privacy.queries.descent import SampledRounds, multiplier_for, noise_scale
from ..privacy.query import Part, Query
from ..privacy.requests import Asking
from ..privacy.unit import Relation, Sensitivity, as_probability

MARGINAL_UNITS = 2**16
WEIGHT_UNITS = 2**10
UNITS = MARGINAL_UNITS * WEIGHT_UNITS


class ClippedGradients(Query):
    """Σ over records of w(x)·(s(x) − μ), where the weight w ≤ 1 clips the norm to R.

    s(x) counts the cells that a record falls into: one in each table, or where tables share their potential several in
    one. All in whole numbers: μ is rounded to a grid first (it is public), w is rounded down record by record, and
    their product is exact. So the norm of a record's term is at most R to the last bit, in any order of summation.
    """

    def __init__(self, field: Field, marginals: Array, radius: float) -> None:
        if not 0 < radius < math.inf:
            raise InputError(f"the clipping radius must be positive, got {radius}")
        super().__init__(field.of_rows)
        if marginals.shape != (field.size,):
            raise InputError(f"the field has {field.size} marginals, got an array of shape {marginals.shape}")
        self.field = field
        self.radius = radius
        self._mu = np.rint(marginals * MARGINAL_UNITS).astype(np.int64)
        self._square = int((self._mu**2).sum())

    @property
    def columns(self) -> tuple[str, ...]:
        return self.field.of_rows.names

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("clipped gradients", (self.field.size,), grid=Fraction(1, UNITS)),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        l2 = math.ceil(self.radius * UNITS)
        if relation == "replace-one":
            l2 *= 2
        l1 = math.ceil(math.sqrt(self.field.size) * l2)
        return (Sensitivity(l1, l2 * l2, l2, self.field.size),)

    def sum_rows(self, batch: Mapping[str, Any]) -> tuple[Any, ...]:
        field = self.field
        rows = len(next(iter(batch.values())))
        # ‖s(x) − μ‖², in units of μ squared: whole numbers, so the same whatever the other records are.
        squared = np.full(rows, self._square, dtype=np.int64)
        cells: dict[int, list[Any]] = {}
        for clique, shape, begin in field.hits:
            index = begin + np.ravel_multi_index(tuple(batch[n].astype(np.int64) for n in clique), shape)
            squared -= 2 * MARGINAL_UNITS * self._mu[index]
            cells.setdefault(begin, []).append(index)
        for table in cells.values():
            squared += MARGINAL_UNITS**2 * _squared_counts(np.stack(table))
        norm = np.sqrt(np.maximum(squared, 1).astype(np.float64)) * (1 + 1e-12)
        weight = np.floor(np.minimum(self.radius * MARGINAL_UNITS / norm, 1.0) * WEIGHT_UNITS).astype(np.int64)
        sums = np.zeros(field.size, dtype=np.int64)
        for index in (index for table in cells.values() for index in table):
            # Sums of whole numbers far below 2⁵³: exact in floats.
            sums += np.bincount(index, weights=weight, minlength=field.size).astype(np.int64)
        return (sums * MARGINAL_UNITS - self._mu * int(weight.sum()),)


def _squared_counts(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Σ c² over the cells of one table that each record (a column) falls into, c how often: as many as it has entries,
    and two for each pair of them that are alike."""
    ordered = np.sort(cells, axis=0)
    out = np.full(cells.shape[1], len(cells), dtype=np.int64)
    for apart in range(1, len(cells)):
        out += 2 * (ordered[apart:] == ordered[:-apart]).sum(axis=0)
    return out


class Descent(Learner[MarkovRandomField]):
    """What private descent is, whatever the field: its options are those of :class:`PrivateDescent`."""

    approximate_size: float
    rounds: int
    rate: float | str | Fraction
    clip: float | None
    learning_rate: float
    penalty: float
    method: ClassVar[str] = "psgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(approximate_size=self.approximate_size, learning_rate=self.learning_rate)
        as_probability(self.rate)
        check_whole(1, rounds=self.rounds)
        check_positive(or_none=True, clip=self.clip, penalty=self.penalty or None)

    @abstractmethod
    def field(self, domain: Domain) -> Field:
        """The field whose potentials are learned."""

    def radius(self, field: Field) -> float:
        """To which gradients are clipped. s(x) and μ are not negative, and a table adds at most e² to the square of
        either, e how often a record counts in it."""
        often = [1 / float(field.strength[begin]) for begin, _ in field.bounds]
        return math.sqrt(2 * sum(e * e for e in often)) if self.clip is None else self.clip

    def prepare(self, whole: Whole) -> Procedure:
        """One step, all rounds. Shown is the noise of the mean of all rounds, in records, as that is what moves θ: the
        noise of one round divided by √rounds."""
        unit, budget = whole.unit, whole.budget
        if not isinstance(budget, ApproxDP):
            raise BudgetError(
                "private descent needs an (ε, δ) budget, and all of it: say --epsilon 1 --delta 1e-6; a certificate of "
                f"fit (--certify) would leave it a part in another notion. It has {budget}"
            )
        field = self.field(whole.domain)
        radius = self.radius(field)
        multiplier = multiplier_for(unit, budget, self.rate, self.rounds)

        def query(done: Sequence[Measurement]) -> ClippedGradients:
            theta = self._path(field, done)[-1]
            return ClippedGradients(field, field(theta / field.strength)[1] / field.strength, radius)

        def asks(released: Measurements) -> Asking[Found]:
            yield SampledRounds(budget, self.rate, self.rounds, query)
            return {"noise_multiplier": multiplier}

        noise_scale(query([]), unit, multiplier)  # a grid too coarse for the noise is refused before anything is paid
        rate = float(as_probability(self.rate))
        noise = Noise("gaussian", multiplier * radius * unit.max_rows / rate / math.sqrt(self.rounds))
        why = (
            f"{self.rounds} rounds on samples of {rate:.3g} of the records; noise of {multiplier:.3g} times the norm "
            f"{radius:.3g} to which gradients are clipped. The standard deviation is that of the mean of all rounds, "
            "in records."
        )
        name = "clipped gradients of random samples"
        step = Step(name, budget, (PlannedTable((), field.size, 1.0, noise, why, name=name),), asks)
        whole = replace(whole, approximate_size=whole.approximate_size or self.approximate_size)
        return Procedure(self.method, whole, (step,))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """From the noisy gradients of all rounds: the mean of θ over the second half, where noise averages out."""
        measured = as_measurements(measurements)
        whole = domain or measured.domain
        field = self.field(whole)
        if len(measured) != self.rounds or any(m.counts.shape != (field.size,) for m in measured):
            raise InputError("descent estimates from the noisy gradients of all its rounds, which are not there")
        theta = np.mean(self._path(field, measured)[1 + self.rounds // 2 :], axis=0)
        facts = {"noise_multiplier": measured.found.get("noise_multiplier")}
        return MarkovRandomField(
            whole, field.potentials(theta / field.strength), card_of(measured, self.method, **facts)
        )

    def _path(self, field: Field, gradients: Sequence[Measurement]) -> list[Array]:
        """The log potentials before the first round and after each."""
        path = [np.zeros(field.size)]
        for m in gradients:
            gradient = m.values / (float(as_probability(self.rate)) * self.approximate_size)
            path.append(path[-1] + self.learning_rate * (gradient - self.penalty * path[-1]))
        return path


@dataclass(frozen=True)
class PrivateDescent(Descent):
    """Learn a Markov random field by private stochastic gradient descent. Needs an (ε, δ) budget and add-remove.

    Parameters
    ----------
    approximate_size:
        The number of records as far as it is public: it scales the steps, and need not be exact.
    rounds, rate:
        How many samples, and which part of the records each holds.
    clip:
        R; by default √(2|C|), which no gradient exceeds.
    learning_rate, penalty:
        Of θ ← θ + η(gradient − λθ).
    """

    cliques: Iterable[Iterable[str]]
    approximate_size: float
    rounds: int = 100
    rate: float | str | Fraction = 0.1
    clip: float | None = None
    learning_rate: float = 5.0
    penalty: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "cliques", as_cliques(self.cliques))
        super().__post_init__()

    def field(self, domain: Domain) -> Field:
        return Field(domain, maximal(covering(domain, self.cliques)), inference="exact")
