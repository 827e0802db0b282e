"""Records that keep to the rules of their domain: structural zeros, and numbers that add up.

Most rules are zeros of the model, and nothing is to be done. That numbers within bins add up cannot be said by a model:
the parts of a sum stay as they were drawn, and the total is computed from them. So all columns but the total have the
distribution of the model, and the mean of the total is the sum of theirs. Where the total was given, a part that was
drawn makes up the rest. Records that break a rule all the same (of a network that rules would make too wide, or with a
sum beyond the range of the total) are drawn again, which is exact: what comes out has the distribution of the model,
given the rules. The work is bounded, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..conditions import Condition
from ..dependencies import Dependency
from ..domain import Domain
from ..encoding import Codes, bin_codes
from ..errors import CostError
from .records import Records

ROUNDS = 200
"""How often records that break a rule are drawn again."""
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Said:
    """What is known of records before they are drawn: ``levels``, in which of them the level of a column was given;
    ``numbers``, in which its very number was; ``conditions`` on columns, in all."""

    levels: Mapping[str, Marks] = field(default_factory=dict)
    numbers: Mapping[str, Marks] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def at(self, rows: NDArray[np.intp]) -> Said:
        levels, numbers = ({n: marks[rows] for n, marks in some.items()} for some in (self.levels, self.numbers))
        return Said(levels, numbers, self.conditions)


def has_rules(domain: Domain) -> bool:
    return bool(domain.zeros) or has_sums(domain)


def has_sums(domain: Domain) -> bool:
    return any(d.kind == "sum" for d in domain.dependencies)


def lawful(records: Records, again: Callable[[NDArray[np.intp]], Records], said: Said) -> Records:
    """These records with totals that are the sums of their parts, and those that break a rule drawn again: ``again``
    draws the ones of these numbers anew. Sums need the numbers of the records."""
    if not has_rules(records.domain):
        return records
    records, broken, changed = _settled(records, said)
    redrawn = int(broken.sum())
    codes, numbers = records.codes.copy(), {name: x.copy() for name, x in records.numbers.items()}
    for _ in range(ROUNDS):
        at = np.flatnonzero(broken)
        if not len(at):
            break
        fresh, still, moved = _settled(again(at), said.at(at))
        good = ~still
        codes[at[good]], changed[at[good]] = fresh.codes[good], moved[good]
        for name, x in numbers.items():
            x[at[good]] = fresh.numbers[name][good]
        broken[at[good]] = False
    if np.any(broken):
        raise CostError(
            f"{int(broken.sum()):,} of {len(records):,} records still break a rule of the schema after {ROUNDS} draws: "
            "the model makes records that keep to it too rare. Learn the columns of the rule together (a graph or "
            "cliques that hold them), or take coarser bins"
        )
    again_part, changed_part = (float(k) / max(len(records), 1) for k in (redrawn, changed.sum()))
    told = [records.reason]
    told += [f"{again_part:.2g} of them drawn again, as they broke a rule of the schema"] if redrawn else []
    told += [f"{changed_part:.2g} of them in another level of a sum than was drawn"] if changed_part else []
    made = replace(records, codes=codes, numbers=numbers, reason="; ".join(told))
    return replace(made, redrawn=again_part, changed=changed_part)


def broken_zeros(domain: Domain, codes: Codes) -> Marks:
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


def _settled(records: Records, said: Said) -> tuple[Records, Marks, Marks]:
    """The records with sums that hold wherever they can be made to; which of them break a rule, and which have another
    level of a column than was drawn."""
    domain = records.domain
    sums = [d for d in domain.dependencies if d.kind == "sum"]
    if not sums:
        return records, broken_zeros(domain, records.codes), np.zeros(len(records), dtype=bool)
    some = _Some(domain, records.codes.copy(), dict(records.numbers), said)
    for dependency in sums * len(sums):  # a total may be a part of another
        some.fill_up(dependency)
        some.add_up(dependency)
    broken = broken_zeros(domain, some.codes)
    for dependency in sums:
        broken |= some.sums(dependency) != some.known(dependency.result)
    changed = np.any(some.codes != records.codes, axis=1) & ~broken
    return replace(records, codes=some.codes, numbers=some.numbers), broken, changed


@dataclass(frozen=True)
class _Some:
    """Records whose numbers are being made to add up."""

    domain: Domain
    codes: Codes
    numbers: dict[str, NDArray[np.float64]]
    said: Said

    def known(self, name: str) -> NDArray[np.float64]:
        """The numbers of a column, −1 where there is none."""
        return np.nan_to_num(self.numbers[name], nan=-1.0)

    def sums(self, dependency: Dependency) -> NDArray[np.float64]:
        """What the totals have to be, −1 where there is none: the sums of the parts, and where one of them is missing
        at least what is known."""
        total = self.numbers[dependency.result]
        parts = np.stack([self.numbers[name] for name in dependency.names])
        sums = self._rounded(np.nansum(parts, axis=0), dependency.result)
        at_least = np.fmax(total, sums)
        return np.where(np.isnan(total), -1.0, np.where(np.isnan(parts).any(axis=0), at_least, sums))

    def add_up(self, dependency: Dependency) -> None:
        """Totals become the sums of their parts."""
        sums = self.sums(dependency)
        self._put(dependency.result, sums, sums != self.known(dependency.result))

    def fill_up(self, dependency: Dependency) -> None:
        """Where the total's number was given, the largest part that was not makes up the rest."""
        given = self.said.numbers.get(dependency.result)
        free = [name for name in dependency.names if not np.all(self._is_given(name))]
        if given is None or not np.any(given) or not free:
            return
        total = self.numbers[dependency.result]
        drawn = np.stack([np.where(self._is_given(n) | np.isnan(self.numbers[n]), -1.0, self.numbers[n]) for n in free])
        largest = np.where(drawn.max(axis=0) >= 0, drawn.argmax(axis=0), -1)
        for place, name in enumerate(free):
            others = np.sum([self.numbers[n] for n in dependency.names if n != name], axis=0)
            rest = self._rounded(total - others, name)
            self._put(name, rest, given & (largest == place) & (rest >= 0) & (rest != self.numbers[name]))

    def _put(self, name: str, numbers: NDArray[np.float64], wanted: Marks) -> None:
        """These numbers where they are wanted, and may be: in the column's range, and not against what was said."""
        attribute, place = self.domain[name], self.domain.index(name)
        at = np.flatnonzero(wanted & ~self._is_given(name, exactly=True))
        codes = bin_codes(numbers[at], attribute)
        inside = (numbers[at] >= attribute.edges[0]) & (numbers[at] <= attribute.edges[-1])
        good = np.where(codes < attribute.bins, inside, np.isin(numbers[at], attribute.heaps))
        held = self.said.levels.get(name, np.zeros(len(self.codes), dtype=bool))[at] | self._is_read_off(name)
        good &= (codes == self.codes[at, place]) | ~held
        condition = self.said.conditions.get(name)
        if condition is not None:
            good &= np.isin(codes, list(condition.codes))
            good &= (codes >= attribute.bins) | ((numbers[at] >= condition.low) & (numbers[at] < condition.high))
        at = at[good]
        self.codes[at, place] = codes[good]
        self.numbers[name] = self.numbers[name].copy()
        self.numbers[name][at] = numbers[at]

    def _is_given(self, name: str, exactly: bool = False) -> Marks:
        nowhere = np.zeros(len(self.codes), dtype=bool)
        number = self.said.numbers.get(name, nowhere)
        return number if exactly else number | self.said.levels.get(name, nowhere)

    def _is_read_off(self, name: str) -> bool:
        """Whether the model alone says which levels of other columns go with one of these."""
        return any(d.kind == "determines" and name in d.columns for d in self.domain.dependencies)

    def _rounded(self, numbers: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        precision = self.domain[name].precision
        return numbers if precision is None else np.round(numbers, precision)
