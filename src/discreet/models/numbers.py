"""Questions in words, and questions about numbers: means, standard deviations, quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attribute import Attribute
from ..conditions import Condition, known, number_line, open_ends
from ..errors import InputError
from ..graph import DEFAULT_MEMORY_LIMIT
from ..language import NUMBERS, Resolved, quoted
from ..spelling import number_text
from .answer import Answer, Assignment
from .density import Density
from .distribution import Distribution
from .evidence import Evidence, evidence_of
from .options import checked_approximation
from .queries import check_method, conditional_table, event, marginal_factor, most_probable_values

Array = NDArray[np.float64]
_RECORDS = 20_000
"""Drawn for the densities of a network that is too wide for exact inference."""


def density_of(model: Distribution, name: str) -> Density:
    """How the numbers of a column are spread under a model."""
    line = number_line(model.domain[name])
    if line is None:
        raise InputError(f"column {name!r} holds categories, not numbers")
    if model.forecast.bytes > DEFAULT_MEMORY_LIMIT:
        codes = model._sample_forward(_RECORDS, np.random.default_rng(0), False)
        if codes is not None:
            column = codes[:, model.domain.index(name)]
            return Density(line, np.bincount(column, minlength=model.domain[name].size).astype(np.float64))
    options = {"random_state": 0}  # of an approximation: the same density every time
    weights, _, _ = marginal_factor(model, (name,), Evidence(model.domain), "auto", DEFAULT_MEMORY_LIMIT, options)
    return Density(line, weights.exp())


def ask(
    model: Distribution, question: Resolved, method: str, limit: int, options: Mapping[str, Any]
) -> Answer | Assignment:
    """Answer a resolved question of the query language."""
    if "given" in options or "evidence" in options:
        raise InputError("a condition stands in the question itself, after a bar: P(lung | smoke=yes)")
    check_method(method)
    checked_approximation(options, method)
    given = dict(question.given)
    if question.kind in NUMBERS:
        return _number(model, question, method, limit, options)
    free = tuple(target.name for target in question.targets if target.event is None)
    fixed = {target.name: target.event for target in question.targets if target.event is not None}
    if question.kind == "MAP":
        if method not in ("auto", "exact"):
            raise InputError(f'the most probable values are found exactly or not at all; leave out method="{method}"')
        return most_probable_values(model, free, given, limit)
    if question.tables:
        return conditional_table(model, free, question.tables, method, limit, options, fixed, given)
    return event(model, free, fixed, given, method, limit, options)


def _number(model: Distribution, question: Resolved, method: str, limit: int, options: Mapping[str, Any]) -> Answer:
    """Of the numbers of one column, as far as they are known: their mean, standard deviation or a quantile."""
    name, given, tables = question.targets[0].name, dict(question.given), question.tables
    joint, used, reason = _joint(model, question, method, limit, options)
    is_known = np.isin(np.arange(joint.shape[-1]), list(known(model.domain[name])))
    p, everything = np.where(is_known, joint, 0.0), joint.sum()
    total = p.sum(axis=-1, keepdims=True)
    p = np.divide(p, total, out=np.full(p.shape, np.nan), where=total > 0)
    said = [quoted(name)] if question.quantile is None else [quoted(name), f"{question.quantile:g}"]
    of_whom = _of_whom(name, float(total.sum() / everything), bool(given))
    return Answer(
        tables,
        tuple(model.domain[n].labels for n in tables),
        _statistic(question, model.density(name), p),
        given=evidence_of(model, given).said,
        given_names=tables,
        method=used,
        reason=reason,
        kind=question.kind,
        number=", ".join(said),
        remark="; ".join(filter(None, (of_whom, _left_out(model.domain[name], question)))),
    )


def _joint(
    model: Distribution, question: Resolved, method: str, limit: int, options: Mapping[str, Any]
) -> tuple[Array, str, str]:
    """The table of the column asked about, its levels last, over those that are given as whole columns."""
    names = (*question.tables, question.targets[0].name)
    evidence = evidence_of(model, dict(question.given), names)
    factor, used, reason = marginal_factor(model, names, evidence, method, limit, options)
    return factor.exp(), used, reason


def _between(question: Resolved) -> tuple[float, float]:
    """The ends that the question itself sets to the numbers: ``E(age | age >= 40)``."""
    condition = own_condition(question)
    return (-np.inf, np.inf) if condition is None else (condition.low, condition.high)


def own_condition(question: Resolved) -> Condition | None:
    """What is given of the column that is asked about."""
    condition = dict(question.given).get(question.targets[0].name)
    return condition if isinstance(condition, Condition) else None


def without_a_part(model: Distribution, question: Resolved, part: Array) -> tuple[Array, Array]:
    """A mean or a quantile if this part of the records that it is of (the largest numbers, and then the smallest) were
    like the others: how far it moves when its distribution is off by so much in total variation.

    ``part`` has an entry for each row of the answer, as a question with whole columns after the bar has many.
    """
    joint, _, _ = _joint(model, question, "auto", DEFAULT_MEMORY_LIMIT, {})
    density = model.density(question.targets[0].name)
    each = density.moments(*_between(question))[0]
    p = np.where(np.isfinite(each), joint, 0.0)
    p = p / np.maximum(p.sum(axis=-1, keepdims=True), 1e-300)
    least = np.minimum(part, 1 - 1e-9)[..., None]
    ends = []
    for order in (np.argsort(-each), np.argsort(each)):  # largest first, smallest first; NaN last
        reached = np.clip(np.cumsum(p[..., order], axis=-1) - least, 0, None)
        kept = np.empty_like(p)
        kept[..., order] = np.diff(reached, prepend=0.0, axis=-1)
        kept /= np.maximum(kept.sum(axis=-1, keepdims=True), 1e-300)
        ends.append(_statistic(question, density, kept))
    return ends[0], ends[1]


def by_bins_alone(model: Distribution, question: Resolved) -> tuple[Array, Array]:
    """The least and the largest that a mean, quantile or deviation may be by how many records are in each bin, wherever
    in it they are (of a deviation: by which bins there are)."""
    joint, _, _ = _joint(model, question, "auto", DEFAULT_MEMORY_LIMIT, {})
    ends = model.density(question.targets[0].name).ends(*_between(question))
    p = np.where(np.isfinite(ends[0]), joint, 0.0)
    total = p.sum(axis=-1, keepdims=True)
    p = np.divide(p, total, out=np.full(p.shape, np.nan), where=total > 0)
    smallest, largest = map(np.nan_to_num, ends)
    if question.kind == "E":
        return np.asarray(p @ smallest), np.asarray(p @ largest)
    if question.quantile is not None:
        return _reached(p, smallest, question.quantile), _reached(p, largest, question.quantile)
    seen = p > 0
    widest = np.where(seen, largest, -np.inf).max(axis=-1) - np.where(seen, smallest, np.inf).min(axis=-1)
    return np.zeros(p.shape[:-1]), np.asarray(np.where(np.isfinite(widest), widest / 2, np.nan))


def _reached(p: Array, numbers: Array, q: float) -> Array:
    """The smallest of these numbers that at least a part q of the records does not exceed."""
    order = np.argsort(numbers, kind="stable")
    upto = np.cumsum(p[..., order], axis=-1)
    at = (upto >= max(q - 1e-12, 1e-13)).argmax(axis=-1)
    return np.where(np.isnan(upto[..., -1]), np.nan, numbers[order][at])


def known_share(model: Distribution, question: Resolved) -> Array:
    """Of those that the condition leaves, the part whose number is known and that each row of an answer is about."""
    joint, _, _ = _joint(model, question, "auto", DEFAULT_MEMORY_LIMIT, {})
    is_known = np.isin(np.arange(joint.shape[-1]), list(known(model.domain[question.targets[0].name])))
    return np.asarray(np.where(is_known, joint, 0.0).sum(axis=-1) / max(float(joint.sum()), 1e-300))


def _statistic(question: Resolved, density: Density, p: Array) -> Array:
    low, high = _between(question)
    if question.quantile is not None:
        undefined = np.isnan(p[..., 0])
        found = density.quantile(np.nan_to_num(p), question.quantile, low, high).reshape(p.shape[:-1])
        return np.where(undefined, np.nan, found)
    each, within = density.moments(low, high)
    each = np.nan_to_num(each)
    mean = p @ each
    if question.kind == "E":
        return np.asarray(mean)
    apart = within + (each - mean[..., None]) ** 2
    return np.asarray(np.sqrt((p * apart).sum(axis=-1)))


def _of_whom(name: str, part: float, is_given: bool) -> str:
    whom = "these records" if is_given else "records"
    if part > 1 - 1e-12:
        return ""
    return f"of those whose {name} is known, {100 * part:.3g} % of {whom}"


def _left_out(attribute: Attribute, question: Resolved) -> str:
    """Of numbers beyond a range that was found it is not known how far beyond they are."""
    if question.kind == "QUANTILE" or not attribute.is_open or not any(open_ends(attribute, own_condition(question))):
        return ""
    first, last = number_text(attribute.edges[0]), number_text(attribute.edges[-1])
    figure = "mean" if question.kind == "E" else "deviation"
    return f"numbers beyond {first} to {last} count in the end bins; the {figure} leaves their size out"
