"""Time-homogeneous chains of people: one shared table of transitions and one of starts, from a table of steps.

A table of steps (:func:`discreet.tables.sequences.steps`) has a row for each move of a person, the start of a sequence
being a move from "(start)". All moves are counted in **one** table before × after, so starts and transitions share one
sensitivity. Two ways to bound what a person contributes:

* ``bound="sample"`` (default): the curator draws at most C = ``unit.max_rows`` steps of each person, uniformly. One
  person then moves the table by at most C in L1 and C² in L2 squared under add-remove, and by at most 2C and 2C² under
  replace-one (one non-negative table of at most C goes and another comes).
* ``bound="scale"``, the paper's 1/K: each step of a person with K steps counts 1/K, so a person moves the table by at
  most 1 in L1 (all K steps, starts included, counted once in one table). The paper's |E| is right when K is counted
  for each table separately; with K counted for each person over several tables the sum is 1, not |E|; and with steps
  from null to null kept but not counted in K it is unbounded. Here K counts every step that is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_whole
from ..domain import Attribute, Clique, Domain
from ..errors import InputError
from ..factor import CliqueVector, log_of
from ..learn.cards import card_of
from ..learn.checks import as_measurements
from ..learn.fields.learner import FieldLearner
from ..learn.fields.noise_aware import NoiseAwareField
from ..learn.learner import Learner
from ..learn.procedure import Procedure, Whole
from ..measurement import Measurements
from ..models.markov import MarkovRandomField
from ..privacy.budget import Budget
from ..privacy.calibration import NoiseChoice
from ..privacy.curator import Curator
from ..privacy.query import CellSums, Marginals, Part, Query
from ..privacy.requests import Measure
from ..privacy.unit import PrivacyUnit, Relation, Sensitivity
from .collective import CollectiveField
from .naive import NaiveField

Array = NDArray[np.float64]
BEFORE, AFTER, SIZE = "before", "after", "steps"  # the columns of a table of steps
STEPS: Clique = (BEFORE, AFTER)
UNITS = 2**20  # grid units in one person's weight: divisible enough that rounding K down costs nothing to speak of
_METHODS: dict[str, type[FieldLearner]] = {k.method: k for k in (NoiseAwareField, NaiveField, CollectiveField)}


class ScaledSteps(Query):
    """Steps weighted by 1/K, K the number of steps of the person: each person weighs at most 1.

    Weights are rounded down to a grid, ⌊2²⁰/K⌋ units, so K of them are at most 2²⁰ units. The column "steps" holds K; a
    table that states it wrongly would break the bound, so only one made by ``steps`` is asked.
    """

    needs_steps = True

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        if domain.names != (BEFORE, AFTER, SIZE):
            raise InputError(f"a table of steps has the columns {BEFORE}, {AFTER}, {SIZE}; got {list(domain.names)}")
        self._weights = np.array([UNITS // (k + 1) for k in range(domain[SIZE].size)], dtype=np.int64)

    @property
    def parts(self) -> tuple[Part, ...]:
        shape = (self.domain[BEFORE].size, self.domain[AFTER].size)
        return (Part("steps of people, each person weighing 1", shape, clique=STEPS, grid=Fraction(1, UNITS)),)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return ((BEFORE, AFTER, SIZE),)

    def combine(self, counts: Sequence[Any]) -> tuple[Any, ...]:
        return (np.asarray(counts[0] @ self._weights, dtype=np.int64),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        if relation == "add-remove":
            return (Sensitivity(UNITS, UNITS**2, UNITS, 1),)
        return (Sensitivity(2 * UNITS, 2 * UNITS**2, UNITS, 2),)

    def sensitivity(self, unit: PrivacyUnit) -> tuple[Sensitivity, ...]:
        if unit.column is None:
            raise InputError("weights of 1/K bound what a person contributes: give PrivacyUnit(column=…, max_rows=…)")
        if unit.max_rows > self.domain[SIZE].size:
            raise InputError(
                f"max_rows={unit.max_rows} exceeds the largest number of steps that the table tells apart, "
                f"{self.domain[SIZE].size}; lower it, or make the table with a larger `largest`"
            )
        # All of a person's weight may lie in one cell, and all of the new one's in another.
        moved = 2 if unit.relation == "replace-one" else 1
        cells = min(moved * unit.max_rows, self.parts[0].cells)
        return (Sensitivity(moved * UNITS, moved * UNITS**2, UNITS, cells),)


@dataclass(frozen=True)
class MarkovChain:
    """A time-homogeneous chain: where sequences start, and where they go from each state."""

    states: Attribute
    initial: Array
    transitions: Array
    """P(next | state), a row for each state."""
    card: Mapping[str, Any] | None = None

    def model(self, length: int) -> MarkovRandomField:
        """The distribution of sequences of this length, as a Markov random field with tied potentials."""
        check_whole(1, length=length)
        names = [f"x{t + 1}" for t in range(length)]
        domain = Domain(tuple(Attribute.categorical(n, self.states.labels) for n in names))
        shared = log_of(self.transitions)
        tables: dict[Clique, Any] = {(names[0],): log_of(self.initial)}
        tables.update(dict.fromkeys(pairwise(names), shared))
        return MarkovRandomField(domain, CliqueVector(domain, tables), self.card)

    def step_scores(self, floor: float = -20.0) -> Array:
        """log P of each step (before × after, the start last), no lower than ``floor``."""
        scores: Array = np.maximum(log_of(np.vstack([self.transitions, self.initial])), floor)
        return scores

    def log_likelihood(self, counts: Any, floor: float = -20.0) -> float:
        """Mean log-likelihood of a step on public data, given as a table of steps before × after."""
        table, scores = np.asarray(counts, dtype=np.float64), self.step_scores(floor)
        if table.shape != scores.shape or not table.sum() > 0:
            raise InputError(
                f"the table of steps has shape {scores.shape}, states and the start by states, and counts at least one "
                f"step; got shape {table.shape}"
            )
        return float((table * scores).sum() / table.sum())

    def held_out(self, curator: Curator, share: Budget | None = None, *, floor: float = -8.0) -> float:
        """Mean log-likelihood of a step on the curator's private steps: clipped at ``floor``, noised, and paid for."""
        return HeldOutSteps(self, floor).fit(curator, share)


@dataclass(frozen=True)
class HeldOutSteps(Learner[float]):
    """The mean log-likelihood of a private step under a public chain, no step's lower than ``floor``.

    Guarantee: the budget, for persons; by the sensitivity of :class:`CellSums`.
    """

    chain: MarkovChain
    floor: float = -8.0

    def __post_init__(self) -> None:
        if not -math.inf < self.floor < 0:
            raise InputError(f"floor is a log-probability below 0, got {self.floor}")

    def prepare(self, whole: Whole) -> Procedure:
        _check_persons(whole)
        domain = whole.domain
        after, states = domain[AFTER], self.chain.states
        if after.labels != states.labels:
            raise InputError(f"the chain is about the states {states.labels}, the steps about {after.labels}")
        scores = self.chain.step_scores(self.floor)
        terms = np.stack([scores / -self.floor, np.ones_like(scores)], axis=-1)
        query = CellSums(domain, STEPS, terms, grid=Fraction(1, 1024), label="log-likelihood and steps")
        step = whole.measure("log-likelihood and number of steps", Measure(whole.budget, query))
        return Procedure("held-out log-likelihood", whole, (step,))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> float:
        (measured,) = measurements
        total, number = measured.values
        return float(np.clip(-self.floor * total / max(number, 1.0), self.floor, 0.0))


@dataclass(frozen=True)
class ChainLearner(Learner[MarkovChain]):
    """Learn a time-homogeneous chain from a table of steps.

    Parameters
    ----------
    bound:
        ``"sample"``: at most ``unit.max_rows`` steps of a person count; ``"scale"``: each counts 1/K.
    method:
        How the table is denoised: ``"noise_aware"``, ``"naive"`` or ``"cgm"``.
    """

    bound: Literal["sample", "scale"] = "sample"
    method: str = "noise_aware"
    noise: NoiseChoice = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in _METHODS:
            raise InputError(f"method must be one of {', '.join(map(repr, _METHODS))}; got {self.method!r}")

    def query(self, domain: Domain) -> Query:
        return Marginals(domain, [STEPS]) if self.bound == "sample" else ScaledSteps(domain)

    def prepare(self, whole: Whole) -> Procedure:
        """One step, the table of moves; ``approximate_size`` is the number of moves (or, for "scale", of people)."""
        _check_persons(whole)
        request = Measure(whole.budget, self.query(whole.domain), self.noise)
        step = whole.measure("table of steps", request, why="Starts and transitions are one table.")
        return Procedure(f"chain, {self.bound}", whole, (step,))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovChain:
        """From a table of steps that was measured before. Post-processing."""
        measurements = as_measurements(measurements)
        whole = (domain or measurements.domain).project(STEPS)
        field = _METHODS[self.method]([STEPS]).estimate(measurements, whole)
        joint = field.marginal(STEPS).probabilities
        after = whole[AFTER]
        rows = joint / joint.sum(axis=1, keepdims=True)
        card = card_of(measurements, f"chain, {self.method}", bound=self.bound)
        return MarkovChain(after, rows[-1], rows[:-1], card)


def _check_persons(whole: Whole) -> None:
    """A row of a table of steps is a move, and one visit is part of two of them: protecting rows protects nobody."""
    if whole.unit.column is None:
        raise InputError(
            "a table of steps is about people: give Curator(table, PrivacyUnit(column, max_rows=…), budget) with the "
            "column that names the person; one row protects a single move only"
        )
