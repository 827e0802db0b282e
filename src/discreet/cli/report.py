"""``discreet report`` and ``discreet explore``: a release to look at."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from . import options, places
from .console import note, progress, say, say_json
from .failures import WrongUse
from .query import NoIntervals, affordable_intervals, open_release

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.zip", help="A released model, as `discreet fit` writes it.")]


def report(
    model: ModelFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.html", help="Where the page goes.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option("--title", help="The heading of the page.")] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="a,b", help="Show the table of two columns; default: the strongest edges."),
    ] = None,
    card: Annotated[
        Path | None, typer.Option("--card", metavar="FILE.yaml", help="Write the release card beside it, too.")
    ] = None,
    level: options.Level = 0.9,
    most_seconds: options.MostSeconds = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a page about a released model: one HTML file that needs no network.

    It says what is guaranteed, where the budget went and what is not
    protected, and shows the graph, the columns and the strongest pairs with
    how far noise can have moved them. It costs no budget.

    \b
    [bold]Examples[/bold]
      discreet report model.zip
      discreet report model.zip -o page.html --pair smoke,lung --card card.yaml
    """
    from ..io.atomic import write_atomically
    from ..release import Release
    from ..report.card import card_yaml
    from ..report.page import report_html
    from ..report.pages import write_report

    options.check_level(level)
    if output.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"a report is a page, so its name ends in .html; got {output}")
    for path in (output, card):
        if path is not None:
            places.writable(path, force=force)
    release = Release.load(model, options.limits_from(most_seconds))
    chosen = None if pairs is None else [_pair(release.model.domain, text) for text in pairs]
    text = card_yaml(release)
    intervals = affordable_intervals(release, level)
    with progress():
        html = report_html(
            release.model,
            card_text=text,
            intervals=intervals,
            measurements=release.measurements,
            pairs=chosen,
            title=title,
            file=model.name,
            graph_was_found=release.graph_was_found,
            spec=release.spec,
        )
    write_report(output, html)
    if card is not None:
        write_atomically(card, [text.encode()])
    if as_json:
        say_json(
            {"report": str(output), "card": None if card is None else str(card), "intervals": intervals is not None}
        )
        return
    say(f"Wrote {output}: open it in a browser." + (f" The card is in {card}." if card is not None else ""))
    if intervals is None:
        note("It has no noise intervals.")


def explore(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file (.zip, .bif, .uai), or asia, alarm, …")],
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    no_intervals: NoIntervals = False,
    as_json: options.Json = False,
) -> None:
    """Open a page on this machine to explore a model: click what is given, see the rest move.

    Only this machine can reach it (127.0.0.1), and only with the random token
    in its address. It holds the model and nothing else: no private rows can be
    loaded there. Where the file holds the noisy tables behind the model, numbers
    come with ±. Ctrl-C ends it.

    \b
    [bold]Examples[/bold]
      discreet explore model.zip
      discreet explore asia --no-open
    """
    from ..report.explore import Explorer

    release = open_release(model)
    intervals = None if no_intervals else affordable_intervals(release)
    explorer = Explorer(release.model, intervals=intervals, port=port)
    if as_json:
        say_json({"address": explorer.address})
        sys.stdout.flush()  # whoever reads it waits for the page, not for its end
    else:
        say(f"Explore {model} at {explorer.address}")
    note("Only this machine can open it. Ctrl-C ends it.")
    if open_page:
        webbrowser.open(explorer.address)
    try:
        explorer.serve()
    except KeyboardInterrupt:
        note("Ended.")
    finally:
        explorer.close()


def _pair(domain: object, text: str) -> tuple[str, str]:
    from ..domain import Domain

    assert isinstance(domain, Domain)
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise WrongUse(f"--pair names two columns with a comma between them, as in --pair smoke,lung; got {text!r}")
    try:
        first, second = (domain[name].name for name in names)
    except InputError as error:
        raise WrongUse(f"--pair {text}: {error}") from None
    return first, second
