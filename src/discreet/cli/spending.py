"""How money is spent, for every command that does: the ledger, the plan, the rows, the run, the file, in this order.

Everything public is checked first: whatever is wrong is found before a row is read and before anything is spent. What
comes after the spend is said with what was spent, also when it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DiscreetError, EngineError, LedgerError, counted
from . import options, rows
from .console import note, progress, waiting
from .failures import Interrupted, WrongUse

if TYPE_CHECKING:
    from ..io.archive import Sign
    from ..learn.procedure import Procedure
    from ..learn.transcript import Transcript
    from ..measurement import Measurements
    from ..privacy.budget import Budget
    from ..privacy.curator import Curator
    from ..privacy.ledger import Ledger

T = TypeVar("T")
KEEP_ANSWERS = "With --checkpoint FILE a run keeps its answers, and goes on without paying again"


@dataclass(frozen=True)
class Order:
    """What is to be asked of which rows, who pays, and where the result goes; all of it public."""

    procedure: Procedure
    data: Path
    text: rows.Text = rows.Text()  # noqa: RUF009
    engine: str | None = None
    public_size: int | None = None
    ledger: Path | None = None
    purpose: str = ""
    outputs: tuple[Path | None, ...] = ()
    force: bool = False
    only_plan: bool = False
    checkpoint: Path | None = None


def spend(
    order: Order,
    show_plan: Callable[[], None],
    make: Callable[[Measurements], T],
    save: Callable[[T, Sign | None], None],
    tell: Callable[[T], None],
    rescue: Callable[[T], None] | None = None,
) -> None:
    """Run a procedure on private rows.

    ``make`` turns what was released into what is saved and told (post-processing); ``rescue`` shows what was paid for
    when it could not be saved.
    """
    procedure = order.procedure
    account = open_ledger(order.ledger)
    with account or nullcontext():
        transcript = _transcript(order)
        if account is not None:
            options.check_ledger_notion(account.total, procedure.budget)
            if transcript is None or transcript.run is None or account.charge_of(transcript.run) is None:
                account.check(procedure.budget, procedure.unit)
        if not order.only_plan:
            _rows(order, rows.check_rows)
        for place in order.outputs:  # last, so that an old file does not hide what else is wrong
            if place is not None:
                options.writable(place, force=order.force)
        show_plan()
        remark_before(procedure.budget, procedure.domain.peeked)
        if order.only_plan:
            return
        if transcript is not None and transcript.answers:
            note(f"Going on after {counted(transcript.answers, 'answer')} in {transcript.path}; these are paid for.")
        _buy(order, account, transcript, make, save, tell, rescue)
    if order.ledger is None:
        note("Remark: no ledger was given, so nothing remembers this spend; --ledger FILE adds up what is released.")
    if not any(order.outputs):
        note("Remark: the release was not saved; -o FILE does, and what is asked again is paid again.")


def _buy(
    order: Order,
    account: Ledger | None,
    transcript: Transcript | None,
    make: Callable[[Measurements], T],
    save: Callable[[T, Sign | None], None],
    tell: Callable[[T], None],
    rescue: Callable[[T], None] | None,
) -> None:
    from ..privacy.curator import Curator

    procedure = order.procedure
    sign = None if account is None else account.signer  # before the spend: a key that cannot be read costs nothing
    curator: Curator | None = None
    made: T | None = None
    try:
        try:
            with waiting("reading the rows"):
                table = _rows(order, rows.open_rows)
            with progress():
                curator = Curator(
                    table,
                    procedure.unit,
                    procedure.budget,
                    account,
                    public_size=order.public_size,
                    purpose=order.purpose,
                )
                with curator if transcript is None else nullcontext():  # a run that may go on is settled when saved
                    released = procedure.run(curator, transcript)
                made = make(released)
            save(made, sign)
            if any(order.outputs):
                _end(curator, transcript)
        except (DiscreetError, OSError, MemoryError) as error:
            if curator is None or curator.spent is None:
                raise
            if made is not None and rescue is not None:
                rescue(made)
            raise after_the_spend(error, f"{curator.spent} counts as spent{_way_on(transcript)}") from None
        tell(made)
        _end(curator, transcript)
    except KeyboardInterrupt:  # wherever it comes, also while the result is printed
        said = what_was_spent(curator, account, transcript)
        kept = transcript is not None or curator is None or curator.spent is None or procedure.not_resumable
        raise Interrupted(said if kept else f"{said}. {KEEP_ANSWERS}") from None


def _transcript(order: Order) -> Transcript | None:
    """The answers of a run that was stopped, or a place for those of one that may be; checked before a row is read."""
    from ..learn.transcript import Transcript

    place = order.checkpoint
    if place is None:
        return None
    if why := order.procedure.not_resumable:
        raise WrongUse(f"--checkpoint {place}: {why}")
    taken = {p.resolve() for p in (*order.outputs, order.data, order.ledger) if p is not None}
    if place.resolve() in taken:
        raise WrongUse(f"--checkpoint {place} is a file of its own; it is removed when the release is saved")
    options.writable(place, force=True)
    return Transcript(place)


def _end(curator: Curator, transcript: Transcript | None) -> None:
    """What was released is in the hands of its owner: the answers need not be kept any longer."""
    curator.close()
    if transcript is not None:
        transcript.remove()


def _way_on(transcript: Transcript | None) -> str:
    """How to go on with a run that was stopped; nothing where no answer was kept."""
    if transcript is None or not transcript.path.exists():
        return ""
    place = transcript.path
    again = f"run the same command again with --checkpoint {place}, and it goes on without paying again"
    return f". Its answers so far are in {place}: {again}"


def _rows(order: Order, how: Callable[..., T]) -> T:
    whole = order.procedure
    return how(order.data, order.text, whole.domain, whole.unit.column, order.engine or "auto")


def open_ledger(path: Path | None) -> Ledger | None:
    from ..privacy.ledger import Ledger

    if path is None:
        return None
    if not path.exists():
        raise LedgerError(f"there is no ledger {path}; make one with `discreet ledger create {path} --epsilon TOTAL`")
    return Ledger.open(path)


def remark_before(budget: Budget, peeked: Mapping[str, tuple[str, ...]]) -> None:
    """What should be known before anything is spent."""
    if weak := options.weak_protection(budget):
        note(f"Remark: {weak}")
    if peeked:
        note(
            "Remark: the schema was drafted by looking at the data, and what it learned is not protected. Before you "
            "spend anything on a release to be published, write public knowledge into it and delete the peeked marks."
        )


def what_was_spent(curator: Curator | None, account: Ledger | None, transcript: Transcript | None = None) -> str:
    """After Ctrl-C: what was spent stays spent, and is said."""
    spent: Any = None if curator is None else curator.spent
    if spent is None:
        before = "more " if transcript is not None and transcript.answers else ""
        return f"interrupted; nothing {before}was released and nothing {before}was spent{_way_on(transcript)}"
    where = "no ledger was given" if account is None else f"it stays in the ledger {account.path}"
    return f"interrupted after the budget was charged: {spent} counts as spent, and {where}{_way_on(transcript)}"


def after_the_spend(error: Exception, said: str) -> Exception:
    """The same failure, with the money said: it is gone, whatever happened to the result."""
    if isinstance(error, DiscreetError):
        return type(error)(f"{error}; {said}")
    if isinstance(error, OSError):
        name = f" {error.filename}" if error.filename else ""
        return EngineError(f"cannot use the file{name}: {error.strerror}; {said}")
    return EngineError(f"there is not enough memory; {said}")
