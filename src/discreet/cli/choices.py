"""Everything that can be said about a fit: on the command line, in a run file, or in both."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DiscreetError, FileFormatError, did_you_mean
from . import options
from .failures import WrongUse

if TYPE_CHECKING:
    from ..domain import Domain
    from ..release import Release
    from ..spec import Spec
    from ..tables.windows import Windows


@dataclass(frozen=True)
class Choices(options.Text, options.Wanted):
    """What was said, None where nothing was. Every field is a key of the run file, and an option of ``fit``."""

    graph: Any = None
    cliques: Any = None
    workload: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)  # type: ignore[assignment]  # read from the line's texts
    ledger: Path | None = None
    output: Path | None = None
    purpose: str | None = None
    weight: str | None = None
    card: Mapping[str, Any] = field(default_factory=dict)

    # -- the public objects that these words stand for ----------------------------------------------------------------

    def domain(self) -> Domain:
        windows = self.windows()
        return self._columns() if windows is None else windows.domain

    def windows(self) -> Windows | None:
        """How the rows become windows; None where they are records as they are."""
        said = {name: getattr(self, name) for name in _TIMES if getattr(self, name) is not None}
        if not said:
            return None
        for name in ("time_column", "window", "unit_column"):
            if getattr(self, name) is None:
                first, option = (f"--{n.replace('_', '-')}" for n in (next(iter(said)), name))
                raise WrongUse(f"{first} is about windows of people's sequences, which need {option} too")
        from ..tables.windows import Windows

        if self.engine not in (None, "auto", "memory"):
            raise WrongUse(f"--engine {self.engine}: windows are cut in memory; leave it out")
        columns = self._columns()
        if self.state_column is None and len(columns) > 1:
            raise WrongUse("the schema has several columns: say with --state-column which of them is the state")
        states = columns[self.state_column or columns.names[0]]
        segment: Any = self.segment
        with suppress(ValueError):
            segment = None if segment is None else float(segment)
        assert self.unit_column is not None and self.time_column is not None and self.window is not None
        return Windows(
            states,
            self.unit_column,
            self.time_column,
            self.window,
            sequence=self.sequence_column,
            segment=segment,
            null=self.null_state,
            format=self._time_format(columns),
        )

    def _time_format(self, columns: Domain) -> str:
        """How times are spelled: as told, or as the schema has it."""
        if self.time_format is not None:
            return self.time_format
        known = columns[self.time_column].dates if self.time_column in columns.names else None
        return "" if known is None else known.format

    def _columns(self) -> Domain:
        from ..schema import load_schema

        if self.schema is None:
            raise WrongUse(
                "there is no schema: give --schema FILE, which says what is publicly known about the columns; "
                "`discreet schema draft DATA.csv` writes a first one to be edited"
            )
        return load_schema(self.schema)

    def spec(self, domain: Domain, public_size: int | None) -> Spec:
        """What to learn: as told, and otherwise chosen by public quantities."""
        from ..spec import resolve, said_by

        return resolve(domain, **{**said_by(self), "public_size": public_size}).for_a_model()

    def files(self) -> tuple[Path, ...]:
        """The files of public things that are read."""
        from ..learn.graph_files import is_file

        said = (self.schema, self.graph, self.cliques)
        return tuple(Path(text) for text in said if isinstance(text, str | Path) and is_file(Path(text)))

    def echo(self) -> dict[str, Any]:
        """What goes into the release: all that was said, but for the places of files, which are nobody's business."""
        kept = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("data", "ledger", "output", "card", "schema", "graph", "cliques", "workload")
        }
        return {k: v for k, v in kept.items() if v not in (None, {})}


# -- the run file ------------------------------------------------------------------------------------------------------

_TEXT = ("data", "schema", "relation", "unit_column", "engine", "delimiter", "ledger", "output", "purpose", "weight")
_TIMES = ("time_column", "window", "segment", "null_state", "state_column", "sequence_column", "time_format")
_LEARN = ("family", "method", "graph", "cliques", "workload", "target", "options", "public_size", "approximate_size")
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(_TEXT, ((str,), "text in quotes")),
    **dict.fromkeys(("epsilon", "delta", "rho"), ((int, float, str), "a number")),
    **dict.fromkeys((name for name in _TIMES if name not in ("window", "segment")), ((str,), "text in quotes")),
    "segment": ((str, int, float), "a number, or a word in quotes"),
    **dict.fromkeys(("max_rows", "window"), ((int,), "a whole number")),
    **dict.fromkeys(("row_is_line", "allow_large_delta"), ((bool,), "true or false")),
    "card": ((dict,), "a table, [card]"),
    **dict.fromkeys(
        (*_LEARN, "certify", "discover"), ((object,), "")
    ),  # what is wrong with these, `resolve` says for everybody
}


def read_run_file(path: Path) -> dict[str, Any]:
    """The run file as a table of known keys; places of files are meant from where the run file lies."""
    from ..io.limits import DEFAULT_LIMITS
    from ..io.reading import read_text
    from ..learn.graph_files import is_file

    if not path.exists():
        raise FileFormatError(f"there is no run file {path}; it is TOML with the options of `discreet fit` as keys")
    try:
        document = tomllib.loads(read_text(path, DEFAULT_LIMITS))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, DiscreetError):
            raise
        raise FileFormatError(f"{path} is not valid TOML: {error}") from None
    found: dict[str, Any] = {}
    for key, value in document.items():
        name = key.replace("-", "_")
        if name not in _KINDS:
            raise FileFormatError(f"{path}: unknown key {repr(key)[:80]}{did_you_mean(name, _KINDS)}")
        if name in found:
            raise FileFormatError(f"{path}: {key!r} is given twice, with a dash and with an underscore")
        _check_kind(path, name, value, key)
        found[name] = value
    for name in ("epsilon", "delta", "rho"):
        if name in found:
            found[name] = str(found[name])
    for name in ("data", "schema", "ledger", "output"):
        if name in found:
            found[name] = path.parent / found[name]
    for name in ("graph", "cliques", "workload"):
        if isinstance(found.get(name), str) and is_file(path.parent / found[name]):
            found[name] = str(path.parent / found[name])
    return found


def _check_kind(path: Path, name: str, value: Any, key: str) -> None:
    types, kind = _KINDS[name]
    if not isinstance(value, types) or (isinstance(value, bool) and types not in ((bool,), (object,))):
        raise FileFormatError(f"{path}: {key} must be {kind}, got {str(value)[:60]!r}")


def windows_again(file: Path, release: Release, schema: Path | None, engine: str | None) -> Windows | None:
    """How rows become the windows that a release was learned from, as it says itself; None where it was learned from
    records as they are. Of the schema it holds no more than the states."""
    names = (*_TIMES, "unit_column")
    said = {name: release.run[name] for name in names if release.run.get(name) is not None}
    if not set(said) & set(_TIMES):
        return None
    for name, value in said.items():
        _check_kind(file, name, value, name)
    if schema is None:
        raise WrongUse(
            f"{file} was learned from windows of longer rows: give --schema FILE, the schema of these rows, so that "
            "they can be cut again"
        )
    return Choices(schema=schema, engine=engine, **said).windows()


def line_of(wanted: options.Wanted, **beside: Any) -> dict[str, Any]:
    """What was said on the line, in the words of a run file."""
    said = {"options": options_from(list(wanted.options or ())), "cliques": wanted.cliques or None}
    return {**vars(wanted), **said, **beside}


def merged(run_file: Path | None, line: Mapping[str, Any]) -> Choices:
    """The file, and over it the line. The budget alone is never overridden: said twice, it must be the same."""
    said = {k: v for k, v in line.items() if v is not None and v != {}}
    if run_file is None:
        return Choices(**said)
    file = read_run_file(run_file)
    money = ("epsilon", "delta", "rho")
    if any(k in said for k in money):
        for key in money:
            if key in file and _number(file[key]) != _number(said.get(key)):
                there = f"{key} = {file[key]}"
                here = ", ".join(f"--{k} {said[k]}" for k in money if k in said)
                raise WrongUse(
                    f"the budget is given twice: {there} in {run_file}, and {here} on the line; keep one of them"
                )
    if isinstance(file.get("options", {}), dict):
        said["options"] = {**file.get("options", {}), **said.get("options", {})}
    said["card"] = {**file.get("card", {}), **said.get("card", {})}
    if ("graph" in said) != ("cliques" in said):  # the structure is one thing, in either of two words
        file.pop("cliques" if "graph" in said else "graph", None)
    return Choices(**{**file, **said})


def _number(text: Any) -> Any:
    from ..privacy.budget import exact

    try:
        return exact(str(text), "the budget")
    except DiscreetError:
        return text


def options_from(texts: list[str]) -> dict[str, Any]:
    """``--option name=value``: a number, true or false, a list, or else a word."""
    out: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not sign or not key or not value.strip():
            raise WrongUse(f"--option {text!r}: write name=value, as in --option max_parents=1")
        if key in out:
            raise WrongUse(f"--option {key} is given twice; give it once")
        try:
            out[key] = tomllib.loads(f"x = {value}")["x"]
        except (tomllib.TOMLDecodeError, ValueError):
            out[key] = value.strip()
    return out
