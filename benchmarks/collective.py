"""Markov random fields from noisy tables: the paper's synthetic experiments with every method on the same release.

Real rows, drawn from a known model, are counted by a real curator; protective noise is never seeded. ``seed`` changes
models, graphs and rows. ``ours`` is KL(truth ‖ model) in nats of the default method, times are ratios.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.domain import Domain
from discreet.estimation.baselines import NonprivateField, random_field
from discreet.estimation.collective import CollectiveField
from discreet.estimation.consistency import estimated_total
from discreet.estimation.naive import NaiveField
from discreet.estimation.noise_aware import NoiseAwareField
from discreet.factor import CliqueVector
from discreet.measurement import Measurements
from discreet.models import generators
from discreet.models.markov import MarkovRandomField
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.tables.memory import MemoryTable

try:
    import jax

    jax.config.update("jax_enable_x64", True)  # in 32 bits it stalls beyond 1e5 records
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi
except ImportError:  # a peer from the `bench` extra: it brings JAX along
    mbi = None

Row = dict[str, Any]
PENALTIES = tuple(10.0 ** (k / 2) for k in range(-12, 3))
MBI_ITERATIONS = 1000


@dataclass(frozen=True)
class Setting:
    """One cell of the paper's grid."""

    graph: str
    levels: int
    records: int
    epsilon: float
    target: float | None = None
    nodes: int = 10

    def __str__(self) -> str:
        return f"{self.graph}, {self.levels} states, N={self.records:.0e}, ε={self.epsilon:g}"

    def truth(self, seed: int) -> MarkovRandomField:
        edges = {
            "third-order chain": lambda: generators.chain(self.nodes, 3),
            "Erdős–Rényi": lambda: generators.erdos_renyi(self.nodes, 0.3, max_width=3, random_state=seed),
            "chain": lambda: generators.chain(self.nodes),
            "tree": lambda: generators.random_tree(self.nodes, random_state=seed),
        }[self.graph]()
        return generators.dirichlet(self.nodes, edges, levels=self.levels, random_state=seed)


ASKED = (
    Setting("third-order chain", 10, 10**4, 1.0, 1.5),
    Setting("third-order chain", 10, 10**5, 0.1, 1.5),
    Setting("third-order chain", 10, 10**6, 0.1, 0.09),
    Setting("third-order chain", 10, 10**6, 1.0, 0.0035),
)
HARD = (Setting("third-order chain", 10, 10**4, 0.01), Setting("third-order chain", 10, 10**4, 0.001))
OTHERS = (
    Setting("Erdős–Rényi", 10, 10**5, 0.1),
    Setting("Erdős–Rényi", 10, 10**6, 1.0),
    Setting("tree", 10, 10**5, 0.5),
)
GRID = tuple(
    Setting(graph, levels, records, epsilon)
    for graph in ("third-order chain", "Erdős–Rényi")
    for levels in (10, 20)
    for records in (10**4, 10**5, 10**6)
    for epsilon in (0.01, 0.1, 0.5, 1.0)
)


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> list[Row]:
    """All rows: the settings that were asked for, then others, in full the paper's whole grid."""
    rows: list[Row] = []
    for setting in ASKED:
        rows += _rows(setting, _trials(setting, seed, 5, 1 if quick else 5, peers=not quick))
    for setting in (*HARD, *OTHERS):
        peers = not quick or setting in OTHERS[2:]
        rows += _rows(setting, _trials(setting, seed + 50, 1 if quick else 5, 1, peers=peers))
    if quick:
        rows += _rows(ASKED[0], _trials(ASKED[0], seed + 90, 1, 1, peers=True), compare_only=True)
    else:
        for setting in GRID:
            rows += _rows(setting, _trials(setting, seed + 100, 5, 5, peers=True))
    rows += _gaussian(seed, 1 if quick else 5)
    return rows


# -- one experiment --------------------------------------------------------------------------------------------------


def rows_of(model: MarkovRandomField, records: int, seed: int) -> MemoryTable:
    codes = model.sample(records, seed, method="exact").codes
    return MemoryTable(model.domain, [codes[:, i].astype(np.uint8) for i in range(len(model.domain))])


def _trials(setting: Setting, seed: int, populations: int, replications: int, *, peers: bool) -> dict[str, list[float]]:
    """KL and seconds of each method, over models with their rows (populations) and draws of noise (replications)."""
    out: dict[str, list[float]] = defaultdict(list)
    for population in range(populations):
        number = 1000 * seed + population
        truth = setting.truth(number)
        table = rows_of(truth, setting.records, number)
        cliques = truth.cliques

        def record(name: str, work: Callable[[], MarkovRandomField], truth: MarkovRandomField = truth) -> float:
            begun = time.perf_counter()
            model = work()
            out[f"{name} seconds"].append(time.perf_counter() - begun)
            out[name].append(truth.kl(model))
            return out[name][-1]

        record("uniform", lambda d=truth.domain: MarkovRandomField.uniform(d))
        record("random", lambda d=truth.domain, c=cliques, s=number: random_field(d, c, s))
        record("non-private", lambda t=table, c=cliques: NonprivateField(c).fit(ExactCurator(t)))
        for _ in range(replications):
            with Curator(table, budget=PureDP(setting.epsilon)) as curator:
                measured = NoiseAwareField(cliques).measure(curator)
            d = truth.domain
            record("noise_aware", lambda m=measured, c=cliques, d=d: NoiseAwareField(c).estimate(m, d))
            record("naive", lambda m=measured, c=cliques, d=d: NaiveField(c).estimate(m, d))
            if peers:
                fits = [truth.kl(NaiveField(cliques, penalty=p).estimate(measured, d)) for p in PENALTIES]
                out["naive, best λ"].append(min(fits))
                record("cgm", lambda m=measured, c=cliques, d=d: CollectiveField(c).estimate(m, d))
            if peers and mbi is not None:
                begun = time.perf_counter()
                record("mbi", lambda m=measured, d=d: _mbi(m, d))
                if len(out["mbi"]) == 1:  # the first run compiles; once more for the time
                    out["mbi compiling"].append(time.perf_counter() - begun)
                    del out["mbi seconds"][-1], out["mbi"][-1]
                    record("mbi", lambda m=measured, d=d: _mbi(m, d))
    return out


def _rows(setting: Setting, results: dict[str, list[float]], *, compare_only: bool = False) -> Iterable[Row]:
    mean = {name: statistics.fmean(values) for name, values in results.items()}
    runs = len(results["noise_aware"])
    ours, facts = mean["noise_aware"], {"notion": "pure", "relation": "add-remove", "n_public": False}
    if not compare_only:
        yield _row("KL", setting, ours, setting.target, mean["non-private"], "non-private", runs, **facts)
        worst = max(results["noise_aware"])
        yield _row("KL, worst run", setting, worst, 1.05 * mean["uniform"], mean["uniform"], "uniform", runs, **facts)
        for name in ("naive", "cgm", "random"):
            if name in mean:
                yield _row("KL", setting, mean[name], None, ours, "noise_aware", len(results[name]), method=name)
    if "naive, best λ" in mean:
        best = mean["naive, best λ"]
        yield _row("KL by naive with the best λ", setting, ours / best, 1.1, 1.0, "an oracle's λ", runs, **facts)
    if "mbi" in mean:
        yield _row("KL by mbi", setting, ours / mean["mbi"], 1.0, mean["mbi"], "mbi 2.0", runs, **facts)
        limit = 1.0 if setting.graph == "tree" else 0.25
        ratio = mean["noise_aware seconds"] / mean["mbi seconds"]
        yield _row("time by mbi, compiled", setting, ratio, limit, mean["mbi seconds"], "mbi seconds", runs)
    if not compare_only:
        ratio = statistics.median(results["noise_aware seconds"]) / statistics.median(results["naive seconds"])
        yield _row("time by naive", setting, ratio, 2.5, 1.0, "naive", runs)


def _row(
    what: str, setting: object, ours: float, target: float | None, reference: float, name: str, runs: int, **more: Any
) -> Row:
    out = {"what": what, "setting": str(setting), "ours": ours, "reference": reference, "reference_name": name}
    return {**out, "better": "lower", "target": target, "runs": runs, **more}


def _gaussian(seed: int, populations: int) -> Iterable[Row]:
    """What a δ of 1e-6 buys."""
    for setting in (ASKED[0], ASKED[2]):
        ratios = []
        for population in range(populations):
            number = 1000 * (seed + 70) + population
            truth = setting.truth(number)
            table = rows_of(truth, setting.records, number)
            budgets: tuple[Budget, ...] = (PureDP(setting.epsilon), ApproxDP(setting.epsilon, 1e-6))
            pure, approximate = (
                truth.kl(NoiseAwareField(truth.cliques).fit(Curator(table, budget=b))) for b in budgets
            )
            ratios.append(approximate / pure)
        yield _row("KL with δ = 1e-6 by pure", setting, statistics.fmean(ratios), None, 1.0, "pure DP", populations)


# -- mbi on the same tables ------------------------------------------------------------------------------------------


def _mbi(measured: Measurements, domain: Domain) -> MarkovRandomField:
    """mbi 2.0: mirror descent on the marginal polytope, given the same noisy tables and the same total."""
    theirs = mbi.Domain(domain.names, domain.shape)
    loss = [
        mbi.LinearMeasurement(np.asarray(m.values.reshape(-1)), m.clique, stddev=m.standard_deviation) for m in measured
    ]
    total = estimated_total(measured)
    model = mbi.estimation.MirrorDescent().estimate(theirs, loss, known_total=total, iters=MBI_ITERATIONS)
    tables = {}
    for clique in model.potentials.cliques:
        factor = model.potentials[clique]
        values = np.asarray(factor.values, dtype=np.float64)
        columns = domain.clique(clique)
        tables[columns] = np.transpose(values, [factor.domain.attributes.index(n) for n in columns])
    return MarkovRandomField(domain, CliqueVector(domain, tables))


if __name__ == "__main__":
    for line in run(quick=True):
        shown = line["ours"] if line["ours"] is not None else math.nan
        print(f"{line['what']:30} {line['setting']:45} {line.get('method', ''):6} {shown:9.4g}", line["target"])
