"""A Bayesian network when nobody knows the graph: the field that :class:`AdaptiveField` finds, with arrows.

A field on a junction tree is a network. Go through its cliques from the root: a column that comes first in a clique C
gets as parents what C shares with the clique before it, and the columns of C that had their turn. Then the product of
P(column | parents) over C is P(C)/P(separator), and over all cliques it is the field, exactly. So network and field
give the same answers; the arrows are one of many ways to write the field down, and say nothing about causes.

Guarantee: that of :class:`AdaptiveField`; arrows are post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...domain import Domain
from ...graph import DEFAULT_MEMORY_LIMIT, triangulate
from ...inference.exact import get_engine
from ...measurement import Measurements
from ...models.base import Model
from ...models.bayesian import BayesianNetwork
from ...privacy.budget import Budget
from ..fields.adaptive import AdaptiveField
from ..fields.purpose import Workload
from ..learner import Learner
from ..procedure import Procedure, Whole
from .families import Array, rows_from_counts

METHOD = "found"


@dataclass(frozen=True)
class FoundNetwork(Learner[BayesianNetwork]):
    """Learn graph and tables from one budget, by way of a field.

    Parameters
    ----------
    most_cells:
        Cells of all cliques of the junction tree, whose tables the families are; no family has more.
    triples, workload, target:
        As for :class:`~discreet.learn.fields.adaptive.AdaptiveField`.
    """

    finds_graph: ClassVar[bool] = True
    certified: ClassVar[float] = AdaptiveField.certified
    as_one_gaussian: ClassVar[bool] = AdaptiveField.as_one_gaussian
    at_once: ClassVar[bool] = AdaptiveField.at_once

    most_cells: int = AdaptiveField.most_cells
    triples: bool = AdaptiveField.triples
    workload: Workload = None
    target: str | None = None

    def __post_init__(self) -> None:
        _ = self._field  # refuses wrong values

    @property
    def _field(self) -> AdaptiveField:
        return AdaptiveField(self.most_cells, self.triples, self.workload, self.target, groups=False)

    def prepare(self, whole: Whole) -> Procedure:
        return replace(self._field.prepare(whole), method=METHOD)

    def within(self, domain: Domain, budget: Budget) -> Budget:
        return self._field.within(domain, budget)

    def pair_error(self, whole: Whole, records: float) -> float:
        return self._field.pair_error(whole, records)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """The network from what was measured; post-processing only."""
        network = as_network(self._field.estimate(measurements, domain))
        arrows = [f"{above} -> {child}" for above, child in network.edges]
        return network.with_card({**(network.card or {}), "method": METHOD, "graph": arrows})

    def estimates(self, many: Sequence[Measurements], domain: Domain | None = None) -> list[BayesianNetwork]:
        return [as_network(field) for field in self._field.estimates(many, domain)]


def as_network(field: Model) -> BayesianNetwork:
    """The same distribution as a network on the field's junction tree."""
    domain = field.domain
    tree = triangulate(domain, field.cliques)
    beliefs = get_engine(domain, tree.cliques, memory_limit=DEFAULT_MEMORY_LIMIT).calibrate(field.potentials)
    parents: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Array] = {}
    # Edges come parents first, so what a separator holds had its turn.
    for i in (0, *(child for _, child in tree.edges)):
        for name in tree.cliques[i]:
            if name not in parents:
                above = tuple(n for n in tree.cliques[i] if n in parents)
                family = domain.clique((*above, name))
                joint = np.asarray(beliefs.marginal(family).exp())
                parents[name] = above
                tables[name] = rows_from_counts(np.moveaxis(joint, family.index(name), -1))
    return BayesianNetwork(domain, parents, tables, field.card)
