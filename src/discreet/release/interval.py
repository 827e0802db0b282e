"""An answer with its ±: how it is written, and which part of the truth such answers cover."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import markup
from ..errors import DiscreetError
from ..frames import frame_of, free_name
from ..models.answer import Answer, Assignment

Array = NDArray[np.float64]
ANYTHING = "anything"


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper ends around an estimate, entry by entry, that cover the target with probability ``level``.

    ``answer`` is the model's labelled answer, where the question was one in words; ``note`` says what to beware of.
    ``anything`` are probabilities of which nothing is known: their intervals take as much of [0, 1] as the level says.
    ``places`` are the decimals that all numbers of the column have, where the answer is one of these numbers.
    """

    estimate: Array
    lower: Array
    upper: Array
    level: float
    answer: Answer | None = None
    note: str = ""
    anything: NDArray[np.bool_] | None = None
    places: int | None = None

    @property
    def half_width(self) -> Array:
        """The ± around the estimate: how far the farther end is (an end at 0 or 1 may be nearer)."""
        return np.asarray(np.maximum(self.upper - self.estimate, self.estimate - self.lower))

    def widened(self, more: Array) -> Interval:
        """With something that moves the target independently of the noise."""
        lower = self.estimate - np.hypot(self.estimate - self.lower, more)
        return replace(self, lower=lower, upper=self.estimate + np.hypot(self.upper - self.estimate, more))

    def texts(self) -> list[tuple[str, str]]:
        """Of each entry the estimate and its ±, with the digits that the noise leaves."""
        pairs = zip(self.estimate.reshape(-1), self.half_width.reshape(-1), strict=True)
        out = [
            (rounded(p, d), rounded(self._up(h, d), d) if h > 0 else "0") for p, h in pairs for d in [self._digits(h)]
        ]
        unknown = np.isnan(self.half_width)  # a mean of nobody, under some noise
        unknown |= False if self.anything is None else self.anything
        return [(p, ANYTHING if u else h) for (p, h), u in zip(out, unknown.reshape(-1), strict=True)]

    def _digits(self, half_width: float) -> int:
        return digits(half_width) if self.places is None else min(digits(half_width), self.places)

    def _up(self, half_width: float, places: int) -> float:
        """Where the column has fewer decimals than the noise leaves, the ± is rounded up."""
        return half_width if places == digits(half_width) else math.ceil(half_width * 10**places - 1e-6) / 10**places

    def covers(self, target: Any) -> NDArray[np.bool_]:
        return np.asarray((self.lower <= target) & (target <= self.upper))

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each cell: its labels, the estimate, and both ends."""
        names = () if self.answer is None else self.answer.names
        cells = [labels for labels, _ in self.answer] if self.answer is not None else [()] * self.estimate.size
        columns: dict[str, list[Any]] = {name: [c[i] for c in cells] for i, name in enumerate(names)}
        for title, values in (("estimate", self.estimate), ("lower", self.lower), ("upper", self.upper)):
            columns[free_name(title, list(names))] = np.asarray(values).reshape(-1).tolist()
        return frame_of(columns, backend)

    def __repr__(self) -> str:
        note = f"\n  beware: {self.note}" if self.note else ""
        if self.answer is not None:
            return self._labelled(self.answer) + note

        ends = zip(*(np.asarray(x).reshape(-1) for x in (self.estimate, self.lower, self.upper)), strict=True)
        rows = [
            f"{rounded(x, d)} ({rounded(low, d)} to {rounded(high, d)})"
            for (x, low, high), d in zip(ends, map(self._digits, self.half_width.reshape(-1)), strict=True)
        ]
        most = 20
        more = f", … and {len(rows) - most} more" if len(rows) > most else ""
        return f"Interval({', '.join(rows[:most])}{more}, at {self.level:.0%}){note}"

    def _rows(self, labels: Iterable[Sequence[str]]) -> list[list[str]]:
        """Of each entry its labels, the estimate and both ends, with the digits that the noise leaves."""
        ends = zip(*(np.asarray(x).reshape(-1) for x in (self.estimate, self.lower, self.upper)), strict=True)
        places = map(self._digits, self.half_width.reshape(-1))
        return [[*own, *(rounded(x, d) for x in row)] for own, row, d in zip(labels, ends, places, strict=True)]

    def _repr_html_(self) -> str:
        about = f"{self.level:.0%} intervals for privacy noise"
        beware = f"beware: {self.note}" if self.note else ""
        if (answer := self.answer) is None:
            rows = self._rows([()] * self.estimate.size)
            return markup.table(about, ["estimate", "from", "to"], rows, [beware], labels=0)
        head = [*answer.names, answer.figure, "from", "to"]
        rows = self._rows([labels for labels, _ in answer])
        notes = [answer.remark, beware]
        return markup.table(f"{answer.title}, {about}", head, rows, notes, labels=len(answer.names))

    def _labelled(self, answer: Answer, most: int = 40) -> str:
        rows = self._rows([labels for labels, _ in answer])
        head = [*answer.names, answer.figure, "from", "to"]
        width = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [
            "  " + "  ".join(c.ljust(w) if i < len(answer.names) else c.rjust(w) for i, (c, w) in enumerate(cells))
            for cells in (list(zip(row, width, strict=True)) for row in [head, *rows[:most]])
        ]
        more = [f"  … and {len(rows) - most} more; to_frame() has them all"] if len(rows) > most else []
        title = f"{answer.title}, {self.level:.0%} intervals for privacy noise"
        return "\n".join([title, *lines, *more, *([f"  {answer.remark}"] if answer.remark else [])])


def digits(half_width: float, fewest: int = -12) -> int:
    """Decimal places up to the second digit of the noise, below 0 for tens and hundreds: what would stand behind them
    is noise."""
    return min(max(1 - math.floor(math.log10(half_width)), fewest), 12) if half_width > 0 else 4


def rounded(number: float, places: int) -> str:
    """A number with so many decimal places; with -1 to tens, -2 to hundreds."""
    return f"{round(number, places) + 0.0 if math.isfinite(number) else number:,.{max(places, 0)}f}"


@dataclass(frozen=True)
class Survival:
    """The most probable values, and how often fresh noise would leave them as they are."""

    assignment: Assignment
    survival: float
    note: str = ""

    def _repr_html_(self) -> str:
        beware = f"beware: {self.note}" if self.note else ""
        survives = f"survives fresh noise with probability {self.survival:.2f}"
        return self.assignment._repr_html_() + markup.table(survives, notes=[beware])

    def __repr__(self) -> str:
        note = f"\n  beware: {self.note}" if self.note else ""
        return f"{self.assignment!r}\n  survives fresh noise with probability {self.survival:.2f}{note}"


def coverage(intervals: Iterable[Interval], targets: Iterable[Any]) -> float:
    """The part of all entries of the targets that their intervals cover: for tests and benchmarks."""
    hits = [i.covers(np.asarray(t)).reshape(-1) for i, t in zip(intervals, targets, strict=True)]
    if not hits:
        raise DiscreetError("no intervals to judge")
    return float(np.concatenate(hits).mean())
