"""Whole jobs beside their floor, in processor seconds: what people wait for, and the least that it could take.

Records of *child* (20 columns, 2 to 6 levels), a million in a full run and a tenth of that in a quick one; every job is
a command in a process of its own, or a call, on one thread. The targets for encoding are for a million records, and for
a tenth of them in proportion. ``seed`` changes the records.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import _mrf_speed, engine
from benchmarks.harness import one_thread, row
from benchmarks.scale import local_session
from discreet import networks
from discreet.domain import Attribute, Domain
from discreet.frames import BACKENDS, frame_of
from discreet.models.base import Model
from discreet.privacy.budget import ApproxDP
from discreet.privacy.curator import Curator
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.unit import Sensitivity
from discreet.release import DRAWS, Release
from discreet.spec import resolve
from discreet.tables.encode import encode
from discreet.tables.open import open_table

Row = dict[str, Any]
BUDGET = ApproxDP(1, "1e-9")
FULL, QUICK = 1_000_000, 100_000
REFIT_RECORDS, FEWEST_ON_SPARK = 10_000, 300_000
CLOCK = time.process_time


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. Nothing is read from ``data``."""
    rows, runs = (QUICK, 3) if quick else (FULL, 5)
    network = networks.load("child")
    with tempfile.TemporaryDirectory() as made, one_thread():
        folder = Path(made)
        yield from _intervals(network, seed, runs)
        yield from _commands(network, folder, seed, runs)
        yield from _encoding(network, rows, seed)
        yield from _spark(network, folder, max(rows, FEWEST_ON_SPARK), seed)
        yield from _files(network, folder, rows, seed)
        yield from _noise(100_000 if quick else 1_000_000)
        yield from _kernels(runs)
        yield from _installed(runs)


def _released(network: Model, records: int, seed: int) -> Release:
    table = encode(network.sample(records, seed).to_frame(), network.domain)
    with Curator(table, budget=BUDGET) as curator:
        return Release.of(resolve(network.domain).learn(curator))


def _intervals(network: Model, seed: int, runs: int) -> Iterator[Row]:
    """Refits at once beside the fit whose answers they are for."""
    table = encode(network.sample(REFIT_RECORDS, seed).to_frame(), network.domain)
    ratios = []
    for _ in range(runs):
        begun = time.process_time()
        with Curator(table, budget=BUDGET) as curator:
            release = Release.of(resolve(network.domain).learn(curator))
        fit = time.process_time() - begun
        ratios.append(_processor(release.intervals) / fit)
    setting = f"child, {REFIT_RECORDS:,} records, {BUDGET}"
    yield row(f"{DRAWS} refits divided by one fit", setting, float(np.median(ratios)), target=6.0, runs=runs,
              reference=1.0, reference_name="the fit")  # fmt: skip


def _commands(network: Model, folder: Path, seed: int, runs: int) -> Iterator[Row]:
    """Small commands, each in a process of its own; refits are kept from the first question on."""
    _released(network, REFIT_RECORDS, seed).save(folder / "model.zip")
    (folder / "schema.toml").write_text("".join(
        f"[columns.{name}]\nlevels = {list(network.domain[name].labels)!r}\n" for name in network.domain
    ).replace("'", '"'))  # fmt: skip
    question = f"P({network.domain.names[1]})"
    floor = min(_command(folder, "--help") for _ in range(runs))
    first = _command(folder, "query", "model.zip", question)
    yield row("processor seconds, first question with its ±", "child", first, reference=floor, reference_name="--help")
    for words in (
        ("query", "model.zip", question),
        ("show", "model.zip"),
        ("verify", "model.zip"),
        ("plan", "--schema", "schema.toml", "--epsilon", "1"),
    ):
        own = min(_command(folder, *words) for _ in range(runs))
        yield row(f"processor seconds, {words[0]}", "child", own, target=0.5, reference=floor, reference_name="--help",
                  runs=runs)  # fmt: skip


def _encoding(network: Model, rows: int, seed: int) -> Iterator[Row]:
    """Half of the columns are texts, half whole numbers."""
    records = network.sample(rows, seed)
    texts = records.to_frame("pandas").astype(object)
    half = len(network.domain) // 2
    domain = Domain(tuple(
        a if i < half else Attribute.categorical(a.name, a.size) for i, a in enumerate(network.domain.attributes)
    ))  # fmt: skip
    columns = {
        name: texts[name].to_numpy() if i < half else np.ascontiguousarray(records.codes[:, i])
        for i, name in enumerate(domain.names)
    }
    lists = {name: column.tolist() if column.dtype == object else column for name, column in columns.items()}
    setting = f"child, {rows:,} records, half text"
    for backend in ("NumPy", *BACKENDS):
        frame = columns if backend == "NumPy" else frame_of(lists, backend)
        own = min(_processor(partial(encode, frame, domain)) for _ in range(3))
        floor = min(_processor(partial(_dictionaries, frame)) for _ in range(3))
        yield row(f"processor seconds, encode {backend}", setting, own, target=0.4 * rows / FULL, reference=floor,
                  reference_name="Arrow's dictionary encoding", runs=3)  # fmt: skip


def _dictionaries(frame: Any) -> None:
    import pyarrow as pa

    frame = pa.table(frame) if isinstance(frame, dict) else frame
    table = frame if isinstance(frame, pa.Table) else frame.to_arrow() if hasattr(frame, "to_arrow") else None
    table = pa.Table.from_pandas(frame) if table is None else table
    for column in table.columns:
        column.dictionary_encode()


def _spark(network: Model, folder: Path, rows: int, seed: int) -> Iterator[Row]:
    """Encoding by one core, the second time, when Java has compiled what it runs; all processes counted."""
    spark = local_session(1)
    if spark is None:
        return
    path = folder / "rows.parquet"
    pyarrow.parquet.write_table(network.sample(rows, seed).to_frame("pyarrow"), path)
    frame = spark.read.parquet(str(path))

    def written(made: Any) -> None:
        made.write.format("noop").mode("overwrite").save()

    def encoded() -> None:
        with open_table(frame, network.domain) as table:
            written(table._blocks)

    def handed_over() -> None:
        written(frame.mapInArrow(lambda batches: iter([b for b in batches if b.num_rows < 0]), frame.schema))

    found = {}
    for name, work in (("ours", encoded), ("scan", partial(written, frame)), ("arrow", handed_over)):
        times = []
        for _ in range(4):
            begun = _of_all_processes()
            work()
            times.append(_of_all_processes() - begun)
        found[name] = min(times[1:]) / rows * 1e6
    spark.stop()
    setting = f"child, {rows:,} records of text in Parquet, one core"
    yield row("microseconds a record, encode on Spark", setting, found["ours"], target=3.0, reference=found["scan"],
              reference_name="Spark scans the columns", runs=3)  # fmt: skip
    yield row("encode on Spark, divided", setting, found["ours"] / found["arrow"], reference=1.0,
              reference_name="Spark hands the columns to Python", runs=3)  # fmt: skip


def _of_all_processes() -> float:
    """Processor seconds of this process and all that it has started, as Linux counts them."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                told = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(told[1])
                used[int(entry.name)] = sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")

    def ours(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return sum(seconds for process, seconds in used.items() if ours(process))


def _kernels(runs: int) -> Iterator[Row]:
    """What other benchmarks measure in full."""
    yield row("one Frank–Wolfe iteration of all columns, without noise", "p = 100, n = 1e5",
              _mrf_speed.one_iteration(100, runs, CLOCK)[0], target=1.6, reference=1.0, runs=runs,
              reference_name="p×p×n product in float64")  # fmt: skip
    yield from engine.compiled_in_the_call(engine.Network("alarm", None), 5 * runs, 0.8, CLOCK)
    yield from engine.chain(np.random.default_rng(0), runs, 1.5, CLOCK)[1:]


def _files(network: Model, folder: Path, rows: int, seed: int) -> Iterator[Row]:
    """Records drawn and written, and learned from, beside DuckDB, which does as little as can be done."""
    import duckdb

    network.save(folder / "child.zip")
    written = _command(folder, "sample", "child.zip", "-n", str(rows), "--seed", str(seed), "-o", "new.csv")
    base = _command(folder, "sample", "child.zip", "-n", "1", "-o", "one.csv")
    database = duckdb.connect(config={"threads": 1})
    database.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{folder}/new.csv', all_varchar = true)")
    copied = _processor(lambda: database.execute(f"COPY rows TO '{folder}/copy.csv' (HEADER)"))
    database.execute(f"COPY rows TO '{folder}/new.parquet' (FORMAT parquet)")
    setting = f"child, {rows:,} × {len(network.domain)}"
    yield row("sample and write CSV divided by DuckDB's COPY", setting, (written - base) / copied, target=2.0,
              reference=1.0, reference_name="COPY", seconds=[written, copied])  # fmt: skip
    largest = ", ".join(f"max({name})" for name in network.domain)
    for ending, target in (("csv", None), ("parquet", 2.0)):
        scan = _processor(partial(database.execute, f"SELECT {largest} FROM '{folder}/new.{ending}'"))
        fit = _command(
            folder, "fit", f"new.{ending}", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-o",
            f"{ending}.zip",
        )  # fmt: skip
        yield row(f"processor seconds, fit of {ending}, learning included", setting, fit, reference=scan,
                  target=3 * scan if target is None else target, reference_name="DuckDB scans all columns")  # fmt: skip


def _noise(cells: int) -> Iterator[Row]:
    import opendp.prelude as dp

    gateway = SecureGateway()
    for kind, make, distance in (
        ("laplace", dp.m.make_laplace, dp.l1_distance(T="i64")),
        ("gaussian", dp.m.make_gaussian, dp.l2_distance(T="f64")),
    ):
        zeros = np.zeros(cells, dtype=np.int64)
        space = dp.vector_domain(dp.atom_domain(T="i64"))
        begun = time.perf_counter()
        make(space, distance, 100.0)(zeros)
        theirs = time.perf_counter() - begun
        begun = time.perf_counter()
        gateway.add_noise(NoiseCall(kind, 100.0, Sensitivity(1, 1, 1, 1)), zeros)  # type: ignore[arg-type]
        ours = time.perf_counter() - begun
        setting = f"{cells:,} cells, {os.cpu_count()} cores"
        yield row(f"{kind} noise divided by OpenDP in one call, wall clock", setting, ours / theirs, target=1.0,
                  reference=1.0, reference_name="OpenDP")  # fmt: skip


def _installed(runs: int) -> Iterator[Row]:
    """What `pip install .` puts on the disk, here, and what it costs to import."""
    largest = sorted(((_megabytes(name), name) for name in _needed("discreet")), reverse=True)
    own, (most, name) = sum(size for size, _ in largest), largest[0]
    setting = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    yield row("megabytes of the core and all that it depends on", setting, own, target=450.0, reference=most,
              reference_name=name)  # fmt: skip
    floor = min(_python("pass") for _ in range(runs))
    for code, target in (("import discreet", 0.1), ("import discreet; discreet.Curator, discreet.resolve", 1.0)):
        own = min(_python(code) for _ in range(runs))
        yield row(f"processor seconds, {code}", "a new process", own, target=target, runs=runs, reference=floor,
                  reference_name="Python alone")  # fmt: skip


def _needed(name: str) -> set[str]:
    """A distribution and all that it depends on without extras, as far as it is installed."""
    found: set[str] = set()
    todo = [name]
    while todo:
        name = todo.pop()
        with suppress(metadata.PackageNotFoundError):
            if name in found:
                continue
            wanted = [Requirement(line) for line in metadata.requires(name) or ()]
            found.add(name)
            todo += [canonicalize_name(r.name) for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def _megabytes(name: str) -> float:
    files = metadata.files(name) or ()
    return sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file()) / 1e6


def _python(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment() -> dict[str, str]:
    """That of a person: modules are compiled once and kept, and one thread does the work."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _processor(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _command(folder: Path, *words: str) -> float:
    """Processor seconds of a command, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**_environment(), "DISCREET_CACHE": str(folder / "kept")}
    program = "import sys; from discreet.cli.app import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"discreet {' '.join(words)}: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
