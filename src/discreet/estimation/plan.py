"""What a learner will ask, before a row is read: each table, its share of the budget, its noise, its error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..domain import Clique
from ..measurement import Noise
from ..privacy.budget import Budget
from ..privacy.unit import PrivacyUnit


@dataclass(frozen=True)
class PlannedTable:
    """One table that will be measured. ``share`` is its part of the whole budget; ``why`` explains the share."""

    clique: Clique
    cells: int
    share: float
    noise: Noise
    why: str = ""
    share_range: tuple[float, float] | None = None  # when the share depends on a first private stage

    @property
    def label(self) -> str:
        return " × ".join(self.clique) or "number of records"

    @property
    def expected_error(self) -> float:
        """Expected sum of |noise| over the cells, in records."""
        return self.cells * mean_absolute(self.noise)

    def relative_error(self, size: float) -> float:
        """Expected L1 distance between the noisy and the exact distribution, before anything is done about it."""
        return self.expected_error / size


def mean_absolute(noise: Noise) -> float:
    """E|noise|: √(2/π)·σ for Gaussian noise, σ/√2 for Laplace noise, but for the effect of whole numbers."""
    return noise.standard_deviation * (math.sqrt(2 / math.pi) if noise.kind == "gaussian" else math.sqrt(0.5))


@dataclass(frozen=True)
class Plan:
    """All tables of a learner, in the order in which they are asked. Printable; made from public things only."""

    method: str
    unit: PrivacyUnit
    budget: Budget
    tables: tuple[PlannedTable, ...]
    notes: tuple[str, ...] = ()
    approximate_size: float | None = None

    @property
    def cells(self) -> int:
        return sum(t.cells for t in self.tables)

    @property
    def expected_error(self) -> float:
        return sum(t.expected_error for t in self.tables)

    @property
    def noisy(self) -> tuple[PlannedTable, ...]:
        """Tables whose average cell is below one standard deviation of its noise; empty without an approximate size."""
        n = self.approximate_size
        return tuple(t for t in self.tables if n is not None and n / t.cells < t.noise.standard_deviation)

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "unit": self.unit.to_dict(),
            "budget": self.budget.to_dict(),
            "approximate_size": self.approximate_size,
            "tables": [
                {
                    "columns": list(t.clique),
                    "cells": t.cells,
                    "share": t.share,
                    "share_range": None if t.share_range is None else list(t.share_range),
                    "noise": t.noise.kind,
                    "standard_deviation": t.noise.standard_deviation,
                    "expected_error": t.expected_error,
                    "why": t.why,
                }
                for t in self.tables
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        head = ["table", "cells", "share", "noise", "sd a cell", "error"]
        n = self.approximate_size
        head[-1] = "expected |error|, records" if n is None else f"expected L1 at n ≈ {n:g}"
        rows = [
            [
                t.label,
                str(t.cells),
                _percent(t),
                t.noise.kind,
                f"{t.noise.standard_deviation:.3g}",
                f"{t.expected_error if n is None else t.relative_error(n):.3g}",
            ]
            for t in self.tables
        ]
        text = f"{self.method}: {len(rows)} tables, {self.cells} cells; {self.budget}; protects {self.unit}\n"
        text += _aligned([head, *rows])
        reasons = list(dict.fromkeys(t.why for t in self.tables if t.why))
        return text + "".join(f"\n{line}" for line in (*reasons, *self.notes))


def _percent(table: PlannedTable) -> str:
    if table.share_range is not None:
        return f"{100 * table.share_range[0]:.2g}–{100 * table.share_range[1]:.2g} %"
    return f"{100 * table.share:.3g} %"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(_pad(cell, w, i) for i, (cell, w) in enumerate(zip(r, widths, strict=True))) for r in rows
    )


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column in (0, 3) else cell.rjust(width)


def advice(tables: Iterable[PlannedTable]) -> tuple[str, ...]:
    """What to do about tables that noise will dominate."""
    names = [t.label for t in tables]
    if not names:
        return ()
    shown = "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"Noise will dominate {shown}: rows with few records will be drawn towards what is typical. Fewer parents, "
        "coarser columns, a larger budget or, with many tables, an (ε, δ) budget help.",
    )
