"""Every directed learner through record and replay on neighbours, for every budget it takes; planted bugs must fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.learn.networks.search import Dependence, SearchedNetwork
from discreet.papers.two_stage import TwoStageNetwork
from discreet.papers.uniform import UniformNetwork
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
GRAPH = {"b": ("a",), "c": ("a", "b")}
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("person", max_rows=2),
    "person, replace-one": PrivacyUnit("person", max_rows=2, relation="replace-one"),
}
BUDGETS: dict[str, Budget] = {"pure": PureDP(1), "zcdp": ZCDP(0.1), "approx": ApproxDP(1, 1e-6)}
LEARNERS: dict[str, Any] = {
    "optimal": OptimalNetwork(GRAPH),
    "optimal, sparse graph": OptimalNetwork({"c": ("a",)}),
    "optimal, stepped back": OptimalNetwork(GRAPH, approximate_size=2),
    "uniform": UniformNetwork(GRAPH),
    "two stages": TwoStageNetwork(GRAPH),
    "searched": SearchedNetwork(max_parents=2),
}


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_nothing_depends_on_rows_but_through_noise(learner: str, budget: str, unit: str) -> None:
    found = audit_replay(LEARNERS[learner].fit, DOMAIN, UNITS[unit], BUDGETS[budget], count=10)
    assert failures(found) == []


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_nothing_depends_on_rows_but_through_a_noisy_count(budget: str, unit: str) -> None:
    """A family that is too large for any few rows: the number of records is bought, and decides."""
    domain = Domain.of({"a": 9, "b": 9, "c": 2, "d": 9})
    learner = OptimalNetwork({"d": ("a", "b", "c")}, fit_steps=0)
    assert len(learner.plan(domain, UNITS[unit], BUDGETS[budget]).steps) == 2
    assert failures(audit_replay(learner.fit, domain, UNITS[unit], BUDGETS[budget], count=6)) == []


def _peeks_at_the_size(curator: Curator) -> Any:
    """Uses the exact number of rows to scale its answer."""
    model = OptimalNetwork(GRAPH).fit(curator)
    return model, int(curator._rows.sum(Marginals(DOMAIN, [()]))[0])


def _measures_twice(curator: Curator) -> Any:
    """Takes the tables once more through a curator of its own that nobody charges."""
    model = OptimalNetwork(GRAPH).fit(curator)
    other = Curator(curator._source, curator.unit, curator.budget, gateway=curator._gateway)
    return model, other.measure(Marginals(DOMAIN, [("a",)]))


def _weighs_by_data(curator: Curator) -> Any:
    """Chooses shares by the exact tables: the scales of the noise then tell about the rows."""
    exact = curator._rows.sum(Marginals(DOMAIN, [("a",), ("b",)]))
    weights = [1 + int(exact[0].max()), 1 + int(exact[1].max())]
    return curator.measure(Marginals(DOMAIN, [("a", "b"), ("b", "c")]), weights=weights)


def _steps_back_by_the_exact_size(curator: Curator) -> Any:
    """Which families are measured follows the exact number of rows (by a power, so that a few rows decide)."""
    size = int(curator._rows.sum(Marginals(DOMAIN, [()]))[0])
    return OptimalNetwork(GRAPH, approximate_size=4**size).fit(curator)


class _TooSmall(Dependence):
    """Claims that one record moves a score by one."""

    def linf(self, unit: PrivacyUnit) -> int:
        return 1


def _understates_the_score(curator: Curator) -> Any:
    pairs = [("b", ("a",)), ("c", ("a",)), ("c", ("a", "b"))]
    return [curator.select(_TooSmall(DOMAIN, pairs), part) for part in curator.budget.split([1] * 6)]


@pytest.mark.parametrize(
    "planted",
    [_peeks_at_the_size, _measures_twice, _weighs_by_data, _steps_back_by_the_exact_size, _understates_the_score],
    ids=lambda f: f.__name__,
)
def test_planted_bugs_are_caught(planted: Callable[[Curator], Any]) -> None:
    found = audit_replay(planted, DOMAIN, PrivacyUnit(), PureDP(1), count=120, largest=8)
    assert failures(found) != []


def test_the_model_itself_is_the_public_result() -> None:
    """The audit compares models to the last bit; a learner that returned something else would not be audited."""
    tables = []

    def learner(curator: Curator) -> Any:
        model = OptimalNetwork(GRAPH).fit(curator)
        tables.append(np.concatenate([t.reshape(-1) for t in model.tables.values()]))
        return model

    audit_replay(learner, DOMAIN, PrivacyUnit(), PureDP(1), count=4)
    assert all(np.array_equal(a, b) for a, b in zip(tables[::2], tables[1::2], strict=True))
