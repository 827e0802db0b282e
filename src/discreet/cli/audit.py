"""``discreet audit``: all audits of what a fit would do, on the user's own schema, with synthetic rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .choices import line_of, merged
from .console import progress, say, say_json
from .failures import Exit, WrongUse

if TYPE_CHECKING:
    from ..privacy.curator import Curator


def audit(
    wanted: options.Wanted,
    table: options.Tables = [],  # noqa: B006 - typer reads the default, nobody changes it
    run: options.RunFile = None,
    pairs: Annotated[int, typer.Option(metavar="N", help="Neighbouring pairs of synthetic tables to try.")] = 50,
    draws: Annotated[int, typer.Option(metavar="N", help="How often each draw is made for either neighbour.")] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the synthetic rows; noise is never seeded.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Try to catch a privacy bug in what a fit would do, on synthetic rows.

    Takes the options of `discreet fit`, and audits the learner that they
    choose; with --table, the release of these tables. No private data are
    read. Exit code 1 when an audit fails: then do not release anything, and
    report it.

    \b
    [bold]Examples[/bold]
      discreet audit --schema schema.toml --epsilon 1
      discreet audit --schema schema.toml --epsilon 1 --delta 1e-6 \\
          --graph "smoke -> lung" --pairs 500 --draws 20000
      discreet audit --schema schema.toml --table smoke,lung --epsilon 1
    """
    from ..audit import releasing_tables, run_configuration
    from .prepared import prepare

    if pairs < 1 or draws < 100:
        raise WrongUse(f"--pairs must be at least 1 and --draws at least 100, got {pairs} and {draws}")
    said = merged(run, line_of(wanted, **({} if wanted.epsilon or wanted.rho or run else {"epsilon": "1"})))
    prepared = prepare(said)
    domain, procedure = prepared.domain, prepared.procedure

    def learn(curator: Curator) -> object:
        learned = prepared.spec.learn(curator, prepared.totals)
        sums = learned.measurements
        return learned.model, [] if sums is None else [m.counts for m in sums], curator.statement()

    release = releasing_tables(domain, options.cliques_from(domain, table)) if table else learn
    with progress():
        findings = run_configuration(
            domain,
            procedure.unit,
            procedure.budget,
            release,
            pairs=pairs,
            runs=draws,
            seed=seed,
            public_size=prepared.public_size,
        )
    failed = [f for f in findings if not f.passed]
    if as_json:
        say_json([{"name": f.name, "passed": f.passed, "detail": f.detail} for f in findings])
    else:
        say("tables" if table else f"{prepared.spec}")
        for finding in findings:
            say(str(finding))
        say(f"{len(findings) - len(failed)} of {len(findings)} audits passed.")
    if failed:
        raise typer.Exit(Exit.CHECK_FAILED)
