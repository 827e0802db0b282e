"""Markov random fields: error and recovery against the number of records, for every method and the non-private fit.

The paper's setting is replace-one with a public number of records; add-remove, where that number is private and paid
for, is reported beside it. Data come from models of known parameters; ``seed`` changes graphs and data. A full run
varies n, ρ and p around a centre on four kinds of graphs, leaves out fits that are forecast to take long, keeps what
is finished (``mrf-SEED.checkpoint.jsonl``), and draws ``mrf-errors.png`` and ``mrf-risk-and-speed.png`` in the folder
``data`` or the current one.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._mrf_ising import ADD, REPLACE, WEIGHT, Found, accuracy, columns_of, curator, draw, graph, recovery
from benchmarks._mrf_regression import Curve, excess_risk
from benchmarks._mrf_speed import speed
from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.estimation.binary_learner import BinaryMRFLearner
from discreet.estimation.ising_learner import IsingLearner
from discreet.estimation.pairwise_learner import PairwiseLearner
from discreet.estimation.parity_release import gaussian_parities, multiplicative_weights_parities
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.parities import ParitySums, all_monomials
from discreet.privacy.unit import PrivacyUnit


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    runs = 2 if quick else 5
    errors: Found = {}
    curves: dict[str, Curve] = {}
    iterations: list[tuple[int, float]] = []
    with Checkpoint.of("mrf", seed, quick, data) as kept:
        yield from accuracy(kept, runs, seed, quick, errors)
        yield from recovery(kept, 3 if quick else 10, seed)
        yield from excess_risk(kept, runs, seed, quick, curves)
        yield from other_families(kept, runs, seed)
        yield from query_release(kept, runs, seed)
        if data is not None and (data / "nltcs.csv").exists():
            yield from nltcs(data / "nltcs.csv", kept, runs, seed)
        yield from speed(quick, iterations)
        from benchmarks import _mrf_figures as figures  # slow to import

        folder = data or Path.cwd()
        figures.draw_errors(errors, folder / "mrf-errors.png")
        figures.draw_risk_and_speed(curves, iterations, folder / "mrf-risk-and-speed.png")


# -- other families ----------------------------------------------------------------------------------------------------


def other_families(kept: Checkpoint, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    facts = {"runs": runs, "notion": "zcdp", "relation": "replace-one", "n_public": True}
    for k in (3, 4, 5):
        setting = f"3-regular, p = 10, k = {k}, n = 1e4, ρ = 0.1"
        ours = kept.get(f"pairwise {k}", partial(pairwise_error, "moments", k, REPLACE, runs, seed))
        exact = kept.get(f"pairwise exact {k}", partial(pairwise_error, "moments", k, None, runs, seed))
        yield row("sup-norm error, pairwise", setting, ours, reference=exact, reference_name="non-private fit",
                  target=0.10 if k == 3 else None, **facts)  # fmt: skip
        if k == 3:
            tight = kept.get("pairwise FW", partial(pairwise_error, "frank_wolfe", k, REPLACE, runs, seed))
            yield row("sup-norm error, pairwise", setting, tight, method="frank_wolfe, tight", **facts)
    setting = "p = 20, t = 3, n = 1e4, ρ = 0.1"
    ours = kept.get("binary", partial(binary_errors, "moments", runs, seed))
    tight = kept.get("binary FW", partial(binary_errors, "frank_wolfe", runs, seed))
    for norm, target in (("sup-norm error", 0.06), ("ℓ1 error", None), ("error of maximal monomials", None)):
        yield row(f"{norm}, binary field", setting, ours[norm], reference=tight[norm],
                  reference_name="Algorithm 4, tight", target=target, **facts)  # fmt: skip


def pairwise_error(method: Any, k: int, unit: PrivacyUnit | None, runs: int, seed: int, n: int = 10_000) -> float:
    errors = []
    for r in range(runs):
        s = 1000 * seed + r
        truth = generators.pairwise(10, generators.regular(10, 3, random_state=s), levels=k, random_state=s)
        table = columns_of(truth.sample(n, s).codes, truth.domain)
        asked = ExactCurator(table) if unit is None else curator(table, unit, ZCDP(0.1), n)
        found = PairwiseLearner(method=method, width=truth.width).fit(asked)
        pairs = combinations(truth.domain.names, 2)
        errors.append(max(np.abs(found.weights(a, b) - truth.weights(a, b)).max() for a, b in pairs))
    return float(statistics.fmean(errors))


def binary_errors(method: Any, runs: int, seed: int, n: int = 10_000) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for r in range(runs):
        s = 1000 * seed + r
        rng = np.random.default_rng(s)
        triples = {tuple(sorted(rng.choice(20, 3, replace=False).tolist())) for _ in range(10)}
        truth = generators.binary(20, sorted({*triples, *generators.matching(20)}), weight=WEIGHT, random_state=s)
        table = columns_of(truth.sample(n, s).codes, truth.domain)
        model = BinaryMRFLearner(3, method=method, width=truth.width).fit(curator(table, REPLACE, ZCDP(0.1), n))
        h, u = truth.coefficients, model.coefficients
        gaps = {I: abs(u[I] - h[I]) for I in {*u, *h}}
        found.setdefault("sup-norm error", []).append(max(gaps.values()))
        found.setdefault("ℓ1 error", []).append(sum(gaps.values()))
        found.setdefault("error of maximal monomials", []).append(max(gaps[I] for I in truth.maximal_monomials))
    return {name: statistics.fmean(values) for name, values in found.items()}


def query_release(kept: Checkpoint, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """Mean largest error of all parities up to order 3, as released."""
    for p, n in ((8, 300), (8, 10_000)):
        setting = f"p = {p}, all parities up to order 3, n = {n:g}, ρ = 0.1"
        gaussian, weights = (
            kept.get(f"{m.__name__} {p} {n}", partial(parity_error, m, p, n, runs, seed))
            for m in (gaussian_parities, multiplicative_weights_parities)
        )
        yield row("largest parity error", setting, gaussian, reference=weights, reference_name="multiplicative weights",
                  runs=runs, notion="zcdp", relation="replace-one", n_public=True)  # fmt: skip


def parity_error(method: Callable[..., Any], p: int, n: int, runs: int, seed: int) -> float:
    out = []
    for r in range(runs):
        truth = graph("matching", p, seed + r)
        table = draw(truth, n, 1000 * seed + r)
        monomials = all_monomials(truth.domain, 3)
        exact = table.sum(ParitySums(truth.domain, monomials))[0] / n
        released = method(curator(table, REPLACE, ZCDP(0.1), n), monomials)
        out.append(float(np.abs(released - exact).max()))
    return statistics.fmean(out)


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
        models = [IsingLearner().fit(asked) for asked in (Curator(table, ADD, budget), ExactCurator(table))]
        out.append(tuple(pseudo_log_likelihood(model, held) for model in models))
    return out


def pseudo_log_likelihood(model: IsingModel, held: Any) -> float:
    rows = np.arange(len(held))
    chosen = (
        model.full_conditional(name, held.astype(np.int64))[rows, held[:, i]]
        for i, name in enumerate(model.domain.names)
    )
    return sum(float(np.log(c).mean()) for c in chosen)
