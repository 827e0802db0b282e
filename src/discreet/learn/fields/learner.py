"""What the learners of Markov random fields from tables share: which tables to ask, at what share, and the card."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole, require_domain
from ...domain import Clique, Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ...privacy.budget import Budget
from ...privacy.calibration import NoiseChoice
from ...privacy.query import Marginals
from ...privacy.requests import Measure
from ...privacy.unit import PrivacyUnit
from ..cards import card_of
from ..checks import as_measurements
from ..consistency import Estimates
from ..learner import Learner
from ..planned import advice, noisy
from ..procedure import Procedure, Whole
from ..shares import allocate
from .likelihood import Field, Inference

Array = NDArray[np.float64]
TABLES = "tables of the cliques"
Shares = Literal["size", "equal"]


def as_cliques(given: object) -> tuple[tuple[str, ...], ...]:
    """Groups of column names as tuples; a lone name is a group of one."""
    example = 'such as [("age", "work"), ("work", "income")]'
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"cliques are a list of groups of column names, {example}; got a {type(given).__name__}")
    out = []
    for clique in given:
        names = (clique,) if isinstance(clique, str) else tuple(clique) if isinstance(clique, Iterable) else None
        if names is None or not all(isinstance(n, str) for n in names):
            raise InputError(f"a clique is a group of column names, {example}; got a {type(clique).__name__}")
        out.append(names)
    return tuple(out)


def covering(domain: Domain, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
    """The cliques of a model in the given order, each once; a column that is in none of them stands alone."""
    named = list(dict.fromkeys(domain.clique(c) for c in cliques))
    if () in named:
        raise InputError("the empty clique has no potential; leave it out")
    covered = {n for c in named for n in c}
    return (*named, *((n,) for n in domain if n not in covered))


def maximal(cliques: Sequence[Clique]) -> tuple[Clique, ...]:
    """Those that lie in no other: what has to be measured. Tables inside others follow from them."""
    sets = [frozenset(c) for c in cliques]
    return tuple(c for c, s in zip(cliques, sets, strict=True) if not any(s < t for t in sets))


@dataclass(frozen=True)
class FieldLearner(Learner[MarkovRandomField]):
    """Learn a Markov random field on given cliques from noisy contingency tables.

    All learners of this kind ask for the same tables, so any of them can :meth:`estimate` from what another measured.

    Parameters
    ----------
    cliques:
        Groups of columns that interact. A column in no clique is taken to be independent of the others.
    noise:
        ``"laplace"``, ``"gaussian"`` or ``"auto"``: the one with less error for the budget.
    shares:
        ``"size"``: shares that minimise the expected error over tables of unequal size; ``"equal"``: as in the paper.
    inference:
        ``"exact"`` (junction tree), ``"loopy"``, or ``"auto"``: exact unless its forecast refuses.
    """

    cliques: Iterable[Iterable[str]]
    noise: NoiseChoice = "auto"
    shares: Shares = "size"
    inference: Inference = "auto"
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    method: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cliques", as_cliques(self.cliques))
        super().__post_init__()
        check_whole(1, memory_limit=self.memory_limit)

    def query(self, domain: Domain) -> Marginals:
        """The tables that are asked for: the maximal cliques."""
        return Marginals(domain, maximal(covering(domain, self.cliques)))

    def prepare(self, whole: Whole) -> Procedure:
        """One step: the tables of all maximal cliques. Any learner of this kind can work with the answer."""
        return self._one_step(whole, self.query(whole.domain))

    def _one_step(self, whole: Whole, query: Marginals, notes: tuple[str, ...] = ()) -> Procedure:
        request, why = self.request(query, whole.unit, whole.budget, self.noise)
        step = whole.measure(TABLES, request, why=why)
        return Procedure(self.method, whole, (step,), (*notes, *advice(noisy(step.rows, whole.size))))

    def request(self, query: Marginals, unit: PrivacyUnit, share: Budget, noise: NoiseChoice) -> tuple[Measure, str]:
        """These tables for a share, and why they are weighted as they are."""
        if self.shares == "equal":
            return Measure(share, query, noise), "Equal shares for all tables."
        found = allocate(query, unit, share, noise)
        return Measure(share, query, found.noise, found.weights), found.why

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The model from tables that were measured before. Post-processing: costs nothing.

        Every clique of the model must lie in a measured one; further tables, public ones too, are made use of.
        """
        measurements = as_measurements(measurements)
        whole = measurements.domain if domain is None else require_domain(domain)
        cliques, known = self._within(covering(whole, self.cliques), measurements)
        field = Field(whole, cliques, inference=self.inference, memory_limit=self.memory_limit)
        theta, solved = self._solve(field, measurements)
        facts = {**known, **solved}
        card = card_of(measurements, self.method, **facts, inference=field.inference)
        return MarkovRandomField(whole, field.potentials(theta), card)

    def _within(self, cliques: tuple[Clique, ...], measured: Measurements) -> tuple[tuple[Clique, ...], dict[str, Any]]:
        """The cliques of the model, where these tables were measured, and what the card says of them."""
        return cliques, {}

    @abstractmethod
    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        """The log potentials, and public facts about the fit for the card."""


def on_cliques(cliques: Sequence[Clique], tables: Estimates) -> Estimates:
    """The table of each clique, summed out of the smallest one that holds it."""
    out: Estimates = {}
    for clique in cliques:
        homes = [t for t in tables.values() if t.holds(clique)]
        if not homes:
            raise InputError(
                f"no measured table holds the clique {clique}; there are {list(tables)}. Measure it, or leave it out"
            )
        out[clique] = min(homes, key=lambda t: t.cells).onto(clique)
    return out
