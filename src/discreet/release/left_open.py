"""What bins leave open, in words: a model knows how many records are in a bin, and not where in it their numbers are.

What is assumed of that (:mod:`discreet.models.density`) is no noise, so that no ± covers it. By the bins alone a mean
or a quantile lies between two ends (:func:`discreet.models.numbers.by_bins_alone`). So does a probability whose
condition goes through a bin: of that bin, none or all may be meant, as suits the answer least or best. Numbers beyond a
range that was found count in its end bins, which then have no such end.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..attribute import Attribute
from ..conditions import Condition, cut_bins, open_ends
from ..language import Resolved
from ..models import numbers
from ..models.base import Model
from ..spelling import number_text
from .interval import Interval, digits, rounded

Array = NDArray[np.float64]
COARSE = 0.1
"""What bins leave open of a number is said where noise moves it by less than this part of that."""
_NOT_COVERED = "which ± does not cover"


def in_words(found: Interval, model: Model, question: Resolved) -> str:
    """A sentence for an answer to this question, or none."""
    if question.kind == "P":
        return _of_probabilities(found, model, question)
    return "" if question.kind == "SD" else _of_numbers(found, model, question)


# -- means and quantiles ---------------------------------------------------------------------------------------------


def _of_numbers(found: Interval, model: Model, question: Resolved) -> str:
    attribute = model.domain[question.targets[0].name]
    below, above = open_ends(attribute, numbers.own_condition(question))
    if question.kind == "E" and attribute.is_open and (below or above):
        return ""  # the answer says so, with or without ±
    low, high = (ends.reshape(-1) for ends in numbers.by_bins_alone(model, question))
    half, where = found.half_width.reshape(-1), "it" if low.size == 1 else "a row's"
    at_ends = np.zeros(low.size, dtype=bool)
    if attribute.edges:
        at_ends = (below & (low <= attribute.edges[0])) | (above & (high >= attribute.edges[-1]))
    if attribute.is_open and at_ends.any():
        row = int(np.argmax(at_ends))
        is_last = above and bool(high[row] >= attribute.edges[-1])
        end = f"{number_text(float(low[row]))} or more" if is_last else f"{number_text(float(high[row]))} or less"
        return f"{where} lies in an end bin, where {_beyond(attribute)} count, so that it may be {end}, {_NOT_COVERED}"
    coarse = half < COARSE * (high - low)
    if not coarse.any():
        return ""
    row = int(np.argmax(np.where(coarse, high - low, 0.0)))
    said = f"bins do not tell where in them numbers are, so that {where} {_between(low[row], high[row], found.places)}"
    proviso = (below or above) if question.kind == "E" else at_ends[row]
    return f"{said}; {_beyond(attribute)}, if any, count in the end bins" if proviso else said


def _beyond(attribute: Attribute) -> str:
    return f"numbers beyond {number_text(attribute.edges[0])} to {number_text(attribute.edges[-1])}"


def _between(low: float, high: float, decimals: int | None = None) -> str:
    places = digits(high - low)
    places = min(places, 12 if decimals is None else decimals) if places >= 0 else places + 1
    return f"may be anything from {rounded(low, places)} to {rounded(high, places)}, {_NOT_COVERED}"


# -- probabilities ---------------------------------------------------------------------------------------------------


def _of_probabilities(found: Interval, model: Model, question: Resolved) -> str:
    events = [target.event for target in question.targets]
    said = [what for what in (*events, *(what for _, what in question.given)) if isinstance(what, Condition)]
    cut = [(c, cut_bins(model.domain[c.name], c)) for c in said]
    if not any(bins for _, bins in cut):
        return ""
    low, high = by_whole_bins(model, question)
    beyond = (low < found.lower) | (high > found.upper)
    if not beyond.any():
        return ""
    row = int(np.argmax(np.where(beyond, high - low, -1.0)))
    low, high = low.reshape(-1), high.reshape(-1)
    where = "it" if low.size == 1 else "a row's"
    through = " and ".join(_through(model.domain[c.name], c, bins) for c, bins in cut if bins)
    return f"{through}: {where} {_between(low[row], high[row])}"


def _through(attribute: Attribute, condition: Condition, bins: frozenset[int]) -> str:
    labels = " and ".join(attribute.labels[b] for b in sorted(bins))
    ends = {0, attribute.bins - 1} & bins if attribute.is_open else ()
    return f"{condition.text} goes through {labels}" + (f", where {_beyond(attribute)} count" if ends else "")


def by_whole_bins(model: Model, question: Resolved) -> tuple[Array, Array]:
    """The least and the largest that each probability may be, if of bins that conditions go through any part may be
    meant.

    Of the records in such bins, count as few as can be in the one case, and as many in the other, for the event, and
    the other way round against it: P(E, G)/P(G) = P(E, G)/(P(E, G) + P(not E, G)).
    """
    events: dict[str, tuple[Condition, Condition]] = {}
    given: dict[str, tuple[Condition, Condition]] = {}
    for target in question.targets:
        if target.event is not None:
            events[target.name] = _inner_and_outer(model.domain[target.name], target.event)
    for name, what in question.given:
        given[name] = _inner_and_outer(model.domain[name], what)
    free = tuple(target.name for target in question.targets if target.event is None)
    cells = (*question.tables, *free)
    each = tuple(range(len(question.tables), len(cells)))

    def mass(event: int | None, condition: int) -> Array:
        """P(cells, event, condition), 0 for the bins that are certainly meant and 1 for all that may be."""
        wanted = {name: ends[condition] for name, ends in given.items()}
        for name, ends in events.items() if event is not None else ():
            wanted[name] = ends[event or 0].meet(wanted[name]) if name in wanted else ends[event or 0]
        return _probability(model, wanted, cells)

    def part(event: int, condition: int) -> Array:
        own, against = mass(event, condition), 1 - condition
        others = mass(None, against).sum(axis=each, keepdims=True) - mass(event, against)
        total = own + np.maximum(others, 0.0)
        out: Array = np.divide(own, total, out=np.zeros(own.shape), where=total > 0)
        return out

    return part(0, 0), part(1, 1)


def _inner_and_outer(attribute: Attribute, what: str | Condition) -> tuple[Condition, Condition]:
    if isinstance(what, Condition):
        codes, cut = what.codes, cut_bins(attribute, what)
    else:
        codes, cut = frozenset([attribute.code(what)]), frozenset[int]()
    return Condition(attribute.name, "", codes - cut), Condition(attribute.name, "", codes)


def _probability(model: Model, wanted: Mapping[str, Condition], cells: tuple[str, ...]) -> Array:
    """P(cells, wanted); impossible conditions have probability 0."""
    shape = tuple(model.domain[name].size for name in cells)
    p = 1.0 if all(c.codes for c in wanted.values()) else 0.0
    p = model.probability(wanted) if wanted and p else p
    return p * model.marginal(cells, wanted).probabilities if cells and p > 0 else np.full(shape, p)
