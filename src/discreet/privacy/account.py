"""The account of a curator: what it may spend, what it has spent, and where that is written down."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from ..domain import Domain
from ..errors import BudgetError, LedgerError
from .accounting import Accountant, Cost
from .budget import Amount, ApproxDP, Budget, GaussianDP, exact
from .ledger import Ledger
from .ledger_entries import Had
from .unit import PrivacyUnit


@dataclass(frozen=True)
class Booking:
    """One answer in the books: what it cost, and what it was, in public words."""

    costs: tuple[Cost, ...]
    entry: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        costs = [[None if part is None else str(part) for part in astuple(cost)] for cost in self.costs]
        return {"costs": costs, "entry": dict(self.entry)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Booking:
        return cls(tuple(_cost(*parts) for parts in plain["costs"]), dict(plain["entry"]))


def _cost(epsilon: str | None, epsilon_delta: str, rho: str | None, rho_delta: str, mu_squared: str | None) -> Cost:
    known = [None if part is None else Fraction(part) for part in (epsilon, rho, mu_squared)]
    return Cost(known[0], Fraction(epsilon_delta), known[1], Fraction(rho_delta), known[2])


def whole_budget(budget: object) -> Budget:
    """A budget that an account can have; μ² is a notion for shares alone."""
    if not isinstance(budget, Budget) or isinstance(budget, GaussianDP):
        raise BudgetError(f"budget must be PureDP(ε), ZCDP(ρ) or ApproxDP(ε, δ), got {budget!r}")
    return budget


class Account:
    """Books steps against a budget, and the whole budget, once, against a ledger.

    Blocks and samples have accounts of their own below that of the curator they come from, which stands in the ledger
    (``_root``). One lock serves them all: threads may ask one curator, or several blocks of one.
    """

    def __init__(
        self,
        budget: Budget | None,
        unit: PrivacyUnit,
        domain: Domain,
        ledger: Ledger | None,
        delta_for_tests: Amount,
        purpose: str,
    ) -> None:
        if budget is None:
            raise BudgetError("a curator needs a budget: PureDP(ε), ZCDP(ρ) or ApproxDP(ε, δ)")
        self.budget = whole_budget(budget)
        self.unit = unit
        self.domain = domain
        self.purpose = purpose
        aside = exact(delta_for_tests, "delta_for_tests")
        if aside and not isinstance(budget, ApproxDP):
            raise BudgetError(f"delta_for_tests={float(aside)} is a part of the budget's δ, and {budget} has none")
        self._accountant = Accountant(budget, delta_for_tests=aside)
        self._ledger = ledger
        self._charge: int | None = None
        self._parent: Account | None = None
        self._place: dict[str, Any] = {}  # what this is of its parent, in the list of steps
        self._closed = False  # nothing more may be asked
        self._over = False  # and nothing more is to be written to the ledger
        self._run: str | None = None  # of a run that may be stopped and go on
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._steps: list[dict[str, Any]] = []
        self._step: tuple[str, Accountant] | None = None  # the step of a procedure that is being run
        self.bookings: list[Booking] = []
        """Every answer of this account, with its costs: public."""

    @property
    def spent(self) -> Budget | None:
        """What was spent so far; None for nothing."""
        return self._accountant.spent

    @property
    def remaining(self) -> Budget | None:
        """What is left to spend; None for nothing."""
        return self._accountant.remaining

    @property
    def counted(self) -> Budget | None:
        """What counts as spent: as the ledger has it (where it cannot be asked, the whole), or in memory without one.
        None when nothing does."""
        root = self._root
        if root._ledger is None:
            return root.spent
        if root._charge is None:
            return None
        try:
            return root._ledger.counted(root._charge)
        except (LedgerError, sqlite3.Error):  # damaged in the meantime, or closed
            return root.budget

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """What was asked and paid for, in order. Public."""
        return tuple(self._steps)

    def share_of(self, share: Budget | None = None) -> Budget:
        """A share that was asked for, checked in form; by default all that remains."""
        return self._share(share)

    def check_share(self, share: Budget) -> None:
        """Refuse, before any data is touched, a share that does not fit into what is left."""
        self._share(share)
        self._check((Cost.of(share),))

    # -- stopping and going on -----------------------------------------------------------------------------------------

    @property
    def has_ledger(self) -> bool:
        return self._root._ledger is not None

    def take_up(self, run: str, had: Had, before: Had | None = None) -> None:
        """All that is asked from now on belongs to this run, which may be stopped and go on, and ``had`` answers so
        far. It goes on within the charge that it made (see :meth:`Ledger.resume`); only a curator that has answered
        nothing can take it up, as what it has answered would be forgotten by the next."""
        root = self._root
        with root._lock:
            root._check_open()
            if root._steps or root._run is not None:
                raise BudgetError("this curator has answered already; a run that may be stopped takes a fresh one")
            if root._ledger is not None:
                root._charge, root._over = root._ledger.resume(run, root.budget, root.unit, had, before)
            root._run = run

    def book_again(self, bookings: Sequence[Booking]) -> None:
        """Book what a stopped run has had answered and paid: in memory only, as the charge stands in the ledger."""
        for booking in bookings:
            self._spend(booking.costs, {k: v for k, v in booking.entry.items() if k != "step"})

    def check_answers(self, had: Had) -> None:
        """Before a run that had these answers gets another one: see :meth:`Ledger.check_answers`."""
        root = self._root
        if root._ledger is not None and root._charge is not None:
            root._ledger.check_answers(root._charge, had)

    def count_answer(self, before: Had, had: Had) -> None:
        """Tell the ledger that a run that may be stopped has had one answer more."""
        root = self._root
        if root._ledger is not None and root._charge is not None:
            root._ledger.count_answer(root._charge, before, had)

    def suspend(self) -> None:
        """Nothing more is asked, and nothing given back: the run will go on elsewhere, within the same charge."""
        with self._root._lock:
            self._closed = self._over = True

    def finish(self) -> None:
        """Nothing more is asked; :meth:`close` gives back what was not used."""
        with self._root._lock:
            self._closed = True

    @contextmanager
    def step(self, name: str, share: Budget) -> Iterator[None]:
        """Everything that is asked inside belongs to this step: it may not cost more than ``share``, and its entries
        bear its name."""
        inner = Accountant(share)
        if not isinstance(share, ApproxDP):
            inner.delta_for_tests = self._accountant.delta_for_tests
        outer, self._step = self._step, (name, inner)
        try:
            yield
        finally:
            self._step = outer

    def close(self) -> None:
        """Write the steps to the ledger and give back what was not used. Afterwards nothing can be asked."""
        with self._root._lock:  # an answer on its way in another thread is booked before, or refused after
            over, self._closed, self._over = self._over, True, True
            if self._ledger is None or self._charge is None or self._parent is not None or over or self._is_forked:
                return
            used = self._accountant.spent
            if used is None and self._run is not None:
                return  # stopped while it was taken up, before its answers were booked again: it can still go on
            self._ledger.record_steps(self._charge, [dict(s) for s in self._steps])
            # An (ε, δ) charge stays whole, unless nothing was drawn: its δ cannot be divided afterwards.
            if used is None or (used != self.budget and not isinstance(self.budget, ApproxDP)):
                self._ledger.settle(self._charge, used)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _share(self, share: Budget | None) -> Budget:
        self._check_open()
        if share is None:
            share = self.remaining
            if share is None:
                raise BudgetError(f"the budget is gone: {self.budget} was the total")
        if not isinstance(share, Budget):
            raise BudgetError(f"a share is PureDP(ε), ZCDP(ρ) or ApproxDP(ε, δ), got {share!r}")
        return share

    def _check_open(self) -> None:
        if self._closed or self._root._closed:
            raise BudgetError("this curator is closed; open another one with a budget of its own")
        if self._is_forked:
            raise BudgetError("this curator belongs to another process, and so does its budget; open one here")

    @property
    def _is_forked(self) -> bool:
        """A copy in a forked process would spend the same budget again."""
        return os.getpid() != self._process

    def _check(self, costs: Sequence[Cost]) -> None:
        """Refuse before any data is touched."""
        trial = Accountant(
            self._accountant.total,
            composition=self._accountant.composition,
            delta_for_tests=self._accountant.delta_for_tests,
            spending=self._accountant.spending,
        )
        trial.charge(*costs)
        if self._step is not None:
            self._charge_step(costs, book=False)
        root = self._root
        if root._charge is None and root._ledger is not None:
            root._ledger.check(root.budget, root.unit)

    def _spend(self, costs: Sequence[Cost], step: Mapping[str, Any]) -> int:
        """Book the step; the first one charges the whole budget to the ledger, durably. Noise is drawn after this.

        Returns its number in the list of all steps.
        """
        root = self._root
        with root._lock:  # threads may ask one curator, or several blocks of one
            self._check_open()
            root._reserve()
            self._accountant.charge(*costs)
            if self._step is not None:
                self._charge_step(costs, book=True)
            entry = self._named(step)
            self._steps.append(entry)
            self.bookings.append(Booking(tuple(costs), entry))
            if root is not self:
                root._steps.append({**self._place, **entry})
            return len(root._steps)

    def _named(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        name = self._step_name
        return dict(entry) if name is None else {"step": name, **entry}

    @property
    def _step_name(self) -> str | None:
        """The step under way here, or where this block or sample comes from."""
        if self._step is not None:
            return self._step[0]
        return None if self._parent is None else self._parent._step_name

    def _charge_step(self, costs: Sequence[Cost], *, book: bool) -> None:
        """A step keeps within its own share, too: what a plan shows is an upper bound of what is spent on it."""
        assert self._step is not None
        name, within = self._step
        before = within.spending
        try:
            within.charge(*costs)
        except BudgetError as error:
            raise BudgetError(f"the step {name!r} has spent its share: {error}") from None
        if not book:
            within.spending = before

    @property
    def _root(self) -> Account:
        """The curator that stands in the ledger: this one, or the one whose block or sample this is."""
        return self if self._parent is None else self._parent._root

    def _reserve(self) -> None:
        if self._charge is None and self._ledger is not None:
            details = {"purpose": self.purpose, "domain": self.domain.fingerprint}
            if self._run is not None:
                details["run"] = self._run
            before = self._ledger.last
            try:
                self._charge = self._ledger.charge(self.budget, self.unit, details)
            except KeyboardInterrupt:  # perhaps after the commit: then it is charged, and is given back or said
                self._charge = self._ledger.charge_since(before)
                raise
