"""Noisy tables that were made elsewhere, by mbi or OpenDP or by hand: what is said of them, their numbers on a grid.

Nothing here was drawn or paid for by us. What their noise protects is the claim of whoever made them; the words below
go with everything that is learned from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ._version import __version__
from .domain import Domain
from .errors import InputError
from .noise import Noise

CLAIMED: Final = "claimed"
"""The origin of such tables, and of models that follow from them."""
_FINE = 2**20  # parts of one, for numbers that are not whole: some millionth, far below any noise that protects
_LARGEST = 2**62  # in units of the grid


class Stated(Protocol):
    """A budget or a unit, as plain data."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class NoisyTable:
    """One noisy table as another program made it: ``NoisyTable(("age", "sex"), counts, "gaussian", 12.5)``.

    ``counts`` have an axis for each of ``columns``, in this order and with levels in the order of the schema; or are
    one flat list, the last column running fastest. ``scale`` is what :class:`discreet.noise.Noise` takes: σ of Gaussian
    noise, b of Laplace noise (whose standard deviation is b·√2), in the same unit as the counts.
    """

    columns: tuple[str, ...] | str
    counts: Any
    noise: Literal["laplace", "gaussian"]
    scale: float


def caution(source: str) -> str:
    """What every answer says that rests on such tables."""
    return (
        f"the noisy tables behind this were made elsewhere ({source}); their noise and their privacy are the claim of "
        "whoever made them, and discreet has verified neither"
    )


def statement(domain: Domain, budget: Stated, unit: Stated, source: str) -> dict[str, Any]:
    """What the release says: who is protected and how far, as claimed."""
    for value, name in ((budget, "budget"), (unit, "unit")):
        if not hasattr(value, "to_dict"):
            raise InputError(
                f"say what is claimed: {name}={'PureDP(1)' if name == 'budget' else 'PrivacyUnit()'}, or what it is"
            )
    said = " ".join(str(source).split())
    if not said or len(said) > 200:
        raise InputError("source says in a few words where the tables were made, as source='mbi 2.0, AIM'")
    whole = budget.to_dict()
    claim = {"origin": CLAIMED, "unit": unit.to_dict(), "budget": whole, "spent": whole, "steps": [], "source": said}
    found = {"found_privately": {k: list(v) for k, v in domain.found.items()}} if domain.found else {}
    peeked = {k: list(v) for k, v in domain.peeked.items()}
    return {**claim, "domain": domain.fingerprint, "peeked": peeked, **found, "version": __version__}


def as_tables(tables: Any, noise: str | None, scale: float | None) -> list[NoisyTable]:
    """A mapping from columns to counts, all with one noise, or tables that say theirs themselves."""
    if not isinstance(tables, Mapping):
        found = list(tables)
        if not all(isinstance(table, NoisyTable) for table in found):
            raise InputError("tables are {('age', 'sex'): counts, …}, or a list of discreet.claimed.NoisyTable")
        return found
    if noise is None or scale is None:
        raise InputError("say which noise the tables have: noise='gaussian' or 'laplace', and its scale")
    return [NoisyTable(columns, counts, noise, scale) for columns, counts in tables.items()]  # type: ignore[arg-type]


def of_mbi(measurements: Iterable[Any], noise: str) -> list[NoisyTable]:
    """What mbi calls LinearMeasurement, which knows its standard deviation but not its kind of noise."""
    found = []
    for m in measurements:
        query = getattr(m, "query", None)
        name = getattr(query, "__name__", type(query).__name__)
        if query is not None and name not in ("DatavectorQuery", "datavector"):
            raise InputError(
                f"the measurement of {tuple(m.clique)} is no whole table but another sum of its cells ({name}); only "
                "whole tables can be taken over"
            )
        scale = float(m.stddev) / (math.sqrt(2) if noise == "laplace" else 1)
        found.append(NoisyTable(tuple(m.clique), np.asarray(m.noisy_measurement), noise, scale))  # type: ignore[arg-type]
    return found


def parts_of(domain: Domain, tables: Iterable[NoisyTable]) -> list[dict[str, Any]]:
    """What a measurement of each table is made of; axes in the order of the domain."""
    out: list[dict[str, Any]] = []
    for table in tables:
        given = [table.columns] if isinstance(table.columns, str) else list(table.columns)
        columns = domain.clique(given)
        counts, grid = on_a_grid(table, tuple(domain[n].size for n in given))
        if not table.scale > 0:
            raise InputError(f"the noise of the table of {tuple(given)} has a scale above 0, got {table.scale!r}")
        noise = Noise(table.noise, float(table.scale) / float(grid))
        label = " × ".join(columns) or "total"
        before = sum(entry["clique"] == columns for entry in out)
        out.append(
            {
                "label": f"{label} ({before + 1})" if before else label,
                "counts": counts.transpose([given.index(n) for n in columns]),
                "noise": noise,
                "domain": domain.project(columns),
                "clique": columns,
                "grid": grid,
                "cost": {"kind": noise.kind, "scale": repr(noise.scale)},
            }
        )
    if not out:
        raise InputError("there are no tables to learn from")
    return out


def on_a_grid(table: NoisyTable, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], Fraction]:
    """Its counts as whole numbers of a grid, with an axis a column: whole ones as they are, others in millionths."""
    try:
        array = np.asarray(table.counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the noisy table of {table.columns} does not consist of numbers") from None
    if array.shape != shape and array.shape != (math.prod(shape),):
        raise InputError(
            f"the noisy table of {table.columns} has the shape {array.shape}; by the schema it must be {shape}, the "
            "levels for missing and other values included"
        )
    array = array.reshape(shape)
    if not np.all(np.isfinite(array)):
        raise InputError(f"the noisy table of {table.columns} holds numbers that are not finite")
    grid = Fraction(1) if np.all(array == np.rint(array)) else Fraction(1, _FINE)
    if np.abs(array).max(initial=0) / float(grid) > _LARGEST:
        raise InputError(f"the noisy table of {table.columns} holds numbers that are too large to be counts")
    return np.rint(array / float(grid)).astype(np.int64), grid
