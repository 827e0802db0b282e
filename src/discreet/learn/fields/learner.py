"""What the learners of Markov random fields from tables share: which tables to ask, at what share, and the card."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...arguments import require_domain
from ...domain import Clique, Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ...privacy.budget import Budget
from ...privacy.calibration import NoiseChoice, noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.query import Marginals
from ...privacy.unit import PrivacyUnit
from ..checks import as_measurements, check_curator, check_noise, check_plan
from ..consistency import Estimates
from ..procedure import Plan, PlannedTable, advice
from ..shares import allocate
from .likelihood import Field, Inference

Array = NDArray[np.float64]
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


def positive(name: str, value: object) -> None:
    """Refuse what is no positive number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < float(value) < float("inf"):  # type: ignore[arg-type]
        raise InputError(f"{name} must be a positive number, got {value!r}")


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
class FieldLearner(ABC):
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
        check_noise(self.noise)
        if self.shares not in ("size", "equal"):
            raise InputError(f"shares must be 'size' or 'equal', got {self.shares!r}")
        if self.inference not in ("auto", "exact", "loopy"):
            raise InputError(f"inference must be 'auto', 'exact' or 'loopy', got {self.inference!r}")
        if type(self.memory_limit) is not int or self.memory_limit < 1:
            raise InputError(f"memory_limit is a number of bytes, got {self.memory_limit!r}")

    def query(self, domain: Domain) -> Marginals:
        """The tables that are asked for: the maximal cliques."""
        return Marginals(domain, maximal(covering(domain, self.cliques)))

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """What would be measured, with which share and noise. No rows are needed."""
        check_plan(domain, unit, budget)
        query = self.query(domain)
        weights, noise, why = self._weights(query, unit, budget)
        drawn = plan_noise(query, unit, budget, noise=noise, weights=weights)
        shares = [w / sum(weights) for w in weights]
        tables = tuple(
            PlannedTable(part.clique or (), part.cells, share, noise_of(call), why)
            for part, share, call in zip(query.parts, shares, drawn.calls, strict=True)
        )
        noisy = Plan(self.method, unit, budget, tables, (), approximate_size).noisy
        return Plan(self.method, unit, budget, tables, advice(noisy), approximate_size)

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """Ask the curator for the tables. Any learner of this kind can work with the answer."""
        check_curator(curator)
        query = self.query(curator.domain)
        budget = share or curator.remaining or curator.budget
        weights, noise, _ = self._weights(query, curator.unit, budget)
        return curator.measure(query, share, noise=noise, weights=weights)

    def fit(self, curator: Curator, share: Budget | None = None) -> MarkovRandomField:
        """Measure, then estimate. ``share`` is what it may cost: all that remains, by default."""
        return self.estimate(self.measure(curator, share), curator.domain)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The model from tables that were measured before. Post-processing: costs nothing.

        Every clique of the model must lie in a measured one; further tables, public ones too, are made use of.
        """
        measurements = as_measurements(measurements)
        whole = measurements.domain if domain is None else require_domain(domain)
        field = Field(whole, covering(whole, self.cliques), inference=self.inference, memory_limit=self.memory_limit)
        theta, facts = self._solve(field, measurements)
        card = {**facts, **card_of(self.method, measurements), "inference": field.inference}
        return MarkovRandomField(whole, field.potentials(theta), card)

    @abstractmethod
    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        """The log potentials, and public facts about the fit for the card."""

    def _weights(self, query: Marginals, unit: PrivacyUnit, budget: Budget) -> tuple[Sequence[int], NoiseChoice, str]:
        if self.shares == "equal":
            return [1] * len(query.parts), self.noise, "Equal shares for all tables."
        found = allocate(query, unit, budget, self.noise)
        return found.weights, found.noise, found.why


def card_of(method: str, measurements: Measurements) -> dict[str, Any]:
    """The statement of the curator with what the learner adds; what is not a release says so."""
    kinds = sorted({m.noise.kind for m in measurements if m.noise.kind != "none"})
    card: dict[str, Any] = {**measurements.release, "method": method, "noise": kinds}
    odd = [m.origin for m in measurements if m.origin not in ("release", "public")]
    if odd:
        card["origin"] = odd[0]
    return card


def on_cliques(cliques: Sequence[Clique], tables: Mapping[Clique, tuple[Array, float]]) -> Estimates:
    """A table and the variance of its cells for each clique, summed out of the smallest table that holds it."""
    out: Estimates = {}
    for clique in cliques:
        homes = [t for t in tables if set(clique) <= set(t)]
        if not homes:
            raise InputError(
                f"no measured table holds the clique {clique}; there are {list(tables)}. Measure it, or leave it out"
            )
        home = min(homes, key=lambda t: tables[t][0].size)
        values, variance = tables[home]
        kept = [n for n in home if n in clique]
        table = values.sum(axis=tuple(i for i, n in enumerate(home) if n not in clique))
        table = table.transpose([kept.index(n) for n in clique])
        # Margins of cells with equal and nearly independent errors.
        out[clique] = (table, variance * (values.size / table.size))
    return out
