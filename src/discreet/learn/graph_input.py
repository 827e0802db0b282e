"""A graph or cliques that the user gives, in any of the forms that people have them in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..domain import Clique, Domain
from ..errors import InputError
from ..io.network_data import NetworkData
from ..models.base import Model
from .graph_files import Parents as Parents
from .graph_files import Structure, checked, of_model, read_graph, read_groups

Graph = Mapping[str, Sequence[str]] | Iterable[tuple[str, str]] | str | os.PathLike[str] | NetworkData | Model | Any
"""What :func:`structure_of` understands."""
_GROUPS = 'such as [("age", "work"), ("work", "income")] or "age,work; work,income"'


def structure_of(graph: Graph, domain: Domain) -> Structure:
    """The arrows of a graph, or its edges without direction.

    * a mapping from a column to its parents; columns that the graph does not mention have none;
    * pairs (parent, child);
    * text with lines ``a -> b`` or ``a -- b`` (or ``;`` between them), the text of a BIF file, or the path of a file;
    * a model, whose tables are ignored, or a networkx graph, directed or not.
    """
    if isinstance(graph, Structure):
        return graph
    if isinstance(graph, Model):
        return of_model(graph, domain)
    if isinstance(graph, NetworkData):
        return Structure(checked(graph.parents, domain))
    if isinstance(graph, str | os.PathLike):
        return read_graph(graph if isinstance(graph, str) else Path(graph), domain)
    if isinstance(graph, Mapping):
        return Structure(checked(graph, domain))
    edges: Any = materialised(graph)
    if hasattr(edges, "is_directed"):  # networkx, which is not imported for this
        if not edges.is_directed():
            return Structure(groups=tuple(domain.clique(edge) for edge in edges.edges))
        edges = edges.edges
    return Structure(checked(_from_pairs(edges), domain))


def parents_of(graph: Graph, domain: Domain) -> Parents:
    """The parents of every column, of a graph with arrows."""
    found = structure_of(graph, domain)
    if found.parents is None:
        raise InputError(
            "a Bayesian network needs arrows, and this graph has edges without direction: write 'a -> b', or take the "
            "family 'field'"
        )
    return found.parents


def cliques_of(given: Any, domain: Domain) -> tuple[Clique, ...]:
    """Groups of columns: lists of names, text ``a,b; b,c``, or a file with a group on each line."""
    texts = isinstance(given, str | os.PathLike)
    if not texts and not isinstance(given, Iterable):
        raise InputError(f"cliques are groups of column names, {_GROUPS}; got a {type(given).__name__}")
    groups: list[Clique] = []
    for group in [given] if texts else given:
        if isinstance(group, str | os.PathLike) and group not in domain.names:
            groups += read_groups(group if isinstance(group, str) else Path(group), domain)
            continue
        names = (group,) if isinstance(group, str) else tuple(group) if isinstance(group, Iterable) else None
        if not names or not all(isinstance(n, str) for n in names):
            said = f"a {type(group).__name__}" if names is None else "an empty one" if not names else repr(group)
            raise InputError(f"a clique is a group of column names, {_GROUPS}; got {said}")
        if len(set(names)) != len(names):
            raise InputError(f"the clique {names} names a column twice; once is enough")
        groups.append(domain.clique(names))
    if not groups:
        raise InputError("no clique is named; give groups of columns, as in 'smoke,lung; lung,xray'")
    return tuple(groups)


def materialised(graph: Graph) -> Graph:
    """A graph that can be read more than once: edges from a generator are gone after the first time."""
    if isinstance(graph, str | os.PathLike | Mapping | Model | NetworkData | Structure):
        return graph
    if hasattr(graph, "is_directed"):
        return graph
    if not isinstance(graph, Iterable):
        raise InputError(
            "a graph is lines such as 'a -> b', pairs (parent, child), a mapping to parents, a file, a model or a "
            f"networkx graph; got a {type(graph).__name__}"
        )
    return tuple(graph)


def _from_pairs(pairs: Iterable[Any]) -> Parents:
    out: dict[str, list[str]] = {}
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"an edge is a pair (parent, child), got {pair!r}")
        parent, child = pair
        if not isinstance(parent, str) or not isinstance(child, str):
            raise InputError(f"an edge is a pair of column names, got {pair!r}")
        above = out.setdefault(child, [])
        if parent in above:
            raise InputError(f"the edge {parent!r} -> {child!r} is there twice")
        above.append(parent)
    return {child: tuple(above) for child, above in out.items()}
