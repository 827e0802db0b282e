"""The account: a step keeps within its share, one lock for all spending, and what cannot be asked counts as spent."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.errors import BudgetError, LedgerError
from discreet.privacy.accounting import Accountant
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger_entries import Had
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

DOMAIN = Domain.of({"a": 2})
TABLE = Marginals(DOMAIN, [("a",)])


def rows() -> MemoryTable:
    return MemoryTable(DOMAIN, [np.array([0, 1, 1], dtype=np.uint8)], threads=1)


def test_a_step_keeps_within_its_share() -> None:
    """In one answer, and in several that are within it one by one."""
    curator = Curator(rows(), budget=PureDP(1))
    with curator.step("first", PureDP("0.3")):
        with pytest.raises(BudgetError, match="'first' has spent its share"):
            curator.measure(TABLE, PureDP("0.4"))
        curator.measure(TABLE, PureDP("0.2"))
        with pytest.raises(BudgetError, match="'first' has spent its share"):
            curator.measure(TABLE, PureDP("0.2"))
        curator.measure(TABLE, PureDP("0.1"))
    curator.measure(TABLE, PureDP("0.7"))
    assert curator.remaining is None
    assert [s.get("step") for s in curator.steps] == ["first", "first", None]


def test_every_spend_is_made_under_one_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the curator, and of blocks and samples of it: they charge one ledger."""
    curator = Curator(rows(), budget=ApproxDP(9, 1e-6), delta_for_tests=1e-7)
    held: list[bool] = []
    charge = Accountant.charge

    def watched(self: Accountant, *costs: object) -> None:
        held.append(curator._lock._is_owned())  # type: ignore[attr-defined]
        charge(self, *costs)  # type: ignore[arg-type]

    monkeypatch.setattr(Accountant, "charge", watched)
    spends = [curator._accountant]
    curator.measure(TABLE, PureDP(1))
    block = curator.partition(2, PureDP(1))[0]
    spends.append(block._accountant)
    block.measure(TABLE)
    # Every answer tries first, on a copy and without the lock, and is then charged under it.
    assert held == [False, True] * 3
    assert all(a.spending.steps for a in spends)


def test_a_ledger_that_cannot_be_asked_counts_as_the_whole(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", PureDP(3))
    curator = Curator(rows(), budget=PureDP(1), ledger=ledger)
    assert curator.counted is None
    curator.measure(TABLE, PureDP("0.1"))
    assert curator.counted == PureDP(1)
    ledger.close()
    with pytest.raises(sqlite3.ProgrammingError):
        ledger._connection.execute("SELECT 1")
    assert curator.counted == PureDP(1)


def test_only_a_fresh_curator_takes_up_a_run() -> None:
    """What it has answered before would be forgotten by the process that goes on."""
    curator = Curator(rows(), budget=PureDP(1))
    curator.measure(TABLE, PureDP("0.1"))
    with pytest.raises(BudgetError, match="has answered already"):
        curator.take_up("run", Had())
    fresh = Curator(rows(), budget=PureDP(1))
    fresh.take_up("run", Had())
    with pytest.raises(BudgetError, match="has answered already"):
        fresh.take_up("another", Had())


def test_answers_of_a_stopped_run_are_booked_again() -> None:
    """In whole, and in the share of their step: what goes on has what is left, and no more."""
    first = Curator(rows(), budget=PureDP(1))
    first.measure(TABLE, PureDP("0.6"))
    again = Curator(rows(), budget=PureDP(1))
    again.book_again(first.bookings)
    assert again.spent == first.spent and again.remaining == first.remaining
    assert again.steps == first.steps
    with pytest.raises(BudgetError):
        again.measure(TABLE, PureDP("0.6"))


def test_what_is_printed_tells_no_number_of_records() -> None:
    many = MemoryTable(DOMAIN, [np.zeros(7_919, dtype=np.uint8)], threads=1)
    curator = Curator(many, budget=PureDP(1))
    for shown in (repr(curator), str(curator), repr(many), repr(curator.partition(2, PureDP("0.1"))[0])):
        assert "7919" not in shown and "7,919" not in shown


def test_a_stopped_run_goes_on_with_its_own_amount_and_unit() -> None:
    ledger = Ledger.in_memory(PureDP(3))
    ledger.charge(PureDP(1), PrivacyUnit(), {"run": "r"})
    assert ledger.resume("r", PureDP(1), PrivacyUnit(), Had()) == (2, False)
    with pytest.raises(LedgerError, match="is not for"):
        ledger.resume("r", PureDP(2), PrivacyUnit(), Had())
    with pytest.raises(LedgerError, match="is not for"):
        ledger.resume("r", PureDP(1), PrivacyUnit(relation="replace-one"), Had())


def test_a_ledger_does_not_cross_a_fork() -> None:
    ledger = Ledger.in_memory(PureDP(3))
    ledger._process += 1  # as a copy in another process would see it
    with pytest.raises(LedgerError, match="opened by another process"):
        ledger.charge(PureDP(1), PrivacyUnit())
