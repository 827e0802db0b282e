"""Measure how many records our learners need: the calibrated constants of :mod:`discreet.papers.theory.calibration`.

For each setting: the least n on a grid of factor 1.25 at which at least 9 of 10 runs reach the goal, each run on a
fresh model and fresh records. Goals are the graph (every edge right, η known) and the parameters (sup-norm error of all
couplings at most α). Default relation (add-remove, the number of records private and paid for). Run by hand, nicely:

    OMP_NUM_THREADS=1 nice python -m benchmarks._calibrate_bounds parameters FILE.jsonl

appends a line a setting and skips those that are there already; ``fit FILE.jsonl`` prints the constants.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._mrf_ising import ADD, columns_of, draw
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.spins.coefficients import sup_error
from discreet.learn.spins.field import SpinField
from discreet.learn.structure.learner import StructureLearner
from discreet.models import IsingModel, generators
from discreet.papers.theory.calibration import FEWEST_IF_CROWDED, Calibration, calibrated
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.tables.memory import MemoryTable

GRID = 1.25
RUNS, WANTED = 10, 9
LARGEST = 1_500_000
SEED = 7_000_000  # of models and records; far from the seeds of the benchmarks that report

Try = Callable[[int, int], bool]  # (n, seed) → whether the goal was reached


def least_size(reached: Try, guess: float) -> int | None:
    """The least n of the grid where 9 of 10 runs reach the goal, walking down from where it holds; None beyond."""
    steps = round(np.log(guess) / np.log(GRID))
    seen: dict[int, bool] = {}

    def enough(step: int) -> bool:
        if step not in seen:
            n, failures = round(GRID**step), 0
            for run in range(RUNS):
                failures += not reached(n, SEED + 1000 * step + run)
                if failures > RUNS - WANTED:
                    break
            seen[step] = failures <= RUNS - WANTED
        return seen[step]

    stride = 4
    while not enough(steps):
        steps += stride
        if GRID**steps > LARGEST:
            return None
    while stride:
        while steps - stride > 8 and enough(steps - stride):
            steps -= stride
        stride //= 2
    return round(GRID**steps)


def ising(kind: str, p: int, weight: float, seed: int) -> IsingModel:
    edges = generators.matching(p) if kind == "matching" else generators.regular(p, 3, random_state=seed)
    return generators.ising(p, edges, weight=weight, signs="random", random_state=seed)


def asked(table: MemoryTable, budget: Budget | None) -> Curator:
    return ExactCurator(table) if budget is None else Curator(table, ADD, budget)


def ising_parameters(kind: str, p: int, weight: float, budget: Budget | None, alpha: float) -> Try:
    def reached(n: int, seed: int) -> bool:
        truth = ising(kind, p, weight, seed)
        found = SpinField().fit(asked(draw(truth, n, seed), budget))
        return sup_error(found, truth) <= alpha

    return reached


def ising_graph(kind: str, p: int, weight: float, budget: Budget | None) -> Try:
    def reached(n: int, seed: int) -> bool:
        truth = ising(kind, p, weight, seed)
        found = SpinField(min_weight=weight).fit(asked(draw(truth, n, seed), budget))
        return found.edges == truth.edges

    return reached


def default_graph(kind: str, p: int, weight: float, budget: Budget) -> Try:
    learner = StructureLearner(min_weight=weight)

    def reached(n: int, seed: int) -> bool:
        truth = ising(kind, p, weight, seed)
        found = learner.fit(asked(draw(truth, n, seed), budget))
        return not found.refused and set(found.edges) == set(truth.edges)

    return reached


def pairwise_parameters(kind: str, p: int, k: int, weight: float, budget: Budget | None, alpha: float) -> Try:
    def reached(n: int, seed: int) -> bool:
        edges = generators.matching(p) if kind == "matching" else generators.regular(p, 3, random_state=seed)
        truth = generators.pairwise(p, edges, levels=k, weight=weight, random_state=seed)
        table = columns_of(truth.sample(n, seed).codes, truth.domain)
        found = PairwiseField().fit(asked(table, budget))
        names = truth.domain.names
        errors = (
            np.abs(found.weights(a, b) - truth.weights(a, b)).max() for i, a in enumerate(names) for b in names[:i]
        )
        return max(errors) <= alpha

    return reached


def binary_parameters(p: int, weight: float, budget: Budget | None, alpha: float) -> Try:
    """Disjoint triples: t = 3, every monomial maximal."""

    def reached(n: int, seed: int) -> bool:
        triples = [(i, i + 1, i + 2) for i in range(0, p - 2, 3)]
        truth = generators.binary(p, triples, weight=weight, random_state=seed)
        table = columns_of(truth.sample(n, seed).codes, truth.domain)
        found = SpinField(3).fit(asked(table, budget))
        every = set(truth.coefficients) | set(found.coefficients)
        return max(abs(truth.coefficients.get(I, 0.0) - found.coefficients.get(I, 0.0)) for I in every) <= alpha

    return reached


def budgets() -> Iterator[tuple[dict[str, Any], Budget | None]]:
    yield {"notion": "none"}, None
    for rho in (0.01, 0.1, 1.0):
        yield {"notion": "zcdp", "rho": rho}, ZCDP(rho)
    for epsilon in (0.5, 1.0, 3.0):
        yield {"notion": "pure", "epsilon": epsilon}, PureDP(epsilon)


MODELS = (("matching", 0.5), ("3-regular", 0.35), ("matching", 0.25))


def settings(what: str) -> Iterator[tuple[dict[str, Any], Try]]:
    if what == "parameters":
        for kind, weight in MODELS:
            for p in (8, 16, 32, 64):
                for alpha in (0.1, 0.05) if p == 16 else (0.1,):
                    for facts, budget in budgets():
                        setting = {"kind": kind, "eta": weight, "p": p, "k": 2, "t": 2, "alpha": alpha, **facts}
                        yield setting, ising_parameters(kind, p, weight, budget, alpha)
    elif what == "graph":
        for kind, weight in MODELS:
            for p in (8, 16, 32, 64):
                for facts, budget in budgets():
                    setting = {"kind": kind, "eta": weight, "p": p, "k": 2, "t": 2, **facts, "method": "SpinField"}
                    yield setting, ising_graph(kind, p, weight, budget)
    elif what == "stable":  # the whole graph or nothing, under (ε, δ)
        for p in (8, 16, 32, 64):
            for kind, weight in MODELS:
                for epsilon, delta in ((1.0, 1e-6), (0.5, 1e-6), (3.0, 1e-6), (1.0, 1e-9))[: 2 if p == 64 else 4]:
                    facts = {"notion": "approx", "epsilon": epsilon, "delta": delta, "method": "StableEdges"}
                    setting = {"kind": kind, "eta": weight, "p": p, "k": 2, "t": 2, **facts}
                    yield setting, default_graph(kind, p, weight, ApproxDP(epsilon, delta))
    elif what == "selected":
        for p in (8, 16, 32, 64):
            for kind, weight in MODELS:
                for facts, budget in budgets():
                    setting = {"kind": kind, "eta": weight, "p": p, "k": 2, "t": 2, **facts, "method": "SelectedEdges"}
                    if budget is not None:
                        yield setting, default_graph(kind, p, weight, budget)
    elif what == "families":
        few = [(f, b) for f, b in budgets() if f.get("rho", 0.1) == 0.1 and f.get("epsilon", 1.0) == 1.0]
        for facts, budget in few:
            for p, k in ((8, 3), (16, 3), (8, 5)):
                setting = {"kind": "matching", "eta": 0.5, "p": p, "k": k, "t": 2, "alpha": 0.1, **facts}
                yield setting, pairwise_parameters("matching", p, k, 0.5, budget, 0.1)
            for p in (9, 15):
                setting = {"kind": "triples", "eta": 0.5, "p": p, "k": 2, "t": 3, "alpha": 0.1, **facts}
                yield setting, binary_parameters(p, 0.5, budget, 0.1)
    else:
        raise SystemExit(f"parameters, graph, stable, selected or families, got {what!r}")


def main(what: str, path: Path) -> None:
    have = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = [entry["setting"] for entry in have]
    for setting, reached in settings(what):
        if setting in done:
            continue
        began = time.monotonic()
        n = least_size(reached, 1000.0)
        entry = {
            "goal": "graph" if what in ("stable", "selected") else what,
            "setting": setting,
            "n": n,
            "runs": RUNS,
            "seconds": round(time.monotonic() - began, 1),
        }
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        print(entry, flush=True)


# -- constants ---------------------------------------------------------------------------------------------------------


def fit(path: Path) -> None:
    """Least squares on ln n, for each goal and notion; prints what goes into :mod:`discreet.papers.theory.calibration`.

    The statistical term is that of the non-private measurements, and kept for the private ones.
    """
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    fit_families([e for e in entries if e["goal"] == "families"])
    entries = [e for e in entries if e["n"] is not None and e["setting"]["k"] == e["setting"]["t"] == 2]
    entries = [e for e in entries if not loopy(e["setting"])]
    for goal in ("parameters", "graph"):
        base: dict[str, float] = {}
        for notion in ("none", "zcdp", "pure", "approx"):
            chosen = [e for e in entries if e["goal"] == goal and e["setting"]["notion"] == notion]
            for method in sorted({e["setting"].get("method", "SpinField") for e in chosen}):
                mine = [e for e in chosen if e["setting"].get("method", "SpinField") == method]
                found = fit_one(goal, notion, method, mine, base)
                base = base or {"statistical": found["statistical"], "crowding": found["crowding"]}


LIMITS = {"statistical": (-4, 0.5, 6), "crowding": (0, 0.5, 6), "private": (-6, 2, 9), "exponent": (0, 0.5, 2.5),
          "private_crowding": (0, 0.5, 6), "alpha_share": (0, 0.3, 1)}  # fmt: skip


def fit_one(goal: Any, notion: Any, method: str, entries: list[dict[str, Any]], base: dict[str, float]) -> Any:
    from scipy.optimize import least_squares

    names = ["private", "exponent", "private_crowding", "alpha_share"] if base else ["statistical", "crowding"]
    names = [n for n in names if not (n == "alpha_share" and goal == "graph")]
    measured = np.log([e["n"] for e in entries])

    def constants(x: Any) -> dict[str, float]:
        values = dict(zip(names, x, strict=True))
        return base | {k: float(np.exp(v) if k in ("statistical", "private") else v) for k, v in values.items()}

    def residuals(x: Any) -> Any:
        made = Calibration(goal, notion, method, **constants(x))
        return np.log([made.records(**facts(e)) for e in entries]) - measured

    low, start, high = zip(*(LIMITS[n] for n in names), strict=True)
    found = least_squares(residuals, start, bounds=(low, high))
    rounded = {k: round(v, 3) for k, v in constants(found.x).items()}
    off = np.exp(np.abs(found.fun))
    print(
        f"{goal}, {notion}, {method}: {rounded}, settings={len(entries)}, worst={off.max():.2f}, mean={off.mean():.2f}"
    )
    return constants(found.x)


def loopy(setting: dict[str, Any]) -> bool:
    """Small graphs full of short loops of opposite signs mislead tests of pairs: StableEdges has no constants there."""
    return bool(setting["notion"] == "approx" and setting["kind"] == "3-regular" and setting["p"] < FEWEST_IF_CROWDED)


def fit_families(entries: list[dict[str, Any]]) -> None:
    """How measured n compare with the calibrated ones of Ising models: an exponent of k/2, and a factor for t = 3."""
    for notion in ("none", "zcdp", "pure"):
        (made,) = calibrated("parameters", notion)
        mine = [e for e in entries if e["setting"]["notion"] == notion]
        log_ratio = np.array([np.log(e["n"] / made.records(**facts(e))) for e in mine])
        log_k = np.log([e["setting"]["k"] / 2 for e in mine])
        exponent = float(log_ratio @ log_k / (log_k @ log_k))
        triples = log_ratio[[e["setting"]["t"] == 3 for e in mine]]
        print(f"families, {notion}: exponent of k/2 {exponent:.2f}, factor at t = 3 {np.exp(triples.mean()):.2f}")


def facts(entry: dict[str, Any]) -> dict[str, Any]:
    s = entry["setting"]
    width = s["eta"] * (3 if s["kind"] == "3-regular" else 1)
    given = {"p": s["p"], "weight": s["eta"], "width": width, "alpha": s.get("alpha", s["eta"] / 2)}
    return given | {name: s[name] for name in ("rho", "epsilon", "delta") if name in s}


if __name__ == "__main__":
    if sys.argv[1] == "fit":
        fit(Path(sys.argv[2]))
    else:
        main(sys.argv[1], Path(sys.argv[2]))
