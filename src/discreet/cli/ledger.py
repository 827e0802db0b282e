"""``discreet ledger create | show | verify | key | head``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import LedgerError
from . import options
from .command import Commands
from .console import note, say, say_json, say_table
from .failures import Exit

app = Commands(
    help="The ledger: what was spent on a body of data, durable, in one file.",
)
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]
Head = Annotated[
    str | None,
    typer.Option("--head", metavar="HEAD", help="A head that was kept elsewhere (`ledger head`), or a file with it."),
]


@app.add
def create(ledger: LedgerFile, money: options.Money, as_json: options.Json = False) -> None:
    """Make a ledger with a total that all releases together may spend.

    The total cannot be changed afterwards. One in zCDP (--rho) composes many
    releases with the least waste. Beside it a private key is made, LEDGER.key,
    which signs its entries and the releases that are charged to it: guard it,
    and keep a copy where you keep secrets.

    \b
    [bold]Examples[/bold]
      discreet ledger create ledger.db --epsilon 3
      discreet ledger create ledger.db --rho 0.5
    """
    from ..privacy.ledger import Ledger
    from ..privacy.ledger_entries import key_path

    total = money.budget()
    if ledger.exists():
        raise LedgerError(
            f"{ledger} exists already and is never overwritten; `discreet ledger show {ledger}` says what is in it"
        )
    with Ledger.create(ledger, total) as account:
        if as_json:
            say_json({"ledger": str(ledger), "total": total.to_dict(), "key": account.public_key})
        else:
            say(f"Made the ledger {ledger}: {total} in total.")
            say(f"Its public key: {account.public_key}. The private one is {key_path(ledger)}; guard it.")
    if weak := options.weak_protection(total):
        note(f"Remark: {weak}")


@app.add
def show(ledger: LedgerFile, head: Head = None, as_json: options.Json = False) -> None:
    """What was spent, on what, and what is left.

    With a head that was kept elsewhere, a ledger whose end was cut off, or that
    is an old copy, is not shown: exit code 8.

    \b
    [bold]Example[/bold]
      discreet ledger show ledger.db
    """
    with _open(ledger) as account:
        if head is not None and (problems := account.verify(_head(head))):
            _say_problems(ledger, problems, as_json=as_json)
            raise typer.Exit(Exit.SIGNATURE)
        entries, unit, key = account.entries, account.unit, account.public_key
        total, spent, remaining = account.total, account.spent, account.remaining
    if as_json:
        say_json(
            {
                "total": total.to_dict(),
                "spent": None if spent is None else spent.to_dict(),
                "remaining": None if remaining is None else remaining.to_dict(),
                "unit": None if unit is None else {"column": unit.column, "relation": unit.relation},
                "key": key,
                "entries": [{"number": e.number, "time": e.time, "kind": e.kind, **e.details} for e in entries],
            }
        )
        return
    say(f"{ledger}: {total} in total")
    say(f"spent: {spent or 'nothing'}; left: {remaining or 'nothing'}")
    if unit is not None:
        who = "one row" if unit.column is None else f"all rows of one value of {unit.column!r}"
        say(f"protects: {who}, {unit.relation}")
    say(f"signed by: {key or f'nobody; `discreet ledger key {ledger}` gives it a key'}")
    if lines := _releases(entries):
        say()
        say_table(["release", "time (UTC)", "purpose", "spent", "what was asked"], lines, right=["release"])


@app.add
def verify(
    ledger: LedgerFile,
    head: Head = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="PUBLIC", help="The key that must have signed it, or a file with it.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Is the file whole, unaltered and within its total? Exit code 1 when it is not.

    Who has not got the private key cannot alter an entry unseen. But nothing in a
    file can tell that its end was cut off or that it is an old copy: give a head
    that was kept elsewhere (`discreet ledger head`), and the key, which whoever
    puts another ledger in its place has not got. Exit code 8 when these differ.

    \b
    [bold]Examples[/bold]
      discreet ledger verify ledger.db
      discreet ledger verify ledger.db --head head.txt
    """
    from ..signing import read_public_key

    trusted = None if key is None else read_public_key(key)
    kept = None if head is None else _head(head)
    with _open(ledger) as account:
        problems = account.verify()
        found = Exit.CHECK_FAILED
        if not problems:
            problems, found = account.verify(kept, trusted), Exit.SIGNATURE
        entries = len(account.entries) if not problems else None
        signed = account.public_key if not problems else None
    if problems or as_json:
        _say_problems(ledger, problems, as_json=as_json)
    else:
        say(f"{ledger}: {'1 entry' if entries == 1 else f'{entries} entries'}, whole, unaltered and within the total.")
        if signed is None:
            say(f"It has no key: who may write the file can alter it unseen. `discreet ledger key {ledger}` makes one.")
        elif trusted is None:
            say(f"Signed by {signed}, which was not checked against a key that you trust (--key).")
        if kept is None:
            say("Whether its end was cut off, no file can tell: keep `discreet ledger head` elsewhere, for --head.")
    if problems:
        raise typer.Exit(found)


@app.add
def key(ledger: LedgerFile, as_json: options.Json = False) -> None:
    """The public key of a ledger; one that has none gets one, and is signed from then on.

    Publish it where people look for it (a web page, a paper): `discreet verify
    FILE --key PUBLIC` then tells that a release is yours. The private key is the
    file LEDGER.key. Whoever has it can sign in your name.

    \b
    [bold]Example[/bold]
      discreet ledger key ledger.db
    """
    with _open(ledger) as account:
        public = account.make_key()
    if as_json:
        say_json({"key": public})
    else:
        say(public)


@app.add
def head(ledger: LedgerFile, as_json: options.Json = False) -> None:
    """The head of a ledger: how many entries it has, their hash, and its signature.

    Keep it where whoever may write the ledger may not: in a mail, a version
    control, a notebook. `discreet ledger verify --head` then tells when the end
    was cut off, or an old copy put back.

    \b
    [bold]Example[/bold]
      discreet ledger head ledger.db > head.txt
    """
    with _open(ledger) as account:
        found = account.head
    if as_json:
        say_json({"head": found})
    else:
        say(found)


def _head(text: str) -> str:
    from ..signing import said_or_in_file

    return said_or_in_file(text)


def _say_problems(ledger: Path, problems: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        say_json({"verified": not problems, "problems": list(problems)})
    for problem in () if as_json else problems:
        say(f"{ledger}: {problem}")


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
