"""Synthetic records of peers beside ours: the total-variation error of all two-way tables, and the time it takes.

Data: 10,000 records of the bundled network sachs (eleven columns of three levels), and, in the folder ``data``,
``nltcs.csv`` (16 binary columns). Every method makes 50,000 records with its own settings; the error is the mean over
all pairs of columns of half the L1 distance between their table in these records and in the true ones. Nobody knows a
graph. Runs differ in the true records (sachs) and in the noise.

The peers pin versions of what we need, so each lives in an environment of its own. The folder that the variable
DISCREET_PEERS names keeps them (``PACKAGE/bin/python``); otherwise they are made in a temporary folder. A peer that
cannot be installed or fails is a row that says so.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Checkpoint, row
from discreet import networks
from discreet.domain import Domain
from discreet.models.base import Model
from discreet.models.records import Records
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.spec import resolve
from discreet.tables.encode import encode

Row = dict[str, Any]
RECORDS, MADE, EPSILON, DELTA, PARENTS = 10_000, 50_000, 1, "1e-6", 2
PACKAGES = {
    "OpenDP": ("opendp[mbi]", "pandas"),
    "SmartNoise": ("smartnoise-synth",),
    "dpmm": ("dpmm",),
    "DataSynthesizer": ("DataSynthesizer",),
    "dpsynth": ("dpsynth @ git+https://github.com/google/dpsynth@cf8075f",),
}
PYTHONS = {"dpsynth": "python3.12"}
"""What a package wants of Python, where it is not ours."""
DEFAULT = "discreet fit"
OURS = {DEFAULT: None, "discreet fit --family network": "network", "discreet fit --family pairwise": "pairwise"}
PURE = ("OpenDP MST", "OpenDP AIM", "DataSynthesizer PrivBayes")
APPROXIMATE = ("SmartNoise MST", "OpenDP MST", "dpmm PrivBayes", "SmartNoise AIM", "OpenDP AIM", "dpmm MST", "dpmm AIM")
PATIENCE = 1800  # processor seconds for one run of a peer, so that a busy machine does not decide who is done
INSTALLING = 900  # seconds
SLOW = ("AIM", "dpmm")  # minutes a run, so there are fewer of them


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows; a quick run has ours alone. A full run that was interrupted is taken up again from
    ``peers-SEED.checkpoint.jsonl`` in the folder ``data``, or the current one."""
    runs = 2 if quick else 5
    with Checkpoint.of("peers", seed, quick, data) as kept, tempfile.TemporaryDirectory() as folder:
        for name in _tasks(data):
            for budget, peers in ((ApproxDP(EPSILON, DELTA), APPROXIMATE), (PureDP(EPSILON), PURE)):
                setting = f"{name}, {budget}"
                ours: dict[str, list[Row]] = {
                    method: [
                        kept.get(
                            f"{setting}, {method}, {i}",
                            lambda n=name, b=budget, m=method, i=i: _ours(n, b, m, seed + i, data),
                        )
                        for i in range(runs)
                    ]
                    for method in OURS
                }
                for method, results in ours.items():
                    yield _row(setting, method, results, None)
                for peer in () if quick else peers:
                    many = 2 if any(word in peer for word in SLOW) else runs
                    theirs = [
                        kept.get(
                            f"{setting}, {peer}, {i}",
                            lambda n=name, b=budget, p=peer, i=i: _theirs(n, b, p, seed + i, data, Path(folder)),
                        )
                        for i in range(many)
                    ]
                    yield _row(setting, peer, ours[DEFAULT], theirs)


def _row(setting: str, method: str, ours: list[Row], theirs: list[Row] | None) -> Row:
    failed = next((r["failed"] for r in theirs or () if "failed" in r), None)
    what = "mean TV of all pairs"
    mean = float(np.mean([r["error"] for r in ours]))
    mine = {"seconds": _seconds(ours), "errors": [r["error"] for r in ours]}
    if theirs is None:
        return row(what, setting, mean, runs=len(ours), method=method, **mine)
    if failed:
        return row(what, setting, mean, runs=0, note=f"skipped {method}: {failed}")
    return row(
        what,
        setting,
        mean,
        reference=float(np.mean([r["error"] for r in theirs])),
        reference_name=f"{method} ({theirs[0]['version']})",
        runs=len(theirs),
        reference_seconds=_seconds(theirs),
        reference_errors=[r["error"] for r in theirs],
        **mine,
    )


def _seconds(results: list[Row]) -> float:
    return float(np.median([r["fit_seconds"] + r["make_seconds"] for r in results]))


# -- the task ----------------------------------------------------------------------------------------------------------


def _tasks(data: Path | None) -> list[str]:
    return ["sachs", *(["nltcs"] if data is not None and (data / "nltcs.csv").is_file() else [])]


def _records(name: str, seed: int, data: Path | None) -> tuple[Domain, np.ndarray]:
    if name == "sachs":
        network = networks.load("sachs")
        return network.domain, _codes(network.sample(RECORDS, random_state=seed))
    assert data is not None
    rows = np.loadtxt(data / "nltcs.csv", delimiter=",", skiprows=1, dtype=np.int64)
    return Domain.of({f"item{i}": [0, 1] for i in range(rows.shape[1])}), rows


def _codes(records: Records) -> np.ndarray:
    return np.asarray(records.codes, dtype=np.int64)


def mean_variation(domain: Domain, true: np.ndarray, made: np.ndarray) -> float:
    """The mean over all pairs of columns of the total variation between their tables."""

    def table(rows: np.ndarray, pair: tuple[int, int]) -> np.ndarray:
        shape = tuple(domain.shape[i] for i in pair)
        flat = np.ravel_multi_index(tuple(rows[:, i] for i in pair), shape)
        return np.bincount(flat, minlength=math.prod(shape)) / len(rows)

    pairs = itertools.combinations(range(len(domain)), 2)
    return float(np.mean([np.abs(table(true, p) - table(made, p)).sum() / 2 for p in pairs]))


def _ours(name: str, budget: Budget, method: str, seed: int, data: Path | None) -> Row:
    """Learn, then make records with rounded counts, as most peers do."""
    domain, true = _records(name, seed, data)
    spec = resolve(domain, family=OURS[method])
    values = {n: [domain[n].levels[code] for code in true[:, i]] for i, n in enumerate(domain.names)}
    table = encode(values, domain)
    begun = time.perf_counter()
    with Curator(table, budget=budget) as curator:
        model: Model = spec.learn(curator).model
    fitted = time.perf_counter()
    made = model.sample(MADE, random_state=seed, method="rounded")
    done = time.perf_counter()
    times = {"fit_seconds": fitted - begun, "make_seconds": done - fitted}
    return {"error": mean_variation(domain, true, _codes(made)), **times}


# -- the peers ---------------------------------------------------------------------------------------------------------


def _theirs(name: str, budget: Budget, peer: str, seed: int, data: Path | None, folder: Path) -> Row:
    domain, true = _records(name, seed, data)
    made, said = made_by(peer, domain, true, budget, folder)
    return said if made is None else {"error": mean_variation(domain, true, made), **said}


def made_by(peer: str, domain: Domain, true: np.ndarray, budget: Budget, folder: Path) -> tuple[np.ndarray | None, Row]:
    """The records that a peer makes, with its version and seconds; or None, and why not."""
    python = environment(peer.split()[0], folder)
    if python is None:
        return None, {"failed": "it cannot be installed here"}
    with tempfile.TemporaryDirectory() as scratch:
        records, task, made = (str(Path(scratch) / f) for f in ("records.csv", "task.json", "made.csv"))
        np.savetxt(records, true, fmt="%d", delimiter=",", header=",".join(domain.names), comments="")
        levels = dict(zip(domain.names, domain.shape, strict=True))
        assert isinstance(budget, PureDP | ApproxDP)
        delta = float(budget.delta) if isinstance(budget, ApproxDP) else 0.0
        told = {"levels": levels, "epsilon": float(budget.epsilon), "delta": delta, "rho": worth_of(budget)}
        Path(task).write_text(json.dumps({**told, "parents": PARENTS, "records": MADE}))
        call = [str(python), str(Path(__file__).with_name("_peers_work.py")), peer, records, task, made]
        alone = {**os.environ, "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
        alone.pop("PYTHONPATH", None)  # its packages, not ours
        patient = ["bash", "-c", f'ulimit -t {PATIENCE}; exec "$@"', "bash", *call]
        ran = subprocess.run(patient, capture_output=True, text=True, check=False, env=alone)
        if ran.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return None, {"failed": f"it takes more than {PATIENCE // 60} minutes of processor time"}
        if ran.returncode:
            return None, {"failed": " ".join(ran.stderr.split())[-200:] or "no reason given"}
        header = Path(made).read_text().split("\n", 1)[0].split(",")
        synthetic = np.loadtxt(made, delimiter=",", skiprows=1)[:, [header.index(n) for n in domain.names]]
    return synthetic.astype(np.int64), json.loads(ran.stdout.strip().splitlines()[-1])


def worth_of(budget: Budget) -> float:
    """The largest ρ whose conversion keeps to (ε, δ), for peers that are told a ρ; 0 for other notions.

    Rounded down to three digits: OpenDP's MST refuses its own split of some budgets by the last bit.
    """
    if not isinstance(budget, ApproxDP):
        return 0.0
    low, high = 0.0, float(budget.epsilon)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if ZCDP(middle).to_approx(budget.delta).epsilon <= budget.epsilon else (low, middle)
    digits = 2 - math.floor(math.log10(low))
    return math.floor(low * 10**digits) / 10**digits


def environment(package: str, folder: Path) -> Path | None:
    """The interpreter of a peer, made if it is not there yet; None when it cannot be."""
    base = Path(os.environ.get("DISCREET_PEERS") or folder) / package
    python = base / "bin" / "python"
    if python.is_file():
        return python
    install = [str(python), "-m", "pip", "install", "-q", *PACKAGES[package]]
    for call in ([PYTHONS.get(package, sys.executable), "-m", "venv", str(base)], install):
        try:
            if subprocess.run(call, capture_output=True, check=False, timeout=INSTALLING).returncode:
                return None
        except (OSError, subprocess.TimeoutExpired):
            return None
    return python
