"""Rows of the ``mrf`` benchmark on pairwise models, binary fields of order 3 and query release.

Replace-one with a public number of records (the paper's setting) unless said; add-remove beside it for the defaults.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.harness import Checkpoint, row
from benchmarks.papers import leaders
from discreet.domain import Domain
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.query_release import (
    AnnealedSearch,
    AnswersLearner,
    GaussianAnswers,
    IntegerProgram,
    MultiplicativeWeights,
    Parities,
    PerturbedLeader,
    Tables,
    Workload,
)
from discreet.learn.regressions.pairwise import PairwiseRegressions
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.field import SpinField
from discreet.models import BinaryMRF, generators
from discreet.papers.maximal_monomials import MaximalMonomials
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.parities import all_monomials
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

REPLACE, ADD = PrivacyUnit(relation="replace-one"), PrivacyUnit()
RHO, WEIGHT = 0.1, 0.35
Method = Callable[[Workload], AnswersLearner]
Field = Callable[[float], Any]  # from a width to a learner of fields


def rows(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """All of them; ``runs`` fresh models and tables each."""
    yield from pairwise_rows(kept, runs, seed, quick)
    yield from binary_rows(kept, runs, seed, quick)
    yield from parity_rows(kept, runs, seed, quick)


def facts(runs: int, unit: PrivacyUnit = REPLACE) -> dict[str, Any]:
    return {"runs": runs, "notion": "zcdp", "relation": unit.relation, "n_public": unit is REPLACE}


def ask(table: MemoryTable, unit: PrivacyUnit | None, n: int, rho: float = RHO) -> Curator:
    if unit is None:
        return ExactCurator(table)
    return Curator(table, unit, ZCDP(rho), public_size=n if unit is REPLACE else None)


def table_of(codes: Any, domain: Domain) -> MemoryTable:
    return MemoryTable(domain, [np.ascontiguousarray(codes[:, i], dtype=np.uint8) for i in range(len(domain))])


# -- pairwise models ---------------------------------------------------------------------------------------------------


def pairwise_rows(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Sup-norm error with k levels a column, for the default and Algorithm 3 with both kinds of vertices."""
    what = "sup-norm error, pairwise"
    for k in (3, 4, 5):
        for n in (10_000,) if quick else (1000, 10_000, 100_000):
            setting = f"3-regular, p = 10, k = {k}, n = {n:g}, ρ = {RHO:g}"

            asked_for = (k, n) == (3, 10_000)
            many = max(runs, 5) if asked_for else runs  # the default is quick, and graphs differ

            def get(
                name: str,
                unit: PrivacyUnit | None,
                runs: int,
                learner: Field = lambda _: PairwiseField(),
                k: int = k,
                n: int = n,
            ) -> float:
                work = partial(pairwise_error, learner, k, n, unit, runs, seed)
                return float(kept.get(f"pairwise {name} k={k} n={n} runs={runs}", work))

            exact = get("exact", None, many)
            reference = {"reference": exact, "reference_name": "non-private fit"}
            yield row(what, setting, get("moments", REPLACE, many), **reference, **facts(many),
                      target=0.10 if asked_for else None)  # fmt: skip
            if quick and k != 3:
                continue
            yield row(what, setting, get("moments add", ADD, many), **reference, **facts(many, ADD))
            for vertices in ("coordinate", "group"):
                regressions = partial(PairwiseRegressions, vertices=vertices)
                found = get(f"frank_wolfe {vertices}", REPLACE, runs, regressions)
                yield row(what, setting, found, method=f"frank_wolfe, tight, {vertices} vertices", **reference,
                          **facts(runs))  # fmt: skip


def pairwise_error(learner: Field, k: int, n: int, unit: PrivacyUnit | None, runs: int, seed: int) -> float:
    errors = []
    for r in range(runs):
        s = 1000 * seed + r
        truth = generators.pairwise(10, generators.regular(10, 3, random_state=s), levels=k, random_state=s)
        table = table_of(truth.sample(n, s).codes, truth.domain)
        found = learner(truth.width).fit(ask(table, unit, n))
        pairs = combinations(truth.domain.names, 2)
        errors.append(max(np.abs(found.weights(a, b) - truth.weights(a, b)).max() for a, b in pairs))
    return float(statistics.fmean(errors))


# -- binary fields of order 3 ------------------------------------------------------------------------------------------


def binary_rows(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Sup-norm, ℓ1 and maximal-monomial errors of the default and of Algorithms 4 and 5."""
    methods: dict[str, tuple[PrivacyUnit, Field]] = {
        "": (REPLACE, moments),
        "frank_wolfe (Algorithm 4), tight": (REPLACE, lambda width: SpinRegressions(3, width=width)),
        "maximal_monomials (Algorithm 5), tight": (REPLACE, lambda width: MaximalMonomials(3, width=width)),
    }
    if not quick:
        methods["add-remove"] = (ADD, moments)
        methods["maximal_monomials (Algorithm 5), two halves"] = (
            REPLACE, lambda width: MaximalMonomials(3, width=width, halves=True))  # fmt: skip
    for p, n in ((20, 10_000),) if quick else ((10, 10_000), (20, 1000), (20, 10_000), (20, 100_000), (40, 30_000)):
        setting = f"p = {p}, t = 3, n = {n:g}, ρ = {RHO:g}"
        found = {
            name: kept.get(f"binary {name} p={p} n={n} runs={runs}",
                            partial(binary_errors, learner, p, n, unit, runs, seed))
            for name, (unit, learner) in methods.items()
        }  # fmt: skip
        work = partial(binary_errors, moments, p, n, None, runs, seed)
        exact = None if quick else kept.get(f"binary exact p={p} n={n} runs={runs}", work)
        for name, (unit, _) in methods.items():
            for norm, error in found[name].items():
                target = 0.06 if (p, n, norm, name) == (20, 10_000, "sup-norm error", "") else None
                method = {"method": name} if name not in ("", "add-remove") else {}
                beside = {"reference": exact[norm], "reference_name": "non-private fit"} if exact else {}
                yield row(f"{norm}, binary field", setting, error, target=target, **method, **beside,
                          **facts(runs, unit))  # fmt: skip


def moments(_: float) -> SpinField:
    return SpinField(3)


def field_of_triples(p: int, seed: int) -> BinaryMRF:
    """p/2 random triples and a matching, all of one size."""
    rng = np.random.default_rng(seed)
    triples = {tuple(sorted(rng.choice(p, 3, replace=False).tolist())) for _ in range(p // 2)}
    return generators.binary(p, sorted({*triples, *generators.matching(p)}), weight=WEIGHT, random_state=seed)


def binary_errors(learner: Field, p: int, n: int, unit: PrivacyUnit | None, runs: int, seed: int) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for r in range(runs):
        s = 1000 * seed + r
        truth = field_of_triples(p, s)
        table = table_of(truth.sample(n, s).codes, truth.domain)
        model = learner(truth.width).fit(ask(table, unit, n))
        h, u = truth.coefficients, model.coefficients
        gaps = {I: abs(u[I] - h[I]) for I in {*u, *h}}
        found.setdefault("sup-norm error", []).append(max(gaps.values()))
        found.setdefault("ℓ1 error", []).append(sum(gaps.values()))
        found.setdefault("error of maximal monomials", []).append(max(gaps[I] for I in truth.maximal_monomials))
    return {name: statistics.fmean(values) for name, values in found.items()}


# -- query release -----------------------------------------------------------------------------------------------------


def parity_rows(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Largest error of all parities up to order 3, and of all two-way tables, by the three methods."""
    settings: list[tuple[int, int, int | None]] = [(8, 300, None), (8, 10_000, None)]
    if not quick:
        settings += [(8, 1000, None), (8, 100_000, None), (12, 1000, None), (12, 10_000, None), (16, 3000, None)]
    for p, n, rounds in settings:
        methods: dict[str, Method] = {
            "": GaussianAnswers,
            "perturbed leader (sepFEM)": partial(PerturbedLeader, random_state=seed, rounds=rounds),
        }
        if p <= 12:
            methods["multiplicative weights"] = MultiplicativeWeights
        if not quick and p <= 12:
            methods["perturbed leader (FEM)"] = partial(
                PerturbedLeader, random_state=seed, perturbation="exponential")  # fmt: skip
        for kind, what in (("parities", f"all parities up to order {3}"), ("tables", "all two-way tables")):
            setting = f"p = {p}, {what}, n = {n:g}, ρ = {RHO:g}"
            found = {
                name: kept.get(f"release {kind} {name} p={p} n={n} runs={runs}",
                                partial(release_error, method, kind, p, n, runs, seed))
                for name, method in methods.items()
            }  # fmt: skip
            for name, error in found.items():
                method = {"method": name} if name else {}
                yield row(f"largest error, {kind}", setting, error, reference=found[""], reference_name="Gaussian",
                          **method, **facts(runs))  # fmt: skip
    yield from oracle_rows(kept, seed, quick)
    yield from leaders(quick, seed)


def workload_of(kind: str, domain: Domain) -> Workload:
    return Parities(domain, all_monomials(domain, 3)) if kind == "parities" else Tables(domain, combinations(domain, 2))


def release_error(method: Method, kind: str, p: int, n: int, runs: int, seed: int) -> float:
    out = []
    for r in range(runs):
        s = 1000 * seed + r
        truth = generators.ising(p, generators.matching(p), weight=0.5)
        table = table_of(truth.sample(n, s).codes, truth.domain)
        workload = workload_of(kind, truth.domain)
        exact = np.concatenate([part.reshape(-1) for part in table.sum(workload.query)]) / n
        out.append(float(np.abs(method(workload).fit(ask(table, REPLACE, n)).answers - exact).max()))
    return statistics.fmean(out)


def oracle_rows(kept: Checkpoint, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The same game with the two oracles that scale: what they cost, and the integer program's gap."""
    p, n, rounds, samples = (12, 3000, 12, 3) if quick else (16, 3000, 60, 10)
    setting = f"p = {p}, all parities up to order 3, n = {n:g}, {rounds} rounds of {samples} records"
    found = kept.get(f"oracles p={p} n={n}", partial(oracle_errors, p, n, rounds, samples, seed))
    for name, (error, gap, seconds) in found.items():
        note = f"gap {gap:.2g}" if gap == gap else "gap unknown"
        yield row("largest error, parities", setting, error, method=f"perturbed leader, {name}",
                  note=f"{note}, {seconds:.1f} s", **facts(1))  # fmt: skip


def oracle_errors(p: int, n: int, rounds: int, samples: int, seed: int) -> dict[str, tuple[float, float, float]]:
    truth = generators.ising(p, generators.matching(p), weight=0.5)
    table = table_of(truth.sample(n, seed).codes, truth.domain)
    workload = workload_of("parities", truth.domain)
    exact = table.sum(workload.query)[0] / n
    out = {}
    for name, oracle in (("integer program", IntegerProgram(0.5)), ("annealed search", AnnealedSearch())):
        begun = time.perf_counter()
        learner = PerturbedLeader(workload, oracle, rounds=rounds, samples=samples, random_state=seed)
        released = learner.fit(ask(table, REPLACE, n))
        assert released.gap is not None
        error = float(np.abs(released.answers - exact).max())
        out[name] = (error, released.gap, time.perf_counter() - begun)
    return out
