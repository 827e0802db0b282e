"""Measurements: what came out of the curator. Public from here on; they know how they were noised.

A file of measurements is itself a release: noisy tables with their variances are often what people want.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .domain import Clique, Domain
from .errors import FileFormatError, InputError, NotAReleaseError
from .io.archive import read_archive, write_archive

IntArray = NDArray[np.int64]
Origin = Literal["release", "public", "exact", "research"]
_ORIGINS = get_args(Origin)
_KIND = "measurements"


@dataclass(frozen=True)
class Noise:
    """A noise distribution on the whole numbers, in units of a grid: discrete Laplace, discrete Gaussian, or none.

    ``scale``: for Laplace P(z) ∝ exp(−|z|/scale); for Gaussian P(z) ∝ exp(−z²/2 scale²).
    """

    kind: Literal["laplace", "gaussian", "none"]
    scale: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian", "none"):
            raise InputError(f"noise is 'laplace', 'gaussian' or 'none', got {self.kind!r}")
        if not 0 <= self.scale < math.inf:
            raise InputError(f"the scale of noise must be a finite number of at least 0, got {self.scale}")

    @cached_property
    def variance(self) -> float:
        """Exact variance in grid units squared."""
        if self.kind == "none" or self.scale == 0:
            return 0.0
        if self.kind == "laplace":
            # 2 e^{1/b} / (e^{1/b} − 1)², written so that it neither overflows nor cancels
            return 1 / (2 * math.sinh(0.5 / self.scale) ** 2) if self.scale > 2e-3 else 0.0
        if self.scale > 10:  # theta-function identity: σ² up to a relative error below 1e-800
            return self.scale**2
        z, p = self._atoms()
        return float((z**2 * p).sum())

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(self.variance)

    def half_width(self, level: float = 0.9) -> int:
        """Least whole t with P(|noise| ≤ t) ≥ level."""
        if not 0 < level < 1:
            raise InputError(f"level must lie strictly between 0 and 1, got {level}")
        if self.variance == 0:
            return 0
        if self.kind == "laplace":
            # P(|Z| > t) = 2 q^{t+1} / (1 + q), q = e^{−1/b}
            t = -self.scale * math.log((1 - level) * (1 + math.exp(-1 / self.scale)) / 2) - 1
            return max(0, math.ceil(t - 1e-9))
        if self.scale > 1000:  # then the bell curve, with half a unit for the whole numbers, is right to 1e-6 of σ
            return max(0, math.ceil(self.scale * NormalDist().inv_cdf((1 + level) / 2) - 0.5))
        z, p = self._atoms()
        inside = np.cumsum(p[z >= 0]) * 2 - p[z == 0]
        return int(np.argmax(inside >= level))

    def _atoms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        reach = math.ceil(12 * self.scale) + 2
        z = np.arange(-reach, reach + 1, dtype=np.float64)
        p = np.exp(-(z**2) / (2 * self.scale**2))
        return z, p / p.sum()


@dataclass(frozen=True, eq=False)
class Measurement:
    """One noisy table.

    ``counts`` are whole numbers in units of ``grid``; ``values`` are counts × grid. ``clique`` names the columns when
    the table is a contingency table, and is None for other sums. ``origin`` says what kind of truth it is: a paid
    release, public knowledge, or an exact or research value that must not be published.
    """

    label: str
    counts: IntArray
    noise: Noise
    domain: Domain
    clique: Clique | None = None
    grid: Fraction = Fraction(1)
    origin: Origin = "release"
    cost: Mapping[str, str] = field(default_factory=dict)

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
        if self.origin == "release" and self.noise.kind == "none":
            raise InputError(f"{self.label!r} has no noise, so it is no release; is it public knowledge?")
        if self.clique is not None and counts.shape != tuple(self.domain[n].size for n in self.clique):
            raise InputError(f"the table of {self.clique} has the wrong shape {counts.shape}")

    @classmethod
    def public(cls, domain: Domain, clique: Iterable[str], table: Any, *, label: str = "") -> Measurement:
        """A table (or, for the empty clique, a total) that is public knowledge: it costs nothing and has no noise.

        The axes of ``table`` are in the order in which ``clique`` names the columns.
        """
        given = [clique] if isinstance(clique, str) else list(clique)
        columns = domain.clique(given)
        array = np.asarray(table, dtype=np.float64)
        if array.shape != tuple(domain[n].size for n in given):
            raise InputError(f"the public table of {tuple(given)} has the wrong shape {array.shape}")
        array = array.transpose([given.index(n) for n in columns])
        if not np.all(np.isfinite(array)) or np.any(array != np.rint(array)):
            raise InputError(f"a public table holds whole counts; the one of {columns} does not")
        return cls(
            label or f"public {' × '.join(columns) or 'total'}",
            array.astype(np.int64),
            Noise("none"),
            domain,
            clique=columns,
            origin="public",
        )

    @property
    def values(self) -> NDArray[np.float64]:
        return np.asarray(self.counts * float(self.grid), dtype=np.float64)

    @property
    def standard_deviation(self) -> float:
        """Of one value, on the scale of ``values``."""
        return self.noise.standard_deviation * float(self.grid)

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends, cell by cell, that cover the exact sum with this probability."""
        half = self.noise.half_width(level) * float(self.grid)
        return self.values - half, self.values + half

    def __repr__(self) -> str:
        what = f"{self.noise.kind} noise, sd {self.standard_deviation:.3g}" if self.noise.variance else "no noise"
        return f"Measurement({self.label!r}, {self.counts.size} cells, {what}, {self.origin})"


class Measurements(tuple[Measurement, ...]):
    """Several measurements under one domain, with the statement of what they cost.

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
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(m.clique for m in self if m.clique is not None)

    def table(self, clique: Iterable[str]) -> Measurement:
        """The measurement of exactly these columns."""
        wanted = self.domain.clique(clique)
        for m in self:
            if m.clique == wanted:
                return m
        raise InputError(f"no table of {wanted} was measured; there are {list(self.cliques)}")

    def plus(self, *others: Measurement) -> Measurements:
        """The same measurements with public tables or totals added. Another release has a statement of its own."""
        for m in others:
            if m.origin != "public":
                raise InputError(
                    f"{m.label!r} is not public knowledge but {m.origin!r}: it was paid for elsewhere, and the "
                    "statement here would be false. Keep the two releases apart, or measure both with one curator"
                )
        return Measurements((*self, *others), self.release)

    @property
    def is_release(self) -> bool:
        stated = self.release.get("origin", "release")
        return stated == "release" and all(m.origin in ("release", "public") for m in self)

    def save(self, path: str | Path) -> None:
        """Write a file that can be published. Exact and research values refuse."""
        for origin, label in ((m.origin, repr(m.label)) for m in self):
            if origin not in ("release", "public"):
                raise NotAReleaseError(
                    f"{label} carries no privacy guarantee (it is {origin}) and cannot be saved as a release"
                )
        if not self.is_release:
            raise NotAReleaseError("these measurements carry no privacy guarantee and cannot be saved as a release")
        header = {
            "kind": _KIND,
            "domain": self.domain.to_dict(),
            "peeked": {k: list(v) for k, v in self.domain.peeked.items()},
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
                }
                for m in self
            ],
        }
        write_archive(Path(path), header, {f"counts{i:05d}": np.asarray(m.counts) for i, m in enumerate(self)})

    @classmethod
    def load(cls, path: str | Path) -> Measurements:
        """Read a file written by :meth:`save`."""
        header, arrays = read_archive(Path(path))
        if header.get("kind") != _KIND:
            raise FileFormatError(f"{path} does not hold measurements; its kind is {header.get('kind')!r}")
        try:
            domain = Domain.from_dict(header["domain"])
            items = [
                Measurement(
                    entry["label"],
                    arrays[f"counts{i:05d}"],
                    Noise(entry["noise"], float(entry["scale"])),
                    domain.project(entry["columns"]),
                    clique=None if entry["clique"] is None else tuple(entry["clique"]),
                    grid=Fraction(entry["grid"]),
                    origin=entry["origin"],
                    cost=entry["cost"],
                )
                for i, entry in enumerate(header["measurements"])
            ]
            loaded = cls(items, header["release"])
            if not loaded.is_release:
                raise ValueError("it does not claim to be a release")
            return loaded
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
            raise FileFormatError(f"{path} is not a well-formed file of measurements: {error}") from None

    def __repr__(self) -> str:
        return "Measurements(\n" + "".join(f"  {m!r},\n" for m in self) + ")"
