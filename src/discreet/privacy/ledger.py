"""The ledger: what was spent on a body of data, durable, in one SQLite file or in memory.

A charge is committed and synced to disk *before* any noise is drawn, so a crash counts as spent: the ledger never
says less than what was released. Charges of several processes are serialised by the database, and each is checked
against the total inside the same transaction, so together they cannot overspend. Entries are only ever appended, and
each carries a hash of all before it, signed with the ledger's key: who has not got the key cannot alter one.

The key is a file of its own beside the ledger (``year.db.key``, for its owner's eyes only), so that whoever may read,
copy or back up the ledger has not got it by that; it may be a symbolic link to where secrets are kept. Nothing in the
file can tell that its *end* was cut off, or that it is an old copy: keep its :attr:`~Ledger.head` elsewhere.

An algorithm that takes thousands of steps charges its whole share once and accounts for its steps in memory; what it
did not use can be given back when it ends in good order (:meth:`Ledger.settle`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .._version import __version__
from ..errors import BudgetError, DamagedLedgerError, LedgerError
from .accounting import Accountant, Cost, Spending
from .budget import Budget
from .ledger_access import in_words, patiently
from .ledger_entries import (
    FORMAT,
    Entry,
    Had,
    Runs,
    against_head,
    connect,
    initialise,
    is_authentic,
    key_in,
    make_file,
)
from .ledger_log import EntryLog
from .unit import PrivacyUnit


class Ledger(EntryLog):
    """Spending against a total budget.

    ``Ledger.create(path, total)`` makes a file, ``Ledger.open(path)`` uses one, ``Ledger.in_memory(total)`` is for
    notebooks. An (ε, δ) total adds up ε and δ of its charges; keep the total in zCDP to compose many releases tightly.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        super().__init__(connection, path)
        self._charges: dict[int, Budget] = {}
        self._settled: set[int] = set()
        self._runs = Runs()
        self._spending: Spending | None = None  # of all charges taken in; None when it must be added up again
        self._unit: PrivacyUnit | None = None
        first = self._entries(0, limit=1)
        opening = first[0].details if first and first[0].kind == "open" else {}
        if opening.get("format") != FORMAT or "total" not in opening:
            raise DamagedLedgerError(f"{path} is not a ledger of this version ({FORMAT})")
        with in_words(path):
            self.total = Budget.from_dict(opening["total"])
        self.created = first[0].time
        self._public = key_in(first[0])

    def __deepcopy__(self, memo: object) -> Ledger:
        """Itself: a copy of what contains a ledger (scikit-learn copies estimators) must charge the same account."""
        return self

    # -- making and opening ------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | Path, total: Budget) -> Ledger:
        """A new ledger file. An existing one is never overwritten."""
        path = Path(path)
        if path.exists() or not make_file(path, total):
            raise LedgerError(f"{path} exists already; open it with Ledger.open, or choose another name")
        return cls.open(path, total)

    @classmethod
    def open(cls, path: str | Path, total: Budget | None = None) -> Ledger:
        """An existing ledger file; with ``total``, create it when it does not exist and insist on that total."""
        path = Path(path)
        if not path.exists():
            if total is None:
                raise LedgerError(f"there is no ledger {path}; make one with Ledger.create(path, total)")
            make_file(path, total)  # or another process has, in the meantime
        connection = connect(path, "rw")
        try:
            ledger = cls(connection, path)
        except BaseException:
            connection.close()
            raise
        if total is not None and total != ledger.total:
            connection.close()
            raise LedgerError(f"the ledger {path} has the total {ledger.total}, not {total}; a total cannot be changed")
        return ledger

    @classmethod
    def in_memory(cls, total: Budget) -> Ledger:
        """A ledger that lives as long as the process."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        initialise(connection, total)
        return cls(connection, None)

    # -- spending ----------------------------------------------------------------------------------------------------

    def charge(self, amount: Budget, unit: PrivacyUnit, details: Mapping[str, Any] | None = None) -> int:
        """Spend, or raise :class:`BudgetError` and spend nothing. When this returns, the spend is on the disk."""
        with self._transaction():
            self.check(amount, unit)
            if details is not None and details.get("run") in self._runs.charges:
                raise LedgerError("this run is charged already, by another process that goes on with it")
            # Ours come last: nothing in the details may pass for the amount.
            body = {**(details or {}), "amount": amount.to_dict(), "unit": unit.to_dict(), "version": __version__}
            return self._append("charge", body)

    def charge_since(self, last: int) -> int | None:
        """The charge that was made here after entry number ``last``, if there is one. An interrupt may come when it is
        committed, and before anybody has its number."""
        with self._lock:
            number, chain = self._wrote, self._own
            found = [e for e in self._entries(max(last, number - 1), limit=1) if (e.number, e.chain) == (number, chain)]
            return number if found and found[0].kind == "charge" else None

    def counted(self, charge: int) -> Budget | None:
        """What a charge counts for now; None when all of it was given back."""
        with self._lock:
            self._catch_up()
            return self._charges.get(charge)

    def check(self, amount: Budget, unit: PrivacyUnit) -> None:
        """Raise the :class:`BudgetError` that a charge would raise now, without charging anything."""
        with self._lock:
            self._catch_up()
            self._key()  # without it the charge could not be written down
            # How many rows of a person count may differ from charge to charge: the person is the same.
            if self._unit is not None and (unit.column, unit.relation) != (self._unit.column, self._unit.relation):
                raise BudgetError(
                    f"this ledger protects {self._unit}, and the charge is for {unit}; guarantees for different units "
                    "do not add up. Keep to one unit for one body of data, the widest that anybody needs"
                )
            self._accountant().charge(Cost.of(amount))

    def settle(self, charge: int, used: Budget | None) -> None:
        """Give back what a charge did not use: ``used`` replaces its amount, None means that nothing was drawn."""
        with self._transaction():
            self._catch_up()
            reserved = self._charges.get(charge)
            if reserved is None or charge in self._settled:
                raise LedgerError(f"there is no open charge number {charge}")
            if used is None and self._runs.answers.get(charge, Had()).answers:
                raise LedgerError(f"the run of charge number {charge} has had answers; it cannot have used nothing")
            if used is not None and not (type(used) is type(reserved) and used <= reserved):
                raise LedgerError(f"charge {charge} reserved {reserved}; it cannot have used {used}")
            self._append("settle", {"charge": charge, "used": None if used is None else used.to_dict()})

    def record_steps(self, charge: int, steps: list[Mapping[str, Any]]) -> None:
        """Write down what a charge was used for. Information only: the charge has paid for it."""
        with self._transaction():
            self._catch_up()
            self._append("steps", {"charge": charge, "steps": steps})

    # -- runs that may be stopped and go on ---------------------------------------------------------------------------

    def charge_of(self, run: str) -> int | None:
        """The number of the charge of a run; None if it was not charged here."""
        with self._lock:
            self._catch_up()
            return self._runs.charges.get(run)

    def resume(
        self, run: str, amount: Budget, unit: PrivacyUnit, had: Had, before: Had | None = None
    ) -> tuple[int | None, bool]:
        """Go on with a run that ``had`` answers, all at hand: its charge (None if it has had none), and whether it is
        over, so that nothing more may be drawn for it.

        Refused are a run of another ledger, amount or unit, and one that has had more answers than are at hand, or
        others: these would be drawn twice and paid once. (The last one, which came after ``before``, may not have been
        counted yet: it is now.)
        """
        charge = self.charge_of(run)
        if charge is None:
            if had.answers:
                raise LedgerError("this ledger knows nothing of the stopped run; go on with the one it was charged to")
            return None, False
        (entry,) = self._entries(charge - 1, limit=1)
        if (entry.details["amount"], entry.details["unit"]) != (amount.to_dict(), unit.to_dict()):
            raise LedgerError(f"charge number {charge} of the stopped run is not for {amount}, to protect {unit}")
        known = self._runs.answers.get(charge, Had())
        if charge in self._runs.over:
            if had.answers >= known.answers:
                self._runs.check_same(charge, had)
            return charge, True
        if before == known:
            self.count_answer(charge, before, had)
        self.check_answers(charge, had)
        return charge, False

    def check_answers(self, charge: int, had: Had) -> None:
        """Refuse to draw another answer for a run that has had others than are at hand, or that is over."""
        with self._lock:
            self._catch_up()
            self._runs.check(charge, had)

    def count_answer(self, charge: int, before: Had, had: Had) -> None:
        """Write down that a run has had one answer more, paid for by its charge; unless it has had another one since,
        from a second process."""
        with self._transaction():
            self.check_answers(charge, before)
            self._append("answers", {"charge": charge, "answers": had.answers, "seal": had.seal})

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def spent(self) -> Budget | None:
        """What the charges add up to, in the notion of the total."""
        with self._lock:
            self._catch_up()
            return self._accountant().spent

    @property
    def remaining(self) -> Budget | None:
        with self._lock:
            self._catch_up()
            return self._accountant().remaining

    @property
    def unit(self) -> PrivacyUnit | None:
        """Whom it protects, as the first charge said; None before that."""
        with self._lock:
            self._catch_up()
            return self._unit

    def verify(self, head: str | None = None, key: str | None = None) -> list[str]:
        """Problems found; an empty list means that the file is whole, unaltered and within its total.

        With a ``head`` that was kept elsewhere: also that nothing up to it was cut off or replaced. With a public
        ``key``: that this one has signed it.
        """
        problems: list[str] = []
        with self._lock:
            try:
                self._afresh()
                with in_words(self.path):
                    status = patiently(self._connection, self.path, "PRAGMA integrity_check")[0][0]
                entries = self._entries(0)
            except LedgerError as error:
                return [f"the file cannot be read: {error}"]
            if status != "ok":
                problems.append(f"the database is damaged: {status}")
            previous, public = "", None
            for position, entry in enumerate(entries, start=1):
                if entry.number != position:
                    problems.append(f"entry {position} is missing")
                    break
                public = public or key_in(entry)
                if entry.chain != entry.digest(previous) or not is_authentic(entry, public):
                    problems.append(f"entry {entry.number} was altered, or one before it")
                    break
                previous = entry.chain
            if public is None and self._key_path is not None and self._key_path.exists():
                problems.append(f"it names no key, and {self._key_path} is there: was the key taken out of it?")
            if key is not None and public != key:
                problems.append(f"it is signed by {public or 'nobody'}, not by {key}")
            if head is not None:
                problems += against_head(entries, head, public)
            if not problems:
                try:
                    self._catch_up()
                    accountant = Accountant(self.total, composition="basic")
                    accountant.charge(*(Cost.of(amount) for amount in self._charges.values()))
                except DamagedLedgerError as error:
                    problems.append(str(error))
                except (BudgetError, LedgerError) as error:
                    problems.append(f"the charges do not fit the total: {error}")
        return problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path) if self.path else 'in memory'}, total {self.total})"

    # -- inside ------------------------------------------------------------------------------------------------------

    def _accountant(self) -> Accountant:
        if self._spending is None:
            self._spending = Spending()
            for amount in self._charges.values():
                self._spending = self._spending.plus(Cost.of(amount))
        return Accountant(self.total, composition="basic", spending=self._spending)

    def _take_in(self, entry: Entry) -> None:
        details = entry.details
        self._runs.take_in(entry)
        if entry.kind == "charge":
            amount = self._charges[entry.number] = Budget.from_dict(dict(details["amount"]))
            if self._spending is not None:
                self._spending = self._spending.plus(Cost.of(amount))
            self._unit = self._unit or PrivacyUnit.from_dict(dict(details["unit"]))
        elif entry.kind == "settle":
            self._settled.add(details["charge"])
            self._spending = None
            if details["used"] is None:
                self._charges.pop(details["charge"], None)
            else:
                self._charges[details["charge"]] = Budget.from_dict(dict(details["used"]))
        super()._take_in(entry)
