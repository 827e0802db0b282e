"""Graphs and cliques as people write them: in a file, or in one line.

A wrong file may be named, and it may hold private rows. So what stands in a file is never quoted: messages give the
line, and at most the column of the schema that was probably meant.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..domain import Clique, Domain
from ..errors import DiscreetError, FileFormatError, InputError
from ..files import open_model
from ..graph import maximal_cliques, topological_order
from ..io.bif import parse_bif, read_bif
from ..io.limits import DEFAULT_LIMITS
from ..io.reading import read_text
from ..models.base import Model
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Budget

_ARROW = re.compile(r"->|→")
_LINK = re.compile(r"\s--\s|\s-\s|–")
_ODD_ARROWS = ("<->", "-->", "=>", "—>", "–>")
_FILES = (".bif", ".txt", ".csv", ".tsv", ".json", ".toml", ".zip", ".uai")
_WEIGHT = re.compile(r"^(.*\S)\s+([0-9.eE+-]+)$")
KIND = "discreet graph"  # what `discreet structure` saves

Parents = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Structure:
    """What is publicly known about which columns interact: arrows, or groups of columns.

    ``released``: what it cost, if it was learned privately and released before.
    """

    parents: Parents | None = None
    groups: tuple[Clique, ...] = ()
    released: Budget | None = None

    @property
    def is_directed(self) -> bool:
        return self.parents is not None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Groups of columns that interact, those inside others left out; the families, if there are arrows."""
        if self.parents is None:
            return maximal_cliques(self.groups)
        return maximal_cliques((*above, child) for child, above in self.parents.items())


def released_before(cost: Budget) -> str:
    """What plan and card say of a graph that was released before."""
    return (
        f"The graph was learned in another release ({cost}). If that was from the same records, what was spent adds "
        "up: the guarantee above is for the tables alone."
    )


def checked(parents: Mapping[str, Sequence[str]], domain: Domain) -> Parents:
    """Known names, each parent once, no cycle; in domain order."""
    for child, above in parents.items():
        domain.index(child)
        if isinstance(above, str) or not isinstance(above, Sequence):
            said = f"the word {above!r}" if isinstance(above, str) else f"a {type(above).__name__}"
            raise InputError(f"the parents of {child!r} are a list of names, got {said}")
        for name in above:
            domain.index(name)
        if len(set(above)) != len(tuple(above)):
            raise InputError(f"column {child!r} names a parent twice: {tuple(above)}")
    found = {name: tuple(parents.get(name, ())) for name in domain}
    topological_order(found)  # a cycle is an error that shows it
    return found


# -- text and files ----------------------------------------------------------------------------------------------------


def read_graph(text: str | Path, domain: Domain) -> Structure:
    """A graph: a file (BIF, a model, a released graph, or lines of text), or lines with ``;`` between them.

    ``a -> b`` is an arrow (also ``a, b -> c`` and ``a -> b -> c``), ``a -- b`` an edge without direction (also
    ``a - b`` with spaces, ``a, b`` and a tab). Text that begins as BIF does is read as BIF.
    """
    if path := _file(text, "a graph is a file, or lines such as 'smoke -> lung; lung -> xray'"):
        return _from_file(path, domain)
    inline = str(text)
    if inline.lstrip().startswith("network") and "{" in inline:
        return Structure(checked(parse_bif(inline).parents, domain))
    return _from_lines(inline.replace(";", "\n"), domain, None)


def read_groups(text: str | Path, domain: Domain) -> list[Clique]:
    """Cliques: a file with one on each line, or groups themselves, ``a,b,c`` with ``;`` between them."""
    path = _file(text, "cliques are a file, or groups such as 'smoke,lung; lung,xray'")
    lines = read_text(path, DEFAULT_LIMITS) if path else str(text).replace(";", "\n")
    groups: list[Clique] = []
    for number, content in _lines(lines):
        known = _known(_names(content), domain, path, number)
        if len(set(known)) != len(known):
            raise InputError(f"{_where(path, number, 'cliques')} names a column twice; once is enough")
        groups.append(domain.clique(known))
    return groups


def read_weighted_groups(text: str | Path, domain: Domain) -> list[Any]:
    """Groups with weights: a file or text, ``a,b,c 2`` on each line or with ``;`` between them (without a weight: 1);
    or a file of JSON or TOML, whose list ``workload`` is handed on as it is."""
    path = _file(text, "a workload is pairs, triples, a file, or groups such as 'age,income 2; age,sex'")
    if path and path.suffix.lower() in (".json", ".toml"):
        return _list_of(path, "workload")
    lines = read_text(path, DEFAULT_LIMITS) if path else str(text).replace(";", "\n")
    out = []
    for number, content in _lines(lines):
        found = _WEIGHT.match(content)
        names = _names(content)
        weight = "1"
        if found and names[-1:] and names[-1] not in domain:  # a column may be called "class 2"
            names, weight = _names(found[1]), found[2]
        known = _known(names, domain, path, number, "workload")
        try:
            out.append({"columns": known, "weight": float(weight)})
        except ValueError:
            raise InputError(f"{_where(path, number, 'workload')} ends with a weight that is no number") from None
    return out


def _list_of(path: Path, key: str) -> list[Any]:
    """The list with this name in a file of JSON or TOML; in JSON it may stand alone."""
    read = json.loads if path.suffix.lower() == ".json" else tomllib.loads
    try:
        document = read(read_text(path, DEFAULT_LIMITS))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DiscreetError):
            raise
        raise FileFormatError(f"{path} cannot be read as {path.suffix[1:].upper()}") from None
    found = document if isinstance(document, list) else document.get(key) if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise FileFormatError(f"{path} has no list {key!r} of groups of columns")
    return found


def _file(text: str | Path, wanted: str) -> Path | None:
    """The file that is meant, if one is; what looks like the name of a file must be one."""
    path = Path(text)
    if is_file(path):
        return path
    if isinstance(text, Path) or (not _ARROW.search(text) and path.suffix.lower() in _FILES):
        raise FileFormatError(f"there is no file {text}; {wanted}")
    return None


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a graph in one line may be far too long for a name
        return False


def _from_file(path: Path, domain: Domain) -> Structure:
    ending = path.suffix.lower()
    if ending == ".bif":
        return Structure(checked(read_bif(path).parents, domain))
    if ending in (".zip", ".uai"):
        return of_model(open_model(path), domain)
    if ending == ".json":
        return _released(path, domain)
    return _from_lines(read_text(path, DEFAULT_LIMITS), domain, path)


def of_model(model: Model, domain: Domain) -> Structure:
    """The graph of a model; its tables are ignored."""
    if isinstance(model, BayesianNetwork):
        return Structure(checked(model.parents, domain))
    return Structure(groups=tuple(domain.clique(c) for c in model.cliques))


def saved_graph(path: Path) -> dict[str, Any]:
    """The document of a graph that was learned privately and saved, a refusal too."""
    try:
        document = json.loads(read_text(path, DEFAULT_LIMITS))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DiscreetError):
            raise
        document = None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise FileFormatError(f"{path} is no graph that `discreet structure` has saved")
    groups = document.get("interactions")
    if not document.get("refused") and not (
        isinstance(groups, list)
        and all(isinstance(I, list) and len(I) > 1 and all(isinstance(name, str) for name in I) for I in groups)
    ):
        raise FileFormatError(f"{path} has no list of edges; save the graph again")
    return document


def graph_digest(document: Mapping[str, Any]) -> str:
    """The digest of all that a saved graph says, whatever its spaces and the order of its keys: what is signed."""
    said = {key: value for key, value in document.items() if key != "signature"}
    return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _released(path: Path, domain: Domain) -> Structure:
    document = saved_graph(path)
    if document.get("refused"):
        raise InputError(f"{path} holds a refusal: no graph was released, so there is none to be used")
    groups: list[list[str]] = document["interactions"]
    if not groups:
        raise InputError(f"the graph in {path} has no edges; leave the graph out")
    cost = document.get("release", {}).get("budget") if isinstance(document.get("release"), dict) else None
    return Structure(
        groups=tuple(domain.clique(_known(I, domain, path, number)) for number, I in enumerate(groups, start=1)),
        released=None if cost is None else Budget.from_dict(cost),
    )


def _from_lines(text: str, domain: Domain, path: Path | None) -> Structure:
    arrows: dict[str, list[str]] = {}
    links: list[Clique] = []
    for number, content in _lines(text):
        odd = next((arrow for arrow in _ODD_ARROWS if arrow in content), None)
        if odd is not None:
            quoted = _quoted(content, path)
            raise InputError(f"{_where(path, number)} has {odd!r}; an arrow is written '->'{quoted}")
        sides = [_names(side) for side in _ARROW.split(content.rstrip(";"))]
        whole = all(name for side in sides for name in side) and all(sides)
        malformed = not whole or (len(sides) == 1 and len(sides[0]) != 2) or "<-" in content
        if path is not None or not malformed:  # of a wrong file it is the names that tell
            known = [_known(side, domain, path, number) for side in sides]
        if malformed:
            raise InputError(
                f"{_where(path, number)} is no edge{_quoted(content, path)}. Write 'parent -> child', or 'a -- b' for "
                "an edge without direction; groups of more columns are cliques"
            )
        if len(known) == 1:
            links.append(domain.clique(known[0]))
        for above, below in pairwise(known):
            for child in below:
                arrows.setdefault(child, []).extend(a for a in above if a not in arrows.get(child, ()))
    if arrows and links:
        raise InputError("the graph has both arrows and edges without direction; use one of them throughout")
    if arrows:
        return Structure(checked(arrows, domain))
    if not links:
        raise InputError("the graph has no edges; write 'parent -> child', or leave the graph out")
    return Structure(groups=tuple(dict.fromkeys(links)))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments; empty ones are left out."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if content:
            yield number, content


def _names(content: str) -> list[str]:
    if _LINK.search(content):
        return [name.strip() for name in _LINK.split(content)]
    return [name.strip() for name in next(csv.reader([content.replace("\t", ",")], skipinitialspace=True), [])]


def _known(names: Sequence[str], domain: Domain, path: Path | None, number: int, what: str = "graph") -> list[str]:
    """These names, if all are columns; what a file holds instead is not repeated."""
    for name in names:
        if name in domain:
            continue
        if path is None:
            domain.index(name)  # an error with a hint
        near = difflib.get_close_matches(name, domain.names, n=1)
        hint = f"; was {near[0]!r} meant?" if near else f"; is it a {what} at all?"
        raise InputError(f"{_where(path, number, what)} names something that is no column of the schema{hint}")
    return list(names)


def _where(path: Path | None, number: int, what: str = "graph") -> str:
    return f"line {number} of the {what}" if path is None else f"line {number} of {path}"


def _quoted(content: str, path: Path | None) -> str:
    return f": {content[:80]!r}" if path is None else ""
