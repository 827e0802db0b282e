"""Records: rows as small integer codes, with the way back to the original labels, types and column order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute, Domain, level_text
from ..encoding import Codes
from ..errors import InputError, counted
from ..frames import csv_text, inert, library
from .encoding import check_codes, code_type

RandomState = int | np.random.Generator | None
CSV_BLOCK = 1 << 16
NOT_PRIVATE = {
    "research": "NOT PRIVATE: drawn from a model that was learned with seeded noise, which protects nobody",
    "exact": "NOT PRIVATE: drawn from a model that was learned without noise, which protects nobody",
}
"""What records say of themselves, by the origin of their model."""


def origin_of(card: Mapping[str, Any] | None) -> str:
    """What the card of a model says about where it comes from: ``"release"`` (with a statement of privacy),
    ``"public"``, ``"research"``, ``"exact"``, or nothing."""
    if card is None:
        return ""
    said = str(card.get("origin"))
    if said in NOT_PRIVATE or said == "public":
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


def value_table(attribute: Attribute) -> tuple[list[Any], str]:
    """The original value of each code, and the kind of the column: ``"int"``, ``"bool"`` or ``"str"``.

    A column whose levels are numbers or booleans but which also has an ``other`` level comes back as text: one column
    holds one kind, whether or not the other level was drawn.
    """
    kinds = {type(level) for level in attribute.levels}
    kind = kinds.pop().__name__ if len(kinds) == 1 and attribute.other is None else "str"
    values = [None if label == attribute.missing else label for label in attribute.labels]
    if kind in ("int", "bool"):
        values[: len(attribute.levels)] = attribute.levels  # type: ignore[assignment]
    return values, kind if kind in ("int", "bool") else "str"


def draw_within_bins(codes: Codes, attribute: Attribute, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform numbers in the bins of the codes; NaN where the code is the missing or the other level.

    Bins are half-open and the last is closed, so for whole numbers [a, b) holds a … b − 1 and the last also its end.
    """
    edges = np.asarray(attribute.edges, dtype=np.float64)
    bins = len(edges) - 1
    inside = codes < bins
    at = np.where(inside, codes, 0)
    low, high = edges[at], edges[at + 1]
    u = rng.random(len(codes))
    if attribute.integer:
        last = high - np.where(at == bins - 1, 0, 1)
        x = np.minimum(np.floor(low + u * (last - low + 1)), last)
    else:
        x = low + u * (high - low)
        # low + u·width may round up to the end of the bin, which belongs to the next one.
        x = np.where((x >= high) & (at != bins - 1), np.nextafter(high, low), x)
    return np.where(inside, x, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Rows of a model: compact codes, and their labels on demand.

    ``numbers`` holds, for numeric columns that were drawn within their bins, the number of each row. ``method`` and
    ``reason`` say how the rows were drawn, ``origin`` what the card of their model says: ``"release"``, ``"public"``,
    ``"research"``, ``"exact"`` or nothing. It goes into the metadata of Arrow tables and Parquet files.
    """

    domain: Domain
    codes: Codes
    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    method: str = ""
    reason: str = ""
    origin: str = ""

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
            yield dict(zip(self.names, row, strict=True))

    def counts(self, names: Sequence[str] | str) -> NDArray[np.int64]:
        """The contingency table of some columns, one axis for each name, in the order given."""
        chosen = [names] if isinstance(names, str) else list(names)
        shape = tuple(self.domain[name].size for name in chosen)
        columns = tuple(self.codes[:, self.domain.index(name)] for name in chosen)
        flat = np.ravel_multi_index(columns, shape) if chosen else np.zeros(len(self), dtype=np.int64)
        return np.bincount(flat, minlength=int(np.prod(shape, dtype=np.int64))).reshape(shape)

    def within_bins(self, random_state: RandomState = None) -> Records:
        """The same rows, with every numeric column drawn uniformly within its bins."""
        rng = generator(random_state)
        numbers = {
            a.name: draw_within_bins(self.codes[:, j], a, rng)
            for j, a in enumerate(self.domain.attributes)
            if a.is_numeric
        }
        return replace(self, numbers=numbers)

    # -- columns and frames --------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The values of one column with their own type: integers, booleans or text; None (or NaN) where missing."""
        attribute = self.domain[name]
        if name in self.numbers:
            return self._whole(attribute, self.numbers[name])
        values, kind = value_table(attribute)
        dtype: Any = object if kind == "str" or None in values else kind
        table = np.empty(len(values), dtype=dtype)
        table[:] = values
        return table[self.codes[:, self.domain.index(name)]]

    @staticmethod
    def _whole(attribute: Attribute, x: NDArray[np.float64]) -> NDArray[Any]:
        if not attribute.integer:
            return x
        if attribute.missing is None and attribute.other is None:
            return x.astype(np.int64)
        gaps = np.isnan(x)
        whole = np.where(gaps, 0, x).astype(np.int64).astype(object)
        whole[gaps] = None
        return whole

    def _kind(self, attribute: Attribute) -> tuple[str, bool]:
        """The kind of a column (also ``"float"``) and whether it may hold absent values."""
        if attribute.name in self.numbers:
            return "int" if attribute.integer else "float", attribute.missing is not None or attribute.other is not None
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
                columns[a.name] = pd.Series(self[a.name], dtype=nullable.get(kind) if gaps else None)
        return pd.DataFrame(columns)

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        pl = library("polars")
        types = {"int": pl.Int64, "bool": pl.Boolean, "str": pl.String, "float": pl.Float64}
        columns = []
        for a in self.domain.attributes:
            kind, _ = self._kind(a)
            if a.name in self.numbers:
                series = pl.Series(a.name, self.numbers[a.name]).fill_nan(None)
            else:
                codes = self.codes[:, self.domain.index(a.name)].astype(np.uint32)
                series = pl.Series(a.name, value_table(a)[0], dtype=types[kind]).gather(codes)
            columns.append(series.cast(types[kind]))
        return pl.DataFrame(columns)

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        import pyarrow as pa

        types = {"int": pa.int64(), "bool": pa.bool_(), "str": pa.string(), "float": pa.float64()}
        columns = {}
        for a in self.domain.attributes:
            kind, _ = self._kind(a)
            if a.name in self.numbers:
                columns[a.name] = pa.array(self.numbers[a.name], from_pandas=True).cast(types[kind])
            else:
                codes = pa.array(self.codes[:, self.domain.index(a.name)].astype(np.int64))
                columns[a.name] = pa.array(value_table(a)[0], type=types[kind]).take(codes)
        mark = {"synthetic": True, "origin": self.origin or "not stated"}
        mark |= {"warning": self.warning} if self.warning else {}
        return pa.table(columns).replace_schema_metadata({"discreet": json.dumps(mark)})

    def to_csv(self, path: str | os.PathLike[str], *, safe: bool = False) -> None:
        """Write a CSV file with a header; an absent value is an empty field, an empty text a quoted one.

        ``safe``: texts that a spreadsheet would take for a formula begin with an apostrophe.
        """
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(csv_text(inert(name) if safe else name) for name in self.names) + "\n")
            for start in range(0, len(self), CSV_BLOCK):
                rows = slice(start, start + CSV_BLOCK)
                fields = [self._csv_fields(a, rows, safe) for a in self.domain.attributes]
                file.writelines(",".join(row) + "\n" for row in zip(*fields, strict=True))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file; needs pyarrow."""
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise InputError("Parquet files need the package pyarrow: pip install pyarrow, or write .csv") from None
        pq.write_table(self.to_arrow(), os.fspath(path))

    def _csv_fields(self, attribute: Attribute, rows: slice, safe: bool) -> list[str]:
        if attribute.name in self.numbers:
            values = self._whole(attribute, self.numbers[attribute.name][rows]).tolist()
            return ["" if v is None or v != v else repr(v) for v in values]
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
