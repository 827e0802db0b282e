"""What the learners of chains share: which tables of windows are asked for, and the model of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...arguments import check_whole
from ...domain import Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT, triangulate
from ...measurement import Measurement, Measurements
from ...models.base import Model
from ...models.marginals import marginals
from ...models.markov import MarkovRandomField
from ...privacy.calibration import NoiseChoice
from ...privacy.queries.chains import MOVES, ChainTables, check_chain, moves_of
from ...privacy.requests import Measure
from ..cards import card_of
from ..checks import as_measurements
from ..consistency import estimated_total
from ..fields.learner import Array, FieldLearner
from ..fields.likelihood import Field
from ..learner import Learner
from ..planned import advice, noisy
from ..procedure import Procedure, Whole
from ..shares import allocate
from .tied import TiedField

Bound = Literal["rows", "scale"]
BOUNDS = ("rows", "scale")
SCALED = "Each window of a person with K windows counts 1/K."


@dataclass(frozen=True)
class ChainLearner(Learner[MarkovRandomField]):
    """Learn a chain from windows: records whose columns are times, in order (:mod:`discreet.tables.windows`).

    All learners of this kind ask for the same tables, so any of them can :meth:`estimate` from what another measured.

    Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike; sensitivities:
    :class:`~discreet.privacy.queries.chains.ChainTables`. The model is post-processing.

    Parameters
    ----------
    order:
        How many times before it a state depends on.
    tied:
        Whether the potential is the same at all times; then there is one table for all of them, which has as much less
        noise, and one for how windows start.
    bound:
        What bounds a person's contribution: ``"rows"``: at most ``max_rows`` of their windows count, drawn at random;
        ``"scale"``: each of K windows counts 1/K.
    noise:
        ``"laplace"``, ``"gaussian"`` or ``"auto"``: the one with less error for the budget.
    """

    order: int = 1
    tied: bool = True
    bound: Bound = "rows"
    noise: NoiseChoice = "auto"
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    method: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, order=self.order, memory_limit=self.memory_limit)
        if self.bound not in BOUNDS:
            raise InputError(f"bound must be one of {', '.join(map(repr, BOUNDS))}; got {self.bound!r}")

    @abstractmethod
    def fields(self) -> FieldLearner:
        """What makes a field of noisy tables; its cliques are not asked for."""

    def solved(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        """The log potentials, and public facts about the fit for the card."""
        return self.fields()._solve(field, measurements)

    def query(self, domain: Domain) -> ChainTables:
        return ChainTables(domain, self.order, tied=self.tied, scaled=self.bound == "scale")

    def prepare(self, whole: Whole) -> Procedure:
        """One step: the tables of starts and of moves, or those of all times."""
        query = self.query(whole.domain)
        found = allocate(query, whole.unit, whole.budget, self.noise)
        request = Measure(whole.budget, query, found.noise, found.weights)
        name = "tables of starts and moves" if self.tied else "tables of moves at every time"
        step = whole.measure(name, request, why=found.why)
        notes = (SCALED,) if self.bound == "scale" else ()
        return Procedure(f"chain, {self.method}", whole, (step,), (*notes, *advice(noisy(step.rows, whole.size))))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The chain from tables that were measured before. Post-processing: costs nothing."""
        measured = as_measurements(measurements)
        windows = measured.domain if domain is None else domain
        field = field_of(windows, self.order, tied=self.tied, memory_limit=self.memory_limit)
        if isinstance(field, TiedField):
            measured = field.tables(measured)
        theta, facts = self.solved(field, measured)
        card = card_of(measured, self.method, **facts, order=self.order, tied=self.tied, bound=self.bound)
        return MarkovRandomField(windows, field.potentials(theta), card)

    def expected(self, measurements: Measurements) -> Callable[[Model], list[Array]]:
        """What a model expects of each measurement: of moves at all times together as of other tables."""
        measured = as_measurements(measurements)
        of_windows = Measurements([m for m in measured if m.clique is not None], measured.release)
        records = estimated_total(of_windows)

        def sums_of(model: Model) -> list[Array]:
            moves = moves_of(model.domain, self.order) if self.tied else ()
            wanted = list(dict.fromkeys([*moves, *(m.clique for m in measured if m.clique)]))
            tables = dict(zip(wanted, marginals(model, wanted)[0], strict=True))

            def of(m: Measurement) -> Array:
                if MOVES in m.about:
                    return np.asarray(records * np.sum([tables[c] for c in moves], axis=0))
                return np.asarray(records * (tables[m.clique] if m.clique else np.ones(())))

            return [of(m) for m in measured]

        return sums_of

    def most_work(self, domain: Domain) -> tuple[int, float]:
        inference = triangulate(domain, moves_of(domain, self.order)).forecast()
        return inference.bytes, self.passes * inference.seconds


def field_of(windows: Domain, order: int, *, tied: bool, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> Field:
    """The field of a chain, exact: its tree is as wide as its order."""
    check_chain(windows, order, tied=tied)
    if tied:
        return TiedField(windows, order, memory_limit=memory_limit)
    return Field(windows, moves_of(windows, order), inference="exact", memory_limit=memory_limit)
