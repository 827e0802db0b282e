"""Structure of Markov random fields: how many records each method needs to get the whole graph right in nine of ten
runs, against the number of columns, and the paper's Table 1 drawn from these numbers.

(ε, δ) = (1, 1e-6); zCDP with ρ = 0.028, and pure DP with ε = 1, beside it. Add-remove with a private number of records.
``seed`` changes graphs and data; protective noise is never seeded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._mrf_ising import columns_of, draw
from benchmarks.harness import Checkpoint, row
from discreet.audit.statistical import clopper_pearson
from discreet.domain import Domain
from discreet.estimation.ising_learner import IsingLearner
from discreet.estimation.structure.base_learners import SparseLogistic, Sparsitron
from discreet.estimation.structure.selected_edges import SelectedEdges
from discreet.estimation.structure.stable_edges import StableEdges
from discreet.estimation.structure.stable_mode import StableMode
from discreet.estimation.structure.thresholded import ThresholdedParameters
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.edge_tests import SpinTest
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

APPROX, CONCENTRATED, PURE = ApproxDP(1, 1e-6), ZCDP(0.028), PureDP(1)
ADD = PrivacyUnit()
STEP = 1.15  # between the numbers of records that are tried
FIGURE = Path("docs/images/structure-table-1.png")


@dataclass(frozen=True)
class Method:
    """A learner for a graph of known weight and width, its budget (None: not private), and a first guess of n."""

    name: str
    learner: Callable[[float, float], Any]
    budget: Budget | None
    guess: Callable[[int], float]
    most_columns: int = 256


DEFAULT = Method("stable edges", lambda eta, _: StableEdges(eta), APPROX, lambda p: 400)
UNKNOWN = Method("stable edges, η unknown", lambda eta, _: StableEdges(), APPROX, lambda p: 600)
CORRELATION = Method("stable edges, correlation", lambda eta, _: StableEdges(eta, "correlation"), APPROX, lambda p: 400)
CONDITIONAL = Method("stable edges, conditional", lambda eta, _: StableEdges(eta, "conditional"), APPROX, lambda p: 500)
MODE = Method("stable mode (paper)", lambda eta, lam: StableMode(SparseLogistic(eta, lam)), APPROX, lambda p: 7000, 128)
PTR = Method(
    "propose-test-release",
    lambda eta, lam: StableMode(SparseLogistic(eta, lam), "propose-test-release"),
    APPROX,
    lambda p: 8000,
    32,
)
VOTES = Method(
    "votes on each edge", lambda eta, lam: StableMode(SparseLogistic(eta, lam), "each edge"), APPROX, lambda p: 5000, 32
)
SELECTED = Method("selected edges", lambda eta, _: SelectedEdges(eta), CONCENTRATED, lambda p: 170 * math.sqrt(p))
SELECTED_UNKNOWN = Method(
    "selected edges, η unknown", lambda eta, _: SelectedEdges(), CONCENTRATED, lambda p: 230 * math.sqrt(p)
)
SELECTED_PURE = Method("selected edges, pure DP", lambda eta, _: SelectedEdges(eta), PURE, lambda p: 250 * p)
MOMENTS = Method(
    "thresholded moments",
    lambda eta, _: ThresholdedParameters(IsingLearner(min_weight=eta)),
    CONCENTRATED,
    lambda p: 250 * math.sqrt(p),
    64,
)
FRANK_WOLFE = Method(
    "thresholded Frank–Wolfe, tight",
    lambda eta, lam: ThresholdedParameters(IsingLearner("frank_wolfe", width=lam, min_weight=eta)),
    CONCENTRATED,
    lambda p: 300 * p,
    64,
)
NONPRIVATE = Method("non-private test", lambda eta, _: StableEdges(eta), None, lambda p: 250)
ALL = (DEFAULT, UNKNOWN, CORRELATION, CONDITIONAL, MODE, PTR, VOTES, SELECTED, SELECTED_UNKNOWN, SELECTED_PURE, MOMENTS,
       FRANK_WOLFE, NONPRIVATE)  # fmt: skip
WEIGHTS = {"matching": 0.5, "3-regular": 0.35, "grid": 0.35, "star": 0.5}


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    with Checkpoint.of("structure", seed, quick, data) as kept:
        yield from targets(kept, quick, seed)
        curves: dict[str, dict[int, float]] = {}
        yield from sweep(kept, quick, seed, curves, None if quick else FIGURE if data is None else data / FIGURE.name)
        yield from slopes(curves)
        if not quick:
            yield from other_families(kept, seed)
        yield from refusals(quick, kept)
        yield from speed()


# -- graphs and the search for n ---------------------------------------------------------------------------------------


def graph(kind: str, p: int, seed: int) -> IsingModel:
    """Columns are renamed at random, so that no method can gain from their order."""
    rng = np.random.default_rng(seed)
    if kind == "matching":
        edges = generators.matching(p)
    elif kind == "star":
        edges = generators.star(p)
    elif kind == "grid":
        rows = max(d for d in range(1, int(math.sqrt(p)) + 1) if p % d == 0)
        edges = generators.grid(rows, p // rows)
    else:
        edges = generators.regular(p, 3, random_state=seed)
    place = rng.permutation(p)
    moved = [(int(min(place[i], place[j])), int(max(place[i], place[j]))) for i, j in edges]
    return generators.ising(p, moved, weight=WEIGHTS[kind])


def width_of(kind: str, p: int) -> float:
    """λ as the paper's method needs it: public."""
    degree = {"matching": 1, "3-regular": 3, "grid": 4, "star": p - 1}[kind]
    return WEIGHTS[kind] * degree


def is_right(method: Method, truth: IsingModel, kind: str, n: int, seed: int) -> bool:
    table = draw(truth, n, seed)
    learner = method.learner(WEIGHTS[kind], width_of(kind, len(truth.A)))
    if method.budget is None:
        found = learner.fit(ExactCurator(table), APPROX)
    else:
        found = learner.fit(Curator(table, ADD, method.budget))
    return not found.refused and set(found.edges) == set(truth.edges)


def least_records(
    method: Method, kind: str, p: int, runs: int, seed: int, *, one_graph: int | None = None, most: float = 1e5
) -> float | None:
    """The least n of a geometric grid at which nine of ten runs are right, and at the next smaller one they are not.

    ``one_graph``: a graph that all runs share; otherwise each has its own.
    """

    def enough(k: int) -> bool:
        n, failed = round(100 * STEP**k), 0
        for r in range(runs):
            truth = graph(kind, p, one_graph if one_graph is not None else 7919 * seed + r)
            failed += not is_right(method, truth, kind, n, 10_007 * seed + 101 * r + k)
            if failed > runs // 10:
                return False
        return True

    top = math.floor(math.log(most / 100) / math.log(STEP))
    k = min(max(round(math.log(method.guess(p) / 100) / math.log(STEP)), 0), top)
    step = 2
    if enough(k):
        high = k
        while high > 0 and enough(max(high - step, 0)):
            high, step = max(high - step, 0), 2 * step
        low = max(high - step, -1)
    else:
        low = k
        while True:
            if low + step > top:
                return None
            if enough(low + step):
                high = low + step
                break
            low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(round(100 * STEP**high))


def facts(method: Method, runs: int) -> dict[str, Any]:
    notion = "none" if method.budget is None else method.budget.notion
    return {"runs": runs, "notion": notion, "relation": "add-remove", "n_public": method.budget is None}


# -- what was asked for ------------------------------------------------------------------------------------------------


def targets(kept: Checkpoint, quick: bool, seed: int) -> Iterator[dict[str, Any]]:
    runs = 10 if quick else 30
    what = "records for 90 % exact recovery"
    paper = {}
    for p in (16,) if quick else (64, 128):
        # Some ten seconds a run at 64 columns, a minute at 128: ten runs, and the sweep takes these numbers too.
        paper[p] = kept.get(f"matching {p} {MODE.name}", partial(least_records, MODE, "matching", p, 10, seed))
    for p in (64, 128):
        for method, target in ((DEFAULT, 1000), (CORRELATION, 650), (UNKNOWN, None)):
            key = f"target matching {p} {method.name}"
            ours = kept.get(key, partial(least_records, method, "matching", p, runs, seed))
            beside = paper.get(p) or paper.get(16)
            name = MODE.name if p in paper else f"{MODE.name}, p = 16"
            yield row(what, f"matching, p = {p}, η = 0.5, (1, 1e-6)", ours, target=target, reference=beside,
                      reference_name=name, method=None if method is DEFAULT else method.name,
                      **facts(method, runs))  # fmt: skip
    graphs, inner = (3, 5) if quick else (10, 10)
    for method, target in ((DEFAULT, 8000), (CORRELATION, None), (UNKNOWN, None)):
        if quick and method is not DEFAULT:
            continue
        found = [
            kept.get(f"target regular {method.name} {g}", partial(
                least_records, method, "3-regular", 64, inner, seed, one_graph=1000 * (seed + 1) + g, most=3e4))
            for g in range(graphs)
        ]  # fmt: skip
        numbers = sorted(math.inf if n is None else n for n in found)
        middle = (numbers[(graphs - 1) // 2] + numbers[graphs // 2]) / 2
        note = {} if math.isfinite(middle) else {"note": "not at 30,000 records on most graphs"}
        yield row(f"{what}, median of {graphs} graphs", "3-regular, p = 64, η = 0.35, (1, 1e-6)", middle,
                  target=target, method=None if method is DEFAULT else method.name, **note,
                  **facts(method, graphs * inner))  # fmt: skip
    for method, target in ((SELECTED, 2200), (SELECTED_UNKNOWN, None)):
        ours = kept.get(f"target zcdp {method.name}", partial(least_records, method, "matching", 64, runs, seed))
        yield row(what, "matching, p = 64, η = 0.5, ρ = 0.028", ours, target=target,
                  method=None if method is SELECTED else method.name, **facts(method, runs))  # fmt: skip


# -- the sweep, and Table 1 --------------------------------------------------------------------------------------------


def sweep(
    kept: Checkpoint, quick: bool, seed: int, curves: dict[str, dict[int, float]], figure: Path | None
) -> Iterator[dict[str, Any]]:
    runs = 10 if quick else 20
    kinds = ("matching",) if quick else tuple(WEIGHTS)
    columns = (8, 16, 32) if quick else (8, 16, 32, 64, 128, 256)
    methods = (DEFAULT, SELECTED, NONPRIVATE) if quick else ALL
    for kind in kinds:
        for p in columns:
            for method in methods:
                if p > method.most_columns or (kind == "star" and p > 64):
                    continue
                slow = method in (MODE, PTR, VOTES, FRANK_WOLFE, MOMENTS)
                these = 10 if slow else runs
                found = kept.get(f"{kind} {p} {method.name}", partial(
                    least_records, method, kind, p, these, seed, most=4e4 if kind != "matching" else 1e5))  # fmt: skip
                if found is not None and kind == "matching":
                    curves.setdefault(method.name, {})[p] = found
                yield row("records for 90 % exact recovery", f"{kind}, p = {p}, η = {WEIGHTS[kind]:g}", found,
                          method=None if method is DEFAULT else method.name, **facts(method, these),
                          **({} if found is not None else {"note": "not within the largest n tried"}))  # fmt: skip
        if kind == "matching" and figure is not None:
            draw_table(curves, figure)
    for p, n in curves.get(MODE.name, {}).items():
        yield row("default by the paper's method, matching", f"p = {p}", curves[DEFAULT.name][p] / n, target=1.0,
                  **facts(DEFAULT, runs))  # fmt: skip


def slope(curve: dict[int, float]) -> float:
    p, n = np.log(list(curve)), np.log(list(curve.values()))
    return float(np.polyfit(p, n, 1)[0])


def slopes(curves: dict[str, dict[int, float]]) -> Iterator[dict[str, Any]]:
    asked = {DEFAULT.name: 0.25, SELECTED.name: 0.75}
    theory = {DEFAULT.name: "log p", SELECTED.name: "√p: 0.5", SELECTED_PURE.name: "p: 1", NONPRIVATE.name: "log p"}
    for name, curve in curves.items():
        if len(curve) >= 3:
            yield row("slope of log n against log p, matching", f"p = {min(curve)} … {max(curve)}", slope(curve),
                      target=asked.get(name), method=None if name == DEFAULT.name else name,
                      reference_name=theory.get(name, ""))  # fmt: skip


def draw_table(curves: dict[str, dict[int, float]], path: Path) -> None:
    """Table 1 from data: records against columns, one curve a method, with its slope."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8.5, 5.2))
    order = sorted(curves, key=lambda name: -max(curves[name].values()))
    styles = {"none": ":", "approx": "-", "zcdp": "--", "pure": "-."}
    for name in order:
        method = next(m for m in ALL if m.name == name)
        notion = "none" if method.budget is None else method.budget.notion
        fitted = f" (slope {slope(curves[name]):.2f})" if len(curves[name]) >= 3 else ""
        axis.loglog(list(curves[name]), list(curves[name].values()), "o" + styles[notion], ms=4, label=name + fitted)
    ticks = sorted({p for curve in curves.values() for p in curve})
    axis.set_xticks(ticks, [str(p) for p in ticks])
    axis.minorticks_off()
    axis.set(
        xlabel="columns p",
        ylabel="records for 90 % exact recovery",
        title="Perfect matchings, η = 0.5: dotted not private, solid (1, 1e-6), dashed ρ = 0.028, dash-dot ε = 1",
    )
    axis.title.set_fontsize(10)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


# -- more levels, more columns at once ---------------------------------------------------------------------------------


def other_families(kept: Checkpoint, seed: int, runs: int = 5) -> Iterator[dict[str, Any]]:
    """Share of runs in which all interactions are right: columns with three levels, and triples."""
    for family, learners in (
        ("pairwise, k = 3, chain of 6, weight 1, n = 2e4", {
            "stable edges": StableEdges(0.8), "stable mode (paper)": StableMode(SparseLogistic(0.8, 2.0, steps=30))}),
        ("t = 3, two triples and a pair of 8, weight 0.7, n = 2e4", {
            "stable edges": StableEdges(0.7, "correlation", 3),
            "stable mode (paper)": StableMode(Sparsitron(0.7, 0.7, 3, steps=60))}),
    ):  # fmt: skip
        found = {
            name: kept.get(f"{family} {name}", partial(share_right, family, learner, runs, seed))
            for name, learner in learners.items()
        }
        yield row("share of runs all right", family, found["stable edges"], better="higher",
                  reference=found["stable mode (paper)"], reference_name="stable mode (paper)",
                  **facts(DEFAULT, runs))  # fmt: skip


def share_right(family: str, learner: Any, runs: int, seed: int, n: int = 20_000) -> float:
    hits = 0
    for r in range(runs):
        s = 7919 * seed + r
        wanted: set[tuple[str, ...]]
        if family.startswith("pairwise"):
            pairwise = generators.pairwise(6, generators.chain(6), levels=3, weight=1.0, random_state=s)
            table, wanted = columns_of(pairwise.sample(n, s).codes, pairwise.domain), set(pairwise.edges)
        else:
            binary = generators.binary(8, [(0, 1, 2), (3, 4, 5), (6, 7)], weight=0.7, random_state=s)
            table, wanted = columns_of(binary.sample(n, s).codes, binary.domain), set(binary.maximal_monomials)
        found = learner.fit(Curator(table, ADD, APPROX))
        hits += not found.refused and set(found.cliques) == wanted
    return hits / runs


# -- privacy as promised, and time -------------------------------------------------------------------------------------


def refusals(quick: bool, kept: Checkpoint) -> Iterator[dict[str, Any]]:
    """An input one record away from another graph, at δ = 0.02: releases must be at most δ of the runs."""
    runs = 4000 if quick else 20_000

    def count() -> int:
        domain = Domain.of({"a": 2, "b": 2, "c": 2})
        rows = np.array([[0, 0, 0], [1, 1, 1]] * 5 + [[0, 1, 0], [1, 0, 1]] * 3 + [[1, 1, 0]])
        table = MemoryTable(domain, [rows[:, i].astype(np.uint8) for i in range(3)], threads=1)
        test = SpinTest(domain, 0.25)
        hits = 0
        for _ in range(runs):
            asked = Curator(table, ADD, ApproxDP(1, Fraction(2, 100)))
            hits += not asked.release_if_stable(test).refused
        return hits

    hits = kept.get(f"refusals {runs}", count)
    least = clopper_pearson(hits, runs, 0.999, upper=False)
    yield row("release rate on an unstable input, lower 99.9 % bound", f"{runs} runs, δ = 0.02", least, target=0.02,
              reference=hits / runs, reference_name="seen", runs=runs, notion="approx", relation="add-remove",
              n_public=False)  # fmt: skip


def speed() -> Iterator[dict[str, Any]]:
    for p, n, test, target in ((256, 100_000, "correlation", 30.0), (128, 10_000, "conditional", 60.0),
                               (128, 10_000, "auto", None)):  # fmt: skip
        rng = np.random.default_rng(0)
        domain = Domain.of({f"x{i}": 2 for i in range(p)})
        table = MemoryTable(domain, list(rng.integers(0, 2, (p, n), dtype=np.uint8)))
        begun = time.perf_counter()
        StableEdges(0.35, test).fit(Curator(table, ADD, APPROX))  # type: ignore[arg-type]
        yield row("seconds", f"{test} test, p = {p}, n = {n:g}", time.perf_counter() - begun, target=target,
                  method=None if test == "auto" else f"stable edges, {test}")  # fmt: skip
