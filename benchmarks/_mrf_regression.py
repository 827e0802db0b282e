"""Logistic regression: excess risk against the number of steps, with the guarantee of Corollary 3.4 beside it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks._mrf_ising import REPLACE, columns_of, curator
from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.learn.regressions.frank_wolfe import Variant, choose_steps
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.papers.theory.frank_wolfe import corollary_3_4
from discreet.privacy.budget import ZCDP
from discreet.privacy.queries.value_gradients import ValueGradients

FEATURES, RECORDS, RHO, RADIUS = 100, 10_000, 0.01, 4.0
STEPS = (4, 8, 16, 32, 64, 128, 256)
QUICK_STEPS = (8, 64)
Curve = dict[str, list[float]]


def excess_risk(
    kept: Checkpoint, runs: int, seed: int, quick: bool, curves: dict[str, Curve]
) -> Iterator[dict[str, Any]]:
    """Filling ``curves`` for the figure: for each variant the risk at every number of steps, its bound, its own T."""
    setting = f"{FEATURES} features, n = {RECORDS:g}, ρ = {RHO:g}, radius {RADIUS:g}"
    facts = {"runs": runs, "notion": "zcdp", "relation": "replace-one", "n_public": True}
    chosen = {variant: own_steps(variant) for variant in ("tight", "published")}
    own: dict[str, float] = {}
    for variant in ("tight", "published"):
        steps = tuple(dict.fromkeys((*(QUICK_STEPS if quick else STEPS), chosen[variant])))
        curve = {str(T): kept.get(f"risk {variant} {T}", partial(mean_excess, variant, T, runs, seed)) for T in steps}
        curves[variant] = {
            "steps": [float(T) for T in steps],
            "risk": [curve[str(T)] for T in steps],
            "bound": [_bound(variant, T) for T in steps],
        }
        own[variant] = curve[str(chosen[variant])]
        for T in steps:
            yield row("excess risk of logistic regression", f"{setting}, {T} steps", curve[str(T)],
                      method=f"frank_wolfe, {variant}", reference=_bound(variant, T),
                      reference_name="Corollary 3.4, 95 %", **facts)  # fmt: skip
    yield row("excess risk of logistic regression", f"{setting}, {chosen['tight']} steps", own["tight"],
              reference=own["published"], reference_name=f"published, its {chosen['published']} steps",
              **facts)  # fmt: skip


def _bound(variant: Variant, steps: int) -> float:
    return corollary_3_4(RADIUS, FEATURES + 1, RECORDS, RHO, steps=steps + 1, variant=variant).total


def own_steps(variant: Variant) -> int:
    zero = ValueGradients(domain(), "y", values(), 1, np.zeros((1, FEATURES + 1), dtype=np.int64), 0.0)
    return choose_steps(variant, RADIUS, RECORDS, zero, REPLACE, ZCDP(RHO))


def domain() -> Domain:
    return Domain.of({**{f"x{i}": 2 for i in range(FEATURES)}, "y": 2})


def values() -> dict[str, list[int]]:
    return {f"x{i}": [-1, 1] for i in range(FEATURES)}


def mean_excess(variant: Variant, steps: int, runs: int, seed: int) -> float:
    out = []
    for r in range(runs):
        rng = np.random.default_rng(1000 * seed + r)
        x = rng.choice([-1.0, 1.0], size=(RECORDS, FEATURES))
        w = np.zeros(FEATURES)
        w[rng.choice(FEATURES, 4, replace=False)] = (1.2, -1.0, 0.8, -0.6)
        y = np.where(rng.random(RECORDS) < 1 / (1 + np.exp(-(x @ w + 0.2))), 1.0, -1.0)
        codes = np.hstack([x > 0, y[:, None] > 0])
        learner = LogisticLearner("y", values(), 1, RADIUS, variant, steps)
        found = learner.fit(curator(columns_of(codes, domain()), REPLACE, ZCDP(RHO), RECORDS))
        design = np.hstack([x, np.ones((RECORDS, 1))])
        out.append(risk(design, y, np.append(found.w, found.intercept)) - least_risk(design, y))
    return statistics.fmean(out)


def risk(x: Any, y: Any, w: Any) -> float:
    return float(np.logaddexp(0, -y * (x @ w)).mean())


def least_risk(x: Any, y: Any) -> float:
    """Without the bound on ‖w‖₁, so at most what the ball allows."""

    def both(w: Any) -> tuple[float, Any]:
        m = y * (x @ w)
        return float(np.logaddexp(0, -m).mean()), -((y / (1 + np.exp(m))) @ x) / len(y)

    return float(minimize(both, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").fun)
