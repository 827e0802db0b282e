"""The field that private regressions make, fitted to the means and to one energy.

Each regression is about its own column. Together they make a field whose columns drive each other, and what is a little
off in each (intercepts that a narrow ball holds back above all) is far off in the marginals of the whole: more budget
then does not help, and a wider ball may harm. Two things put that right, for a third of the budget: the noisy means of
all columns, and the mean of Σ W, the field's own interactions, which are public by then. One number s and the fields θ
of single columns are fitted,

    P(z) ∝ exp(Σ_i θ_i(z_i) + s·Σ W(z)),

by maximum likelihood under a ridge that knows the noise. s = 0 is the model of independent columns: interactions that
are noise do not show in the energy, and are dropped with it.

Privacy: both are sums that are asked of the curator. The energy is a :class:`LogLikelihood` without its constant, whose
bounds are those of Σ W over all records that there could be, W being public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurement, Measurements
from ...privacy.budget import Budget
from ...privacy.queries.likelihood import LogLikelihood
from ...privacy.queries.parities import ParitySums, measured_monomials
from ...privacy.query import Query
from ...privacy.requests import Asking, Measure
from ...threads import one_thread
from ..counting import counted_first, records_in
from ..fields.likelihood import Field
from ..independence import INDEPENDENT
from ..networks.optimal import OptimalNetwork
from ..planned import measuring, selecting
from ..procedure import Found, Procedure, Whole
from ..projection import project_table
from .descent import Descent, state_of
from .division import TOLD, Division, divided
from .frank_wolfe import State

Array = NDArray[np.float64]
Interactions = Mapping[Clique, Array]
"""Tables of weights, of two columns and more."""
ENERGY, NUMBER = 9, 1  # shares of the two sums of a log-likelihood
MOST_SCALE = 16.0
ALONE = "the budget is too small for so few records, and all of it went to single columns"
IN_VAIN = "none that the regressions found stood out of the noise"
STANDS_OUT = 1.5
"""An energy that is no more than so many deviations of its noise from that of independent columns tells of no
interaction; of one that is z of them, the part 1 − (STANDS_OUT/z)² is kept."""
TREE_BYTES = min(DEFAULT_MEMORY_LIMIT, 1 << 24)  # of exact inference that is run some fifty times
_ITERATIONS, _APPROXIMATE_ITERATIONS = 300, 60
MEANS, OF_ENERGY = "means of all columns", "energy of the field found"
TOGETHER = "means, regressions and their energy"


def fitted_procedure(
    method: str,
    whole: Whole,
    means: Query,
    descent_for: Callable[[float], Descent],
    found: Callable[[State], Interactions],
) -> Procedure:
    """Number of records (unless it is public), means, the descent, and the energy of the interactions that it found;
    or the means alone, see :mod:`.division`. Where the number of records is not public, the noisy one decides, and
    all three are one step.

    ``descent_for``: the regressions where selections tell correlations from this one on.
    """
    count, given, rest = counted_first(whole)

    def division(records: float) -> Division:
        return divided(rest, whole.unit, means, records, descent_for)

    def energy(share: Budget, state: State) -> Asking[None]:
        yield Measure(share, energy_query(whole.domain, found(state)), weights=(ENERGY, NUMBER))

    if whole.public_size is not None:
        chosen = division(whole.public_size)
        steps = [whole.measure(MEANS, chosen.means)]
        if (more := chosen.rest) is not None:
            steps.append(more.descent.step(whole, more.steps))
            share = more.energy
            steps.append(whole.later(OF_ENERGY, share, lambda m: energy(share, state_of(m)), measuring(share)))
        return Procedure(method, whole, tuple(steps), (f"Of the budget, {chosen.why}.",), given)

    def asks(released: Measurements) -> Asking[Found]:
        records = records_in(released)
        chosen = division(records)
        yield chosen.means
        if (more := chosen.rest) is None:
            return {}
        state = yield from more.descent.run(records, more.steps)
        yield from energy(more.energy, state)
        return {"state": state}

    words = (
        f"Each step of the regressions selects {descent_for(TOLD).what}.",
        f"The noisy number of records decides what they get: {_at(division, whole.size)}",
    )
    return Procedure(
        method, whole, (*count, whole.later(TOGETHER, rest, asks, measuring(rest), selecting(rest))), words
    )


def _at(division: Callable[[float], Division], size: float | None) -> str:
    """What a plan says of it, for a guess of the number of records or some numbers."""
    return "; ".join(f"at n ≈ {n:,g}, {division(n).why}" for n in ([1e3, 1e4, 1e5] if size is None else [size])) + "."


def energy_query(domain: Domain, interactions: Interactions) -> LogLikelihood:
    """Σ W less its largest possible value, which bounds make a sum with a known sensitivity."""
    top, bottom = _bounds(interactions)
    return LogLikelihood(domain, list(interactions.items()), top, -max(top - bottom, 1e-3))


def _bounds(interactions: Interactions) -> tuple[float, float]:
    """Of Σ W over all records."""
    top = sum(float(table.max()) for table in interactions.values())
    return top, sum(float(table.min()) for table in interactions.values())


@dataclass(frozen=True, eq=False)
class Fitted:
    """s, the fields of single columns, and how they were found."""

    scale: float
    singles: Mapping[str, Array]
    inference: str

    def facts(self, measured: Measurements) -> dict[str, Any]:
        """For the card; in words, where no interaction was kept."""
        facts = {"scale": round(self.scale, 4), "inference": self.inference}
        if self.scale > 0:
            return facts
        why = ALONE if descended(measured) is None else IN_VAIN
        return {**facts, "caution": f"{INDEPENDENT}: {why}"}


def descended(measured: Measurements) -> State | None:
    """Where the regressions ended; None where none were run."""
    return None if measured.found.get("state") is None else state_of(measured)


@one_thread()
def fitted(domain: Domain, measured: Measurements, interactions: Interactions) -> Fitted:
    """θ and s for these interactions, from what :func:`fitted_procedure` released."""
    if descended(measured) is None:
        return _alone(domain, measured)
    records = records_in(measured)
    targets, noise = _means(domain, measured, records)
    field = Field(domain, [*((name,) for name in domain.names), *interactions], memory_limit=TREE_BYTES)
    ends = sum(domain.shape)
    mean = np.concatenate([targets[name] for name in domain.names])
    # A normal prior of deviation 1, for s and for a field of ±1: two cells, with half of the noise of a mean.
    ridge = 2 * np.repeat([noise[name] for name in domain.names], domain.shape) + 1e-9
    W = np.concatenate([table.reshape(-1) for table in interactions.values()] or [np.zeros(0)])
    energy, pull = _energy(measured, interactions, records) if interactions else (0.0, 1.0)
    most = _ITERATIONS if field.inference == "exact" else _APPROXIMATE_ITERATIONS

    def loss(x: Array) -> tuple[float, Array]:
        theta, s = x[:-1], x[-1]
        log_partition, mu = field(np.concatenate([theta, s * W]))
        value = log_partition - theta @ mean - s * energy + 0.5 * (ridge @ theta**2 + pull * s**2)
        return float(value), np.append(mu[:ends] - mean + ridge * theta, W @ mu[ends:] - energy + pull * s)

    def best(begin: Array, low: float, high: float) -> Array:
        from scipy.optimize import minimize  # slow to import

        bounds = [*[(None, None)] * ends, (low, high)]
        options = {"maxiter": most, "maxcor": 20}
        x: Array = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return x

    found = best(np.append(np.log(np.clip(mean, 0.02, 1.0)), 0.0), 0.0, 0.0)
    beyond = energy - float(W @ field(np.concatenate([found[:-1], 0.0 * W]))[1][ends:])
    if beyond > 0 and (kept := 1 - STANDS_OUT**2 * pull / beyond**2) > 0:
        free = best(found, 0.0, MOST_SCALE)
        found = free if kept > 0.99 else best(free, kept * free[-1], kept * free[-1])
    split = np.split(found[:-1], np.cumsum(domain.shape)[:-1])
    singles = {name: theta - theta.mean() for name, theta in zip(domain.names, split, strict=True)}
    return Fitted(float(found[-1]), singles, field.inference)


def _alone(domain: Domain, measured: Measurements) -> Fitted:
    """Independent columns, as a network without edges has them: the same model of the same tables."""
    tables = Measurements([m for m in measured if m.told_of is not None], measured.release)
    told = {name for clique in tables.told_of for name in clique}
    if not told or not told.issuperset(domain.names):
        raise InputError("these measurements have no tables of single columns; use fit(curator)")
    columns = OptimalNetwork({}).estimate(tables, domain)
    logs = {n: np.log(np.maximum(columns.marginal((n,)).probabilities, 1e-12)) for n in domain.names}
    return Fitted(0.0, {n: theta - theta.mean() for n, theta in logs.items()}, "exact")


def _means(domain: Domain, measured: Measurements, records: float) -> tuple[dict[str, Array], dict[str, float]]:
    """Of each column the noisy distribution, and the variance of the noise in a cell of it."""
    shares: dict[str, Array] = {}
    variance: dict[str, float] = {}
    for m in measured:
        if "parities" in m.about:
            for (name,), sum_ in zip(measured_monomials(m), m.values.tolist(), strict=True):
                mean = min(max(sum_ / records, -1.0), 1.0)
                shares[name] = np.array([1 - mean, 1 + mean]) / 2
                variance[name] = m.standard_deviation**2 / (2 * records) ** 2
        elif m.clique is not None and len(m.clique) == 1:
            shares[m.clique[0]] = project_table(m.values / records)
            variance[m.clique[0]] = m.standard_deviation**2 / records**2
    return {n: shares[n] for n in domain.names}, variance


def _energy(measured: Measurements, interactions: Interactions, records: float) -> tuple[float, float]:
    """The noisy mean of Σ W, and the variance of its noise."""
    found: list[Measurement] = [m for m in measured if m.label == "log-likelihood"]
    if not found:
        raise InputError("these measurements have no energy to fit the field to; use fit(curator)")
    top, bottom = _bounds(interactions)
    mean = min(max(float(found[-1].values[0]) / records + top, bottom), top)
    return mean, (found[-1].standard_deviation / records) ** 2 + 1e-9


def lone_parities(domain: Domain) -> ParitySums:
    return ParitySums(domain, [(name,) for name in domain.names], label="means")
