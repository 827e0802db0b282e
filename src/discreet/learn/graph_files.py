"""Graphs and cliques as people write them: in a file, or in one line.

A wrong file may be named, and it may hold private rows. So what stands in a file is never quoted: messages give the
line, and at most the column of the schema that was probably meant.
"""

from __future__ import annotations

import csv
import difflib
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..domain import Clique, Domain
from ..errors import DiscreetError, FileFormatError, InputError
from ..files import open_model
from ..graph import maximal_cliques
from ..io.bif import read_bif
from ..io.limits import DEFAULT_LIMITS
from ..io.reading import read_text
from ..models.bayesian import BayesianNetwork
from .graph_input import Parents, checked

_ARROW = re.compile(r"->|→")
_LINK = re.compile(r"\s--\s|\s-\s|–")
_MODEL_FILES = (".zip", ".uai")
_FILES = (".bif", ".txt", ".csv", ".tsv", ".json", *_MODEL_FILES)
KIND = "discreet graph"  # what `discreet structure` saves


@dataclass(frozen=True)
class Structure:
    """What is publicly known about which columns interact: arrows, or groups of columns."""

    parents: Parents | None = None
    groups: tuple[Clique, ...] = ()

    @property
    def is_directed(self) -> bool:
        return self.parents is not None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Groups of columns that interact; the families, if there are arrows."""
        if self.parents is None:
            return self.groups
        return tuple((*above, child) for child, above in self.parents.items())


def read_graph(text: str, domain: Domain) -> Structure:
    """A graph: the name of a file (BIF, a model, a saved graph, or lines of text), or lines with ``;`` between them.

    ``a -> b`` is an arrow (also ``a, b -> c`` and ``a -> b -> c``), ``a -- b`` an edge without direction (also
    ``a - b`` with spaces, ``a, b`` and a tab).
    """
    path = Path(text)
    if _is_file(path):
        return _from_file(path, domain)
    if not _ARROW.search(text) and path.suffix.lower() in _FILES:
        raise FileFormatError(
            f"there is no file {text}; a graph is a file, or lines such as 'smoke -> lung; lung -> xray'"
        )
    return _from_lines(text.replace(";", "\n"), domain, None)


def read_cliques(texts: Sequence[str], domain: Domain) -> Structure:
    """Cliques: a file with one on each line, or groups themselves, ``a,b,c`` with ``;`` between them."""
    groups: list[Clique] = []
    for text in texts:
        path = Path(text)
        source = path if _is_file(path) else None
        if source is None and path.suffix.lower() in _FILES:
            raise FileFormatError(
                f"there is no file {text}; cliques are a file, or groups such as 'smoke,lung; lung,xray'"
            )
        lines = read_text(path, DEFAULT_LIMITS) if source else text.replace(";", "\n")
        for number, names in _lines(lines):
            known = _known(names, domain, source, number)
            if len(set(known)) != len(known):
                raise InputError(f"{_where(source, number, 'cliques')} names a column twice; once is enough")
            groups.append(domain.clique(known))
    if not groups:
        raise InputError("no clique is named; give groups of columns, as in 'smoke,lung; lung,xray'")
    return Structure(groups=maximal_cliques(groups))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a graph in one line may be far too long for a name
        return False


def _from_file(path: Path, domain: Domain) -> Structure:
    if path.suffix.lower() == ".bif":
        return Structure(checked(read_bif(path).parents, domain))
    if path.suffix.lower() in _MODEL_FILES:
        model = open_model(path)
        if isinstance(model, BayesianNetwork):
            return Structure(checked(model.parents, domain))
        return Structure(groups=tuple(domain.clique(c) for c in model.cliques))
    if path.suffix.lower() == ".json":
        return _from_json(path, domain)
    return _from_lines(read_text(path, DEFAULT_LIMITS), domain, path)


def _from_json(path: Path, domain: Domain) -> Structure:
    """A graph that was learned privately and saved."""
    try:
        document = json.loads(read_text(path, DEFAULT_LIMITS))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DiscreetError):
            raise
        document = None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise FileFormatError(f"{path} is no graph that `discreet structure` has saved")
    if document.get("refused"):
        raise InputError(f"{path} holds a refusal: no graph was released, so there is none to be used")
    groups = document.get("interactions")
    if not isinstance(groups, list) or not all(
        isinstance(I, list) and len(I) > 1 and all(isinstance(name, str) for name in I) for I in groups
    ):
        raise FileFormatError(f"{path} has no list of edges; save the graph again")
    if not groups:
        raise InputError(f"the graph in {path} has no edges; leave the graph out")
    return Structure(
        groups=tuple(domain.clique(_known(I, domain, path, number)) for number, I in enumerate(groups, start=1))
    )


def _from_lines(text: str, domain: Domain, path: Path | None) -> Structure:
    arrows: dict[str, list[str]] = {}
    links: list[Clique] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = _without_comment(line)
        if not content:
            continue
        sides = [_known(_names(side), domain, path, number) for side in _ARROW.split(content.rstrip(";"))]
        if not all(sides) or (len(sides) == 1 and len(sides[0]) != 2) or "<-" in content:
            raise InputError(
                f"{_where(path, number)} is no edge{_quoted(content, path)}. Write 'parent -> child', or 'a -- b' for "
                "an edge without direction; groups of more columns are cliques"
            )
        if len(sides) == 1:
            links.append(domain.clique(sides[0]))
        for above, below in itertools.pairwise(sides):
            for child in below:
                arrows.setdefault(child, []).extend(a for a in above if a not in arrows.get(child, ()))
    if arrows and links:
        raise InputError("the graph has both arrows and edges without direction; use one of them throughout")
    if arrows:
        return Structure(checked(arrows, domain))
    if not links:
        raise InputError("the graph has no edges; write 'parent -> child', or leave the graph out")
    return Structure(groups=tuple(dict.fromkeys(links)))


def _lines(text: str) -> Iterable[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        content = _without_comment(line)
        if content:
            yield number, _names(content)


def _without_comment(line: str) -> str:
    return line.split("#", 1)[0].strip()


def _names(content: str) -> list[str]:
    if _LINK.search(content):
        return [name.strip() for name in _LINK.split(content)]
    return [name.strip() for name in next(csv.reader([content.replace("\t", ",")], skipinitialspace=True), [])]


def _known(names: Sequence[str], domain: Domain, path: Path | None, number: int) -> list[str]:
    """These names, if all are columns; what a file holds instead is not repeated."""
    for name in names:
        if name in domain:
            continue
        if path is None:
            domain.index(name)  # an error with a hint
        near = difflib.get_close_matches(name, domain.names, n=1)
        hint = f"; was {near[0]!r} meant?" if near else "; is it a graph at all?"
        raise InputError(f"{_where(path, number)} names something that is no column of the schema{hint}")
    return list(names)


def _where(path: Path | None, number: int, what: str = "graph") -> str:
    return f"line {number} of the {what}" if path is None else f"line {number} of {path}"


def _quoted(content: str, path: Path | None) -> str:
    return f": {content[:80]!r}" if path is None else ""
