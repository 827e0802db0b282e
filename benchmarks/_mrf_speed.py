"""Speed: one iteration beside the matrix-product floor, whole runs beside scikit-learn, the default learner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._mrf_ising import ADD, REPLACE, draw, graph
from benchmarks.harness import Clock, ratio, row, seconds
from discreet.domain import Domain
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.field import SpinField
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator
from discreet.privacy.queries.gradients import SpinGradients
from discreet.tables.memory import MemoryTable

RECORDS = 100_000


def speed(quick: bool, iterations: list[tuple[int, float]]) -> Iterator[dict[str, Any]]:
    """Filling ``iterations`` for the figure: p, and the ratio to the product."""
    for p in (50, 100) if quick else (10, 25, 50, 100, 200):
        found, table, query = one_iteration(p, 3 if quick else 5)
        iterations.append((p, found))
        yield row("one Frank–Wolfe iteration of all columns, without noise", f"p = {p}, n = 1e5", found, reference=1.0,
                  reference_name="p×p×n product in float64", target=2.5 if p >= 50 else None,
                  runs=5, noise_seconds=selection_seconds(table, query))  # fmt: skip
    truth = graph("3-regular", 200, 1)
    table = draw(truth, RECORDS, 1)
    begun = time.process_time()
    taken = seconds(lambda: SpinField().fit(Curator(table, ADD, ZCDP(0.1))), repeat=1)
    yield row("seconds of the default learner", "3-regular, p = 200, n = 1e5, ρ = 0.1", taken, target=15.0,
              processor_seconds=time.process_time() - begun)  # fmt: skip
    if not quick:
        yield from against_scikit_learn()


def one_iteration(p: int, repeat: int, clock: Clock = time.perf_counter) -> tuple[float, MemoryTable, SpinGradients]:
    domain = Domain.of({f"x{i}": 2 for i in range(p)})
    rng = np.random.default_rng(0)
    table = MemoryTable(domain, list(rng.integers(0, 2, (p, RECORDS), dtype=np.uint8)), threads=1)
    v = rng.integers(-50, 51, (p, p + 1))
    v[np.arange(p), np.arange(p)] = 0
    query = SpinGradients(domain, [*((x,) for x in domain.names), ()], v, 0.001)
    weights, features = rng.normal(size=(p, p)), rng.normal(size=(p, RECORDS))
    product = partial(np.matmul, weights, features)
    return ratio(partial(table.sum, query), product, repeat=repeat, clock=clock), table, query


def selection_seconds(table: MemoryTable, query: SpinGradients) -> float:
    """A private step less its sum: the noise of the selections, and the rest."""
    step = seconds(lambda: Curator(table, ADD, ZCDP(1)).select_each(query.score(adaptive=True), ZCDP(0.5)), repeat=2)
    return max(0.0, step - seconds(lambda: table.sum(query), repeat=2))


def against_scikit_learn() -> Iterator[dict[str, Any]]:
    """A whole tight run at p = 100 beside one regression a column; noise is timed apart and left out."""
    from sklearn.linear_model import LogisticRegression

    p = 100
    truth = graph("3-regular", p, 2)
    table = draw(truth, RECORDS, 2)
    names = truth.domain.names
    query = SpinGradients(truth.domain, [*((x,) for x in names), ()], np.ones((p, p + 1), dtype=np.int64), 0.001)
    learner = SpinRegressions(width=truth.width)
    begun = time.perf_counter()
    model = learner.fit(Curator(table, REPLACE, ZCDP(0.1), public_size=RECORDS))
    whole = time.perf_counter() - begun
    assert model.card is not None
    steps = int(model.card["frank_wolfe_steps"])
    ours = seconds(lambda: table.sum(query)) * steps
    z = 2.0 * np.stack(list(table._columns.values()), axis=1) - 1
    times = {}
    for solver in ("liblinear", "lbfgs", "newton-cg", "newton-cholesky"):
        fit = LogisticRegression(solver=solver, C=1.0)
        times[solver] = p * seconds(partial(fit.fit, z[:, 1:], z[:, 0]), repeat=2)
    fastest = min(times, key=lambda s: times[s])
    setting = f"3-regular, p = {p}, n = 1e5, {steps} steps"
    facts = {"noise_seconds": whole - ours, "seconds": ours}
    for solver, target in (("liblinear", 15.0), (fastest, 2.0)):
        yield row("times faster, whole tight run", setting, times[solver] / ours, better="higher", target=target,
                  reference_name=f"{solver}, a regression a column", **facts)  # fmt: skip
