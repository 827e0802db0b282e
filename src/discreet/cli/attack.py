"""``discreet attack``: try to tell who is in a release, beside what ε promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options, places, rows
from .choices import Choices, options_from
from .console import progress, say, say_json
from .failures import Exit, WrongUse
from .prepared import prepare

if TYPE_CHECKING:
    from ..domain import Domain

MOST_PUBLIC_ROWS = 5000


def attack(
    schema: options.SchemaFile,
    *,
    money: options.Money,
    protected: options.Unit,
    family: Annotated[
        str | None, typer.Option("--family", metavar="network|field|spin", help="What kind of model is learned.")
    ] = None,
    method: options.Method = None,
    graph: Annotated[
        str | None, typer.Option("--graph", metavar="FILE|'a -> b; b -> c'", help="The graph, if publicly known.")
    ] = None,
    cliques: Annotated[
        list[str] | None, typer.Option("--cliques", metavar="'a,b; b,c,d'", help="Groups of columns that interact.")
    ] = None,
    option: options.MethodOption = None,
    public_rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PUBLIC rows around the person, never private ones; default: synthetic."),
    ] = None,
    runs: Annotated[
        int, typer.Option(metavar="N", help="Releases with the person, and as many without; more see more.")
    ] = 300,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the synthetic rows; noise is never seeded.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="Also write a page with the plot.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """See what ε means: try to tell whether one person is in, as strongly as we can.

    Many releases are made as `discreet fit` would make them, of synthetic or
    public rows, with one person and without. An attacker who knows everything
    else says which is which: how often that is right stands beside what the
    budget promises, and what no protection would give. No private rows are
    read. Exit code 1 when the attack exceeds the promise: that is a bug.

    \b
    [bold]Examples[/bold]
      discreet attack --schema schema.toml --epsilon 1 --family network \\
          --graph "smoke -> lung" -o attack.html
      discreet attack --schema schema.toml --epsilon 2 --delta 1e-6
    """
    from ..audit.attack import attack_spec

    if runs < 40:
        raise WrongUse(f"--runs must be at least 40, or nothing can be shown; got {runs}")
    if output is not None:
        if output.suffix.lower() not in (".html", ".htm"):
            raise WrongUse(f"the attack is shown on a page, so its name ends in .html; got {output}")
        places.writable(output, force=force)
    said: dict[str, Any] = {**vars(money), **vars(protected), "schema": str(schema), "family": family, "graph": graph}
    choices = Choices(**said, method=method, cliques=cliques, options=options_from(option or []))
    prepared = prepare(choices)
    unit, budget = choices.unit(), choices.budget()
    crowd = None if public_rows is None else _public(public_rows, prepared.domain)
    with progress():
        found = attack_spec(prepared.spec, prepared.domain, unit, budget, rows=crowd, runs=runs, seed=seed)
    if output is not None:
        from ..audit.attack_page import attack_html
        from ..report.pages import write_report

        write_report(output, attack_html(found, str(prepared.spec), unit))
    if as_json:
        say_json({**found.to_dict(), "page": None if output is None else str(output)})
    else:
        for line in found.lines():
            say(line)
        if output is not None:
            say(f"Wrote {output}: open it in a browser.")
    if not found.passed:
        raise typer.Exit(Exit.CHECK_FAILED)


def _public(path: Path, domain: Domain) -> Any:
    """The codes of public rows."""
    import numpy as np

    rows.check_rows(path, options.Text(), domain, None, "auto")
    found = rows.open_rows(path, options.Text(), domain, None, "auto").count_sparse(domain.names)
    if sum(found.values()) > MOST_PUBLIC_ROWS:
        raise WrongUse(f"--public-rows: at most {MOST_PUBLIC_ROWS:,} rows, as many releases are made of them")
    cells = np.array(list(found), dtype=np.int64).reshape(len(found), len(domain))
    return np.repeat(cells, list(found.values()), axis=0)
