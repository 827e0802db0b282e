"""``discreet demo``: a whole release on synthetic patients, command by command."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .console import say_json


def demo(
    context: typer.Context,
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where the files go.")] = Path("demo"),
    people: Annotated[int, typer.Option(metavar="N", help="How many patients to draw.")] = 5000,
    as_json: options.Json = False,
) -> None:
    """See a release from beginning to end, on synthetic patients.

    Every command is printed as you would type it. Running it again replaces
    its own files, and never others. With --json, what is printed goes to
    stderr, and the files, commands and answers to stdout.

    \b
    [bold]Example[/bold]
      discreet demo --directory /tmp/demo
    """
    from ..demo import play

    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        played = play(directory, people, context.find_root().obj)
    if played.code:
        raise typer.Exit(played.code)
    if as_json:
        say_json(played.to_dict(directory))
