"""Table 1 of [000] for parameters: how many records bring the largest error of a coupling to at most α in nine of ten
runs, against the number of columns, for each notion of privacy; ours, Algorithm 2 with tight noise, and as published.

Perfect matchings with η = 0.5 and random columns; add-remove, the number of records private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from benchmarks._mrf_ising import draw
from benchmarks._structure_search import ADD, APPROX, CONCENTRATED, PURE, WEIGHTS, Method, Search, graph
from benchmarks.harness import row
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.coefficients import sup_error
from discreet.learn.spins.field import SpinField
from discreet.privacy.curator import Curator, ExactCurator

ALPHA = 0.2
KIND = "matching"
COLUMNS = (4, 8, 16, 32, 64)
LONG = 32
"""From so many columns on a descent takes long: those cells are measured last."""
MOST_RECORDS, MOST_SECONDS = 4e5, 150.0
WHAT = f"records for an error of at most {ALPHA:g} in nine of ten runs"
SHOWN = f"{WHAT}\n(20 at each n, Frank–Wolfe 10)"
Found = dict[str, Any]


def _ours(eta: float, width: float) -> SpinField:
    return SpinField()


def _tight(eta: float, width: float) -> SpinRegressions:
    return SpinRegressions(width=width)


def _published(eta: float, width: float) -> SpinRegressions:
    return SpinRegressions(width=width, variant="published")


NONPRIVATE = Method("non-private fit", _ours, None, lambda p: 150)
METHODS = (
    Method("ours, (ε, δ)", _ours, APPROX, lambda p: 400),
    Method("ours, zCDP", _ours, CONCENTRATED, lambda p: 400),
    Method("ours, pure DP", _ours, PURE, lambda p: 60 * p),
    NONPRIVATE,
    Method("Frank–Wolfe, (ε, δ)", _tight, APPROX, lambda p: 2000, slow=True),
    Method("Frank–Wolfe, zCDP", _tight, CONCENTRATED, lambda p: 2000, slow=True),
    Method("Frank–Wolfe, pure DP", _tight, PURE, lambda p: 300 * p, slow=True),
    Method("published, (ε, δ)", _published, APPROX, lambda p: 700 * p, slow=True),
    Method("published, zCDP", _published, CONCENTRATED, lambda p: 700 * p, slow=True),
    Method("published, pure DP", _published, PURE, lambda p: 2000 * p, slow=True),
)
EXPECTED = {"none": "log p", "approx": "√p: 0.5", "zcdp": "√p: 0.5", "pure": "p: 1"}


@dataclass(frozen=True)
class ErrorSearch(Search):
    """The same search, for parameters instead of a graph."""

    def _right(self, n: int, run: int, seed: int) -> bool:
        truth = graph(self.kind, self.p, 7919 * self.seed + run)
        table = draw(truth, n, seed)
        budget = self.method.budget
        curator = ExactCurator(table) if budget is None else Curator(table, ADD, budget)
        return sup_error(self.method.learner(0.5, WEIGHTS[KIND]).fit(curator), truth) <= ALPHA


def search(method: Method, p: int, seed: int) -> ErrorSearch:
    runs, step = (10, 1.3) if method.slow else (20, 1.15)
    return ErrorSearch(method, KIND, p, seed, runs, step, MOST_RECORDS, seconds=MOST_SECONDS)


def cells(
    get: Callable[[str, Callable[[], Any]], Any], seed: int, columns: tuple[int, ...] = COLUMNS
) -> dict[str, dict[int, Found]]:
    """By method and p; ``get`` keeps what was measured. A search begins where the one of fewer columns ended."""
    out: dict[str, dict[int, Found]] = {m.name: {} for m in METHODS}
    for method, p in sorted(product(METHODS, columns), key=lambda cell: (cell[0].slow and cell[1] >= LONG, cell[1])):
        smaller = [f["n"] * method.guess(p) / method.guess(q) for q, f in out[method.name].items() if f["n"]]
        work, start = search(method, p, seed), smaller[-1] if smaller else None
        out[method.name][p] = get(f"{method.name}, p={p}, seed {seed}", partial(work, start))
    return out


def curves(found: dict[str, dict[int, Found]]) -> dict[str, dict[int, float]]:
    return {name: {p: f["n"] for p, f in cell.items() if f["n"]} for name, cell in found.items()}


def rows(found: dict[str, dict[int, Found]], seed: int) -> Iterator[dict[str, Any]]:
    from benchmarks._structure_figures import slope

    for method in METHODS:
        notion = "none" if method.budget is None else method.budget.notion
        facts = {"method": method.name, "notion": notion, "relation": "add-remove", "n_public": method.budget is None}
        runs = search(method, 8, seed).runs
        for p, f in found[method.name].items():
            note = {} if f["n"] else {"note": f"not at {f['above'] or 0:,.0f}"}
            yield row(WHAT, f"perfect matching, p = {p}, η = 0.5", f["n"] or math.nan, runs=runs, **facts, **note)
        curve = curves(found)[method.name]
        if len(curve) >= 3:
            yield row("power of p with which they grow", f"p = {min(curve)} … {max(curve)}", slope(curve), runs=runs,
                      reference_name=EXPECTED[notion], **facts)  # fmt: skip
