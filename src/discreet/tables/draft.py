"""A first schema, drafted by looking at the rows.

A tool for the curator, outside the guarantee. A draft says in itself what was learned by looking (``peeked``), and so
does everything that is released under it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..domain import Attribute, Domain, level_text
from ..errors import InputError, SchemaError
from ..schema import destinations, free_label, schema_text
from .check import WORDS_FOR_ABSENT
from .delimited import DelimitedFile
from .sources import SourceFile, tool

DEFAULT_LEVELS = 30
BINS = 10
_FEW_ROWS = 5  # values that occur fewer times than this on average look like names, not like categories
_LONGEST_LABEL = 80
_IDENTIFIER = re.compile(r"(.*[_\s.-])?(id|uuid|guid|ssn|email|key)|.*[a-z]Id", re.IGNORECASE)
_WHOLE_KINDS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Draft:
    """A drafted domain, with a comment a column, and the columns that were left out with the reason."""

    domain: Domain
    comments: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The schema file."""
        lines = [schema_text(self.domain, self.comments)]
        if self.left_out:
            lines += [
                "# Left out of the draft. Declare a column above if it should be used; one that says whose row it is"
            ]
            lines += ["# needs no section: name it with `discreet measure … --unit-column NAME`."]
            lines += [f"#   {_CONTROL.sub(' ', name)}: {reason}" for name, reason in self.left_out.items()]
            lines += [""]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Profile:
    """What one column holds, as far as a draft needs to know."""

    rows: int
    present: int
    distinct: int
    numbers: int
    whole: int
    padded: int  # numbers with leading zeros are codes, not numbers
    absent_words: int
    boolean: int
    low: float
    high: float
    middle: float
    longest: int

    @property
    def is_numeric(self) -> bool:
        """All values are numbers, but for words that stand for an absent one."""
        return 0 < self.numbers == self.present - self.absent_words and not self.padded

    @property
    def is_whole(self) -> bool:
        return self.is_numeric and self.whole == self.numbers


def draft_schema(file: SourceFile, *, most_levels: int = DEFAULT_LEVELS) -> Draft:
    """Look at the rows of a file and propose a domain; everything learned is marked as peeked."""
    if most_levels < 2:
        raise InputError(f"a column needs at least 2 levels, got {most_levels}")
    attributes: list[Attribute] = []
    draft = Draft(Domain(()))
    with tool(file) as connection:
        odd = _look_at(connection, file)
        for name in file.names:
            if name in odd:
                draft.left_out[name] = odd[name]
                continue
            profile = _profile(connection, file.column(name))
            reason = _why_left_out(name, profile)
            if reason:
                draft.left_out[name] = reason
                continue
            common = _common_values(connection, file.column(name), most_levels)
            attribute, comment = _propose(name, profile, common, most_levels)
            attributes.append(attribute)
            draft.comments[name] = comment
    if not attributes:
        raise SchemaError(
            f"no column of {file.path} can be drafted: they are empty or look like identifiers; write the schema by "
            "hand, from what is publicly known"
        )
    return replace(draft, domain=Domain(tuple(attributes)))


def _look_at(connection: Any, file: SourceFile) -> dict[str, str]:
    """Make ``t``, the rows with every value as text. Returns the columns whose values cannot be levels, and why.

    Delimited text is parsed once. Columns of Parquet are read one by one as they are needed, and have types: what has
    none of the types that levels and bins can have (dates, nested values, bytes) has to be written as one of them.
    """
    relation = file.relation(connection, file.names)
    if isinstance(file, DelimitedFile):
        relation.create("t")
        return {}
    columns = list(map(file.column, file.names))
    kinds = list(map(str, relation.types))
    texts = list(map(_as_text, columns, kinds))
    chosen = [f"{text} AS {column}" for text, column in zip(texts, columns, strict=True) if text]
    if chosen:
        relation.project(", ".join(chosen)).create_view("t")
    why = "its values are {}: write them as text, numbers or booleans first"
    named = zip(file.names, kinds, texts, strict=True)
    return {name: why.format(kind.split("(")[0].lower()) for name, kind, text in named if not text}


def _as_text(column: str, kind: str) -> str:
    """A column in SQL as the text that its values would have in a CSV file, or nothing."""
    if kind == "VARCHAR":
        return column
    if kind == "BOOLEAN" or kind in _WHOLE_KINDS or kind.startswith("ENUM") or kind == '"NULL"':
        return f"{column}::VARCHAR"
    if kind in ("FLOAT", "DOUBLE"):  # frames turn whole numbers with gaps into floats
        whole = f"{column} = trunc({column}) AND abs({column}) < 9e15"
        return f"CASE WHEN {whole} THEN TRY_CAST({column} AS BIGINT)::VARCHAR ELSE {column}::VARCHAR END"
    if kind.startswith("DECIMAL") or kind in ("HUGEINT", "UHUGEINT"):  # these reach bins, and no level
        return f"{column}::DOUBLE::VARCHAR"
    return ""


def _profile(connection: Any, column: str) -> _Profile:
    words = ", ".join(f"'{word}'" for word in WORDS_FOR_ABSENT)
    # An empty field is absent; so is a word for it, when all other values are numbers.
    row = connection.execute(
        f"""
        WITH v AS (SELECT {column} AS text, lower(trim({column})) AS word FROM t),
        n AS (SELECT text, word, CASE WHEN word IN ({words}) THEN NULL ELSE TRY_CAST(text AS DOUBLE) END AS x FROM v)
        SELECT count(*), count(text), count(DISTINCT text), count(x),
          count(*) FILTER (WHERE regexp_full_match(text, '-?(0|[1-9][0-9]{{0,17}})')),
          count(*) FILTER (WHERE regexp_full_match(text, '-?0[0-9]+')),
          count(*) FILTER (WHERE word IN ({words})), count(*) FILTER (WHERE word IN ('true', 'false')),
          min(x) FILTER (WHERE isfinite(x)), max(x) FILTER (WHERE isfinite(x)),
          median(x) FILTER (WHERE isfinite(x)), max(length(text))
        FROM n
        """
    ).fetchone()
    values = [0 if v is None else v for v in row]
    return _Profile(*values)


def _common_values(connection: Any, column: str, most: int) -> list[str]:
    """The most frequent values."""
    rows = connection.execute(
        f"SELECT {column}, count(*) AS n FROM t WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY n DESC, 1 LIMIT ?",
        [most],
    ).fetchall()
    return [text for text, _ in rows]


def _why_left_out(name: str, p: _Profile) -> str:
    if not p.present:
        return "no row has a value"
    numeric = p.is_numeric
    named = bool(_IDENTIFIER.fullmatch(name))
    if p.distinct == p.present and p.present >= 20:
        whole_in_a_row = p.whole == p.present and p.high - p.low < 10 * p.present
        if not numeric or named or whole_in_a_row:
            return "every row has its own value: an identifier? It may be the unit column"
    rare = p.distinct > 50 and p.present < _FEW_ROWS * p.distinct
    if rare and named:
        return "many values with few rows each: an identifier? It may be the unit column"
    if rare and not numeric:
        return "many values with few rows each: names, identifiers or free text? It may be the unit column"
    if p.longest > _LONGEST_LABEL and not numeric:
        return "long texts: code them into categories first"
    return ""


def _propose(name: str, p: _Profile, common: Sequence[str], most_levels: int) -> tuple[Attribute, str]:
    if p.is_numeric and (p.distinct > most_levels or not p.is_whole):
        missing = "missing" if p.numbers < p.rows else None
        edges = round_edges(p.low, p.high, p.middle, whole=p.is_whole)
        peeked = frozenset({"edges", "missing"} if missing else {"edges"})
        attribute = Attribute.numeric(name, edges, missing=missing, integer=p.is_whole, peeked=peeked)
        comment = "numbers; the bins were chosen to span what was seen"
        return attribute, comment if missing else f"{comment}. {_no_level_for(attribute, 'absent values')}"
    return _propose_levels(name, p, common[:most_levels])


def _propose_levels(name: str, p: _Profile, shown: Sequence[str]) -> tuple[Attribute, str]:
    absent = p.present < p.rows
    peeked = frozenset({"levels", "missing"} if absent else {"levels"})
    levels: list[Any]
    if p.boolean == p.present:
        levels = [False, True]
    else:
        levels = sorted(int(v) for v in shown) if p.whole == p.present else sorted(shown)
        if p.distinct > len(shown):
            comment = "the most frequent values; all others go to the level {other!r}"
            return _with_other(name, levels, absent=absent, peeked=peeked, comment=comment)
    if len(levels) == 2 and not absent:
        # Two answers are one bit, which many methods need; a third level would cost all of them for nothing seen.
        attribute = Attribute.categorical(name, levels, peeked=peeked)
        return attribute, _no_level_for(attribute, "absent and unlisted values")
    return _with_other(name, levels, absent=absent, peeked=peeked, comment="")


def _with_other(
    name: str, levels: Sequence[Any], *, absent: bool, peeked: frozenset[str], comment: str
) -> tuple[Attribute, str]:
    """Categories with a level for what is not listed, and one for absent values if there were any."""
    taken = {level_text(level) for level in levels}
    missing = free_label("missing", taken) if absent else None
    other = free_label("other", taken)
    attribute = Attribute.categorical(name, levels, missing=missing, other=other, peeked=peeked)
    return attribute, comment.format(other=other)


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
