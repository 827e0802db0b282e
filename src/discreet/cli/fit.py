"""``discreet plan`` and ``discreet fit``: from private rows to a model that can be published."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import counted
from ..program import program
from . import options, rows
from .choices import line_of, merged
from .console import note, progress, say, say_json
from .failures import WrongUse
from .methods import say_methods
from .prepared import Prepared, prepare, show_plan, show_sweep
from .spending import Order, Work, remark_before, spend

if TYPE_CHECKING:
    from ..measurement import Measurements
    from ..release import Release


def plan(
    wanted: options.Wanted,
    run: options.RunFile = None,
    weight: options.Weight = None,
    methods: Annotated[bool, typer.Option("--methods", help="List the methods and their options, and stop.")] = False,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="epsilon=0.1:10",
            help="What more would buy: expected error at several totals of ε (or rho=…), and with records=1e3:1e6 at "
            "several numbers of records.",
        ),
    ] = None,
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
      discreet plan --schema schema.toml --epsilon 1 --delta 1e-6 \\
          --sweep epsilon=0.1:10
      discreet plan --methods
    """
    if methods:
        say_methods(as_json=as_json)
        return
    prepared = prepare(merged(run, line_of(wanted, weight=weight)))
    if sweep:
        show_sweep(prepared, sweep, as_json=as_json)
        return
    show_plan(prepared, as_json=as_json)
    remark_before(prepared.procedure.budget, prepared.domain.peeked)


def fit(
    wanted: options.Wanted,
    text: options.Text,
    ledger: options.LedgerFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.zip", help="The release; default: model.zip.")
    ] = None,
    run: options.RunFile = None,
    purpose: options.Purpose = None,
    card: Annotated[
        Path | None, typer.Option("--card", metavar="FILE.yaml", help="Also write the release card beside it.")
    ] = None,
    weight: options.Weight = None,
    checkpoint: options.Checkpoint = None,
    research_seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seeded noise, for teaching and debugging. NOT PRIVATE: nothing is saved."),
    ] = None,
    no_plan: Annotated[bool, typer.Option("--no-plan", help="Do not show the plan first.")] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Learn a model from private rows, and pay for it.

    ε is always the total. Without a graph, the tables that matter are found
    privately and paid for from the same budget. The plan is shown before a row is read; `discreet
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
      discreet fit wifi.csv --schema rooms.toml --epsilon 1 --family chain \\
          --unit-column person_day --max-rows 2 \\
          --time-column when --segment hour --window 6 --null-state away
      discreet fit --run monthly.toml -o march.zip
    """
    line = line_of(wanted, **vars(text), ledger=ledger, output=output, purpose=purpose, weight=weight)
    choices = merged(run, line)
    if choices.data is not None:
        rows.check_there(choices.data)  # a misspelt name first: whether it is there is no secret
    prepared = prepare(choices)
    if choices.data is None:
        raise WrongUse("name the file with the private rows, as in `discreet fit patients.csv --schema schema.toml …`")
    if research_seed is not None:
        if checkpoint is not None:
            raise WrongUse("--research-seed and --checkpoint: seeded noise can be drawn again; leave one of them out")
        _research(prepared, research_seed, as_json=as_json)
        return
    path = choices.output or Path("model.zip")
    if path.suffix.lower() != ".zip":
        raise WrongUse(f"a release is a .zip file, got {path}; `discreet sample` and `discreet show` write other kinds")

    def announce() -> None:
        if not as_json and not no_plan:
            show_plan(prepared, as_json=False)

    def tell(release: Release) -> None:
        _say_release(release, prepared, path, as_json=as_json)

    order = order_of(prepared, choices.data, path, card=card, force=force, checkpoint=checkpoint, run=run)
    spend(order, announce, work_of(prepared, tell))


def order_of(
    prepared: Prepared,
    data: Path,
    output: Path,
    *,
    run: Path | None,
    card: Path | None = None,
    force: bool = False,
    checkpoint: Path | None = None,
) -> Order:
    """A fit as something to be paid for."""
    choices = prepared.choices
    return Order(
        procedure=prepared.procedure,
        data=data,
        delimiter=choices.delimiter,
        row_is_line=choices.row_is_line,
        engine=choices.engine,
        public_size=prepared.public_size,
        windows=choices.windows(),
        ledger=choices.ledger,
        purpose=choices.purpose or "fit",
        output=output,
        card=card,
        force=force,
        checkpoint=checkpoint,
        inputs=(*choices.files(), run),
    )


def work_of(prepared: Prepared, tell: Callable[[Release], None]) -> Work[Release]:
    """What a fit makes of the answers, and how that is told."""

    def make(released: Measurements) -> Release:
        from ..release import Release

        learned = prepared.spec.conclude(released, prepared.domain, prepared.totals)
        if learned.remark:
            note(f"Remark: {learned.remark}")
        return Release.of(learned, prepared.choices.echo(), prepared.choices.card)

    def save_card(release: Release, place: Path) -> None:
        from ..io.atomic import write_atomically
        from ..report.card import card_yaml

        write_atomically(place, [card_yaml(release).encode()])

    return Work(make, tell, "model.zip", save_card)


def _say_release(release: Release, prepared: Prepared, path: Path, *, as_json: bool) -> None:
    from ..methods import FAMILIES
    from ..report import words
    from . import views

    lines = views.statement_lines(release.card)
    if as_json:
        say_json(
            {
                "file": str(path),
                "spec": prepared.spec.to_dict(),
                "plan": prepared.procedure.to_dict(),
                "edges": [list(edge) for edge in release.model.edges],
                "has_intervals": release.has_intervals,
                "certificate": None if release.certificate is None else release.certificate.summary(),
                "statement": lines,
                "release": dict(release.card),
            }
        )
        return
    views.say_lines(lines)
    model = release.model
    size = f"{counted(len(model.domain), 'column')}, {counted(len(model.edges), 'edge')}"
    say(f"Learned {FAMILIES[prepared.spec.family]}: {size}.")
    views.say_lines(words.how_good(release.card))
    kept = ", its card and the noisy tables behind it" if release.measurements is not None else " and its card"
    doubtful = release.card.get("peeked") or options.weak_protection(prepared.procedure.budget)
    say(f"Saved in {path}: the model{kept}{'' if doubtful else '. It can be published'}.")
    from ..question import quoted

    question, file = f"P({quoted(prepared.domain.names[0])})", shlex.quote(str(path))
    asked = shlex.quote(question) if '"' in question else f'"{question}"'
    say(f"Next: {program()} query {file} {asked}; {program()} sample {file} -n 1000 -o synthetic.csv")


def _research(prepared: Prepared, seed: int, *, as_json: bool) -> None:
    """Seeded noise. It protects nobody, so nothing of it is saved, charged or called a release."""
    from ..release.research import ResearchCurator

    choices = prepared.choices
    for name in ("output", "ledger"):
        if getattr(choices, name) is not None:
            raise WrongUse(
                f"--research-seed {seed} draws noise that anybody can draw again: it protects nobody, so there is no "
                f"release to save and nothing to charge. Leave --{name} out, or the seed"
            )
    engine = choices.engine or "auto"
    where = choices.data or Path()
    windows = choices.windows()
    rows.check_rows(where, choices, prepared.domain, choices.unit_column, engine, windows)
    with progress():
        table = rows.open_rows(where, choices, prepared.domain, choices.unit_column, engine, windows)
        asked = prepared.procedure
        curator = ResearchCurator(table, asked.unit, asked.budget, seed=seed, public_size=prepared.public_size)
        model = prepared.spec.conclude(asked.run(curator), prepared.domain, prepared.totals).model
    if as_json:
        say_json({"research": True, "seed": seed, "edges": [list(e) for e in model.edges], "model": repr(model)})
        return
    say("RESEARCH MODE: the noise is seeded, so this is NOT PRIVATE and NOT A RELEASE. Nothing was saved or charged.")
    say(repr(model))
