"""Everything a curator can be asked, put through every audit: replay on neighbours, exact enumeration, statistics."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.audit import (
    all_tables,
    audit_replay,
    audit_statistical,
    check_pair,
    failures,
    output_law,
    releasing_tables,
    run_configuration,
)
from discreet.domain import Domain
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.calibration import amplified
from discreet.privacy.curator import Curator
from discreet.privacy.queries.distances import Distances, TotalDistance, WorstTable
from discreet.privacy.queries.interactions import Interactions
from discreet.privacy.query import CellSums, LargestSum, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

DOMAIN = Domain.of({"a": 3, "b": 2, "c": 2})
PAIRS, SINGLES = Marginals(DOMAIN, [("a", "b"), ("b", "c"), ()]), Marginals(DOMAIN, [("a",)])
VALUES = np.random.default_rng(5).normal(size=(3, 2, 4))
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("person", max_rows=2),
    "person, replace-one": PrivacyUnit("person", max_rows=3, relation="replace-one"),
}
PURE, CONCENTRATED, APPROXIMATE = PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)


def two_stage(curator: Curator) -> Any:
    """Adaptive: what is asked second depends on what was answered first."""
    first, second, third = curator.budget.split([1, 2, 1])
    rough = curator.measure(SINGLES, first)
    expected = [np.full(p.shape, rough[0].counts.sum()) for p in PAIRS.parts]
    chosen = curator.select(WorstTable(Distances(DOMAIN, PAIRS.cliques, expected)), second)
    clique = PAIRS.cliques[chosen.indices[0]]
    return rough, chosen, curator.measure(Marginals(DOMAIN, [clique]), third)


def blocks(curator: Curator) -> Any:
    children = curator.partition(3)
    return [child.measure(SINGLES) for child in children]


def sampled(curator: Curator) -> Any:
    return curator.subsample(0.5).measure(SINGLES)


def majority(learner_budget: Curator) -> str:
    return f"level {int(np.argmax(learner_budget.measure(SINGLES)[0].counts))}"


ALGORITHMS: dict[str, tuple[Callable[[Curator], Any], tuple[Budget, ...]]] = {
    "tables": (lambda c: c.measure(PAIRS), (PURE, CONCENTRATED, APPROXIMATE)),
    "tables, weighted": (lambda c: c.measure(PAIRS, weights=[1, 2, 1]), (PURE, CONCENTRATED, APPROXIMATE)),
    "Laplace from a zCDP budget": (lambda c: c.measure(PAIRS, noise="laplace"), (CONCENTRATED,)),
    "real-valued sums": (
        lambda c: c.measure(CellSums(DOMAIN, ["a", "b"], VALUES, grid=Fraction(1, 1024))),
        (PURE, CONCENTRATED),
    ),
    "distances": (
        lambda c: c.measure(Distances(DOMAIN, PAIRS.cliques, [np.full(p.shape, 1.6) for p in PAIRS.parts])),
        (PURE, CONCENTRATED, APPROXIMATE),
    ),
    "interactions": (lambda c: c.measure(Interactions(DOMAIN, [("a", "b")])), (PURE, CONCENTRATED, APPROXIMATE)),
    "a sum of distances": (
        lambda c: c.measure(
            TotalDistance(DOMAIN, PAIRS.cliques, [np.full(p.shape, 1.6) for p in PAIRS.parts], finer=4)
        ),
        (PURE, CONCENTRATED, APPROXIMATE),
    ),
    "a weighted sum of distances": (
        lambda c: c.measure(
            TotalDistance(
                DOMAIN,
                PAIRS.cliques,
                [np.full(p.shape, 1.6) for p in PAIRS.parts],
                weights=[5, *[1] * (len(PAIRS.cliques) - 1)],
            )
        ),
        (PURE, CONCENTRATED, APPROXIMATE),
    ),
    "selection": (lambda c: c.select(LargestSum(PAIRS), k=3), (PURE, CONCENTRATED, APPROXIMATE)),
    "two stages": (two_stage, (PURE, CONCENTRATED, APPROXIMATE)),
    "size": (lambda c: c.size(c.budget), (PURE, CONCENTRATED)),
    "large cells": (lambda c: c.large_cells(["a", "b"]), (ApproxDP(1, 0.01),)),
    "blocks": (blocks, (PURE, CONCENTRATED)),
    "sample": (sampled, (PURE, APPROXIMATE)),
    "vote": (lambda c: c.vote(majority, 4), (ApproxDP(2, 0.01),)),
    "vote on candidates": (lambda c: c.vote(majority, 3, candidates=["level 0", "level 1"]), (PURE, CONCENTRATED)),
    "asking too much": (lambda c: [c.measure(SINGLES, c.budget), c.measure(SINGLES, c.budget)], ()),
}
CASES = [(name, unit, b) for name, (_, budgets) in ALGORITHMS.items() for b in budgets for unit in UNITS]


@pytest.mark.crossed
@pytest.mark.parametrize(("name", "unit", "budget"), CASES, ids=lambda v: v if isinstance(v, str) else v.notion)
def test_replay_finds_nothing(name: str, unit: str, budget: Budget) -> None:
    findings = audit_replay(ALGORITHMS[name][0], DOMAIN, UNITS[unit], budget, count=40, seed=11)
    assert not failures(findings), "\n".join(map(str, findings))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit", "budget"), CASES, ids=lambda v: v if isinstance(v, str) else v.notion)
def test_replay_finds_nothing_on_many_neighbours(name: str, unit: str, budget: Budget) -> None:
    findings = audit_replay(ALGORITHMS[name][0], DOMAIN, UNITS[unit], budget, count=600, seed=12, largest=12)
    assert not failures(findings), "\n".join(map(str, findings))


def test_an_algorithm_that_always_fails_does_not_pass() -> None:
    findings = audit_replay(ALGORITHMS["asking too much"][0], DOMAIN, UNITS["row, add-remove"], PURE, count=5)
    assert [f.name for f in failures(findings)] == ["the algorithm returns"]


def test_a_configuration_of_a_user_is_audited() -> None:
    findings = run_configuration(
        DOMAIN, UNITS["person, add-remove"], PURE, releasing_tables(DOMAIN, [("a", "b")]), pairs=20, runs=300
    )
    assert len(findings) == 10
    assert not failures(findings)


# -- exact enumeration -----------------------------------------------------------------------------------------------

TINY = Domain.of({"a": 2})
THREE = Domain.of({"a": 3})


def table(rows: Any, domain: Domain) -> MemoryTable:
    return MemoryTable(domain, [np.asarray(rows)[:, i].astype(np.uint8) for i in range(len(domain))], threads=1)


def neighbours(domain: Domain, relation: str, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """All neighbouring pairs whose larger table has ``size`` rows."""
    larger = all_tables(domain.shape, size)
    if relation == "add-remove":
        return [(t, np.delete(t, i, axis=0)) for t in larger for i in range(size)]
    rows = all_tables(domain.shape, 1)
    return [(t, np.concatenate([np.delete(t, i, axis=0), r])) for t in larger for i in range(size) for r in rows]


def law_of_rows(algorithm: Callable[[Curator], Any], domain: Domain, *given: Any, **options: Any) -> Callable[..., Any]:
    """The law of the output of each table, computed once: a table has many neighbours."""
    known: dict[tuple[int, bytes], Any] = {}

    def law(rows: np.ndarray) -> Any:
        key = len(rows), np.asarray(rows, dtype=np.uint8).tobytes()
        if key not in known:
            known[key] = output_law(algorithm, table(rows, domain), *given, **options)
        return known[key]

    return law


EXACT: dict[str, tuple[Domain, Callable[[Curator], Any]]] = {
    "one table": (TINY, lambda c: c.measure(Marginals(TINY, [("a",)]))),
    "a distance": (TINY, lambda c: c.measure(Distances(TINY, [("a",)], [np.array([2, 0])]))),
    "a sum of distances": (
        TINY,
        lambda c: c.measure(TotalDistance(TINY, [(), ("a",)], [np.array(1), np.array([2, 0])])),
    ),
    "selection": (THREE, lambda c: c.select(LargestSum(Marginals(THREE, [("a",)])))),
    "two selections": (THREE, lambda c: c.select(LargestSum(Marginals(THREE, [("a",)])), k=2)),
    "selection, then the chosen count": (
        TINY,
        lambda c: (
            c.select(LargestSum(Marginals(TINY, [("a",)])), c.budget.split([1, 1])[0]),
            c.size(c.budget.split([1, 1])[1]),
        ),
    ),
}


@pytest.mark.crossed
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [PureDP(1), PureDP(3), ZCDP(0.2), ApproxDP(1, 1e-3)], ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_exact_loss_is_within_the_budget(name: str, budget: Budget, relation: str) -> None:
    domain, algorithm = EXACT[name]
    unit = PrivacyUnit(relation=relation)  # type: ignore[arg-type]
    law = law_of_rows(algorithm, domain, unit, budget, window=(-2, 3))
    for size in (1, 2):
        for left, right in neighbours(domain, relation, size):
            finding = check_pair(law(left), law(right), budget)
            assert finding.passed, finding


def test_exact_loss_is_attained() -> None:
    """The bounds are not loose: one added record costs the whole of ε."""
    algorithm = EXACT["one table"][1]
    left, right = table([[0]], TINY), table(np.zeros((0, 1)), TINY)
    laws = [output_law(algorithm, t, PrivacyUnit(), PureDP(1), window=(-2, 3)) for t in (left, right)]
    assert not check_pair(*laws, PureDP(0.999)).passed


def test_exact_audit_rejects_a_planted_bug() -> None:
    def half_the_noise(curator: Curator) -> Any:
        curator._check = lambda costs: None  # type: ignore[method-assign]
        curator._spend = lambda costs, step: None  # type: ignore[method-assign]
        return curator.measure(Marginals(TINY, [("a",)]), PureDP(2))

    left, right = table([[0]], TINY), table(np.zeros((0, 1)), TINY)
    laws = [output_law(half_the_noise, t, PrivacyUnit(), PureDP(1), window=(-2, 3)) for t in (left, right)]
    assert not check_pair(*laws, PureDP(1)).passed


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.05), (0.3, 0.01), (3, 0.2)])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_exact_loss_of_thresholded_histograms(epsilon: float, delta: float, relation: str) -> None:
    budget = ApproxDP(epsilon, delta)
    unit = PrivacyUnit(relation=relation)  # type: ignore[arg-type]
    law = law_of_rows(lambda c: c.large_cells(["a"]), TINY, unit, budget, window=(-5, 25))
    for left, right in neighbours(TINY, relation, 2):
        finding = check_pair(law(left), law(right), budget)
        assert finding.passed, finding


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize("share", [PureDP(1), PureDP(0.1)], ids=str)
def test_amplification_by_sampling_is_exactly_accounted(rate: Fraction, share: Budget) -> None:
    """Mix the output laws over all samples of tables of up to three rows: the loss is within the share."""
    inner = amplified(share, rate, PrivacyUnit())
    assert isinstance(inner, PureDP)
    assert inner.epsilon > share.epsilon  # type: ignore[attr-defined]

    of_sample = law_of_rows(EXACT["one table"][1], TINY, PrivacyUnit(), inner, window=(-1, 2))

    def law(rows: np.ndarray) -> dict[Any, float]:
        mixed: dict[Any, float] = {}
        for kept in product([False, True], repeat=len(rows)):
            probability = float(np.prod([rate if k else 1 - rate for k in kept])) if len(rows) else 1.0
            for outcome, p in of_sample(rows[np.array(kept, dtype=bool)]).items():
                mixed[outcome] = mixed.get(outcome, 0.0) + probability * p
        return mixed

    for rows in all_tables((2,), 3):
        finding = check_pair(law(rows), law(rows[1:]), share)
        assert finding.passed, finding


# -- statistics ------------------------------------------------------------------------------------------------------


def _count_run(budget: Budget) -> Callable[[bool], int]:
    tables = table(np.zeros((3, 1)), TINY), table(np.zeros((4, 1)), TINY)
    query = Marginals(TINY, [()])
    return lambda other: int(Curator(tables[other], PrivacyUnit(), budget).measure(query)[0].counts)


def test_statistics_of_a_noisy_count() -> None:
    finding = audit_statistical(_count_run(PureDP(1)), 1.0, runs=1_500)
    assert finding.passed, finding
    assert not audit_statistical(_count_run(PureDP(2.5)), 1.0, runs=1_500).passed  # negative control


@pytest.mark.slow
def test_statistics_see_a_violation_by_1_4() -> None:
    assert audit_statistical(_count_run(PureDP(1)), 1.0).passed
    assert not audit_statistical(_count_run(PureDP(1.4)), 1.0).passed


@pytest.mark.slow
def test_statistics_of_approximate_dp() -> None:
    assert audit_statistical(_count_run(ApproxDP(1, 1e-3)), 1.0, delta=1e-3).passed
