"""``discreet certify``: buy a certificate of fit for a model that is there already."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from . import options
from .choices import windows_again
from .console import say, say_json
from .failures import WrongUse
from .spending import Order, Work, spend

if TYPE_CHECKING:
    from ..domain import Domain
    from ..learn.procedure import Procedure
    from ..measurement import Measurements
    from ..privacy.unit import PrivacyUnit
    from ..release import Release


_OTHERS = (
    "the columns or levels in {} are not those of the model, which can only be compared with records of its own "
    "schema: give the one that it was learned with"
)


@dataclass(frozen=True)
class Spending(options.Spending):
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.zip", help="The certified release; default: MODEL-certified.zip."),
    ] = None
    purpose: options.Purpose = "certify"


def certify(
    model: Annotated[Path, typer.Argument(metavar="MODEL.zip", help="A released model, as `discreet fit` writes it.")],
    data: options.Data,
    schema: options.OptionalSchema = None,
    *,
    money: options.Money,
    protected: options.Protection,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "--cliques",
            metavar="pairs|triples|FILE|'a,b 2; a,c'",
            help="The tables to compare, with weights for the mean; default: all pairs, alike.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Also pay for how often the model predicts this column right."),
    ] = None,
    public_size: options.PublicSize = None,
    engine: options.EngineName = None,
    said: Spending,
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
          --workload "smoke,lung 2; smoke,bronc,dysp" -o certified.zip
      discreet certify model.zip patients.csv --epsilon 0.1 --target lung
    """
    from ..learn.certifying import certify_later
    from ..learn.checks import checked_public_size
    from ..release import Release

    options.check_engine(engine)
    budget = money.budget()
    release = Release.load(model)
    _ = release.card  # what is no release is refused
    domain = release.model.domain
    windows = windows_again(model, release, schema, engine)
    if windows is None:
        _check_schema(schema, domain)
    elif windows.domain.fingerprint != domain.fingerprint:
        raise InputError(_OTHERS.format(schema))
    unit = _unit(release, protected)
    procedure = certify_later(release.model, unit, budget, workload, checked_public_size(public_size), target)
    path = said.output or model.with_name(f"{model.stem}-certified.zip")
    if path.suffix.lower() != ".zip":
        raise WrongUse(f"a release is a .zip file, got {path}")

    def announce() -> None:
        if not said.as_json:
            say(f"Plan: a certificate of fit for {model}. No row has been read.")
            for line in str(procedure).splitlines():
                say(line)
        elif said.plan:
            say_json({"plan": procedure.to_dict()})

    def make(released: Measurements) -> Release:
        return release.certified(released)

    def tell(certified: Release) -> None:
        _tell(certified, procedure, path, as_json=said.as_json)

    read = (schema,)  # the model may be replaced by itself with its certificate
    said = replace(said, output=path)
    order = Order(
        procedure=procedure,
        data=data,
        engine=engine,
        public_size=public_size,
        inputs=read,
        windows=windows,
        **vars(said),
    )
    spend(order, announce, Work(make, tell, path.name))


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

    if schema is None:
        return
    said = load_schema(schema)
    # Of columns that were found privately the schema knew no more than that they are there.
    found = {a.name: domain[a.name] for a in said.sought if a.name in domain}
    as_found = replace(said, attributes=tuple(found.get(a.name, a) for a in said.attributes))
    if as_found.fingerprint != domain.fingerprint:
        raise InputError(_OTHERS.format(schema))


def _unit(release: Release, said: options.Protection) -> PrivacyUnit:
    from ..privacy.unit import PrivacyUnit

    known = PrivacyUnit.from_dict(dict(release.card["unit"]))
    if said.unit_column is None and said.max_rows is None:
        return known if said.relation is None else replace(known, relation=said.unit().relation)
    return replace(said, relation=said.relation or known.relation).unit()
