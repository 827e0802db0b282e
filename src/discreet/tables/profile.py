"""What the columns of a file or frame hold, as far as a draft of a schema needs to know. Curator-side: it sees rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw

from ..errors import InputError
from ..extras import needed
from .check import WORDS_FOR_ABSENT
from .delimited import DelimitedFile
from .sources import SourceFile

NULLS = tuple(word for word in WORDS_FOR_ABSENT if word != "none")
"""Words that stand for an absent value among categories, too, where "none" may be an answer."""
FORMATS = ("%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}.*)?"
_WHOLE_KINDS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
)


@dataclass(frozen=True)
class Profile:
    """What one column holds."""

    rows: int
    present: int
    distinct: int
    numbers: int
    whole: int
    padded: int  # numbers with leading zeros are codes, not numbers
    absent_words: int
    nulls: int  # of them those that are no answer anywhere
    boolean: int
    low: float
    high: float
    middle: float
    longest: int
    stripped: int  # distinct texts without the spaces around them, and then in lower case
    folded: int
    decimals: int
    iso: int

    @property
    def is_numeric(self) -> bool:
        """All values are numbers, but for words that stand for an absent one."""
        return 0 < self.numbers == self.present - self.absent_words and not self.padded

    @property
    def is_whole(self) -> bool:
        return self.is_numeric and self.whole == self.numbers

    @property
    def is_mostly_numeric(self) -> bool:
        """Nine of ten are numbers: no single row decides."""
        return self.numbers > 0.9 * max(self.present - self.absent_words, 1) and self.padded < 0.1 * self.numbers


@dataclass(frozen=True, eq=False)
class FrameRows:
    """A frame in the place of a file."""

    frame: Any
    names: tuple[str, ...]
    path: Path = Path("the frame")

    @classmethod
    def of(cls, rows: Any) -> FrameRows:
        needed("pyarrow", "a draft of a schema", "discreet[files]")
        try:
            frame = nw.from_native(rows)
        except TypeError:
            raise InputError(
                f"a draft is made of a file or a pandas, polars or Arrow frame, got {type(rows).__name__}"
            ) from None
        whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        return cls(whole.to_arrow(), tuple(whole.columns))

    def column(self, name: str) -> str:
        return f"c{self.names.index(name)}"

    def relation(self, connection: Any, names: Sequence[str]) -> Any:
        renamed = self.frame.rename_columns([f"c{i}" for i in range(len(self.names))])
        return connection.from_arrow(renamed.select(list(map(self.column, names))))

    def require(self, names: Iterable[str], role: str, *, credible: bool = True) -> None:
        raise NotImplementedError


def look_at(connection: Any, file: SourceFile) -> dict[str, str]:
    """Make ``t``, the rows with every value as text. Returns the columns whose values cannot be levels, and why.

    Delimited text is parsed once. Columns of Parquet are read one by one as they are needed, and have types: what has
    none of the types that levels, bins and periods can have (nested values, bytes) has to be written as one of them.
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
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f"{column}::VARCHAR" if "TIME ZONE" not in kind else ""
    if kind == "BOOLEAN" or kind in _WHOLE_KINDS or kind.startswith("ENUM") or kind == '"NULL"':
        return f"{column}::VARCHAR"
    if kind in ("FLOAT", "DOUBLE"):  # frames turn whole numbers with gaps into floats
        whole = f"{column} = trunc({column}) AND abs({column}) < 9e15"
        return f"CASE WHEN {whole} THEN TRY_CAST({column} AS BIGINT)::VARCHAR ELSE {column}::VARCHAR END"
    if kind.startswith("DECIMAL") or kind in ("HUGEINT", "UHUGEINT"):  # these reach bins, and no level
        return f"{column}::DOUBLE::VARCHAR"
    return ""


def profile(connection: Any, column: str) -> Profile:
    words, nulls = (", ".join(f"'{word}'" for word in several) for several in (WORDS_FOR_ABSENT, NULLS))
    # An empty field is absent; so is a word for it, when all other values are numbers.
    row = connection.execute(
        f"""
        WITH v AS (SELECT {column} AS text, lower(trim({column})) AS word FROM t),
        n AS (SELECT text, word, CASE WHEN word IN ({words}) THEN NULL ELSE TRY_CAST(text AS DOUBLE) END AS x FROM v)
        SELECT count(*), count(text), count(DISTINCT text), count(x),
          count(*) FILTER (WHERE regexp_full_match(text, '-?(0|[1-9][0-9]{{0,17}})')),
          count(*) FILTER (WHERE regexp_full_match(text, '-?0[0-9]+')),
          count(*) FILTER (WHERE word IN ({words})), count(*) FILTER (WHERE word IN ({nulls})),
          count(*) FILTER (WHERE word IN ('true', 'false')),
          min(x) FILTER (WHERE isfinite(x)), max(x) FILTER (WHERE isfinite(x)),
          median(x) FILTER (WHERE isfinite(x)), max(length(text)),
          count(DISTINCT trim(text)) FILTER (WHERE word NOT IN ({nulls})),
          count(DISTINCT word) FILTER (WHERE word NOT IN ({nulls})),
          max(length(regexp_extract(text, '^-?[0-9]+[.]([0-9]+)$', 1))),
          count(*) FILTER (WHERE regexp_full_match(text, '{_ISO}') AND TRY_CAST(text AS TIMESTAMP) IS NOT NULL)
        FROM n
        """
    ).fetchone()
    values = [0 if v is None else v for v in row]
    return Profile(*values)


def words_for_absent(connection: Any, column: str, words: Sequence[str]) -> list[str]:
    """The words that stand for an absent value, as they are spelled in the column."""
    listed = ", ".join(f"'{word}'" for word in words)
    sql = f"SELECT DISTINCT {column} FROM t WHERE lower(trim({column})) IN ({listed}) ORDER BY 1"
    return [text for (text,) in connection.execute(sql).fetchall()]


def has_spaces_around(connection: Any, column: str) -> bool:
    """Whether a text of the column begins or ends with a space."""
    sql = f"SELECT coalesce(bool_or({column} <> trim({column})), false) FROM t"
    return bool(connection.execute(sql).fetchone()[0])


def date_format(connection: Any, column: str, wanted: float) -> str | None:
    """The format in which so many values of a column are dates."""
    for written in FORMATS:
        sql = f"SELECT count(*) FROM t WHERE try_strptime(trim({column}), ?) IS NOT NULL"
        if connection.execute(sql, [written]).fetchone()[0] >= wanted:
            return written
    return None


def first_and_last(connection: Any, column: str, written: str) -> tuple[Any, Any]:
    """The first and the last day of a column of dates."""
    day = f"try_strptime(trim({column}), '{written}')" if written else f"TRY_CAST({column} AS TIMESTAMP)"
    low, high = connection.execute(f"SELECT min({day})::DATE, max({day})::DATE FROM t").fetchone()
    return low, high


def numbers_of(
    connection: Any, column: str, edges: Sequence[float], heaps: Sequence[float]
) -> tuple[float, list[float]]:
    """The largest share that a bin of these edges has, heaps left out, and the deciles of the rest."""
    without = "".join(f" AND x <> {heap!r}" for heap in heaps)
    inner = f"SELECT TRY_CAST({column} AS DOUBLE) AS x FROM t"
    bins = ", ".join(map(repr, map(float, edges[1:-1])))
    place = f"list_count(list_filter([{bins}], lambda e: e <= x))" if bins else "0"
    counts = connection.execute(
        f"SELECT count(*) FROM ({inner}) WHERE x IS NOT NULL AND isfinite(x){without} GROUP BY {place}"
    ).fetchall()
    total = sum(n for (n,) in counts)
    parts = ", ".join(str(i / 10) for i in range(1, 10))
    (deciles,) = connection.execute(
        f"SELECT quantile_disc(x, [{parts}]) FROM ({inner}) WHERE x IS NOT NULL AND isfinite(x){without}"
    ).fetchone()
    return max((n for (n,) in counts), default=0) / max(total, 1), list(deciles or ())


def frequent_numbers(connection: Any, column: str, least: float) -> list[float]:
    """Numbers that at least so many rows have."""
    sql = f"SELECT TRY_CAST({column} AS DOUBLE) AS x, count(*) AS n FROM t GROUP BY 1 HAVING x IS NOT NULL AND n >= ?"
    return sorted(x for x, _ in connection.execute(sql, [least]).fetchall())


def common_values(
    connection: Any,
    column: str,
    most: int,
    least: int,
    *,
    words: Sequence[str] = NULLS,
    strip: bool = False,
    fold: bool = False,
) -> list[str]:
    """The most frequent values of at least so many rows, but for these words; of equal spellings the usual."""
    nulls = ", ".join(f"'{word}'" for word in words)
    text = f"trim({column})" if strip else column
    key = f"lower({text})" if fold else text
    kept = f"{column} IS NOT NULL AND lower(trim({column})) NOT IN ({nulls})"
    rows = connection.execute(
        f"SELECT mode({text}), count(*) AS n FROM t WHERE {kept} GROUP BY {key} HAVING n >= ? "
        "ORDER BY n DESC, 1 LIMIT ?",
        [least, most],
    ).fetchall()
    return [value for value, _ in rows]
