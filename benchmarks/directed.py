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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._directed_figures import EPSILONS, PAPER_MAP, PAPER_MU, draw
from benchmarks._directed_work import RECORDS, Work, compare
from benchmarks.harness import Checkpoint, checked_rows, row
from discreet import networks
from discreet.files import load_bif
from discreet.learn.networks.families import Families
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.learn.networks.search import SearchedNetwork
from discreet.learn.nonprivate import NonprivateNetwork
from discreet.models import BayesianNetwork
from discreet.models.generators import network as random_network
from discreet.papers.compute_parameters import LEAST_RECORDS
from discreet.papers.two_stage import TwoStageNetwork
from discreet.papers.uniform import UniformNetwork
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.query import Marginals
from discreet.release.uncertainty import noise_intervals

Row = dict[str, Any]
KL_TARGETS = {"asia": 0.003, "sachs": 0.035, "child": 0.075, "alarm": 0.32}
L1_TARGETS = {"asia": 0.007, "sachs": 0.024, "child": 0.050, "alarm": 0.075}
METHODS: dict[str, Callable[[Any], Any]] = {
    "optimal": OptimalNetwork,
    "uniform": UniformNetwork,
    "two_stage": TwoStageNetwork,
}
FLOORS = (0.01, 0.1, 1.0)


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. ``data`` may hold the networks as BIF files; the bundled ones are used otherwise. Draws Tables 1 and 2
    and Figure 1 into ``directed.png`` (``directed-quick.png``) in the folder ``data``, or the current one. A full run
    that was interrupted is taken up again from ``directed-SEED.checkpoint.jsonl`` there."""
    with Checkpoint.of("directed", seed, quick, data) as kept:

        def part(key: str, rows: Callable[[], Iterable[Row]]) -> list[Row]:
            return kept.get(key, lambda: checked_rows(rows()))

        found: dict[str, Any] = {}
        for name in networks.names():
            network = _load(name, data)
            work = Work(network, seed)
            found[name] = _measure(work, quick, name, kept)
            yield from _headline(name, found[name])
            runs = 60 if len(network.domain) < 12 else 15
            yield from part(f"{name}, against three", lambda n=name, w=network, r=runs: [_against_three(n, w, seed, r)])
        alarm, sachs = _load("alarm", data), _load("sachs", data)
        yield from part("gaussian", lambda: _gaussian(alarm, seed, found["alarm"]["uniform@1"], 15))
        for i in range(2 if quick else 6):
            yield from part(f"untuned {i}", lambda i=i: [_untuned(seed, i, 15)])
        for name in networks.names():
            yield from _paper_tables(name, found[name])
        yield from part("coverage", lambda: _coverage(Work(_load("asia", data), seed), quick))
        yield from part("search", lambda: _search(sachs, seed, 3 if quick else 10))
        yield from part("times", lambda: _times(alarm, seed))
        on = "child" if quick else "alarm"
        yield from part("mbi", lambda: _peers(on, _load(on, data), seed))
        draw(found, (data or Path.cwd()) / ("directed-quick.png" if quick else "directed.png"), quick)


def _load(name: str, data: Path | None) -> BayesianNetwork:
    for folder in (data, data / "networks") if data is not None else ():
        if (folder / f"{name}.bif").exists():
            return load_bif(folder / f"{name}.bif")
    return networks.load(name)


# -- measuring -------------------------------------------------------------------------------------------------------


def _measure(work: Work, quick: bool, name: str, kept: Checkpoint) -> dict[str, Any]:
    """Means over runs for each method and ε."""
    small = len(work.network.domain) < 12

    def mean(method: str, epsilon: float) -> dict[str, float]:
        runs = 15 if small or not quick or (method == "optimal" and epsilon == 1) else 5
        rows = [_one_run(work, method, PureDP(epsilon), run, queries=10 if quick else 20) for run in range(runs)]
        return {key: float(np.mean([r[key] for r in rows])) for key in rows[0]} | {"runs": runs}

    return {
        f"{method}@{epsilon:g}": kept.get(f"{name}, {method}, eps={epsilon:g}", lambda m=method, e=epsilon: mean(m, e))
        for method in METHODS
        for epsilon in ((1.0, 3.0) if quick else EPSILONS)
    }


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
        for what, key in (("L1 of any-size marginals", "any_size_l1"), ("KL of any-size marginals", "any_size_kl"),
                          ("L1 of conditionals", "conditional_l1"), ("KL of conditionals", "conditional_kl"),
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
    for run in range(runs):
        table = Work(network, seed).table(run)
        exact = NonprivateNetwork(network).fit(ExactCurator(table))
        ours.append(exact.kl(OptimalNetwork(network).fit(Curator(table, budget=PureDP(1)))))
        measured = UniformNetwork(network).measure(Curator(table, budget=PureDP(3)))
        for least in FLOORS:
            model = UniformNetwork(network, least_records=least).estimate(measured, network.domain)
            theirs[least].append(exact.kl(model))
    means = {least: float(np.mean(values)) for least, values in theirs.items()}
    best = min(means, key=lambda least: means[least])
    return row("joint KL, ratio to uniform at eps=3", f"{name}, eps=1", np.mean(ours) / means[best], target=1.0,
               reference=1.0, reference_name=f"uniform, eps=3, +{best:g} records a cell", runs=runs,
               kl=float(np.mean(ours)), reference_kl={f"{k:g}": v for k, v in means.items()}, **PURE)  # fmt: skip


def _untuned(seed: int, i: int, runs: int) -> Row:
    """A random network that nothing was tuned on."""
    network = random_network(10 + 5 * i, max_parents=3, levels=2 + i % 3, concentration=(0.3, 1.0)[i % 2],
                             random_state=1000 * seed + i)  # fmt: skip
    return _against_three(f"random network {i}, {len(network.domain)} columns", network, seed, runs)


def _coverage(work: Work, quick: bool) -> Iterator[Row]:
    """What nominal 90 % noise intervals of the default learner cover of its fit to the exact tables."""
    learner, domain = OptimalNetwork(work.network), work.network.domain
    runs, hits = (10 if quick else 40), {"marginals of one and two columns": [], "conditionals": []}  # type: ignore[var-annotated]
    said, seen = [], []
    for run in range(runs):
        table = work.table(1000 + run)
        measured = learner.measure(Curator(table, budget=PureDP(1)))
        exact = ExactCurator(table).measure(Marginals(domain, measured.cliques))
        target, model = learner.estimate(exact, domain), learner.estimate(measured, domain)
        found = noise_intervals(lambda m: learner.estimate(m, domain), measured, model, draws=40, random_state=run)
        for names in [(n,) for n in domain] + [q for q in work.marginals(run, 30) if len(q) == 2]:
            hits["marginals of one and two columns"].append(
                found.marginal(names).covers(target.marginal(names).probabilities).ravel()
            )
        for name, given in work.conditions(run, 15):
            if not found.conditional(name, given).note and target.probability(given) > 0:
                covered = found.conditional(name, given).covers(target.marginal(name, given).probabilities)
                hits["conditionals"].append(covered.ravel())
        for names in work.marginals(run, 10):
            said.append(found.map_survival(names))
            seen.append(dict(model.map(names)) == dict(target.map(names)))
    setting = "asia, eps=1, nominal 0.9"
    for what, covered in hits.items():
        # The cells of one run are right or wrong together: a quick run is too short for a verdict.
        yield row(f"coverage of {what}", setting, np.concatenate(covered).mean(), better="higher",
                  target=None if quick else 0.85, reference=0.9, reference_name="nominal", runs=runs,
                  **PURE)  # fmt: skip
    yield row("MAP answers as on exact tables", setting, np.mean(seen), better="higher", reference=np.mean(said),
              reference_name="survival that the intervals say", runs=runs, **PURE)  # fmt: skip


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
        yield row("counting, time divided by pgmpy's", "alarm", None, runs=0, note="skipped: pgmpy is not installed")  # type: ignore[arg-type]
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
    yield row("counting, time divided by pgmpy's MLE", "alarm, 10,000 records", np.median(ratios), target=1 / 20,
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
    estimator = mbi.estimation.MirrorDescent()
    peer_domain = mbi.Domain(domain.names, domain.shape)
    ours, theirs, seconds = [], [], []
    for run in range(runs):
        table = work.table(run)
        exact = NonprivateNetwork(work.network).fit(ExactCurator(table))
        measured = learner.measure(Curator(table, budget=PureDP(1)))
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
