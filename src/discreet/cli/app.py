"""The commands, put together; and how every one of them ends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .._version import __version__
from ..progress import remarking
from . import (
    audit,
    bench,
    bounds,
    certify,
    demo,
    fit,
    ledger,
    measure,
    query,
    report,
    sample,
    schema,
    show,
    structure,
    verify,
)
from .command import Command, Group
from .console import fall_silent, note, open_streams
from .failures import HELP, Exit, explain

app = typer.Typer(
    cls=Group,
    name="discreet",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a traceback may show private values
    epilog=HELP,
)
app.add_typer(schema.app, name="schema")
app.command("plan", cls=Command)(fit.plan)
app.command("fit", cls=Command)(fit.fit)
app.command("structure", cls=Command)(structure.structure)
app.command("measure", cls=Command)(measure.measure)
app.command("certify", cls=Command)(certify.certify)
app.command("show", cls=Command)(show.show)
app.command("verify", cls=Command)(verify.verify)
app.command("query", cls=Command)(query.query)
app.command("map", cls=Command)(query.most_probable)
app.command("sample", cls=Command)(sample.sample)
app.command("report", cls=Command)(report.report)
app.command("explore", cls=Command)(report.explore)
app.command("bounds", cls=Command)(bounds.bounds)
app.add_typer(ledger.app, name="ledger")
app.command("audit", cls=Command)(audit.audit)
app.command("bench", cls=Command)(bench.bench)
app.command("demo", cls=Command)(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn from sensitive records under differential privacy.

    \b
    [bold]A first release[/bold]
      discreet demo                                   see it all once
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
    open_streams()
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
    return code


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process. Every error becomes a message on stderr and an exit code.

    Commands find this function in their context: the demonstration plays whole command lines.
    """
    command: Any = typer.main.get_command(app)
    try:
        with remarking(note):
            result = command(list(arguments), prog_name="discreet", standalone_mode=False, obj=run)
    except (SystemExit, BrokenPipeError):  # how rich and typer end when nobody reads the output any more
        return int(Exit.OK)
    except (Exception, KeyboardInterrupt) as error:
        return int(explain(error))
    if result == Exit.INTERRUPTED:  # typer has caught the Ctrl-C
        return int(explain(KeyboardInterrupt()))
    return int(result) if isinstance(result, int) else 0
