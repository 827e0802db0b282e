"""``discreet show`` and ``discreet verify``: looking at a released file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import FileFormatError
from . import options
from .console import say, say_json
from .failures import Exit

ReleasedFile = Annotated[Path, typer.Argument(metavar="FILE", help="A released file of tables, or a model.")]


def show(
    file: ReleasedFile, level: options.Level = 0.9, all_cells: options.All = False, as_json: options.Json = False
) -> None:
    """Print a released file: its tables with intervals, and what it guarantees.

    \b
    [bold]Example[/bold]
      discreet show tables.zip
    """
    from ..measurement import Measurements
    from . import views

    options.check_level(level)
    kind = _kind(file)
    if kind != "measurements":
        _show_model(file, as_json=as_json)
        return
    released = Measurements.load(file)
    if as_json:
        tables = [views.measurement_json(m, level) for m in released]
        say_json({"tables": tables, "release": dict(released.release)})
        return
    for line in _statement(file, released.release):
        say(line)
    views.show_measurements(released, level, everything=all_cells)


def verify(file: ReleasedFile, as_json: options.Json = False) -> None:
    """Check a released file: is it whole, and what does it guarantee?

    The checksum finds damage; it does not prove who wrote the file. Exit code
    1 when something is off.

    \b
    [bold]Example[/bold]
      discreet verify tables.zip
    """
    if not file.is_file():
        raise FileFormatError(f"there is no file {file}" if not file.exists() else f"{file} is not a file")
    lines: list[str] = []
    problems: list[str] = []
    try:
        kind = _kind(file)
        lines.append(f"{file}: whole, the checksum holds; it is a file of {kind}")
        (_verify_measurements if kind == "measurements" else _verify_model)(file, lines, problems)
    except FileFormatError as error:
        problems.append(str(error))
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
    from ..privacy.budget import Budget

    released = Measurements.load(file)
    if not released:
        problems.append("it holds no tables")
        return
    lines.append("Tables: " + ", ".join(m.label for m in released))
    for m in released:
        if m.origin not in ("release", "public"):
            problems.append(f"the table {m.label} is {m.origin}: it carries no guarantee and must not be published")
        elif m.origin == "release" and not m.noise.variance:
            problems.append(f"the table {m.label} is said to be a release, but has no noise")
    lines.extend(_statement(file, released.release))
    spent, budget = released.release.get("spent"), released.release["budget"]
    if spent is not None and not Budget.from_dict(dict(spent)) <= Budget.from_dict(dict(budget)):
        problems.append("it says that more was spent than its budget")
    if dict(released.release.get("peeked") or {}) != {k: list(v) for k, v in released.domain.peeked.items()}:
        problems.append("its statement of what was peeked at does not agree with its schema")


def _verify_model(file: Path, lines: list[str], problems: list[str]) -> None:
    from ..io.native import load_model

    model = load_model(file)
    if model.card is None or "budget" not in model.card:
        problems.append("it carries no statement of privacy, so it is not a release of private data")
        return
    lines.extend(_statement(file, model.card))


def _show_model(file: Path, *, as_json: bool) -> None:
    from ..io.native import load_model
    from . import views

    model = load_model(file)
    if as_json:
        say_json({"kind": model.kind, "domain": model.domain.to_dict(), "card": model.card})
        return
    say(f"{file}: a model ({model.kind}) of {len(model.domain)} columns and {len(model.edges)} edges")
    views.show_domain(model.domain)
