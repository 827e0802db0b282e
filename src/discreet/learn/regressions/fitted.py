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

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import InputError
from ...graph import DEFAULT_MEMORY_LIMIT
from ...measurement import Measurement, Measurements
from ...privacy.queries.likelihood import LogLikelihood
from ...privacy.queries.parities import ParitySums, measured_monomials
from ...privacy.query import Query
from ...privacy.requests import Asking, Measure
from ..counting import counted_first, records_in
from ..fields.likelihood import Field
from ..planned import measuring
from ..procedure import Procedure, Whole
from ..projection import project_table
from .descent import Descent

Array = NDArray[np.float64]
Interactions = Mapping[Clique, Array]
"""Tables of weights, of two columns and more."""
SHARES = (25, 65, 10)
"""Of means, regressions and energy: set on 12 columns of latent classes and of latent traits, ε from .1 to 10. Fewer
means help at large ε; more of them where the regressions tell little."""
ENERGY, NUMBER = 9, 1  # shares of the two sums of a log-likelihood
MOST_SCALE = 4.0
TREE_BYTES = min(DEFAULT_MEMORY_LIMIT, 1 << 24)  # of exact inference that is run some fifty times
_ITERATIONS, _APPROXIMATE_ITERATIONS = 300, 60
MEANS, OF_ENERGY = "means of all columns", "energy of the field found"


def fitted_procedure(
    descent: Descent, method: str, whole: Whole, means: Query, found: Callable[[Measurements], Interactions]
) -> Procedure:
    """Number of records (unless it is public), means, the descent, and the energy of the interactions that it
    found."""
    count, given, rest = counted_first(whole)
    for_means, for_steps, for_energy = rest.split(list(SHARES))

    def asks(released: Measurements) -> Asking[None]:
        query = energy_query(whole.domain, found(released))
        yield Measure(for_energy, query, weights=(ENERGY, NUMBER))

    steps = (
        *count,
        whole.measure(MEANS, Measure(for_means, means)),
        descent.step(whole, for_steps),
        whole.later(OF_ENERGY, for_energy, asks, measuring(for_energy)),
    )
    return Procedure(method, whole, steps, descent.notes(whole, for_steps), given)


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


def fitted(domain: Domain, measured: Measurements, interactions: Interactions) -> Fitted:
    """θ and s for these interactions, from what :func:`fitted_procedure` released."""
    records = records_in(measured)
    targets, noise = _means(domain, measured, records)
    energy, energy_noise = _energy(measured, interactions, records)
    cliques = [*((name,) for name in domain.names), *interactions]
    field = Field(domain, cliques, memory_limit=TREE_BYTES)
    ends = sum(domain.shape)
    mean = np.concatenate([targets[name] for name in domain.names])
    # A normal prior of deviation 1, for s and for a field of ±1: two cells, with half of the noise of a mean.
    ridge = 2 * np.repeat([noise[name] for name in domain.names], domain.shape) + 1e-9
    W = np.concatenate([table.reshape(-1) for table in interactions.values()] or [np.zeros(0)])
    pull = energy_noise + 1e-9

    def loss(x: Array) -> tuple[float, Array]:
        theta, s = x[:-1], x[-1]
        log_partition, mu = field(np.concatenate([theta, s * W]))
        value = log_partition - theta @ mean - s * energy + 0.5 * (ridge @ theta**2 + pull * s**2)
        return float(value), np.append(mu[:ends] - mean + ridge * theta, W @ mu[ends:] - energy + pull * s)

    from scipy.optimize import minimize  # slow to import

    begin = np.append(np.log(np.clip(mean, 0.02, 1.0)), 0.0)
    bounds = [*[(None, None)] * ends, (0.0, MOST_SCALE)]
    most = _ITERATIONS if field.inference == "exact" else _APPROXIMATE_ITERATIONS
    out = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": most, "maxcor": 20})
    split = np.split(out.x[:-1], np.cumsum(domain.shape)[:-1])
    singles = {name: theta - theta.mean() for name, theta in zip(domain.names, split, strict=True)}
    return Fitted(float(out.x[-1]), singles, field.inference)


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
    return mean, (found[-1].standard_deviation / records) ** 2


def lone_parities(domain: Domain) -> ParitySums:
    return ParitySums(domain, [(name,) for name in domain.names], label="means")
