"""Bayesian networks with a private budget: our default beside the paper's methods, its printed values and the peers.

Data: records drawn from asia, sachs, child and alarm (and from random networks that nothing was tuned on). Everything
is compared with the non-private fit of the same records. *Joint KL* is KL(non-private ‖ private); the paper's reversed
KL stands beside it (it is infinite wherever the private model allows what never occurred, which ours always does).
*Marginal L1* is the mean over random tables of one to five columns.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._directed_work import RECORDS, Work, compare
from benchmarks.harness import Resumable, row
from discreet import networks
from discreet.estimation.compute_parameters import LEAST_RECORDS, measure_nodes
from discreet.estimation.families import Families
from discreet.estimation.network_search import SearchedNetwork
from discreet.estimation.nonprivate import NonprivateNetwork
from discreet.estimation.optimal import OptimalNetwork
from discreet.estimation.shares import allocate
from discreet.estimation.two_stage import TwoStageNetwork
from discreet.estimation.uniform import UniformNetwork
from discreet.io.interchange import load_bif
from discreet.models import BayesianNetwork
from discreet.models.generators import network as random_network
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.query import Marginals

Row = dict[str, Any]
EPSILONS = (1.0, 1.5, 2.0, 2.5, 3.0)
KL_TARGETS = {"asia": 0.003, "sachs": 0.035, "child": 0.075, "alarm": 0.32}
L1_TARGETS = {"asia": 0.007, "sachs": 0.024, "child": 0.050, "alarm": 0.075}
# [CRJ20] Tables 1 and 2, as printed: (D-Ind, their scheme) for ε = 1, 1.5, 2, 2.5, 3.
PAPER_MAP = {
    "asia": ((0.88, 0.93, 1, 1, 1), (1, 1, 1, 1, 1)),
    "sachs": ((0.81, 0.87, 0.92, 0.96, 1), (0.86, 0.93, 0.98, 1, 1)),
    "child": ((0.79, 0.83, 0.89, 1, 1), (0.93, 0.95, 0.97, 1, 1)),
    "alarm": ((0.89, 0.92, 0.95, 1, 1), (0.95, 0.98, 1, 1, 1)),
}
PAPER_MU = {"asia": (0.008, 0.0035), "sachs": (0.065, 0.04), "child": (0.0035, 0.0014), "alarm": (0.0046, 0.0012)}
METHODS: dict[str, Callable[[Any], Any]] = {
    "optimal": OptimalNetwork,
    "uniform": UniformNetwork,
    "two_stage": TwoStageNetwork,
}
FLOORS = (0.01, 0.1, 1.0)


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. ``data`` may hold the networks as BIF files; the bundled ones are used otherwise. A full run is
    resumable: what was finished is kept in ``directed-SEED.json`` in the folder ``data``, if there is one. It draws
    ``directed.png`` there, or in the current folder."""
    kept = Resumable(data / f"directed-{seed}.json" if data is not None and not quick else None)
    found = {}
    for name in networks.names():
        network = _load(name, data)
        work = Work(network, seed)
        found[name] = kept.get(name, lambda w=work: _measure(w, quick))
        yield from _headline(name, found[name])
        yield _against_three(name, network, seed, 60 if len(network.domain) < 12 else 15)
    yield from _gaussian(_load("alarm", data), seed, found["alarm"]["uniform@1"], 15)
    yield from _untuned(seed, 2 if quick else 6, 15)
    for name in networks.names():
        yield from _paper_tables(name, found[name])
    yield from _search(_load("sachs", data), seed, 3 if quick else 10)
    yield from _times(_load("alarm", data), seed)
    peers_on = "child" if quick else "alarm"
    yield from _peers(peers_on, _load(peers_on, data), seed)
    for peer in ("dpmm", "DataSynthesizer"):
        yield _synthesizer(peer, Work(_load("sachs", data), seed), quick)
    if not quick:
        draw(found, (data or Path.cwd()) / "directed.png")


def _load(name: str, data: Path | None) -> BayesianNetwork:
    for folder in (data, data / "networks") if data is not None else ():
        if (folder / f"{name}.bif").exists():
            return load_bif(folder / f"{name}.bif")
    return networks.load(name)


# -- measuring -------------------------------------------------------------------------------------------------------


def _measure(work: Work, quick: bool) -> dict[str, Any]:
    """Means over runs for each method and ε; JSON."""
    epsilons = (1.0, 3.0) if quick else EPSILONS
    out: dict[str, Any] = {}
    for method in METHODS:
        for epsilon in epsilons:
            small = len(work.network.domain) < 12
            runs = 15 if small or not quick or (method == "optimal" and epsilon == 1) else 5
            rows = [_one_run(work, method, PureDP(epsilon), run, queries=10 if quick else 20) for run in range(runs)]
            out[f"{method}@{epsilon:g}"] = {key: float(np.mean([r[key] for r in rows])) for key in rows[0]} | {
                "runs": runs
            }
    return out


def _one_run(work: Work, method: str, budget: Budget, run: int, queries: int = 20) -> dict[str, float]:
    table = work.table(run)
    exact = NonprivateNetwork(work.network).fit(ExactCurator(table))
    private = METHODS[method](work.network).fit(Curator(table, budget=budget))
    return compare(work, exact, private, run, queries)


# -- rows --------------------------------------------------------------------------------------------------------------

PURE = {"notion": "pure", "relation": "add-remove", "n_public": False}


def _headline(name: str, found: dict[str, Any]) -> Iterator[Row]:
    ours, uniform, two = (found[k] for k in ("optimal@1", "uniform@1", "two_stage@1"))
    setting = f"{name}, eps=1, laplace"
    yield row("joint KL", setting, ours["kl"], target=KL_TARGETS[name], reference=uniform["kl"],
              reference_name="uniform budgets, eps=1", runs=ours["runs"], **PURE)  # fmt: skip
    yield row("marginal L1", setting, ours["marginal_l1"], target=L1_TARGETS[name], reference=uniform["marginal_l1"],
              reference_name="uniform budgets, eps=1", runs=ours["runs"], **PURE)  # fmt: skip
    yield row("joint KL", setting, two["kl"], reference=uniform["kl"], reference_name="uniform budgets, eps=1",
              method="two_stage", runs=two["runs"], **PURE)  # fmt: skip
    for method, values in (("optimal", ours), ("uniform", uniform), ("two_stage", two)):
        yield row("reversed KL of the paper", setting, values["reversed_kl"], method=method, runs=values["runs"],
                  note="" if math.isfinite(values["reversed_kl"]) else "infinite: it allows what never occurred",
                  **PURE)  # fmt: skip
        if "reversed_kl_smoothed" in values:
            yield row("reversed KL, reference mixed with 0.1 % uniform", setting, values["reversed_kl_smoothed"],
                      method=method, runs=values["runs"], **PURE)  # fmt: skip
        for what, key in (("L1 of any-size marginals", "any_size_l1"), ("L1 of conditionals", "conditional_l1"),
                          ("L1 of parameters, mean row", "parameter_l1")):  # fmt: skip
            yield row(what, setting, values[key], method=method, runs=values["runs"], **PURE)


def _gaussian(network: BayesianNetwork, seed: int, uniform: dict[str, Any], runs: int) -> Iterator[Row]:
    work = Work(network, seed)
    rows = [_one_run(work, "optimal", ApproxDP(1, 1e-6), run, queries=10) for run in range(runs)]
    more = {"notion": "approx", "relation": "add-remove", "n_public": False, "runs": runs}
    name = "uniform budgets, laplace"
    setting = "alarm, eps=1, delta=1e-6, gaussian"
    yield row("joint KL", setting, np.mean([r["kl"] for r in rows]), target=0.20, reference=uniform["kl"],
              reference_name=name, **more)  # fmt: skip
    yield row("marginal L1", setting, np.mean([r["marginal_l1"] for r in rows]), target=0.052,
              reference=uniform["marginal_l1"], reference_name=name, **more)  # fmt: skip


def _against_three(name: str, network: BayesianNetwork, seed: int, runs: int) -> Row:
    """Our ε = 1 against uniform budgets at ε = 3.

    As the paper states it, the uniform method leaves zeros and its joint KL is infinite. How many records to put on top
    of every cell is our choice, so it gets the best of several for each network.
    """
    ours: list[float] = []
    theirs: dict[float, list[float]] = {least: [] for least in FLOORS}
    families = Families.of(network.domain, network)
    for run in range(runs):
        table = Work(network, seed).table(run)
        exact = NonprivateNetwork(network).fit(ExactCurator(table))
        ours.append(exact.kl(OptimalNetwork(network).fit(Curator(table, budget=PureDP(1)))))
        curator = Curator(table, budget=PureDP(3))
        measured = measure_nodes(curator, families, PureDP(3), [1] * len(network.domain), "auto")
        for least in FLOORS:
            model = UniformNetwork(network, least_records=least).estimate(measured, network.domain)
            theirs[least].append(exact.kl(model))
    means = {least: float(np.mean(values)) for least, values in theirs.items()}
    best = min(means, key=lambda least: means[least])
    return row("joint KL, ratio to uniform at eps=3", f"{name}, eps=1", np.mean(ours) / means[best], target=1.0,
               reference=1.0, reference_name=f"uniform, eps=3, +{best:g} records a cell", runs=runs,
               kl=float(np.mean(ours)), reference_kl={f"{k:g}": v for k, v in means.items()}, **PURE)  # fmt: skip


def _untuned(seed: int, count: int, runs: int) -> Iterator[Row]:
    """Random networks that nothing was tuned on."""
    for i in range(count):
        network = random_network(10 + 5 * i, max_parents=3, levels=2 + i % 3, concentration=(0.3, 1.0)[i % 2],
                                 random_state=1000 * seed + i)  # fmt: skip
        yield _against_three(f"random network {i}, {len(network.domain)} columns", network, seed, runs)


def _paper_tables(name: str, found: dict[str, Any]) -> Iterator[Row]:
    """Tables 1 and 2 with the paper's printed values as the reference."""
    for i, epsilon in enumerate(EPSILONS):
        for method, column in (("optimal", 1), ("uniform", 0), ("two_stage", 1)):
            values = found.get(f"{method}@{epsilon:g}")
            if values is not None:
                printed = "paper, D-Ind" if column == 0 else "paper, its scheme"
                yield row("MAP accuracy (Table 1)", f"{name}, eps={epsilon:g}", values["map"], better="higher",
                          reference=PAPER_MAP[name][column][i], reference_name=printed, method=method,
                          runs=values["runs"], **PURE)  # fmt: skip
    for method, column in (("optimal", 1), ("uniform", 0), ("two_stage", 1)):
        values = found[f"{method}@1"]
        yield row("normalised error mu (Table 2)", f"{name}, eps=1", values["mu"], method=method,
                  reference=PAPER_MU[name][column], reference_name="paper", runs=values["runs"],
                  note="small for any method: the upper bound says nothing", **PURE)  # fmt: skip


def _search(network: BayesianNetwork, seed: int, runs: int) -> Iterator[Row]:
    ours, flat = [], []
    for run in range(runs):
        table = Work(network, seed).table(run)
        ours.append(network.kl(SearchedNetwork(max_parents=2).fit(Curator(table, budget=PureDP(1)))))
        flat.append(network.kl(OptimalNetwork({}).fit(Curator(table, budget=PureDP(1)))))
    yield row("KL from the truth, graph searched privately", "sachs, eps=1", np.mean(ours), reference=np.mean(flat),
              reference_name="independent columns", method="searched", runs=runs, **PURE)  # fmt: skip


def _times(network: BayesianNetwork, seed: int) -> Iterator[Row]:
    table = Work(network, seed).table(0)
    learner = OptimalNetwork(network)

    def fit() -> None:
        learner.fit(Curator(table, budget=PureDP(1)))

    fit()
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        fit()
        times.append(time.perf_counter() - begun)
    yield row("seconds to fit, in all", "alarm, 10,000 encoded records", np.median(times), target=0.5, runs=7)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pgmpy|benchmarks")
    try:
        import pandas as pd
        from pgmpy.estimators import MaximumLikelihoodEstimator
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError:
        yield row("counting, time by pgmpy's", "alarm", None, runs=0, note="skipped: pgmpy is not installed")  # type: ignore[arg-type]
        return
    families = Families.of(network.domain, network)
    codes = network.sample(RECORDS, seed).codes
    frame = pd.DataFrame({n: codes[:, i] for i, n in enumerate(network.domain)})
    peer = DiscreteBayesianNetwork(list(network.edges))
    peer.add_nodes_from(network.domain.names)
    ratios = []
    for _ in range(3):
        begun = time.perf_counter()
        ExactCurator(table).measure(Marginals(network.domain, families.maximal))
        middle = time.perf_counter()
        MaximumLikelihoodEstimator(peer, frame).get_parameters(n_jobs=1)
        ratios.append((middle - begun) / (time.perf_counter() - middle))
    yield row("counting, time by pgmpy's MLE", "alarm, 10,000 encoded records", np.median(ratios), target=1 / 20,
              reference=1.0, reference_name="pgmpy", runs=3)  # fmt: skip


# -- peers -------------------------------------------------------------------------------------------------------------


def _peers(name: str, network: BayesianNetwork, seed: int) -> Iterator[Row]:
    """Private-PGM on the same noisy tables. What is missing says so."""
    work = Work(network, seed)
    try:
        yield _mbi(name, work)
    except ImportError:
        yield _skipped("mbi (private-pgm)")
    except Exception as failure:  # another version of the peer than we know: its trouble must not stop ours
        yield _skipped("mbi (private-pgm)", f"it failed: {type(failure).__name__}: {failure}"[:200])


def _skipped(peer: str, why: str = "it is not installed") -> Row:
    return row("comparison with a peer", f"eps=1, {peer}", None, runs=0, note=f"skipped {peer}: {why}")  # type: ignore[arg-type]


def _mbi(name: str, work: Work, runs: int = 2) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
    domain = work.network.domain
    learner = OptimalNetwork(work.network)
    families = learner.families(domain)
    query = Marginals(domain, families.maximal)
    estimator = mbi.estimation.MirrorDescent()
    peer_domain = mbi.Domain(domain.names, domain.shape)
    ours, theirs, seconds = [], [], []
    for run in range(runs):
        table = work.table(run)
        exact = NonprivateNetwork(work.network).fit(ExactCurator(table))
        curator = Curator(table, budget=PureDP(1))
        measured = curator.measure(query, weights=list(allocate(query, curator.unit, PureDP(1)).weights))
        begun = time.perf_counter()
        ours.append(exact.kl(learner.estimate(measured, domain)))
        middle = time.perf_counter()
        given = [mbi.LinearMeasurement(m.values.reshape(-1), m.clique, m.standard_deviation) for m in measured]
        model = estimator.estimate(peer_domain, given, iters=1000)
        tables = {}
        for column in domain:
            scope = (*families.parents[column], column)
            counts = np.asarray(model.project(scope).datavector(), dtype=np.float64)
            shaped = np.maximum(counts, LEAST_RECORDS).reshape([domain[n].size for n in scope])
            tables[column] = shaped / shaped.sum(axis=-1, keepdims=True)
        theirs.append(exact.kl(families.network(tables)))
        seconds.append((time.perf_counter() - middle) / (middle - begun))
    return row("joint KL, same noisy tables", f"{name}, eps=1, laplace", np.mean(ours), reference=np.mean(theirs),
               reference_name="mbi, mirror descent, 1,000 steps", runs=runs, time_ratio=float(np.median(seconds)),
               **PURE)  # fmt: skip


def _synthesizer(peer: str, work: Work, quick: bool) -> Row:
    """PrivBayes of a peer against our private search, graph and tables both learned: L1 to the records' own tables.

    The peers pin other versions of what we need, so they run in an interpreter of their own, named by DISCREET_PEERS.
    """
    python = os.environ.get("DISCREET_PEERS")
    if quick or not python:
        return _skipped(peer, "it takes minutes" if quick else "set DISCREET_PEERS to a Python that has it")
    budget: Budget = ApproxDP(1, 1e-6) if peer == "dpmm" else PureDP(1)
    domain = work.network.domain
    codes = work.codes(0)
    script = Path(__file__).with_name("_directed_peers.py")
    with tempfile.TemporaryDirectory() as folder:
        records, levels, made = (str(Path(folder) / name) for name in ("records.csv", "levels.json", "made.csv"))
        np.savetxt(records, codes, fmt="%d", delimiter=",", header=",".join(domain.names), comments="")
        Path(levels).write_text(json.dumps(dict(zip(domain.names, domain.shape, strict=True))))
        call = [python, str(script), peer, records, levels, "1", "2", made]
        ran = subprocess.run(call, capture_output=True, text=True, check=False)
        if ran.returncode:
            return _skipped(
                peer, "it failed: " + ran.stderr.strip().splitlines()[-1][:150] if ran.stderr else "it failed"
            )
        header = Path(made).read_text().split("\n", 1)[0].split(",")
        synthetic = np.loadtxt(made, delimiter=",", skiprows=1, dtype=np.int64)[:, [header.index(n) for n in domain]]
    model = SearchedNetwork(max_parents=2).fit(Curator(work.table(0), budget=budget))
    questions = work.marginals(0, 40)

    def frequencies(rows: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        shape = tuple(domain[n].size for n in names)
        flat = np.ravel_multi_index(tuple(rows[:, domain.index(n)].astype(np.int64) for n in names), shape)
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape) / len(rows)

    ours = [np.abs(model.marginal(q).probabilities - frequencies(codes, q)).sum() for q in questions]
    theirs = [np.abs(frequencies(synthetic, q) - frequencies(codes, q)).sum() for q in questions]
    return row("marginal L1, graph searched too", f"sachs, {budget}", np.mean(ours), reference=np.mean(theirs),
               reference_name=f"{peer}, PrivBayes, 50,000 records", method="searched", runs=1)  # fmt: skip


# -- figures -----------------------------------------------------------------------------------------------------------


def draw(found: dict[str, Any], path: Path) -> None:
    """Figure 1 of the paper: errors of parameters, marginals and conditionals over ε for sachs and child."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(2, 4, figsize=(15, 6), constrained_layout=True)
    keys = ("kl", "parameter_l1", "any_size_l1", "conditional_l1")
    for line, name in zip(axes, ("sachs", "child"), strict=True):
        for ax, key in zip(line, keys, strict=True):
            for method in METHODS:
                points = [
                    (e, found[name][f"{method}@{e:g}"][key]) for e in EPSILONS if f"{method}@{e:g}" in found[name]
                ]
                ax.semilogy(*zip(*points, strict=True), marker="o", label=method)
            ax.set_title(f"{name}: {key.replace('_', ' ')}")
            ax.set_xlabel("ε")
    axes[0, 0].legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
