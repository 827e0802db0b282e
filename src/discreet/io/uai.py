"""UAI model files (MARKOV and BAYES), with a JSON sidecar for the names that the format itself cannot hold.

Tables run over their scope with the last variable fastest; in a BAYES file the last variable of a scope is the one
that is conditioned. Without the sidecar ``MODEL.uai.names.json``, variables are called x0, x1, … and levels 0, 1, ….
"""

from __future__ import annotations

import json
import math
import os
import re
from array import array
from collections.abc import Sequence

import numpy as np

from ..errors import FileFormatError, InputError
from .atomic import PathLike, write_atomically
from .limits import DEFAULT_LIMITS, Limits
from .network_data import FactorData, Table
from .reading import read_text, shown
from .strictjson import parse_json

_WORD = re.compile(r"\S+")
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SIDECAR_FORMAT = "discreet-uai-names"

Levels = dict[str, tuple[str, ...]]


def names_path(path: PathLike) -> str:
    """Where the names belonging to a UAI file are kept."""
    return os.fspath(path) + ".names.json"


def read_uai(path: PathLike, limits: Limits = DEFAULT_LIMITS) -> FactorData:
    """Read a UAI file, and the sidecar with the names if it is there."""
    text = read_text(path, limits)
    names = None
    if os.path.exists(names_path(path)):
        names = _read_names(names_path(path), limits)
    return parse_uai(text, names, shown(path), limits)


def parse_uai(
    text: str, names: Levels | None = None, source: str = "UAI text", limits: Limits = DEFAULT_LIMITS
) -> FactorData:
    """Read the text of a UAI file; ``names`` are the levels of the variables in order."""
    words = _Words(text)
    try:
        return _parse(words, names, limits)
    except FileFormatError as error:
        line = text.count("\n", 0, words.position) + 1
        raise FileFormatError(f"{source}, line {line}: {error}") from None


def write_uai(data: FactorData, path: PathLike) -> None:
    """Write a UAI file and the sidecar with the names beside it."""
    variables = [{"name": name, "levels": list(levels)} for name, levels in data.levels.items()]
    document = {"format": _SIDECAR_FORMAT, "version": 1, "variables": variables}
    try:
        sidecar = json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        raise InputError("a name or level is not valid Unicode") from None
    text = uai_text(data).encode("ascii")
    write_atomically(names_path(path), [sidecar])
    write_atomically(path, [text])


def uai_text(data: FactorData) -> str:
    """The text of a UAI file; :func:`parse_uai` gives back the same numbers, to the last bit."""
    index = {name: i for i, name in enumerate(data.levels)}
    lines = ["BAYES" if data.directed else "MARKOV", str(len(index))]
    lines.append(" ".join(str(len(levels)) for levels in data.levels.values()))
    lines.append(str(len(data.scopes)))
    lines += [" ".join(map(str, (len(scope), *(index[v] for v in scope)))) for scope in data.scopes]
    for scope, table in zip(data.scopes, data.tables, strict=True):
        if not np.all(np.isfinite(table)) or np.any(table < 0):
            raise InputError(f"the table over {scope} holds a number that is negative, infinite or not a number")
        rows = table.reshape(-1, table.shape[-1]) if table.ndim else table.reshape(1, 1)
        lines += ["", str(table.size), *(" " + " ".join(repr(float(x)) for x in row) for row in rows)]
    return "\n".join(lines) + "\n"


class _Words:
    """The words of a text, one at a time; ``position`` is where the last one begins."""

    def __init__(self, text: str) -> None:
        self.matches = _WORD.finditer(text)
        self.position = 0
        self.end = len(text)

    def take(self, what: str) -> str:
        match = next(self.matches, None)
        if match is None:
            self.position = self.end
            raise FileFormatError(f"expected {what}, found the end of the file")
        self.position = match.start()
        return match.group()

    def whole(self, what: str, most: int) -> int:
        word = self.take(what)
        if not _WHOLE.fullmatch(word):
            raise FileFormatError(f"expected {what}, a whole number, found {word[:40]!r}")
        number = int(word)
        if number > most:
            raise FileFormatError(f"{number} is too large for {what}; at most {most} is possible here")
        return number

    def number(self) -> float:
        word = self.take("a number")
        if not _NUMBER.fullmatch(word):
            raise FileFormatError(f"expected a number, found {word[:40]!r}")
        number = float(word)
        if not 0 <= number < math.inf:
            raise FileFormatError(f"expected a number that is not negative and not infinite, found {word[:40]!r}")
        return number

    def finish(self) -> None:
        match = next(self.matches, None)
        if match is not None:
            self.position = match.start()
            raise FileFormatError(f"expected the end of the file, found {match.group()[:40]!r}")


def _parse(words: _Words, names: Levels | None, limits: Limits) -> FactorData:
    kind = words.take("MARKOV or BAYES").upper()
    if kind not in ("MARKOV", "BAYES"):
        raise FileFormatError(f"it begins with {kind[:40]!r} instead of MARKOV or BAYES; this is not a UAI model file")
    count = words.whole("the number of variables", limits.header_values)
    sizes: list[int] = []
    for _ in range(count):
        sizes.append(words.whole("a number of levels", limits.header_values))
        if sizes[-1] == 0:
            raise FileFormatError("a variable has no levels")
    limits.require("header_values", sum(sizes), "the number of levels,")
    levels = _named(sizes, names)
    variables = list(levels)
    scopes: list[tuple[str, ...]] = []
    for _ in range(words.whole("the number of tables", limits.header_values)):
        width = words.whole("the size of a scope", limits.array_dimensions)
        members = [words.whole("a variable", count - 1) for _ in range(width)]
        if len(set(members)) != width:
            raise FileFormatError("a scope names a variable twice")
        scopes.append(tuple(variables[i] for i in members))
    cells_left = limits.table_cells
    tables: list[Table] = []
    for scope in scopes:
        shape = tuple(len(levels[v]) for v in scope)
        cells_left -= math.prod(shape)
        if cells_left < 0:
            raise FileFormatError("its tables exceed the limit on cells (Limits.table_cells)")
        tables.append(_table(words, shape))
    words.finish()
    return FactorData(kind == "BAYES", levels, tuple(scopes), tuple(tables))


def _table(words: _Words, shape: tuple[int, ...]) -> Table:
    size = words.whole("the number of entries", math.prod(shape))
    if size != math.prod(shape):
        raise FileFormatError(f"a table has {size} entries, and its scope asks for {math.prod(shape)}")
    values = array("d")
    for _ in range(size):
        values.append(words.number())
    return np.array(values, dtype=np.float64).reshape(shape)


def _named(sizes: Sequence[int], names: Levels | None) -> Levels:
    if names is None:
        return {f"x{i}": tuple(map(str, range(size))) for i, size in enumerate(sizes)}
    if [len(levels) for levels in names.values()] != list(sizes):
        raise FileFormatError("its variables are not those of the file with the names; delete that file to do without")
    return names


def _read_names(path: PathLike, limits: Limits) -> Levels:
    try:
        document = parse_json(read_text(path, limits).encode("utf-8"), limits)
        if document.get("format") != _SIDECAR_FORMAT or document.get("version") != 1:
            raise FileFormatError(f"it does not say format {_SIDECAR_FORMAT!r}, version 1")
        names: Levels = {}
        for variable in document.get("variables") or ():
            name, levels = variable["name"], variable["levels"]
            if not isinstance(name, str) or not name or name in names:
                raise FileFormatError(f"{str(name)[:60]!r} is not a name, or is there twice")
            if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
                raise FileFormatError(f"the levels of {name[:60]!r} are not a list of strings")
            if len(set(levels)) != len(levels):
                raise FileFormatError(f"a level of {name[:60]!r} is there twice")
            names[name] = tuple(levels)
    except (KeyError, TypeError):
        raise FileFormatError(f"cannot read {shown(path)}: each variable needs a name and levels") from None
    except FileFormatError as error:
        message = str(error)
        raise FileFormatError(message if shown(path) in message else f"cannot read {shown(path)}: {message}") from None
    return names
