"""``discreet evaluate``: releases beside the rows, for the curator's eyes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from . import choices, options, places, rows
from .console import note, progress, say, say_json
from .failures import WrongUse
from .query import open_release

if TYPE_CHECKING:
    from ..domain import Domain
    from ..evaluate.evaluation import Evaluation
    from ..models.base import Model
    from ..release import Release
    from ..tables.base import Table
    from ..tables.windows import Windows

_UNKNOWN_WINDOWS = (
    "a chain is compared with windows, and this one does not say how they were cut, as it was learned in Python: "
    "evaluate it there, evaluate(windows(…), {name: model}) of discreet.evaluate, or give a file of windows"
)
_MODELS = (".zip", ".bif", ".uai")
PAGE = Path("evaluation.html")


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|SYNTHETIC.csv… DATA",
            help="Released models, files of synthetic records of any origin; and last the private rows.",
        ),
    ],
    schema: options.OptionalSchema = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help=f"Where the page goes; default: {PAGE}."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="Train a classifier of this column. Repeat it for more; default: three that depend most on others.",
        ),
    ] = None,
    triples: Annotated[int, typer.Option(metavar="N", help="How many triples of columns are compared.")] = 500,
    no_classifiers: Annotated[bool, typer.Option("--no-classifiers", help="Train none; quicker.")] = False,
    engine: options.EngineName = None,
    *,
    text: options.Text,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """See how good releases are, beside the rows themselves. For the curator's eyes: NOT to be published.

    Rows are looked at without protection, nothing is charged, and nothing is
    released. One page shows columns, pairs, triples, correlations, means and
    quantiles, and classifiers that are trained on synthetic records and tested
    on rows; --json has every figure, under the names of SDMetrics and SDNist
    where they mean the same. `discreet certify` buys figures that can be
    published.

    \b
    [bold]Examples[/bold]
      discreet evaluate model.zip patients.csv --schema schema.toml
      discreet evaluate a.zip b.zip other.csv patients.csv \\
          --schema schema.toml --target lung -o evaluation.html
    """
    from ..evaluate import evaluate as compare

    *compared, data = files
    if not compared:
        raise WrongUse(
            "name what is to be evaluated and, last, the private rows: discreet evaluate model.zip patients.csv"
        )
    if triples < 0:
        raise WrongUse(f"--triples is a whole number of at least 0, got {triples}")
    if data.suffix.lower() == ".zip":
        raise WrongUse(f"the last file holds the private rows, and {data} looks like a model; put the rows last")
    options.check_engine(engine)
    page = output or (None if as_json else PAGE)
    if page is not None:
        if page.suffix.lower() not in (".html", ".htm"):
            raise WrongUse(f"the evaluation is a page, so its name ends in .html; got {page}")
        places.writable(page, force=force)
    opened = {path: open_release(str(path)) for path in compared if _is_model(path)}
    models = {path: release.model for path, release in opened.items()}
    windows = _windows(opened, schema, engine)
    domain = windows.domain if windows is not None else _domain(schema, models)
    where = engine or "auto"
    try:
        rows.check_rows(data, text, domain, None, where, windows)
    except InputError as error:
        if windows is None and any(release.spec and release.spec.family == "chain" for release in opened.values()):
            raise InputError(f"{error}; {_UNKNOWN_WINDOWS}") from None
        raise
    releases: dict[str, Model | Table] = {}
    names = dict(zip(compared, _names(compared), strict=True))
    for path, name in names.items():
        if path in models:
            releases[name] = models[path]
        else:
            rows.check_rows(path, options.Text(), domain, None, "auto")
            releases[name] = rows.open_rows(path, options.Text(), domain, None, "auto")
    with progress():
        table = rows.open_rows(data, text, domain, None, where, windows)
        found = compare(table, releases, targets=target or (), triples=triples, classifiers=not no_classifiers)
    found = replace(found, notes=(*found.notes, *_beside_certificates(found, names, opened)))
    if page is not None:
        from ..evaluate.page import evaluation_html
        from ..report.pages import write_report

        write_report(page, evaluation_html(found))
    if as_json:
        say_json({**found.to_dict(), "page": None if page is None else str(page)})
        return
    for line in found.lines():
        say(line)
    if windows is not None:
        say("A row is a window here; all windows of a person were counted, also where the release counted fewer.")
    say(f"Wrote {page}: open it in a browser.")
    note(f"{page} must not be published: it shows private rows without protection.")


def _beside_certificates(found: Evaluation, names: dict[Path, str], opened: dict[Path, Release]) -> list[str]:
    """Where a release's own certificate calls it something else than the rows do: why."""
    out = []
    for path, release in opened.items():
        certificate, here = release.certificate, found.verdict(found[names[path]])
        if certificate is None or certificate.verdict == here:
            continue
        tables = " It compares the tables that were asked for; here all pairs are." if certificate.workload else ""
        out.append(
            f"{names[path]} is {here} here and {certificate.verdict} by its certificate: they measure different "
            "things. That one sees the rows through noise: it says what is certain at 95 %, and of independent columns "
            f"it knows only how far the model is from them. Here the rows themselves were looked at.{tables}"
        )
    return out


def _is_model(path: Path) -> bool:
    return path.suffix.lower() in _MODELS or not (path.suffix or path.exists())


def _windows(releases: dict[Path, Release], schema: Path | None, engine: str | None) -> Windows | None:
    """How the rows are cut, where releases were learned from windows of them. All windows of a person count."""
    if not releases:
        return None
    first, *others = (choices.windows_again(path, release, schema, engine) for path, release in releases.items())
    if any(other != first for other in others):
        raise InputError(
            "these releases were not learned from rows that were cut into windows alike, so that they cannot be "
            "compared with the same ones; evaluate them one at a time"
        )
    return first


def _domain(schema: Path | None, models: dict[Path, Model]) -> Domain:
    from ..schema import load_schema

    said = None if schema is None else load_schema(schema)
    if said is not None and not said.sought:
        return said
    if not models:
        raise InputError(
            f"the schema {schema} leaves bins or levels to be found: name a released model too, which brings what "
            "was found, or a schema that lists them"
            if said is not None
            else "there is no schema that says what the levels of all columns are: give --schema FILE (a released "
            "model brings its own, also where levels or bins were found privately)"
        )
    return next(iter(models.values())).domain


def _names(paths: list[Path]) -> list[str]:
    """What each is called on the page: the name of its file, with its folder where two are alike."""
    short = [path.name for path in paths]
    names = [str(path) if short.count(path.name) > 1 else path.name for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise WrongUse(f"{name} is named twice; once is enough")
    return names
