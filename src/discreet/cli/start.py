"""``discreet start``: a page on this machine that leads from a file of rows to a release."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .console import note, say, say_json
from .failures import WrongUse


def start(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA.csv", help="The private rows. Can be named on the page, too.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where the schema, the run file and the release go.")
    ] = Path("."),
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    as_json: options.Json = False,
) -> None:
    """Open a page on this machine that leads from a file of rows to a release.

    What is publicly known about the columns, whom to protect, the budget and
    what it buys, the plan, the fit, and what comes out of it. All that is said
    stands in schema.toml and run.toml, which `discreet fit --run run.toml`
    takes. Only this machine can reach the page (127.0.0.1), and only with the
    random token in its address. No row is read before you press the button
    that spends. Ctrl-C ends it.

    \b
    [bold]Examples[/bold]
      discreet start patients.csv
      discreet start --folder study --no-open
    """
    from .desk import Desk
    from .guide import Guide

    if not folder.is_dir():
        raise WrongUse(f"there is no folder {folder}; make it first, or name another with --folder")
    desk = Desk(folder)
    if data is not None:
        desk.say_data(data)
    guide = Guide(desk, port)
    if as_json:
        say_json({"address": guide.page.address, "folder": str(folder)})
        sys.stdout.flush()
    else:
        say(f"Start at {guide.page.address}")
    note(f"Only this machine can open it. What you say there stands in {desk.run} and {desk.schema}. Ctrl-C ends it.")
    if open_page:
        webbrowser.open(guide.page.address)
    guide.serve()
    note("Ended.")
