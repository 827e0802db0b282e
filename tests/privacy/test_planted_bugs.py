"""Every planted bug is caught, by name, by the check that is meant to catch it; the honest version passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import planted
import pytest

from discreet.audit import (
    Finding,
    audit_choices,
    audit_freshness,
    audit_range,
    audit_replay,
    audit_shape,
    audit_statistical,
    failures,
)
from discreet.domain import Domain
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.query import LargestSum, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

DOMAIN = Domain.of({"a": 3, "b": 2})
ROW = PrivacyUnit()
REPLACE = PrivacyUnit(relation="replace-one")
PERSON = PrivacyUnit("person", max_rows=2)


def replay(algorithm: Callable[[Curator], Any], unit: PrivacyUnit = ROW, **options: Any) -> set[str]:
    findings = audit_replay(algorithm, DOMAIN, unit, PureDP(1), count=60, seed=3, **options)
    return {f.name for f in failures(findings)}


def measure(query: Any) -> Callable[[Curator], Any]:
    return lambda curator: curator.measure(query)


SENSITIVITY = "within the declared sensitivity"
BUDGET = "within the budget"
RESULT = "same result or exception"

REPLAYED = {
    "half sensitivity": (measure(planted.HalfSensitivity(DOMAIN, [("a",)])), PERSON, SENSITIVITY),
    "replace-one paid as add-remove": (
        measure(planted.ReplaceOnePaidAsAddRemove(DOMAIN, [("a",)])),
        REPLACE,
        SENSITIVITY,
    ),
    "two tables paid as one": (measure(planted.OverlappingTablesPaidOnce(DOMAIN)), ROW, SENSITIVITY),
    "private n used as public": (planted.private_n_used_as_public, ROW, "same calls"),
    "data-derived domain": (planted.domain_from_data, ROW, "same shapes"),
    "1/n on counts": (planted.proportions_by_exact_n, ROW, RESULT),
    "early stop on private data": (planted.early_stop_on_private_data, ROW, "same calls"),
    "reused noise": (planted.reused_noise, ROW, RESULT),
    "float addition after noise": (planted.float_addition_after_noise, ROW, RESULT),
    "error echoing a value": (planted.error_echoing_a_value, ROW, RESULT),
    "log line with n": (planted.log_line_with_n, ROW, "same output, logs, warnings, progress"),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_replay_catches(name: str) -> None:
    algorithm, unit, check = REPLAYED[name]
    assert check in replay(algorithm, unit), f"{name} was not caught by {check!r}"


def test_replay_catches_spend_after_noise() -> None:
    found = replay(measure(Marginals(DOMAIN, [("a",)])), make_curator=planted.SpendsAfterNoise)
    assert "paid before noise is drawn" in found


def test_replay_catches_monotone_assumption_in_selection() -> None:
    # Replacing a record moves one score up and another down: with the monotone scale that costs 2ε.
    found = replay(planted.select_largest, REPLACE, make_curator=planted.MonotoneSelection)
    assert BUDGET in found


def _partition(curator: Curator) -> Any:
    blocks = curator.partition(3)
    return [block.measure(Marginals(DOMAIN, [("a",)])) for block in blocks]


def test_replay_catches_blocks_by_position() -> None:
    def by_position(table: MemoryTable, *args: Any, **options: Any) -> Curator:
        columns = list(table._columns.values())
        return Curator(planted.PartitionByPosition(table.domain, columns, threads=1), *args, **options)

    assert {SENSITIVITY, BUDGET} & replay(_partition, make_curator=by_position)
    assert not replay(_partition)


GATEWAYS: dict[str, tuple[Callable[[], Any], Callable[[Any], Finding]]] = {
    "choices with half the noise": (planted.SelectsWithHalfTheNoise, audit_choices),
    "32-bit overflow": (planted.ThirtyTwoBits, audit_range),
    "reused noise in the gateway": (planted.SameNoiseAgain, audit_freshness),
    "Laplace scale 10 % off": (planted.ScaleTenPercentOff, lambda g: audit_shape(g, "laplace", 5.0)),
    "Gaussian scale 10 % off": (planted.ScaleTenPercentOff, lambda g: audit_shape(g, "gaussian", 5.0)),
}


@pytest.mark.parametrize("name", GATEWAYS)
def test_gateway_audit_catches(name: str) -> None:
    make, audit = GATEWAYS[name]
    assert not audit(make()).passed
    assert audit(SecureGateway()).passed


def _counts(*cells: int) -> MemoryTable:
    """A table with so many rows in each level of a column "a"."""
    domain = Domain.of({"a": len(cells)})
    return MemoryTable(domain, [np.repeat(np.arange(len(cells)), cells).astype(np.uint8)], threads=1)


def _selection_run(gateway: Any) -> Callable[[bool], int]:
    """Twenty candidates; the neighbour has one more record, at the leader."""
    tables = _counts(*[5] * 20), _counts(6, *[5] * 19)
    score = LargestSum(Marginals(tables[0].domain, [("a",)]))
    # Under replace-one the declared L∞ is 1 and scores move both ways.
    return lambda other: Curator(tables[other], ROW, PureDP(2), gateway=gateway).select(score).indices[0]


def test_statistics_catch_selection_with_half_the_noise() -> None:
    # One score up by one: permute-and-flip at ε = 2 costs at most half of that; with half the noise twice as much.
    honest = audit_statistical(_selection_run(SecureGateway()), 1.0, runs=3_000)
    wrong = audit_statistical(_selection_run(planted.SelectsWithHalfTheNoise()), 1.0, runs=3_000)
    assert honest.passed, honest
    assert not wrong.passed, wrong


def _large_cells_run(gateway: Any) -> Callable[[bool], tuple[tuple[str, ...], ...]]:
    tables = _counts(0, 3), _counts(1, 3)
    budget = ApproxDP(1, 0.01)
    return lambda other: tuple(sorted(Curator(tables[other], ROW, budget, gateway=gateway).large_cells(["a"])))


def test_statistics_catch_a_forgotten_threshold() -> None:
    honest = audit_statistical(_large_cells_run(SecureGateway()), 1.0, delta=0.01, runs=1_500)
    wrong = audit_statistical(_large_cells_run(planted.ForgetsTheThreshold()), 1.0, delta=0.01, runs=1_500)
    assert honest.passed, honest
    assert not wrong.passed, wrong
