"""The rows of a plan: each table or step with its share of the budget, its noise and its expected error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..domain import Clique
from ..errors import counted
from ..measurement import Noise
from ..privacy.budget import Budget, PureDP
from ..privacy.calibration import SelectionChoice, plan_selection
from .error_curve import mean_absolute

HOPELESS = 2.0
"""Expected L1 distance from which on a table tells next to nothing: no two distributions are further apart."""
SECONDS_A_DRAW, LONG = 1e-5, 5.0
"""About how long the noise of one cell takes, and from how long on that is worth a word."""
_SELECTIONS = {"exponential": "exponential mechanism", "noisy-max": "report noisy max"}


@dataclass(frozen=True)
class PlannedTable:
    """One row. ``share`` is its part of the whole budget, and ``why`` explains it; the noise is in units of ``grid``.

    What is settled on the way has no cells yet: ``mechanism`` then says how it will be protected.
    """

    clique: Clique
    cells: int
    share: float
    noise: Noise
    why: str = ""
    share_range: tuple[float, float] | None = None  # when the share depends on a first private stage
    name: str = ""
    mechanism: str = ""
    grid: Fraction = Fraction(1)

    @property
    def label(self) -> str:
        return self.name or " × ".join(self.clique) or "number of records"

    @property
    def how(self) -> str:
        """How it is protected, in a word or two."""
        return self.mechanism or self.noise.kind

    @property
    def standard_deviation(self) -> float:
        """Of the noise in a cell, in records."""
        return self.noise.standard_deviation * float(self.grid)

    @property
    def expected_error(self) -> float:
        """Expected sum of |noise| over the cells, in records."""
        return self.cells * mean_absolute(self.noise) * float(self.grid)

    def relative_error(self, size: float) -> float:
        """Expected L1 distance between the noisy and the exact distribution, before anything is done about it."""
        return self.expected_error / size

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": list(self.clique),
            "label": self.label,
            "cells": self.cells,
            "share": self.share,
            "share_range": None if self.share_range is None else list(self.share_range),
            "noise": self.how,
            "scale": self.noise.scale * float(self.grid) if self.cells else None,
            "standard_deviation": self.standard_deviation if self.cells else None,
            "expected_error": self.expected_error if self.cells else None,
            "why": self.why,
        }


def settled_later(name: str, share: float, *mechanisms: str) -> PlannedTable:
    """What will be asked on the way, selections or sums of what was found: how it is protected is known before, how
    many numbers come out, and hence the noise of each, is not."""
    return PlannedTable((), 0, share, Noise("none"), name=name, mechanism=", then ".join(mechanisms))


def selecting(budget: Budget, mechanism: SelectionChoice = "auto") -> str:
    """The mechanism that a curator selects with, in words."""
    kind = plan_selection(1, budget, mechanism)[0].kind
    return _SELECTIONS.get(kind, kind)


def measuring(budget: Budget) -> str:
    """The noise that a curator may draw for sums which are not known yet: with Gaussian noise to choose, their number
    decides."""
    return "laplace" if isinstance(budget, PureDP) else "laplace or gaussian"


# -- as text -----------------------------------------------------------------------------------------------------------


def steps_text(steps: Iterable[tuple[str, float, Sequence[PlannedTable]]], size: float | None) -> str:
    """A line for each step, by the name that ledger and card give it, with its share; its tables, where it has some
    that are known before, are indented. Errors are relative to the number of records where one is known."""
    return _aligned(step_lines(steps, size))


def step_lines(steps: Iterable[tuple[str, float, Sequence[PlannedTable]]], size: float | None) -> list[list[str]]:
    """The cells of :func:`steps_text`, headings first."""
    error = "expected |error|, records" if size is None else f"expected L1 at n ≈ {size:g}"
    lines = [["step", "cells", "share", "noise", "standard deviation", error]]
    for name, share, rows in steps:
        if [row.label for row in rows] == [name]:
            lines.append(_cells(name, rows[0], size))
        else:
            lines.append([name, "", _percent(share), "", "", ""])
            lines += [_cells(f"  {row.label}", row, size) for row in rows]
    return lines


def _cells(label: str, row: PlannedTable, size: float | None) -> list[str]:
    low, high = row.share_range or (0.0, row.share)
    share = _percent(high) if row.share_range is None else f"{100 * low:.2g}–{100 * high:.2g} %"
    if not row.cells:  # none are known before of what is settled on the way
        return [label, "—", share, row.how, "—", "—"]
    error = row.expected_error if size is None else row.relative_error(size)
    return [label, str(row.cells), share, row.how, deviation_text(row.standard_deviation), f"{error:.3g}"]


def deviation_text(deviation: float) -> str:
    """Noise has a deviation, however small: it is never said to be zero."""
    return f"{deviation:.3g}" if deviation >= 1e-9 else "below 1e-9"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(_pad(cell, w, i) for i, (cell, w) in enumerate(zip(r, widths, strict=True))).rstrip() for r in rows
    )


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column in (0, 3) else cell.rjust(width)


# -- words of caution --------------------------------------------------------------------------------------------------


def noisy(rows: Iterable[PlannedTable], size: float | None) -> tuple[PlannedTable, ...]:
    """Tables whose average cell is below one standard deviation of its noise; empty without a size."""
    return tuple(t for t in rows if size is not None and size < t.cells * t.standard_deviation)


def hopeless(rows: Iterable[PlannedTable], size: float | None) -> tuple[PlannedTable, ...]:
    """Tables with an expected L1 error of 2 or more; empty without a size."""
    return tuple(t for t in rows if size is not None and t.relative_error(size) >= HOPELESS)


def noise_only_below(rows: Iterable[PlannedTable]) -> float:
    """With fewer records than this, noise outweighs every table."""
    return min((t.expected_error / HOPELESS for t in rows if t.cells), default=0.0)


def advice(tables: Iterable[PlannedTable]) -> tuple[str, ...]:
    """What to do about tables that noise will dominate."""
    names = [t.label for t in tables]
    if not names:
        return ()
    return (
        f"Noise will dominate {_some(names)}: rows with few records will be drawn towards what is typical. Fewer "
        "parents, coarser columns, a larger budget or, with many tables, an (ε, δ) budget help.",
    )


def cautions(
    rows: Sequence[PlannedTable], size: float | None, capped: Iterable[Clique] = (), way_out: str = ""
) -> tuple[str, ...]:
    """Notes on what noise will dominate. ``capped``: tables whose share was limited because they are too large for the
    data; ``way_out``: what else can be done about these."""
    lost, least = hopeless(rows, size), noise_only_below(rows)
    out: list[str] = []
    if size is None and rows:
        out.append(f"With fewer than some {least:.2g} records this would be noise only.")
    elif lost and len(lost) == len(rows):
        out.append(
            f"NOISE ONLY at n ≈ {size:g}: in every table the expected error is larger than the table itself (L1 of 2 "
            f"or more). The model would say next to nothing about the data. It takes some {least:.2g} records, a "
            "larger budget, or fewer and smaller tables."
        )
    elif lost:
        out.append(_about_hopeless(rows, lost, set(capped), way_out))
    rest = [t for t in noisy(rows, size) if t not in lost]
    out.extend(advice(rest) if len(lost) < len(rows) else ())
    cells = sum(t.cells for t in rows)
    if SECONDS_A_DRAW * cells > LONG:
        out.append(f"Drawing noise for {counted(cells, 'cell')} takes some {SECONDS_A_DRAW * cells:.0f} seconds.")
    return tuple(out)


def _about_hopeless(
    rows: Sequence[PlannedTable], lost: Sequence[PlannedTable], capped: set[Clique], way_out: str
) -> str:
    """What is too large for the data, and who pays for it."""
    one, share = len(lost) == 1, sum(t.share for t in lost)
    text = (
        f"Too large for the data: {_some([t.label for t in lost])} (expected L1 error of 2 or more: cell by cell "
        f"{'it tells' if one else 'they tell'} next to nothing)."
    )
    if share > 1.5 * len(lost) / len(rows):
        text += f" {'It takes' if one else 'They take'} {100 * share:.2g} % of the budget from "
        limited = any(t.clique in capped for t in lost)
        text += counted(len(rows) - len(lost), "other table") + (", although its share is limited." if limited else ".")
    return text + (f" {way_out}" if way_out else "")


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
