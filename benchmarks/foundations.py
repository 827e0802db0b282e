"""The ground floor: counting, memory, noise, the ledger, encoding. Times are ratios to what one would write by hand.

Rows with a unit in ``what`` (µs, ms, s) are the machine's own and have no reference.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ratio, row, seconds
from discreet.domain import Domain
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.unit import PrivacyUnit, Sensitivity
from discreet.tables.encode import encode
from discreet.tables.memory import MemoryTable

Row = dict[str, Any]
COLUMNS = 20
SHAPES: dict[str, tuple[int, ...]] = {
    "5 levels": (5,) * COLUMNS,
    "2 levels": (2,) * COLUMNS,
    "2 to 21 levels": tuple(range(2, 2 + COLUMNS)),
    "100 levels": (100,) * COLUMNS,
}


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. Nothing is read from ``data``: the rows are random, as their values do not change the times."""
    rows, runs = (1_000_000, 5) if quick else (1_000_000, 15)
    for name, shape in list(SHAPES.items())[: 2 if quick else None]:
        table, columns = _random_table(shape, rows, seed)
        yield from _counting(name, table, columns, shape, runs)
        if name == "5 levels":
            yield from _memory(table, columns, shape)
    yield from _noise(20_000 if quick else 200_000)
    yield from _ledger(60 if quick else 300)
    yield from _encoding(100_000 if quick else 1_000_000, seed)


# -- counting --------------------------------------------------------------------------------------------------------


def _random_table(shape: Sequence[int], rows: int, seed: int) -> tuple[MemoryTable, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, k, rows, dtype=np.uint8) for k in shape]
    domain = Domain.of({f"c{i:02d}": k for i, k in enumerate(shape)})
    return encode(dict(zip(domain.names, columns, strict=True)), domain), columns


def _by_hand(columns: Sequence[np.ndarray], shape: Sequence[int]) -> Callable[[], list[np.ndarray]]:
    """One bincount a pair, on the columns as they are given."""

    def count() -> list[np.ndarray]:
        return [
            np.bincount(columns[i].astype(np.int64, copy=False) * shape[j] + columns[j], minlength=shape[i] * shape[j])
            for i, j in itertools.combinations(range(len(shape)), 2)
        ]

    return count


def _counting(
    name: str, table: MemoryTable, columns: Sequence[np.ndarray], shape: Sequence[int], runs: int
) -> Iterator[Row]:
    pairs = list(itertools.combinations(table.domain.names, 2))
    wide = [c.astype(np.int64) for c in columns]
    ours, by_hand, by_hand_wide = lambda: table.count_rows(pairs), _by_hand(columns, shape), _by_hand(wide, shape)
    for mine, theirs in zip(ours(), by_hand(), strict=True):
        if not np.array_equal(mine.reshape(-1), theirs):
            raise AssertionError("the counts differ")
    setting = f"all {len(pairs)} pairs of {len(shape)} columns, {name}, {len(columns[0]):,} rows"
    yield row("counting time, ratio", setting, ratio(ours, by_hand_wide, repeat=runs), target=1.5, reference=1.0,
              reference_name="np.bincount a pair on int64 columns", runs=runs,
              seconds=seconds(ours), reference_seconds=seconds(by_hand_wide))  # fmt: skip
    fewer = max(3, runs // 3)
    yield row("counting time, ratio", setting, ratio(ours, by_hand, repeat=fewer), target=1.5, reference=1.0,
              reference_name="np.bincount a pair on the codes", runs=fewer)  # fmt: skip
    one = MemoryTable(table.domain, list(columns), threads=1)
    yield row("counting time, ratio", setting, ratio(lambda: one.count_rows(pairs), by_hand_wide, repeat=fewer),
              reference=1.0, reference_name="np.bincount a pair on int64 columns", runs=fewer,
              method="one thread")  # fmt: skip


def _memory(table: MemoryTable, columns: Sequence[np.ndarray], shape: Sequence[int]) -> Iterator[Row]:
    pairs = list(itertools.combinations(table.domain.names, 2))
    as_int64 = sum(8 * c.size for c in columns)
    held = sum(c.nbytes for c in table._columns.values())
    setting = f"{len(shape)} columns, 5 levels, {len(columns[0]):,} rows"
    yield row("memory of the encoded rows, ratio", setting, held / as_int64, target=0.25, reference=1.0,
              reference_name="rows as int64", bytes=held)  # fmt: skip
    peak = _peak(lambda: table.count_rows(pairs))
    yield row("peak memory while counting all pairs, ratio", setting, (held + peak) / as_int64, target=0.5,
              reference=(as_int64 + _peak(_by_hand([c.astype(np.int64) for c in columns], shape))) / as_int64,
              reference_name="np.bincount a pair on int64 columns", bytes=held + peak)  # fmt: skip


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


# -- noise and ledger ------------------------------------------------------------------------------------------------


def _noise(cells: int) -> Iterator[Row]:
    gateway, values = SecureGateway(), np.zeros(cells, dtype=np.int64)
    for kind in ("laplace", "gaussian"):
        for scale in (1.0, 100.0):
            call = NoiseCall(kind, scale, Sensitivity(1, 1, 1, 1))  # type: ignore[arg-type]
            took = seconds(lambda call=call: gateway.add_noise(call, values), repeat=3)
            yield row("noise, µs a cell", f"{kind}, scale {scale:g}, {cells:,} cells", took / cells * 1e6, runs=3)


_SPENDER = """
import sys
from discreet.errors import BudgetError
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.unit import PrivacyUnit

ledger, taken = Ledger.open(sys.argv[1]), 0
for _ in range(700):
    try:
        ledger.charge(PureDP("1/1000"), PrivacyUnit())
        taken += 1
    except BudgetError:
        pass
print(taken)
"""


def _ledger(charges: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "alone.ledger", PureDP(1))
        times = []
        for _ in range(charges):
            begun = time.perf_counter()
            ledger.charge(PureDP(f"1/{charges}"), PrivacyUnit())
            times.append(time.perf_counter() - begun)
        ledger.close()
        yield row("ledger, ms a durable charge", f"median of {charges}", statistics.median(times) * 1e3, runs=charges)
        shared = Ledger.create(Path(folder) / "shared.ledger", PureDP(1))
        begun = time.perf_counter()
        spenders = [
            subprocess.Popen([sys.executable, "-c", _SPENDER, str(shared.path)], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        taken = sum(int(s.communicate()[0]) for s in spenders)
        took = time.perf_counter() - begun
        whole = shared.remaining is None and shared.verify() == []
        yield row("ledger, spends beyond the budget or missing", "two processes try 2 × 700, the budget holds 1,000",
                  abs(taken - 1000) if whole else None, target=0, runs=1, seconds=took)  # fmt: skip
        shared.close()


# -- encoding --------------------------------------------------------------------------------------------------------


def _encoding(rows: int, seed: int) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    words = np.array(["never", "sometimes", "often", "always", "unknown"], dtype=object)
    domain = Domain.of({f"c{i:02d}": (list(words[:4]) if i % 2 else 5) for i in range(COLUMNS)})
    columns = {
        name: words[rng.integers(0, 5, rows)] if i % 2 else rng.integers(0, 6, rows)
        for i, name in enumerate(domain.names)
    }
    setting = f"{COLUMNS} columns, half text, half whole numbers, {rows:,} rows"
    for kind, frame in _frames(columns):
        took = seconds(lambda frame=frame: encode(frame, domain), repeat=2)
        yield row("encoding, s a million rows", f"{kind}, {setting}", took / rows * 1e6, runs=2)


def _frames(columns: dict[str, np.ndarray]) -> Iterator[tuple[str, Any]]:
    yield "NumPy", columns
    try:
        import pandas as pd

        yield "pandas", pd.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars as pl

        yield "polars", pl.DataFrame({k: v.tolist() if v.dtype == object else v for k, v in columns.items()})
    except ImportError:
        pass
