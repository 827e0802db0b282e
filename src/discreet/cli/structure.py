"""``discreet structure``: which columns interact, as a release of its own. The plan is shown before a row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import counted
from ..program import program
from . import options
from .choices import options_from
from .console import say, say_json, say_table
from .failures import WrongUse
from .spending import Order, Work, spend

if TYPE_CHECKING:
    from ..learn.procedure import Procedure
    from ..learn.structure.result import StructureResult
    from ..measurement import Measurements


@dataclass(frozen=True)
class Spending(options.Spending):
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.json", help="Save the graph, for `discreet fit --graph`."),
    ] = None
    purpose: options.Purpose = "structure"


def structure(
    data: options.Data,
    schema: options.SchemaFile,
    *,
    money: options.Money,
    min_weight: Annotated[
        float | None,
        typer.Option(
            "--min-weight",
            metavar="η",
            help="The least weight of an edge that is to be found, if publicly known; without it, what stands out.",
        ),
    ] = None,
    method: options.Method = None,
    option: options.MethodOption = None,
    protected: options.Unit,
    public_size: options.PublicSize = None,
    approximate_size: options.ApproximateSize = None,
    engine: options.EngineName = None,
    said: Spending,
) -> None:
    """Find out which columns interact, privately, and pay for it.

    With --epsilon and --delta the whole graph is released if no few records
    could change any edge of it, and otherwise nothing but how far it was from
    that: a refusal is a normal result, is paid for, and says what would have
    been enough. With --rho, or --epsilon alone, there is always a graph: pairs
    are selected and measured, or with more than two levels a column all pairs,
    of which those that stand out are kept. That needs more records. --method
    and --option choose otherwise: `discreet plan --methods` lists them.

    `discreet bounds` says how many records that takes.

    \b
    [bold]Examples[/bold]
      discreet structure survey.csv --schema schema.toml \\
          --epsilon 1 --delta 1e-6 --plan
      discreet structure survey.csv --schema schema.toml \\
          --epsilon 1 --delta 1e-6 --ledger ledger.db -o graph.json
      discreet structure survey.csv --schema schema.toml \\
          --epsilon 1 --delta 1e-6 --method stable_edges --option order=3
      discreet fit survey.csv --schema schema.toml --epsilon 1 \\
          --graph graph.json
    """
    from ..methods import STRUCTURE
    from ..schema import load_schema
    from ..spec import resolve
    from . import views

    # Everything public first: whatever is wrong is found before a row is read and before anything is spent.
    options.check_engine(engine)
    budget, unit = money.budget(), protected.unit()
    domain = load_schema(schema)
    if said.output is not None and said.output.suffix.lower() != ".json":
        raise WrongUse(f"a graph is saved as a .json file, got {said.output}")
    own = options_from(list(option or ()))
    if min_weight is not None:
        if "min_weight" in own:
            raise WrongUse("the least weight is given twice, as --min-weight and as --option min_weight; keep one")
        own["min_weight"] = min_weight
    sizes: dict[str, Any] = {"public_size": public_size, "approximate_size": approximate_size}
    spec = resolve(domain, family=STRUCTURE, method=method, options=own, **sizes)
    procedure = spec.prepare(domain, unit, budget, **sizes)

    def announce() -> None:
        if not said.as_json:
            views.show_plan(spec, procedure)
        elif said.plan:
            say_json({"plan": procedure.to_dict(), "spec": spec.to_dict()})

    def tell(found: StructureResult) -> None:
        _say(found, procedure, said.output, as_json=said.as_json)

    order = Order(
        procedure=procedure, data=data, engine=engine, public_size=public_size, inputs=(schema,), **vars(said)
    )

    def make(released: Measurements) -> StructureResult:
        found: StructureResult = spec.conclude(released, domain).model
        return found

    def show(found: StructureResult) -> None:
        say_json(found.to_dict()) if said.as_json else _show(found)

    spend(order, announce, Work(make, tell, "graph.json", show=show))


def _say(found: StructureResult, procedure: Procedure, output: Path | None, *, as_json: bool) -> None:
    from . import views

    lines = views.statement_lines(found.card)
    if as_json:
        saved = None if output is None else str(output)
        say_json({**found.to_dict(), "plan": procedure.to_dict(), "statement": lines, "file": saved})
        return
    say()
    _show(found)
    views.say_lines(lines)
    if output is not None:
        doubtful = found.card.get("peeked") or options.weak_protection(procedure.budget)
        say(f"Saved in {output}{'' if doubtful else '; it can be published'}.")
        if found.cliques:
            say(f"Next: {program()} fit … --graph {output}, which takes this graph as given and pays for its tables.")


def _show(found: StructureResult) -> None:
    if found.cliques is None:
        say(f"No graph (⊥). {found.reason}")
        return
    count = counted(len(found.cliques), "edge")
    say(f"{found.method}: {count} between {counted(len(found.columns), 'column')}.")
    if found.cliques:
        facts = [(I, found.evidence.get(I) or {}) for I in found.cliques]
        say_table(["edge", "what was released about it"], [[" -- ".join(I), _in_words(fact)] for I, fact in facts])


def _in_words(fact: Mapping[str, Any]) -> str:
    if "sign" in fact:
        return {1: "positive", -1: "negative", 0: "dependent"}[fact["sign"]]
    if "noisy_coupling" in fact:
        return f"coupling about {fact['noisy_coupling']:.2f}"
    return f"largest weight about {fact['noisy_weight']:.2f}" if "noisy_weight" in fact else "an edge"
