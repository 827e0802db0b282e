"""Measurements: what came out of the curator. Public from here on; they know how they were noised.

A file of measurements is itself a release: noisy tables with their variances are often what people want.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, SupportsIndex, get_args, overload

import numpy as np
from numpy.typing import NDArray

from .arguments import shortened
from .claimed import CLAIMED, NoisyTable, Stated, as_tables, caution, of_mbi, parts_of, statement
from .count_table import CountTable
from .domain import Clique, Domain
from .errors import FileFormatError, InputError, NotAReleaseError, counted, did_you_mean
from .extras import needed
from .frames import csv_text, frame_of, free_name
from .io.archive import MEASUREMENTS, Sign, read_archive, write_archive
from .io.atomic import write_atomically
from .noise import Noise as Noise
from .spelling import written

IntArray = NDArray[np.int64]
Origin = Literal["release", "public", "exact", "research", "claimed"]
_ORIGINS = get_args(Origin)
_MAY_BE_SAVED = ("release", "public", CLAIMED)
_SHARE = Fraction(1, 2**40)  # the grid of public proportions
MOST_RECORDS = 1 << 40
"""As many as are taken for possible: sums over them have room in 64 bits, weighted and in parts of a record."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """One noisy table.

    ``counts`` are whole numbers in units of ``grid``; ``values`` are counts × grid. ``clique`` names the columns when
    the table is a contingency table, and is None for other sums. ``origin`` says what kind of truth it is: a paid
    release, public knowledge, one that others made and that has the privacy they claim, or an exact or research value
    that must not be published. ``proportions``: a public table
    of shares instead of counts; learners scale it to the number of records that the noisy tables tell. ``about`` says
    which sums these are where they are no contingency table, as their query describes them: plain data.
    """

    label: str
    counts: IntArray
    noise: Noise
    domain: Domain
    clique: Clique | None = None
    grid: Fraction = Fraction(1)
    origin: Origin = "release"
    cost: Mapping[str, str] = field(default_factory=dict)
    proportions: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counts = np.array(self.counts)
        if counts.dtype.kind not in "iu" and counts.size:
            raise InputError(f"the counts of {self.label!r} must be whole numbers, got {counts.dtype}")
        if self.grid <= 0:
            raise InputError(f"the grid of {self.label!r} must be positive, got {self.grid}")
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        if self.origin not in _ORIGINS:
            raise InputError(f"the origin of a measurement is one of {', '.join(_ORIGINS)}; got {self.origin!r}")
        if self.origin in ("release", CLAIMED) and self.noise.kind == "none":
            raise InputError(f"{self.label!r} has no noise, so it is no release; is it public knowledge?")
        if self.proportions and (self.origin != "public" or not self.clique):
            raise InputError(f"proportions are public knowledge about columns; {self.label!r} is not")
        if self.clique is not None and counts.shape != tuple(self.domain[n].size for n in self.clique):
            raise InputError(f"the table of {self.clique} has the wrong shape {counts.shape}")
        if self.clique is None and (columns := self.told_of) is not None:
            if counts.shape != tuple(self.domain[n].size for n in columns):
                raise InputError(f"the interaction of {columns} has the wrong shape {counts.shape}")
            if self.grid != Fraction(1, self.domain.size(columns)):
                raise InputError(f"the interaction of {columns} is counted in parts of its cells, not of {self.grid}")

    @classmethod
    def public(
        cls, domain: Domain, clique: Iterable[str], table: Any = None, *, proportions: Any = None, label: str = ""
    ) -> Measurement:
        """A table (or, for the empty clique, a total) that is public knowledge: it costs nothing and has no noise.

        Learners take ``table``, whole counts of *these* records, for certain, its total included; they refuse one that
        the noisy tables contradict. What is known of a population (a census) goes into ``proportions`` instead, which
        say nothing about the number of records. The axes are in the order in which ``clique`` names the columns.
        """
        given = [clique] if isinstance(clique, str) else list(clique)
        columns = domain.clique(given)
        if (table is None) == (proportions is None):
            raise InputError("give a public table either as counts (table) or as shares of one (proportions=…)")
        try:
            array = np.asarray(table if proportions is None else proportions, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"the public table of {tuple(given)} does not consist of numbers") from None
        if array.shape != tuple(domain[n].size for n in given):
            raise InputError(f"the public table of {tuple(given)} has the wrong shape {array.shape}")
        array = array.transpose([given.index(n) for n in columns])
        lawful = bool(np.all(np.isfinite(array)) and np.all(array >= 0))
        if proportions is None and not (lawful and np.all(array == np.rint(array))):
            shares = "; shares of one go into proportions=…" if lawful and abs(array.sum() - 1) < 1e-3 else ""
            raise InputError(
                f"a public table holds whole counts, none of them negative; the one of {columns} does not{shares}"
            )
        if proportions is not None and not (lawful and columns and abs(array.sum() - 1) < 1e-3):
            raise InputError(f"proportions of columns are not negative and add up to 1; those of {columns} do not")
        grid = Fraction(1) if proportions is None else _SHARE
        return cls(
            label or f"public {' × '.join(columns) or 'total'}",
            np.rint(array if proportions is None else array / array.sum() / float(grid)).astype(np.int64),
            Noise("none"),
            domain,
            clique=columns,
            grid=grid,
            origin="public",
            proportions=proportions is not None,
        )

    @property
    def values(self) -> NDArray[np.float64]:
        return np.asarray(self.counts * float(self.grid), dtype=np.float64)

    @cached_property
    def told_of(self) -> Clique | None:
        """The columns of a contingency table, or of the interaction that was measured by itself
        (:mod:`discreet.privacy.queries.interactions`); None of other sums."""
        if self.clique is not None or "interaction" not in self.about:
            return self.clique
        return self.domain.clique(self.about["interaction"])

    @property
    def columns_told_of(self) -> frozenset[str]:
        """The columns of the rows that it tells of: also where their levels are taken together."""
        own = (self.domain[n] for n in self.told_of or ())
        return frozenset(a.name if a.groups is None else a.groups.of.name for a in own)

    def as_table(self) -> CountTable:
        """The values with their columns and the variance of each; of contingency tables and interactions only."""
        if self.clique is None and self.told_of is not None:
            return CountTable(self.told_of, self.values, math.inf, self.standard_deviation**2)
        if self.clique is None:
            raise InputError(f"{self.label!r} is not a contingency table, and has no columns to sum over")
        return CountTable(self.clique, self.values, self.standard_deviation**2)

    def of_table(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """What these sums are of a table of all the columns that they tell of: the table, or its interaction."""
        return table if self.clique is not None else CountTable(self.told_of or (), table).interaction

    @property
    def standard_deviation(self) -> float:
        """Of one value, on the scale of ``values``."""
        return self.noise.standard_deviation * float(self.grid)

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends, cell by cell, that cover the exact sum with this probability."""
        half = self.noise.half_width(level) * float(self.grid)
        return self.values - half, self.values + half

    def __repr__(self) -> str:
        what = (
            f"{self.noise.kind} noise, standard deviation {self.standard_deviation:.3g}"
            if self.noise.variance
            else "no noise"
        )
        return f"Measurement({self.label!r}, {counted(self.counts.size, 'cell')}, {what}, {self.origin})"

    def to_frame(self, backend: str | None = None, *, level: float = 0.9) -> Any:
        """One row for each cell, as pandas, polars or pyarrow: its labels, its ``value`` and an interval around it.

        ``lower`` and ``upper`` are the ends of :meth:`interval` at this level. Sums that are no contingency table have
        their position in a column ``entry`` instead of labels. A column whose name is taken gets a ``_``.
        """
        labels = self._labels()
        numbers = self._numbers(level)
        return frame_of({**labels, **{free_name(name, [*labels]): column for name, column in numbers.items()}}, backend)

    def to_pandas(self, *, level: float = 0.9) -> Any:
        """As :meth:`to_frame`, a pandas DataFrame."""
        return self.to_frame("pandas", level=level)

    def _labels(self) -> dict[str, list[Any]]:
        """The labels of each cell, column by column, in the order of the flattened counts."""
        at = np.indices(self.counts.shape).reshape(self.counts.ndim, self.counts.size)
        columns = self.told_of
        if columns is None:
            return {"entry": [", ".join(map(str, index)) for index in at.T.tolist()]}
        labels = (np.array(self.domain[name].labels, dtype=object) for name in columns)
        return {name: own[codes].tolist() for name, own, codes in zip(columns, labels, at, strict=True)}

    def _numbers(self, level: float) -> dict[str, list[Any]]:
        """Value and interval of each cell; whole numbers where they are counts."""
        half, unit = self.noise.half_width(level), 1 if self.grid == 1 else float(self.grid)
        ends = {"value": self.counts, "lower": self.counts - half, "upper": self.counts + half}
        return {name: (counts.reshape(-1) * unit).tolist() for name, counts in ends.items()}


class Measurements(tuple[Measurement, ...]):
    """Several measurements under one domain, with the statement of what they cost.

    ``tables["age", "sex"].to_pandas()``, ``tables.save("tables.zip")``, ``Measurements.load("tables.zip")``.

    ``release`` holds public facts about how they were made: unit, budget, what was spent, version.
    """

    release: Mapping[str, Any]

    def __new__(cls, items: Iterable[Measurement], release: Mapping[str, Any] | None = None) -> Measurements:
        new = super().__new__(cls, items)
        new.release = dict(release or {})
        return new

    @property
    def domain(self) -> Domain:
        if not self:
            raise InputError("no measurements: there is no domain to speak of")
        merged = self[0].domain
        for m in self[1:]:
            merged = merged.merge(m.domain)
        return merged

    @property
    def found(self) -> Mapping[str, Any]:
        """What was found besides noisy sums: a graph, which of several ways was taken. Public.

        (Files of the first versions hold it among the facts of the release.)
        """
        found: Mapping[str, Any] = self.release.get("found", self.release)
        return found

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(m.clique for m in self if m.clique is not None)

    @cached_property
    def told_of(self) -> tuple[Clique, ...]:
        """The columns of each contingency table and of each interaction."""
        return tuple(c for m in self if (c := m.told_of) is not None)

    @overload
    def __getitem__(self, key: SupportsIndex) -> Measurement: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Measurement, ...]: ...
    @overload
    def __getitem__(self, key: str | tuple[str, ...] | list[str]) -> Measurement: ...

    def __getitem__(self, key: Any) -> Any:
        """By position, by the columns of a table (``tables["age"]``, ``tables["age", "sex"]``) or by label."""
        if isinstance(key, str):
            return self._named(key)
        return self.table(key) if isinstance(key, tuple | list) else super().__getitem__(key)

    def _named(self, name: str) -> Measurement:
        for m in self:
            if m.clique == (name,) or m.label == name:
                return m
        known = [m.label for m in self]
        raise InputError(f"no table of {name!r} was measured{did_you_mean(name, known)}")

    def table(self, clique: Iterable[str] | str) -> Measurement:
        """The table of exactly these columns."""
        wanted = self.domain.clique(clique)
        for m in self:
            if m.clique == wanted:
                return m
        raise InputError(f"no table of {wanted} was measured; there are {shortened(list(self.cliques), 500)}")

    def plus(self, *others: Measurement) -> Measurements:
        """The same measurements with public tables or totals added, which the statement then names. Another release has
        a statement of its own."""
        for m in others:
            if m.origin != "public":
                raise InputError(
                    f"{m.label!r} is not public knowledge but {m.origin!r}: it was paid for elsewhere, and the "
                    "statement here would be false. Keep the two releases apart, or measure both with one curator"
                )
        named = [*self.release.get("public_tables", ()), *(m.label for m in others)]
        return Measurements((*self, *others), {**self.release, "public_tables": named})

    @property
    def is_release(self) -> bool:
        stated = self.release.get("origin", "release")
        return stated == "release" and all(m.origin in ("release", "public") for m in self)

    @property
    def is_claimed(self) -> bool:
        """Whether its privacy is the word of others: tables of :meth:`from_tables`, with public ones perhaps."""
        return self.release.get("origin") == CLAIMED and all(m.origin in (CLAIMED, "public") for m in self)

    @classmethod
    def from_tables(
        cls,
        domain: Domain,
        tables: Mapping[Any, Any] | Iterable[NoisyTable],
        *,
        noise: str | None = None,
        scale: float | None = None,
        budget: Stated,
        unit: Stated,
        source: str,
    ) -> Measurements:
        """Noisy tables that were made elsewhere, to learn from them: with OpenDP, mbi, or by a statistical office.

        ``Measurements.from_tables(domain, {("age", "sex"): counts}, noise="laplace", scale=2.0, budget=PureDP(1),
        unit=PrivacyUnit(), source="OpenDP 0.16")``; or a list of :class:`~discreet.claimed.NoisyTable`, each with its
        own noise. ``budget`` and ``unit`` are what is *claimed* of all of them together. discreet has not drawn the
        noise and cannot verify it: the card, the report and every answer say so, and ``discreet verify`` refuses.
        """
        items = [Measurement(**parts, origin=CLAIMED) for parts in parts_of(domain, as_tables(tables, noise, scale))]
        return cls(items, statement(domain, budget, unit, source))

    @classmethod
    def from_mbi(
        cls, domain: Domain, measurements: Iterable[Any], *, budget: Stated, unit: Stated, source: str, noise: str
    ) -> Measurements:
        """What mbi calls ``LinearMeasurement``, as :meth:`from_tables` takes it. It does not know its kind of noise:
        say ``noise="gaussian"`` or ``"laplace"``. Codes are those of ``domain``."""
        return cls.from_tables(domain, of_mbi(measurements, noise), budget=budget, unit=unit, source=source)

    def for_mbi(self) -> list[dict[str, Any]]:
        """The arguments of an mbi ``LinearMeasurement`` for each noisy contingency table; other sums, and public
        knowledge, are left out."""
        tables = [m for m in self if m.clique and m.noise.variance]
        return [
            {"noisy_measurement": m.values.reshape(-1), "clique": m.clique, "stddev": m.standard_deviation}
            for m in tables
        ]

    def to_mbi(self) -> list[Any]:
        """The noisy contingency tables as mbi's ``LinearMeasurement`` (see :meth:`for_mbi`); the domain that goes with
        them is ``mbi.Domain(domain.names, domain.shape)``."""
        mbi = needed("mbi", "Measurements.to_mbi")
        return [mbi.LinearMeasurement(**arguments) for arguments in self.for_mbi()]

    @property
    def caution(self) -> str:
        """A word about where they come from that goes with all that follows from them; "" for our own."""
        said = str(self.release.get("source", "not stated"))
        return caution(said) if any(m.origin == CLAIMED for m in self) else ""

    def to_frame(self, backend: str | None = None, *, level: float = 0.9) -> Any:
        """All tables below one another, as pandas, polars or pyarrow: ``table`` says which one a row is of.

        A column that is not in a table is absent (None) there. See :meth:`Measurement.to_frame` for the rest.
        """
        return frame_of(self._columns(level), backend)

    def to_csv(self, path: str | Path, *, level: float = 0.9) -> None:
        """Write the frame of :meth:`to_frame` as CSV, with empty fields for what is absent.

        It can be published (exact and research values refuse), but does not say what was protected and what it cost;
        the file of :meth:`save` does.
        """
        self._check_release()
        columns = self._columns(level)
        rows = zip(*columns.values(), strict=True)
        lines = (",".join(map(csv_text, row)) + "\n" for row in chain([columns], rows))
        write_atomically(Path(path), (line.encode() for line in lines))

    def _columns(self, level: float) -> dict[str, list[Any]]:
        parts = [(m.label, m._labels(), m._numbers(level)) for m in self]
        named = list(dict.fromkeys(name for _, labels, _ in parts for name in labels))
        out: dict[str, list[Any]] = {free_name("table", named): [l for l, _, n in parts for _ in n["value"]]}
        for name in named:
            out[name] = [x for _, labels, n in parts for x in labels.get(name, [None] * len(n["value"]))]
        for name in ("value", "lower", "upper"):
            out[free_name(name, [*out])] = [x for _, _, n in parts for x in n[name]]
        return out

    def save(self, path: str | Path, *, sign: Sign | None = None) -> None:
        """Write a file that can be published. Exact and research values refuse. ``sign``: a ledger's ``signer``."""
        write_archive(Path(path), *self.to_archive(), sign)

    def to_archive(self) -> tuple[dict[str, Any], dict[str, IntArray]]:
        """Header and arrays of the file. Exact and research values refuse: whatever has them is no release."""
        self._check_release()
        domain = self.domain
        header = {
            "kind": MEASUREMENTS,
            "domain": domain.to_dict(),
            "peeked": {k: list(v) for k, v in domain.peeked.items()},
            "release": dict(self.release),
            "measurements": [
                {
                    "label": m.label,
                    "noise": m.noise.kind,
                    "scale": m.noise.scale,
                    "clique": None if m.clique is None else list(m.clique),
                    "columns": list(m.domain.names),
                    "grid": str(m.grid),
                    "origin": m.origin,
                    "cost": dict(m.cost),
                    **({"proportions": True} if m.proportions else {}),
                    **({"about": dict(m.about)} if m.about else {}),
                }
                for m in self
            ],
        }
        return header, {f"counts{i:05d}": np.asarray(m.counts) for i, m in enumerate(self)}

    def _check_release(self) -> None:
        for origin, label in ((m.origin, repr(m.label)) for m in self):
            if origin not in _MAY_BE_SAVED:
                raise NotAReleaseError(
                    f"{label} carries no privacy guarantee (it is {origin}) and cannot be saved as a release"
                )
        if not self.is_release and not self.is_claimed:
            raise NotAReleaseError("these measurements carry no privacy guarantee and cannot be saved as a release")

    @classmethod
    def load(cls, path: str | Path) -> Measurements:
        """Read a file written by :meth:`save`."""
        header, arrays = read_archive(Path(path))
        kind = header.get("kind")
        if kind != MEASUREMENTS:
            raise FileFormatError(
                f"{path} does not hold measurements; its kind is {str(kind)[:60]!r}. A model is read with "
                "discreet.open_model"
            )
        try:
            return cls.from_archive(header, arrays)
        except FileFormatError as error:
            raise FileFormatError(f"{path} is not a well-formed file of measurements: {error}") from None

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Measurements:
        """The inverse of :meth:`to_archive`; what is wrong is a :class:`FileFormatError`."""
        try:
            domain = Domain.from_dict(header["domain"])
            items = [
                Measurement(
                    _text(entry["label"]),
                    arrays[f"counts{i:05d}"],
                    Noise(entry["noise"], float(entry["scale"])),
                    domain.project(entry["columns"]),
                    clique=None if entry["clique"] is None else tuple(map(_text, entry["clique"])),
                    grid=written(entry["grid"]),
                    origin=_text(entry["origin"]),
                    cost=dict(entry["cost"]),
                    proportions=entry.get("proportions", False) is True,
                    about=dict(entry.get("about", {})),
                )
                for i, entry in enumerate(header["measurements"])
            ]
            loaded = cls(items, header["release"])
            if not loaded.is_release and not loaded.is_claimed:
                raise ValueError("it does not claim to be a release")
            return loaded
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError) as error:
            raise FileFormatError(str(error)) from None

    def __repr__(self) -> str:
        return "Measurements(\n" + "".join(f"  {m!r},\n" for m in self) + ")"


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"a label, a column and an origin are texts, not a {type(value).__name__}")
    return value
