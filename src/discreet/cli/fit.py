"""``discreet plan`` and ``discreet fit``: from private rows to a model that can be published."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import WEIGHTS_REFUSED, BudgetError, DiscreetError, InputError, counted
from . import options, rows
from .choices import Choices, merged, options_from
from .console import note, progress, say, say_json, say_table, waiting
from .failures import Interrupted, WrongUse
from .money import after_the_spend, open_ledger, remark_before, what_was_spent

if TYPE_CHECKING:
    from ..domain import Domain
    from ..estimation.plan import Plan
    from ..estimation.recipe import Recipe
    from ..measurement import Measurement
    from ..privacy.budget import Budget
    from ..privacy.curator import Curator
    from ..privacy.ledger import Ledger
    from ..privacy.unit import PrivacyUnit
    from ..release import Release


TYPICAL_WEIGHT = 0.35  # of an edge, when nothing is said: that of the papers' experiments


@dataclass(frozen=True)
class Prepared:
    """Everything public about a fit, checked: what is wrong is found before a row is read and anything is spent."""

    choices: Choices
    budget: Budget
    unit: PrivacyUnit
    domain: Domain
    recipe: Recipe
    plan: Plan
    totals: tuple[Measurement, ...]
    public_size: int | None


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
        _say_methods(as_json=as_json)
        return
    line = _line(locals())
    prepared = prepare(merged(run, line))
    _show_plan(prepared, as_json=as_json)
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
            _show_plan(prepared, as_json=False)
        remark_before(prepared.budget, prepared.domain.peeked)
        release = _learn(prepared, account, path)
        _say_release(release, prepared, path, card, as_json=as_json)
    if choices.ledger is None:
        note("Remark: no ledger was given, so nothing remembers this spend; --ledger FILE adds up what is released.")


# -- before a row is read ----------------------------------------------------------------------------------------------


def _line(words: dict[str, Any]) -> dict[str, Any]:
    """What was said on the line, in the words of a run file."""
    known = Choices.__dataclass_fields__
    line = {key: value for key, value in words.items() if key in known and key != "card"}
    line["options"] = options_from(list(words.get("option") or ()))
    line["cliques"] = tuple(words.get("cliques") or ())
    return {key: str(value) if isinstance(value, Path) else value for key, value in line.items()}


def prepare(choices: Choices) -> Prepared:
    """Check all that is public and make the plan."""
    from ..privacy.budget import PureDP
    from ..report.card import check_stated
    from ..schema import load_totals

    if choices.weight is not None:
        raise WrongUse(f"--weight {choices.weight}: {WEIGHTS_REFUSED}")
    options.check_engine(choices.engine)
    for name in ("public_size", "approximate_size"):
        value = getattr(choices, name)
        if value is not None and value < 1:
            raise WrongUse(f"--{name.replace('_', '-')} is a whole number of at least 1, got {value}")
    check_stated(choices.card)
    budget, unit, domain = choices.budget(), choices.unit(), choices.domain()
    totals = load_totals(choices.schema or "", domain)
    public_size = _public_size(choices, totals)
    try:
        recipe = choices.recipe(domain)
        if recipe.options.get("noise") == "gaussian" and isinstance(budget, PureDP):
            raise BudgetError(
                "Gaussian noise is not pure ε-DP: add --delta 1e-6 to --epsilon, or give --rho instead of it, or take "
                "--option noise=laplace"
            )
        size = public_size if public_size is not None else choices.approximate_size
        plan = recipe.plan(domain, unit, budget, size)
    except InputError as error:
        raise WrongUse(str(error)) from None
    return Prepared(choices, budget, unit, domain, recipe, plan, totals, public_size)


def _public_size(choices: Choices, totals: tuple[Measurement, ...]) -> int | None:
    """The number of records, if it is public; public totals imply it."""
    sizes = {int(t.counts.sum()) for t in totals if not t.proportions} | (
        {choices.public_size} if choices.public_size is not None else set()
    )
    if len(sizes) > 1:
        numbers = " and ".join(f"{n:,}" for n in sorted(sizes))
        raise WrongUse(f"the public totals disagree about the number of records: {numbers}; mend the [[totals]]")
    return next(iter(sizes), None)


def _show_plan(prepared: Prepared, *, as_json: bool) -> None:
    from ..estimation.forecasts import cost_forecast

    forecast = cost_forecast(prepared.recipe, prepared.domain, prepared.plan)
    if as_json:
        say_json(
            {
                "plan": prepared.plan.to_dict(),
                "recipe": prepared.recipe.to_dict(),
                "bytes": forecast.bytes,
                "seconds": forecast.seconds,
            }
        )
        return
    say(f"Plan: {prepared.recipe}. No row has been read.")
    for text in str(prepared.plan).splitlines():
        say(text)
    for text in forecast.lines():
        say(text)
    for text in _bounds(prepared):
        say(text)
    if prepared.totals:
        say(f"Public totals of the schema: {', '.join(t.label for t in prepared.totals)}. They cost nothing.")


def _bounds(prepared: Prepared) -> list[str]:
    """For Markov random fields: how many records the graph and the parameters would need, from experience."""
    from ..privacy.budget import ZCDP, ApproxDP
    from ..theory import advise

    family, budget = prepared.recipe.family, prepared.budget
    if family not in ("ising", "pairwise", "binary") or len(prepared.domain) < 2:
        return []
    weight = float(prepared.recipe.options.get("min_weight") or TYPICAL_WEIGHT)
    spent = {"rho": float(budget.rho)} if isinstance(budget, ZCDP) else {"epsilon": float(budget.epsilon)}  # type: ignore[attr-defined]
    if isinstance(budget, ApproxDP):
        spent["delta"] = float(budget.delta)
    try:
        found = advise(
            len(prepared.domain),
            edge_weight=weight,
            k=max(prepared.domain.shape) if family == "pairwise" else 2,
            t=int(prepared.recipe.options.get("order", 3)) if family == "binary" else 2,
            n=prepared.choices.public_size or prepared.choices.approximate_size,
            **spent,
        )
    except InputError:  # outside of what was measured or proved
        return []
    whose = "" if prepared.recipe.options.get("min_weight") else " (no min_weight was given: a typical one)"
    return [f"For edges of weight {weight:g}{whose}; `discreet bounds` says more:", *found.summary()]


def _say_methods(*, as_json: bool) -> None:
    from ..estimation.recipe import METHODS

    if as_json:
        keys = ("family", "name", "needs", "summary")
        say_json([{**{key: getattr(m, key) for key in keys}, "options": list(m.options)} for m in METHODS])
        return
    lines = [[m.family, m.name, m.needs or "—", m.summary, ", ".join(m.options)] for m in METHODS]
    say_table(["family", "method", "needs", "how", "options"], lines)


# -- asking the rows ---------------------------------------------------------------------------------------------------


def _learn(prepared: Prepared, account: Ledger | None, path: Path) -> Release:
    """Open the rows, learn, save. Whatever comes after the spend is said with what was spent."""
    from ..estimation.recipe import learn
    from ..privacy.curator import Curator
    from ..release import Release

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
                remember=True,
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
    except (DiscreetError, OSError) as error:
        spent = None if curator is None else curator.spent
        if spent is None:
            raise
        raise after_the_spend(error, str(spent)) from None


def _say_release(release: Release, prepared: Prepared, path: Path, card: Path | None, *, as_json: bool) -> None:
    from ..estimation.recipe import FAMILIES
    from ..io.atomic import write_atomically
    from ..report.card import card_yaml
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
    kept = ", its card and the noisy tables behind it" if release.again is not None else " and its card"
    doubtful = release.card.get("peeked") or options.weak_protection(prepared.budget)
    say(f"Saved in {path}: the model{kept}{'' if doubtful else '. It can be published'}.")
    name = prepared.domain.names[0]
    say(f'Next: discreet query {path} "P({name})"; discreet sample {path} -n 1000 -o synthetic.csv')


def _research(prepared: Prepared, seed: int, *, as_json: bool) -> None:
    """Seeded noise. It protects nobody, so nothing of it is saved, charged or called a release."""
    from ..estimation.recipe import learn
    from ..research import ResearchCurator

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
        curator = ResearchCurator(
            table, prepared.unit, prepared.budget, seed=seed, public_size=prepared.public_size, remember=True
        )
        model = learn(prepared.recipe, curator, prepared.totals).model
    if as_json:
        say_json({"research": True, "seed": seed, "edges": [list(e) for e in model.edges], "model": repr(model)})
        return
    say("RESEARCH MODE: the noise is seeded, so this is NOT PRIVATE and NOT A RELEASE. Nothing was saved or charged.")
    say(repr(model))
