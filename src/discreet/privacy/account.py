"""The account of a curator: what it may spend, what it has spent, and where that is written down."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ..domain import Domain
from ..errors import BudgetError
from .accounting import Accountant, Cost
from .budget import Amount, ApproxDP, Budget, exact
from .ledger import Ledger
from .unit import PrivacyUnit


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
        if not isinstance(budget, Budget):
            raise BudgetError(f"budget must be PureDP(ε), ZCDP(ρ) or ApproxDP(ε, δ), got {budget!r}")
        self.budget = budget
        self.unit = unit
        self.domain = domain
        self.purpose = purpose
        self._accountant = Accountant(budget, delta_for_tests=exact(delta_for_tests, "delta_for_tests"))
        self._ledger = ledger
        self._charge: int | None = None
        self._parent: Account | None = None
        self._place: dict[str, Any] = {}  # what this is of its parent, in the list of steps
        self._closed = False
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._steps: list[dict[str, Any]] = []

    @property
    def spent(self) -> Budget | None:
        """What was spent so far; None for nothing."""
        return self._accountant.spent

    @property
    def remaining(self) -> Budget | None:
        """What is left to spend; None for nothing."""
        return self._accountant.remaining

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """What was asked and paid for, in order. Public."""
        return tuple(self._steps)

    def close(self) -> None:
        """Write the steps to the ledger and give back what was not used. Afterwards nothing can be asked."""
        with self._root._lock:  # an answer on its way in another thread is booked before, or refused after
            if self._closed:
                return
            self._closed = True
            if self._ledger is None or self._charge is None or self._parent is not None or self._is_forked:
                return
            self._ledger.record_steps(self._charge, [dict(s) for s in self._steps])
            used = self._accountant.spent
            # An (ε, δ) charge stays whole: its δ cannot be divided afterwards.
            if used != self.budget and not isinstance(self.budget, ApproxDP):
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
            self._steps.append(dict(step))
            if root is not self:
                root._steps.append({**self._place, **step})
            return len(root._steps)

    @property
    def _root(self) -> Account:
        """The curator that stands in the ledger: this one, or the one whose block or sample this is."""
        return self if self._parent is None else self._parent._root

    def _reserve(self) -> None:
        if self._charge is None and self._ledger is not None:
            details = {"purpose": self.purpose, "domain": self.domain.fingerprint}
            self._charge = self._ledger.charge(self.budget, self.unit, details)
