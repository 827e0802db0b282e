"""Nothing but noise depends on how many records there are, and nothing is told from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_audits import ALGORITHMS, DOMAIN, UNITS

from discreet.audit import audit_replay, audit_sizes, failures
from discreet.domain import Domain
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.edge_tests import CorrelationTest
from discreet.privacy.query import LargestSum, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.progress import listening, track
from discreet.tables.memory import MemoryTable

BITS = Domain.of({"a": 2, "b": 2, "c": 2})
MORE: dict[str, tuple[Callable[[Curator], Any], tuple[Budget, ...]]] = {
    "all of three, in order": (lambda c: c.select(LargestSum(Marginals(DOMAIN, [("a",)])), k=3), (PureDP(1),)),
    "many, in order": (lambda c: c.select(LargestSum(Marginals(DOMAIN, [DOMAIN.names])), k=12), (PureDP(1),)),
}
CASES = [(name, b) for name, (_, budgets) in (ALGORITHMS | MORE).items() for b in budgets[:1]]


@pytest.mark.parametrize(("name", "budget"), CASES, ids=lambda v: v if isinstance(v, str) else v.notion)
def test_nothing_changes_with_the_number_of_records(name: str, budget: Budget) -> None:
    algorithm = (ALGORITHMS | MORE)[name][0]
    for unit in UNITS.values():
        found = audit_sizes(algorithm, DOMAIN, unit, budget)
        assert not failures(found), "\n".join(map(str, found))


@pytest.mark.parametrize(("name", "budget"), CASES, ids=lambda v: v if isinstance(v, str) else v.notion)
def test_large_neighbours_are_neighbours(name: str, budget: Budget) -> None:
    for unit in UNITS.values():
        found = audit_replay((ALGORITHMS | MORE)[name][0], DOMAIN, unit, budget, count=0, sizes=(100, 1_000))
        assert not failures(found), "\n".join(map(str, found))


def _records(curator: Curator) -> int:
    return int(curator._rows.sum(Marginals(curator.domain, [()]))[0])


def _more_rounds_with_more_records(curator: Curator) -> Any:
    rounds = max(1, _records(curator).bit_length())
    return [curator.measure(Marginals(DOMAIN, [("a",)]), s) for s in curator.budget.split([1] * rounds)]


def _an_error_beyond_a_size(curator: Curator) -> Any:
    if _records(curator) > 777:
        raise ValueError("too many rows")
    return curator.measure(Marginals(DOMAIN, [("a",)]))


def _a_strategy_for_large_tables(curator: Curator) -> Any:
    weights = [1, 3] if _records(curator) > 4321 else [1, 1]
    return curator.measure(Marginals(DOMAIN, [("a",), ("b",)]), weights=weights)


@pytest.mark.parametrize(
    "planted", [_more_rounds_with_more_records, _an_error_beyond_a_size, _a_strategy_for_large_tables]
)
def test_what_depends_on_the_number_of_records_is_found(planted: Callable[[Curator], Any]) -> None:
    """Also where no small table shows it, wherever the limit is."""
    if planted is not _more_rounds_with_more_records:
        assert not failures(audit_replay(planted, DOMAIN, PrivacyUnit(), PureDP(1), count=30))
    assert failures(audit_sizes(planted, DOMAIN, PrivacyUnit(), PureDP(1)))


# -- what happens inside stays inside ----------------------------------------------------------------------------------


class Chatty(CorrelationTest):
    """Tells how far it is with the rows."""

    def levels(self, ask: Any, unit: PrivacyUnit) -> Any:
        for _ in track(range(int(ask(self.query)[0].sum()) % 7 + 1), None, "looking at rows"):
            pass
        return super().levels(ask, unit)


def _chatty_learner(block: Curator) -> str:
    for _ in track(range(_records(block) + 1), None, "looking at a block"):
        pass
    return "10"


def test_progress_inside_tests_and_votes_stays_inside() -> None:
    rng = np.random.default_rng(1)
    rows = MemoryTable(BITS, [rng.integers(0, 2, 50).astype(np.uint8) for _ in range(3)], threads=1)
    said: list[Any] = []
    with listening(lambda *told: said.append(told)):
        Curator(rows, budget=ApproxDP(1, 0.1)).release_if_stable(Chatty(BITS, [("a", "b")], 0.25))
        Curator(rows, budget=ApproxDP(1, 0.1)).vote(_chatty_learner, 3)
        Curator(rows, budget=ApproxDP(1, 0.1)).vote_for_each(_chatty_learner, 2, 3)
        Curator(rows, budget=ApproxDP(1, 0.1)).vote_and_test(_chatty_learner, 3)
    assert said == []


class Upside(SecureGateway):
    """Noise that turns the order of words around."""

    def release_large(self, call: Any, histogram: Any) -> dict[str, int]:
        return {word: 1_000 - n for word, n in histogram.items()}


def test_the_winner_of_an_open_vote_is_the_one_with_the_largest_noisy_count() -> None:
    """Between words that are both shown, the exact number of votes must not decide."""
    rows = MemoryTable(BITS, [np.array([0] * 40 + [1] * 8, dtype=np.uint8)] * 3, threads=1)

    def learner(block: Curator) -> str:
        _, ones = block.measure(Marginals(BITS, [("a",)]))[0].counts
        return "few" if ones else "many"

    found = Curator(rows, budget=ApproxDP(1, 0.1), gateway=Upside()).vote(learner, 48)
    assert set(found.counts) >= {"few", "many"}
    assert found.winner == max(sorted(found.counts), key=lambda w: found.counts[w])
    assert found.winner == "few"
