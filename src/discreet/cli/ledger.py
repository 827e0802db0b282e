"""``discreet ledger create | show | verify``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import LedgerError
from . import options
from .command import Command, Group
from .console import note, say, say_json, say_table
from .failures import Exit

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="The ledger: what was spent on a body of data, durable, in one file.",
)
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]


@app.command(cls=Command)
def create(
    ledger: LedgerFile,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    as_json: options.Json = False,
) -> None:
    """Make a ledger with a total that all releases together may spend.

    The total cannot be changed afterwards. One in zCDP (--rho) composes many
    releases with the least waste.

    \b
    [bold]Examples[/bold]
      discreet ledger create ledger.db --epsilon 3
      discreet ledger create ledger.db --rho 0.5
    """
    from ..privacy.ledger import Ledger

    total = options.budget_from(epsilon, delta, rho)
    if ledger.exists():
        raise LedgerError(
            f"{ledger} exists already and is never overwritten; `discreet ledger show {ledger}` says what is in it"
        )
    with Ledger.create(ledger, total):
        if as_json:
            say_json({"ledger": str(ledger), "total": total.to_dict()})
        else:
            say(f"Made the ledger {ledger}: {total} in total.")
    if weak := options.weak_protection(total):
        note(f"Remark: {weak}")


@app.command(cls=Command)
def show(ledger: LedgerFile, as_json: options.Json = False) -> None:
    """What was spent, on what, and what is left.

    \b
    [bold]Example[/bold]
      discreet ledger show ledger.db
    """
    with _open(ledger) as account:
        entries, unit = account.entries, account.unit
        total, spent, remaining = account.total, account.spent, account.remaining
    if as_json:
        say_json(
            {
                "total": total.to_dict(),
                "spent": None if spent is None else spent.to_dict(),
                "remaining": None if remaining is None else remaining.to_dict(),
                "unit": None if unit is None else {"column": unit.column, "relation": unit.relation},
                "entries": [{"number": e.number, "time": e.time, "kind": e.kind, **e.details} for e in entries],
            }
        )
        return
    say(f"{ledger}: {total} in total")
    say(f"spent: {spent or 'nothing'}; left: {remaining or 'nothing'}")
    if unit is not None:
        who = "one row" if unit.column is None else f"all rows of one value of {unit.column!r}"
        say(f"protects: {who}, {unit.relation}")
    if lines := _releases(entries):
        say()
        say_table(["release", "time (UTC)", "purpose", "spent", "what was asked"], lines, right=["release"])


@app.command(cls=Command)
def verify(ledger: LedgerFile, as_json: options.Json = False) -> None:
    """Is the file whole, unaltered and within its total? Exit code 1 when it is not.

    \b
    [bold]Example[/bold]
      discreet ledger verify ledger.db
    """
    with _open(ledger) as account:
        problems = account.verify()
        entries = len(account.entries) if not problems else None
    if as_json:
        say_json({"verified": not problems, "problems": problems})
    elif problems:
        for problem in problems:
            say(f"{ledger}: {problem}")
    else:
        say(f"{ledger}: {'1 entry' if entries == 1 else f'{entries} entries'}, whole, unaltered and within the total.")
    if problems:
        raise typer.Exit(Exit.CHECK_FAILED)


def _open(path: Path) -> Any:
    from ..privacy.ledger import Ledger

    if path.is_dir():
        raise LedgerError(f"{path} is a folder; name a ledger file")
    if not path.exists():
        raise LedgerError(f"there is no ledger {path}; make one with `discreet ledger create {path} --epsilon TOTAL`")
    return Ledger.open(path)


def _releases(entries: Sequence[Any]) -> list[list[str]]:
    """A line for each release: its charge, with what the entries after it say about it."""
    from ..report.spending import describe_steps

    steps: dict[int, list[Any]] = {}
    used: dict[int, str] = {}
    for entry in entries:
        if entry.kind == "steps":
            steps.setdefault(entry.details["charge"], []).extend(entry.details["steps"])
        elif entry.kind == "settle":
            used[entry.details["charge"]] = _amount(entry.details["used"])
    lines: list[list[str]] = []
    for entry in entries:
        if entry.kind == "charge":
            charged = _amount(entry.details["amount"])
            spent = used.get(entry.number, charged)
            back = "" if spent == charged else f", charged {charged}"  # crumbs of rounding look the same
            asked = describe_steps(steps.get(entry.number, ())) or "not recorded; it counts in full"
            asked = "nothing" if spent == "nothing" and entry.number not in steps else asked
            time = entry.time[:16].replace("T", " ")
            lines.append([str(len(lines) + 1), time, str(entry.details.get("purpose", "")), spent + back, asked])
    return lines


def _amount(budget: Mapping[str, Any] | None) -> str:
    from ..privacy.budget import Budget

    return "nothing" if budget is None else str(Budget.from_dict(dict(budget)))
