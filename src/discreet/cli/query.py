"""``discreet query``: ask a model, in the same words as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .console import say, say_json


def query(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file (.zip, .bif, .uai), or asia, alarm, …")],
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION…", help="P(a, b | c=yes) or MAP(a | b=no).")],
    as_json: options.Json = False,
) -> None:
    """Ask a model: probabilities, conditional probabilities, most probable values.

    Names and levels with odd characters go into quotes. Nothing private is
    involved: a model is asked, not the rows it was learned from.

    \b
    [bold]Examples[/bold]
      discreet query model.zip "P(lung, bronc | smoke=yes)"
      discreet query asia "P(dysp=yes)" "MAP(lung, tub | xray=yes)"
    """
    asked = _model(model)
    answers = [asked.ask(question) for question in questions]
    if as_json:
        say_json([answer.to_dict() for answer in answers])
        return
    for answer in answers:
        say(str(answer))


def _model(name: str) -> Any:
    from .. import networks
    from ..io.interchange import open_model

    return networks.load(name) if name in networks.names() and not Path(name).exists() else open_model(name)
