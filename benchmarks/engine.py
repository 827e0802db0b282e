"""The engine beside pyAgrum, pgmpy, brute force and bare NumPy: every figure about inference, in one run.

``ours`` is a ratio to the reference for times (``seconds`` and ``reference_seconds`` carry both), the time itself in
milliseconds where the target is one, and the largest error where agreement is measured.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Clock
from discreet import networks
from discreet.domain import Domain
from discreet.errors import CostError
from discreet.factor import CliqueVector, Factor, log_of
from discreet.inference.exact import ExactEngine, get_engine
from discreet.inference.maximum import map_assignment
from discreet.io.bif import read_bif

try:
    import pyagrum as gum
except ImportError:  # a peer from the `bench` extra
    gum = None

Row = dict[str, Any]
NETWORKS = ("asia", "sachs", "child", "alarm")


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> list[Row]:
    """All rows. ``data`` is a directory with (or with a subdirectory of) BIF files; the bundled networks otherwise."""
    rng = np.random.default_rng(seed)
    alarm = Network("alarm", data)
    rows: list[Row] = []
    rows += _brute_force(rng, 40 if quick else 400)
    rows += _pyagrum(alarm, rng, data, 15 if quick else 60)
    rows += _pgmpy(alarm, quick)
    rows += _joint_map(alarm, rng, 10 if quick else 50, quick)
    rows += chain(rng, 15 if quick else 60)
    rows += _refusals(seed, 5 if quick else 15)
    rows += _sampling(alarm, seed, 100_000 if quick else 1_000_000)
    return rows


def _row(what: str, setting: str, ours: float | None, target: float | None, runs: int, **more: Any) -> Row:
    out = {"what": what, "setting": setting, "ours": ours, "reference": None, "reference_name": None}
    return {**out, "better": "lower", "target": target, "runs": runs, **more}


def _skipped(what: str, peer: str, target: float) -> Row:
    note = f"{peer} is not installed (pip install 'discreet[bench]'); the target would be {target:.3g}"
    return _row(what, "skipped", None, None, 0, note=note)


def _side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], runs: int, clock: Clock = time.perf_counter
) -> tuple[float, float]:
    """Median seconds of both, taken in turns, so that a busy moment of the machine meets both."""
    ours(), theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for k, work in enumerate((ours, theirs)):
            start = clock()
            work()
            times[k].append(clock() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _ratio(what: str, setting: str, peer: str, times: tuple[float, float], target: float | None, runs: int) -> Row:
    row = _row(what, setting, times[0] / times[1], target, runs, seconds=times[0], reference_seconds=times[1])
    return {**row, "reference": 1.0, "reference_name": peer}


class Network:
    """A network as potentials for us and as tables for the peers, which get numbers for level names."""

    def __init__(self, name: str, data: Path | None) -> None:
        path = (
            next((p for p in (data / f"{name}.bif", data / "networks" / f"{name}.bif") if p.exists()), None)
            if data
            else None
        )
        found: Any = read_bif(path) if path else networks.load(name)
        self.name = name
        self.domain: Domain = Domain.of(found.levels) if path else found.domain
        self.parents: dict[str, tuple[str, ...]] = {n: tuple(found.parents[n]) for n in self.domain}
        self.tables: dict[str, Any] = {n: np.asarray(found.tables[n]) for n in self.domain}
        factors = [Factor(self.domain.project((*self.parents[n], n)), log_of(self.tables[n])) for n in self.domain]
        self.potentials = CliqueVector.of(self.domain, factors)
        self.families = self.potentials.cliques

    def pyagrum(self) -> Any:
        bn = gum.BayesNet(self.name)
        for n in self.domain:
            bn.add(gum.LabelizedVariable(n, n, self.domain[n].size))
        for child, above in self.parents.items():
            for parent in above:
                bn.addArc(parent, child)
        for child, above in self.parents.items():
            for cell in np.ndindex(*self.tables[child].shape[:-1]):
                bn.cpt(child)[dict(zip(above, map(int, cell), strict=True))] = self.tables[child][cell].tolist()
        return bn

    def possible_evidence(self, rng: np.random.Generator, observed: int) -> dict[str, int]:
        record = get_engine(self.domain, self.families).calibrate(self.potentials).sample(1, rng)[0]
        chosen = rng.choice(len(self.domain), size=observed, replace=False)
        return {self.domain.names[i]: int(record[i]) for i in sorted(chosen)}


# -- agreement -----------------------------------------------------------------------------------------------------


def _brute_force(rng: np.random.Generator, models: int) -> list[Row]:
    """Random graphs with potentials up to ±50 or more, structural zeros and evidence, against all cells enumerated."""
    worst = 0.0
    done = 0
    while done < models:
        names = [f"x{i}" for i in range(int(rng.integers(2, 8)))]
        domain = Domain.of({n: int(rng.integers(1, 4)) for n in names})
        scale = float(rng.choice([0.5, 5.0, 50.0, 500.0]))
        tables = {}
        for _ in range(int(rng.integers(1, 10))):
            clique = domain.clique(rng.choice(names, size=min(len(names), int(rng.integers(1, 4))), replace=False))
            values = scale * rng.standard_normal(domain.project(clique).shape)
            values[rng.random(values.shape) < rng.choice([0.0, 0.1])] = -np.inf
            tables[clique] = values
        evidence = {n: int(rng.integers(domain[n].size)) for n in names if rng.random() < 0.15}
        joint = np.zeros(domain.shape)
        for clique, values in [*tables.items(), *(((n,), _observed(domain, n, c)) for n, c in evidence.items())]:
            joint = joint + values.reshape([domain[n].size if n in clique else 1 for n in names])
        top = joint.max()
        if top == -np.inf:
            continue
        log_z = top + math.log(np.exp(joint - top).sum())
        beliefs = get_engine(domain, tables).calibrate(tables, evidence)
        worst = max(worst, abs(beliefs.log_partition - log_z) / max(1.0, abs(log_z)))
        for names_ in [*tables, tuple(rng.permutation(names)[:3])]:
            axes = tuple(domain.index(n) for n in names_)
            rest = tuple(i for i in range(len(names)) if i not in axes)
            expected = np.exp(joint - log_z).sum(axis=rest)
            expected = expected.transpose(np.argsort(np.argsort(axes)))
            worst = max(worst, float(np.abs(beliefs.probabilities(names_) - expected).max()))
        done += 1
    setting = f"{models} random graphs, potentials up to ±1500, structural zeros, evidence"
    row = _row("agreement with brute force, largest error", setting, worst, 1e-10, models)
    return [{**row, "reference": 0.0, "reference_name": "all cells enumerated"}]


def _observed(domain: Domain, name: str, code: int) -> Any:
    return np.where(np.arange(domain[name].size) == code, 0.0, -np.inf)


# -- pyAgrum -------------------------------------------------------------------------------------------------------


def _pyagrum(alarm: Network, rng: np.random.Generator, data: Path | None, runs: int) -> list[Row]:
    what = ("agreement with pyAgrum, largest error", "all family marginals", "all family marginals, per model of 100")
    if gum is None:
        return [_skipped(w, "pyagrum", t) for w, t in zip(what, (1e-8, 1.0, 1 / 30), strict=True)]
    rows = []
    for name in NETWORKS:
        network = Network(name, data)
        worst, questions = _gap(network, rng)
        row = _row(what[0], f"{name}, {questions} sets of evidence, every column", worst, 1e-8, questions)
        rows.append({**row, "reference": 0.0, "reference_name": "pyAgrum LazyPropagation"})
    theirs = _lazy_propagation(alarm)
    engine = get_engine(alarm.domain, alarm.families)

    def compiled() -> list[Any]:
        beliefs = engine.calibrate(alarm.potentials)
        return [beliefs.probabilities(c) for c in alarm.families]

    batch = 100
    noisy = {c: f.values + 0.1 * rng.standard_normal((batch, *f.values.shape)) for c, f in alarm.potentials.items()}

    def batched() -> list[Any]:
        beliefs = engine.calibrate(noisy)
        return [beliefs.probabilities(c) for c in alarm.families]

    peer = "pyAgrum LazyPropagation"
    rows.append(_ratio(what[1], "alarm, graph compiled before", peer, _side_by_side(compiled, theirs, runs), 1.0, runs))
    rows += compiled_in_the_call(alarm, runs)
    ours, one = _side_by_side(batched, theirs, runs)
    rows.append(_ratio(what[2], "alarm, 100 parameter sets at once", peer, (ours / batch, one), 1 / 30, runs))
    return rows


def _lazy_propagation(network: Network) -> Callable[[], list[Any]]:
    """The marginals of all families by pyAgrum."""
    bn = network.pyagrum()
    families = [set(bn.family(n)) for n in bn.names()]

    def theirs() -> list[Any]:
        peer = gum.LazyPropagation(bn)
        for family in families:
            peer.addJointTarget(family)
        peer.makeInference()
        return [peer.jointPosterior(family) for family in families]

    return theirs


def compiled_in_the_call(
    network: Network, runs: int, target: float | None = None, clock: Clock = time.perf_counter
) -> list[Row]:
    """All family marginals of a graph that was not seen before."""
    if gum is None:
        return []

    def first_call() -> list[Any]:
        beliefs = ExactEngine(network.domain, network.families).calibrate(network.potentials)
        return [beliefs.probabilities(c) for c in network.families]

    times = _side_by_side(first_call, _lazy_propagation(network), runs, clock)
    setting = f"{network.name}, graph compiled in the call"
    return [_ratio("all family marginals", setting, "pyAgrum LazyPropagation", times, target, runs)]


def _gap(network: Network, rng: np.random.Generator, questions: int = 8) -> tuple[float, int]:
    bn = network.pyagrum()
    engine = get_engine(network.domain, network.families)
    worst = 0.0
    for q in range(questions):
        evidence = network.possible_evidence(rng, q * len(network.domain) // (2 * questions))
        peer = gum.LazyPropagation(bn)
        peer.setEvidence(evidence)
        peer.makeInference()
        beliefs = engine.calibrate(network.potentials, evidence)
        for n in network.domain:
            worst = max(worst, float(np.abs(beliefs.probabilities((n,)) - peer.posterior(n).toarray()).max()))
        if evidence:
            worst = max(worst, abs(math.exp(beliefs.log_partition) - peer.evidenceProbability()))
    return worst, questions


# -- pgmpy ---------------------------------------------------------------------------------------------------------

_PGMPY_MODEL = """
import json, sys, time, warnings, logging
warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
import numpy as np
from pgmpy.factors.discrete import TabularCPD
try:
    from pgmpy.models import DiscreteBayesianNetwork as Network
except ImportError:
    from pgmpy.models import BayesianNetwork as Network
from pgmpy.inference import BeliefPropagation, VariableElimination
parents, tables, evidence, task = json.load(sys.stdin)
model = Network([(p, c) for c, ps in parents.items() for p in ps])
model.add_nodes_from(parents)
for child, ps in parents.items():
    t = np.asarray(tables[child])
    columns = np.moveaxis(t, -1, 0).reshape(t.shape[-1], -1)
    model.add_cpds(TabularCPD(child, t.shape[-1], columns, list(ps), list(t.shape[:-1])) if ps
                   else TabularCPD(child, t.shape[-1], columns))
start = time.perf_counter()
if task == "families":
    ve = VariableElimination(model)
    for child, ps in parents.items():
        ve.query([child, *ps], show_progress=False)
elif task == "calibrate":
    BeliefPropagation(model).calibrate()
else:
    VariableElimination(model).map_query([n for n in parents if n not in evidence], evidence, show_progress=False)
print("seconds", time.perf_counter() - start)
"""


def _ask_pgmpy(network: Network, task: str, evidence: dict[str, int], timeout: float) -> tuple[float | None, str]:
    """Seconds pgmpy took in a process of its own with 8 GiB, or None and why there is no figure."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))

    tables = {n: t.tolist() for n, t in network.tables.items()}
    payload = json.dumps((network.parents, tables, evidence, task)).encode()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _PGMPY_MODEL]
    try:
        done = subprocess.run(
            command, input=payload, capture_output=True, timeout=timeout, preexec_fn=limited, env=environment
        )
    except subprocess.TimeoutExpired:
        return None, f"gave up after {timeout:.0f} s"
    text = done.stdout.decode()
    if "seconds" in text:
        return float(text.split("seconds")[1]), ""
    error = done.stderr.decode().strip().splitlines()
    last = error[-1] if error else f"exit code {done.returncode}"
    return None, "out of memory at 8 GiB" if "emory" in last or done.returncode < 0 else last[:120]


def _pgmpy_version() -> str | None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlib.metadata import version; print(version('pgmpy'))"], capture_output=True
    )
    return done.stdout.decode().strip() or None


def _pgmpy(alarm: Network, quick: bool) -> list[Row]:
    what = "all family marginals"
    version = _pgmpy_version()
    if version is None:
        return [_skipped(what, "pgmpy", 0.1)]
    engine = get_engine(alarm.domain, alarm.families)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        beliefs = engine.calibrate(alarm.potentials)
        for c in alarm.families:
            beliefs.probabilities(c)
        times.append(time.perf_counter() - start)
    ours = statistics.median(times)
    rows = []
    tasks = [("families", f"pgmpy {version} VariableElimination, a query a family")]
    if not quick:
        tasks.append(("calibrate", f"pgmpy {version} BeliefPropagation.calibrate alone"))
    for task, peer in tasks:
        seconds, why = _ask_pgmpy(alarm, task, {}, 300)
        if seconds is None:
            note = f"no figure for the peer: {why}"
            rows.append(_row(what, "alarm", None, None, 1, seconds=ours, reference_name=peer, note=note))
        else:
            rows.append(_ratio(what, "alarm", peer, (ours, seconds), 0.1, 1))
    return rows


# -- joint MAP -----------------------------------------------------------------------------------------------------


def _joint_map(alarm: Network, rng: np.random.Generator, runs: int, quick: bool) -> list[Row]:
    """24 of the 37 columns free; every run has evidence of its own."""
    observed = len(alarm.domain) - 24
    times = []
    evidence: dict[str, int] = {}
    for _ in range(runs + 1):
        evidence = alarm.possible_evidence(rng, observed)
        start = time.perf_counter()
        map_assignment(alarm.domain, alarm.potentials, evidence)
        times.append(1e3 * (time.perf_counter() - start))
    peer: dict[str, Any] = {}
    if not quick and _pgmpy_version() is not None:
        seconds, why = _ask_pgmpy(alarm, "map", evidence, 120)
        peer = {
            "reference": None if seconds is None else 1e3 * seconds,
            "reference_name": f"pgmpy map_query, ms {why}".strip(),
        }
    row = _row("joint MAP, ms", "alarm, 24 free columns", statistics.median(times), 20.0, runs + 1, **peer)
    return [{**row, "slowest": max(times)}]


# -- bare contractions ---------------------------------------------------------------------------------------------


def chain(
    rng: np.random.Generator, runs: int, strict_target: float | None = None, clock: Clock = time.perf_counter
) -> list[Row]:
    """Third-order chain of 10 columns with 20 levels: 7 tables of 160,000 cells.

    Reference: the contractions of the schedule alone — each of the 6 messages up and the 6 down is one multiplication
    of a table and one sum over it in plain NumPy — from tables that are already out of log space, without bookkeeping,
    without beliefs. Ours starts at log potentials and ends with the normalised beliefs of all cliques.
    """
    domain = Domain.of({f"x{i}": 20 for i in range(10)})
    cliques = [tuple(f"x{i + j}" for j in range(4)) for i in range(7)]
    potentials = CliqueVector.random(domain, cliques, rng)
    engine = get_engine(domain, cliques)
    tables = [f.exp() for f in potentials.values()]

    def multiply_and_sum() -> None:
        message = np.ones((20, 20, 20))
        for t in tables[:-1]:
            message = (t * message[..., None]).sum(axis=0)
        message = np.ones((20, 20, 20))
        for t in tables[:0:-1]:
            message = (t * message).sum(axis=3)

    def fused() -> None:
        message = np.ones((20, 20, 20))
        for t in tables[:-1]:
            message = np.einsum("abcd,abc->bcd", t, message)
        message = np.ones((20, 20, 20))
        for t in tables[:0:-1]:
            message = np.einsum("abcd,bcd->abc", t, message)

    def calibrate() -> None:
        engine.calibrate(potentials)

    setting = "third-order chain, 10 columns, 20 levels"
    what = "calibration beside its bare contractions"
    plain = _side_by_side(calibrate, multiply_and_sum, runs, clock)
    strict = _side_by_side(calibrate, fused, runs, clock)
    return [
        _ratio(what, setting, "12 messages, multiply and sum in NumPy", plain, 2.0, runs),
        _ratio(
            what, setting, "12 messages, each one fused np.einsum (no exp, no beliefs)", strict, strict_target, runs
        ),
    ]


# -- refusing ------------------------------------------------------------------------------------------------------


def _wide_graphs(seed: int) -> list[tuple[str, Domain, list[tuple[str, ...]]]]:
    clique = Domain.of({f"x{i}": 2 for i in range(31)})
    out = [("complete graph, width 30", clique, list(itertools.combinations(clique.names, 2)))]
    grid = Domain.of({f"x{i}_{j}": 2 for i in range(30) for j in range(30)})
    edges: list[tuple[str, ...]] = [(f"x{i}_{j}", f"x{i + 1}_{j}") for i in range(29) for j in range(30)]
    edges += [(f"x{i}_{j}", f"x{i}_{j + 1}") for i in range(30) for j in range(29)]
    out.append(("30 × 30 grid, width 30", grid, edges))
    # A random partial 30-tree: every new column joins 30 of the 31 of an earlier clique; a fifth of the edges is lost.
    rng = np.random.default_rng(seed)
    groups = [list(range(31))]
    pairs = set(itertools.combinations(range(31), 2))
    for v in range(31, 120):
        base = [int(u) for u in rng.permutation(groups[int(rng.integers(len(groups)))])[:30]]
        pairs |= {(u, v) for u in base}
        groups.append([*base, v])
    kept = [p for p in sorted(pairs) if rng.random() < 0.8]
    tree = Domain.of({f"x{i}": 2 for i in range(120)})
    out.append(("partial 30-tree of 120 columns", tree, [(f"x{a}", f"x{b}") for a, b in kept]))
    return out


def _refusals(seed: int, runs: int) -> list[Row]:
    rows = []
    for setting, domain, edges in _wide_graphs(seed):
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            try:
                ExactEngine(domain, edges)
            except CostError:
                times.append(1e3 * (time.perf_counter() - start))
        # The fastest: what the work takes, without what else the machine was doing.
        value = min(times) if len(times) == runs else None
        rows.append(_row("refusal of a graph that is too wide, ms, fastest of the runs", setting, value, 50.0, runs))
    return rows


# -- sampling ------------------------------------------------------------------------------------------------------


def _sampling(alarm: Network, seed: int, n: int) -> list[Row]:
    beliefs = get_engine(alarm.domain, alarm.families).calibrate(alarm.potentials)
    rows = []
    for mode, draw in (("independent", beliefs.sample), ("rounded", beliefs.sample_rounded)):
        start = time.perf_counter()
        codes = draw(n, seed)
        seconds = time.perf_counter() - start
        worst = 0.0
        for clique in alarm.families:
            p = beliefs.probabilities(clique).ravel()
            at = tuple(codes[:, alarm.domain.index(name)].astype(np.intp) for name in clique)
            counts = np.bincount(np.ravel_multi_index(at, alarm.domain.project(clique).shape), minlength=p.size)
            worst = max(worst, float((np.abs(counts - n * p) / np.sqrt(n * p * (1 - p) + 1)).max()))
        setting = f"alarm, {n:,} records, {mode}"
        rows.append(_row("sampling, seconds per million records", setting, seconds * 1e6 / n, None, 1, method=mode))
        # Chance alone gives about 4 over some 750 cells.
        rows.append(_row("family counts off by, standard deviations", setting, worst, 6.0, 1, method=mode))
    return rows


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv, seed=0, data=None):
        print(line)
