"""Evaluation: the same figures as a count by hand and as SDMetrics, and how long a million rows take.

SDMetrics needs versions of its own: install it in an environment of its own and name its Python in SDMETRICS_PYTHON.
Without it its rows are skipped, and say so.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import row
from benchmarks.scale import COLUMNS, LEVELS, generate
from discreet import ApproxDP, Curator, PrivacyUnit, PureDP, encode, networks, resolve
from discreet.domain import Domain
from discreet.evaluate import evaluate
from discreet.sweeps import sweep
from discreet.tables.open import open_table

Row = dict[str, Any]

_SDMETRICS = """
import itertools, json, sys, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from sdmetrics.column_pairs import ContingencySimilarity, CorrelationSimilarity
from sdmetrics.single_column import KSComplement, StatisticSimilarity, TVComplement
real, other = (pd.read_csv(path, dtype=int) for path in sys.argv[1:3])
names, out = list(real.columns), {}
out["TVComplement"] = [TVComplement.compute(real[n].astype(str), other[n].astype(str)) for n in names]
out["KSComplement"] = [KSComplement.compute(real[n], other[n]) for n in names]
for what in ("mean", "median"):
    out["StatisticSimilarity of the " + what] = [
        StatisticSimilarity.compute(real[n], other[n], statistic=what) for n in names]
pairs = [list(p) for p in itertools.combinations(names, 2)]
out["ContingencySimilarity"] = [
    ContingencySimilarity.compute(real[p].astype(str), other[p].astype(str), num_rows_subsample=None) for p in pairs]
out["CorrelationSimilarity"] = [CorrelationSimilarity.compute(real[p], other[p]) for p in pairs]
print(json.dumps(out))
"""


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real, other, setting = _files(folder, data, seed)
        with real.open() as file:
            names = next(csv.reader(file))
        levels = np.loadtxt(real, delimiter=",", skiprows=1, dtype=int).max(axis=0) + 1
        domain = Domain.of({n: int(k) for n, k in zip(names, levels, strict=True)})
        rows, synthetic = (open_table(path, domain) for path in (real, other))
        facts = evaluate(rows, {"other": synthetic}, triples=60).to_dict()["releases"]["other"]
        yield row("largest difference from a count by hand", setting, _by_hand(real, other, facts), target=1e-12)
        yield from _sdmetrics(real, other, setting, facts)
        yield from _times(folder, 1_000_000, seed)
    yield from _forecasts(data, quick, seed)


def _files(folder: Path, data: Path | None, seed: int) -> tuple[Path, Path, str]:
    """Rows, and other rows that are near them: those of NLTCS where they are, else drawn ones."""
    real, other = folder / "real.csv", folder / "other.csv"
    if data is not None and (data / "nltcs.csv").exists():
        lines = (data / "nltcs.csv").read_text().splitlines()
        chosen = np.random.default_rng(seed).random((2, len(lines))) < 0.5
        head = ",".join(f"c{name}" for name in lines[0].split(","))
        for path, mine in zip((real, other), chosen, strict=True):
            path.write_text("\n".join([head, *(x for x, m in zip(lines[1:], mine, strict=False) if m)]) + "\n")
        return real, other, "two samples of NLTCS"
    truth = networks.load("sachs")
    for path, draw in ((real, seed), (other, seed + 1)):
        codes = truth.sample(5000, random_state=draw).codes
        text = "\n".join(",".join(map(str, codes_of)) for codes_of in codes.tolist())
        path.write_text(",".join(truth.domain.names) + "\n" + text + "\n")
    return real, other, "two samples of sachs"


def _by_hand(real: Path, other: Path, facts: dict[str, Any]) -> float:
    """Every column, pair and some triples, counted one record after the other and added up exactly."""
    sides = []
    for path in (real, other):
        with path.open() as file:
            sides.append(list(csv.DictReader(file)))

    def distance(names: tuple[str, ...]) -> float:
        a, b = (Counter(tuple(record[n] for n in names) for record in side) for side in sides)
        return math.fsum(abs(a[x] / len(sides[0]) - b[x] / len(sides[1])) for x in {*a, *b}) / 2

    off = [abs(c["TVComplement"] - 1 + distance((c["column"],))) for c in facts["columns"]]
    off += [abs(p["ContingencySimilarity"] - 1 + distance(tuple(p["columns"]))) for p in facts["pairs"]]
    off += [abs(t["total variation"] - distance(tuple(t["columns"]))) for t in facts["triples"]]
    return max(off)


def _sdmetrics(real: Path, other: Path, setting: str, facts: dict[str, Any]) -> Iterator[Row]:
    python = os.environ.get("SDMETRICS_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", _SDMETRICS, str(real), str(other)], capture_output=True, text=True)
    if done.returncode != 0:
        missing = "No module named 'sdmetrics'" in done.stderr
        why = "SDMetrics is not installed; name a Python that has it in SDMETRICS_PYTHON" if missing else "it failed"
        yield row("largest difference from SDMetrics", setting, math.nan, note=f"skipped: {why}")
        return
    theirs = json.loads(done.stdout.splitlines()[-1])
    numbers = {entry["column"]: entry for entry in facts["numbers"]}
    pairs = [tuple(p["columns"]) for p in facts["pairs"]]
    assert pairs == list(combinations([c["column"] for c in facts["columns"]], 2))
    ours = {
        "TVComplement": [c["TVComplement"] for c in facts["columns"]],
        "KSComplement": [c["KSComplement"] for c in facts["columns"]],
        "StatisticSimilarity of the mean": [n["mean"]["StatisticSimilarity"] for n in numbers.values()],
        "StatisticSimilarity of the median": [n["median"]["StatisticSimilarity"] for n in numbers.values()],
        "ContingencySimilarity": [p["ContingencySimilarity"] for p in facts["pairs"]],
        "CorrelationSimilarity": [c["CorrelationSimilarity"] for c in facts["correlations"]],
    }
    for name, values in ours.items():
        off = max(abs(a - b) for a, b in zip(values, theirs[name], strict=True))
        yield row(f"largest difference from SDMetrics, {name}", setting, off, target=1e-9, values=len(values))


def _times(folder: Path, rows: int, seed: int) -> Iterator[Row]:
    path = generate(folder / "large.parquet", rows, COLUMNS, f"hash(i * 64 + {{c}} + {seed}) % {LEVELS}")
    domain = Domain.of({f"c{i}": LEVELS for i in range(COLUMNS)})
    for what, classifiers in (("tables alone", False), ("everything", True)):
        begun = time.process_time()
        evaluate(open_table(path, domain), {"itself": open_table(path, domain)}, classifiers=classifiers)
        setting = f"{rows:,} rows × {COLUMNS} columns beside as many synthetic ones, from files, {what}"
        yield row("processor seconds", setting, time.process_time() - begun, target=None if not classifiers else 30)


def _forecasts(data: Path | None, quick: bool, seed: int) -> Iterator[Row]:
    """What `plan --sweep` expects of pairs of the default field, divided by what then happens: at several budgets, and
    with fewer and more records."""
    sets: list[tuple[str, Domain, NDArray[np.int64]]] = []
    for name in ("asia", "sachs", "child") if quick else ("asia", "sachs", "child", "alarm"):
        truth = networks.load(name)
        codes = truth.sample(10_000 if quick else 100_000, random_state=seed).codes.astype(np.int64)
        sets.append((name, truth.domain, codes))
    for name in ("nltcs", "adult"):
        if data is not None and (path := data / f"{name}.csv").exists():
            codes = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
            names = path.open().readline().strip().split(",")
            domain = Domain.of({n: int(k) + 1 for n, k in zip(names, codes.max(axis=0), strict=True)})
            sets.append((name, domain, codes))
    one = ApproxDP(1, "1e-6")
    for name, domain, every in sets:
        usual = min(len(every), 10_000) if name not in ("nltcs", "adult") else len(every)
        budgets = (ApproxDP("0.3", "1e-6"), one, ApproxDP(3, "1e-6"), PureDP(1))
        asked = [(budget, usual) for budget in budgets]
        asked += [] if quick else [(one, size) for size in (1000, 100_000) if size <= len(every)]
        order = np.random.default_rng(seed).permutation(len(every))
        for budget, size in asked:
            chosen = every[order[:size]]
            levels = {a.name: np.array(a.levels, dtype=object)[chosen[:, i]] for i, a in enumerate(domain.attributes)}
            table, spec = encode(levels, domain), resolve(domain)
            (expected,) = sweep(spec, domain, PrivacyUnit(), budget, sizes=[size]).errors[0]
            with Curator(table, PrivacyUnit(), budget) as curator:
                model = spec.learn(curator).model
            seen = float(evaluate(table, {"it": model}, triples=0, classifiers=False)["it"].pairs.mean())
            off = max(expected / seen, seen / expected)
            target = 1.5 if isinstance(budget, ApproxDP) else None
            more = {"reference": expected / seen, "reference_name": "forecast divided by what happened"}
            setting = f"{name}, {size:,} records, {budget}"
            yield row("factor by which the forecast of pairs is off", setting, off, target=target, **more)
