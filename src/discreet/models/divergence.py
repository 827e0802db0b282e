"""Entropy and Kullback–Leibler divergence: exact through marginals and log-partitions, or estimated from samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique
from ..encoding import Codes
from ..errors import CostError, InputError
from ..factor import CliqueVector
from ..graph import DEFAULT_MEMORY_LIMIT
from ..inference.exact import get_engine
from .answer import Estimate
from .distribution import Distribution
from .evidence import Evidence
from .queries import marginal_factor
from .records import RandomState, generator

WAY_OUT = " For an estimate with its standard error, pass samples=100_000."


def entropy(model: Distribution, samples: int | None, random_state: RandomState) -> float:
    """−E log P = log Z − Σ_c ⟨μ_c, θ_c⟩."""
    if samples is not None:
        rng = generator(random_state)
        codes = _draws(model, samples, rng)
        log_z, error = _log_partition(model, rng)
        return _mean(log_z - model.log_weight(codes), error)
    try:
        return max(_log_partition_exact(model) - _expected(model, model.compact), 0.0)
    except CostError as refusal:
        raise CostError(str(refusal) + WAY_OUT) from refusal


def kl(p: Distribution, q: Distribution, samples: int | None, random_state: RandomState) -> float:
    """E_p log P_p − E_p log P_q."""
    check_comparable(p, q)
    if samples is not None:
        rng = generator(random_state)
        codes = _draws(p, samples, rng)
        (log_z, error), (log_z_q, error_q) = _log_partition(p, rng), _log_partition(q, rng)
        weight_q = q.log_weight(codes[:, [p.domain.index(name) for name in q.domain]])
        return _mean(p.log_weight(codes) - log_z - weight_q + log_z_q, math.hypot(error, error_q))
    try:
        of_q = _expected(p, q.potentials)
        if of_q == -math.inf:
            return math.inf
        own = _expected(p, p.compact) - _log_partition_exact(p)
        return max(own - of_q + _log_partition_exact(q), 0.0)  # rounding may leave −1e-16 for equal models
    except CostError as refusal:
        raise CostError(str(refusal) + WAY_OUT) from refusal


def check_comparable(p: Distribution, q: Distribution) -> None:
    """Both models must speak of the same columns and levels; the order of the columns does not matter."""
    if set(p.domain.names) != set(q.domain.names):
        odd = sorted(set(p.domain.names) ^ set(q.domain.names))
        raise InputError(f"the models must have the same columns; only one of them has {odd[0]!r}")
    for name in p.domain:
        if p.domain[name].labels != q.domain[name].labels:
            raise InputError(f"column {name!r} has different levels in the two models")


def _log_partition_exact(model: Distribution) -> float:
    return float(model.log_partition)


def _expected(p: Distribution, potentials: CliqueVector) -> float:
    """Σ_c ⟨μ_c, θ_c⟩ under p; −∞ when p reaches a cell that the potentials forbid."""
    cliques = [p.compact.domain.clique(clique) for clique in potentials]
    marginal = _marginals(p, cliques)
    total = 0.0
    for clique, factor in potentials.items():
        mu, theta = marginal(clique), factor.values
        reached = mu > 0
        total += float(np.dot(mu[reached], theta[reached]))
    return total


def _marginals(p: Distribution, cliques: list[Clique]) -> Callable[[Clique], NDArray[np.float64]]:
    """A way to the marginals of p on these cliques: one calibration of a tree that holds them all, if it fits."""
    if p.forecast.bytes <= DEFAULT_MEMORY_LIMIT:
        own = p.compact
        tree = get_engine(own.domain, own.cliques).tree
        outside = [clique for clique in cliques if tree.find_home(clique) is None]
        if not outside:
            return p._calibrated.probabilities  # type: ignore[no-any-return]
        try:
            engine = get_engine(own.domain, (*own.cliques, *outside))
            return engine.calibrate(own).probabilities
        except CostError:
            pass  # one by one, then
    return lambda names: marginal_factor(p, names, Evidence(p.domain), "exact", DEFAULT_MEMORY_LIMIT, {})[0].exp()


def _draws(model: Distribution, samples: int, rng: np.random.Generator) -> Codes:
    if samples < 2:
        raise InputError(f"an estimate needs at least two samples, got samples={samples}")
    return model.sample(samples, rng, labels=True).codes


def _log_partition(model: Distribution, rng: np.random.Generator) -> tuple[float, float]:
    """log Z and its standard error: exact with error zero, or annealed."""
    try:
        return _log_partition_exact(model), 0.0
    except CostError:
        estimate = model.estimate_log_partition(random_state=rng)
        return float(estimate), estimate.standard_error


def _mean(values: NDArray[np.float64], extra_error: float) -> Estimate:
    """Mean with its standard error (of independent draws; Gibbs samples are somewhat less worth than that)."""
    if np.any(np.isposinf(values)):
        return Estimate(math.inf, math.nan)
    spread = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(float(values.mean()), math.hypot(spread, extra_error))
