"""What a learner will ask, before a row is read: each table, its share of the budget, its noise, its error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..domain import Clique
from ..errors import counted
from ..measurement import Noise
from ..privacy.budget import Budget
from ..privacy.unit import PrivacyUnit
from .checks import checked_size
from .error_curve import ErrorCurve, error_curve, mean_absolute

HOPELESS = 2.0
"""Expected L1 distance from which on a table tells next to nothing: no two distributions are further apart."""
SECONDS_A_DRAW, LONG = 1e-5, 5.0
"""About how long the noise of one cell takes, and from how long on that is worth a word."""


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
    def how(self) -> str:
        """How it is protected, in a word or two."""
        return self.noise.kind

    @property
    def expected_error(self) -> float:
        """Expected sum of |noise| over the cells, in records."""
        return self.cells * mean_absolute(self.noise)

    def relative_error(self, size: float) -> float:
        """Expected L1 distance between the noisy and the exact distribution, before anything is done about it."""
        return self.expected_error / size


@dataclass(frozen=True)
class Plan:
    """All tables of a learner, in the order in which they are asked. Printable; made from public things only."""

    method: str
    unit: PrivacyUnit
    budget: Budget
    tables: tuple[PlannedTable, ...]
    notes: tuple[str, ...] = ()
    approximate_size: float | None = None

    def __post_init__(self) -> None:
        checked_size(self.approximate_size)

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
        return tuple(t for t in self.tables if n is not None and n < t.cells * t.noise.standard_deviation)

    @property
    def hopeless(self) -> tuple[PlannedTable, ...]:
        """Tables with an expected L1 error of 2 or more; empty without an approximate size."""
        n = self.approximate_size
        return tuple(t for t in self.tables if n is not None and t.relative_error(n) >= HOPELESS)

    @property
    def noise_only_below(self) -> float:
        """With fewer records than this, noise outweighs every table."""
        return min((t.expected_error / HOPELESS for t in self.tables if t.cells), default=0.0)

    def with_cautions(self, capped: Iterable[Clique] = (), way_out: str = "") -> Plan:
        """The same plan with notes on what noise will dominate. ``capped``: tables whose share was limited because they
        are too large for the data; ``way_out``: what else can be done about these."""
        return replace(self, notes=(*self.notes, *_cautions(self, set(capped), way_out)))

    def curve(self, amounts: Sequence[float] | None = None) -> ErrorCurve:
        """Expected error at other totals (ε, or ρ): ``print(plan.curve())``, ``plan.curve([0.5, 1, 2]).plot()``."""
        return error_curve([(t.cells, t.noise) for t in self.tables], self.budget, self.approximate_size, amounts)

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
                    "noise": t.how,
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
                str(t.cells or "—"),  # none are known before of what is settled on the way
                _percent(t),
                t.how,
                f"{t.noise.standard_deviation:.3g}" if t.cells else "—",
                f"{t.expected_error if n is None else t.relative_error(n):.3g}" if t.cells else "—",
            ]
            for t in self.tables
        ]
        size = f"{counted(len(rows), 'table')}, {counted(self.cells, 'cell')}"
        text = f"{self.method}: {size + '; ' if rows else ''}{self.budget}; protects {self.unit}"
        text += "\n" + _aligned([head, *rows]) if rows else ""
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
    return (
        f"Noise will dominate {_some(names)}: rows with few records will be drawn towards what is typical. Fewer "
        "parents, coarser columns, a larger budget or, with many tables, an (ε, δ) budget help.",
    )


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _cautions(plan: Plan, capped: set[Clique], way_out: str) -> tuple[str, ...]:
    n, hopeless = plan.approximate_size, plan.hopeless
    out: list[str] = []
    if n is None and plan.tables:
        out.append(f"With fewer than some {plan.noise_only_below:.2g} records this would be noise only.")
    elif hopeless and len(hopeless) == len(plan.tables):
        out.append(
            f"NOISE ONLY at n ≈ {n:g}: in every table the expected error is larger than the table itself (L1 of 2 or "
            f"more). The model would say next to nothing about the data. It takes some {plan.noise_only_below:.2g} "
            "records, a larger budget, or fewer and smaller tables."
        )
    elif hopeless:
        out.extend(_about_hopeless(plan, capped, way_out))
    rest = [t for t in plan.noisy if t not in hopeless]
    out.extend(advice(rest) if len(hopeless) < len(plan.tables) else ())
    seconds = SECONDS_A_DRAW * plan.cells
    if seconds > LONG:
        out.append(f"Drawing noise for {counted(plan.cells, 'cell')} takes some {seconds:.0f} seconds.")
    return tuple(out)


def _about_hopeless(plan: Plan, capped: set[Clique], way_out: str) -> list[str]:
    """What is too large for the data, and who pays for it."""
    hopeless = plan.hopeless
    one, share = len(hopeless) == 1, sum(t.share for t in hopeless)
    others = len(plan.tables) - len(hopeless)
    text = (
        f"Too large for the data: {_some([t.label for t in hopeless])} (expected L1 error of 2 or more: cell by cell "
        f"{'it tells' if one else 'they tell'} next to nothing)."
    )
    if share > 1.5 * len(hopeless) / len(plan.tables):
        text += f" {'It takes' if one else 'They take'} {100 * share:.2g} % of the budget from "
        limited = any(t.clique in capped for t in hopeless)
        text += counted(others, "other table") + (", although its share is limited." if limited else ".")
    return [text + (f" {way_out}" if way_out else "")]
