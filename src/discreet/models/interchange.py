"""The same distribution as a value of another library: networkx, pgmpy, pyAgrum.

They know columns, levels and tables. What a schema says beyond that (numbers, missing values, where unforeseen values
go) and the card, which says what is protected and what it cost, stay behind: publish the card beside what you make.
None of these packages is needed otherwise; what they are given is put together without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..extras import needed
from ..factor import CliqueVector

Array = NDArray[np.float64]


class Distribution(Protocol):
    """What is asked of a model here."""

    directed: ClassVar[bool]

    @property
    def domain(self) -> Domain: ...

    @property
    def potentials(self) -> CliqueVector: ...

    @property
    def edges(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def graph(self) -> Any: ...

    @property
    def card(self) -> Mapping[str, Any] | None: ...

    def edge_strength(self) -> dict[tuple[str, str], float]: ...


class Network(Distribution, Protocol):
    """What a Bayesian network knows besides."""

    @property
    def parents(self) -> Mapping[str, tuple[str, ...]]: ...

    @property
    def tables(self) -> Mapping[str, Array]: ...


def _is_network(model: Any) -> TypeGuard[Network]:
    return bool(model.directed)


def tables_of(model: Distribution) -> list[tuple[tuple[str, ...], Array]]:
    """The tables whose product is the distribution, up to its normalising constant, each with its columns.

    Of a network P(column | parents), the column last. Of other models exp(potential), its largest cell being one.
    """
    if _is_network(model):
        return [((*model.parents[name], name), np.asarray(model.tables[name])) for name in model.domain]
    return [(tuple(c), np.exp(f.values - f.values.max())) for c, f in model.potentials.items() if c]


def to_networkx(model: Distribution, *, strength: bool = False) -> Any:
    """A networkx ``DiGraph`` of a network, a ``Graph`` of others.

    A node has its ``levels``; in a network also ``parents``, in the order of the axes of its ``table``. In a ``Graph``,
    the potentials are a list ``tables`` of the graph. ``strength=True`` adds to each edge the mutual information of its
    ends, or its weight. The graph's ``card`` is that of the model.
    """
    graph = model.graph
    for name in model.domain:
        graph.nodes[name]["levels"] = model.domain[name].labels
    if _is_network(model):
        for name in model.domain:
            graph.nodes[name].update(parents=model.parents[name], table=np.asarray(model.tables[name]))
    else:
        graph.graph["tables"] = tables_of(model)
    if strength:
        for (a, b), number in model.edge_strength().items():
            graph.edges[a, b]["strength"] = float(number)
    graph.graph["card"] = None if model.card is None else dict(model.card)
    return graph


def for_pgmpy(model: Distribution) -> list[dict[str, Any]]:
    """The arguments of pgmpy's ``TabularCPD`` for each column of a network, of its ``DiscreteFactor`` for each table of
    other models."""
    sizes = {name: model.domain[name].size for name in model.domain}
    states = {name: list(model.domain[name].labels) for name in model.domain}
    out: list[dict[str, Any]] = []
    for columns, table in tables_of(model):
        names = {"state_names": {name: states[name] for name in columns}}
        if not _is_network(model):
            out.append({"variables": list(columns), "cardinality": [*table.shape], "values": table, **names})
            continue
        *above, name = columns  # pgmpy wants a row for each level, and the last parent to run fastest
        values = {"values": table.reshape(-1, sizes[name]).T}
        parents = {"evidence": above, "evidence_card": [sizes[parent] for parent in above]} if above else {}
        out.append({"variable": name, "variable_card": sizes[name], **values, **parents, **names})
    return out


def to_pgmpy(model: Distribution) -> Any:
    """A pgmpy ``DiscreteBayesianNetwork`` of a network, a ``DiscreteMarkovNetwork`` of others, with the levels as
    states."""
    models = needed("pgmpy.models", "to_pgmpy")
    discrete = needed("pgmpy.factors.discrete", "to_pgmpy")
    parts = for_pgmpy(model)
    if _is_network(model):
        made = _class_of(models, "DiscreteBayesianNetwork", "BayesianNetwork")()
        made.add_nodes_from(model.domain.names)
        made.add_edges_from(model.edges)
        made.add_cpds(*(discrete.TabularCPD(**arguments) for arguments in parts))
        return made
    made = _class_of(models, "DiscreteMarkovNetwork", "MarkovNetwork")()
    made.add_nodes_from(model.domain.names)
    made.add_edges_from(model.edges)
    made.add_factors(*(discrete.DiscreteFactor(**arguments) for arguments in parts))
    return made


def _class_of(module: Any, *names: str) -> Any:
    """The first of these that there is: pgmpy has renamed its classes."""
    return next(getattr(module, name) for name in names if hasattr(module, name))


def to_pyagrum(model: Distribution) -> Any:
    """A pyAgrum ``BayesNet`` of a network, a ``MarkovRandomField`` of others, with the levels as labels."""
    gum = needed("pyagrum", "to_pyagrum")
    made = gum.BayesNet("discreet") if _is_network(model) else gum.MarkovRandomField("discreet")
    for name in model.domain:
        made.add(gum.LabelizedVariable(name, name, list(model.domain[name].labels)))
    if _is_network(model):
        for parent, child in model.edges:
            made.addArc(parent, child)
    for columns, table in tables_of(model):
        factor = made.cpt(columns[-1]) if _is_network(model) else made.addFactor(list(columns))
        # pyAgrum's arrays run over its variables backwards, and these need not be in our order.
        axes = [columns.index(name) for name in reversed(factor.names)]
        factor[:] = np.ascontiguousarray(table.transpose(axes))
    return made
