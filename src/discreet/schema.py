"""The schema file: public knowledge about the columns, in TOML, for a person to read and edit.

    version = 1

    [columns.smoke]
    levels = ["yes", "no"]
    outside = "no"

Reading never guesses: what is not declared does not exist. Writing keeps the order, explains the keys, and marks what
was learned by looking at private data.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from .dependencies import to_schema
from .domain import FOR_ALL_COLUMNS, Attribute, Domain, Level
from .encoding import as_list
from .errors import FileFormatError, InputError, SchemaError
from .frames import public_rows
from .impossible import Rule
from .io.atomic import PathLike, write_atomically
from .io.limits import DEFAULT_LIMITS
from .io.reading import read_text
from .measurement import Measurement

_HEADER = """\
# What is publicly known about the columns, before anybody looks at the rows. Edit freely; the order is kept.
# Nothing in this file is protected: it must not be learned from the private data. docs/schema.md says more.
#
#   levels  = ["no", "yes"]       the categories in order: strings, whole numbers, or true and false
#   edges   = [0, 18, 65, 120]    for numbers: the bins [0, 18), [18, 65), [65, 120]
#   missing = "unknown"           a level of its own for absent values (empty fields)
#   other   = "other"             a level of its own for values that are not listed
#   outside = "other"             the level that takes values which are not listed; for numbers also "nearest", the
#                                 nearest bin
#   integer = true                for numbers: they are whole; or decimals = 2, or step = 0.25
#   heaps   = [0, 40]             for numbers: values that are levels of their own, and in no bin
#   dates   = {from = 2019-01-01, to = 2024-12-31, by = "month"}    for dates: day, week, month, quarter, year; or
#                                 by = "hour of day", by = "weekday"; format = "%d.%m.%Y" unless they are ISO
#   missing_values = ["NA", "?"]  words that stand for an absent value
#   strip = true, ignore_case = true    spaces around a text, and its case, do not count; these three may also stand
#                                 above all columns, and hold for all of them then
#   peeked  = ["levels"]          what was learned by looking at private data: levels, edges, missing, …
#   found   = ["edges"]           what was found privately, and paid for
#
# After the columns: [[impossible]] with age = "[0, 18)", married = "yes" for combinations that no record can have;
# [[totals]] with columns = ["sex"], counts = [4012, 3988] for counts that are public knowledge.
#
# Every value counts somewhere. An unlisted one counts as `outside`, which is `other` if there is one, else for
# numbers the nearest bin, else `missing`, else THE FIRST LEVEL. An absent one counts as `missing` if there is one,
# else as `outside` (with "nearest": the first bin). Give a level for each unless neither can occur; `discreet
# schema show` says where they go. Spaces and case matter: " M " and "m" are not "M", unless you say strip and
# ignore_case.
#
# A name with anything but letters, digits, "_" and "-" stands in quotes: [columns."marital status"]
"""
_PEEKED_VALUE = "learned by looking at private data; replace it by public knowledge"
_PEEKED_MARK = "delete this line when the above is public knowledge"
_PEEKED_MARK_FOR_ALL = "in all columns, learned by looking at private data; delete this line when it is public"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_CONTROL = re.compile(r'[\x00-\x1f\x7f"\\]')
_CONTROL_IN_COMMENT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_WIDTH = 110


def load_schema(path: PathLike) -> Domain:
    """Read a schema file: ``domain = load_schema("schema.toml")``.

    Errors are :class:`SchemaError`: they name the file and, where there is one, the line.
    """
    shown = os.fspath(path)
    if not os.path.exists(path):
        raise SchemaError(
            f"there is no schema file {shown}. A schema says which columns and levels exist, from public knowledge. "
            f"`discreet schema draft data.csv` writes a first one to be edited"
        )
    try:
        text = read_text(path, DEFAULT_LIMITS)
    except FileFormatError as error:
        raise SchemaError(str(error)) from error
    return parse_schema(text, shown, os.path.dirname(shown))


def parse_schema(text: str, source: str = "schema", folder: str = "") -> Domain:
    """Read the text of a schema file; ``source`` is what messages call it, ``folder`` where the files lie that it
    names."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{source}: this is not valid TOML: {_syntax_hint(error)}") from None
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{source}: this is not valid TOML: {error}") from None
    try:
        if not isinstance(document.pop("totals", []), list):
            raise SchemaError("totals are written as [[totals]], in double brackets")
        _read_tables(document, folder)
        columns = document.get("columns")
        for name, entry in columns.items() if isinstance(columns, dict) else ():
            if isinstance(entry, dict) and "groups" in entry:  # a key of releases alone
                raise SchemaError(f"column {name!r}: unknown key 'groups'; a fit takes levels together by itself")
        return Domain.from_dict(document)
    except SchemaError as error:
        culprit = _culprit(document)
        line = _section_lines(text).get(culprit) if culprit is not None else None
        where = source if line is None else f"{source}, line {line}"
        raise SchemaError(f"{where}: {error}{_dotted_name_hint(document, culprit)}") from None


def _read_tables(document: Mapping[str, Any], folder: str) -> None:
    """The public tables that [[determines]] names, beside the schema file."""
    for entry in document.get("determines", ()) if isinstance(document.get("determines", ()), list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("table"), str):
            continue
        path = Path(folder) / entry.pop("table")
        wanted = [*entry.get("columns", ()), entry.get("column")]
        try:
            rows = public_rows(path)
        except FileFormatError as error:
            raise SchemaError(f"[[determines]]: {error}") from None
        absent = [name for name in wanted if name not in rows]
        if absent:
            raise SchemaError(f"[[determines]]: the table {path} has no column {absent[0]!r}")
        entry["pairs"] = [list(row) for row in zip(*(as_list(rows[name]) for name in wanted), strict=True)]


def load_totals(path: PathLike, domain: Domain) -> tuple[Measurement, ...]:
    """The public totals of a schema file: tables of counts that everybody knows, such as a census by age and sex.

        [[totals]]
        columns = ["sex"]
        counts = [4012, 3988]        # in the order of the levels; nested lists for several columns

    With ``columns = []`` and one number it is the number of records. ``proportions`` instead of ``counts`` are shares
    of a population, which say nothing about the number of records.
    """
    shown = os.fspath(path)
    document = tomllib.loads(read_text(path, DEFAULT_LIMITS))
    found = []
    for number, entry in enumerate(document.get("totals", ()), start=1):
        where = f"{shown}: [[totals]] number {number}"
        if not isinstance(entry, dict) or set(entry) not in ({"columns", "counts"}, {"columns", "proportions"}):
            raise SchemaError(f"{where} has the keys columns and counts, or columns and proportions, and no others")
        columns = entry["columns"]
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise SchemaError(f"{where}: columns must be a list of names")
        try:
            shares = entry.get("proportions")
            found.append(Measurement.public(domain, columns, entry.get("counts"), proportions=shares))
        except (InputError, ValueError, TypeError) as error:
            raise SchemaError(f"{where}: {error}") from None
    return tuple(found)


def save_schema(domain: Domain, path: PathLike, comments: Mapping[str, str] | None = None) -> None:
    """Write a schema file, completely or not at all: ``save_schema(domain, "schema.toml")``.

    ``comments`` are put above the columns they name.
    """
    write_atomically(path, [schema_text(domain, comments).encode("utf-8")])


def schema_text(domain: Domain, comments: Mapping[str, str] | None = None) -> str:
    """The schema file as text; :func:`parse_schema` gives back an equal domain."""
    parts = [_HEADER, "version = 1\n"]
    for_all = _for_all(domain)
    for key, value in for_all.items():
        mark = f"  # {_PEEKED_MARK_FOR_ALL}" if key == "peeked" else ""
        parts[-1] += f"{key} = {_value(value, len(key) + 3)}{mark}\n"
    for attribute in domain.attributes:
        try:
            parts.append(_section(attribute, (comments or {}).get(attribute.name, ""), for_all))
            parts[-1].encode("utf-8")
        except UnicodeEncodeError:
            raise SchemaError(f"column {attribute.name!r}: a name or level is not valid Unicode") from None
    parts += [_rule(rule) for rule in domain.impossible]
    for key, entries in to_schema(domain.dependencies).items():
        for entry in entries:
            parts.append(
                "\n".join([f"[[{key}]]", *(f"{k} = {_value(v, len(k) + 3)}" for k, v in entry.items())]) + "\n"
            )
    return "\n".join(parts)


def shown_labels(attribute: Attribute) -> tuple[str, ...]:
    """The labels as they can stand in a list: a level in quotes when it is empty, or has commas or spaces around it."""
    bins = attribute.bins
    return (*attribute.labels[:bins], *map(_in_a_list, attribute.labels[bins:]))


def _in_a_list(label: str) -> str:
    return _string(label) if not label or label != label.strip() or "," in label or '"' in label else label


def destinations(attribute: Attribute) -> tuple[str, str]:
    """Where absent values count, and where unlisted ones do (for numbers: those outside the edges)."""
    labels, outside = shown_labels(attribute), attribute.outside_code
    nearest = "the nearest period" if attribute.dates is not None else "the nearest bin"
    return labels[attribute.missing_code], nearest if outside is None else labels[outside]


def free_label(label: str, taken: Container[str]) -> str:
    """A label like this one that is not taken: in brackets, if need be."""
    while label in taken:
        label = f"({label})"
    return label


# -- writing -----------------------------------------------------------------------------------------------------------


def _for_all(domain: Domain) -> dict[str, Any]:
    """What every column says alike of how its values are read: written once, above them."""
    forms = [attribute.to_dict() for attribute in domain.attributes]
    shared = {key: forms[0].get(key) for key in FOR_ALL_COLUMNS} if forms else {}
    out = {key: value for key, value in shared.items() if value and all(form.get(key) == value for form in forms)}
    marks = sorted({mark for a in domain.attributes for mark in a.peeked})
    if len(domain) > 1 and all(
        a.peeked == set(marks) & set(form) for a, form in zip(domain.attributes, forms, strict=True)
    ):
        out |= {"peeked": marks} if marks else {}
    return out


def _section(attribute: Attribute, comment: str, for_all: Container[str] = ()) -> str:
    lines = [f"# {_CONTROL_IN_COMMENT.sub(' ', line)}" for line in comment.splitlines()]
    lines.append(f"[columns.{_key(attribute.name)}]")
    for key, value in attribute.to_dict().items():
        if key in for_all:
            continue
        line = f"{key} = {_value(value, len(key) + 3)}"
        if key in attribute.peeked and "peeked" not in for_all:
            line += f"  # {_PEEKED_VALUE}"
        elif key == "peeked":
            line += f"  # {_PEEKED_MARK}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _rule(rule: Rule) -> str:
    return (
        "\n".join(["[[impossible]]", *(f"{_key(n)} = {_value(list(labels), len(n) + 3)}" for n, labels in rule)]) + "\n"
    )


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _value(value: Level | float | list[Any] | dict[str, str], indent: int) -> str:
    if isinstance(value, dict):  # of dates: days need no quotes
        pairs = (f"{key} = {text if key in ('from', 'to') else _string(text)}" for key, text in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        items = [_value(item, 0) for item in value]
        one_line = f"[{', '.join(items)}]"
        return one_line if len(one_line) + indent <= _WIDTH else "[\n" + "".join(_filled(items)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else repr(value)


def _filled(items: Iterable[str]) -> Iterable[str]:
    """Items of a long list, several to a line."""
    line = "   "
    for item in items:
        if len(line) + len(item) > _WIDTH and line.strip():
            yield line + "\n"
            line = "   "
        line += f" {item},"
    yield line + "\n"


def _string(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        character = match.group()
        return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"

    return f'"{_CONTROL.sub(escape, text)}"'


# -- explaining --------------------------------------------------------------------------------------------------------


def _syntax_hint(error: tomllib.TOMLDecodeError) -> str:
    message = str(error)
    if "Invalid value" in message:
        message += '; text stands in quotes, as in levels = ["yes", "no"]'
    elif "declare" in message or "overwrite" in message:
        message += "; is a column declared twice?"
    return message


def _culprit(document: Mapping[str, Any]) -> str | None:
    """The first column that cannot be read."""
    columns = document.get("columns")
    for name, entry in columns.items() if isinstance(columns, dict) else ():
        try:
            Attribute.from_dict(name, entry if isinstance(entry, dict) else {"": None})
        except SchemaError:
            return str(name)
    return None


def _section_lines(text: str) -> dict[str, int]:
    """The line of each ``[columns.NAME]``, found by reading those lines alone."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("["):
            continue
        try:
            columns = tomllib.loads(line).get("columns")
        except (ValueError, RecursionError):
            continue
        for name in columns if isinstance(columns, dict) else ():
            found.setdefault(name, number)
    return found


def _dotted_name_hint(document: Mapping[str, Any], culprit: str | None) -> str:
    """[columns.a.b] is a column "a" with a key "b" to TOML; to a person it is a column with a dot in its name."""
    entry = document["columns"][culprit] if culprit is not None else None
    for key, value in entry.items() if isinstance(entry, dict) else ():
        if isinstance(value, dict) and key != "dates":  # the one key that holds a table
            return f"; a name with a dot stands in quotes: [columns.{_string(f'{culprit}.{key}')}]"
    return ""
