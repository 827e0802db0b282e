"""A check of rows against a schema: which rules they break, and what will become of those that do.

A tool for the curator, outside the guarantee. It names columns and rules, never a value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..domain import Attribute, Domain, level_text
from ..schema import destinations, free_label
from .arrow import arrow_list, encode_arrow
from .delimited import TO_UTF8, DelimitedFile
from .lines import LONGEST, Fields, Form, fields_of, is_utf8
from .sources import SourceFile, failures_of, tool

WORDS_FOR_ABSENT = ("na", "n/a", "nan", "null", "<null>", "(null)", "#n/a", "none", "?", "-", ".", "missing", "unknown")
"""What files write for an absent value, in lower case."""
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]*,[0-9]+")

MANY = 0.05
"""Which part of the rows may go to a level for others before that is worth a word."""

_SHORT = "has fewer fields than the first line; it is read as far as it goes, and what is missing counts as absent"
_LONG = "has more fields than the first line; it is read as far as it goes, and the surplus is dropped"
_NUL = "holds NUL characters; a value with them is none of the levels"
_OPEN = "has a quote that is not closed; the end of the line closes it"
_STRAY = "has text after a closing quote; it is read as part of the field"
_SPANS = (
    "spans lines that look like rows, as a quote before them is closed only behind them; if they are rows, give "
    "--row-is-line (row_is_line=True)"
)
_LINE_END = "holds a line end of another kind than the first line has; it is read as part of the field"
_HUGE = f"is longer than {LONGEST >> 20} MiB; it will not be counted"
_NOT_UNICODE = f"has text that is not UTF-8; rows with it will not be counted. Is it another encoding? Then {TO_UTF8}"
_NO_UNIT = "is empty in some rows; they will not be counted, as nobody knows whose they are"


@dataclass(frozen=True)
class Problem:
    """A rule that rows break. ``rows`` is an exact count of private rows: for the curator only.

    ``near`` of them hold a value that would be listed but for spaces or upper and lower case; ``many``: they are more
    than one in twenty rows.
    """

    column: str | None
    rule: str
    rows: int
    near: int = 0
    many: bool = False


@dataclass(frozen=True)
class Examination:
    """What a check found: rules that are broken, and what the schema foresees but the curator may want to know."""

    problems: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)


def check_rows(file: SourceFile, domain: Domain, *, unit: str | None = None) -> list[Problem]:
    """Which rules of the schema the rows break. Outside the guarantee; no value is ever part of the answer."""
    return examine(file, domain, unit=unit).problems


def examine(file: SourceFile, domain: Domain, *, unit: str | None = None) -> Examination:
    """Which rules the rows break, and which values go to a level for others because they are not listed."""
    if unit is not None:
        file.require([unit], "unit column", credible=True)
    read = [name for name in file.names if name in domain or name == unit]
    found = Examination(_form_problems(file, read) if isinstance(file, DelimitedFile) else [])
    with tool(file) as connection:
        if unit is not None:
            nobody = file.relation(connection, [unit]).filter(f"{file.column(unit)} IS NULL")
            ((rows,),) = nobody.aggregate("count(*)").fetchall()
            if rows:
                found.problems.append(Problem(unit, _NO_UNIT, rows))
        for attribute in domain.attributes:
            if attribute.name in file.names:
                _check_column(connection, file, attribute, found)
            else:
                where = "the first line" if isinstance(file, DelimitedFile) else "the footer"
                rule = f"is in the schema, but not in {where} of the file"
                found.problems.append(Problem(attribute.name, rule, 0))
    return found


# -- the form of the file ----------------------------------------------------------------------------------------------


def _form_problems(file: DelimitedFile, read: Iterable[str]) -> list[Problem]:
    """Rules of the format that rows break. A field that is not UTF-8 matters in columns that are read."""
    rules: Counter[str] = Counter()
    not_unicode: Counter[str] = Counter()
    positions = [(file.names.index(name), name) for name in read]
    for piece in file.pieces():
        rules[_HUGE] += piece.too_long
        if b"\x00" in piece.plain:
            rules[_NUL] += sum(b"\x00" in line for line in piece.plain.split(file.form.line_end))
        for record in piece.odd:
            row = fields_of(record, file.form)
            rules.update(_broken(record, row, file.form))
            not_unicode.update(name for i, name in positions if i < len(row.values) and not is_utf8(row.values[i]))
    problems = [Problem(None, f"a row {rule}", rows) for rule, rows in rules.items() if rows]
    return problems + [Problem(name, _NOT_UNICODE, rows) for name, rows in not_unicode.items()]


def _broken(record: bytes, row: Fields, form: Form) -> Iterator[str]:
    """The rules that a record breaks in its form."""
    if len(row.values) != form.columns:
        yield _SHORT if len(row.values) < form.columns else _LONG
    if b"\x00" in record:
        yield _NUL
    if row.left_open or row.stray:
        yield _OPEN if row.left_open else _STRAY
    if b'"' not in record and (b"\r" in record or b"\n" in record):
        yield _LINE_END
    inner_lines = record.split(form.line_end)[1:-1]
    if form.columns > 1 and any(len(fields_of(line, form).values) == form.columns for line in inner_lines):
        yield _SPANS


# -- the values --------------------------------------------------------------------------------------------------------


def _check_column(connection: Any, file: SourceFile, attribute: Attribute, found: Examination) -> None:
    # With an explicit level for each, the encoding itself says which values are absent or outside.
    missing = attribute.missing or free_label("?", attribute.labels)
    other = attribute.other or "\x00outside"
    open_ended = replace(attribute, missing=missing, other=other, outside=other)
    listed = {label.strip().casefold() for label in attribute.labels}
    broken: dict[tuple[str, bool], list[int]] = {}
    total = 0
    column = file.column(attribute.name)
    # By way of Arrow, as a fit reads them: whatever a value is (a time in a zone, the year 29349), it has a code.
    with failures_of(file):
        counted = file.relation(connection, [attribute.name]).aggregate(f"{column}, count(*)", column)
        for batch in counted.to_arrow_reader(50_000):
            values, codes = arrow_list(batch.column(0)), encode_arrow(batch.column(0), open_ended)
            for value, rows, code in zip(values, batch.column(1).to_pylist(), codes.tolist(), strict=True):
                total += rows
                label = open_ended.labels[code]
                rule, foreseen = _rule(value, label, attribute, missing, other)
                if rule:
                    counts = broken.setdefault((rule, foreseen), [0, 0])
                    counts[0] += rows
                    if label == other and not attribute.is_numeric and _word(value).casefold() in listed:
                        counts[1] += rows
    for (rule, foreseen), (rows, near) in broken.items():
        (found.remarks if foreseen else found.problems).append(
            Problem(attribute.name, rule, rows, near, rows > MANY * total)
        )


def _stands_for_absent(value: Any, attribute: Attribute) -> bool:
    """Whether a value is one of the column's words or numbers for missing values."""
    if not attribute.missing_values:
        return False
    if attribute.is_numeric and (number := _number(value)) is not None:
        return number in attribute.missing_numbers
    words = map(attribute.spelling, attribute.missing_values)
    return isinstance(value, str | int) and attribute.spelling(level_text(value)) in words


def _rule(value: Any, label: str, attribute: Attribute, missing: str, other: str) -> tuple[str, bool]:
    """The rule that a value breaks, given the label it was encoded to, and whether the schema foresees it."""
    absent_to, outside_to = destinations(attribute)
    if value is None or _stands_for_absent(value, attribute):
        rule = f"has absent values, and the schema has no missing level for them: absent values → {absent_to}"
        return ("", True) if attribute.missing else (rule, False)
    number = _number(value) if attribute.is_numeric else None
    if attribute.is_numeric and number is None and label in (missing, other):
        if value in (attribute.missing, attribute.other):
            return "", True
        if isinstance(value, str) and attribute.spelling(value) in attribute.spelled:
            return "", True
        if attribute.missing and _word(value).lower() in WORDS_FOR_ABSENT:
            return "", True
        text_to = absent_to if attribute.outside_code is None else outside_to
        comma = _DECIMAL_COMMA.fullmatch(_word(value))
        why = ", probably for their decimal comma (only a point is read; docs/schema.md says how to convert)"
        return (
            f"has values that are not numbers{why if comma else ''}: such values → {text_to}",
            attribute.other is not None,
        )
    if label == other and value != attribute.other:
        if attribute.sought is not None and attribute.sought.what == "levels":
            return "", True  # which levels there are will be found
        what, who = "values that are not listed", "unlisted values"
        if attribute.is_numeric:
            what, who = "numbers outside its edges", "numbers outside"
        if attribute.dates is not None:
            what, who = "values that are no dates between its ends", "such values"
        return f"has {what}: {who} → {outside_to}", attribute.other is not None
    if attribute.integer and number is not None and math.isfinite(number) and not number.is_integer():
        return "has fractions, and the schema says whole numbers", False
    return "", True


def _word(value: Any) -> str:
    """A text without the spaces around it; anything else spells no word."""
    return value.strip() if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    try:
        x = float(value)
    except (ValueError, TypeError, OverflowError):  # text, dates, nested values, more digits than a float has
        return None
    return None if math.isnan(x) else x
