"""Markov random fields: error and recovery against the number of records, for every method and the non-private fit.

The paper's setting is replace-one with a public number of records; add-remove, where that number is private and paid
for, is reported beside it. Data come from models of known parameters; ``seed`` changes graphs and data. A full run
varies n, ρ and p around a centre on four kinds of graphs, leaves out fits that are forecast to take long, keeps what
is finished (``mrf-SEED.checkpoint.jsonl``), and draws ``mrf-errors.png`` and ``mrf-risk-and-speed.png`` in the folder
``data`` or the current one.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _mrf_fields, _mrf_levels
from benchmarks._mrf_ising import ADD, Found, accuracy, columns_of, recovery
from benchmarks._mrf_regression import Curve, excess_risk
from benchmarks._mrf_speed import speed
from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.learn.spins.field import SpinField
from discreet.models import IsingModel
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    runs = 2 if quick else 5
    errors: Found = {}
    curves: dict[str, Curve] = {}
    iterations: list[tuple[int, float]] = []
    with Checkpoint.of("mrf", seed, quick, data) as kept:
        yield from accuracy(kept, runs, seed, quick, errors)
        yield from recovery(kept, 3 if quick else 10, seed)
        yield from excess_risk(kept, runs, seed, quick, curves)
        yield from _mrf_fields.rows(kept, runs, seed, quick)
        yield from _mrf_levels.rows(kept, runs, seed, quick)
        if data is not None and (data / "nltcs.csv").exists():
            yield from nltcs(data / "nltcs.csv", kept, runs, seed)
        yield from speed(quick, iterations)
        from benchmarks import _mrf_figures as figures  # slow to import

        folder = data or Path.cwd()
        figures.draw_errors(errors, folder / "mrf-errors.png")
        figures.draw_risk_and_speed(curves, iterations, folder / "mrf-risk-and-speed.png")


# -- real data ---------------------------------------------------------------------------------------------------------


def nltcs(path: Path, kept: Checkpoint, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """Held-out pseudo-log-likelihood on the National Long Term Care Survey, 16 binary columns."""
    for budget, text in ((ApproxDP(1, 1e-6), "ε = 1, δ = 1e-6"), (PureDP(1), "ε = 1")):
        found = kept.get(f"nltcs {text}", partial(nltcs_scores, path, budget, runs, seed))
        losses = [abs(ours - best) / abs(best) for ours, best in found]
        yield row("held-out pseudo-log-likelihood, relative loss", f"NLTCS, {text}", statistics.fmean(losses),
                  reference=statistics.fmean(best for _, best in found), reference_name="non-private fit", runs=runs,
                  worst=max(losses), target=0.02 if budget.notion == "approx" else None, notion=budget.notion,
                  relation="add-remove", n_public=False)  # fmt: skip


def nltcs_scores(path: Path, budget: Any, runs: int, seed: int) -> list[tuple[float, float]]:
    """Ours and the non-private fit's, for each division into a fifth held out and the rest."""
    codes = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64).astype(np.uint8)
    domain = Domain.of({f"x{i}": 2 for i in range(codes.shape[1])})
    out = []
    for r in range(runs):
        order = np.random.default_rng(1000 * seed + r).permutation(len(codes))
        held, table = codes[order[: len(codes) // 5]], columns_of(codes[order[len(codes) // 5 :]], domain)
        models = [SpinField().fit(asked) for asked in (Curator(table, ADD, budget), ExactCurator(table))]
        out.append(tuple(pseudo_log_likelihood(model, held) for model in models))
    return out


def pseudo_log_likelihood(model: IsingModel, held: Any) -> float:
    rows = np.arange(len(held))
    chosen = (
        model.full_conditional(name, held.astype(np.int64))[rows, held[:, i]]
        for i, name in enumerate(model.domain.names)
    )
    return sum(float(np.log(c).mean()) for c in chosen)
