"""Rows of the ``mrf`` benchmark on pairwise models and binary fields of order 3.

Replace-one with a public number of records (the paper's setting) unless said; add-remove beside it for the defaults.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.regressions.pairwise import PairwiseRegressions
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.field import SpinField
from discreet.models import BinaryMRF, generators
from discreet.papers.maximal_monomials import MaximalMonomials
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

REPLACE, ADD = PrivacyUnit(relation="replace-one"), PrivacyUnit()
RHO, WEIGHT = 0.1, 0.35
Field = Callable[[float], Any]  # from a width to a learner of fields


def rows(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """All of them; ``runs`` fresh models and tables each."""
    yield from pairwise_rows(kept, runs, seed, quick)
    yield from binary_rows(kept, runs, seed, quick)


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
