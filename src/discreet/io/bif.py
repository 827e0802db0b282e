"""BIF, the interchange format for Bayesian networks: a reader and a writer.

The reader takes the dialects in use: commas or spaces in lists, bare or quoted names, labels such as ``Asy/Patch``,
``<5`` or ``12+``, tables by rows ``(yes, no) 0.1, 0.9;``, in one piece (``table``: the variable itself varies slowest,
its last parent fastest) or by ``default``. Comments and properties are skipped. Conditional distributions that miss
one by at most 1e-4 are rescaled, which is noted in :attr:`NetworkData.notes`; beyond that the file is refused.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import FileFormatError, InputError, did_you_mean
from .atomic import PathLike, write_atomically
from .limits import DEFAULT_LIMITS, Limits
from .network_data import NetworkData, Table, normalised, require_acyclic
from .reading import read_text, shown

_TOKEN = re.compile(
    r"""
      (?P<space>  \s+ | //[^\n]* | /\*(?:[^*]|\*(?!/))*+(?:\*/|(?P<unclosed>\Z)) )
    | (?P<quoted> "(?:[^"\\]|\\.)*+(?:"|(?P<open>\Z)) )
    | (?P<mark>   [{}()\[\],;|] )
    | (?P<word>   (?:[^\s{}()\[\],;|"/]|/(?![/*]))+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BARE = re.compile(r"[A-Za-z0-9_.<>=+\-/%&:?!*~^@#$']+", re.ASCII)
_END = "the end of the file"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def read_bif(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> NetworkData:
    """Read a BIF file. Errors are :class:`FileFormatError` and give line and column."""
    return parse_bif(read_text(source, limits), shown(source), limits)


def parse_bif(text: str, source: str = "BIF text", limits: Limits = DEFAULT_LIMITS) -> NetworkData:
    """Read the text of a BIF file; ``source`` is what messages call it."""
    parser = _Parser(text, limits)
    try:
        return parser.network()
    except FileFormatError as error:
        before = text[: parser.here]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise FileFormatError(f"{source}, line {line}, column {column}: {error}") from None


def write_bif(network: NetworkData, path: PathLike) -> None:
    """Write a BIF file, completely or not at all."""
    write_atomically(path, [bif_text(network).encode("utf-8")])


def bif_text(network: NetworkData) -> str:
    """The text of a BIF file; :func:`parse_bif` gives back the same numbers, to the last bit."""
    lines = [f"network {_word(network.name)} {{", "}"]
    for variable, levels in network.levels.items():
        values = ", ".join(map(_word, levels))
        lines += [f"variable {_word(variable)} {{", f"  type discrete [ {len(levels)} ] {{ {values} }};", "}"]
    for variable, table in network.tables.items():
        parents = network.parents[variable]
        given = f" | {', '.join(map(_word, parents))}" if parents else ""
        lines.append(f"probability ( {_word(variable)}{given} ) {{")
        for cell in np.ndindex(table.shape[:-1]):
            row = ", ".join(repr(float(p)) for p in table[cell])
            key = ", ".join(_word(network.levels[parent][code]) for parent, code in zip(parents, cell, strict=True))
            lines.append(f"  ({key}) {row};" if parents else f"  table {row};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _word(text: str) -> str:
    """A name as it stands when it is plain, and in quotes otherwise."""
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"a BIF file cannot hold the name {text!r}")
    if _BARE.fullmatch(text) and "//" not in text and "/*" not in text:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Parser:
    """Recursive descent over a stream of tokens; ``here`` is where the token last looked at begins."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.here = 0
        self.tokens = self._tokenise()
        self.next = _Token("", "", 0)
        self.cells_left = limits.table_cells
        self.most_dimensions = limits.array_dimensions
        self.levels: dict[str, tuple[str, ...]] = {}
        self.codes: dict[str, dict[str, int]] = {}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.tables: dict[str, Table] = {}
        self.notes: list[str] = []

    def _tokenise(self) -> Iterator[_Token]:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None or match["open"] is not None or match["unclosed"] is not None:
                self.here = position
                raise FileFormatError("a quotation or a comment that begins here never ends")
            kind = match.lastgroup or ""
            if kind == "quoted":
                yield _Token(kind, re.sub(r"\\([\"\\])", r"\1", match.group()[1:-1]), position)
            elif kind != "space":
                yield _Token(kind, match.group(), position)
            position = match.end()
        while True:
            yield _Token("end", _END, len(self.text))

    # -- tokens --------------------------------------------------------------------------------------------------

    def take(self) -> _Token:
        token = self.next
        self.here = token.position
        self.next = next(self.tokens)
        self.here = token.position
        return token

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text or token.kind in ("quoted", "end"):
            raise FileFormatError(f"expected {text!r}, found {_brief(token)}")

    def at(self, text: str) -> bool:
        return self.next.text == text and self.next.kind in ("word", "mark")

    def skip(self, text: str) -> bool:
        found = self.at(text)
        if found:
            self.take()
        return found

    def name(self, what: str) -> str:
        token = self.take()
        if token.kind not in ("word", "quoted"):
            raise FileFormatError(f"expected {what}, found {_brief(token)}")
        return token.text

    def property(self) -> None:
        """Skip a property: anything up to a semicolon."""
        while not self.skip(";"):
            if self.take().kind == "end":
                raise FileFormatError("a property is not closed by ';'")

    # -- blocks --------------------------------------------------------------------------------------------------

    def network(self) -> NetworkData:
        name = "unknown"
        self.take()  # nothing yet: this looks at the first token
        while self.next.kind != "end":
            token = self.take()
            if token.text == "network" and token.kind == "word":
                name = self.network_block()
            elif token.text == "variable" and token.kind == "word":
                self.variable_block()
            elif token.text == "probability" and token.kind == "word":
                self.probability_block()
            else:
                raise FileFormatError(f"expected 'network', 'variable' or 'probability', found {_brief(token)}")
        for variable in self.levels:
            if variable not in self.tables:
                raise FileFormatError(f"there is no probability block for the variable {variable[:60]!r}")
        if not self.levels:
            raise FileFormatError("it declares no variables; this is not a BIF file")
        require_acyclic(self.parents)
        ordered = list(self.levels)
        parents, tables = {v: self.parents[v] for v in ordered}, {v: self.tables[v] for v in ordered}
        return NetworkData(name, self.levels, parents, tables, tuple(self.notes))

    def network_block(self) -> str:
        name = self.name("the name of the network") if not self.at("{") else "unknown"
        self.expect("{")
        while not self.skip("}"):
            self.expect("property")
            self.property()
        return name

    def variable_block(self) -> None:
        variable = self.name("the name of a variable")
        if variable in self.levels or not variable:
            raise FileFormatError(
                f"the variable {variable[:60]!r} is declared twice" if variable else "a name is empty"
            )
        levels: tuple[str, ...] | None = None
        self.expect("{")
        while not self.skip("}"):
            if self.skip("property"):
                self.property()
            elif levels is None:
                levels = self.type()
            else:
                raise FileFormatError(f"expected 'property' or '}}', found {_brief(self.take())}")
        if levels is None:
            raise FileFormatError(f"the variable {variable[:60]!r} has no type")
        self.levels[variable] = levels
        self.codes[variable] = {level: code for code, level in enumerate(levels)}

    def type(self) -> tuple[str, ...]:
        self.expect("type")
        self.expect("discrete")
        self.expect("[")
        declared = self.name("the number of values")
        start = self.here
        self.expect("]")
        self.expect("{")
        levels: dict[str, None] = {}
        while not self.skip("}"):
            level = self.name("a value")
            if level in levels:
                raise FileFormatError(f"the value {level[:60]!r} is listed twice")
            levels[level] = None
            self.skip(",")
        self.expect(";")
        if not levels:
            raise FileFormatError("a variable needs at least one value")
        if declared != str(len(levels)):
            self.here = start
            raise FileFormatError(f"{declared[:20]} values are announced and {len(levels)} are listed")
        return tuple(levels)

    def probability_block(self) -> None:
        start = self.here
        self.expect("(")
        variable = self.known_variable()
        if variable in self.tables:
            raise FileFormatError(f"the variable {variable[:60]!r} has a second probability block")
        # The oldest dialect has no bar: the first name is the variable, the others are its parents.
        self.skip("|") or self.skip(",")
        parents: list[str] = []
        while not self.skip(")"):
            parent = self.known_variable()
            if parent in parents or parent == variable:
                raise FileFormatError(f"{parent[:60]!r} appears twice")
            parents.append(parent)
            self.skip(",")
        shape = tuple(len(self.levels[v]) for v in (*parents, variable))
        self.cells_left -= math.prod(shape)
        if self.cells_left < 0 or len(shape) > self.most_dimensions:
            self.here = start
            raise FileFormatError(
                f"the table of {variable[:60]!r} is too large (Limits.table_cells for all tables, "
                f"and {self.most_dimensions - 1} parents)"
            )
        table = self.table(parents, shape)
        self.here = start
        self.parents[variable] = tuple(parents)
        self.tables[variable], note = normalised(variable, table)
        self.notes += [note] if note else []

    def known_variable(self) -> str:
        variable = self.name("the name of a variable")
        if variable not in self.levels:
            hint = did_you_mean(variable, self.levels)
            raise FileFormatError(f"no variable {variable[:60]!r} is declared above{hint}")
        return variable

    def table(self, parents: list[str], shape: tuple[int, ...]) -> Table:
        """The statements of a probability block, as an array with the axes ``(*parents, variable)``."""
        table = np.full(shape, np.nan)
        default: Table | None = None
        start = self.here
        self.expect("{")
        while not self.skip("}"):
            if self.skip("property"):
                self.property()
            elif self.skip("table"):
                numbers = self.numbers(table.size).reshape(shape[-1:] + shape[:-1])
                self.fill(table, (), np.moveaxis(numbers, 0, -1))
            elif self.skip("default"):
                default = self.numbers(shape[-1])
            else:
                cell = self.cell(parents)
                self.fill(table, cell, self.numbers(shape[-1]))
        unset = np.isnan(table[..., 0])
        if unset.any():
            if default is None:
                codes = np.unravel_index(int(unset.argmax()), unset.shape)
                row = ", ".join(self.levels[p][code] for p, code in zip(parents, codes, strict=True))
                self.here = start
                raise FileFormatError(f"no probabilities are given for ({row[:200]})")
            table[unset] = default
        return table

    def fill(self, table: Table, cell: tuple[int, ...], numbers: Table) -> None:
        if not np.isnan(table[cell]).all():
            raise FileFormatError("these probabilities are given twice")
        table[cell] = numbers

    def cell(self, parents: list[str]) -> tuple[int, ...]:
        self.expect("(")
        codes: list[int] = []
        for parent in parents:
            level = self.name(f"a value of {parent[:60]!r}")
            if level not in self.codes[parent]:
                hint = did_you_mean(level, self.levels[parent])
                raise FileFormatError(f"{parent[:60]!r} has no value {level[:60]!r}{hint}")
            codes.append(self.codes[parent][level])
            self.skip(",")
        self.expect(")")
        return tuple(codes)

    def numbers(self, count: int) -> Table:
        """``count`` probabilities and a semicolon."""
        values = array("d")
        start = self.next.position
        while not self.skip(";"):
            token = self.take()
            if token.kind != "word" or not _NUMBER.fullmatch(token.text):
                raise FileFormatError(f"expected a number or ';', found {_brief(token)}")
            value = float(token.text)
            if not 0 <= value <= 1 + 1e-4:
                raise FileFormatError(f"{token.text[:40]} is not a probability")
            values.append(value)
            if len(values) > count:
                raise FileFormatError(f"more than {count} numbers are given")
            self.skip(",")
        if len(values) != count:
            self.here = start
            raise FileFormatError(f"expected {count} numbers, found {len(values)}")
        return np.array(values, dtype=np.float64)


def _brief(token: _Token) -> str:
    return token.text if token.kind == "end" else repr(token.text[:40])
