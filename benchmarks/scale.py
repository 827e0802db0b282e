"""Files larger than memory, and Spark: counting all pairs, gradients, memory, and how cost grows.

Rows are generated into a temporary folder, which needs 1 GB at full size, and removed. Each of our runs is a process of
its own, so that its resident memory is its own.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.harness import ratio, row, seconds
from discreet.domain import Domain
from discreet.forecasts import cost_forecast
from discreet.models import generators
from discreet.privacy.budget import ApproxDP
from discreet.privacy.queries.gradients import SpinGradients
from discreet.privacy.unit import PrivacyUnit
from discreet.spec import resolve
from discreet.tables.files import FileTable

Row = dict[str, Any]
COLUMNS, LEVELS, SPINS = 20, 5, 50
_NOTICEABLE = 0.05
"""Processor seconds that are more than chance."""

# What getrusage says begins, on Linux, with the memory of the process that started this one.
_PEAK = """
import resource, sys
def peak():
    try:
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
"""
_OURS = (
    _PEAK
    + """
import itertools, json, sys, time
from discreet.domain import Domain
from discreet.tables.open import open_table
path, columns, levels = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
domain = Domain.of({f"c{i}": levels for i in range(columns)})
pairs = list(itertools.combinations(domain.names, 2))
def clocks():
    return time.perf_counter(), time.process_time()
table, begun = open_table(path, domain, memory_limit="1GB"), clocks()
first = table.count_rows(pairs)
middle = clocks()
table.count_rows(pairs)
end = clocks()
print(json.dumps({"first": middle[0] - begun[0], "again": end[0] - middle[0], "first_cpu": middle[1] - begun[1],
                  "again_cpu": end[1] - middle[1], "bytes": peak(), "check": int((first[0] * [1, 2, 3, 4, 5]).sum())
                  if len(first[0]) == 5 else 0}))
"""
)


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. Nothing is read from ``data``: values do not change the times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = 1_000_000 if quick else 100_000_000
        path = generate(folder / "pairs.parquet", rows, COLUMNS, f"hash(i * 64 + {{c}} + {seed}) % {LEVELS}")
        yield from _pairs(path, rows)
        path.unlink()
        yield from _growth(folder, 500_000 if quick else 5_000_000, 2 if quick else 3)
        yield from _slopes(folder, 7 if quick else 8)
        yield from _forecasts(folder, (10, 20) if quick else (10, 20, 40))
        yield from _gradients(folder, 400_000 if quick else 10_000_000, seed)
        yield from _spark(folder, 50_000 if quick else 1_000_000)


def quiet() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def generate(path: Path, rows: int, columns: int, value: str, kind: str = "UTINYINT") -> Path:
    chosen = ", ".join(f"({value.format(c=c)})::{kind} AS c{c}" for c in range(columns))
    with quiet() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY (SELECT {chosen} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")
    return path


def ours(path: Path, columns: int = COLUMNS, levels: Any = LEVELS) -> dict[str, float]:
    """Our count of all pairs in a process of its own: seconds, processor seconds, and resident bytes at most."""
    words = [sys.executable, "-c", _OURS, str(path), str(columns), json.dumps(levels)]
    found: dict[str, float] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found


# -- all pairs ---------------------------------------------------------------------------------------------------------


def pair_by_pair(path: Path, columns: int = COLUMNS) -> int:
    with quiet() as connection:
        for i, j in itertools.combinations(range(columns), 2):
            connection.execute(f"SELECT c{i}, c{j}, count(*) FROM '{path}' GROUP BY ALL").fetchall()
        (check,) = connection.execute(f"SELECT sum(c1 + 1) FROM '{path}'").fetchone() or (0,)
    return int(check)


def grouping_sets(path: Path, columns: int = COLUMNS) -> None:
    names = [f"c{i}" for i in range(columns)]
    sets = ", ".join(f"({a}, {b})" for a, b in itertools.combinations(names, 2))
    with quiet() as connection:
        connection.execute(
            f"SELECT {', '.join(names)}, count(*) FROM '{path}' GROUP BY GROUPING SETS ({sets})"
        ).fetchall()


def _pairs(path: Path, rows: int) -> Iterator[Row]:
    setting = (
        f"all {COLUMNS * (COLUMNS - 1) // 2} pairs of {COLUMNS} columns, {LEVELS} levels, {rows:,} rows of Parquet"
    )
    with tempfile.TemporaryDirectory() as folder:  # which of the two is the faster is settled on fewer rows
        small = generate(Path(folder) / "s.parquet", min(rows, 1_000_000), COLUMNS, f"hash(i * 64 + {{c}}) % {LEVELS}")
        separate, together = (
            seconds(lambda: pair_by_pair(small), repeat=1),
            seconds(lambda: grouping_sets(small), repeat=1),
        )
    by_hand = pair_by_pair if separate <= together else grouping_sets
    name = "one query a pair" if separate <= together else "GROUPING SETS"
    yield row("GROUPING SETS, ratio to one query a pair", "DuckDB by hand, 1,000,000 rows", together / separate)
    begun = time.perf_counter()
    check = by_hand(path)
    took = time.perf_counter() - begun
    mine = ours(path)
    if check is not None and check != mine["check"]:
        raise AssertionError("the counts differ")
    yield row("counting from files, ratio", setting, mine["first"] / took, target=1.3, reference=1.0,
              reference_name=f"DuckDB by hand, {name}", seconds=mine["first"], reference_seconds=took)  # fmt: skip
    yield row("counting again, ratio", setting, mine["again"] / took, reference=1.0,
              reference_name=f"DuckDB by hand, {name}", seconds=mine["again"])  # fmt: skip
    yield row("resident memory, GB", setting, mine["bytes"] / 1e9, target=2.0)


# -- how cost grows ----------------------------------------------------------------------------------------------------


def _growth(folder: Path, rows: int, repeat: int) -> Iterator[Row]:
    """Processor seconds, so that a busy machine shows less; the smallest of several."""

    def costs(n: int, columns: int, levels: int) -> dict[str, float]:
        path = generate(folder / "g.parquet", n, columns, f"hash(i * 64 + {{c}}) % {levels}")
        found = [ours(path, columns, levels) for _ in range(repeat)]
        return {what: min(f[what] for f in found) for what in ("first_cpu", "again_cpu")}

    sizes = [rows, 2 * rows, 4 * rows]
    by_rows = [costs(n, COLUMNS, LEVELS) for n in sizes]
    for what, name in (("first_cpu", "read, encode and count"), ("again_cpu", "count again")):
        spent = [c[what] for c in by_rows]
        yield row(f"growth with rows, {name}: departure from a line", f"{sizes[0]:,} to {sizes[-1]:,} rows",
                  _bend(sizes, spent), target=0.15, runs=repeat, costs=spent)  # fmt: skip
    # 100 levels: every pair is a table of its own of 10,000 cells.
    columns = [6, 9, 13]
    cells = [p * (p - 1) // 2 * 10_000 for p in columns]
    spent = [costs(rows, p, 100)["again_cpu"] for p in columns]
    yield row("growth with cells: departure from a line", f"{cells[0]:,} to {cells[-1]:,} cells, {rows:,} rows",
              _bend(cells, spent), target=0.15, runs=repeat, costs=spent)  # fmt: skip


def _slopes(folder: Path, decades: int) -> Iterator[Row]:
    """Processor seconds and resident memory of all pairs from files, over decades of rows, columns and cells: from one
    size to the next, how many decades more for a decade. What one row takes is taken off, and sizes are left out that
    take hardly more."""
    alone = ours(generate(folder / "s.parquet", 1, COLUMNS, "0"))
    by_rows = [(10**d, COLUMNS, LEVELS) for d in range(5, decades + 1)]
    by_columns = [(100_000, p, LEVELS) for p in (10, 50, 100, 500)]
    by_cells = [(1_000_000, 3, levels) for levels in (18, 58, 183, 577, 1826)]
    for what, settings, size in (
        ("rows", by_rows, lambda n, p, k: n),
        ("pairs of columns", by_columns, lambda n, p, k: p * (p - 1) // 2),
        ("cells", by_cells, lambda n, p, k: p * (p - 1) // 2 * k * k),
    ):
        sizes, seconds_, memory = [], [], []
        for n, p, k in settings:
            path = generate(folder / "s.parquet", n, p, f"hash(i * 64 + {{c}}) % {k}", "USMALLINT")
            found = ours(path, p, k)
            sizes.append(size(n, p, k))
            seconds_.append(found["first_cpu"] - alone["first_cpu"])
            memory.append(found["bytes"])
        long = np.array(seconds_) > _NOTICEABLE
        slopes = np.diff(np.log(np.array(seconds_)[long])) / np.diff(np.log(np.array(sizes)[long]))
        setting = f"{sizes[0]:,} to {sizes[-1]:,} {what}"
        yield row(f"growth with {what}: largest slope", setting, float(slopes.max()), target=1.15, sizes=sizes,
                  slopes=slopes.tolist(), processor_seconds=seconds_)  # fmt: skip
        yield row(f"growth with {what}: resident GB at the end", setting, memory[-1] / 1e9,
                  reference=memory[0] / 1e9, reference_name="at the start", bytes_=memory)  # fmt: skip


def _forecasts(folder: Path, columns: tuple[int, ...]) -> Iterator[Row]:
    """Whole fits of 100,000 records beside what ``plan`` says of them before a row is read."""
    for p in columns:
        network = generators.network(p, levels=3, random_state=p)
        path, domain = folder / "fit.parquet", network.domain
        network.sample(100_000, p).to_parquet(path)
        budget = ApproxDP(1, "1e-9")
        spec = resolve(domain)
        told = cost_forecast(spec, domain, spec.prepare(domain, PrivacyUnit(), budget))
        (folder / "schema.json").write_text(json.dumps(domain.to_dict()))
        words = [sys.executable, "-c", _FIT, str(path), str(folder / "schema.json")]
        found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        setting = f"fit, {p} columns of 3 levels, 100,000 records"
        for what, own, said in (("seconds", found["cpu"], told.seconds), ("bytes", found["bytes"], told.bytes)):
            yield row(f"{what}, divided by the forecast of plan (at most)", setting, own / said, target=1.5,
                      reference=said, reference_name="plan", measured=own)  # fmt: skip


_FIT = (
    _PEAK
    + """
import json, sys, time
from discreet import ApproxDP, Curator, Domain, open_table, resolve
path, schema = sys.argv[1:]
domain = Domain.from_dict(json.loads(open(schema).read()))
begun = time.process_time()
with open_table(path, domain) as table, Curator(table, budget=ApproxDP(1, "1e-9")) as curator:
    resolve(domain).learn(curator)
print(json.dumps({"cpu": time.process_time() - begun, "bytes": peak()}))
"""
)


def _bend(sizes: list[int], costs: list[float]) -> float:
    """The largest relative distance of the costs from the best line a + b·size with a ≥ 0."""
    x, y = np.array(sizes, dtype=float), np.array(costs)
    slope, start = np.polyfit(x, y, 1, w=1 / y)
    if start < 0:
        slope, start = float((x / y).sum() / ((x / y) ** 2).sum()), 0.0
    return float(np.max(np.abs((start + slope * x) / y - 1)))


# -- gradients ---------------------------------------------------------------------------------------------------------


def _gradients(folder: Path, rows: int, seed: int) -> Iterator[Row]:
    path = generate(folder / "spins.parquet", rows, SPINS, f"hash(i * 64 + {{c}} + {seed}) % 2")
    domain = Domain.of({f"c{i}": 2 for i in range(SPINS)})
    rng = np.random.default_rng(seed)
    monomials = [(n,) for n in domain.names] + [()]
    query = SpinGradients(domain, monomials, rng.integers(-20, 20, (SPINS, len(monomials))), 0.01)
    with FileTable(path, domain, memory_limit="1GB") as table:
        memory = table.in_memory()
        if not np.array_equal(table.stream(query)[0], memory.stream(query)[0]):
            raise AssertionError("the sums differ")
        runs = 3
        setting = f"gradients of all {SPINS} Ising regressions, {rows:,} rows of Parquet"
        times = ratio(lambda: table.stream(query), lambda: memory.stream(query), repeat=runs)
        yield row("a pass over files, ratio", setting, times, target=1.5, reference=1.0,
                  reference_name="the same rows in memory", runs=runs,
                  reference_seconds=seconds(lambda: memory.stream(query), repeat=1))  # fmt: skip
    path.unlink()


# -- Spark -------------------------------------------------------------------------------------------------------------


def local_session(cores: int) -> Any:
    """A Spark session on this machine; None without Spark or Java."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception:  # no Java
        return None
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _spark(folder: Path, rows: int) -> Iterator[Row]:
    spark = local_session(2)
    if spark is None:
        return
    from discreet.tables.open import open_table

    path = generate(folder / "spark.parquet", rows, COLUMNS, f"hash(i * 64 + {{c}}) % {LEVELS}", "TINYINT")
    domain = Domain.of({f"c{i}": LEVELS for i in range(COLUMNS)})
    pairs = list(itertools.combinations(domain.names, 2))
    frame = spark.read.parquet(str(path)).repartition(4).cache()
    frame.count()
    table = open_table(frame, domain)
    counted = table.count_rows(pairs)  # encoded and cached from here on
    frame.createOrReplaceTempView("rows")
    sets = ", ".join(f"({a}, {b})" for a, b in pairs)
    sql = f"SELECT {', '.join(domain.names)}, count(*) FROM rows GROUP BY GROUPING SETS ({sets})"
    begun = time.perf_counter()
    by_hand = spark.sql(sql).collect()
    took = time.perf_counter() - begun
    again = seconds(lambda: table.count_rows(pairs), repeat=1)
    first = {tuple(r)[:COLUMNS]: r[COLUMNS] for r in by_hand}
    key = (0, 0, *(None,) * (COLUMNS - 2))
    if first[key] != counted[0][0, 0]:
        raise AssertionError("the counts differ")
    setting = f"all {len(pairs)} pairs of {COLUMNS} columns, {rows:,} cached rows, local[2]"
    yield row("counting on Spark, ratio", setting, again / took, target=1.0, reference=1.0,
              reference_name="GROUPING SETS by hand", seconds=again,
              reference_seconds=took)  # fmt: skip
    spark.stop()
