"""``discreet show`` and ``discreet verify``: looking at a released file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscreetError, FileFormatError, ForeignFileError, NotAReleaseError, counted
from . import options
from .console import progress, say, say_json
from .failures import Exit, WrongUse

if TYPE_CHECKING:
    from ..measurement import Measurements
    from ..release import Release

_NAMES = {
    "measurements": "a file of released tables",
    "bayesian": "a Bayesian network",
    "ising": "an Ising model",
    "pairwise": "a pairwise model",
    "binary": "a binary Markov random field",
    "markov": "a Markov random field",
}
_CARD = {"name": "Name", "origin": "Origin", "license": "Licence", "reference": "Reference", "changes": "Changed"}
_MOST_EDGES = 12
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
    kind = _kind(file)
    if kind != "measurements":
        if csv_file is not None:
            raise WrongUse(f"{file} holds a model and no tables, so there is nothing for --csv to write")
        _show_model(file, card_file, force=force, as_json=as_json)
        return
    if card_file is not None:
        raise WrongUse(f"{file} holds tables and no model; --card writes the release card of a model")
    released = Measurements.load(file)
    statement = _statement(file, released.release)
    if csv_file is not None:
        from .spreadsheet import write_tables

        options.writable(csv_file, force=force)
        cells = write_tables(released, level, csv_file)
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


def verify(
    file: ReleasedFile,
    no_refit: Annotated[bool, typer.Option("--no-refit", help="Do not learn the model again to compare.")] = False,
    as_json: options.Json = False,
) -> None:
    """Check a released file: is it whole, is nothing private in it, what does it guarantee?

    When the file holds the noisy tables behind a model, the model is learned
    again from them: if it comes out the same, there is nothing else in it. The
    checksum finds damage; it does not prove who wrote the file. Exit code 1
    when something is off, 4 when it is no file of ours at all.

    \b
    [bold]Example[/bold]
      discreet verify model.zip
    """
    if not file.is_file():
        raise FileFormatError(f"there is no file {file}" if not file.exists() else f"{file} is not a file")
    lines: list[str] = []
    problems: list[str] = []
    try:
        kind = _kind(file)
        lines.append(f"{file}: whole, the checksum holds; it is {_NAMES.get(kind, 'a file of another kind')}")
        if kind == "measurements":
            _verify_measurements(file, lines, problems)
        else:
            _verify_model(file, lines, problems, refit=not no_refit)
    except ForeignFileError:  # there is nothing to check
        raise
    except (FileFormatError, NotAReleaseError) as error:
        problems.append(str(error))
    except DiscreetError as error:
        problems.append(f"its parts do not fit together: {error}")
    if as_json:
        say_json({"verified": not problems, "problems": problems, "statement": lines})
    else:
        for line in lines:
            say(line)
        for problem in problems:
            say(f"PROBLEM: {problem}")
    if problems:
        raise typer.Exit(Exit.CHECK_FAILED)


def _kind(file: Path) -> str:
    from ..io.archive import read_archive

    if file.is_dir():
        raise FileFormatError(f"{file} is a folder; name a released file")
    if not file.exists():
        raise FileFormatError(f"there is no file {file}")
    header, _ = read_archive(file)
    return str(header.get("kind"))


def _statement(file: Path, release: Any) -> list[str]:
    from ..errors import DiscreetError
    from . import views

    try:
        return views.statement_lines(release)
    except (KeyError, TypeError, ValueError, AttributeError, DiscreetError):
        raise FileFormatError(f"{file} carries no well-formed statement of what it guarantees") from None


def _verify_measurements(file: Path, lines: list[str], problems: list[str]) -> None:
    from ..measurement import Measurements

    released = Measurements.load(file)
    if not released:
        problems.append("it holds no tables")
        return
    lines.append("Tables: " + ", ".join(m.label for m in released))
    _verify_tables(released, problems)
    lines.extend(_statement(file, released.release))
    _verify_statement(released.release, released.domain.peeked, problems)


def _verify_model(file: Path, lines: list[str], problems: list[str], *, refit: bool = True) -> None:
    from ..models.records import origin_of
    from ..release import Release

    release = Release.load(file)
    card = release.model.card
    lines.extend(_about_model(file, card))
    if not _is_release(card):
        if origin_of(card) != "public":
            problems.append(
                "it carries no statement of privacy and does not say that it is public knowledge; if it was learned "
                "from private records, it must not be published"
            )
        return
    _verify_statement(release.card, release.model.domain.peeked, problems)
    odd = sorted(set(release.run) & {"data", "ledger", "output"})
    problems += [f"it says where private files lie ({key})" for key in odd]
    if release.measurements is not None:
        _verify_tables(release.measurements, problems)
        mine, theirs = dict(release.card), dict(release.measurements.release)
        odd = [key for key in ("budget", "unit", "public_size", "peeked") if mine.get(key) != theirs.get(key)]
        problems += [f"its card and its noisy tables do not agree about the {key.replace('_', ' ')}" for key in odd]
    if release.again is not None and refit:
        with progress():
            agrees = release.refit_agrees()
        if agrees:
            searched = release.recipe is not None and release.recipe.method == "searched"
            found = " and from the graph that was chosen privately" if searched else ""
            lines.append(f"The model follows from the noisy tables in the file{found}: nothing else is in it.")
        else:
            problems.append("the model is not what its recipe makes of the noisy tables in the file")


def _verify_statement(card: Mapping[str, Any], peeked: Mapping[str, tuple[str, ...]], problems: list[str]) -> None:
    """Spent within the budget, and the schema's own marks."""
    from ..privacy.budget import Budget

    spent, budget = card.get("spent"), card["budget"]
    if spent is not None and not Budget.from_dict(dict(spent)) <= Budget.from_dict(dict(budget)):
        problems.append("it says that more was spent than its budget")
    if dict(card.get("peeked") or {}) != {k: list(v) for k, v in peeked.items()}:
        problems.append("its statement of what was peeked at does not agree with its schema")


def _verify_tables(released: Measurements, problems: list[str]) -> None:
    for m in released:
        if m.origin not in ("release", "public"):
            problems.append(f"the table {m.label} is {m.origin}: it carries no guarantee and must not be published")
        elif m.origin == "release" and (m.noise.kind == "none" or not m.noise.scale):
            problems.append(f"the table {m.label} is said to be a release, but has no noise")


def _show_model(file: Path, card_file: Path | None, *, force: bool, as_json: bool) -> None:
    from ..io.atomic import write_atomically
    from ..release import Release
    from ..report.card import card_yaml
    from . import views

    release = Release.load(file)
    model = release.model
    if card_file is not None:
        text = card_yaml(release)  # refuses what is no release
        options.writable(card_file, force=force)
        write_atomically(card_file, [text.encode()])
    if as_json:
        recipe = None if release.recipe is None else release.recipe.to_dict()
        beside = {"recipe": recipe, "run": dict(release.run), "has_intervals": release.has_intervals}
        edges = [list(edge) for edge in model.edges]
        say_json({"kind": model.kind, "domain": model.domain.to_dict(), "edges": edges, "card": model.card, **beside})
        return
    size = f"{counted(len(model.domain), 'column')} and {counted(len(model.edges), 'edge')}"
    say(f"{file}: {_NAMES.get(model.kind, 'a model')} of {size}")
    views.say_lines(_about_model(file, model.card))
    views.say_lines(_about_release(release))
    views.show_domain(model.domain)


def _about_release(release: Release) -> list[str]:
    """What the file holds beside the model, and the graph in words."""
    model = release.model
    lines = []
    if release.recipe is not None:
        lines.append(f"Learned as {release.recipe}.")
    if caution := (release.model.card or {}).get("caution"):
        lines.append(f"Beware: {caution}.")
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
    return lines


def _about_model(file: Path, card: Mapping[str, Any] | None) -> list[str]:
    """What a model's card says: its guarantee if it is a release, else what it is and where it comes from."""
    if card is not None and _is_release(card):
        method = card.get("method")
        return [*_statement(file, card), *([f"Method: {_one_line(method)}"] if isinstance(method, str) else [])]
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


def _is_release(card: Mapping[str, Any] | None) -> bool:
    return card is not None and "budget" in card


def _one_line(text: str) -> str:
    return " ".join(text.split())
