"""``discreet measure``: the smallest end-to-end release. The plan is shown before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .console import say, say_json
from .spending import Order, Work, spend

if TYPE_CHECKING:
    from ..learn.procedure import Procedure
    from ..measurement import Measurements


@dataclass(frozen=True)
class Spending(options.Spending):
    purpose: options.Purpose = "measure"


def measure(
    data: options.Data,
    schema: options.SchemaFile,
    table: options.Tables,
    *,
    money: options.Money,
    protected: options.Unit,
    weights: Annotated[
        str | None, typer.Option(metavar="2,1", help="How the budget is divided over the tables; default: equally.")
    ] = None,
    noise: Annotated[
        str, typer.Option(metavar="auto|laplace|gaussian", help="The kind of noise; auto takes the smaller error.")
    ] = "auto",
    level: options.Level = 0.9,
    all_cells: options.All = False,
    said: Spending,
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
    from ..learn.tables import Tables
    from ..schema import load_schema
    from . import views

    # Everything public first: whatever is wrong is found before a row is read and before anything is spent.
    options.check_level(level)
    budget, unit = money.budget(), protected.unit()
    domain = load_schema(schema)
    cliques = options.cliques_from(domain, table)
    domain = domain.project(name for name in domain.names if any(name in clique for clique in cliques))
    options.check_noise(noise, budget)
    learner = Tables(cliques, noise, None if weights is None else [w.strip() for w in weights.split(",")])  # type: ignore[arg-type]
    procedure = learner.plan(domain, unit, budget)

    def announce() -> None:
        if not said.as_json:
            views.show_plan("contingency tables", procedure)
        elif said.plan:
            say_json({"plan": procedure.to_dict()})

    def tell(released: Measurements) -> None:
        _show(released, procedure, said.output, level, all_cells, said.as_json)

    order = Order(procedure=procedure, data=data, inputs=(schema,), **vars(said))

    def make(released: Measurements) -> Measurements:
        return learner.estimate(released, domain)

    def show(released: Measurements) -> None:
        views.show_measurements(released, level, everything=True)

    spend(order, announce, Work(make, tell, "tables.zip", show=show))


def _show(
    released: Measurements,
    procedure: Procedure,
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
        plan = procedure.to_dict()
        say_json({"plan": plan, "tables": tables, "release": release, "statement": statement, "file": saved})
        return
    views.show_measurements(released, level, everything=everything)
    say()
    views.say_lines(views.statement_lines(released.release))
    if output is not None:
        doubtful = released.release.get("peeked") or options.weak_protection(procedure.budget)
        say(f"Saved in {output}; `discreet show {output}` prints it{'' if doubtful else ', and it can be published'}.")
