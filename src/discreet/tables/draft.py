"""A first schema, drafted by looking at the rows.

A tool for the curator, outside the guarantee. A draft says in itself what was learned by looking (``peeked``), and so
does everything that is released under it. Or it leaves what rows would tell to be found privately, and looks at no more
than what kind of values a column has.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

from ..attribute import PEEKABLE
from ..dates import Dates
from ..domain import Attribute, Domain, level_text
from ..errors import InputError, SchemaError
from ..schema import destinations, free_label, schema_text
from .check import WORDS_FOR_ABSENT
from .delimited import DelimitedFile
from .profile import (
    NULLS,
    FrameRows,
    Profile,
    common_values,
    date_format,
    first_and_last,
    frequent_numbers,
    has_spaces_around,
    look_at,
    numbers_of,
    profile,
    words_for_absent,
)
from .sources import ParquetFile, tool

DEFAULT_LEVELS = 30
BINS = 10
HEAPED = 0.15  # a number that so many of the rows have is a level of its own
CROWDED = 0.4  # a bin with so many of the rows calls for others
_ENOUGH = 100  # rows from which on shares of rows mean something
_FEW_ROWS = 5  # values that occur fewer times than this on average look like names, not like categories
_LONGEST_LABEL = 80
_MOST_DECIMALS = 4
_IDENTIFIER = re.compile(r"(.*[_\s.-])?(id|uuid|guid|ssn|email|key)|.*[a-z]Id", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
LEAST_ROWS = 10  # that a value must have to be listed: what fewer have may tell of somebody
USUAL_WORDS = (*dict.fromkeys(spelled for w in NULLS for spelled in (w.upper(), w, w.capitalize())), "NaN")
"""The words for an absent value as files spell them: for drafts that are not to tell which of them occur."""
_PRIVATE = """\
# Two things were seen in the rows: what kind of values nine tenths of a column are (numbers, whole or not, dates and
# how they are written, or categories), and whether every row has a value of its own there. That is not protected: where
# a column stands on the edge, one row can decide. Go through the kinds, so that they are what you know of the columns,
# and say what else you know: a range = [0, 120] is better than a private one, and levels that are listed cost nothing.
"""


MOST = 0.9
"""Part of the values that says what kind a column is, where nothing else may be learned of it."""
_ANY_DAY = (date(1900, 1, 1), date(2099, 12, 31))
_OTHER = "(other)"
"""For what is not found, where nobody has looked whether rows say "other" themselves."""
_SAY_WHICH = (
    "dates. NOTE: these years are no more than a guess that suits any register: say from when to when, "
    'and by = "month" or so'
)
_SAY_DECIMALS = (
    "numbers. How many decimals they are written with was not looked up: say so if you know it (decimals = 2), "
    "or records drawn from the model have as many as it takes"
)


@dataclass(frozen=True)
class Draft:
    """A drafted domain, with a comment a column, and the columns that were left out with the reason.

    ``private``: nothing was learned by looking but the kinds of the columns.
    """

    domain: Domain
    comments: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    private: bool = False

    def text(self) -> str:
        """The schema file."""
        lines = [_PRIVATE] if self.private else []
        lines += [schema_text(self.domain, self.comments)]
        if self.left_out:
            lines += [
                "# Left out of the draft. Declare a column above if it should be used; one that says whose row it is"
            ]
            lines += ["# needs no section: name it with `discreet measure … --unit-column NAME`."]
            lines += [f"#   {_CONTROL.sub(' ', name)}: {reason}" for name, reason in self.left_out.items()]
            lines += [""]
        return "\n".join(lines)


def draft_schema(rows: Any, *, most_levels: int = DEFAULT_LEVELS, private: bool = False) -> Draft:
    """Look at the rows of a file or a frame and propose a domain; everything learned is marked as peeked.

    ``private``: all that is seen is of what kind nine tenths of the values of a column are, how dates are written, and
    whether it is one of identifiers. Nothing else is written down: bins, ranges and levels are left to be found
    privately. Kinds are not protected, and the file says so.
    """
    if most_levels < 2:
        raise InputError(f"a column needs at least 2 levels, got {most_levels}")
    file = rows if isinstance(rows, DelimitedFile | ParquetFile) else FrameRows.of(rows)
    attributes: list[Attribute] = []
    draft = Draft(Domain(()), private=private)
    with tool(file) as connection:
        odd = look_at(connection, file)
        for name in file.names:
            reason = odd.get(name, "")
            if not reason:
                seen = profile(connection, file.column(name))
                column = _Column(connection, file.column(name), name, seen, MOST if private else 1.0)
                numeric = seen.is_mostly_numeric if private else seen.is_numeric
                reason = "" if column.written is not None else _why_left_out(name, seen, numeric=numeric)
            if not reason:
                attribute, comment = column.kind() if private else column.proposed(most_levels)
                listed = attribute.sought or attribute.levels or attribute.is_numeric or attribute.dates
                reason = "" if listed else f"no value that at least {_least(seen)} rows have"
            if not reason:
                draft.comments[name] = comment
                attributes.append(attribute)
            else:
                draft.left_out[name] = reason
    if not attributes:
        raise SchemaError(
            f"no column of {file.path} can be drafted: they are empty or look like identifiers; write the schema by "
            "hand, from what is publicly known"
        )
    return replace(draft, domain=Domain(tuple(attributes)))


def guesses(schema: Mapping[str, Any]) -> list[str]:
    """What in a schema file stands there as a draft that looks at kinds alone has guessed it."""
    columns = {name: said for name, said in schema.get("columns", {}).items() if isinstance(said, dict)}
    words, out = list(USUAL_WORDS), []
    for name, said in columns.items():
        dates = said.get("dates")
        if isinstance(dates, dict) and (dates.get("from"), dates.get("to")) == _ANY_DAY:
            out.append(f"{name}: the years {_ANY_DAY[0].year} to {_ANY_DAY[1].year}, counted by {dates.get('by')}")
    guessed = [name for name, said in columns.items() if said.get("missing_values") == words]
    if guessed or schema.get("missing_values") == words:
        where = ", ".join(guessed) or "all columns"
        out.append(f"{where}: words such as {', '.join(words[:4])} are taken for absent values")
    return out


def _why_left_out(name: str, p: Profile, *, numeric: bool) -> str:
    if p.present == p.nulls:
        return "no row has a value"
    named = bool(_IDENTIFIER.fullmatch(name))
    if p.distinct == p.present and p.present >= 20:
        whole_in_a_row = p.whole == p.present and p.high - p.low < 10 * p.present
        if not numeric or named or whole_in_a_row:
            return "every row has its own value: an identifier? It may be the unit column"
    rare = p.distinct > 50 and p.present < _FEW_ROWS * p.distinct
    if rare and named:
        return "many values with few rows each: an identifier? It may be the unit column"
    if rare and not numeric:
        return (
            "many values with few rows each: names, identifiers, free text, or numbers whose decimal comma must become "
            "a point? It may be the unit column"
        )
    if p.longest > _LONGEST_LABEL and not numeric:
        return "long texts: code them into categories first"
    return ""


def _least(p: Profile) -> int:
    """Rows that a value must have to be listed: a small file has few of any."""
    return min(LEAST_ROWS, 1 + p.rows // LEAST_ROWS)


@dataclass(frozen=True)
class _Column:
    """One column that is looked at."""

    connection: Any
    sql: str
    name: str
    p: Profile
    part: float = 1.0  # of its values that must be dates, if it is to be a column of dates

    @cached_property
    def written(self) -> str | None:
        """How its dates are written, "" for ISO; None if it has others than dates."""
        p = self.p
        if p.is_mostly_numeric or p.present == p.absent_words:
            return None
        wanted = self.part * (p.present - p.absent_words)
        if p.iso and p.iso >= wanted:
            return ""
        return date_format(self.connection, self.sql, wanted) if p.distinct > 2 else None

    def proposed(self, most_levels: int) -> tuple[Attribute, str]:
        """An attribute with all that was seen, and a comment."""
        p = self.p
        if p.is_numeric and (p.folded > most_levels or not p.is_whole):
            return self._numbers()
        if not p.is_numeric and (dates := self._dates()) is not None:
            return dates
        return self._levels(most_levels)

    def kind(self) -> tuple[Attribute, str]:
        """An attribute that leaves all else to be found."""
        p = self.p
        common = {"missing": "missing", "missing_values": list(USUAL_WORDS), "strip": True}
        if p.is_mostly_numeric:
            whole = p.whole > MOST * p.numbers
            entry = {"bins": "private", "range": "private", **({"integer": True} if whole else {})}
            return Attribute.from_dict(self.name, {**entry, **common}), "" if whole else _SAY_DECIMALS
        if self.written is not None:
            dates = Dates("year", *_ANY_DAY, self.written)
            return Attribute.of_dates(self.name, dates, missing="missing", missing_values=USUAL_WORDS), _SAY_WHICH
        return Attribute.from_dict(self.name, {"levels": "discover", "other": _OTHER, **common}), ""

    def _absent(self, words: Sequence[str]) -> dict[str, Any]:
        """Words for absent values as they are spelled, where there are some."""
        found = words_for_absent(self.connection, self.sql, words)
        return {"missing_values": tuple(found)} if found else {}

    def _numbers(self) -> tuple[Attribute, str]:
        p = self.p
        missing = "missing" if p.numbers < p.rows else None
        edges = round_edges(p.low, p.high, p.middle, whole=p.is_whole)
        comment, heaps = "numbers; the bins were chosen to span what was seen", []
        if p.numbers >= _ENOUGH:
            heaps = [h for h in frequent_numbers(self.connection, self.sql, HEAPED * p.numbers) if math.isfinite(h)]
            crowd, deciles = numbers_of(self.connection, self.sql, edges, heaps)
            if crowd > CROWDED:
                edges = quantile_edges(p.low, p.high, deciles, whole=p.is_whole)
                comment = "numbers; the bins were chosen so that about as many rows are in each"
        decimals = p.decimals if not p.is_whole and 0 < p.decimals <= _MOST_DECIMALS else None
        more = self._absent(WORDS_FOR_ABSENT) if p.absent_words else {}
        attribute = Attribute.numeric(
            self.name, edges, heaps=heaps, missing=missing, integer=p.is_whole, decimals=decimals, **more
        )
        if heaps:
            comment += "; numbers that many rows have exactly are levels of their own"
        if not missing:
            comment = f"{comment}. {_no_level_for(attribute, 'absent values')}"
        return _marked(attribute), comment

    def _dates(self) -> tuple[Attribute, str] | None:
        p, written = self.p, self.written
        if written is None:
            return None
        first, last = first_and_last(self.connection, self.sql, written)
        try:
            dates = _periods(first, last, written)
        except (SchemaError, TypeError):  # days before the year 1, or beyond 9999
            return None
        missing = "missing" if p.present - p.absent_words < p.rows else None
        more = self._absent(WORDS_FOR_ABSENT) if p.absent_words else {}
        attribute = Attribute.of_dates(self.name, dates, missing=missing, **more)
        note = "" if missing else f". {_no_level_for(attribute, 'absent values')}"
        return _marked(attribute), f"dates; the periods span what was seen{note}"

    def _levels(self, most_levels: int) -> tuple[Attribute, str]:
        p = self.p
        words = WORDS_FOR_ABSENT if p.is_numeric else NULLS
        answers = p.numbers if p.is_numeric else p.present - p.nulls
        options = self._absent(words) if answers < p.present else {}
        distinct = p.distinct - len(options.get("missing_values", ()))
        only_words = answers in (p.boolean, p.whole)
        strip = not only_words and p.stripped < distinct
        fold = not only_words and p.folded < p.stripped
        # Whoever finds "male " beside "Male" means one level, whatever else the two differ in.
        strip = strip or (fold and has_spaces_around(self.connection, self.sql))
        options |= ({"strip": True} if strip else {}) | ({"ignore_case": True} if fold else {})
        least = _least(p)
        shown = common_values(self.connection, self.sql, most_levels, least, words=words, strip=strip, fold=fold)
        said = "values that differ in spaces or case alone are one" if strip or fold else ""
        absent = answers < p.rows
        levels: list[Any]
        if p.boolean == answers:
            levels = [False, True]
        else:
            levels = sorted(int(v) for v in shown) if p.whole == answers else sorted(shown)
            if (p.folded if fold else p.stripped if strip else distinct) > len(shown):
                comment = "the most frequent values" + (f", of at least {least} rows each" if least > 1 else "")
                comment += "; all others go to the level {other!r}" + (f"; {said}" if said else "")
                return self._with_other(levels, absent=absent, comment=comment, options=options)
        if len(levels) == 2 and not absent:
            # Two answers are one bit, which many methods need; a third level would cost all of them for nothing seen.
            attribute = Attribute.categorical(self.name, levels, **options)
            note = _no_level_for(attribute, "absent and unlisted values")
            return _marked(attribute), f"{said}. {note}" if said else note
        return self._with_other(levels, absent=absent, comment=said, options=options)

    def _with_other(
        self, levels: Sequence[Any], *, absent: bool, comment: str, options: dict[str, Any]
    ) -> tuple[Attribute, str]:
        """Categories with a level for what is not listed, and one for absent values if there were any."""
        taken = {level_text(level) for level in levels}
        if options.get("ignore_case"):
            taken |= {text.lower() for text in taken}
        missing = "missing" if absent else None  # which is no level, as it is a word for an absent value
        other = free_label("other", taken)
        attribute = Attribute.categorical(self.name, levels, missing=missing, other=other, **options)
        return _marked(attribute), comment.format(other=other)


def _marked(attribute: Attribute) -> Attribute:
    """All that was learned by looking is marked."""
    return replace(attribute, peeked=frozenset(attribute.to_dict()) & frozenset(PEEKABLE))


def _periods(first: date, last: date, written: str) -> Dates:
    """Whole years around what was seen, in so many periods that a table of them is not too large."""
    days = (last - first).days
    if days <= BINS * 6:
        return Dates("day", first, last, written)
    by = "month" if days <= 3 * 366 else "quarter" if days <= 12 * 366 else "year"
    return Dates(by, date(first.year, 1, 1), date(last.year, 12, 31), written)


def quantile_edges(low: float, high: float, deciles: Sequence[float], *, whole: bool) -> list[float]:
    """Bins with about as many rows in each, between round numbers where there is room for them."""
    ends = round_edges(low, high, (low + high) / 2, whole=whole)
    inner = sorted({float(f"{x:.2g}") for x in deciles if ends[0] < float(f"{x:.2g}") < ends[-1]})
    return [ends[0], *(x for x in inner if not whole or x.is_integer()), ends[-1]]


def _no_level_for(attribute: Attribute, what: str) -> str:
    absent_to, _ = destinations(attribute)
    return f"NOTE: {what} have no level of their own here, and would count as {absent_to}"


def round_edges(low: float, high: float, middle: float, *, whole: bool) -> list[float]:
    """About ten bins between round numbers that span [low, high]; wider and wider ones for a long upper tail."""
    if low >= 0 and middle > 0 and high > 50 * middle:
        return _growing_edges(middle, high, whole=whole)
    if math.isfinite(high - low):
        step = _round_up((high - low) / BINS) if high > low else _round_up(max(abs(low), 1.0) / BINS)
        step = max(1.0, float(math.ceil(step))) if whole else step
        first = math.floor(low / step)
        last = max(math.ceil(high / step), first + 1)
        edges = sorted({float(f"{i * step:.12g}") for i in range(first, last + 1)})
        # Where numbers are large and close together, the twelve digits may not tell them apart.
        if len(edges) > 1 and edges[0] <= low and edges[-1] >= high and math.isfinite(edges[-1] - edges[0]):
            return edges
    if high > low:
        return [low, high]
    above = high + max(1.0, math.ulp(high)) if whole else math.nextafter(high, math.inf)
    return [low, above] if math.isfinite(above) else [math.nextafter(low, 0.0), low]


def _growing_edges(middle: float, high: float, *, whole: bool) -> list[float]:
    """0, then the round numbers 1, 2, 5, 10, 20, 50 … from a tenth of the middle to beyond the highest."""
    exponent = max(math.floor(math.log10(middle)) - 1, math.floor(math.log10(high)) - 6)
    edges = [0.0]
    while edges[-1] < high:
        for multiple in (1, 2, 5):
            edge = min(float(f"{multiple}e{exponent}"), sys.float_info.max)
            if edges[-1] < high and (not whole or edge >= 1):
                edges.append(edge)
        exponent += 1
    return edges


def _round_up(x: float) -> float:
    """The least of 1, 2, 2.5 and 5 times a power of ten that is at least x."""
    power = math.floor(math.log10(x)) if x > 0 else 0
    for multiple in ("1", "2", "2.5", "5", "10"):
        step = float(f"{multiple}e{power}")
        if step >= x:
            return step
    return float(f"1e{power + 1}")
