"""The first steps of a procedure: what of the columns is not public knowledge is found privately, and paid for.

Two steps at most, before anything is learned:

1. the bins of all columns of numbers that want them: noisy histograms on public grids, from fine to coarse
   (:class:`~discreet.privacy.queries.histograms.Histograms`). Edges of about equal mass, heaps and, where that is not
   public, the range are read off them (:mod:`.quantiles`);
2. the levels of all columns of categories that want them: texts that stand out (:mod:`discreet.privacy.unlisted`).

What was found is the domain of everything after. A plan cannot know it: it shows the learner's steps for as many bins
and levels as there may be, and says so; what runs is prepared for what was found, within the same share.

Guarantee: the shares of the steps, like those of any others; the domain is a function of what they released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..attribute import Attribute
from ..domain import Domain, level_text
from ..errors import BudgetError, InputError, counted
from ..io.strictjson import PRIVATE_MARK
from ..measurement import Measurement, Measurements
from ..privacy.budget import ApproxDP, Budget, PureDP, exact
from ..privacy.queries.histograms import Histograms
from ..privacy.requests import Asking, FindLevels, Measure
from ..spelling import WHOLE
from .certifying import of_the_whole
from .procedure import Found, FoundFirst, Procedure, Step, Whole
from .quantiles import found_bins

SHARE = 0.1
"""Which part of the budget finds the columns, unless somebody says otherwise."""
MOST_SHARE = Fraction(1, 2)
ASIDE = Fraction(1, 10)
"""Which part of δ is set aside for levels that come out by mistake."""
BINS, LEVELS = "bins found privately", "levels found privately"
DOMAIN = "domain"
"""Under which name the domain is found."""


def checked_share(share: Any) -> float:
    """Which part of the budget may find the columns."""
    number = isinstance(share, int | float) and not isinstance(share, bool)
    if not number or not 0 < share <= MOST_SHARE:
        raise InputError(
            "discover is the part of the budget that finds bins and levels, above 0 and up to "
            f"{float(MOST_SHARE)}, as in 0.1; got {str(share)[:40]!r}"
        )
    return float(share)


@dataclass(frozen=True)
class Shares:
    """How the budget is divided: for finding, for learning; and what of δ is set aside for levels."""

    own: Budget
    rest: Budget
    aside: Fraction


def divided(whole: Whole, share: float, *, as_one_gaussian: bool) -> Shares:
    """The shares, in a notion in which they add up to the budget."""
    budget = whole.budget
    categories = [a.name for a in whole.domain.sought if a.sought is not None and a.sought.what == "levels"]
    if categories and not isinstance(budget, ApproxDP):
        kind = "pure DP" if isinstance(budget, PureDP) else "zCDP"
        raise BudgetError(
            f'levels = "discover" (column {categories[0]!r}) needs a δ: that nobody\'s own level comes out can only be '
            f"promised but for a small probability, and {kind} has none. Give the budget as (ε, δ), say with "
            "--delta 1e-6; or list the levels that are public knowledge, and let all others count as `other`"
        )
    aside = budget.delta * ASIDE if categories and isinstance(budget, ApproxDP) else Fraction(0)
    left = ApproxDP(budget.epsilon, budget.delta - aside) if isinstance(budget, ApproxDP) else budget
    notion = left.to_gaussian() if as_one_gaussian and isinstance(left, ApproxDP) else None
    part = exact(share, "discover")
    own, rest = (notion or left).split([part, 1 - part])
    return Shares(own, rest, aside)


def with_discovery(
    whole: Whole, share: float, prepare: Callable[[Whole], Procedure], *, as_one_gaussian: bool
) -> Procedure:
    """A procedure that finds the columns first; ``prepare`` makes the rest of it, for the domain that was found."""
    shares = divided(whole, share, as_one_gaussian=as_one_gaussian)
    steps = _steps(whole, shares)

    def rest(domain: Domain) -> Procedure:
        made = prepare(replace(whole, domain=domain, budget=shares.rest))
        if made.composition not in ("composed", "as one Gaussian"):
            raise InputError(
                f"{made.method} asks random blocks of the records, each with the whole budget, so that nothing is left "
                "to find bins or levels with: write edges and levels that are public knowledge, or take another method"
            )
        return made

    def then(released: Measurements) -> Procedure:
        made = rest(Domain.from_dict(released.found[DOMAIN]))
        return replace(made, whole=replace(whole, domain=made.domain))

    forecast = rest(whole.domain.forecast)
    shown = tuple(of_the_whole(step, forecast.whole, whole) for step in forecast.steps)
    return replace(
        forecast,
        whole=whole,
        steps=(*steps, *shown),
        notes=(_note(whole.domain), *forecast.notes),
        found_first=FoundFirst(len(steps), then, shares.aside),
    )


def _note(domain: Domain) -> str:
    names = [a.name for a in domain.sought]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return (
        f"Found privately first: {shown}. The steps after that are shown for as many bins and levels as there may be; "
        "they are made from what was found, within these shares."
    )


def _steps(whole: Whole, shares: Shares) -> tuple[Step, ...]:
    numbers = [a.name for a in whole.domain.sought if a.sought is not None and a.sought.what == "bins"]
    categories = [a.name for a in whole.domain.sought if a.name not in numbers]
    weights = [len(names) for names in (numbers, categories) if names]
    parts = iter(shares.own.split(weights))
    steps = []
    if numbers:
        steps.append(_bins_step(whole, numbers, next(parts), last=not categories))
    if categories:
        steps.append(_levels_step(whole, categories, next(parts), shares.aside))
    return tuple(steps)


def _bins_step(whole: Whole, names: list[str], share: Budget, *, last: bool) -> Step:
    query = Histograms(whole.domain, names)
    name = f"{BINS}: {counted(len(names), 'column')}"
    # A column has the same share however many grids it has.
    grids = [sum(p.about["column"] == part.about["column"] for p in query.parts) for part in query.parts]
    step = whole.measure(name, Measure(share, query, weights=[Fraction(1, n) for n in grids]), kept=False)

    def asks(released: Measurements) -> Asking[Found]:
        measured = yield Measure(share, query, weights=[Fraction(1, n) for n in grids])
        found = {name: _numbers(whole.domain[name], measured).to_dict() for name in names}
        return _domain_if(last, whole.domain, {"columns": found})

    return replace(step, asks=asks)


def _levels_step(whole: Whole, names: list[str], share: Budget, aside: Fraction) -> Step:
    each = share.split([1] * len(names))

    def asks(released: Measurements) -> Asking[Found]:
        found = dict(released.found.get("columns", {}))
        for name, own in zip(names, each, strict=True):
            answer = yield FindLevels(own, name, aside / len(names))
            found[name] = _categories(whole.domain[name], answer.counts).to_dict()
        return _domain_if(True, whole.domain, {"columns": found})

    return whole.later(f"{LEVELS}: {counted(len(names), 'column')}", share, asks, "gaussian threshold", kept=False)


def _domain_if(last: bool, domain: Domain, found: dict[str, Any]) -> Found:
    if not last:
        return found
    known = domain.to_dict()
    return {DOMAIN: {**known, "columns": {**known["columns"], **found["columns"]}}}


# -- from what was released to columns ---------------------------------------------------------------------------------


def _numbers(attribute: Attribute, measured: Measurements) -> Attribute:
    sought = attribute.sought
    assert sought is not None
    own: list[Measurement] = [m for m in measured if m.about["column"] == attribute.name]
    bins = found_bins(sought, [np.asarray(m.counts, dtype=np.float64) for m in own], [m.noise.variance for m in own])
    found = {
        "edges",
        *(["range"] if sought.ends is None else []),
        *(["heaps"] if set(bins.heaps) - {*sought.heaps} else []),
        *(["spread"] if bins.spread else []),
    }
    return replace(
        attribute, sought=None, edges=bins.edges, heaps=bins.heaps, spread=bins.spread, found=frozenset(found)
    )


def _categories(attribute: Attribute, counts: Mapping[str, int]) -> Attribute:
    """Those that are always kept, then the most frequent that stand out, in order. Whole numbers are numbers again."""
    assert attribute.sought is not None
    room = max(attribute.sought.most - len(attribute.levels), 0)
    taken = {attribute.spelling(label) for label in attribute.labels}
    # A text with the mark of figures that must not be published is no level: no file would take what was paid for.
    free = (text for text in counts if text not in taken and PRIVATE_MARK not in text)
    frequent = sorted(free, key=lambda text: (-counts[text], text))[:room]
    kept = [level_text(level) for level in attribute.levels]
    levels: list[Any] = [*kept, *sorted(frequent)]
    if levels and all(WHOLE.fullmatch(text) and abs(int(text)) < 2**63 for text in levels):
        levels = [*map(int, kept), *sorted(map(int, frequent))]
    found = frozenset({"levels"})
    return replace(attribute, levels=tuple(levels), sought=None, found=found)
