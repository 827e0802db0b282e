"""``discreet schema draft | check | show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .command import Command
from .console import note, say, say_json
from .failures import Exit

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="The schema: what is publicly known about the columns, in a file that a person can edit.",
)
SchemaArgument = Annotated[Path, typer.Argument(metavar="SCHEMA.toml", help="The schema file.")]


@app.command(cls=Command)
def draft(
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The schema file to write.")] = Path(
        "schema.toml"
    ),
    max_levels: Annotated[
        int, typer.Option(metavar="N", help="A column with more values than this keeps the most frequent ones.")
    ] = 30,
    delimiter: options.Delimiter = None,
    force: options.Force = False,
) -> None:
    """Write a first schema by looking at private rows, to be edited.

    Whatever was learned by looking is marked in the file, and in everything
    that is released under it.

    \b
    [bold]Example[/bold]
      discreet schema draft patients.csv -o schema.toml
    """
    from ..io.atomic import write_atomically
    from ..tables.delimited import open_delimited
    from ..tables.draft import draft_schema

    options.writable(output, force=force)
    drafted = draft_schema(open_delimited(data, delimiter), most_levels=max_levels)
    write_atomically(output, [drafted.text().encode("utf-8")])
    say(f"Wrote a draft of {len(drafted.domain)} columns to {output}.")
    for name, reason in drafted.left_out.items():
        say(f"Left out: {name} ({reason}).")
    note(
        "WARNING: this draft was made by looking at private data, and nothing in it is protected: its levels, edges "
        "and missing levels come from real rows. Do not publish it. Open it, replace what is marked as peeked by "
        "what is publicly known (a code book, a questionnaire), and delete the marks. What stays marked is named in "
        "every release."
    )


@app.command(cls=Command)
def check(
    data: options.Data,
    schema: SchemaArgument,
    counts: Annotated[bool, typer.Option("--counts", help="Also say in how many rows. Exact, for you alone.")] = False,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Which rules of the schema do the rows break? For the curator only.

    This is outside the guarantee. It names columns and rules, never a value.
    Exit code 1 when something is off.

    \b
    [bold]Example[/bold]
      discreet schema check patients.csv schema.toml
    """
    from ..schema import load_schema
    from ..tables.delimited import open_delimited
    from ..tables.draft import check_rows

    if not as_json:
        say("For the curator only: this looks at the private rows, outside the guarantee. Do not publish what it says.")
    domain = load_schema(schema)
    file = open_delimited(data, delimiter)
    problems = check_rows(file, domain)
    unused = [name for name in file.names if name not in domain]
    if as_json:
        found = [{"column": p.column, "rule": p.rule, **({"rows": p.rows} if counts else {})} for p in problems]
        say_json({"outside_the_guarantee": True, "problems": found, "columns_without_schema": len(unused)})
    else:
        for p in problems:
            where = "the file" if p.column is None else f"column {p.column!r}"
            say(f"{where}: {p.rule}" + (f" [{p.rows:,} rows]" if counts and p.rows else ""))
        if unused:
            say(f"{len(unused)} columns of the file are not in the schema; they are never read.")
        say("Something is off: see above." if problems else f"All rows fit the {len(domain)} columns of {schema}.")
    if problems:
        raise typer.Exit(Exit.CHECK_FAILED)


@app.command(cls=Command)
def show(schema: SchemaArgument, as_json: options.Json = False) -> None:
    """The columns of a schema, their levels, and what was peeked at.

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
    size = domain.size()
    say()
    say(f"{len(domain)} columns, {size:,} cells in all." if size < 10**15 else f"{len(domain)} columns.")
    for line in views.peeked_lines(domain.peeked):
        say(line)
