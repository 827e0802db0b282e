"""``discreet demo``: a whole release on synthetic patients, command by command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where the files go.")] = Path("demo"),
    people: Annotated[int, typer.Option(metavar="N", help="How many patients to draw.")] = 5000,
) -> None:
    """See a release from beginning to end, on synthetic patients.

    Every command is printed as you would type it. Running it again replaces
    its own files, and never others.

    \b
    [bold]Example[/bold]
      discreet demo --directory /tmp/demo
    """
    from ..demo import play
    from .app import app, run

    commands = [command.name or "" for command in app.registered_commands]
    code = play(directory, people, run, commands)
    if code:
        raise typer.Exit(code)
