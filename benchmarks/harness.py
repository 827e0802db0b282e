"""What benchmarks share: the form of a row, its verdict, and the measuring of times.

A benchmark is a module with ``run(quick, seed, data)`` that returns (or yields) rows::

    {"what": "joint KL", "setting": "alarm, eps=1", "ours": 0.27, "reference": 2.3, "reference_name": "uniform budgets",
     "better": "lower", "target": 0.32, "runs": 15}

``target`` is what was asked for, or None. Times are ratios to a reference measured in the same run. A row of another
than the default method says so in ``"method"``; one whose target is missed for a reason says it in ``"note"``.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet import __version__
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


Clock = Callable[[], float]
"""``time.process_time`` where one thread does the work: on a busy machine only that says what the work costs."""


def seconds(work: Callable[[], object], *, repeat: int = 3, clock: Clock = time.perf_counter) -> float:
    """The least time of several runs: what the work costs when nothing disturbs it."""
    times = []
    for _ in range(repeat):
        begun = clock()
        work()
        times.append(clock() - begun)
    return min(times)


def ratio(
    ours: Callable[[], object], reference: Callable[[], object], *, repeat: int = 5, clock: Clock = time.perf_counter
) -> float:
    """Median over rounds of our time by the reference's, taken in turns so that a busy machine slows both."""
    return statistics.median(
        seconds(ours, repeat=1, clock=clock) / seconds(reference, repeat=1, clock=clock) for _ in range(repeat)
    )


# -- long runs ---------------------------------------------------------------------------------------------------------


class Checkpoint:
    """Finished parts of a long run, one JSON line each: an interrupted run is taken up where it stopped.

    ::

        def run(quick=False, seed=0, data=None):
            with Checkpoint.of("directed", seed, quick, data) as kept:   # a quick run keeps nothing
                for name in NETWORKS:
                    found = kept.get(f"{name}, eps=1", lambda name=name: measure(name))   # computed once; must be JSON
                    yield row(...)

    A line is appended and flushed as soon as its part is done; a line that a crash cut short is computed again. When
    the ``with`` block ends without an error the file is removed: the next run measures afresh. The first line says what
    the file is of, and another benchmark, seed or version refuses it.
    """

    def __init__(self, path: Path | None, **of: Any) -> None:
        self.path = path
        self.done: dict[str, Any] = {}
        self._of = {"of": {**of, "version": __version__}}
        if path is not None and path.exists():
            self._read(path)

    @classmethod
    def of(cls, name: str, seed: int, quick: bool, data: Path | None) -> Checkpoint:
        """The file of a full run, ``NAME-SEED.checkpoint.jsonl`` in the folder ``data`` or the current one."""
        path = None if quick else (data or Path.cwd()) / f"{name}-{seed}.checkpoint.jsonl"
        return cls(path, benchmark=name, seed=seed)

    def get(self, key: str, work: Callable[[], Any]) -> Any:
        """The result for this key, computed once. It must be JSON."""
        if key not in self.done:
            result = work()
            self._append({"key": key, "result": result})
            self.done[key] = result
        return self.done[key]

    def _append(self, line: dict[str, Any]) -> None:
        if self.path is not None:
            first = [] if self.path.exists() else [self._of]
            with self.path.open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps(each) + "\n" for each in (*first, line))
                stream.flush()
                os.fsync(stream.fileno())

    def _read(self, path: Path) -> None:
        *whole, cut = path.read_text(encoding="utf-8").split("\n")  # every complete line ends in a line break
        if not whole and not json.dumps(self._of).startswith(cut):
            whole = [cut]  # not the beginning of one of ours
        try:
            first, *lines = [json.loads(line) for line in whole] or [self._of]
            self.done = {line["key"]: line["result"] for line in lines}
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path} is no checkpoint of a benchmark; remove it to begin afresh") from None
        if first != self._of:
            raise InputError(f"{path} is of another run ({first} instead of {self._of}); remove it to begin afresh")
        if not whole:
            path.unlink()
        elif cut:
            write_atomically(path, [line.encode() + b"\n" for line in whole])

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None and self.path is not None:
            self.path.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self.done)


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """Products of small matrices are many times slower when several threads meet other work."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)  # type: ignore[no-any-return]
