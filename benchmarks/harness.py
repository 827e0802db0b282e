"""What benchmarks share: the form of a row, its verdict, and the measuring of times.

A benchmark is a module with ``run(quick, seed, data)`` that returns (or yields) rows::

    {"what": "joint KL", "setting": "alarm, eps=1", "ours": 0.27, "reference": 2.3, "reference_name": "uniform budgets",
     "better": "lower", "target": 0.32, "runs": 15}

``target`` is what was asked for, or None. Times are ratios to a reference measured in the same run. A row of another
than the default method says so in ``"method"``; one whose target is missed for a reason says it in ``"note"``.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.io.atomic import write_atomically

_REQUIRED = ("what", "setting", "ours", "better", "target")
_DIRECTIONS = ("lower", "higher")


def row(
    what: str,
    setting: str,
    ours: float,
    *,
    better: str = "lower",
    target: float | None = None,
    reference: float | None = None,
    reference_name: str = "",
    runs: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """One row, checked."""
    made = {"what": what, "setting": setting, "ours": ours, "reference": reference, "reference_name": reference_name,
            "better": better, "target": target, "runs": runs, **more}  # fmt: skip
    return checked_rows([made])[0]


def checked_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows as plain JSON values; a malformed one is an error that names it."""
    checked = []
    for number, given in enumerate(rows, start=1):
        plain = {key: _plain(value) for key, value in given.items()}
        for key in _REQUIRED:
            if key not in plain:
                raise InputError(f"row {number} of the benchmark ({plain.get('what', '?')}) has no {key!r}")
        if plain["better"] not in _DIRECTIONS:
            raise InputError(f"row {number} ({plain['what']}): better is 'lower' or 'higher', got {plain['better']!r}")
        checked.append(plain)
    return checked


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def verdict(row: Mapping[str, Any]) -> str:
    """``met``, ``missed``, or a dash when nothing was asked for. A result that is no number misses its target."""
    target, ours = row.get("target"), row.get("ours")
    if target is None:
        return "—"
    if ours is None:
        return "missed"
    return "met" if (ours <= target if row["better"] == "lower" else ours >= target) else "missed"


def display(row: Mapping[str, Any]) -> list[str]:
    """The cells that the command line prints."""
    sign = {"lower": "≤", "higher": "≥"}[row["better"]]
    target = "" if row.get("target") is None else f"{sign} {_number(row['target'])}"
    remark = f" ({row['note']})" if row.get("note") else ""
    return [
        str(row["what"]),
        str(row["setting"]),
        str(row.get("method") or ""),
        _number(row["ours"]),
        _number(row.get("reference")),
        str(row.get("reference_name") or ""),
        target,
        verdict(row) + remark,
    ]


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, int | float) else str(value)


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    write_atomically(path, [json.dumps(list(rows), indent=1, ensure_ascii=False).encode() + b"\n"])


# -- times -------------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object], *, repeat: int = 3) -> float:
    """The least time of several runs: what the work costs when nothing disturbs it."""
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def ratio(ours: Callable[[], object], reference: Callable[[], object], *, repeat: int = 5) -> float:
    """Median over rounds of our time by the reference's, taken in turns so that a busy machine slows both."""
    return statistics.median(seconds(ours, repeat=1) / seconds(reference, repeat=1) for _ in range(repeat))


class Resumable:
    """Results of parts that were finished before, kept in a file, so that a long run can be taken up again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.done: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def get(self, key: str, work: Callable[[], Any]) -> Any:
        """The result for this key, computed once. It must be JSON."""
        if key not in self.done:
            self.done[key] = work()
            if self.path is not None:
                write_atomically(self.path, [json.dumps(self.done).encode()])
        return self.done[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.done)
