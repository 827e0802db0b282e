"""``discreet audit``: the neighbour audits on the user's own schema and configuration, with synthetic rows."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .console import progress, say, say_json
from .failures import Exit, WrongUse


def audit(
    schema: options.SchemaFile,
    table: options.Tables = [],  # noqa: B006 - typer reads the default, nobody changes it
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    relation: options.Relation = "add-remove",
    unit_column: options.UnitColumn = None,
    max_rows: options.MaxRows = None,
    pairs: Annotated[int, typer.Option(metavar="N", help="Neighbouring pairs of synthetic tables to try.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the synthetic rows; noise is never seeded.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Try to catch a privacy bug with your own schema, on synthetic rows.

    No private data are read. Exit code 1 when an audit fails: then do not
    release anything, and report it.

    \b
    [bold]Example[/bold]
      discreet audit --schema schema.toml --table smoke,lung --epsilon 1
    """
    from ..audit import run_configuration
    from ..schema import load_schema

    if pairs < 1:
        raise WrongUse(f"--pairs must be at least 1, got {pairs}")
    budget = options.budget_from("1" if epsilon is None and rho is None else epsilon, delta, rho)
    unit = options.unit_from(relation, unit_column, max_rows)
    domain = load_schema(schema)
    cliques = options.cliques_from(domain, table) if table else None
    with progress():
        findings = run_configuration(domain, unit, budget, cliques, pairs=pairs, seed=seed)
    failed = [f for f in findings if not f.passed]
    if as_json:
        say_json([{"name": f.name, "passed": f.passed, "detail": f.detail} for f in findings])
    else:
        for finding in findings:
            say(str(finding))
        say(f"{len(findings) - len(failed)} of {len(findings)} audits passed.")
    if failed:
        raise typer.Exit(Exit.CHECK_FAILED)
