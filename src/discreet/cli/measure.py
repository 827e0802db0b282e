"""``discreet measure``: the smallest end-to-end release. The plan is shown before a row is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscreetError, counted
from . import options, rows
from .console import note, progress, say, say_json
from .failures import Interrupted, WrongUse
from .money import open_ledger, remark_before, what_was_spent

if TYPE_CHECKING:
    from ..measurement import Measurements
    from ..privacy.budget import Budget
    from ..privacy.curator import Curator


def measure(
    data: options.Data,
    schema: options.SchemaFile,
    table: options.Tables,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    relation: options.Relation = "add-remove",
    unit_column: options.UnitColumn = None,
    max_rows: options.MaxRows = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the spend is written down; see `discreet ledger create`.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the release, a file to publish.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="2,1", help="How the budget is divided over the tables; default: equally.")
    ] = None,
    noise: Annotated[
        str, typer.Option(metavar="auto|laplace|gaussian", help="The kind of noise; auto takes the smaller error.")
    ] = "auto",
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan and stop. The data are not opened.")] = False,
    purpose: Annotated[str, typer.Option(metavar="WORD", help="A word for the ledger. It is public.")] = "measure",
    delimiter: options.Delimiter = None,
    row_is_line: options.RowIsLine = None,
    level: options.Level = 0.9,
    all_cells: options.All = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Release contingency tables with noise, and pay for them.

    ε is always the total: it pays for everything that this command releases.
    The plan (where the budget goes, how large the errors will be) is shown
    before a row is read; --plan stops there.

    With --unit-column, whoever it names is protected with all their rows, of
    which --max-rows count. Rows beyond that are missing from the counts, and
    the intervals do not cover them: they are for the noise alone.

    \b
    [bold]Examples[/bold]
      discreet measure patients.csv --schema schema.toml \\
          --table smoke,lung --epsilon 1 --plan
      discreet measure patients.csv --schema schema.toml \\
          --table smoke,lung --table xray --epsilon 1 \\
          --ledger ledger.db -o tables.zip
      discreet measure visits.csv --schema schema.toml --table ward \\
          --rho 0.1 --unit-column patient --max-rows 5 --ledger ledger.db
    """
    from ..learn.zeros import without_impossible
    from ..privacy.calibration import plan_noise
    from ..privacy.query import Marginals
    from ..schema import load_schema
    from . import views

    # Everything public first: whatever is wrong is found before a row is read and before anything is spent.
    options.check_level(level)
    budget = options.budget_from(epsilon, delta, rho)
    unit = options.unit_from(relation, unit_column, max_rows)
    domain = load_schema(schema)
    cliques = options.cliques_from(domain, table)
    domain = domain.project(name for name in domain.names if any(name in clique for clique in cliques))
    query = Marginals(domain, cliques)
    shares = _weights(weights, len(cliques))
    options.check_noise(noise, budget)
    chosen = plan_noise(query, unit, budget, noise=noise, weights=shares)  # type: ignore[arg-type]
    account = open_ledger(ledger)
    sign = None
    if account is not None:
        options.check_ledger_notion(account.total, budget)
        account.check(budget, unit)
        sign = account.signer
    if output is not None:
        options.writable(output, force=force)
    if not plan:
        rows.check_rows(data, rows.Text(delimiter, row_is_line), domain, unit_column, "auto")
    planned_rows = views.plan_rows(query, chosen, shares, level)
    planned = {"budget": budget.to_dict(), "unit": unit.to_dict(), "tables": planned_rows, "seconds": chosen.seconds}
    if not as_json:
        views.show_plan(planned_rows, budget, unit, chosen.seconds, level)
    remark_before(budget, domain.peeked)
    if plan:
        if as_json:
            say_json({"plan": planned})
        return

    from ..privacy.curator import Curator

    curator: Curator | None = None
    released: Measurements | None = None
    try:
        with progress():
            rows_of_file = rows.open_rows(data, rows.Text(delimiter, row_is_line), domain, unit_column, "auto")
            with Curator(rows_of_file, unit, budget, account, purpose=purpose) as curator:
                released = curator.measure(query, noise=noise, weights=shares)  # type: ignore[arg-type]
        released = without_impossible(released, domain)  # zeros that the schema declares; post-processing
        if output is not None:
            released.save(output, sign=sign)
        _show(released, budget, planned, output, level, all_cells, as_json)
        _remark(ledger, output)
    except KeyboardInterrupt:  # wherever it comes, also while the tables are printed
        raise Interrupted(what_was_spent(curator, account)) from None
    except (DiscreetError, OSError):
        if released is not None:  # paid for, and the file could not be written: at least it must be seen
            views.show_measurements(released, level, everything=True)
        raise
    finally:
        if account is not None:
            account.close()


def _show(
    released: Measurements,
    budget: Budget,
    planned: Any,
    output: Path | None,
    level: float,
    everything: bool,
    as_json: bool,
) -> None:
    from . import views

    if as_json:
        tables = [views.measurement_json(m, level) for m in released]
        saved = None if output is None else str(output)
        statement = views.statement_lines(released.release)
        release = dict(released.release)
        say_json({"plan": planned, "tables": tables, "release": release, "statement": statement, "file": saved})
        return
    views.show_measurements(released, level, everything=everything)
    say()
    views.say_lines(views.statement_lines(released.release))
    if output is not None:
        doubtful = released.release.get("peeked") or options.weak_protection(budget)
        say(f"Saved in {output}; `discreet show {output}` prints it{'' if doubtful else ', and it can be published'}.")


def _weights(text: str | None, tables: int) -> list[str] | None:
    from ..privacy.budget import exact, shares

    if text is None:
        return None
    weights = [w.strip() for w in text.split(",")]
    if len(weights) != tables:
        raise WrongUse(
            f"--weights {text} has {counted(len(weights), 'number')} for {counted(tables, 'table')}; give one for each"
        )
    try:
        shares(exact(1, "total"), weights)
        if any(exact(w, "a weight") == 0 for w in weights):
            raise WrongUse(f"--weights {text}: a table with weight zero would be all noise; leave the table out")
    except DiscreetError as error:
        raise WrongUse(str(error)) from None
    return weights


def _remark(ledger: Path | None, output: Path | None) -> None:
    if ledger is None:
        note("Remark: no ledger was given, so nothing remembers this spend; --ledger FILE adds up what is released.")
    if output is None:
        note("Remark: the release was not saved; -o FILE does, and what is asked again is paid again.")
