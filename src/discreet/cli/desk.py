"""The files of one piece of work in a folder: the schema and the run file that `discreet start` helps to write.

What is said on the page stands in these two files and nowhere else, so that the command line goes on from there, and
the page from what was written by hand. Comments that people have put into them are kept.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from ..errors import DiscreetError, FileFormatError, InputError
from ..io.atomic import write_atomically
from ..io.limits import DEFAULT_LIMITS
from ..io.reading import read_text
from . import rows
from .choices import Choices, merged, read_run_file
from .options import Text
from .prepared import Prepared, prepare

if TYPE_CHECKING:
    from ..domain import Domain

_RUN = "What is learned, and for how much: `discreet fit --run run.toml` takes it."
_SCHEMA = (
    "What is publicly known about the columns, before anybody looks at the rows: `discreet docs schema`, key by key."
)
KINDS = {
    "out": (),
    "levels": ("levels", "missing", "other"),
    "numbers": ("edges", "range", "bins", "integer", "missing"),
    "dates": ("dates", "missing"),
}
"""What a column can be on the page, and the keys of the schema that are filled in there."""

_TELLING = {"levels": {"levels"}, "numbers": {"edges", "range", "bins"}, "dates": {"dates"}}


@dataclass(frozen=True)
class Column:
    """A column of the file, as it stands in the schema. ``text``: what the page has no fields for."""

    name: str
    kind: str
    fields: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True)
class Desk:
    """A folder with a run file and a schema, there or not yet."""

    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "run.toml"

    @property
    def schema(self) -> Path:
        return self.said().get("schema", self.folder / "schema.toml")  # type: ignore[no-any-return]

    # -- the run file --------------------------------------------------------------------------------------------------

    def said(self) -> dict[str, Any]:
        """What the run file says; places of files as they are meant."""
        return read_run_file(self.run) if self.run.exists() else {}

    def say(self, changes: Mapping[str, Any]) -> None:
        """Write these keys into the run file; None takes one out. Nothing is written that cannot be read."""
        document = _document(self.run, _RUN)
        for key, value in changes.items():
            if value is None:
                document.pop(key, None)
            elif document.get(key) != (value := _as_number(value)):
                document[key] = value
        _write(self.run, document)

    def say_data(self, data: Path) -> None:
        """These rows from now on. Nothing of them is read here."""
        if not data.exists():
            raise FileFormatError(f"there is no file {data}")
        rows.open_one(data, Text())
        self.say({"data": self.near(data), "schema": self.near(self.schema)})

    def near(self, path: Path) -> str:
        """How the run file calls a file: by its name, if it lies in the folder."""
        full, folder = path.resolve(), self.folder.resolve()
        return os.fspath(full.relative_to(folder) if full.is_relative_to(folder) else full)

    def choices(self) -> Choices:
        return merged(self.run if self.run.exists() else None, {})

    def prepared(self) -> Prepared:
        return prepare(self.choices())

    def data(self) -> Path:
        found = self.said().get("data")
        if found is None:
            raise InputError("there are no rows yet: name a file first")
        return Path(found)

    def header(self) -> tuple[str, ...]:
        """The names of the columns: the first line of the file, which is public."""
        said = self.said()
        text = Text(delimiter=said.get("delimiter"), row_is_line=said.get("row_is_line"))
        return rows.open_one(self.data(), text).names

    # -- the schema ----------------------------------------------------------------------------------------------------

    def domain(self) -> Domain:
        from ..schema import load_schema

        return load_schema(self.schema)

    def columns(self) -> list[Column]:
        """All columns of the file, as the schema has them."""
        document = _document(self.schema, _SCHEMA)
        return [_column(name, document.get("columns", {}).get(name)) for name in self.header()]

    def guesses(self) -> list[str]:
        """What in the schema a draft has guessed, and nobody has said otherwise since."""
        from ..tables.draft import guesses

        return guesses(_document(self.schema, _SCHEMA).unwrap())

    def say_columns(self, wanted: Iterable[Column]) -> None:
        """Write into the schema what has changed; what cannot be read as a schema is refused, and nothing changes."""
        from ..schema import parse_schema

        document = _document(self.schema, _SCHEMA)
        document.setdefault("version", 1)
        sections = document.setdefault("columns", tomlkit.table(is_super_table=True))
        for column in wanted:
            before = _column(column.name, sections.get(column.name))
            if column.kind in ("kept", before.kind) and dict(before.fields) == dict(column.fields):
                continue
            if column.kind == "out":
                sections.pop(column.name, None)
                continue
            section = sections.setdefault(column.name, tomlkit.table())
            if before.kind != column.kind:
                section.clear()
            values = _section(column)
            for key in KINDS[column.kind]:
                if key in values:
                    section[key] = _at_once(values[key])
                else:
                    section.pop(key, None)
        if not sections:
            raise InputError("every column is left out; say of at least one what is known about it")
        parse_schema(tomlkit.dumps(document), os.fspath(self.schema), os.fspath(self.schema.parent))
        _write(self.schema, document)

    def free(self, name: str) -> Path:
        """A name for a new file: this one, or with a number behind it."""
        path = self.folder / name
        number = 1
        while path.exists():
            number += 1
            path = self.folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
        return path


def _document(path: Path, about: str) -> Any:
    if not path.exists():
        document = tomlkit.document()
        document.add(tomlkit.comment(about))
        return document
    try:
        return tomlkit.parse(read_text(path, DEFAULT_LIMITS))
    except TOMLKitError as error:
        raise FileFormatError(f"{path} is not valid TOML: {error}") from None


def _at_once(value: Any) -> Any:
    """A list as one value: given its elements one by one, the library numbers all of them anew for each."""
    if not isinstance(value, list | tuple):
        return value
    return tomlkit.array("[" + ", ".join(tomlkit.item(one).as_string() for one in value) + "]")


def _as_number(value: Any) -> Any:
    """A text as the number that it spells, if it does so to the last digit."""
    with suppress(ValueError):
        if isinstance(value, str) and "/" not in value and Fraction(value) == Fraction(repr(float(value))):
            return int(value) if _is_whole(value) else float(value)
    return value


def _write(path: Path, document: Any) -> None:
    text = tomlkit.dumps(document)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{path} cannot be written: {error}") from None
    write_atomically(path, [text.encode("utf-8")])


# -- a column as fields of a form --------------------------------------------------------------------------------------


def _column(name: str, section: Any) -> Column:
    if section is None:
        return Column(name, "out", {})
    said = section.unwrap()
    kind = next((kind for kind, keys in _TELLING.items() if keys & set(said)), "kept")
    fields = {} if kind == "kept" or set(said) - set(KINDS[kind]) else _fields(kind, said)
    if not fields:
        return Column(name, "kept", {}, tomlkit.dumps(said).strip())
    return Column(name, kind, fields)


def _fields(kind: str, said: Mapping[str, Any]) -> dict[str, str]:
    """What the fields of the form hold; nothing if they cannot hold it."""
    out: dict[str, str] = {key: str(said.get(key, "")) for key in ("missing", "other") if key in KINDS[kind]}
    if kind == "levels":
        levels = said.get("levels")
        if levels == "discover":
            return {**out, "levels": ""}
        if not isinstance(levels, list) or len({type(x) for x in levels}) != 1:
            return {}
        good = all(type(x) is int or (isinstance(x, str) and _plain(x)) for x in levels)
        return {**out, "levels": "\n".join(map(str, levels))} if good else {}
    if kind == "dates":
        dates = said.get("dates")
        if not isinstance(dates, dict) or set(dates) != {"from", "to", "by"}:
            return {}
        return {**out, **{key: str(value) for key, value in dates.items()}}
    out |= {"integer": "yes" if said.get("integer") else "", "edges": "", "low": "", "high": "", "bins": ""}
    if "edges" in said:
        return {**out, "edges": ", ".join(map(str, said["edges"]))} if not set(said) & {"range", "bins"} else {}
    ends, bins = said.get("range", "private"), said.get("bins", "private")
    if ends != "private":
        out |= {"low": str(ends[0]), "high": str(ends[1])}
    return {**out, "bins": "" if bins == "private" else str(bins)}


def _plain(text: str) -> bool:
    return bool(text) and text == text.strip() and "\n" not in text and not _is_whole(text)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _section(column: Column) -> dict[str, Any]:
    """The keys of the schema that the fields of the form stand for."""
    fields = {key: text.strip() for key, text in column.fields.items()}
    out: dict[str, Any] = {key: fields[key] for key in ("missing", "other") if fields.get(key)}
    if column.kind == "levels":
        texts = [line.strip() for line in column.fields.get("levels", "").splitlines() if line.strip()]
        if len(texts) == 1 and "," in texts[0]:
            texts = [part.strip() for part in texts[0].split(",") if part.strip()]
        whole = bool(texts) and all(map(_is_whole, texts))
        return {**out, "levels": [int(t) if whole else t for t in texts] if texts else "discover"}
    if column.kind == "dates":
        if not all(fields.get(key) for key in ("from", "to", "by")):
            raise InputError(f"column {column.name!r}: dates need the first day, the last day and what is counted")
        table = tomlkit.inline_table()
        for key in ("from", "to"):
            table[key] = _toml(column.name, fields[key])
        table["by"] = fields["by"]
        return {**out, "dates": table}
    if fields.get("integer"):
        out["integer"] = True
    if fields.get("edges"):
        return {**out, "edges": [_number(column.name, part) for part in fields["edges"].split(",")]}
    low, high = fields.get("low", ""), fields.get("high", "")
    if bool(low) != bool(high):
        raise InputError(f"column {column.name!r}: give both ends of its range, or none to have it found privately")
    if fields.get("bins") and not low:
        raise InputError(f"column {column.name!r}: bins of equal width need a range; or leave both to be found")
    ends = [_number(column.name, low), _number(column.name, high)] if low else "private"
    bins = _number(column.name, fields["bins"]) if fields.get("bins") else "private"
    return {**out, "range": ends, "bins": bins}


def _number(name: str, text: str) -> int | float:
    try:
        return int(text) if _is_whole(text.strip()) else float(text)
    except ValueError:
        raise InputError(f"column {name!r}: {text.strip()!r} is no number") from None


def _toml(name: str, text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (tomllib.TOMLDecodeError, DiscreetError):
        raise InputError(f"column {name!r}: {text!r} is no day; write it as 2024-12-31") from None
