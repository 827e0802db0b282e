"""How the command line ends: exit codes, and one clear line for every failure."""

from __future__ import annotations

import os
import traceback
from enum import IntEnum

import typer

from ..errors import (
    BudgetError,
    CostError,
    DamagedLedgerError,
    DiscreetError,
    EngineError,
    EvidenceError,
    FileFormatError,
    InputError,
    LedgerError,
    NotAReleaseError,
    SchemaError,
)
from .console import note


class Exit(IntEnum):
    OK = 0
    CHECK_FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    FILE = 4
    TOO_LARGE = 5
    CONTRADICTION = 6
    NOT_TO_BE_PUBLISHED = 7
    SIGNATURE = 8
    AFTER_THE_SPEND = 9
    DAMAGED_LEDGER = 10
    DEFECT = 70
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "all is well",
    Exit.CHECK_FAILED: "a check failed (schema check, verify, ledger verify, audit, bench --strict)",
    Exit.WRONG_USE: "wrong use: an option, a name or a number",
    Exit.REFUSED: "the budget or the ledger refused; nothing was spent",
    Exit.FILE: "a file is missing, in the way, unreadable or not what it should be",
    Exit.TOO_LARGE: "the work would be too large and was not begun",
    Exit.CONTRADICTION: "verify: what the file says does not imply its guarantee",
    Exit.NOT_TO_BE_PUBLISHED: "verify: it must not be published, as something in it is not protected",
    Exit.SIGNATURE: "verify, ledger verify: a signature or a head is missing, wrong, or of another key",
    Exit.AFTER_THE_SPEND: "it failed after the budget was charged; the message says what was spent and what was saved",
    Exit.DAMAGED_LEDGER: "the ledger is damaged, was altered or put back; nothing was spent",
    Exit.DEFECT: "a defect of discreet; details are withheld, as they may hold private values",
    Exit.INTERRUPTED: "interrupted (Ctrl-C); the message says what was spent",
}
HELP = "Exit codes: " + ". ".join(f"{int(code)} {meaning}" for code, meaning in MEANINGS.items()) + "."

# Typer carries its own copy of click's errors in some versions and click's in others; this finds the one in use.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class WrongUse(DiscreetError):
    """The command was given options that do not go together."""


class Interrupted(Exception):
    """Ctrl-C, with what is to be said about the money."""


class AfterTheSpend(Exception):
    """A failure when the budget was charged already, with what is to be said about the money."""

    def __init__(self, error: BaseException, said: str) -> None:
        super().__init__(said)
        self.error = error


_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (WrongUse, Exit.WRONG_USE),
    (InputError, Exit.WRONG_USE),
    (EvidenceError, Exit.WRONG_USE),
    (BudgetError, Exit.REFUSED),
    (SchemaError, Exit.FILE),
    (FileFormatError, Exit.FILE),
    (EngineError, Exit.FILE),
    (DamagedLedgerError, Exit.DAMAGED_LEDGER),
    (LedgerError, Exit.FILE),
    (NotAReleaseError, Exit.FILE),
    (CostError, Exit.TOO_LARGE),
)


def explain(error: BaseException) -> Exit:
    """Say on stderr what went wrong, in one line (but for a question, which is shown with the wrong place marked), and
    return the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":  # some versions of click: the help was shown, and says it all
        return Exit.WRONG_USE
    return _say(*in_words(error))


def in_words(error: BaseException) -> tuple[str, Exit]:
    """What went wrong, and how a command ends by it."""
    if isinstance(error, AfterTheSpend):
        message, _ = in_words(error.error)
        return f"{message.rstrip('.')}; {error}", Exit.AFTER_THE_SPEND
    if isinstance(error, Interrupted):
        return str(error), Exit.INTERRUPTED
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "interrupted; nothing was spent by this command", Exit.INTERRUPTED
    if isinstance(error, UsageError):
        context = getattr(error, "ctx", None)
        help_there = f"see `{context.command_path} --help`" if context is not None else ""
        where = f"; {help_there}" if help_there else ""
        if (said := _no_number(error)) is not None:
            return said + where, Exit.WRONG_USE
        if possible := getattr(error, "possibilities", None):  # the nearest first
            message = f"{error.message.rstrip('.')}. Did you mean {_begun(error) or possible[0]}?"  # type: ignore[attr-defined]
        else:
            message = error.format_message() if hasattr(error, "format_message") else str(error)
        if message.endswith("?"):
            return f"{message} {help_there.capitalize()}".rstrip(), Exit.WRONG_USE
        return message.rstrip(".") + where, Exit.WRONG_USE
    for kind, code in _CODES:
        if isinstance(error, kind):
            return str(error), code
    if isinstance(error, OSError):
        name = f" {error.filename}" if error.filename else ""
        return f"cannot use the file{name}: {error.strerror or type(error).__name__}", Exit.FILE
    if isinstance(error, DiscreetError):
        return str(error), Exit.WRONG_USE
    if isinstance(error, MemoryError):
        return "the memory of this machine does not suffice", Exit.TOO_LARGE
    return _defect(error), Exit.DEFECT


def _begun(error: BaseException) -> str | None:
    """The option that was only begun: ``--eps`` for ``--epsilon``, which is nearer by its letters to ``--help``."""
    said, command = getattr(error, "option_name", ""), getattr(getattr(error, "ctx", None), "command", None)
    options = [opt for parameter in getattr(command, "params", ()) for opt in parameter.opts]
    return next((opt for opt in options if len(said) > 2 and opt.startswith(said)), None)


def _no_number(error: BaseException) -> str | None:
    """In our words, what was typed where a number belongs; typer quotes the library that reads it."""
    option, cause = getattr(error, "param", None), error.__cause__
    if option is None or cause is None or not hasattr(cause, "errors"):
        return None
    found = cause.errors()[0]
    kind = {"int_parsing": "a whole number", "float_parsing": "a number"}.get(found["type"])
    return f"{max(option.opts, key=len)} must be {kind}, got {str(found['input'])[:60]!r}" if kind else None


def _defect(error: BaseException) -> str:
    """An error nobody foresaw. Its message may quote a private value, so it is shown on request only."""
    if os.environ.get("DISCREET_DEBUG"):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return (
        f"this is a defect of discreet ({type(error).__name__}{where}); please report it. The details may hold "
        "private values and are withheld; DISCREET_DEBUG=1 shows them"
    )


def _say(message: str, code: Exit) -> Exit:
    is_marked = message.rstrip().endswith("^")
    note(message if is_marked else " ".join(message.split()), "discreet: ")
    return code
