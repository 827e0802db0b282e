"""Questions to a model: labels in, the engine's arithmetic, labels out.

The order of preference when the method is left open: beliefs computed before; exact inference on the whole graph; exact
elimination on the part of the graph that matters to this question; an approximation, which the answer then names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import shortened
from ..domain import Clique, Domain, Level
from ..errors import CostError, EvidenceError, InputError
from ..factor import Factor
from ..graph import DEFAULT_MEMORY_LIMIT, Forecast, triangulate
from ..inference.annealed import annealed_log_partition
from ..inference.auto import infer
from ..inference.elimination import eliminate
from ..inference.exact import get_engine
from ..inference.maximum import map_assignment, marginal_map
from ..inference.maximum import most_probable as best_codes
from .answer import Answer, Assignment, Estimate
from .distribution import Distribution, Given
from .evidence import Evidence, evidence_of, weights_of
from .options import checked_approximation
from .records import RandomState, generator
from .remembered import Homes, Remembered

METHODS = ("auto", "exact", "loopy", "gibbs")


def check_method(method: str, known: tuple[str, ...] = METHODS) -> None:
    if method not in known:
        raise InputError(f"method must be one of {', '.join(map(repr, known))}; got {method!r}")


def check_names(domain: Domain, names: Iterable[str] | str) -> Clique:
    """Names as a tuple in the order given; unknown ones and repetitions are errors."""
    if isinstance(names, Mapping):
        raise InputError(
            "the columns asked about are named without levels, got a mapping; if it is the condition, write "
            f"given={shortened(dict(names))}"
        )
    if not isinstance(names, Iterable):
        raise InputError(f"give the name of a column or a list of names, got {shortened(names)}")
    chosen = (names,) if isinstance(names, str) else tuple(names)
    domain.clique(chosen)
    return chosen


def values_of(domain: Domain, codes: Mapping[str, int]) -> dict[str, Level | float]:
    """Levels with their own type; bins, missing and other by label."""
    found = {name: domain[name].value(code) for name, code in codes.items()}
    return {name: domain[name].labels[codes[name]] if value is None else value for name, value in found.items()}


# -- marginals -------------------------------------------------------------------------------------------------------


def forecast(model: Distribution) -> Forecast:
    """Read off the compiled engine when the graph is small enough to have one, so that it is triangulated once."""
    try:
        return get_engine(model.compact.domain, model.compact.cliques).forecast
    except CostError:
        return triangulate(model.compact.domain, model.compact.cliques).forecast()


def calibrate(model: Distribution, evidence: Evidence | None = None, limit: int = DEFAULT_MEMORY_LIMIT) -> Any:
    """Exact beliefs on the whole graph, or a CostError."""
    if model.forecast.bytes > limit:
        model.forecast.check(limit)
    potentials = model.compact
    engine = get_engine(potentials.domain, potentials.cliques, memory_limit=limit)
    if evidence is None:
        return engine.calibrate(potentials)
    with evidence.possible():
        return engine.calibrate(evidence.on(potentials), evidence.codes)


def clique_marginals(model: Distribution) -> NDArray[np.float64] | None:
    """The marginals of all cliques in one vector, for :func:`remember`; None where they cost too much."""
    if model.compact.domain != model.domain or model.forecast.bytes > DEFAULT_MEMORY_LIMIT:
        return None
    beliefs = model._calibrated
    return np.concatenate([beliefs.probabilities(clique).reshape(-1) for clique in model.cliques])


def remember(model: Distribution, marginals: NDArray[np.float64], homes: Homes) -> None:
    """Let a model answer from marginals of its cliques that were found before, where these suffice."""
    tables, begin = {}, 0
    for clique, factor in model.potentials.items():
        tables[clique] = marginals[begin : begin + factor.values.size].reshape(factor.values.shape)
        begin += factor.values.size
    known = Remembered(model.domain, tables, partial(calibrate, model), homes)
    object.__setattr__(model, "_calibrated", known)


def log_partition(model: Distribution) -> float:
    return float(model._calibrated.log_partition)


def _exact_marginal(model: Distribution, names: Clique, evidence: Evidence, limit: int) -> tuple[Factor, str]:
    """Log-probabilities and how they were found; CostError when neither way fits."""
    known = vars(model).get("_calibrated")
    if isinstance(known, Remembered) and (found := known.given(names, evidence.codes, evidence.weights)) is not None:
        return found, "junction tree"
    if model.forecast.bytes <= limit:
        beliefs = calibrate(model, evidence, limit) if evidence else model._calibrated
        return beliefs.marginal(names), "junction tree"
    relevant = evidence.on(model._relevant({*names, *evidence.names}))
    with evidence.possible():
        result = eliminate(relevant.domain, relevant, names, evidence.codes, memory_limit=limit)
    return result.factor.normalize(), "variable elimination of the part of the graph that matters here"


def marginal_factor(
    model: Distribution, names: Clique, evidence: Evidence, method: str, limit: int, options: Mapping[str, Any]
) -> tuple[Factor, str, str]:
    """Log-probabilities over ``names`` in that order, the method used and the reason for it."""
    check_method(method)
    options = checked_approximation(options, method)
    if method in ("auto", "exact"):
        try:
            factor, reason = _exact_marginal(model, names, evidence, limit)
            return factor, "exact", reason
        except CostError:
            if method == "exact":
                raise
    # Approximations go from column to column, and would not get from one group of levels into another.
    grouped = model.compact.domain != model.domain
    relevant = evidence.on(model.potentials if grouped else model._relevant({*names, *evidence.names}))
    with evidence.possible():
        beliefs = infer(
            relevant.domain, relevant, method=method, evidence=evidence.codes, memory_limit=limit, **options
        )
    return beliefs.marginal(names), beliefs.method, beliefs.reason


def marginal(
    model: Distribution,
    names: Iterable[str] | str,
    given: Given | None,
    method: str,
    limit: int,
    options: Mapping[str, Any],
) -> Answer:
    chosen = check_names(model.domain, names)
    evidence = evidence_of(model, given, chosen)
    factor, used, reason = marginal_factor(model, chosen, evidence, method, limit, options)
    labels = tuple(model.domain[name].labels for name in chosen)
    return Answer(chosen, labels, factor.exp(), given=evidence.said, method=used, reason=reason)


def conditional_table(
    model: Distribution,
    names: Iterable[str] | str,
    given: Iterable[str] | str,
    method: str,
    limit: int,
    options: Mapping[str, Any],
    fixed: Given | None = None,
    condition: Given | None = None,
) -> Answer:
    """P(names, fixed | given, condition) for every level of the columns ``given``, which are the first axes."""
    chosen, above = check_names(model.domain, names), check_names(model.domain, given)
    joint = event(model, (*above, *chosen), fixed or {}, condition, method, limit, options)
    axes = tuple(range(len(above), len(above) + len(chosen)))
    if fixed:
        total = marginal(model, above, condition, method, limit, options).probabilities
        total = total.reshape(total.shape + (1,) * len(chosen))
    else:
        total = joint.probabilities.sum(axis=axes, keepdims=True)
    table = np.divide(joint.probabilities, total, out=np.full(joint.probabilities.shape, np.nan), where=total > 0)
    return replace(joint, probabilities=table, given_names=above)


def event(
    model: Distribution,
    names: Clique,
    fixed: Given,
    given: Given | None,
    method: str,
    limit: int,
    options: Mapping[str, Any],
) -> Answer:
    """P(names, fixed | given): a table over ``names`` where the other targets are as ``fixed`` says.

    Exactly, it is P(fixed | given) · P(names | fixed, given), which never needs the joint table of the fixed columns.
    """
    if not fixed:
        return marginal(model, names, given, method, limit, options)
    check_method(method)
    checked_approximation(options, method)
    wanted = evidence_of(model, fixed, names, what="event")
    evidence = evidence_of(model, given, (*names, *wanted.names))
    both = _both(model, wanted, evidence)
    labels = tuple(model.domain[name].labels for name in names)
    answer = partial(Answer, names, labels, given=evidence.said, event=wanted.said)
    if method in ("auto", "exact"):
        try:
            table = _exact_event(model, names, both, evidence, limit)
            return answer(table, method="exact", reason="ratio of two totals")
        except CostError:
            if method == "exact":
                raise
    factor, used, reason = marginal_factor(model, (*names, *wanted.names), evidence, method, limit, options)
    table = factor.exp()
    for name in reversed(wanted.names):
        table = table @ _share(both, evidence, name)
    return answer(table, method=used, reason=reason)


def _both(model: Distribution, wanted: Evidence, given: Evidence) -> Evidence:
    """What is asked and what is given, at once: conditions on one column meet before they become weights."""
    conditions = {**given.conditions}
    for name, condition in wanted.conditions.items():
        conditions[name] = conditions[name].meet(condition) if name in conditions else condition
    weights = {name: weights_of(model, condition) for name, condition in conditions.items()}
    codes = {**given.codes, **wanted.codes}
    return Evidence(model.domain, codes, conditions, weights)


def _share(both: Evidence, given: Evidence, name: str) -> NDArray[np.float64]:
    """Of each code of a column that is asked about: how probable it makes what is asked, given what is given."""
    size = both.domain[name].size
    asked = both.weights.get(name, np.ones(size))
    if name in both.codes:
        asked = np.where(np.arange(size) == both.codes[name], asked, 0.0)
    before = given.weights.get(name, np.ones(size))
    return np.divide(asked, before, out=np.zeros(size), where=before > 0)


def _exact_event(
    model: Distribution, names: Clique, both: Evidence, evidence: Evidence, limit: int
) -> NDArray[np.float64]:
    log_given = _log_evidence(model, evidence, limit)
    shape = tuple(model.domain[name].size for name in names)
    try:
        share = math.exp(min(_log_evidence(model, both, limit) - log_given, 0.0))
        return share * (_exact_marginal(model, names, both, limit)[0].exp() if names else np.ones(()))
    except EvidenceError:  # of the event: the condition itself was possible
        return np.zeros(shape)


def mutual_information(model: Distribution) -> dict[tuple[str, str], float]:
    """Of the two ends of every edge, in nats."""
    fits = model.forecast.bytes <= DEFAULT_MEMORY_LIMIT
    beliefs: Any = model._calibrated if fits else infer(model.domain, model.potentials, random_state=0)
    alike: dict[tuple[int, ...], list[tuple[tuple[str, str], NDArray[np.float64]]]] = {}
    for edge in model.edges:
        p = beliefs.probabilities(edge) if fits else beliefs.marginal(edge).exp()
        alike.setdefault(p.shape, []).append((edge, p))
    out: dict[tuple[str, str], float] = {}
    for group in alike.values():  # tables of one shape at once
        tables = np.stack([p for _, p in group])
        independent = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
        ratio = np.divide(tables, independent, out=np.ones_like(tables), where=tables > 0)
        found = np.maximum((tables * np.log(ratio)).sum(axis=(1, 2)), 0.0).tolist()
        out.update(zip([edge for edge, _ in group], found, strict=True))
    return {edge: out[edge] for edge in model.edges}


# -- maxima ----------------------------------------------------------------------------------------------------------


def most_probable_values(
    model: Distribution, names: Iterable[str] | str | None, given: Given | None, limit: int
) -> Assignment:
    domain = model.domain
    evidence = evidence_of(model, given, () if names is None else check_names(domain, names))
    chosen = tuple(n for n in domain if n not in evidence.codes) if names is None else check_names(domain, names)
    with evidence.possible():
        if len(chosen) + len(evidence.codes) == len(domain):
            potentials = evidence.on(model.compact)
            found = map_assignment(potentials.domain, potentials, evidence.codes, memory_limit=limit)
        else:
            relevant = evidence.on(model._relevant({*chosen, *evidence.names}))
            found = marginal_map(relevant.domain, relevant, chosen, evidence.codes, memory_limit=limit)
    log_probability = found.log_weight - _log_evidence(model, evidence, limit)
    return _assignment(domain, chosen, found.codes, log_probability, evidence)


def most_probable(model: Distribution, k: int, given: Given | None, limit: int) -> list[Assignment]:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k, how many joint values to find, must be a whole number of at least 1; got {shortened(k)}")
    evidence = evidence_of(model, given)
    free = tuple(n for n in model.domain if n not in evidence.codes)
    total = _log_evidence(model, evidence, limit)
    potentials = evidence.on(model.compact)
    best = best_codes(potentials.domain, potentials, int(k), evidence.codes, memory_limit=limit)
    return [_assignment(model.domain, free, b.codes, b.log_weight - total, evidence) for b in best]


def _log_evidence(model: Distribution, evidence: Evidence, limit: int) -> float:
    """log of the weight of all records that agree with the evidence."""
    if not evidence:
        return model.log_partition
    if model.forecast.bytes <= limit:
        return float(calibrate(model, evidence, limit).log_partition)
    relevant = evidence.on(model._relevant(evidence.names))
    with evidence.possible():
        return float(eliminate(relevant.domain, relevant, (), evidence.codes, memory_limit=limit).log_partition)


def _assignment(
    domain: Domain, names: Clique, codes: Mapping[str, int], log_probability: float, evidence: Evidence
) -> Assignment:
    values = values_of(domain, {name: codes[name] for name in names})
    # Rounding must not make a probability of 1 + 1e-16.
    return Assignment(values, min(log_probability, 0.0), evidence.said)


# -- the rest --------------------------------------------------------------------------------------------------------


def estimate_log_partition(
    model: Distribution, random_state: RandomState, particles: int, temperatures: int, limit: int
) -> Estimate:
    found = annealed_log_partition(
        model.domain,
        model.potentials,
        particles=particles,
        temperatures=temperatures,
        random_state=generator(random_state),
        memory_limit=limit,
    )
    return Estimate(found.log_partition, found.standard_error)
