"""``discreet structure``: which columns interact, as a release of its own. The plan is shown before a row is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscreetError, InputError, counted
from . import options, rows
from .console import note, progress, say, say_json, say_table, waiting
from .failures import Interrupted, WrongUse
from .money import after_the_spend, open_ledger, remark_before, what_was_spent

if TYPE_CHECKING:
    from ..learn.procedure import Plan
    from ..learn.structure.learner import StructureLearner
    from ..learn.structure.result import StructureResult
    from ..privacy.budget import Budget
    from ..privacy.curator import Curator
    from ..privacy.ledger import Ledger
    from ..tables.base import Table


def structure(
    data: options.Data,
    schema: options.SchemaFile,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    min_weight: Annotated[
        float | None,
        typer.Option(
            "--min-weight",
            metavar="η",
            help="The least weight of an edge that is to be found, if publicly known; without it, what stands out.",
        ),
    ] = None,
    relation: options.Relation = "add-remove",
    unit_column: options.UnitColumn = None,
    max_rows: options.MaxRows = None,
    public_size: options.PublicSize = None,
    approximate_size: options.ApproximateSize = None,
    engine: options.EngineName = None,
    delimiter: options.Delimiter = None,
    row_is_line: options.RowIsLine = None,
    ledger: options.LedgerFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.json", help="Save the graph, for `discreet fit --graph`."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan and stop. The data are not opened.")] = False,
    purpose: Annotated[str, typer.Option(metavar="WORD", help="A word for the ledger. It is public.")] = "structure",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Find out which columns interact, privately, and pay for it.

    With --epsilon and --delta the whole graph is released if no few records
    could change any edge of it, and otherwise nothing but how far it was from
    that: a refusal is a normal result, is paid for, and says what would have
    been enough. With --rho, or --epsilon alone, edges are selected and
    measured, and there is always a graph; it needs more records.

    `discreet bounds` says how many records that takes.

    \b
    [bold]Examples[/bold]
      discreet structure survey.csv --schema schema.toml \\
          --epsilon 1 --delta 1e-6 --plan
      discreet structure survey.csv --schema schema.toml \\
          --epsilon 1 --delta 1e-6 --ledger ledger.db -o graph.json
      discreet fit survey.csv --schema schema.toml --epsilon 1 \\
          --graph graph.json
    """
    from ..learn.structure.learner import StructureLearner
    from ..privacy.curator import Curator
    from ..schema import load_schema

    # Everything public first: whatever is wrong is found before a row is read and before anything is spent.
    options.check_engine(engine)
    budget = options.budget_from(epsilon, delta, rho)
    unit = options.unit_from(relation, unit_column, max_rows)
    domain = load_schema(schema)
    for name, size in (("public-size", public_size), ("approximate-size", approximate_size)):
        if size is not None and size < 1:
            raise WrongUse(f"--{name} is a whole number of at least 1, got {size}")
    if output is not None and output.suffix.lower() != ".json":
        raise WrongUse(f"a graph is saved as a .json file, got {output}")
    try:
        learner = StructureLearner(min_weight)
        size = public_size if public_size is not None else approximate_size
        planned = learner.plan(domain, unit, budget, size, size_is_public=public_size is not None)
    except InputError as error:
        raise WrongUse(str(error)) from None
    account = open_ledger(ledger)
    with account or nullcontext():
        if account is not None:
            options.check_ledger_notion(account.total, budget)
            account.check(budget, unit)
        if not plan:
            rows.check_rows(data, rows.Text(delimiter, row_is_line), domain, unit_column, engine or "auto")
        if output is not None:
            options.writable(output, force=force)
        if not as_json:
            say("No row has been read.")
            for text in str(planned).splitlines():
                say(text)
        remark_before(budget, domain.peeked)
        if plan:
            if as_json:
                say_json({"plan": planned.to_dict()})
            return

        def opened() -> Table:
            return rows.open_rows(data, rows.Text(delimiter, row_is_line), domain, unit_column, engine or "auto")

        def curator_of(table: Table) -> Curator:
            return Curator(table, unit, budget, account, public_size=public_size, purpose=purpose)

        found = _learn(learner, opened, curator_of, account, output, as_json=as_json)
        _say(found, planned, budget, output, as_json=as_json)
    if ledger is None:
        note("Remark: no ledger was given, so nothing remembers this spend; --ledger FILE adds up what is released.")


def _learn(
    learner: StructureLearner,
    opened: Callable[[], Table],
    curator_of: Callable[[Table], Curator],
    account: Ledger | None,
    output: Path | None,
    *,
    as_json: bool,
) -> StructureResult:
    """Open the rows, learn, save. What was paid for is seen, also when it cannot be saved."""
    sign = None if account is None else account.signer  # before the spend: a key that cannot be read must cost nothing
    curator: Curator | None = None
    found: StructureResult | None = None
    try:
        with waiting("reading the rows"):
            table = opened()
        with progress(), curator_of(table) as curator:
            found = learner.fit(curator)
        if output is not None:
            found.save(output, sign=sign)
        return found
    except KeyboardInterrupt:
        raise Interrupted(what_was_spent(curator, account)) from None
    except (DiscreetError, OSError, MemoryError) as error:
        if curator is None or curator.spent is None:
            raise
        if found is not None:
            if as_json:
                say_json(found.to_dict())
            else:
                _show(found)
        raise after_the_spend(error, str(curator.spent)) from None


def _say(found: StructureResult, planned: Plan, budget: Budget, output: Path | None, *, as_json: bool) -> None:
    from . import views

    lines = views.statement_lines(found.card)
    if as_json:
        saved = None if output is None else str(output)
        say_json({**found.to_dict(), "plan": planned.to_dict(), "statement": lines, "file": saved})
        return
    say()
    _show(found)
    views.say_lines(lines)
    if output is not None:
        doubtful = found.card.get("peeked") or options.weak_protection(budget)
        say(f"Saved in {output}{'' if doubtful else '; it can be published'}.")
        if found.cliques:
            say(f"Next: discreet fit … --graph {output}, which takes this graph as given and pays for its tables.")


def _show(found: StructureResult) -> None:
    if found.cliques is None:
        say(f"No graph (⊥). {found.reason}")
        return
    count = counted(len(found.cliques), "edge")
    say(f"{found.method}: {count} between {counted(len(found.domain), 'column')}.")
    if found.cliques:
        facts = [(I, found.evidence.get(I) or {}) for I in found.cliques]
        say_table(["edge", "what was released about it"], [[" -- ".join(I), _in_words(fact)] for I, fact in facts])


def _in_words(fact: Mapping[str, Any]) -> str:
    if "sign" in fact:
        return {1: "positive", -1: "negative", 0: "dependent"}[fact["sign"]]
    if "noisy_coupling" in fact:
        return f"coupling about {fact['noisy_coupling']:.2f}"
    return f"largest weight about {fact['noisy_weight']:.2f}" if "noisy_weight" in fact else "an edge"
