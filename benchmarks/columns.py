"""Columns that are found privately: what bins that nobody knew cost, against the best that somebody could have known.

Data: Adult (``adult.csv`` in the folder ``--data`` or DISCREET_DATA names; skipped where it is absent), the codes of
its six columns of numbers as numbers, with three columns of categories. ε = 1, δ = 1e-6, a row under add-remove. The
default learner, and records drawn from its model.

Accuracy is the mean total variation of all pairs of columns between drawn records and the data, on a grid for
evaluation alone: twelve bins of equal mass of each column of numbers, as the data have them. *Public bins* are bins of
equal mass of the data themselves, which no schema could hold, at the best of four numbers of bins, chosen by the same
figure; private bins have the default (``most = 32``) and pay for finding them.

*Memory* of finding levels: what the process grows by, for many texts in a file of many rows.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import row
from discreet.domain import Attribute, Domain
from discreet.privacy.budget import ApproxDP
from discreet.privacy.curator import Curator
from discreet.privacy.unit import PrivacyUnit
from discreet.spec import resolve
from discreet.tables.encode import encode

Row = dict[str, Any]
NUMBERS = {
    "age": 100, "fnlwgt": 100, "education-num": 20, "capital-gain": 100, "capital-loss": 100, "hours-per-week": 100,
}  # fmt: skip
CATEGORIES = {"marital-status": 7, "sex": 2, "income>50K": 2}
BUDGET = ApproxDP(1, 1e-6)
DRAWN = 200_000
MOST_MB = 300
"""For ten million rows of 100,000 texts: blocks of rows that are read, and a number with its count for each text. Texts
themselves are held only where they stand out, of which there are at most as many as thresholds fit into the rows."""


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows."""
    folder = data or (Path(os.environ["DISCREET_DATA"]) if os.environ.get("DISCREET_DATA") else None)
    if folder is None or not (folder / "adult.csv").is_file():
        note = "skipped: --data or DISCREET_DATA names no folder with adult.csv"
        yield row("mean TV of pairs", "Adult", None, runs=0, note=note)  # type: ignore[arg-type]
    else:
        yield from _adult(folder / "adult.csv", 2 if quick else 8, seed)
    yield from _many_levels(200_000 if quick else 10_000_000, 20_000 if quick else 100_000, seed)


def _adult(path: Path, runs: int, seed: int) -> Iterator[Row]:
    with open(path) as stream:
        names = next(stream).strip().split(",")
        codes = np.loadtxt(stream, delimiter=",", dtype=np.int64)
    rows = {name: codes[:, names.index(name)] for name in (*NUMBERS, *CATEGORIES)}
    categories = tuple(Attribute.categorical(name, k) for name, k in CATEGORIES.items())
    open_entry = {"bins": "private", "integer": True}
    private = [Attribute.from_dict(n, {**open_entry, "range": [0, high]}) for n, high in NUMBERS.items()]
    found = _error(rows, Domain((*private, *categories)), runs, seed)
    public = {}
    for bins in (8, 16, 32, 64):
        cut = tuple(Attribute.numeric(n, _equal_mass(rows[n], bins, high), integer=True) for n, high in NUMBERS.items())
        public[bins] = _error(rows, Domain((*cut, *categories)), runs, seed)
    best = min(public, key=public.__getitem__)
    yield row(
        "mean TV of pairs, private bins over the best public ones",
        "Adult, 9 columns, eps=1, delta=1e-6",
        found / public[best],
        target=1.1,
        reference=1.0,
        reference_name=f"{best} bins of equal mass of the data themselves",
        runs=runs,
        private=found,
        public={str(bins): error for bins, error in public.items()},
    )


def _equal_mass(x: NDArray[np.int64], bins: int, high: int) -> list[float]:
    inner = np.unique(np.quantile(x, np.arange(1, bins) / bins, method="higher"))
    return [0.0, *(float(e) for e in inner if 0 < e < high), float(high)]


def _error(rows: dict[str, NDArray[np.int64]], domain: Domain, runs: int, seed: int) -> float:
    """Mean total variation of pairs, on the grid for evaluation."""
    grids = {name: np.unique(np.quantile(rows[name], np.arange(1, 12) / 12)) for name in NUMBERS}
    errors = []
    for number in range(runs):
        with Curator(encode(rows, domain), PrivacyUnit(), BUDGET) as curator:
            model = resolve(domain, certify=0).learn(curator).model
        drawn = model.sample(DRAWN, seed + number)
        ours = {n: _placed(np.asarray(drawn[n], dtype=np.float64), grids.get(n)) for n in rows}
        theirs = {n: _placed(x.astype(np.float64), grids.get(n)) for n, x in rows.items()}
        errors += [_distance(ours, theirs, pair) for pair in itertools.combinations(rows, 2)]
    return float(np.mean(errors))


def _placed(x: NDArray[np.float64], grid: NDArray[np.float64] | None) -> NDArray[np.int64]:
    return x.astype(np.int64) if grid is None else np.searchsorted(grid, x, side="right")


def _distance(a: dict[str, NDArray[np.int64]], b: dict[str, NDArray[np.int64]], pair: tuple[str, str]) -> float:
    tables = [np.bincount(20 * x[pair[0]] + x[pair[1]], minlength=400) / len(x[pair[0]]) for x in (a, b)]
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


def _many_levels(rows: int, distinct: int, seed: int) -> Iterator[Row]:
    """Levels that stand out among very many, in a file: memory and time."""
    import resource
    import tempfile

    import duckdb

    from discreet.tables.open import open_table

    domain = Domain((Attribute.from_dict("word", {"levels": "discover"}),))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "words.parquet"
        with duckdb.connect() as connection:
            value = f"'word ' || floor({distinct} * pow((hash(i + {seed}) % 1000003) / 1000003.0, 4))::BIGINT"
            connection.execute(f"COPY (SELECT {value} AS word FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        with Curator(open_table(path, domain), PrivacyUnit(), BUDGET) as curator:
            inner = curator.in_gaussian(BUDGET, BUDGET.delta / 10)
            found = inner.find_levels("word", inner.remaining, BUDGET.delta / 10)
        spent = time.process_time() - begun
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    setting = f"{rows:,} rows, {distinct:,} texts, {len(found.counts):,} stand out"
    yield row("MB that finding levels takes more", setting, grown, target=MOST_MB)
    yield row("processor seconds to find levels", setting, spent, target=None)
