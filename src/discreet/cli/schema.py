"""``discreet schema draft | import | check | show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import FileFormatError, counted
from . import options, places, rows
from .command import Commands
from .console import note, say, say_json
from .failures import Exit, WrongUse

if TYPE_CHECKING:
    from ..tables.check import Examination, Problem

app = Commands(
    help="The schema: what is publicly known about the columns, in a file that a person can edit; see docs/schema.md.",
)
SchemaArgument = Annotated[Path, typer.Argument(metavar="SCHEMA.toml", help="The schema file.")]


@app.add
def draft(
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The schema file to write.")] = Path(
        "schema.toml"
    ),
    max_levels: Annotated[
        int, typer.Option(metavar="N", help="A column with more values than this keeps the most frequent ones.")
    ] = 30,
    private: Annotated[
        bool,
        typer.Option("--private", help="Write kinds only, and leave bins, ranges and levels to be found privately."),
    ] = False,
    *,
    text: options.Text,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a first schema by looking at private rows, to be edited.

    Whatever was learned by looking is marked in the file, and in everything
    that is released under it. With --private nothing but the kind of each
    column is looked at, and a fit finds the rest privately, within its
    budget: take that unless you will write public knowledge into the file.
    docs/schema.md explains the file, key by key.

    \b
    [bold]Examples[/bold]
      discreet schema draft patients.csv --private -o schema.toml
      discreet schema draft patients.csv -o schema.toml
    """
    from ..io.atomic import write_atomically
    from ..tables.draft import draft_schema

    places.writable(output, force=force)
    drafted = draft_schema(rows.open_one(data, text), most_levels=max_levels, private=private)
    write_atomically(output, [drafted.text().encode("utf-8")])
    if as_json:
        domain = drafted.domain
        beside = {"peeked": domain.peeked, "left_out": drafted.left_out}
        say_json({"file": str(output), "columns": list(domain.names), **beside, "outside_the_guarantee": True})
    else:
        say(f"Wrote a draft of {counted(len(drafted.domain), 'column')} to {output}.")
        for name, reason in drafted.left_out.items():
            say(f"Left out: {name} ({reason}).")
    if private:
        note(
            "Bins, ranges and levels are left to be found privately, which `discreet fit` pays for; levels need a "
            "--delta. What kind of values a column has, and which columns are left out, was seen in the rows, outside "
            "the guarantee: go through the file, so that it says what you know."
        )
        return
    note(
        "WARNING: this draft was made by looking at private data, and nothing in it is protected: its levels, edges "
        "and missing levels come from real rows. Do not publish it. Open it, replace what is marked as peeked by "
        "what is publicly known (a code book, a questionnaire), and delete the marks. What stays marked is named in "
        "every release."
    )


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.json", help="A table schema, a data package, SDV metadata, a domain of mbi, or dtypes."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The schema file to write.")] = Path(
        "schema.toml"
    ),
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Which table, where the file describes several.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a schema from public metadata, without looking at any row.

    Reads Frictionless table schemas and data packages, SDV metadata, domains
    of mbi ({"age": 85}: the codes 0 to 84), and a JSON object of columns and
    pandas dtypes. Levels and bounds that are not
    in there are left to be found privately, within the budget of a fit; the
    file says which.

    \b
    [bold]Examples[/bold]
      discreet schema import datapackage.json -o schema.toml
      discreet schema import metadata.json --table patients
    """
    from ..io.atomic import write_atomically
    from ..io.limits import DEFAULT_LIMITS
    from ..io.reading import read_text
    from ..io.strictjson import parse_json
    from ..metadata import import_schema

    places.writable(output, force=force)
    try:
        document = parse_json(read_text(file, DEFAULT_LIMITS).encode())
    except FileFormatError as error:
        raise FileFormatError(f"there are no metadata in {file}: {error}".replace("its header", "it")) from None
    made = import_schema(document, table)
    write_atomically(output, [made.text().encode("utf-8")])
    sought = [name for name in made.domain if made.domain[name].sought is not None]
    if as_json:
        columns = {"columns": list(made.domain.names), "found_privately": sought, "peeked": made.domain.peeked}
        say_json({"file": str(output), "source": made.source, **columns, "left_out": made.left_out})
        return
    say(f"Wrote {counted(len(made.domain), 'column')}, from {made.source}, to {output}.")
    if sought:
        say(f"To be found privately, as the metadata do not say: {', '.join(sought)}.")
    for name, reason in made.left_out.items():
        say(f"Left out: {name} ({reason}).")
    note(
        "No row was read. The metadata must be public knowledge themselves: what a program has found in the private "
        "rows is not. Go through the file."
    )


app.add(import_, "import")


@app.add
def check(
    data: options.Data,
    schema: Annotated[Path | None, typer.Argument(metavar="SCHEMA.toml", help="The schema file.")] = None,
    schema_option: Annotated[
        Path | None, typer.Option("--schema", metavar="FILE", help="The schema file, as other commands take it.")
    ] = None,
    unit_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Also look for rows that do not say whose they are.")
    ] = None,
    counts: Annotated[bool, typer.Option("--counts", help="Also say in how many rows. Exact, for you alone.")] = False,
    *,
    text: options.Text,
    as_json: options.Json = False,
) -> None:
    """Which rules of the schema do the rows break? For the curator only.

    This is outside the guarantee. It names columns and rules, never a value,
    and says what will become of such rows and values: not counted, or counted
    as which level. Exit code 1 when something is off.

    \b
    [bold]Examples[/bold]
      discreet schema check patients.csv schema.toml
      discreet schema check visits.csv --schema schema.toml \\
          --unit-column patient --counts
    """
    from ..schema import load_schema
    from ..tables.check import examine

    path = _one_schema(schema, schema_option)
    if not as_json:
        say("For the curator only: this looks at the private rows, outside the guarantee. Do not publish what it says.")
    domain = load_schema(path)
    file = rows.open_one(data, text)
    found = examine(file, domain, unit=unit_column)
    unused = [name for name in file.names if name not in domain and name != unit_column]
    if as_json:
        say_json(
            {
                "outside_the_guarantee": True,
                "problems": [_problem_json(p, counts) for p in found.problems],
                "remarks": [_problem_json(p, counts) for p in found.remarks if counts or p.near or p.many],
                "columns_without_schema": len(unused),
            }
        )
    else:
        _say_findings(found, counts)
        if unused:
            are, they = ("is", "it is") if len(unused) == 1 else ("are", "they are")
            say(f"{counted(len(unused), 'column')} of the file {are} not in the schema; {they} never read.")
        fits = f"All rows fit the {counted(len(domain), 'column')} of {path}."
        if any(p.many for p in found.remarks):
            fits = "Every row has a level, but many count as a level for others: see above."
        say("Something is off: see above." if found.problems else fits)
    if found.problems:
        raise typer.Exit(Exit.CHECK_FAILED)


def _one_schema(argument: Path | None, option: Path | None) -> Path:
    if argument is not None and option is not None and argument != option:
        raise WrongUse(f"the schema is given twice, as {argument} and as --schema {option}; keep one of them")
    path = argument or option
    if path is None:
        raise WrongUse("name the schema: `discreet schema check DATA.csv SCHEMA.toml`")
    return path


def _problem_json(problem: Problem, counts: bool) -> dict[str, Any]:
    exact = {"rows": problem.rows, "rows_but_for_spaces_or_case": problem.near} if counts else {}
    return {"column": problem.column, "rule": problem.rule, **exact}


def _say_findings(found: Examination, counts: bool) -> None:
    # What the schema foresees is worth a word when it is counted, or when it is probably a slip.
    remarks = [p for p in found.remarks if counts or p.near or p.many]
    for p in [*found.problems, *remarks]:
        where = "the file" if p.column is None else f"column {p.column!r}"
        near = "" if not p.near else f", {p.near:,} of them listed but for spaces or case"
        exact = f" [{counted(p.rows, 'row')}{near}]" if p.rows else ""
        slip = ", more than one row in twenty" if p.many else ""
        slip += " (some are listed but for spaces or case)" if p.near else ""
        say(f"{where}: {p.rule}" + (exact if counts else slip))
    if any(p.near for p in found.problems + remarks) or (counts and remarks):
        say('Spaces and case matter: " M " and "m" are not "M", unless the schema says strip or ignore_case = true.')


@app.add
def show(schema: SchemaArgument, as_json: options.Json = False) -> None:
    """The columns of a schema, their levels, and what was peeked at.

    Also where absent and unlisted values count. docs/schema.md explains the
    file, key by key.

    \b
    [bold]Example[/bold]
      discreet schema show schema.toml
    """
    from ..schema import load_schema
    from . import views

    domain = load_schema(schema)
    if as_json:
        say_json({**domain.to_dict(), "fingerprint": domain.fingerprint, "peeked": domain.peeked})
        return
    views.show_domain(domain)
    size = domain.forecast.size()
    say()
    up_to = "up to " if domain.sought else ""
    cells = f", {up_to}{counted(size, 'cell')} in all" if size < 10**15 else ""
    say(f"{counted(len(domain), 'column')}{cells}.")
    views.say_lines(views.peeked_lines(domain.peeked))
    if domain.peeked:
        say("Replace it by what is publicly known and delete the `peeked` marks, before anything is released under it.")
