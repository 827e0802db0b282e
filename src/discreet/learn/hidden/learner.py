"""What the learners of hidden things share: their options, the tables as shares, and the words on the card."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...errors import CostError, InputError
from ...measurement import Measurements
from ...models.records import generator
from ..consistency import consistent, estimated_total
from ..fields.learner import Array
from ..projection import project_table
from .completing import Hidden

Missing = Literal["level", "random"]
MOST_TABLES = 5000
STARTS, FIRST_STEPS = 5, 15
"""Classes are looked for from so many random starts; the likeliest after so many steps goes on."""
STILL = 1e-6
"""The change of the log-likelihood (in nats a record and table) at which EM ends."""
MISSING = "values are missing at random: the model is of what is behind its tables, and was not held against them"
CLASSES = (
    "hidden classes describe the tables and not people: other classes may describe them as well, and their numbers "
    "mean nothing"
)
TOO_FEW = "; these tables tell fewer numbers than the classes have, so that they are certainly not determined"
State = TypeVar("State")


class Behind(Generic[State]):
    """Of both learners. ``classes``: how many hidden classes records fall into, 1 for none; ``missing``: "random" takes
    a level for missing values as any of the others, "level" as a level like others."""

    classes: int
    together: int
    missing: Missing
    iterations: int
    random_state: int

    def check_hidden(self) -> None:
        check_whole(1, classes=self.classes, together=self.together, iterations=self.iterations)
        if self.missing not in ("level", "random"):
            raise InputError(f"missing must be 'level' or 'random', got {self.missing!r}")

    def uncertifiable(self) -> str:
        """See :meth:`Learner.uncertifiable`."""
        return (
            "" if self.missing == "level" else "its pairs are those of the records, and the model has no missing values"
        )

    def hidden(self, domain: Domain) -> Hidden:
        return Hidden(domain, self.classes, self.missing == "random")

    def likeliest(
        self, start: Callable[[Any], State], step: Callable[[State], tuple[State, float]]
    ) -> tuple[State, dict[str, Any]]:
        """The state that EM ends in, from the start that was likeliest after a few steps."""
        draw = generator(self.random_state)
        tried = []
        for _ in range(STARTS if self.classes > 1 else 1):
            state, fit = start(draw), -math.inf
            for _ in range(min(FIRST_STEPS, self.iterations)):
                state, fit = step(state)
            tried.append((fit, state))
        fit, state = max(tried, key=lambda one: one[0])
        steps, moved = min(FIRST_STEPS, self.iterations), math.inf
        while steps < self.iterations and abs(moved) > STILL:
            before = fit
            state, fit = step(state)
            steps, moved = steps + 1, fit - before
        return state, {"steps_of_em": steps, "converged": abs(moved) <= STILL}

    def facts(self, hidden: Hidden, tables: Iterable[Clique], numbers: int) -> dict[str, Any]:
        """For the card: what is hidden, and what to beware of. ``numbers``: parameters of the model."""
        out: dict[str, Any] = {"classes": self.classes, "missing": self.missing}
        if self.classes > 1:
            out["identifiability"] = CLASSES + (TOO_FEW if told(hidden.observed, tables) < numbers else "")
        if self.missing == "random":
            out["unchecked"] = MISSING
        return out


def shares_of(measurements: Measurements, tables: Iterable[Clique]) -> tuple[dict[Clique, Array], float, float]:
    """The tables as shares, made to agree and without negative cells; the deviation of the noise in a cell, as a share,
    and the number of records."""
    made, total = consistent(measurements), estimated_total(measurements)
    shares = {c: project_table(made[c].values / total) for c in tables}
    return shares, float(np.mean([made[c].variance ** 0.5 for c in shares])) / total, total


def all_sets(domain: Domain, size: int) -> list[Clique]:
    """All sets of so many columns, or the one of all columns."""
    size = min(size, len(domain))
    number = math.comb(len(domain), size)
    if number > MOST_TABLES:
        raise CostError(
            f"there are {number:,} sets of {size} of {len(domain)} columns, and at most {MOST_TABLES:,} tables are "
            "gone over at every step; take together=2, or fewer columns"
        )
    return list(combinations(domain.names, size))


def told(domain: Domain, tables: Iterable[Clique]) -> int:
    """How many numbers tables tell (or a field has), none of which follows from others: the interactions of all their
    columns."""
    sets = {s for c in tables for k in range(1, len(c) + 1) for s in combinations(c, k)}
    return sum(math.prod(domain[n].size - 1 for n in s) for s in sets)
