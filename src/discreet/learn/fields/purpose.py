"""What a model is wanted for: which tables should be right, and how much each of them counts.

A *workload* W is a list of sets of columns s with weights w_s; what counts is Σ_s w_s·(total variation of s). A table t
within s serves it, the more the larger its part is, so that a candidate t weighs

    w_t = Σ_{s ∈ W, s ⊇ t} w_s·(|t|/|s|)^POWER  +  REST·(what t weighs when nothing was said).

(AIM [McKenna et al., VLDB 2022] weighs by |s ∩ t|, also tables that merely meet s.) The second part keeps the rest of
the model sound where that costs little. A *target* is a column to be predicted from the others: every set with it
counts TARGET times. All of it is public: said before a row is read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from ...arguments import shortened
from ...domain import Clique, Domain
from ...errors import CostError, InputError, counted
from ..graph_files import read_weighted_groups

POWER = 3.3
"""A column within a pair counts a tenth of it."""
REST, TARGET = 0.02, 10.0
"""Both, and POWER, were set on two generated networks, HealthInsurance (AER) and wa_churn (modeldata)."""
COLUMN_WEIGHT = 0.1
"""When nothing was said, a column counts for so many times the number of other columns: its error is in every pair that
it is part of. Set on sachs, child, Adult, NLTCS and generated networks."""
WORDS = {"pairs": 2, "triples": 3}
MOST_COLUMNS = 3
"""Larger tables are measured only if they are named."""
MOST_PARTS = 2_000_000
MOST_WEIGHT = 10**6
_FORM = "pairs, triples, or sets of columns with weights, such as 'age,income 2; age,sex'"

Workload = str | Sequence[Mapping[str, Any]] | None
"""A word, a list of ``{"columns": […], "weight": w}``, or None: what specifications hold."""


def workload_of(given: Any, domain: Domain) -> Workload:
    """A workload as people have it: a word, a file, text ``age,income 2; age,sex``, or a list of sets, each a list of
    names or ``{"columns": […], "weight": w}``."""
    if isinstance(given, str) and given.strip() in WORDS:
        return given.strip()
    entries = given
    if isinstance(given, str | os.PathLike):
        entries = read_weighted_groups(given if isinstance(given, str) else Path(given), domain)
    elif not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise InputError(f"a workload is {_FORM}; got a {type(given).__name__}")
    sets = [_entry(entry, number) for number, entry in enumerate(entries, start=1)]
    check_workload(sets)
    ordered = [{"columns": list(domain.clique(s["columns"])), "weight": s["weight"]} for s in sets]
    named: set[Clique] = set()
    for number, entry in enumerate(ordered, start=1):
        if tuple(entry["columns"]) in named:
            raise InputError(
                f"set {number} of the workload was named before: once is enough, and a weight says how much"
            )
        named.add(tuple(entry["columns"]))
    return ordered


def _entry(entry: Any, number: int) -> dict[str, Any]:
    """One set in full; what is wrong with it is not repeated, as it may come from a wrong file."""
    if isinstance(entry, Mapping):
        if not {"columns"} <= set(entry) <= {"columns", "weight"}:
            raise InputError(f"set {number} of the workload has columns and a weight, and nothing else")
        names, weight = entry["columns"], entry.get("weight", 1)
    else:
        names, weight = entry, 1
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"set {number} of the workload must be a list of names of columns")
    whole = isinstance(weight, float) and weight.is_integer()
    return {"columns": list(names), "weight": int(weight) if whole else weight}


def check_workload(workload: Workload) -> None:
    """The form of a workload, for columns that are not known yet."""
    if workload is None or (isinstance(workload, str) and workload in WORDS):
        return
    if isinstance(workload, str) or not isinstance(workload, list | tuple):
        raise InputError(f"a workload is {_FORM}; got {shortened(workload)}")
    if not workload:
        raise InputError(f"the workload names no set of columns; give {_FORM}, or leave it out")
    parts = 0
    for number, entry in enumerate(workload, start=1):
        names, weight = (entry.get("columns"), entry.get("weight", 1)) if isinstance(entry, Mapping) else (None, 1)
        if not isinstance(names, list | tuple) or not names or not all(isinstance(n, str) for n in names):
            raise InputError(f"set {number} of the workload must be a list of names of columns")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= MOST_WEIGHT:
            raise InputError(
                f"the weight of set {number} of the workload must be a number above 0, {MOST_WEIGHT:,} at most"
            )
        parts += sum(math.comb(len(names), k) for k in range(1, MOST_COLUMNS + 1))
    if parts > MOST_PARTS:
        raise CostError(
            f"the workload has {counted(len(workload), 'set')} with {parts:,} tables of up to {MOST_COLUMNS} columns "
            f"in them, and at most {MOST_PARTS:,} are looked at; name fewer or smaller ones"
        )


@dataclass(frozen=True)
class Purpose:
    """The weights of candidate tables, by what was said before a row is read."""

    domain: Domain
    workload: Workload = None
    target: str | None = None

    def __post_init__(self) -> None:
        check_workload(self.workload)
        if self.target is not None:
            self.domain.index(self.target)
        assert self.sets is not None  # their names are checked now

    def weight(self, clique: Clique) -> float:
        """w_t of the module's text."""
        usual = self._usual(clique)
        if self.workload is None:
            return usual
        served = self._of_all(clique) if isinstance(self.workload, str) else self._parts.get(clique, 0.0)
        return served + REST * usual

    @cached_property
    def sets(self) -> dict[Clique, float]:
        """The sets that were named one by one, with weights of mean 1."""
        if self.workload is None or isinstance(self.workload, str):
            return {}
        out: dict[Clique, float] = {}
        for entry in self.workload:
            clique = self.domain.clique(entry["columns"])
            weight = float(entry.get("weight", 1)) * (TARGET if self.target in clique else 1)
            out[clique] = out.get(clique, 0.0) + weight
        mean = sum(out.values()) / len(out)
        return {c: w / mean for c, w in out.items()}

    def larger(self, most_cells: int, most: int) -> list[Clique]:
        """Tables of more than two columns that are candidates beside all pairs, ``most`` at most: sets that were named,
        and the target with any two others (those with fewest cells), whose interaction no pair shows."""
        around = [n for n in self.domain.names if n != self.target] if self.target is not None else []
        triples = [self.domain.clique((str(self.target), *pair)) for pair in combinations(around, 2)]
        by_size = sorted(triples, key=lambda c: (self.domain.size(c), c))
        every = dict.fromkeys([*(s for s in self.sets if len(s) > 2), *by_size])
        return [c for c in every if self.domain.size(c) <= most_cells][:most]

    def in_groups(self, grouped: Domain) -> Purpose:
        """The same over columns with levels taken together."""
        name = dict(zip(self.domain.names, grouped.names, strict=True))
        said = self.workload
        if said is not None and not isinstance(said, str):
            said = [{**entry, "columns": [name[n] for n in entry["columns"]]} for entry in said]
        return Purpose(grouped, said, None if self.target is None else name[self.target])

    @property
    def note(self) -> str:
        """For the plan: what the budget is divided for; "" where nothing was said."""
        said = []
        if isinstance(self.workload, str):
            said.append(f"for the tables of all {self.workload} of columns")
        elif self.sets:
            said.append(
                f"for {counted(len(self.sets), 'set')} of columns that {'was' if len(self.sets) == 1 else 'were'} named"
            )
        if self.target is not None:
            said.append(f"to predict {self.target} from the others, so that tables with it count {TARGET:g} times")
        return f"Tables are chosen and the budget is divided {', and '.join(said)}." if said else ""

    def _usual(self, clique: Clique) -> float:
        """When no workload was said: tables alike, columns more."""
        has = self.target in clique
        if len(clique) > 1:
            return TARGET if has else 1.0
        others = len(self.domain) - 1
        pairs = others if self.target is None else TARGET * others if has else others - 1 + TARGET
        return max(1.0, COLUMN_WEIGHT * pairs)

    def _of_all(self, clique: Clique) -> float:
        """What a table counts within all sets of one size."""
        size = WORDS[str(self.workload)]
        others, more = len(self.domain) - len(clique), size - len(clique)
        if more < 0:
            return 0.0
        sets = math.comb(others, more)
        with_target = sets if self.target in clique else math.comb(others - 1, more - 1) if self.target and more else 0
        return float((sets + (TARGET - 1) * with_target) * (len(clique) / size) ** POWER)

    @cached_property
    def _parts(self) -> dict[Clique, float]:
        """The tables within the named sets, of few columns or the whole set."""
        out: dict[Clique, float] = {}
        for s, weight in self.sets.items():
            for k in {*range(1, min(MOST_COLUMNS, len(s)) + 1), len(s)}:
                for t in combinations(s, k):
                    out[t] = out.get(t, 0.0) + weight * (k / len(s)) ** POWER
        return out
