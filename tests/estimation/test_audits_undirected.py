"""The learners of Markov random fields, replayed on neighbours: what differs must have gone through paid noise."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.learn.fields.learner import FieldLearner
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.papers.collective import CollectiveField
from discreet.papers.naive import NaiveField
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.unit import PrivacyUnit

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
CLIQUES = [("a", "b"), ("b", "c")]
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("person", max_rows=2),
    "person, replace-one": PrivacyUnit("person", max_rows=2, relation="replace-one"),
}
LEARNERS: list[FieldLearner] = [
    NoiseAwareField(CLIQUES),
    NoiseAwareField(CLIQUES, shares="equal"),
    NoiseAwareField([("a", "b", "c")], approximate_size=2),
    NaiveField(CLIQUES),
    CollectiveField(CLIQUES, iterations=2),
]
BUDGETS: list[Budget] = [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)]


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: b.notion)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda x: f"{x.method}-{x.shares}-{len(list(x.cliques))}")
def test_replay_finds_nothing(learner: FieldLearner, budget: Budget, unit: str) -> None:
    findings = audit_replay(learner.fit, DOMAIN, UNITS[unit], budget, count=7, seed=3)
    assert not failures(findings), "\n".join(map(str, findings))


def test_the_true_total_would_be_caught() -> None:
    """A learner that peeks at the number of rows, as the paper's known N would."""

    def peeking(curator: Curator) -> Any:
        measured = NoiseAwareField(CLIQUES).measure(curator)
        return measured, curator._rows._rows  # type: ignore[attr-defined]

    findings = audit_replay(peeking, DOMAIN, UNITS["row, add-remove"], PureDP(1), count=12)
    assert [f.name for f in failures(findings)] == ["same result or exception"]


def test_asking_twice_would_be_caught() -> None:
    """A learner that measures again what was paid once."""

    def twice(curator: Curator) -> Any:
        learner = NoiseAwareField(CLIQUES)
        first = learner.measure(curator)
        curator._accountant.spending = type(curator._accountant.spending)()
        return first, learner.measure(curator)

    findings = audit_replay(twice, DOMAIN, UNITS["row, add-remove"], PureDP(1), count=12)
    assert "within the budget" in {f.name for f in failures(findings)}
