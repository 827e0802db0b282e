"""Records: rows as small integer codes, with the way back to the original labels, types and column order."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conditions import Condition, number_line
from ..domain import Attribute, Domain, level_text
from ..encoding import Codes
from ..errors import InputError, counted
from ..extras import needed
from ..frames import csv_text, inert, library
from ..io.atomic import refuse_to_lose
from .density import Density
from .encoding import check_codes, code_type
from .values import has_numbers, may_be_missing, number_column, number_kind, number_texts, time_of_day, value_table

RandomState = int | np.random.Generator | None
CSV_BLOCK = 1 << 16
NOT_PRIVATE = {
    "research": "NOT PRIVATE: drawn from a model that was learned with seeded noise, which protects nobody",
    "exact": "NOT PRIVATE: drawn from a model that was learned without noise, which protects nobody",
}
"""What records say of themselves, by the origin of their model."""
COMPLETED = "given rows, completed"
"""The origin of records that repeat what is known of the rows they were made from: no release covers that."""


def origin_of(card: Mapping[str, Any] | None) -> str:
    """What the card of a model says about where it comes from: ``"release"`` (with a statement of privacy),
    ``"claimed"`` (one that others have made), ``"public"``, ``"research"``, ``"exact"``, or nothing."""
    if card is None:
        return ""
    said = str(card.get("origin"))
    if said in NOT_PRIVATE or said in ("public", "claimed"):
        return said
    if "budget" in card:
        return "release" if said == "release" else ""
    return "public" if str(card.get("what", "")).startswith("a public ") else ""  # as the bundled networks say


def generator(random_state: RandomState) -> np.random.Generator:
    """The generator that a ``random_state`` stands for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            "random_state must be a whole number of at least 0, a NumPy Generator, or None for fresh randomness; "
            f"got {random_state!r}"
        ) from None


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Rows of a model: compact codes, and their labels on demand.

    ``numbers`` holds the number of each row for columns that were drawn within their bins, or its days since 1970 for
    columns of dates; NaN where there is none. ``method`` and
    ``reason`` say how the rows were drawn, ``origin`` what the card of their model says: ``"release"``, ``"public"``,
    ``"research"``, ``"exact"`` or nothing; or that rows were given, and completed. It
    goes into the metadata of Arrow tables and Parquet files. ``redrawn`` is the part that was drawn again, as it broke
    a rule of the schema, ``changed`` the part with another level of a sum than was drawn, as numbers must add up.
    """

    domain: Domain
    codes: Codes
    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    method: str = ""
    reason: str = ""
    origin: str = ""
    redrawn: float = 0.0
    changed: float = 0.0

    def __post_init__(self) -> None:
        codes = check_codes(np.asarray(self.codes), self.domain).astype(code_type(self.domain), copy=False)
        object.__setattr__(self, "codes", codes)

    @property
    def warning(self) -> str:
        """A word about records that nobody may publish; nothing for others."""
        return NOT_PRIVATE.get(self.origin, "")

    @property
    def names(self) -> tuple[str, ...]:
        return self.domain.names

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = [self[name].tolist() for name in self.names]
        for row in zip(*columns, strict=True):
            yield {name: None if x != x else x for name, x in zip(self.names, row, strict=True)}

    def counts(self, names: Sequence[str] | str) -> NDArray[np.int64]:
        """The contingency table of some columns, one axis for each name, in the order given."""
        chosen = [names] if isinstance(names, str) else list(names)
        shape = tuple(self.domain[name].size for name in chosen)
        columns = tuple(self.codes[:, self.domain.index(name)] for name in chosen)
        flat = np.ravel_multi_index(columns, shape) if chosen else np.zeros(len(self), dtype=np.int64)
        return np.bincount(flat, minlength=int(np.prod(shape, dtype=np.int64))).reshape(shape)

    def with_numbers(
        self,
        random_state: RandomState = None,
        densities: Callable[[str], Density] | None = None,
        conditions: Mapping[str, Condition] | None = None,
    ) -> Records:
        """The same rows with a number, or a day, for every code that stands for several.

        ``densities``: how the numbers of a column are spread within its bins, by name; by default as the rows
        themselves are. ``conditions``: what numbers of a column are wanted.
        """
        rng = generator(random_state)
        numbers = {}
        for j, a in enumerate(self.domain.attributes):
            if not has_numbers(a):
                continue
            line, wanted = number_line(a), (conditions or {}).get(a.name)
            assert line is not None
            density = densities(a.name) if densities else Density(line, self.counts(a.name).astype(np.float64))
            ends = (wanted.low, wanted.high) if wanted is not None else ()
            numbers[a.name] = density.draw(self.codes[:, j], rng, *ends) + time_of_day(a, len(self), rng)
        return replace(self, numbers=numbers)

    # -- columns and frames --------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The values of one column with their own type: numbers, booleans, dates or text; None (or NaN, or NaT) where
        missing."""
        attribute = self.domain[name]
        if name in self.numbers:
            return number_column(attribute, self.numbers[name])
        values, kind = value_table(attribute)
        dtype: Any = object if kind == "str" or None in values else kind
        table = np.empty(len(values), dtype=dtype)
        table[:] = values
        return table[self.codes[:, self.domain.index(name)]]

    def _kind(self, attribute: Attribute) -> tuple[str, bool]:
        """The kind of a column and whether it may hold absent values."""
        if attribute.name in self.numbers:
            return number_kind(attribute), may_be_missing(attribute)
        return value_table(attribute)[1], attribute.missing is not None

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"`` (the first that is installed by default), in the
        original column order."""
        makers = {"pandas": self.to_pandas, "polars": self.to_polars, "pyarrow": self.to_arrow}
        return makers[library(backend).__name__]()

    def to_pandas(self) -> Any:
        """A pandas DataFrame; whole numbers and booleans that may be missing come as nullable ``Int64``/``boolean``."""
        pd = library("pandas")
        nullable = {"int": "Int64", "bool": "boolean"}
        columns = {}
        for a in self.domain.attributes:
            kind, gaps = self._kind(a)
            if kind == "str":
                values, _ = value_table(a)
                taken = pd.array(values, dtype="str").take(self.codes[:, self.domain.index(a.name)].astype(np.intp))
                columns[a.name] = pd.Series(taken)
            else:
                column = self[a.name].astype("M8[us]") if kind in ("date", "moment") else self[a.name]
                columns[a.name] = pd.Series(column, dtype=nullable.get(kind) if gaps else None)
        return pd.DataFrame(columns)

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        pl = library("polars")
        types = {"int": pl.Int64, "bool": pl.Boolean, "str": pl.String, "float": pl.Float64, "date": pl.Date}
        types["moment"] = pl.Datetime("us")
        columns = []
        for a in self.domain.attributes:
            kind, _ = self._kind(a)
            if kind in ("date", "moment"):
                series = pl.Series(a.name, self[a.name].astype("M8[us]"))
            elif a.name in self.numbers:
                series = pl.Series(a.name, self.numbers[a.name]).fill_nan(None)
            else:
                codes = self.codes[:, self.domain.index(a.name)].astype(np.uint32)
                series = pl.Series(a.name, value_table(a)[0], dtype=types[kind]).gather(codes)
            columns.append(series.cast(types[kind]))
        return pl.DataFrame(columns)

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        pa = library("pyarrow")
        types = {"int": pa.int64(), "bool": pa.bool_(), "str": pa.string(), "float": pa.float64(), "date": pa.date32()}
        types["moment"] = pa.timestamp("us")
        columns = {}
        for a in self.domain.attributes:
            kind, _ = self._kind(a)
            if kind in ("date", "moment"):
                columns[a.name] = pa.array(self[a.name]).cast(types[kind])
            elif a.name in self.numbers:
                columns[a.name] = pa.array(self.numbers[a.name], from_pandas=True).cast(types[kind])
            else:
                codes = pa.array(self.codes[:, self.domain.index(a.name)].astype(np.int64))
                columns[a.name] = pa.array(value_table(a)[0], type=types[kind]).take(codes)
        mark = {"synthetic": self.origin != COMPLETED, "origin": self.origin or "not stated"}
        mark |= {"warning": self.warning} if self.warning else {}
        return pa.table(columns).replace_schema_metadata({"discreet": json.dumps(mark)})

    def to_csv(self, path: str | os.PathLike[str], *, safe: bool = False) -> None:
        """Write a CSV file with a header; an absent value is an empty field, an empty text a quoted one.

        ``safe``: texts that a spreadsheet would take for a formula begin with an apostrophe.
        """
        refuse_to_lose(path)
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(csv_text(inert(name) if safe else name) for name in self.names) + "\n")
            for start in range(0, len(self), CSV_BLOCK):
                rows = slice(start, start + CSV_BLOCK)
                fields = [self._csv_fields(a, rows, safe) for a in self.domain.attributes]
                file.writelines(",".join(row) + "\n" for row in zip(*fields, strict=True))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file; needs pyarrow."""
        pq = needed("pyarrow.parquet", "writing Parquet (CSV needs nothing)", "discreet[files]")
        refuse_to_lose(path)
        pq.write_table(self.to_arrow(), os.fspath(path))

    def _csv_fields(self, attribute: Attribute, rows: slice, safe: bool) -> list[str]:
        if attribute.name in self.numbers:
            texts = number_texts(attribute, self.numbers[attribute.name][rows])
            return [csv_text(text) if text else "" for text in texts] if attribute.dates else texts
        values = [inert(v) if safe and isinstance(v, str) else v for v in value_table(attribute)[0]]
        table = np.array([csv_text(v) for v in values], dtype=object)
        return list(table[self.codes[rows, self.domain.index(attribute.name)]])

    def __repr__(self) -> str:
        how = f" ({self.method})" if self.method else ""
        text = [f"{counted(len(self), 'record')} of {counted(len(self.names), 'column')}{how}"]
        text += [self.warning] if self.warning else []
        shown = self.names[:8]
        few = replace(self, codes=self.codes[:5], numbers={n: x[:5] for n, x in self.numbers.items()})
        rows = [list(shown)] + [["" if r[n] is None else level_text(r[n]) for n in shown] for r in few]
        width = [max(len(row[j]) for row in rows) for j in range(len(shown))]
        text += ["  " + "  ".join(c.ljust(w) for c, w in zip(row, width, strict=True)).rstrip() for row in rows]
        if len(self) > 5 or len(self.names) > 8:
            text.append("  …")
        return "\n".join(text)
