"""Bayesian networks with a private budget: our default beside the paper's methods, its printed values and the peers.

Data: records drawn from asia, sachs, child and alarm (and from random networks that nothing was tuned on). Everything
is compared with the non-private fit of the same records. *Joint KL* is KL(non-private ‖ private); the paper's reversed
KL stands beside it (it is infinite wherever the private model allows what never occurred, which ours always does).
*Marginal L1* is the mean over random tables of one to five columns.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Resumable, row
from discreet import networks
from discreet.estimation.compute_parameters import LEAST_RECORDS
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
from discreet.tables.memory import MemoryTable
from discreet.theory.directed import paper_bounds, parameter_l1

Row = dict[str, Any]
RECORDS = 10_000
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
LARGEST_TABLE = 1 << 13


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. ``data`` may hold the networks as BIF files; the bundled ones are used otherwise. A full run is
    resumable: what was finished is kept in ``directed-SEED.json`` in the folder ``data``, if there is one."""
    kept = Resumable(data / f"directed-{seed}.json" if data is not None and not quick else None)
    found = {}
    for name in networks.names():
        network = _load(name, data)
        work = Work(network, seed)
        found[name] = kept.get(name, lambda w=work: _measure(w, quick))
        yield from _headline(name, found[name])
    yield from _gaussian(_load("alarm", data), seed, found["alarm"]["uniform@1"], 15)
    yield from _untuned(seed, 2 if quick else 6, 5 if quick else 15)
    for name in networks.names():
        yield from _paper_tables(name, found[name])
    yield from _search(_load("sachs", data), seed, 3 if quick else 10)
    yield from _times(_load("alarm", data), seed)
    yield from _peers(_load("alarm", data), seed)
    if not quick:
        draw(found, Path("directed.png"))


def _load(name: str, data: Path | None) -> BayesianNetwork:
    for folder in (data, data / "networks") if data is not None else ():
        if (folder / f"{name}.bif").exists():
            return load_bif(folder / f"{name}.bif")
    return networks.load(name)


# -- measuring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """One network: fresh records for each run, and random questions."""

    network: BayesianNetwork
    seed: int

    def table(self, run: int) -> MemoryTable:
        return MemoryTable(self.network.domain, list(self.network.sample(RECORDS, self._rng(run, 0)).codes.T))

    def marginals(self, run: int, count: int) -> list[tuple[str, ...]]:
        """Random sets of one to five columns."""
        rng = self._rng(run, 1)
        names = self.network.domain.names
        return [tuple(rng.choice(names, 1 + i % min(5, len(names)), replace=False).tolist()) for i in range(count)]

    def any_size(self, run: int, count: int) -> list[tuple[str, ...]]:
        """Random sets from single columns up to all of them, cut where the table would get too large to list."""
        rng = self._rng(run, 2)
        domain = self.network.domain
        out = []
        for _ in range(count):
            chosen: list[str] = []
            for name in rng.permutation(domain.names)[: int(rng.integers(1, len(domain) + 1))].tolist():
                if domain.size((*chosen, name)) <= LARGEST_TABLE:
                    chosen.append(name)
            out.append(tuple(chosen))
        return out

    def conditions(self, run: int, count: int) -> list[tuple[str, dict[str, object]]]:
        """One column given one to four others at the values of a record."""
        rng = self._rng(run, 3)
        domain = self.network.domain
        records = self.network.sample(count, rng).codes
        out = []
        for record in records:
            names = rng.choice(len(domain), 1 + int(rng.integers(1, min(5, len(domain)))), replace=False)
            given = {domain.names[i]: domain.attributes[i].labels[int(record[i])] for i in names[1:]}
            out.append((domain.names[names[0]], given))
        return out

    def assignments(self, run: int, count: int) -> list[dict[str, object]]:
        """Conditions for MAP questions: any number of columns at the values of a record; all others are asked for."""
        rng = self._rng(run, 4)
        domain = self.network.domain
        out = []
        for record in self.network.sample(count, rng).codes:
            names = rng.choice(len(domain), int(rng.integers(0, len(domain))), replace=False)
            out.append({domain.names[i]: domain.attributes[i].labels[int(record[i])] for i in names})
        return out

    def _rng(self, run: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, run, purpose, len(self.network.domain)])


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


def compare(work: Work, exact: BayesianNetwork, private: BayesianNetwork, run: int, queries: int) -> dict[str, float]:
    """Every figure of the paper for one run."""

    def l1(names: tuple[str, ...] | str, given: Any = None) -> tuple[float, float]:
        p, q = exact.marginal(names, given).probabilities, private.marginal(names, given).probabilities
        reached = p > 0
        return float(np.abs(p - q).sum()), float((p[reached] * np.log(p[reached] / q[reached])).sum())

    small = [l1(names)[0] for names in work.marginals(run, queries)]
    large = np.array([l1(names) for names in work.any_size(run, max(queries // 2, 1))])
    asked = [(name, given) for name, given in work.conditions(run, queries) if _possible(exact, given)]
    conditional = np.array([l1(name, given) for name, given in asked]) if asked else np.zeros((1, 2))
    hits = [
        dict(exact.map(None, given)) == dict(private.map(None, given))
        for given in work.assignments(run, queries)
        if _possible(exact, given)
    ]
    bounds = paper_bounds(exact, private)
    return {
        "kl": exact.kl(private),
        "reversed_kl": private.kl(exact),
        "marginal_l1": float(np.mean(small)),
        "any_size_l1": float(large[:, 0].mean()),
        "any_size_kl": float(large[:, 1].mean()),
        "conditional_l1": float(conditional[:, 0].mean()),
        "conditional_kl": float(conditional[:, 1].mean()),
        "map": float(np.mean(hits)) if hits else 1.0,
        "parameter_l1": parameter_l1(exact, private),
        "mu": float(np.mean([bounds.normalised(e) for e in small])),
    }


def _possible(model: BayesianNetwork, given: dict[str, object]) -> bool:
    return not given or model.probability(given) > 0


# -- rows --------------------------------------------------------------------------------------------------------------

PURE = {"notion": "pure", "relation": "add-remove", "n_public": False}


def _headline(name: str, found: dict[str, Any]) -> Iterator[Row]:
    ours, uniform, three, two = (found[k] for k in ("optimal@1", "uniform@1", "uniform@3", "two_stage@1"))
    setting = f"{name}, eps=1, laplace"
    yield row("joint KL", setting, ours["kl"], target=KL_TARGETS[name], reference=uniform["kl"],
              reference_name="uniform budgets, eps=1", runs=ours["runs"], **PURE)  # fmt: skip
    yield row("marginal L1", setting, ours["marginal_l1"], target=L1_TARGETS[name], reference=uniform["marginal_l1"],
              reference_name="uniform budgets, eps=1", runs=ours["runs"], **PURE)  # fmt: skip
    yield row("joint KL, ratio to uniform at eps=3", setting, ours["kl"] / three["kl"], target=1.0, reference=1.0,
              reference_name="uniform budgets, eps=3", runs=ours["runs"], **PURE)  # fmt: skip
    yield row("joint KL", setting, two["kl"], reference=uniform["kl"], reference_name="uniform budgets, eps=1",
              method="two_stage", runs=two["runs"], **PURE)  # fmt: skip
    for method, values in (("optimal", ours), ("uniform", uniform), ("two_stage", two)):
        yield row("reversed KL of the paper", setting, values["reversed_kl"], method=method, runs=values["runs"],
                  note="" if math.isfinite(values["reversed_kl"]) else "infinite: it allows what never occurred",
                  **PURE)  # fmt: skip
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


def _untuned(seed: int, count: int, runs: int) -> Iterator[Row]:
    """Random networks: our ε = 1 against uniform budgets at ε = 3."""
    for i in range(count):
        levels = 2 + i % 3
        network = random_network(10 + 5 * i, max_parents=3, levels=levels, concentration=(0.3, 1.0)[i % 2],
                                 random_state=1000 * seed + i)  # fmt: skip
        kls: dict[str, list[float]] = {"optimal": [], "uniform": []}
        for run in range(runs):
            table = Work(network, seed).table(run)
            exact = NonprivateNetwork(network).fit(ExactCurator(table))
            kls["optimal"].append(exact.kl(OptimalNetwork(network).fit(Curator(table, budget=PureDP(1)))))
            kls["uniform"].append(exact.kl(UniformNetwork(network).fit(Curator(table, budget=PureDP(3)))))
        ours, theirs = np.mean(kls["optimal"]), np.mean(kls["uniform"])
        yield row("joint KL, ratio to uniform at eps=3", f"random network {i}: {len(network.domain)} columns, eps=1",
                  ours / theirs, target=1.0, reference=1.0, reference_name="uniform budgets, eps=3", runs=runs,
                  kl=float(ours), reference_kl=float(theirs), **PURE)  # fmt: skip


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


def _peers(network: BayesianNetwork, seed: int) -> Iterator[Row]:
    """Private-PGM on the same noisy tables; the others on the same records and budget. What is missing says so."""
    work = Work(network, seed)
    try:
        yield _mbi(work)
    except ImportError:
        yield _skipped("mbi (private-pgm)")
    except Exception as failure:  # another version of the peer than we know: its trouble must not stop ours
        yield _skipped("mbi (private-pgm)", f"it failed: {type(failure).__name__}: {failure}"[:200])
    for peer in ("dpmm", "DataSynthesizer"):
        try:
            __import__(peer)
        except ImportError:
            yield _skipped(peer)
        else:
            yield _skipped(peer, "it is installed, but there is no comparison with it yet")


def _skipped(peer: str, why: str = "it is not installed") -> Row:
    return row("joint KL", f"alarm, eps=1, {peer}", None, runs=0, note=f"skipped {peer}: {why}")  # type: ignore[arg-type]


def _mbi(work: Work, runs: int = 2) -> Row:
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
        for name in domain:
            scope = (*families.parents[name], name)
            counts = np.asarray(model.project(scope).datavector(), dtype=np.float64)
            shaped = np.maximum(counts, LEAST_RECORDS).reshape([domain[n].size for n in scope])
            tables[name] = shaped / shaped.sum(axis=-1, keepdims=True)
        theirs.append(exact.kl(families.network(tables)))
        seconds.append((time.perf_counter() - middle) / (middle - begun))
    return row("joint KL, same noisy tables", "alarm, eps=1, laplace", np.mean(ours), reference=np.mean(theirs),
               reference_name="mbi, mirror descent, 1,000 steps", runs=runs, time_ratio=float(np.median(seconds)),
               **PURE)  # fmt: skip


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
