"""The commands, put together; and how every one of them ends."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from .._version import __version__
from ..progress import remarking
from .command import Commands
from .console import fall_silent, note, open_streams
from .failures import HELP, Exit, explain

COMMANDS = {
    "start": "start.start",
    "schema": "schema.app",
    "plan": "fit.plan",
    "fit": "fit.fit",
    "structure": "structure.structure",
    "measure": "measure.measure",
    "certify": "certify.certify",
    "evaluate": "evaluate.evaluate",
    "show": "show.show",
    "verify": "verify.verify",
    "query": "query.query",
    "map": "query.most_probable",
    "sample": "sample.sample",
    "report": "report.report",
    "explore": "report.explore",
    "bounds": "bounds.bounds",
    "ledger": "ledger.app",
    "audit": "audit.audit",
    "attack": "attack.attack",
    "bench": "bench.bench",
    "demo": "demo.demo",
    "docs": "docs.docs",
}
"""Where each command lives. What is called needs none of the others; help lists them all."""


def commands(wanted: Iterable[str] = COMMANDS) -> Commands:
    """The command line, with these commands."""
    app = Commands(name="discreet", pretty_exceptions_enable=False, epilog=HELP)  # a traceback may show private values
    app.callback()(root)
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(".")
        what = getattr(import_module(f".{module}", __package__), attribute)
        if isinstance(what, typer.Typer):
            app.add_typer(what, name=name)
        else:
            app.add(what, name)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"discreet {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn from sensitive records under differential privacy.

    \b
    [bold]A first release[/bold]
      discreet demo                                   see it all once
      discreet start patients.csv                     all of this on a page
      discreet schema draft patients.csv              a first schema, to be edited
      discreet ledger create ledger.db --epsilon 3    what may be spent in all
      discreet fit patients.csv --schema schema.toml --epsilon 1 \\
          --ledger ledger.db -o model.zip             a model, to be published
      discreet query model.zip "P(lung | smoke=yes)"  ask it
      discreet sample model.zip -n 1000 -o new.csv    synthetic records

    Completion for your shell: discreet --install-completion
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point: run a command and return its exit code."""
    gc.set_threshold(200_000)  # modules that are loaded are no garbage, and to look for it took a tenth of a command
    open_streams()
    with contextlib.suppress(ValueError):  # not the main thread: then signals are somebody else's
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # to be stopped by a scheduler is as Ctrl-C is
            signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # ε on an old terminal is no reason to fail
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # `discreet show … | head`: nobody wants the rest
        fall_silent()
    except OSError as error:
        fall_silent()
        code = code or int(explain(error))
    if arguments is None:
        gc.freeze()  # the process ends, and would look through all that is left once more: a quarter of a small command
    return code


@cache
def _command(name: str | None) -> Any:
    """This command, or all of them, with their options: putting all together takes longer than many a command."""
    return typer.main.get_command(commands(COMMANDS if name is None else (name,)))


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process. Every error becomes a message on stderr and an exit code.

    Commands find this function in their context: the demonstration plays whole command lines.
    """
    name = arguments[0] if arguments and arguments[0] in COMMANDS else None
    try:
        with remarking(note):
            result = _command(name)(list(arguments), prog_name="discreet", standalone_mode=False, obj=run)
    except (SystemExit, BrokenPipeError):  # how rich and typer end when nobody reads the output any more
        return int(Exit.OK)
    except (Exception, KeyboardInterrupt) as error:
        return int(explain(error))
    if result == Exit.INTERRUPTED:  # typer has caught the Ctrl-C
        return int(explain(KeyboardInterrupt()))
    return int(result) if isinstance(result, int) else 0
