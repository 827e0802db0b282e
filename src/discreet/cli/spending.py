"""How money is spent, for every command that does: the ledger, the plan, the rows, the run, the file, in this order.

Everything public is checked first: whatever is wrong is found before a row is read and before anything is spent. After
the spend the result is saved first and the ledger settled then. If anything fails, or Ctrl-C comes, what was bought
goes to a rescue file, and the message says what was spent.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ..errors import FileFormatError, LedgerError, counted
from ..io.claim import claimed
from . import options, places, rows
from .console import even_if_unheard, is_heard, note, progress, waiting
from .failures import AfterTheSpend, Interrupted, WrongUse
from .places import ledger_files, same_file
from .rescue import Bought, Saved, rescue

if TYPE_CHECKING:
    from ..learn.procedure import Procedure
    from ..learn.transcript import Transcript
    from ..measurement import Measurements
    from ..privacy.budget import Budget
    from ..privacy.curator import Curator
    from ..privacy.ledger import Ledger
    from ..tables.windows import Windows

T = TypeVar("T")
S = TypeVar("S", bound=Saved)
Watch = Callable[[], AbstractContextManager[None]]
KEEP_ANSWERS = "With --checkpoint FILE a run keeps its answers, and goes on without paying again"


@dataclass(frozen=True, kw_only=True)
class Order(options.Spending):
    """What is to be asked of which rows, who pays, and where the result goes; all of it public."""

    procedure: Procedure
    data: Path
    engine: str | None = None
    public_size: int | None = None
    windows: Windows | None = None
    """How the rows become windows, where they are not records as they are."""
    card: Path | None = None
    inputs: tuple[Path | None, ...] = ()
    """Further files that are read, such as the schema: no output may take their place."""

    @property
    def outputs(self) -> tuple[Path, ...]:
        return tuple(place for place in (self.output, self.card) if place is not None)


@dataclass(frozen=True)
class Work(Generic[S]):
    """What becomes of what was released: all of it post-processing.

    ``make`` turns the answers into what is saved and told; ``card`` writes what goes beside it; ``kind`` is the name
    such a file has when nobody gave one; ``show`` prints all of it, if need be.
    """

    make: Callable[[Measurements], S]
    tell: Callable[[S], None]
    kind: str
    card: Callable[[S, Path], None] | None = None
    show: Callable[[S], None] | None = None


def spend(order: Order, show_plan: Callable[[], None], work: Work[S], watch: Watch = progress) -> None:
    """Run a procedure on private rows, and hand over what was bought; ``watch`` shows the progress."""
    procedure = order.procedure
    account = open_ledger(order.ledger, procedure.budget)
    with account or nullcontext():
        transcript = _transcript(order)
        if not order.plan:
            _rows(order, rows.check_rows)  # a name that is misspelt is no question of units
        if account is not None:
            options.check_ledger_notion(account.total, procedure.budget)
            if transcript is None or transcript.run is None or account.charge_of(transcript.run) is None:
                account.check(procedure.budget, procedure.unit)
        _check_outputs(order)  # last, so that an old file does not hide what else is wrong
        with even_if_unheard():
            show_plan()
        remark_before(procedure.budget, procedure.domain.peeked)
        if order.plan:
            return
        if transcript is not None and transcript.answers:
            note(f"Going on after {counted(transcript.answers, 'answer')} in {transcript.path}; these are paid for.")
        with ExitStack() as claims:
            for place in order.outputs:
                claims.enter_context(claimed(place))
                places.writable(place, force=order.force)  # nobody has written it in the meantime
            if order.output is None and not is_heard():
                raise FileFormatError(
                    "nobody reads the result, and no file is named for it: give -o; nothing was spent"
                )
            _buy(order, account, transcript, work, watch)
    if order.ledger is None:
        note("Remark: no ledger was given, so nothing remembers this spend; --ledger FILE adds up what is released.")
    if not order.outputs:
        note("Remark: the release was not saved; -o FILE does, and what is asked again is paid again.")


def _buy(order: Order, account: Ledger | None, transcript: Transcript | None, work: Work[S], watch: Watch) -> None:
    """Ask, save, settle, tell: in this order. Whatever fails once the budget is charged, what was bought is brought to
    safety, and what was spent is said."""
    from ..privacy.curator import Curator

    procedure = order.procedure
    sign = None if account is None else account.signer  # before the spend: a key that cannot be read costs nothing
    bought: Bought[S] = Bought(order.output or Path(work.kind), sign)
    curator: Curator | None = None
    try:
        with waiting("reading the rows"):
            table = _rows(order, rows.open_rows)
        with watch():
            curator = Curator(
                table,
                procedure.unit,
                procedure.budget,
                account,
                public_size=order.public_size,
                purpose=order.purpose or "",
            )
            bought.released = procedure.run(curator, transcript, bought.answers.append)
            bought.made = work.make(bought.released)
        if order.output is not None:
            bought.made.save(order.output, sign=sign)
            bought.saved = order.output
        if order.card is not None and work.card is not None:
            work.card(bought.made, order.card)
        if bought.saved is not None:
            _end(curator, transcript)
        with even_if_unheard():
            work.tell(bought.made)
        if not is_heard():
            if bought.saved is None:
                raise OSError(errno.EPIPE, "nobody has read the result")
            note(f"Nobody has read what was said. The release is saved in {bought.saved}.")
        _end(curator, transcript)
    except (Exception, KeyboardInterrupt) as error:
        raise _failed(error, order, curator, transcript, bought, work) from None


def _failed(
    error: BaseException,
    order: Order,
    curator: Curator | None,
    transcript: Transcript | None,
    bought: Bought[S],
    work: Work[S],
) -> BaseException:
    """The same failure; after the spend with what was spent and where that is which it bought."""
    stopped = isinstance(error, KeyboardInterrupt)
    if curator is not None and transcript is None:
        with suppress(Exception):  # what was not used goes back; if that fails the charge counts in full
            curator.close()
    spent = None if curator is None else curator.counted
    if spent is None:
        before = "more " if transcript is not None and transcript.answers else ""
        nothing = f"nothing {before}was released and nothing {before}was spent{_way_on(transcript)}"
        return Interrupted(f"interrupted; {nothing}") if stopped else error
    where = "no ledger was given" if order.ledger is None else f"it stays in the ledger {order.ledger}"
    said = f"{spent} counts as spent, and {where}"
    if bought.saved is not None:
        said += f". The release is whole and saved in {bought.saved}"
    elif way := _way_on(transcript):
        said += way
    else:
        said += f". {rescue(bought, work.show, curator)}"
    if stopped:
        resumable = transcript is None and bought.saved is None and not order.procedure.not_resumable
        way = f". {KEEP_ANSWERS}" if resumable else ""
        return Interrupted(f"interrupted after the budget was charged: {said}{way}")
    return AfterTheSpend(error, said)


def _check_outputs(order: Order) -> None:
    """No output takes the place of what is read, of the ledger or of another output, not even by force."""
    read = [order.data, *order.inputs]
    if order.ledger is not None:
        read += ledger_files(order.ledger)
    for position, place in enumerate(order.outputs):
        for other in (*order.outputs[:position], *(path for path in read if path is not None)):
            if same_file(place, other):
                raise WrongUse(f"{place} is used by this very command as {other}; name another file for the result")
        places.writable(place, force=order.force)


def _transcript(order: Order) -> Transcript | None:
    """The answers of a run that was stopped, or a place for those of one that may be; checked before a row is read."""
    from ..learn.transcript import Transcript

    place = order.checkpoint
    if place is None:
        return None
    if why := order.procedure.not_resumable:
        raise WrongUse(f"--checkpoint {place}: {why}")
    taken = [*order.outputs, order.data, *order.inputs, *(ledger_files(order.ledger) if order.ledger else ())]
    if any(other is not None and same_file(place, other) for other in taken):
        raise WrongUse(f"--checkpoint {place} is a file of its own; it is removed when the release is saved")
    places.writable(place, force=True)
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
    return how(order.data, order, whole.domain, whole.unit.column, order.engine or "auto", order.windows)


def open_ledger(path: Path | None, budget: Budget | None = None) -> Ledger | None:
    """The ledger that pays; where there is none, how to make one that could pay for this budget."""
    from ..privacy.ledger import Ledger

    if path is None:
        return None
    if not path.exists():
        notion = "" if budget is None else budget.notion
        total = {"zcdp": "--rho TOTAL", "approx": "--epsilon TOTAL --delta TOTAL"}.get(notion, "--epsilon TOTAL")
        raise LedgerError(f"there is no ledger {path}; make one with `discreet ledger create {path} {total}`")
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
