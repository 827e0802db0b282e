"""A graph that the user draws: a mapping, an edge list, lines ``a -> b``, a BIF file, a network, or networkx."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..domain import Domain
from ..errors import InputError
from ..graph import topological_order
from ..io.bif import parse_bif, read_bif
from ..io.network_data import NetworkData
from ..models.bayesian import BayesianNetwork

Parents = dict[str, tuple[str, ...]]
Graph = (
    Mapping[str, Sequence[str]]
    | Iterable[tuple[str, str]]
    | str
    | os.PathLike[str]
    | NetworkData
    | BayesianNetwork
    | Any
)
"""What :func:`parents_of` understands."""


def parents_of(graph: Graph, domain: Domain) -> Parents:
    """The parents of every column of the domain; columns that the graph does not mention have none.

    * a mapping from a column to its parents;
    * pairs (parent, child);
    * text with lines ``a -> b`` (also ``a -> b, c`` and ``a, b -> c``; ``#`` starts a comment);
    * the text of a BIF file, or the path of a BIF file or of a file with such lines (give paths as ``pathlib.Path``);
    * a :class:`BayesianNetwork`, whose tables are ignored, or a networkx ``DiGraph``.
    """
    if isinstance(graph, BayesianNetwork | NetworkData):
        found: Mapping[str, Sequence[str]] = graph.parents
    elif isinstance(graph, str):
        if "\n" not in graph and graph.strip().lower().endswith((".bif", ".txt")):
            raise InputError(f"{graph!r} looks like the name of a file; give it as pathlib.Path({graph!r})")
        found = parse_bif(graph).parents if graph.lstrip().startswith("network") else parse_arrows(graph)
    elif isinstance(graph, os.PathLike):
        path = Path(graph)
        found = read_bif(path).parents if path.suffix.lower() == ".bif" else parse_arrows(_text_of(path))
    elif isinstance(graph, Mapping):
        found = graph
    else:
        found = _from_pairs(graph)
    return checked(found, domain)


def materialised(graph: Graph) -> Graph:
    """A graph that can be read more than once: edges from a generator are gone after the first time."""
    again = isinstance(graph, str | os.PathLike | Mapping | BayesianNetwork | NetworkData) or hasattr(
        graph, "is_directed"
    )
    if again:
        return graph
    if not isinstance(graph, Iterable):
        raise InputError(
            f"a graph is lines 'a -> b', pairs (parent, child), a mapping to parents or a BIF file, got {graph!r}"
        )
    return tuple(graph)


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or "unreadable"
        raise InputError(f"the file {str(path)!r} with the graph cannot be read: {reason}") from None


def parse_arrows(text: str) -> Parents:
    """Parents from lines ``a -> b``."""
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip().rstrip(";")
        if not content:
            continue
        odd = next((arrow for arrow in ("<->", "-->", "=>", "—>", "–>") if arrow in content), None)
        if odd is not None:
            raise InputError(f"line {number} of the graph has {odd!r}; an arrow is written '->': {content[:80]!r}")
        sides = [[n.strip() for n in side.split(",")] for side in content.replace("→", "->").split("->")]
        if len(sides) < 2 or "<-" in content or any(not name for side in sides for name in side):
            raise InputError(f"line {number} of the graph is not of the form 'parent -> child': {content[:80]!r}")
        for above, below in pairwise(sides):
            pairs.extend((a, b) for a in above for b in below)
    return _from_pairs(pairs)


def _from_pairs(graph: Any) -> Parents:
    if hasattr(graph, "is_directed"):
        if not graph.is_directed():
            raise InputError("the graph is undirected; a Bayesian network needs arrows (parent, child)")
        graph = list(graph.edges)
    out: dict[str, list[str]] = {}
    for pair in graph:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"an edge is a pair (parent, child), got {pair!r}")
        parent, child = pair
        out.setdefault(child, [])
        if parent in out[child]:
            raise InputError(f"the edge {parent!r} -> {child!r} is there twice")
        out[child].append(parent)
    return {child: tuple(above) for child, above in out.items()}


def checked(parents: Mapping[str, Sequence[str]], domain: Domain) -> Parents:
    """Known names, each parent once, no cycle; in domain order."""
    for child, above in parents.items():
        domain.index(child)
        if isinstance(above, str):
            raise InputError(f"the parents of {child!r} are a list of names, got the word {above!r}")
        for name in above:
            domain.index(name)
        if len(set(above)) != len(tuple(above)):
            raise InputError(f"column {child!r} names a parent twice: {tuple(above)}")
    found = {name: tuple(parents.get(name, ())) for name in domain}
    topological_order(found)  # a cycle is an error that shows it
    return found
