"""Records drawn from a model: exactly where the graph allows it, by Gibbs sampling otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conditions import Condition
from ..domain import Domain, level_text
from ..errors import CostError, InputError, counted
from ..inference.gibbs import gibbs_sample
from ..language import conditions
from .distribution import Distribution, Given
from .evidence import Evidence, evidence_of
from .options import check_draws
from .queries import calibrate, check_method
from .records import RandomState, Records, generator, origin_of
from .rules import Said, has_sums, lawful

METHODS = ("auto", "exact", "rounded", "gibbs")
MOST_VALUES = 10**10
"""Of one sample: far more would not fit into the memory of any machine."""


def sample(
    model: Distribution,
    n: int,
    random_state: RandomState,
    given: Given | None,
    method: str,
    labels: bool,
    where: str | None,
    limit: int,
    options: Mapping[str, Any],
) -> Records:
    check_method(method, METHODS)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InputError(f"the number of records must be a whole number, zero or more; got n={n!r}")
    if n * max(len(model.domain), 1) > MOST_VALUES:
        raise CostError(
            f"{n:,} records of {counted(len(model.domain), 'column')} are more than is drawn at once, {MOST_VALUES:,} "
            "values; draw fewer, several times with different seeds"
        )
    check_draws(options, method)
    rng = generator(random_state)
    evidence = evidence_of(model, _wanted(model, given, where))

    def drawn(rows: int) -> Records:
        codes, used, reason = _draw(model, rows, rng, evidence, method, limit, options)
        records = Records(model.domain, codes, method=used, reason=reason, origin=origin_of(model.card))
        if labels and not has_sums(model.domain):
            return records
        return _at_given_numbers(records.with_numbers(rng, model.density, evidence.conditions), given)

    first = drawn(int(n))
    everywhere = np.ones(len(first), dtype=bool)
    numbers = dict.fromkeys(_given_numbers(model.domain, given), everywhere)
    said = Said(dict.fromkeys(evidence.codes, everywhere), numbers, evidence.conditions)
    records = lawful(first, lambda broken: drawn(len(broken)), said)
    return replace(records, numbers={}) if labels else records


def _wanted(model: Distribution, given: Given | None, where: str | None) -> Given | None:
    """Levels and conditions, together."""
    if where is None:
        return given
    said = conditions(where, model.domain)
    both = [name for name in said if name in (given or {})]
    if both:
        raise InputError(f"column {both[0]!r} is both given a level and restricted; say one of them")
    return {**(given or {}), **said}


def _given_numbers(domain: Domain, given: Given | None) -> dict[str, float]:
    """Columns that were given a number, and not a bin."""
    out = {}
    for name, value in (given or {}).items():
        attribute, said = domain[name], level_text(value) if not isinstance(value, Condition) else ""
        if attribute.is_numeric and not isinstance(value, Condition) and said not in attribute.codes:
            out[name] = float(said)
    return out


def _at_given_numbers(records: Records, given: Given | None) -> Records:
    """A column that was given a number has it in every record."""
    said = _given_numbers(records.domain, given)
    numbers = {name: np.full(len(records), said[name]) if name in said else x for name, x in records.numbers.items()}
    return replace(records, numbers=numbers)


def _draw(
    model: Distribution,
    n: int,
    rng: np.random.Generator,
    evidence: Evidence,
    method: str,
    limit: int,
    options: Mapping[str, Any],
) -> tuple[NDArray[Any], str, str]:
    reason = 'method="gibbs" was asked for'
    if method != "gibbs":
        used = "rounded" if method == "rounded" else "exact"
        codes = None if evidence else model._sample_forward(n, rng, used == "rounded")
        if codes is not None:
            return codes, used, "each column given its parents"
        try:
            beliefs = calibrate(model, evidence, limit) if evidence else model._calibrated
        except CostError as error:
            if method != "auto":
                raise
            reason = str(error)
        else:
            drawn = beliefs.sample_rounded(n, rng) if used == "rounded" else beliefs.sample(n, rng)
            return drawn[:, : len(model.domain)], used, "clique by clique of the junction tree"
    potentials = evidence.on(model.potentials)
    with evidence.possible():
        codes = gibbs_sample(model.domain, potentials, n, evidence=evidence.codes, random_state=rng, **options)
    return codes, "gibbs", reason
