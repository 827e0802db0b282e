"""``discreet show``: looking at a released file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CostError, FileFormatError, InputError, counted
from . import kept, options, places
from .console import say, say_json, say_table, waiting
from .failures import WrongUse

if TYPE_CHECKING:
    from ..release import Release

NAMES = {
    "measurements": "a file of released tables",
    "bayesian": "a Bayesian network",
    "ising": "an Ising model",
    "pairwise": "a pairwise model",
    "binary": "a binary Markov random field",
    "markov": "a Markov random field",
    "grouped": "a Markov random field",
}
_CARD = {"name": "Name", "origin": "Origin", "license": "Licence", "reference": "Reference", "changes": "Changed"}
_MOST_EDGES, _MOST_REASONS = 12, 12
_PATIENCE_SECONDS = 5.0
ReleasedFile = Annotated[Path, typer.Argument(metavar="FILE", help="A released file of tables, or a model.")]


def show(
    file: ReleasedFile,
    level: options.Level = 0.9,
    all_cells: options.All = False,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write the tables to a file for spreadsheets instead.")
    ] = None,
    card_file: Annotated[
        Path | None, typer.Option("--card", metavar="FILE.yaml", help="Write the release card of a model.")
    ] = None,
    safe_csv: options.SafeCsv = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Print a released file in words: what is in it, and what it guarantees.

    --csv writes a line for each cell: the table, the labels (a column for each
    column of the tables), count, lower and upper.

    \b
    [bold]Examples[/bold]
      discreet show model.zip
      discreet show tables.zip --csv tables.csv
      discreet show model.zip --card card.yaml
    """
    from ..measurement import Measurements
    from . import views

    options.check_level(level)
    kind = kind_of(file)
    if kind != "measurements":
        if csv_file is not None:
            raise WrongUse(f"{file} holds a model and no tables, so there is nothing for --csv to write")
        _show_model(file, card_file, force=force, as_json=as_json)
        return
    if card_file is not None:
        raise WrongUse(f"{file} holds tables and no model; --card writes the release card of a model")
    released = Measurements.load(file)
    statement = statement_of(file, released.release)
    if csv_file is not None:
        from .spreadsheet import write_tables

        places.writable(csv_file, force=force)
        cells = write_tables(released, level, csv_file, safe=safe_csv)
    if as_json:
        tables = [views.measurement_json(m, level) for m in released]
        say_json({"tables": tables, "release": dict(released.release), "statement": statement})
        return
    views.say_lines(statement)
    if csv_file is not None:
        intervals = f"lower and upper are {views.percent(level)} intervals"
        say(f"Wrote {counted(len(released), 'table')}, {counted(cells, 'cell')}, to {csv_file}; {intervals}.")
        return
    views.show_measurements(released, level, everything=all_cells)


def kind_of(file: Path) -> str:
    from ..io.archive import read_kind

    if file.is_dir():
        raise FileFormatError(f"{file} is a folder; name a released file")
    if not file.exists():
        raise FileFormatError(f"there is no file {file}")
    return read_kind(file)


def statement_of(file: Path, release: Any) -> list[str]:
    from ..errors import DiscreetError
    from . import views

    try:
        return views.statement_lines(release)
    except (KeyError, TypeError, ValueError, AttributeError, DiscreetError):
        raise FileFormatError(f"{file} carries no well-formed statement of what it guarantees") from None


def _show_model(file: Path, card_file: Path | None, *, force: bool, as_json: bool) -> None:
    from ..io.atomic import write_atomically
    from ..release import Release
    from ..report.card import card_yaml
    from ..report.reasons import as_data, reasons
    from . import views

    release = Release.load(file)
    model = release.model
    if card_file is not None:
        text = card_yaml(release)  # refuses what is no release
        places.writable(card_file, force=force)
        write_atomically(card_file, [text.encode()])
    if as_json:
        spec = None if release.spec is None else release.spec.to_dict()
        why = as_data(reasons(model.card or {}, release.measurements))
        beside = {"why": why, "spec": spec, "run": dict(release.run), "has_intervals": release.has_intervals}
        beside["certificate"] = None if release.certificate is None else release.certificate.summary()
        edges = [list(edge) for edge in model.edges]
        say_json({"kind": model.kind, "domain": model.domain.to_dict(), "edges": edges, "card": model.card, **beside})
        return
    size = f"{counted(len(model.domain), 'column')} and {counted(len(model.edges), 'edge')}"
    say(f"{file}: {NAMES.get(model.kind, 'a model')} of {size}")
    views.say_lines(about_model(file, model.card))
    views.say_lines(_about_release(release))
    _say_why(release)
    views.show_domain(model.domain)


def _about_release(release: Release) -> list[str]:
    """What the file holds beside the model, and the graph in words."""
    from ..report import words

    model = release.model
    lines = []
    if release.spec is not None:
        lines.append(f"Learned as {release.spec}.")
    lines += words.how_good(model.card or {})
    if release.measurements is not None:
        tables = counted(len(release.measurements), "noisy table")
        lines.append(
            f"With it: {tables}, from which anybody can learn the model again and tell how far noise moved it."
        )
    if model.edges:
        arrow = " → " if model.directed else " – "
        shown = [arrow.join(edge) for edge in model.edges[:_MOST_EDGES]]
        more = f", … and {len(model.edges) - _MOST_EDGES} more" if len(model.edges) > _MOST_EDGES else ""
        lines.append(f"Edges: {', '.join(shown)}{more}.")
        lines += _doubtful(release)
    return lines


def _doubtful(release: Release) -> list[str]:
    """Edges that noise alone could have made, as the report has them; where that would take long it says so."""
    from ..release import DRAWS
    from ..report.page import doubtful_edges

    try:
        if not release.has_intervals:
            return []
        with waiting("fitting the model once more, to know how long its ± takes"):
            seconds = release.interval_seconds(DRAWS)
        if seconds > _PATIENCE_SECONDS:
            return ["Which edges noise alone could have made, `discreet report` says; it takes a while."]
        intervals = kept.intervals(release, 0.9, DRAWS, 0)
    except (InputError, CostError):
        return [
            "How far noise moved it cannot be told, as its parts do not fit together; `discreet verify` tells more."
        ]
    model = release.model
    found = doubtful_edges(model, model.edge_strength(), intervals)
    if not found:
        return ["All edges stand out from the noise."]
    named = [" – ".join(edge) for edge in sorted(found)]
    more = f", … and {len(named) - _MOST_EDGES} more" if len(named) > _MOST_EDGES else ""
    return [
        f"{len(found)} of {counted(len(model.edges), 'edge')}: noise alone could have made "
        f"{'it' if len(found) == 1 else 'them'}: {', '.join(named[:_MOST_EDGES])}{more}."
    ]


def _say_why(release: Release) -> None:
    """Which tables were worth their noise, and what they cost."""
    from ..report.reasons import in_columns, reasons, shown

    few, rest = shown(reasons(release.model.card or {}, release.measurements), _MOST_REASONS)
    if few:
        say("Why these tables were measured (in records; all in --json):")
        headings, rows = in_columns(few)
        say_table(headings, rows, right=headings[2:])
        say(rest)


def about_model(file: Path, card: Mapping[str, Any] | None) -> list[str]:
    """What a model's card says: its guarantee if it is a release, else what it is and where it comes from."""
    if card is not None and is_release(card):
        method = card.get("method")
        return [*statement_of(file, card), *([f"Method: {_one_line(method)}"] if isinstance(method, str) else [])]
    if card is None:
        return ["A model that is not a release: it carries no card, so nothing is known about where it comes from."]
    what = card.get("what")
    said = what if isinstance(what, str) else "its card holds no statement of privacy"
    lines = [f"A model that is not a release: {_one_line(said)}"]
    for key, title in _CARD.items():
        value = card.get(key)
        texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        lines += [f"{title}: {_one_line(text)}" for text in texts if isinstance(text, str)]
    return lines


def is_release(card: Mapping[str, Any] | None) -> bool:
    return card is not None and "budget" in card


def _one_line(text: str) -> str:
    return " ".join(text.split())
