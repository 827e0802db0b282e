"""Markov random fields: error and recovery against the number of records, for every method and the non-private fit.

The paper's setting is replace-one with a public number of records; add-remove, where that number is private and paid
for, is reported beside it. Data come from models of known parameters; ``seed`` changes graphs and data.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Resumable, ratio, row, seconds
from discreet.domain import Domain
from discreet.estimation.binary_learner import BinaryMRFLearner
from discreet.estimation.ising_learner import IsingLearner, sup_error
from discreet.estimation.pairwise_learner import PairwiseLearner
from discreet.inference.spins import SpinChains, colour_classes
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.gradients import SpinGradients
from discreet.privacy.parities import ParitySums, all_monomials
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

WEIGHT = 0.35
BURN_IN = 60
REPLACE, ADD = PrivacyUnit(relation="replace-one"), PrivacyUnit()


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    store = Resumable(None if quick else Path(f"benchmarks/.mrf-{seed}.json"))
    runs = 2 if quick else 5
    yield from accuracy(store, runs, seed, quick)
    yield from recovery(store, runs, seed)
    yield from other_families(store, runs, seed)
    yield from query_release(store, runs, seed, quick)
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
    """Records by Gibbs chains, one a record: fast for any graph."""
    chains = SpinChains.start(np.zeros(len(model.A)), n, seed)
    classes = colour_classes(model.A)
    for _ in range(BURN_IN):
        chains.sweep(model.A, model.theta, classes)
    codes = (chains.states > 0).astype(np.uint8)
    return MemoryTable(model.domain, [codes[:, i].copy() for i in range(codes.shape[1])])


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
            found = store.get(key, lambda: ising_errors(kind, p, n, rho, runs, seed, quick))
            yield from accuracy_rows(key, kind, p, n, rho, found, runs)


def ising_errors(kind: str, p: int, n: int, rho: float, runs: int, seed: int, quick: bool) -> dict[str, list[float]]:
    out: dict[str, list[float]] = {}
    published = p <= 16 or not quick
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
    for n, bound in ((10_000, None), (3000, 96)):
        for unit in (REPLACE, ADD):

            def right() -> float:
                hits = 0
                for r in range(runs + 3):
                    truth = graph("3-regular", 64, 1000 * seed + r)
                    asked = curator(draw(truth, n, 1000 * seed + r), unit, ZCDP(0.1), n)
                    hits += IsingLearner(max_edges=bound).fit(asked).edges == truth.edges
                return hits / (runs + 3)

            setting = f"3-regular, p = 64, n = {n:g}, ρ = 0.1" + (f", at most {bound} edges" if bound else "")
            yield row("all edges right", setting, store.get(f"recovery {setting} {unit}", right), better="higher",
                      target=1.0 if unit is REPLACE else None, runs=runs + 3, notion="zcdp", relation=unit.relation,
                      n_public=unit is REPLACE)  # fmt: skip


# -- other families ----------------------------------------------------------------------------------------------------


def other_families(store: Resumable, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    n = 10_000
    for k in (3, 4, 5):

        def pairwise(method: str, unit: PrivacyUnit | None) -> float:
            errors = []
            for r in range(runs):
                s = 1000 * seed + r
                truth = generators.pairwise(10, generators.regular(10, 3, random_state=s), levels=k, random_state=s)
                codes = truth.sample(n, s).codes.astype(np.uint8)
                table = MemoryTable(truth.domain, [codes[:, i].copy() for i in range(10)])
                asked = ExactCurator(table) if unit is None else curator(table, unit, ZCDP(0.1), n)
                found = PairwiseLearner(method=method, width=truth.width).fit(asked)  # type: ignore[arg-type]
                pairs = combinations(truth.domain.names, 2)
                errors.append(max(np.abs(found.weights(a, b) - truth.weights(a, b)).max() for a, b in pairs))
            return float(statistics.fmean(errors))

        setting = f"3-regular, p = 10, k = {k}, n = 1e4, ρ = 0.1"
        yield row("sup-norm error, pairwise", setting, store.get(f"pairwise {k}", lambda: pairwise("moments", REPLACE)),
                  reference=store.get(f"pairwise exact {k}", lambda: pairwise("moments", None)),
                  reference_name="non-private fit", target=0.10 if k == 3 else None, runs=runs, notion="zcdp",
                  relation="replace-one", n_public=True)  # fmt: skip
        if k == 3:
            tight = store.get("pairwise frank_wolfe 3", lambda: pairwise("frank_wolfe", REPLACE))
            yield row("sup-norm error, pairwise", setting, tight, method="frank_wolfe, tight", runs=runs,
                      notion="zcdp", relation="replace-one", n_public=True)  # fmt: skip

    def binary(method: str, unit: PrivacyUnit | None, norm: str) -> float:
        errors = []
        for r in range(runs):
            s = 1000 * seed + r
            rng = np.random.default_rng(s)
            triples = {tuple(sorted(rng.choice(20, 3, replace=False).tolist())) for _ in range(10)}
            monomials = sorted({*triples, *generators.matching(20)})
            truth = generators.binary(20, monomials, weight=WEIGHT, random_state=s)
            codes = truth.sample(n, s).codes.astype(np.uint8)
            table = MemoryTable(truth.domain, [codes[:, i].copy() for i in range(20)])
            asked = ExactCurator(table) if unit is None else curator(table, unit, ZCDP(0.1), n)
            found = BinaryMRFLearner(3, method=method, width=truth.width).fit(asked)  # type: ignore[arg-type]
            keys = {*found.coefficients, *truth.coefficients}
            if norm == "maximal":
                keys = set(truth.maximal_monomials)
            gaps = [abs(found.coefficients[I] - truth.coefficients[I]) for I in keys]
            errors.append(sum(gaps) if norm == "l1" else max(gaps))
        return float(statistics.fmean(errors))

    setting = "p = 20, t = 3, n = 1e4, ρ = 0.1"
    for norm, what in (("sup", "sup-norm error"), ("l1", "ℓ1 error"), ("maximal", "error of maximal monomials")):
        yield row(f"{what}, binary field", setting, store.get(f"binary {norm}", lambda: binary("moments", REPLACE, norm)),
                  reference=store.get(f"binary FW {norm}", lambda: binary("frank_wolfe", REPLACE, norm)),
                  reference_name="Algorithm 4, tight", target=0.06 if norm == "sup" else None, runs=runs,
                  notion="zcdp", relation="replace-one", n_public=True)  # fmt: skip


def query_release(store: Resumable, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Mean largest error of all parities up to order 3, as released."""
    from discreet.estimation.parity_release import gaussian_parities, multiplicative_weights_parities

    for p, n in ((8, 300), (8, 10_000)):

        def errors(method: Callable[..., Any], options: dict[str, Any]) -> float:
            out = []
            for r in range(runs):
                truth = graph("matching", p, seed + r)
                table = draw(truth, n, 1000 * seed + r)
                monomials = all_monomials(truth.domain, 3)
                exact = table.sum(ParitySums(truth.domain, monomials))[0] / n
                released = method(curator(table, REPLACE, ZCDP(0.1), n), monomials, **options)
                out.append(float(np.abs(released - exact).max()))
            return statistics.fmean(out)

        setting = f"p = {p}, all parities up to order 3, n = {n:g}, ρ = 0.1"
        gaussian = store.get(f"parities gaussian {p} {n}", lambda: errors(gaussian_parities, {}))
        weights = store.get(f"parities pmw {p} {n}", lambda: errors(multiplicative_weights_parities, {}))
        yield row("largest parity error", setting, gaussian, reference=weights, reference_name="multiplicative weights",
                  runs=runs, notion="zcdp", relation="replace-one", n_public=True)  # fmt: skip


# -- real data ---------------------------------------------------------------------------------------------------------


def nltcs(path: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Held-out pseudo-log-likelihood on the National Long Term Care Survey, 16 binary columns."""
    codes = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64).astype(np.uint8)
    order = np.random.default_rng(seed).permutation(len(codes))
    held, kept = codes[order[: len(codes) // 5]], codes[order[len(codes) // 5 :]]
    domain = Domain.of({f"x{i}": 2 for i in range(codes.shape[1])})
    table = MemoryTable(domain, [kept[:, i].copy() for i in range(kept.shape[1])])

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
                  ratio(lambda: table.sum(query), lambda: weights @ features), reference=1.0,
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
        times[solver] = 100 * seconds(lambda: fit.fit(z[:, 1:], z[:, 0]), repeat=1)
    fastest = min(times, key=lambda s: times[s])
    setting = f"3-regular, p = 100, n = 1e5, {steps} steps; {whole - ours:.1f} s of noise and the rest apart"
    yield row("times faster, whole tight run", setting, times["liblinear"] / ours, better="higher", target=15.0,
              reference_name="liblinear, a regression a column")  # fmt: skip
    yield row("times faster, whole tight run", setting, times[fastest] / ours, better="higher", target=2.0,
              reference_name=f"{fastest}, a regression a column")  # fmt: skip
