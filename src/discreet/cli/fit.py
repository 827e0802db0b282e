"""``discreet plan`` and ``discreet fit``: from private rows to a model that can be published."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscreetError, counted
from . import options, rows
from .choices import Choices, merged, options_from
from .console import note, progress, say, say_json, waiting
from .failures import Interrupted, WrongUse
from .methods import say_methods
from .money import after_the_spend, open_ledger, remark_before, what_was_spent
from .prepared import Prepared, prepare, show_plan

if TYPE_CHECKING:
    from ..privacy.curator import Curator
    from ..privacy.ledger import Ledger
    from ..release import Release


def plan(
    data: options.OptionalData = None,
    schema: options.OptionalSchema = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    relation: options.OptionalRelation = None,
    unit_column: options.UnitColumn = None,
    max_rows: options.MaxRows = None,
    family: options.Family = None,
    method: options.Method = None,
    graph: options.Graph = None,
    cliques: options.Cliques = None,
    option: options.MethodOption = None,
    public_size: options.PublicSize = None,
    approximate_size: options.ApproximateSize = None,
    engine: options.EngineName = None,
    run: options.RunFile = None,
    weight: options.Weight = None,
    methods: Annotated[bool, typer.Option("--methods", help="List the methods and their options, and stop.")] = False,
    as_json: options.Json = False,
) -> None:
    """What a fit would spend on what, its expected error, memory and time. No row is read.

    Takes the options of `discreet fit`; the data need not even be there. With
    a guess of the number of records (--approximate-size) errors are shown
    relative to it.

    \b
    [bold]Examples[/bold]
      discreet plan --schema schema.toml --epsilon 1
      discreet plan --schema schema.toml --epsilon 1 --graph graph.bif \\
          --approximate-size 10000
      discreet plan --methods
    """
    if methods:
        say_methods(as_json=as_json)
        return
    line = _line(locals())
    prepared = prepare(merged(run, line))
    show_plan(prepared, as_json=as_json)
    remark_before(prepared.budget, prepared.domain.peeked)


def fit(
    data: options.OptionalData = None,
    schema: options.OptionalSchema = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    relation: options.OptionalRelation = None,
    unit_column: options.UnitColumn = None,
    max_rows: options.MaxRows = None,
    family: options.Family = None,
    method: options.Method = None,
    graph: options.Graph = None,
    cliques: options.Cliques = None,
    option: options.MethodOption = None,
    public_size: options.PublicSize = None,
    approximate_size: options.ApproximateSize = None,
    engine: options.EngineName = None,
    delimiter: options.Delimiter = None,
    ledger: options.LedgerFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.zip", help="The release; default: model.zip.")
    ] = None,
    run: options.RunFile = None,
    purpose: Annotated[str | None, typer.Option(metavar="WORD", help="A word for the ledger. It is public.")] = None,
    card: Annotated[
        Path | None, typer.Option("--card", metavar="FILE.yaml", help="Also write the release card beside it.")
    ] = None,
    weight: options.Weight = None,
    research_seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seeded noise, for teaching and debugging. NOT PRIVATE: nothing is saved."),
    ] = None,
    no_plan: Annotated[bool, typer.Option("--no-plan", help="Do not show the plan first.")] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Learn a model from private rows, and pay for it.

    ε is always the total. Without a graph, one is found privately and paid for
    from the same budget. The plan is shown before a row is read; `discreet
    plan` shows it alone. What is saved can be published: the model, its card,
    and where the method allows it the noisy tables behind it.

    With --run, what is said again and again comes from a TOML file with these
    options as keys (unit_column for --unit-column, and so on).

    \b
    [bold]Examples[/bold]
      discreet fit patients.csv --schema schema.toml --epsilon 1
      discreet fit patients.csv --schema schema.toml --epsilon 1 \\
          --graph "smoke -> lung; smoke -> bronc" --ledger ledger.db \\
          -o model.zip
      discreet fit visits.csv --schema schema.toml --rho 0.1 \\
          --unit-column patient --max-rows 5 --family field \\
          --cliques "ward,age; ward,outcome"
      discreet fit --run monthly.toml -o march.zip
    """
    line = _line(locals())
    choices = merged(run, line)
    prepared = prepare(choices)
    if choices.data is None:
        raise WrongUse("name the file with the private rows, as in `discreet fit patients.csv --schema schema.toml …`")
    if research_seed is not None:
        _research(prepared, research_seed, as_json=as_json)
        return
    path = Path(choices.output or "model.zip")
    if path.suffix.lower() != ".zip":
        raise WrongUse(f"a release is a .zip file, got {path}; `discreet sample` and `discreet show` write other kinds")
    account = open_ledger(None if choices.ledger is None else Path(choices.ledger))
    with account or nullcontext():
        if account is not None:
            options.check_ledger_notion(account.total, prepared.budget)
            account.check(prepared.budget, prepared.unit)
        engine_name = choices.engine or "auto"
        rows.check_rows(Path(choices.data), choices.delimiter, prepared.domain, choices.unit_column, engine_name)
        for place in (path, card):  # last, so that an old file does not hide what else is wrong
            if place is not None:
                options.writable(place, force=force)
        if not as_json and not no_plan:
            show_plan(prepared, as_json=False)
        remark_before(prepared.budget, prepared.domain.peeked)
        release = _learn(prepared, account, path)
        _say_release(release, prepared, path, card, as_json=as_json)
    if choices.ledger is None:
        note("Remark: no ledger was given, so nothing remembers this spend; --ledger FILE adds up what is released.")


def _line(words: dict[str, Any]) -> dict[str, Any]:
    """What was said on the line, in the words of a run file."""
    known = Choices.__dataclass_fields__
    line = {key: value for key, value in words.items() if key in known and key != "card"}
    line["options"] = options_from(list(words.get("option") or ()))
    line["cliques"] = tuple(words.get("cliques") or ())
    return {key: str(value) if isinstance(value, Path) else value for key, value in line.items()}


# -- asking the rows ---------------------------------------------------------------------------------------------------


def _learn(prepared: Prepared, account: Ledger | None, path: Path) -> Release:
    """Open the rows, learn, save. Whatever comes after the spend is said with what was spent."""
    from ..privacy.curator import Curator
    from ..release import Release
    from ..spec import learn

    choices = prepared.choices
    curator: Curator | None = None
    try:
        with waiting("reading the rows"):
            table = rows.open_rows(
                Path(choices.data or ""),
                choices.delimiter,
                prepared.domain,
                choices.unit_column,
                choices.engine or "auto",
            )
        with (
            progress(),
            Curator(
                table,
                prepared.unit,
                prepared.budget,
                account,
                public_size=prepared.public_size,
                purpose=choices.purpose or "fit",
            ) as curator,
        ):
            learned = learn(prepared.recipe, curator, prepared.totals)
        release = Release.of(learned, choices.echo(), choices.card)
        release.save(path)
        if learned.remark:
            note(f"Remark: {learned.remark}")
        return release
    except KeyboardInterrupt:
        raise Interrupted(what_was_spent(curator, account)) from None
    except (DiscreetError, OSError, MemoryError) as error:
        spent = None if curator is None else curator.spent
        if spent is None:
            raise
        raise after_the_spend(error, str(spent)) from None


def _say_release(release: Release, prepared: Prepared, path: Path, card: Path | None, *, as_json: bool) -> None:
    from ..io.atomic import write_atomically
    from ..report.card import card_yaml
    from ..spec import FAMILIES
    from . import views

    if card is not None:
        write_atomically(card, [card_yaml(release).encode()])
    lines = views.statement_lines(release.card)
    if as_json:
        say_json(
            {
                "file": str(path),
                "recipe": prepared.recipe.to_dict(),
                "plan": prepared.plan.to_dict(),
                "edges": [list(edge) for edge in release.model.edges],
                "has_intervals": release.has_intervals,
                "statement": lines,
                "release": dict(release.card),
            }
        )
        return
    views.say_lines(lines)
    model = release.model
    size = f"{counted(len(model.domain), 'column')}, {counted(len(model.edges), 'edge')}"
    say(f"Learned {FAMILIES[prepared.recipe.family]}: {size}.")
    if caution := (release.model.card or {}).get("caution"):
        say(f"Beware: {caution}.")
    kept = ", its card and the noisy tables behind it" if release.again is not None else " and its card"
    doubtful = release.card.get("peeked") or options.weak_protection(prepared.budget)
    say(f"Saved in {path}: the model{kept}{'' if doubtful else '. It can be published'}.")
    name = prepared.domain.names[0]
    say(f'Next: discreet query {path} "P({name})"; discreet sample {path} -n 1000 -o synthetic.csv')


def _research(prepared: Prepared, seed: int, *, as_json: bool) -> None:
    """Seeded noise. It protects nobody, so nothing of it is saved, charged or called a release."""
    from ..release.research import ResearchCurator
    from ..spec import learn

    choices = prepared.choices
    for name in ("output", "ledger"):
        if getattr(choices, name) is not None:
            raise WrongUse(
                f"--research-seed {seed} draws noise that anybody can draw again: it protects nobody, so there is no "
                f"release to save and nothing to charge. Leave --{name} out, or the seed"
            )
    engine = choices.engine or "auto"
    where = Path(choices.data or "")
    rows.check_rows(where, choices.delimiter, prepared.domain, choices.unit_column, engine)
    with progress():
        table = rows.open_rows(where, choices.delimiter, prepared.domain, choices.unit_column, engine)
        curator = ResearchCurator(table, prepared.unit, prepared.budget, seed=seed, public_size=prepared.public_size)
        model = learn(prepared.recipe, curator, prepared.totals).model
    if as_json:
        say_json({"research": True, "seed": seed, "edges": [list(e) for e in model.edges], "model": repr(model)})
        return
    say("RESEARCH MODE: the noise is seeded, so this is NOT PRIVATE and NOT A RELEASE. Nothing was saved or charged.")
    say(repr(model))
