"""Ising models: error and recovery against n, ρ and p on four kinds of graphs, for every method."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.inference.spins import SpinChains, colour_classes
from discreet.learn.regressions.spins import SpinRegressions, spin_descent
from discreet.learn.spins.coefficients import sup_error
from discreet.learn.spins.field import SpinField
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP, Budget
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

WEIGHT = 0.35
KINDS = ("matching", "grid", "3-regular", "dense")
SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
RHOS = (0.01, 0.03, 0.1, 0.3, 1.0)
WIDTHS = (10, 16, 32, 64, 128)
CENTRE = (32, 10_000, 0.1)
BURN_IN = 40
PUBLISHED_RECORDS = 100_000  # beyond which the published variant is not run
LONGEST_FIT = 25.0  # seconds that a Frank–Wolfe fit may be forecast to take
REPLACE, ADD = PrivacyUnit(relation="replace-one"), PrivacyUnit()


@dataclass(frozen=True)
class Setting:
    """A kind of graph, its number of columns, a number of records and a budget."""

    kind: str
    p: int
    n: int
    rho: float

    def __str__(self) -> str:
        return f"{self.kind}, p = {self.p}, n = {self.n:g}, ρ = {self.rho:g}"


# -- data --------------------------------------------------------------------------------------------------------------


def graph(kind: str, p: int, seed: int) -> IsingModel:
    if kind == "matching":
        return generators.ising(p, generators.matching(p), weight=0.5)
    if kind == "grid":
        rows = 4 if p % 4 == 0 else 2
        return generators.ising(p, generators.grid(rows, p // rows), weight=WEIGHT)
    if kind == "3-regular":
        return generators.ising(p, generators.regular(p, 3, random_state=seed), weight=WEIGHT)
    edges = generators.dense(p)
    return generators.ising(p, edges, weight=(0.02, 0.2), signs="random", width=1.5, random_state=seed)


def draw(model: IsingModel, n: int, seed: int) -> MemoryTable:
    """Independent records on narrow graphs; on others, the states of one Gibbs chain a record."""
    if model.forecast.bytes < 1 << 24:
        return columns_of(model.sample(n, seed).codes, model.domain)
    chains = SpinChains.start(np.zeros(len(model.A)), n, seed)
    classes = colour_classes(model.A)
    for _ in range(BURN_IN):
        chains.sweep(model.A, model.theta, classes)
    return columns_of(chains.states > 0, model.domain)


def columns_of(codes: Any, domain: Domain) -> MemoryTable:
    return MemoryTable(domain, [np.ascontiguousarray(codes[:, i], dtype=np.uint8) for i in range(len(domain))])


def curator(table: MemoryTable, unit: PrivacyUnit, budget: Budget, n: int) -> Curator:
    return Curator(table, unit, budget, public_size=n if unit is REPLACE else None)


# -- one setting -------------------------------------------------------------------------------------------------------


def fit_all(setting: Setting, runs: int, seed: int, longest: float) -> dict[str, list[list[float]]]:
    """For each method and run: the sup-norm error, and 1 if all edges are right (thresholded at half the least true
    weight for Frank–Wolfe, as found for the others)."""
    out: dict[str, list[list[float]]] = {}
    p, n = setting.p, setting.n
    for r in range(runs):
        truth = graph(setting.kind, p, 1000 * seed + r)
        table = draw(truth, n, 1000 * seed + r)
        least = float(np.abs(truth.A[truth.A != 0]).min())
        learners: dict[str, tuple[SpinField | SpinRegressions, PrivacyUnit | None]] = {
            "default": (SpinField(), REPLACE),
            "default, add-remove": (SpinField(), ADD),
            "non-private": (SpinField(), None),
        }
        for variant in ("tight", "published"):
            learner = SpinRegressions(variant=variant, width=truth.width)
            if frank_wolfe_seconds(learner, truth.domain, n, ZCDP(setting.rho)) <= longest:
                learners[variant] = (learner, REPLACE)
        for name, (learner, unit) in learners.items():
            if name == "published" and n > PUBLISHED_RECORDS:
                continue
            asked = ExactCurator(table) if unit is None else curator(table, unit, ZCDP(setting.rho), n)
            found = learner.fit(asked)
            edges = edges_above(found, least / 2) if isinstance(learner, SpinRegressions) else found.edges
            out.setdefault(name, []).append([sup_error(found, truth), float(edges == truth.edges)])
    return out


def edges_above(model: IsingModel, cut: float) -> Any:
    A = np.where(np.abs(model.A) >= cut, model.A, 0.0)
    return IsingModel(A, model.theta, model.domain).edges


def frank_wolfe_seconds(learner: SpinRegressions, domain: Domain, n: int, budget: Budget) -> float:
    """About how long a fit takes: the product of every step, and the noise of its selections (8 µs a candidate)."""
    p = len(domain)
    steps = spin_descent(domain, REPLACE, 2, learner.width, learner.variant, None).choose(n, budget)
    return steps * (n * p * (p + 1) * 2.2e-10 + 2 * p * p * 8e-6)


# -- rows --------------------------------------------------------------------------------------------------------------


def settings(quick: bool) -> list[Setting]:
    """The settings with a target; in a full run, lines against n, ρ and p on every kind of graph too."""
    wanted = [("3-regular", 16, 10_000), ("3-regular", 64, 10_000), ("3-regular", 64, 100_000)]
    wanted += [("dense", 16, 100_000), ("matching", 64, 30_000), ("grid", 16, 30_000), ("3-regular", 16, 1000)]
    out = [Setting(kind, p, n, 0.1) for kind, p, n in wanted]
    if quick:
        return out
    p0, n0, rho0 = CENTRE
    for kind in KINDS:
        out += [Setting(kind, p0, n, rho0) for n in SIZES]
        out += [Setting(kind, p0, n0, rho) for rho in RHOS]
        out += [Setting(kind, p, n0, rho0) for p in WIDTHS]
    out += [Setting(kind, p, 1000, rho) for kind in KINDS for p in (10, 64) for rho in (0.01, 0.1, 1.0)]
    return list(dict.fromkeys(out))


Found = dict[Setting, dict[str, list[list[float]]]]


def accuracy(kept: Checkpoint, runs: int, seed: int, quick: bool, found: Found) -> Iterator[dict[str, Any]]:
    """Rows of every setting, filling ``found`` for the figures."""
    for setting in settings(quick):
        longest = 3.0 if quick else LONGEST_FIT
        found[setting] = kept.get(f"ising {setting}", partial(fit_all, setting, runs, seed, longest))
        yield from setting_rows(setting, found[setting])
    yield from average_rows(found)


def means(results: dict[str, list[list[float]]]) -> dict[str, float]:
    return {name: statistics.fmean(error for error, _ in errors) for name, errors in results.items()}


def setting_rows(setting: Setting, results: dict[str, list[list[float]]]) -> Iterator[dict[str, Any]]:
    mean, key = means(results), str(setting)
    facts = {"runs": len(results["default"]), "notion": "zcdp"}
    public: dict[str, Any] = {"relation": "replace-one", "n_public": True}
    exact = {"reference": mean["non-private"], "reference_name": "non-private fit"}
    right = {name: statistics.fmean(hit for _, hit in errors) for name, errors in results.items()}
    target = 0.015 if (setting.kind, setting.p, setting.n, setting.rho) == ("dense", 16, 100_000, 0.1) else None
    yield row("sup-norm error", key, mean["default"], target=target, recovered=right["default"], **exact, **facts,
              **public)  # fmt: skip
    yield row("sup-norm error", key, mean["default, add-remove"], recovered=right["default, add-remove"], **exact,
              **facts, relation="add-remove", n_public=False)  # fmt: skip
    if setting.n >= 30_000 and setting.rho >= 0.1 and setting.p <= 64:
        yield row("error by the non-private fit's", key, mean["default"] / mean["non-private"], target=1.25, **facts,
                  **public)  # fmt: skip
    for variant in ("tight", "published"):
        if variant in mean:
            yield row("sup-norm error", key, mean[variant], method=f"frank_wolfe, {variant}", **exact, **facts,
                      recovered=right[variant], **public)  # fmt: skip
    if "published" not in mean:
        return
    floor = mean["non-private"] / mean["published"]  # what no private method can be expected to go below
    note = {"note": f"the non-private fit itself is at {floor:.2f}"} if floor > 0.3 and setting.n >= 10_000 else {}
    yield row("error by the published method's", key, mean["default"] / mean["published"],
              target=0.35 if setting.n >= 10_000 else None, **note, **facts, **public)  # fmt: skip
    yield row("error by the published method's", key, mean["tight"] / mean["published"], method="frank_wolfe, tight",
              target=0.75 if setting.n >= 10_000 else None, **facts, **public)  # fmt: skip


def average_rows(found: Found) -> Iterator[dict[str, Any]]:
    """Default by published on average, over all settings and over those with few records only."""

    def ratios(wanted: Iterable[Setting]) -> list[float]:
        both = [means(found[s]) for s in wanted if "published" in found[s]]
        return [mean["default"] / mean["published"] for mean in both]

    for text, few in (("n ≥ 1e3", math.inf), ("1e3 ≤ n < 1e4", 10_000)):
        over = ratios(s for s in found if s.n < few)
        if over:
            yield row("error by the published method's, on average", f"{len(over)} settings with {text}",
                      statistics.fmean(over), target=1.05, notion="zcdp", relation="replace-one",
                      n_public=True)  # fmt: skip


# -- recovery ----------------------------------------------------------------------------------------------------------


def recovery(kept: Checkpoint, tries: int, seed: int) -> Iterator[dict[str, Any]]:
    """All edges right on 3-regular graphs of 64 columns at ρ = 0.1."""
    for n, bound in ((10_000, None), (3000, 96)):
        for unit in (REPLACE, ADD):
            setting = f"3-regular, p = 64, n = {n:g}, ρ = 0.1" + (f", at most {bound} edges" if bound else "")
            found = kept.get(f"recovery {setting} {unit}", partial(right_graphs, n, bound, unit, tries, seed))
            yield row("all edges right", setting, found, better="higher", target=1.0 if unit is REPLACE else None,
                      runs=tries, notion="zcdp", relation=unit.relation, n_public=unit is REPLACE)  # fmt: skip


def right_graphs(n: int, bound: int | None, unit: PrivacyUnit, tries: int, seed: int) -> float:
    hits = 0
    for r in range(tries):
        truth = graph("3-regular", 64, 1000 * seed + r)
        asked = curator(draw(truth, n, 1000 * seed + r), unit, ZCDP(0.1), n)
        hits += SpinField(max_edges=bound).fit(asked).edges == truth.edges
    return hits / tries
