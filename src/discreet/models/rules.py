"""Records that keep to the rules of their domain: structural zeros, and numbers that add up.

Most rules are zeros of the model, and nothing is to be done. Others cannot be said by a model (that numbers within bins
add up), or not by this one (a network that rules would make too wide). Then records that break one are drawn again,
which is exact: what comes out has the distribution of the model, given the rules. The work is bounded, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..conditions import Condition
from ..dependencies import Dependency, code_spans
from ..domain import Domain
from ..encoding import Codes, bin_codes
from ..errors import CostError
from .records import Records

ROUNDS = 200
"""How often records that break a rule are drawn again."""


def lawful(
    records: Records,
    again: Callable[[NDArray[np.intp]], Records],
    conditions: Mapping[str, Condition] | None = None,
) -> Records:
    """These records, with those that break a rule drawn again: ``again`` draws the ones of these numbers anew."""
    domain = records.domain
    if not domain.zeros and not any(d.kind == "sum" for d in domain.dependencies):
        return records
    records, broken = _settled(records, conditions or {})
    redrawn = int(broken.sum())
    if not redrawn:
        return records
    codes, numbers = records.codes.copy(), {name: x.copy() for name, x in records.numbers.items()}
    for _ in range(ROUNDS):
        at = np.flatnonzero(broken)
        if not len(at):
            part = f"{redrawn / len(records):.2g} of them drawn again, as they broke a rule of the schema"
            said = f"{records.reason}; {part}"
            return replace(records, codes=codes, numbers=numbers, reason=said, redrawn=redrawn / len(records))
        fresh, still = _settled(again(at), conditions or {})
        good = ~still
        codes[at[good]] = fresh.codes[good]
        for name, x in numbers.items():
            x[at[good]] = fresh.numbers[name][good]
        broken[at[good]] = False
    raise CostError(
        f"{int(broken.sum()):,} of {len(records):,} records still break a rule of the schema after {ROUNDS} draws: the "
        "model makes records that keep to them too rare. Learn the columns of the rule together (a graph or cliques "
        "that hold them), or take coarser bins"
    )


def broken_zeros(domain: Domain, codes: Codes) -> NDArray[np.bool_]:
    """Which records have a combination of levels that cannot be."""
    out = np.zeros(len(codes), dtype=bool)
    for rule in domain.zeros:
        has = np.ones(len(codes), dtype=bool)
        for name, labels in rule:
            wanted = np.zeros(domain[name].size, dtype=bool)
            wanted[[domain[name].codes[label] for label in labels]] = True
            has &= wanted[codes[:, domain.index(name)]]
        out |= has
    return out


def _settled(records: Records, conditions: Mapping[str, Condition]) -> tuple[Records, NDArray[np.bool_]]:
    """The records with every total the sum of its parts, and which of them break a rule."""
    domain = records.domain
    broken = broken_zeros(domain, records.codes)
    numbers = dict(records.numbers)
    for dependency in domain.dependencies:
        if dependency.kind != "sum":
            continue
        if dependency.result not in numbers:
            broken |= _out_of_reach(records, dependency)
            continue
        total = domain[dependency.result]
        parts = np.stack([numbers[name] for name in dependency.names])
        sums = parts.sum(axis=0)
        sums = sums if total.precision is None else np.round(sums, total.precision)
        is_known = ~np.isnan(sums) & ~np.isnan(numbers[total.name])
        found = bin_codes(np.where(is_known, sums, total.edges[0]), total)
        inside = (sums >= total.edges[0]) & (sums <= total.edges[-1])
        right = (found == records.codes[:, domain.index(total.name)]) & inside
        if total.name in conditions:
            right &= (sums >= conditions[total.name].low) & (sums < conditions[total.name].high)
        broken |= is_known & ~right
        broken |= np.isnan(sums) & (np.nansum(parts, axis=0) > numbers[total.name])  # parts that are known, of more
        numbers[total.name] = np.where(is_known & right, sums, numbers[total.name])
    return replace(records, numbers=numbers), broken


def _out_of_reach(records: Records, dependency: Dependency) -> NDArray[np.bool_]:
    """Of records by labels: whether no numbers of these bins can add up."""
    ends = []
    for name in dependency.columns:
        table = np.full((records.domain[name].size, 2), np.nan)
        for code, span in code_spans(records.domain[name]).items():
            table[code] = span
        ends.append(table[records.codes[:, records.domain.index(name)]])
    *parts, total = ends
    lowest, highest = np.sum(parts, axis=0).T
    return np.asarray((lowest > total[:, 1]) | (highest < total[:, 0]))
