"""What the commands that spend have in common: the ledger, what to say before, and when it was cut short."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DiscreetError, EngineError, LedgerError
from . import options
from .console import note

if TYPE_CHECKING:
    from ..privacy.budget import Budget
    from ..privacy.curator import Curator
    from ..privacy.ledger import Ledger


def open_ledger(path: Path | None) -> Ledger | None:
    from ..privacy.ledger import Ledger

    if path is None:
        return None
    if not path.exists():
        raise LedgerError(f"there is no ledger {path}; make one with `discreet ledger create {path} --epsilon TOTAL`")
    return Ledger.open(path)


def what_was_spent(curator: Curator | None, account: Ledger | None) -> str:
    """After Ctrl-C: what was spent stays spent, and is said."""
    spent: Any = None if curator is None else curator.spent
    if spent is None:
        return "interrupted; nothing was released and nothing was spent"
    where = "no ledger was given" if account is None else f"it stays in the ledger {account.path}"
    return f"interrupted after the budget was charged: {spent} counts as spent, and {where}"


def after_the_spend(error: Exception, spent: str) -> Exception:
    """The same failure, with the money said: it is gone, whatever happened to the model."""
    if isinstance(error, DiscreetError):
        return type(error)(f"{error}; {spent} counts as spent")
    told = f"cannot use the file: {error.strerror}" if isinstance(error, OSError) else "there is not enough memory"
    return EngineError(f"{told}; {spent} counts as spent")


def remark_before(budget: Budget, peeked: Mapping[str, tuple[str, ...]]) -> None:
    """What should be known before anything is spent."""
    if weak := options.weak_protection(budget):
        note(f"Remark: {weak}")
    if peeked:
        note(
            "Remark: the schema was drafted by looking at the data, and what it learned is not protected. Before you "
            "spend anything on a release to be published, write public knowledge into it and delete the peeked marks."
        )
