"""Structure of Markov random fields: how many records each method needs to get the whole graph right in nine of ten
runs, against the number of columns, and the paper's Table 1 drawn from these numbers.

(ε, δ) = (1, 1e-6); zCDP with ρ = 0.028, and pure DP with ε = 1, beside it. Add-remove with a private number of records.
``seed`` changes graphs and data; protective noise is never seeded. A full run takes some 90 minutes of one core;
methods that take seconds a run have fewer runs, a coarser grid of n, and a limit of time for each cell, after which the
row says what is known by then: "not at N", or "between N and M".
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._structure_figures import draw_table, slope
from benchmarks._structure_search import (
    ADD,
    ALL,
    APPROX,
    CORRELATION,
    DEFAULT,
    MODE,
    NONPRIVATE,
    OF_BLOCKS,
    OTHER_FAMILIES,
    SELECTED,
    SELECTED_PURE,
    SELECTED_UNKNOWN,
    UNKNOWN,
    WEIGHTS,
    FamilySearch,
    Method,
    Search,
    share_right,
    smoothed,
)
from benchmarks.harness import Checkpoint, one_thread, row
from discreet.audit.statistical import clopper_pearson
from discreet.domain import Domain
from discreet.learn.structure.stable_edges import StableEdges
from discreet.privacy.budget import ApproxDP
from discreet.privacy.curator import Curator
from discreet.privacy.queries.edge_tests import SpinTest
from discreet.tables.memory import MemoryTable

FIGURE = Path("docs/images/structure-table-1.png")
WHAT = "records for 90 % exact recovery"
Curves = dict[tuple[str, str], dict[int, float]]  # by kind and method


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    with Checkpoint.of("structure", seed, quick, data) as kept:
        cells = Cells(kept, quick, seed)
        with one_thread():
            if not quick:
                yield from other_families(kept, seed)
            yield from refusals(quick, kept)
            yield from targets(cells)
            figure = None if quick else FIGURE if data is None else data / FIGURE.name
            yield from sweep(cells, figure)
        yield from speed()


# -- cells of the big table --------------------------------------------------------------------------------------------


class Cells:
    """Searches for n that were done, each once: targets and the sweep share them."""

    def __init__(self, kept: Checkpoint, quick: bool, seed: int) -> None:
        self.kept, self.quick, self.seed = kept, quick, seed
        self.curves: Curves = {}
        self.tried: dict[str, dict[int, Any]] = {}  # on matchings, by method

    def search(self, kind: str, p: int, method: Method) -> Search:
        matching = kind == "matching"
        if method.slow:
            runs, step, seconds = 10, 1.3, time_for(method, p, matching)
        elif self.quick:
            runs, step, seconds = (30, 1.05, 60.0) if method is DEFAULT else (10, 1.15, 60.0)
        elif matching and (method in (DEFAULT, SELECTED) or (p in (64, 128) and method is not SELECTED_PURE)):
            runs, step, seconds = 30, 1.05, 600.0
        else:
            runs, step, seconds = 20 if p < 256 else 10, 1.15, 90.0 if matching else 30.0
        return Search(method, kind, p, self.seed, runs, step, 1e5 if matching else 4e4, seconds=seconds)

    def get(self, kind: str, p: int, method: Method) -> dict[str, Any]:
        curve = self.curves.setdefault((kind, method.name), {})
        search = self.search(kind, p, method)
        smaller = max((q for q in curve if q < p), default=None)
        start = None if smaller is None else curve[smaller] * method.guess(p) / method.guess(smaller)
        found: dict[str, Any] = self.kept.get(f"{kind} {p} {method.name}", partial(search, start))
        if found["n"] is not None:
            curve[p] = found["n"]
            if kind == "matching":
                self.tried.setdefault(method.name, {})[p] = found.get("tried")
        return found

    def smooth(self, name: str) -> dict[int, float] | None:
        """n on matchings by a curve through all runs of the searches."""
        tried = self.tried[name]
        return smoothed(dict(sorted(tried.items()))) if all(tried.values()) else None

    def row(self, kind: str, p: int, method: Method, **more: Any) -> dict[str, Any]:
        found, search = self.get(kind, p, method), self.search(kind, p, method)
        return row(WHAT, f"{kind}, p = {p}, η = {WEIGHTS[kind]:g}", found["n"],
                   method=None if method is DEFAULT else method.name, **{**remark(found, search), **more},
                   **facts(method, search.runs))  # fmt: skip


def time_for(method: Method, p: int, matching: bool) -> float:
    """Seconds of computing for the search of a slow method; 0 where a single run takes too many of them."""
    if method is MODE:
        return (150.0 if p <= 128 else 0.0) if matching else (20.0 if p <= 32 else 0.0)
    if method in OF_BLOCKS:
        return (40.0 if p <= 64 else 0.0) if matching else (10.0 if p <= 16 else 0.0)
    return 40.0 if matching else 10.0 if p <= 128 else 0.0


def remark(found: dict[str, Any], search: Search) -> dict[str, str]:
    """Where the search was not finished, what it knows."""
    n, above = found["n"], found["above"]
    if n is None:
        return {"note": f"not at {above:,.0f}" if above else "not searched: a run takes too long"}
    if n / (above or 100) > search.step * 1.03:
        return {"note": f"between {above or 100:,.0f} and {n:,.0f}"}
    return {}


def facts(method: Method, runs: int) -> dict[str, Any]:
    notion = "none" if method.budget is None else method.budget.notion
    return {"runs": runs, "notion": notion, "relation": "add-remove", "n_public": method.budget is None}


# -- what was asked for ------------------------------------------------------------------------------------------------


def targets(cells: Cells) -> Iterator[dict[str, Any]]:
    paper = {p: cells.get("matching", p, MODE)["n"] for p in ((16,) if cells.quick else (64, 128))}
    for p in (64, 128):
        beside = {"reference": paper.get(p, paper.get(16)), "reference_name": MODE.name if p in paper else
                  f"{MODE.name}, p = 16"}  # fmt: skip
        for method, target in ((DEFAULT, 1000), (CORRELATION, 650), (UNKNOWN, None)):
            yield cells.row("matching", p, method, target=target, **beside)
    yield from regular_graphs(cells)
    for method, target in ((SELECTED, 2200), (SELECTED_UNKNOWN, None)):
        yield cells.row("matching", 64, method, target=target)


def regular_graphs(cells: Cells) -> Iterator[dict[str, Any]]:
    """3-regular graphs one by one, because they differ."""
    graphs, runs = (3, 5) if cells.quick else (10, 10)
    for method, target in ((DEFAULT, 8000),) if cells.quick else ((DEFAULT, 8000), (UNKNOWN, None)):
        found = []
        for g in range(graphs):
            search = Search(method, "3-regular", 64, cells.seed, runs, most=3e4, one_graph=1000 * (cells.seed + 1) + g)
            each = cells.kept.get(f"regular graph {g} {method.name}", partial(search, 1800))
            found.append(math.inf if each["n"] is None else each["n"])
        found.sort()
        middle = (found[(graphs - 1) // 2] + found[graphs // 2]) / 2
        said = " ".join(f"{n:g}" if math.isfinite(n) else ">3e4" for n in found)
        yield row(f"{WHAT}, median of {graphs} graphs", "3-regular, p = 64, η = 0.35, (1, 1e-6)", middle,
                  target=target, method=None if method is DEFAULT else method.name, note=said,
                  **facts(method, runs))  # fmt: skip


# -- the sweep, and Table 1 --------------------------------------------------------------------------------------------


COLUMNS = (8, 16, 32, 64, 128, 256)
FIRST = (DEFAULT, UNKNOWN, MODE, SELECTED, NONPRIVATE)


def sweep(cells: Cells, figure: Path | None) -> Iterator[dict[str, Any]]:
    if cells.quick:
        for method in (DEFAULT, SELECTED, NONPRIVATE):
            for p in COLUMNS[:5] if method is DEFAULT else COLUMNS[:4]:
                yield cells.row("matching", p, method)
        yield from slopes(cells)
        return
    for kind, p, method in by_importance():  # a run that is cut short has the more important cells
        cells.get(kind, p, method)
        if method in OF_BLOCKS:
            list(beside_default(cells, kind, p, method))
    assert figure is not None
    draw_table({name: curve for (kind, name), curve in cells.curves.items() if kind == "matching"}, ALL, figure)
    for kind in WEIGHTS:
        for p in COLUMNS:
            yield from (cells.row(kind, p, method) for method in ALL)
            for method in OF_BLOCKS:
                yield from beside_default(cells, kind, p, method)
    yield from slopes(cells)


def by_importance() -> Iterator[tuple[str, int, Method]]:
    rest = [m for m in ALL if m not in FIRST]
    others = [kind for kind in WEIGHTS if kind != "matching"]
    for kinds, columns, methods in (
        (["matching"], COLUMNS, FIRST), (others, COLUMNS[:5], FIRST), (["matching"], COLUMNS, rest),
        (others, COLUMNS[:5], rest), (others, COLUMNS[5:], ALL),
    ):  # fmt: skip
        yield from ((kind, p, method) for kind in kinds for method in methods for p in columns)


def beside_default(cells: Cells, kind: str, p: int, method: Method) -> Iterator[dict[str, Any]]:
    """Whether the default needs more than a method of the paper: its n by the other's, or by an n that was too few."""
    ours, search = cells.get(kind, p, DEFAULT)["n"], cells.search(kind, p, method)
    name = f"default by {method.name}"
    if ours is None:
        theirs = cells.get(kind, p, method)
        if theirs["n"] is None:
            yield row(name, f"{kind}, p = {p}", math.nan, note="neither within the largest n", **facts(DEFAULT, 0))
        else:
            yield row(name, f"{kind}, p = {p}", math.nan, target=1.0, note="the default not within the largest n",
                      **facts(DEFAULT, search.runs))  # fmt: skip
        return
    if method is not MODE and search.seconds == 0:
        return
    runs = 5 if p <= 64 else 3
    few = cells.kept.get(f"{kind} {p} {method.name} at {ours:g}",
                         partial(share_right, method, kind, p, ours, runs, cells.seed))  # fmt: skip
    theirs = cells.get(kind, p, method)
    too_few = max(theirs["above"] or 0.0, ours if few < 0.9 else 0.0)
    known = theirs["n"] or too_few
    note = {} if theirs["n"] else {"note": f"at most: {method.name} needs more than {too_few:,.0f}"}
    right = f"share of {method.name} right at {ours:,.0f}"
    yield row(name, f"{kind}, p = {p}", ours / known if known else math.nan, target=1.0, reference=few,
              reference_name=right, **note, **facts(DEFAULT, runs))  # fmt: skip


def slopes(cells: Cells) -> Iterator[dict[str, Any]]:
    theory = {DEFAULT.name: "log p", SELECTED.name: "√p: 0.5", SELECTED_PURE.name: "p: 1", NONPRIVATE.name: "log p"}
    for (kind, name), grid in cells.curves.items():
        if kind != "matching" or len(grid) < 3:
            continue
        curve = cells.smooth(name) or grid
        what, said = "slope of log n against log p, matching", f"p = {min(curve)} … {max(curve)}"
        shown: dict[str, Any] = {
            "method": None if name == DEFAULT.name else name,
            "reference_name": theory.get(name, ""),
        }
        # On p = 8 … 32 log p itself rises like p^0.37: a slope is asked for where log p is flatter.
        asked = 0.25 if name == DEFAULT.name and max(curve) >= 256 else None
        yield row(what, said, slope(curve), target=asked, **shown)
        if name == DEFAULT.name:
            later = {p: n for p, n in curve.items() if p >= 16}
            yield row(what, f"p = 16 … {max(curve)}", slope(later), target=0.25, **shown)
        if name == SELECTED.name:
            yield row("how far that slope is from ½", said, abs(slope(curve) - 0.5), target=0.15, method=name)


# -- more levels, more columns at once ---------------------------------------------------------------------------------


def other_families(kept: Checkpoint, seed: int) -> Iterator[dict[str, Any]]:
    """Columns with three levels, and triples: n at which all interactions are right in nine of ten runs."""
    for family, (ours, paper) in OTHER_FAMILIES.items():
        found = [kept.get(f"{family} {m.name}", FamilySearch(m, family, 8, seed, 10, 1.3 if m.slow else 1.15,
                                                             seconds=100.0)) for m in (ours, paper)]  # fmt: skip
        yield row(WHAT, family, found[0]["n"], target=found[1]["n"] or found[1]["above"], reference=found[1]["n"],
                  reference_name=paper.name, **facts(DEFAULT, 10))  # fmt: skip


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
