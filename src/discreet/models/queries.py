"""Questions to a model: labels in, the engine's arithmetic, labels out.

The order of preference when the method is left open: beliefs computed before; exact inference on the whole graph; exact
elimination on the part of the graph that matters to this question; an approximation, which the answer then names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
from ..language import Resolved
from .answer import Answer, Assignment, Estimate
from .distribution import Distribution, Given
from .options import checked_approximation
from .records import RandomState, generator

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


def evidence_codes(
    domain: Domain, given: Given | None, asked: Iterable[str] = (), *, what: str = "given"
) -> dict[str, int]:
    """The condition as codes; a column that is also asked about is an error."""
    if given is not None and not isinstance(given, Mapping):
        name = given if isinstance(given, str) and given in domain else next(iter(domain), "column")
        label = domain[name].labels[0] if name in domain else "level"
        several = ". Several columns to ask about go into one list" if asked else ""
        raise InputError(
            f"{what} must map columns to levels, as in {what}={{{name!r}: {label!r}}}; got {shortened(given)}{several}"
        )
    evidence = {name: domain[name].code(label) for name, label in (given or {}).items()}
    both = [name for name in asked if name in evidence]
    if both:
        raise InputError(f"column {both[0]!r} is both asked about and given; leave it out of one of them")
    return evidence


def labels_of(domain: Domain, codes: Mapping[str, int]) -> dict[str, str]:
    return {name: domain[name].labels[code] for name, code in codes.items()}


def values_of(domain: Domain, codes: Mapping[str, int]) -> dict[str, Level]:
    """Levels with their own type; bins, missing and other by label."""
    found = {name: domain[name].value(code) for name, code in codes.items()}
    return {name: domain[name].labels[codes[name]] if value is None else value for name, value in found.items()}


# -- marginals -------------------------------------------------------------------------------------------------------


def forecast(model: Distribution) -> Forecast:
    """Read off the compiled engine when the graph is small enough to have one, so that it is triangulated once."""
    try:
        return get_engine(model.domain, model.cliques).forecast
    except CostError:
        return triangulate(model.domain, model.cliques).forecast()


def calibrate(model: Distribution, evidence: Mapping[str, int] | None = None, limit: int = DEFAULT_MEMORY_LIMIT) -> Any:
    """Exact beliefs on the whole graph, or a CostError."""
    if model.forecast.bytes > limit:
        model.forecast.check(limit)
    return get_engine(model.domain, model.cliques, memory_limit=limit).calibrate(model.potentials, evidence)


def log_partition(model: Distribution) -> float:
    return float(model._calibrated.log_partition)


def _exact_marginal(model: Distribution, names: Clique, evidence: Mapping[str, int], limit: int) -> tuple[Factor, str]:
    """Log-probabilities and how they were found; CostError when neither way fits."""
    if model.forecast.bytes <= limit:
        beliefs = calibrate(model, evidence, limit) if evidence else model._calibrated
        return beliefs.marginal(names), "junction tree"
    relevant = model._relevant({*names, *evidence})
    result = eliminate(relevant.domain, relevant, names, evidence, memory_limit=limit)
    return result.factor.normalize(), "variable elimination of the part of the graph that matters here"


def marginal_factor(
    model: Distribution, names: Clique, evidence: Mapping[str, int], method: str, limit: int, options: Mapping[str, Any]
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
    relevant = model._relevant({*names, *evidence})
    beliefs = infer(relevant.domain, relevant, method=method, evidence=evidence, memory_limit=limit, **options)
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
    evidence = evidence_codes(model.domain, given, chosen)
    factor, used, reason = marginal_factor(model, chosen, evidence, method, limit, options)
    return Answer(
        chosen,
        tuple(model.domain[name].labels for name in chosen),
        factor.exp(),
        given=labels_of(model.domain, evidence),
        method=used,
        reason=reason,
    )


def conditional_table(
    model: Distribution,
    names: Iterable[str] | str,
    given: Iterable[str] | str,
    method: str,
    limit: int,
    options: Mapping[str, Any],
) -> Answer:
    """P(names | given) for every level of the columns given, which are the first axes."""
    chosen, above = check_names(model.domain, names), check_names(model.domain, given)
    joint = marginal(model, (*above, *chosen), None, method, limit, options)
    axes = tuple(range(len(above), len(above) + len(chosen)))
    total = joint.probabilities.sum(axis=axes, keepdims=True)
    table = np.divide(joint.probabilities, total, out=np.full(joint.probabilities.shape, np.nan), where=total > 0)
    return Answer(joint.names, joint.labels, table, given_names=above, method=joint.method, reason=joint.reason)


def event(
    model: Distribution,
    names: Clique,
    fixed: Given,
    given: Given | None,
    method: str,
    limit: int,
    options: Mapping[str, Any],
) -> Answer:
    """P(names, fixed | given): a table over ``names`` at the levels that the other targets are fixed to.

    Exactly, it is P(fixed | given) · P(names | fixed, given), which never needs the joint table of the fixed columns.
    """
    check_method(method)
    checked_approximation(options, method)
    codes = evidence_codes(model.domain, fixed, names, what="event")
    evidence = evidence_codes(model.domain, given, (*names, *codes))
    if method in ("auto", "exact"):
        try:
            table = _exact_event(model, names, codes, evidence, limit)
            return _event_answer(model, names, codes, evidence, table, "exact", "ratio of two totals")
        except CostError:
            if method == "exact":
                raise
    factor, used, reason = marginal_factor(model, (*names, *codes), evidence, method, limit, options)
    at: tuple[Any, ...] = (..., *codes.values())
    return _event_answer(model, names, codes, evidence, factor.exp()[at], used, reason)


def _exact_event(
    model: Distribution, names: Clique, fixed: Mapping[str, int], evidence: Mapping[str, int], limit: int
) -> NDArray[np.float64]:
    both = {**evidence, **fixed}
    log_given = _log_evidence(model, evidence, limit)
    shape = tuple(model.domain[name].size for name in names)
    try:
        share = math.exp(min(_log_evidence(model, both, limit) - log_given, 0.0))
        return share * (_exact_marginal(model, names, both, limit)[0].exp() if names else np.ones(()))
    except EvidenceError:  # of the event: the condition itself was possible
        return np.zeros(shape)


def _event_answer(
    model: Distribution,
    names: Clique,
    fixed: Mapping[str, int],
    evidence: Mapping[str, int],
    table: NDArray[np.float64],
    method: str,
    reason: str,
) -> Answer:
    labels = tuple(model.domain[name].labels for name in names)
    given, event_ = labels_of(model.domain, evidence), labels_of(model.domain, fixed)
    return Answer(names, labels, table, given=given, event=event_, method=method, reason=reason)


def mutual_information(model: Distribution) -> dict[tuple[str, str], float]:
    """Of the two ends of every edge, in nats."""
    fits = model.forecast.bytes <= DEFAULT_MEMORY_LIMIT
    beliefs = model._calibrated if fits else infer(model.domain, model.potentials, random_state=0)
    out = {}
    for a, b in model.edges:
        p = beliefs.marginal((a, b)).exp()
        independent = np.outer(p.sum(axis=1), p.sum(axis=0))
        ratio = np.divide(p, independent, out=np.ones_like(p), where=p > 0)
        out[a, b] = max(float((p * np.log(ratio)).sum()), 0.0)
    return out


# -- maxima ----------------------------------------------------------------------------------------------------------


def most_probable_values(
    model: Distribution, names: Iterable[str] | str | None, given: Given | None, limit: int
) -> Assignment:
    domain = model.domain
    evidence = evidence_codes(domain, given, () if names is None else check_names(domain, names))
    chosen = tuple(n for n in domain if n not in evidence) if names is None else check_names(domain, names)
    if len(chosen) + len(evidence) == len(domain):
        found = map_assignment(domain, model.potentials, evidence, memory_limit=limit)
    else:
        relevant = model._relevant({*chosen, *evidence})
        found = marginal_map(relevant.domain, relevant, chosen, evidence, memory_limit=limit)
    log_probability = found.log_weight - _log_evidence(model, evidence, limit)
    return _assignment(domain, chosen, found.codes, log_probability, evidence)


def most_probable(model: Distribution, k: int, given: Given | None, limit: int) -> list[Assignment]:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k, how many joint values to find, must be a whole number of at least 1; got {shortened(k)}")
    evidence = evidence_codes(model.domain, given)
    free = tuple(n for n in model.domain if n not in evidence)
    total = _log_evidence(model, evidence, limit)
    best = best_codes(model.domain, model.potentials, int(k), evidence, memory_limit=limit)
    return [_assignment(model.domain, free, b.codes, b.log_weight - total, evidence) for b in best]


def _log_evidence(model: Distribution, evidence: Mapping[str, int], limit: int) -> float:
    """log of the weight of all records that agree with the evidence."""
    if not evidence:
        return model.log_partition
    if model.forecast.bytes <= limit:
        return float(calibrate(model, evidence, limit).log_partition)
    relevant = model._relevant(evidence)
    return float(eliminate(relevant.domain, relevant, (), evidence, memory_limit=limit).log_partition)


def _assignment(
    domain: Domain, names: Clique, codes: Mapping[str, int], log_probability: float, evidence: Mapping[str, int]
) -> Assignment:
    values = values_of(domain, {name: codes[name] for name in names})
    # Rounding must not make a probability of 1 + 1e-16.
    return Assignment(values, min(log_probability, 0.0), labels_of(domain, evidence))


# -- the rest --------------------------------------------------------------------------------------------------------


def ask(
    model: Distribution, question: Resolved, method: str, limit: int, options: Mapping[str, Any]
) -> Answer | Assignment:
    """Answer a resolved question of the query language."""
    if "given" in options or "evidence" in options:
        raise InputError("a condition stands in the question itself, after a bar: P(lung | smoke=yes)")
    check_method(method)
    checked_approximation(options, method)
    given = dict(question.given)
    free = tuple(target.name for target in question.targets if target.level is None)
    fixed = {target.name: target.level for target in question.targets if target.level is not None}
    if question.kind == "MAP":
        if method not in ("auto", "exact"):
            raise InputError(f'the most probable values are found exactly or not at all; leave out method="{method}"')
        return most_probable_values(model, free, given, limit)
    if fixed:
        return event(model, free, fixed, given, method, limit, options)
    return marginal(model, free, given, method, limit, options)


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
