"""How far the records are from what a model's form can say of them, by chance alone.

Columns without an interaction of their own are independent in a model, perhaps given others. Also where that is right
of people, it is not exactly so of n records: with shares p and q of two levels a cell of such a pair is off by about
√(p(1 − p)·q(1 − q)/n), which may be more than the noise. For more columns its square is a sum of such terms over all
sets of two columns and more whose table the form leaves no freedom, with p² in place of p(1 − p) for columns outside
the set: the variance, were the columns independent, of what free tables do not tell. Levels that were taken together
add theirs (:mod:`.within`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..models.base import Model
from ..models.bayesian import BayesianNetwork
from .within import variance_within

Array = NDArray[np.float64]
MOST_COLUMNS = 6
"""Of an answer whose sets are gone through; else it is that of a whole sample, p(1 − p)/n, which is more."""


def free_sets(model: Model) -> tuple[frozenset[str], ...]:
    """Sets of columns whose joint table a fit can make any table: the cliques of a field; of a network the families
    whose parents have a free table themselves."""
    if not isinstance(model, BayesianNetwork):
        return tuple(map(frozenset, model.cliques))
    found: list[frozenset[str]] = []
    for name in model.order:
        above = frozenset(model.parents[name])
        if len(above) < 2 or any(above <= free for free in found):
            found.append(above | {name})
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Of a model's answers, about so many records."""

    model: Model
    free: tuple[frozenset[str], ...]
    records: float

    @classmethod
    def of(cls, model: Model, records: float, form_is_certified: bool = False) -> Scatter:
        """Where a certificate says how far the form is from the records, only within groups of levels."""
        free = (frozenset(model.domain.names),) if form_is_certified else free_sets(model)
        return cls(model, free, max(records, 1.0))

    def of_answer(
        self,
        estimate: Array,
        names: Iterable[str],
        given: Mapping[str, object],
        tables: Sequence[str] = (),
        event: Mapping[str, object] | None = None,
    ) -> Array:
        """Of each entry of P(names, event | given, tables): the first axes are those of ``tables``, then come the
        names; an event has a level each."""
        share = np.asarray(float(self.model.probability(given)) if given else 1.0)
        if tables:
            share = share * self.model.marginal(tables, given).probabilities
            share = share.reshape(share.shape + (1,) * (estimate.ndim - share.ndim))
        axes = [*tables, *names]  # a column that is asked about may be given in part: P(age | age >= 40)
        held = {name: what for name, what in {**(event or {}), **given}.items() if name not in axes}
        joint = self.of_joint(estimate * share, axes, held)
        return np.asarray(joint / np.maximum(share, 1 / self.records))

    def of_joint(self, joint: Array, axes: Sequence[str], held: Mapping[str, object]) -> Array:
        """Of each cell of a joint table, with an axis for each of these columns, the others held at some level."""
        within = variance_within(self.model, self.records, joint, axes, held)
        return np.asarray(np.sqrt(within + self._of_form(joint, axes, held) ** 2))

    def _of_form(self, joint: Array, axes: Sequence[str], held: Mapping[str, object]) -> Array:
        columns = (*axes, *held)
        if any(free.issuperset(columns) for free in self.free):
            return np.zeros_like(joint)
        sizes = tuple(self.model.domain[n].size for n in axes)
        if joint.shape != sizes or len(columns) > MOST_COLUMNS:
            return np.asarray(np.sqrt(joint * (1 - joint) / self.records))
        shares: list[Array] = []
        for k, name in enumerate(axes):
            others = [i for i in range(len(axes)) if i != k]
            shares.append(np.expand_dims(self.model.marginal((name,)).probabilities, others))
        shares += [np.asarray(self.model.probability({name: level})) for name, level in held.items()]
        variance = np.zeros_like(joint)
        for r in range(2, len(columns) + 1):
            for chosen in combinations(range(len(columns)), r):
                if not any(free.issuperset(columns[i] for i in chosen) for free in self.free):
                    variance += prod(p * (1 - p) if i in chosen else p**2 for i, p in enumerate(shares))
        return np.asarray(np.sqrt(variance / self.records))
