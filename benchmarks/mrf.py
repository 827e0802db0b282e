"""Markov random fields: error and recovery against the number of records, for every method and the non-private fit.

The paper's setting is replace-one with a public number of records; add-remove, where that number is private and paid
for, is reported beside it. Data come from models of known parameters; ``seed`` changes graphs and data.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _mrf_release
from benchmarks.harness import Resumable, ratio, row, seconds
from discreet.domain import Domain
from discreet.estimation.ising_learner import IsingLearner, sup_error
from discreet.inference.spins import SpinChains, colour_classes
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.gradients import SpinGradients
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

WEIGHT = 0.35
BURN_IN = 40
REPLACE, ADD = PrivacyUnit(relation="replace-one"), PrivacyUnit()


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    store = Resumable(data / f"mrf-{seed}.json" if data is not None and not quick else None)
    runs = 2 if quick else 5
    yield from accuracy(store, runs, seed, quick)
    yield from recovery(store, runs, seed)
    yield from _mrf_release.rows(store, runs, seed, quick)
    if data is not None and (data / "nltcs.csv").exists():
        yield from nltcs(data / "nltcs.csv", seed)
    yield from speed(quick)


# -- data --------------------------------------------------------------------------------------------------------------


def graph(kind: str, p: int, seed: int) -> IsingModel:
    if kind == "matching":
        return generators.ising(p, generators.matching(p), weight=0.5)
    if kind == "grid":
        return generators.ising(p, generators.grid(4, p // 4), weight=WEIGHT)
    if kind == "3-regular":
        return generators.ising(p, generators.regular(p, 3, random_state=seed), weight=WEIGHT)
    edges = generators.dense(p)
    return generators.ising(p, edges, weight=(0.02, 0.2), signs="random", width=1.5, random_state=seed)


def draw(model: IsingModel, n: int, seed: int) -> MemoryTable:
    """Independent records on narrow graphs; on others, the states of one Gibbs chain a record."""
    if model.forecast.bytes < 1 << 24:
        return columns_of(model.sample(n, seed).codes, model.domain)
    chains = SpinChains.start(np.zeros(len(model.A)), n, seed)
    classes = colour_classes(model.A)
    for _ in range(BURN_IN):
        chains.sweep(model.A, model.theta, classes)
    return columns_of(chains.states > 0, model.domain)


def curator(table: MemoryTable, unit: PrivacyUnit, budget: Budget, n: int) -> Curator:
    return Curator(table, unit, budget, public_size=n if unit is REPLACE else None)


# -- Ising models ------------------------------------------------------------------------------------------------------


def accuracy(store: Resumable, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    settings = [("3-regular", 16, 10_000), ("3-regular", 64, 10_000), ("3-regular", 64, 100_000)]
    settings += [("dense", 16, 100_000), ("matching", 64, 30_000), ("grid", 16, 30_000)]
    if not quick:
        settings += [("3-regular", p, n) for p in (10, 32, 128) for n in (1000, 3000, 10_000, 30_000, 100_000)]
        settings += [(kind, 16, n) for kind in ("matching", "grid", "dense") for n in (1000, 10_000, 100_000)]
    for kind, p, n in settings:
        for rho in (0.1,) if quick else (0.01, 0.1, 1.0):
            key = f"{kind}, p = {p}, n = {n:g}, ρ = {rho:g}"
            found = store.get(key, partial(ising_errors, kind, p, n, rho, runs, seed, quick))
            yield from accuracy_rows(key, kind, p, n, rho, found, runs)


def ising_errors(kind: str, p: int, n: int, rho: float, runs: int, seed: int, quick: bool) -> dict[str, list[float]]:
    out: dict[str, list[float]] = {}
    published = not quick or (p <= 16 and n <= 30_000)  # hundreds of steps take their time
    for r in range(runs):
        truth = graph(kind, p, 1000 * seed + r)
        table = draw(truth, n, 1000 * seed + r)
        width = truth.width
        budget = ZCDP(rho)
        learners: dict[str, tuple[IsingLearner, PrivacyUnit | None]] = {
            "moments": (IsingLearner(), REPLACE),
            "moments, add-remove": (IsingLearner(), ADD),
            "non-private": (IsingLearner(), None),
            "tight": (IsingLearner(method="frank_wolfe", width=width), REPLACE),
        }
        if published and n <= 100_000:
            learners["published"] = (IsingLearner(method="frank_wolfe", variant="published", width=width), REPLACE)
        for name, (learner, unit) in learners.items():
            asked = ExactCurator(table) if unit is None else curator(table, unit, budget, n)
            out.setdefault(name, []).append(sup_error(learner.fit(asked), truth))
    return out


def accuracy_rows(
    key: str, kind: str, p: int, n: int, rho: float, found: dict[str, list[float]], runs: int
) -> Iterator[dict[str, Any]]:
    mean = {name: statistics.fmean(errors) for name, errors in found.items()}
    facts = {"runs": runs, "notion": "zcdp"}
    exact = {"reference": mean["non-private"], "reference_name": "non-private fit"}
    targets = {("dense", 16, 100_000, 0.1): 0.015}
    yield row("sup-norm error", key, mean["moments"], target=targets.get((kind, p, n, rho)), **exact, **facts,
              relation="replace-one", n_public=True)  # fmt: skip
    yield row("sup-norm error", key, mean["moments, add-remove"], **exact, **facts, relation="add-remove",
              n_public=False)  # fmt: skip
    if n >= 30_000 and rho >= 0.1 and p <= 64:
        yield row("error by the non-private fit's", key, mean["moments"] / mean["non-private"], target=1.25, **facts,
                  relation="replace-one", n_public=True)  # fmt: skip
    yield row("sup-norm error", key, mean["tight"], method="frank_wolfe, tight", **exact, **facts,
              relation="replace-one", n_public=True)  # fmt: skip
    if "published" in mean:
        yield row("sup-norm error", key, mean["published"], method="frank_wolfe, published", **exact, **facts,
                  relation="replace-one", n_public=True)  # fmt: skip
        yield row("error by the published method's", key, mean["moments"] / mean["published"],
                  target=0.35 if n >= 10_000 else 1.05, **facts, relation="replace-one", n_public=True)  # fmt: skip
        yield row("error by the published method's", key, mean["tight"] / mean["published"],
                  method="frank_wolfe, tight", target=0.75 if n >= 10_000 else None, **facts,
                  relation="replace-one", n_public=True)  # fmt: skip


def recovery(store: Resumable, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """All edges right on 3-regular graphs of 64 columns at ρ = 0.1."""
    tries = runs + 3
    for n, bound in ((10_000, None), (3000, 96)):
        for unit in (REPLACE, ADD):
            setting = f"3-regular, p = 64, n = {n:g}, ρ = 0.1" + (f", at most {bound} edges" if bound else "")
            found = store.get(f"recovery {setting} {unit}", partial(right_graphs, n, bound, unit, tries, seed))
            yield row("all edges right", setting, found, better="higher", target=1.0 if unit is REPLACE else None,
                      runs=tries, notion="zcdp", relation=unit.relation, n_public=unit is REPLACE)  # fmt: skip


def right_graphs(n: int, bound: int | None, unit: PrivacyUnit, tries: int, seed: int) -> float:
    hits = 0
    for r in range(tries):
        truth = graph("3-regular", 64, 1000 * seed + r)
        asked = curator(draw(truth, n, 1000 * seed + r), unit, ZCDP(0.1), n)
        hits += IsingLearner(max_edges=bound).fit(asked).edges == truth.edges
    return hits / tries


def columns_of(codes: Any, domain: Domain) -> MemoryTable:
    return MemoryTable(domain, [np.ascontiguousarray(codes[:, i], dtype=np.uint8) for i in range(len(domain))])


# -- real data ---------------------------------------------------------------------------------------------------------


def nltcs(path: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Held-out pseudo-log-likelihood on the National Long Term Care Survey, 16 binary columns."""
    codes = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64).astype(np.uint8)
    order = np.random.default_rng(seed).permutation(len(codes))
    held, kept = codes[order[: len(codes) // 5]], codes[order[len(codes) // 5 :]]
    domain = Domain.of({f"x{i}": 2 for i in range(codes.shape[1])})
    table = columns_of(kept, domain)

    def score(model: IsingModel) -> float:
        total = 0.0
        for i, name in enumerate(domain.names):
            chosen = model.full_conditional(name, held.astype(np.int64))[np.arange(len(held)), held[:, i]]
            total += float(np.log(chosen).mean())
        return total

    best = score(IsingLearner().fit(ExactCurator(table)))
    for budget, text in ((ApproxDP(1, 1e-6), "ε = 1, δ = 1e-6"), (PureDP(1), "ε = 1")):
        ours = score(IsingLearner().fit(Curator(table, ADD, budget)))
        yield row("held-out pseudo-log-likelihood, relative loss", f"NLTCS, {text}", abs(ours - best) / abs(best),
                  reference=best, reference_name="non-private fit", target=0.02 if budget.notion == "approx" else None,
                  notion=budget.notion, relation="add-remove", n_public=False)  # fmt: skip


# -- speed -------------------------------------------------------------------------------------------------------------


def speed(quick: bool) -> Iterator[dict[str, Any]]:
    n = 100_000
    for p in (50, 100) if quick else (50, 100, 200):
        domain = Domain.of({f"x{i}": 2 for i in range(p)})
        rng = np.random.default_rng(0)
        table = MemoryTable(domain, list(rng.integers(0, 2, (p, n), dtype=np.uint8)), threads=1)
        v = rng.integers(-50, 51, (p, p + 1))
        v[np.arange(p), np.arange(p)] = 0
        query = SpinGradients(domain, [*((x,) for x in domain.names), ()], v, 0.001)
        weights, features = rng.normal(size=(p, p)), rng.normal(size=(p, n))
        yield row("one Frank–Wolfe iteration of all columns, without noise", f"p = {p}, n = 1e5",
                  ratio(partial(table.sum, query), partial(np.matmul, weights, features)), reference=1.0,
                  reference_name="p×p×n product in float64", target=2.5, runs=5)  # fmt: skip
    truth = graph("3-regular", 200, 1)
    table = draw(truth, n, 1)
    taken = seconds(lambda: IsingLearner().fit(Curator(table, ADD, ZCDP(0.1))), repeat=1)
    yield row("seconds of the default learner", "3-regular, p = 200, n = 1e5, ρ = 0.1", taken, target=15.0)
    if not quick:
        yield from against_scikit_learn(n)


def against_scikit_learn(n: int) -> Iterator[dict[str, Any]]:
    """A whole tight run at p = 100 beside one regression a column; noise is timed apart and left out."""
    from sklearn.linear_model import LogisticRegression

    truth = graph("3-regular", 100, 2)
    table = draw(truth, n, 2)
    domain = truth.domain
    query = SpinGradients(domain, [*((x,) for x in domain.names), ()], np.ones((100, 101), dtype=np.int64), 0.001)
    begun = time.perf_counter()
    model = IsingLearner(method="frank_wolfe", width=truth.width).fit(Curator(table, REPLACE, ZCDP(0.1), public_size=n))
    whole = time.perf_counter() - begun
    assert model.card is not None
    steps = int(model.card["frank_wolfe_steps"])
    ours = seconds(lambda: table.sum(query)) * steps
    z = 2.0 * np.stack(list(table._columns.values()), axis=1) - 1
    times = {}
    for solver in ("liblinear", "lbfgs", "newton-cholesky"):
        fit = LogisticRegression(solver=solver, C=1.0)
        times[solver] = 100 * seconds(partial(fit.fit, z[:, 1:], z[:, 0]), repeat=1)
    fastest = min(times, key=lambda s: times[s])
    setting = f"3-regular, p = 100, n = 1e5, {steps} steps; {whole - ours:.1f} s of noise and the rest apart"
    yield row("times faster, whole tight run", setting, times["liblinear"] / ours, better="higher", target=15.0,
              reference_name="liblinear, a regression a column")  # fmt: skip
    yield row("times faster, whole tight run", setting, times[fastest] / ours, better="higher", target=2.0,
              reference_name=f"{fastest}, a regression a column")  # fmt: skip
