"""``discreet certify``: buy a certificate of fit for a model that is there already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from . import options, rows
from .console import say, say_json
from .failures import WrongUse
from .spending import Order, Work, spend

if TYPE_CHECKING:
    from ..domain import Clique, Domain
    from ..io.archive import Sign
    from ..learn.procedure import Procedure
    from ..measurement import Measurements
    from ..privacy.unit import PrivacyUnit
    from ..release import Release


def certify(
    model: Annotated[Path, typer.Argument(metavar="MODEL.zip", help="A released model, as `discreet fit` writes it.")],
    data: options.Data,
    schema: options.OptionalSchema = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    relation: options.OptionalRelation = None,
    unit_column: options.UnitColumn = None,
    max_rows: options.MaxRows = None,
    cliques: Annotated[
        list[str] | None,
        typer.Option(
            "--cliques",
            metavar="'a,b; b,c,d'",
            help="The tables to compare, inline or a file; default: all pairs of columns.",
        ),
    ] = None,
    public_size: options.PublicSize = None,
    engine: options.EngineName = None,
    delimiter: options.Delimiter = None,
    row_is_line: options.RowIsLine = None,
    ledger: options.LedgerFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.zip", help="The certified release; default: MODEL-certified.zip."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan and stop. The data are not opened.")] = False,
    purpose: Annotated[str, typer.Option(metavar="WORD", help="A word for the ledger. It is public.")] = "certify",
    checkpoint: options.Checkpoint = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Pay for a certificate of fit: how far a released model is from the records, pair by pair and on average.

    The whole budget given here buys the certificate, and adds to what the model
    has cost. The certified release is a new file: the same model, its card and
    the certificate, with a statement of what that cost. `discreet fit --certify
    SHARE` has one in the same run instead.

    Who is protected is as on the model's card, unless told otherwise; the
    columns are the model's. With --schema, they are checked against that.

    \b
    [bold]Examples[/bold]
      discreet certify model.zip patients.csv --schema schema.toml \\
          --epsilon 0.1 --delta 1e-6 --ledger ledger.db
      discreet certify model.zip patients.csv --epsilon 0.1 \\
          --cliques "smoke,lung; smoke,bronc,dysp" -o certified.zip
    """
    from ..learn.certifying import certify_later
    from ..learn.checks import checked_public_size
    from ..release import Release

    options.check_engine(engine)
    budget = options.budget_from(epsilon, delta, rho)
    release = Release.load(model)
    _ = release.card  # what is no release is refused
    domain = release.model.domain
    _check_schema(schema, domain)
    unit = _unit(release, relation, unit_column, max_rows)
    wanted = _cliques(cliques, domain)
    procedure = certify_later(release.model, unit, budget, wanted, checked_public_size(public_size))
    path = output or model.with_name(f"{model.stem}-certified.zip")
    if path.suffix.lower() != ".zip":
        raise WrongUse(f"a release is a .zip file, got {path}")

    def announce() -> None:
        if not as_json:
            say(f"Plan: a certificate of fit for {model}. No row has been read.")
            for line in str(procedure).splitlines():
                say(line)
        elif plan:
            say_json({"plan": procedure.to_dict()})

    def make(released: Measurements) -> Release:
        return release.certified(released)

    def save(certified: Release, place: Path, sign: Sign | None) -> None:
        certified.save(place, sign=sign)

    def tell(certified: Release) -> None:
        _tell(certified, procedure, path, as_json=as_json)

    order = Order(
        procedure,
        data,
        rows.Text(delimiter, row_is_line),
        engine,
        public_size,
        ledger,
        purpose,
        path,
        force=force,
        only_plan=plan,
        checkpoint=checkpoint,
        inputs=(schema,),  # the model may be replaced by itself with its certificate
    )
    spend(order, announce, Work(make, save, tell, path.name))


def _tell(certified: Release, procedure: Procedure, path: Path, *, as_json: bool) -> None:
    from ..report import words
    from . import views

    assert certified.certificate is not None
    if as_json:
        found = certified.certificate
        say_json({"file": str(path), "plan": procedure.to_dict(), "certificate": found.summary()})
        return
    views.say_lines([*words.bought_beside(certified.card), *words.certificate_lines(certified.card)])
    say(f"Saved in {path}: the model with its certificate.")


def _check_schema(schema: Path | None, domain: Domain) -> None:
    from ..schema import load_schema

    if schema is not None and load_schema(schema).fingerprint != domain.fingerprint:
        raise InputError(
            f"the columns or levels in {schema} are not those of the model, which can only be compared with records of "
            "its own schema; leave --schema out, or give the one that it was learned with"
        )


def _unit(release: Release, relation: str | None, column: str | None, max_rows: int | None) -> PrivacyUnit:
    from ..privacy.unit import PrivacyUnit

    known = PrivacyUnit.from_dict(dict(release.card["unit"]))
    if column is None and max_rows is None:
        return known if relation is None else replace(known, relation=options.unit_from(relation, None, None).relation)
    return options.unit_from(relation or known.relation, column, max_rows)


def _cliques(said: list[str] | None, domain: Domain) -> tuple[Clique, ...]:
    from ..learn.graph_input import cliques_of

    return () if not said else tuple(cliques_of(said, domain))
