"""Why a learner that finds its graph measured the tables that it did, and what each cost: from released numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import counted
from ..learn.error_curve import mean_absolute
from ..measurement import Measurements
from .spending import paid_tables

_WORDS = {
    "together": "how its columns go together, and nothing of what each has alone, which other tables tell",
    "in groups": "levels with few records were counted together with others",
}
"""Words at the end of names of tables or columns that need some explanation."""
_HEADINGS = ("table", "measured in", "model was off by", "its noise", "of the budget")


@dataclass(frozen=True)
class Reason:
    """One table that was measured.

    ``distance``: by how many records the model so far was off, as released; None where no such number was, as the table
    is always measured or was selected without one. ``noise``: its price, by how many records its own noise is expected
    to be off. ``part``: of the budget. ``deviation``: of the noise in a cell.
    """

    step: str
    table: str
    distance: int | None
    noise: float
    part: float
    deviation: float

    def cells(self) -> list[str]:
        """In words, under :data:`_HEADINGS`."""
        off = "" if self.distance is None else f"{max(self.distance, 0):,}"
        return [self.table, self.step, off, self.noise_in_words, f"{100 * self.part:.2g} %"]

    @property
    def noise_in_words(self) -> str:
        return f"{self.noise:,.0f}" if self.noise >= 1000 else f"{self.noise:.3g}"


def reasons(card: Mapping[str, Any], measurements: Measurements | None) -> list[Reason]:
    """Of every noisy table, in the order in which they were measured; none where nothing was chosen."""
    if measurements is None or not card.get("tables"):
        return []
    said = _distances(measurements.found.get("chosen_by"))
    out = []
    for step, m, part in paid_tables(card, measurements):
        if not m.told_of:  # the number of records
            continue
        here = bool(said) and said[0][0] == m.told_of
        distance = said.pop(0)[1] if here else None
        error = m.counts.size * mean_absolute(m.noise) * float(m.grid)
        out.append(Reason(step, m.label, distance, round(error, 1), round(part, 6), round(m.standard_deviation, 3)))
    return out


def shown(every: Iterable[Reason], most: int) -> tuple[list[Reason], str]:
    """Those of several columns, largest parts first, and a word on the others and on odd words among their names."""
    listed = list(every)
    larger = [r for r in listed if " × " in r.table]
    few = sorted(larger, key=lambda r: -r.part)[:most]
    parts = [f"{counted(len(larger) - len(few), 'more table')}" if len(larger) > len(few) else ""]
    parts.append(
        f"{counted(len(listed) - len(larger), 'table')} of single columns" if len(listed) > len(larger) else ""
    )
    rest = " and ".join(part for part in parts if part)
    said = [f"Besides: {rest}."] if rest else []
    said += [f"“{w}”: {means}." for w, means in _WORDS.items() if any(f" {w} " in f"{r.table} " for r in few)]
    return few, " ".join(said)


def in_columns(few: Iterable[Reason]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows, without a column that is empty in every row: under pure DP no distance is released."""
    rows = [reason.cells() for reason in few]
    kept = [i for i in range(len(_HEADINGS)) if any(row[i] for row in rows)]
    return [_HEADINGS[i] for i in kept], [[row[i] for i in kept] for row in rows]


def as_data(every: Iterable[Reason]) -> list[dict[str, Any]]:
    return [asdict(reason) for reason in every]


def _distances(found: Any) -> list[tuple[tuple[str, ...], int | None]]:
    """As the rounds left them; a file may hold anything."""
    out: list[tuple[tuple[str, ...], int | None]] = []
    for entry in found if isinstance(found, list) else ():
        if not (isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], list | tuple)):
            return []
        distance = entry[1] if type(entry[1]) is int else None
        out.append((tuple(str(n) for n in entry[0]), distance))
    return out
