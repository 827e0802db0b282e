"""Query release: the largest error of many parities, or tables, by the three methods; what the two oracles of the
perturbed leader cost; and how fast its game's error falls with its rounds when there is no noise.

Correlated pairs of columns; replace-one with a public number of records, the setting of [001].
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._mrf_fields import REPLACE, RHO, ask, facts, table_of
from benchmarks.harness import Checkpoint, one_thread, row
from benchmarks.papers import leaders
from discreet.domain import Domain
from discreet.learn.query_release import (
    AnnealedSearch,
    AnswersLearner,
    GaussianAnswers,
    IntegerProgram,
    MultiplicativeWeights,
    Parities,
    PerturbedLeader,
    Tables,
    Workload,
)
from discreet.models import generators
from discreet.privacy.queries.parities import all_monomials

Method = Callable[[Workload], AnswersLearner]


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    """All rows; ``data`` is not needed."""
    with Checkpoint.of("release", seed, quick, data) as kept, one_thread():
        yield from by_method(kept, 2 if quick else 5, seed, quick)
        yield from by_oracle(kept, seed, quick)
        yield from leaders(quick, seed)


def by_method(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Largest error of all parities up to order 3, and of all two-way tables, by the three methods."""
    settings: list[tuple[int, int, int | None]] = [(8, 300, None), (8, 10_000, None)]
    if not quick:
        settings += [(8, 1000, None), (8, 100_000, None), (12, 1000, None), (12, 10_000, None), (16, 3000, None)]
    for p, n, rounds in settings:
        methods: dict[str, Method] = {
            "": GaussianAnswers,
            "perturbed leader (sepFEM)": partial(PerturbedLeader, random_state=seed, rounds=rounds),
        }
        if p <= 12:
            methods["multiplicative weights"] = MultiplicativeWeights
        if not quick and p <= 12:
            methods["perturbed leader (FEM)"] = partial(
                PerturbedLeader, random_state=seed, perturbation="exponential")  # fmt: skip
        for kind, what in (("parities", f"all parities up to order {3}"), ("tables", "all two-way tables")):
            setting = f"p = {p}, {what}, n = {n:g}, ρ = {RHO:g}"
            found = {
                name: kept.get(f"release {kind} {name} p={p} n={n} runs={runs}",
                                partial(release_error, method, kind, p, n, runs, seed))
                for name, method in methods.items()
            }  # fmt: skip
            for name, error in found.items():
                method = {"method": name} if name else {}
                yield row(f"largest error, {kind}", setting, error, reference=found[""], reference_name="Gaussian",
                          **method, **facts(runs))  # fmt: skip


def workload_of(kind: str, domain: Domain) -> Workload:
    return Parities(domain, all_monomials(domain, 3)) if kind == "parities" else Tables(domain, combinations(domain, 2))


def release_error(method: Method, kind: str, p: int, n: int, runs: int, seed: int) -> float:
    out = []
    for r in range(runs):
        s = 1000 * seed + r
        truth = generators.ising(p, generators.matching(p), weight=0.5)
        table = table_of(truth.sample(n, s).codes, truth.domain)
        workload = workload_of(kind, truth.domain)
        exact = np.concatenate([part.reshape(-1) for part in table.sum(workload.query)]) / n
        out.append(float(np.abs(method(workload).fit(ask(table, REPLACE, n)).answers - exact).max()))
    return statistics.fmean(out)


def by_oracle(kept: Checkpoint, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The same game with the two oracles that scale: what they cost, and the integer program's gap."""
    p, n, rounds, samples = (12, 3000, 12, 3) if quick else (16, 3000, 60, 10)
    setting = f"p = {p}, all parities up to order 3, n = {n:g}, {rounds} rounds of {samples} records"
    found = kept.get(f"oracles p={p} n={n}", partial(oracle_errors, p, n, rounds, samples, seed))
    for name, (error, gap, seconds) in found.items():
        note = f"gap {gap:.2g}" if gap == gap else "gap unknown"
        yield row("largest error, parities", setting, error, method=f"perturbed leader, {name}",
                  note=f"{note}, {seconds:.1f} s", **facts(1))  # fmt: skip


def oracle_errors(p: int, n: int, rounds: int, samples: int, seed: int) -> dict[str, tuple[float, float, float]]:
    truth = generators.ising(p, generators.matching(p), weight=0.5)
    table = table_of(truth.sample(n, seed).codes, truth.domain)
    workload = workload_of("parities", truth.domain)
    exact = table.sum(workload.query)[0] / n
    out = {}
    for name, oracle in (("integer program", IntegerProgram(0.5)), ("annealed search", AnnealedSearch())):
        begun = time.perf_counter()
        learner = PerturbedLeader(workload, oracle, rounds=rounds, samples=samples, random_state=seed)
        released = learner.fit(ask(table, REPLACE, n))
        assert released.gap is not None
        error = float(np.abs(released.answers - exact).max())
        out[name] = (error, released.gap, time.perf_counter() - begun)
    return out
