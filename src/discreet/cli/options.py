"""Options that several commands share, and the public objects that are made of them before any row is read."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BudgetError, CostError, FileFormatError, InputError
from .failures import WrongUse

if TYPE_CHECKING:
    from ..domain import Clique, Domain
    from ..privacy.budget import Budget
    from ..privacy.unit import PrivacyUnit

Data = Annotated[Path, typer.Argument(metavar="DATA.csv", help="The private rows; the first line names the columns.")]
SchemaFile = Annotated[Path, typer.Option("--schema", metavar="FILE", help="What is publicly known about the columns.")]
Tables = Annotated[
    list[str],
    typer.Option("--table", metavar="a,b", help="Columns of a contingency table. Repeat it for more tables."),
]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", metavar="ε", help="The total budget, of everything together: pure DP.")
]
Delta = Annotated[str | None, typer.Option("--delta", metavar="δ", help="With --epsilon: (ε, δ)-DP.")]
Rho = Annotated[str | None, typer.Option("--rho", metavar="ρ", help="The total budget in zCDP, instead of --epsilon.")]
Relation = Annotated[
    str,
    typer.Option(
        "--relation", metavar="add-remove|replace-one", help="What makes two tables neighbours; see the docs."
    ),
]
UnitColumn = Annotated[
    str | None,
    typer.Option("--unit-column", metavar="COLUMN", help="Whose row it is; default: each row is somebody else's."),
]
MaxRows = Annotated[
    int | None, typer.Option("--max-rows", metavar="N", help="With --unit-column: rows of one person that count.")
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help="Between the fields; default: what the first line uses."),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, for scripts.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
Level = Annotated[float, typer.Option("--level", metavar="P", help="Coverage of the intervals.")]
All = Annotated[bool, typer.Option("--all", help="Print every cell of large tables.")]

LARGEST_TABLE = 2**26  # cells: half a gigabyte of counts, and some ten minutes of noise


def budget_from(epsilon: str | None, delta: str | None, rho: str | None) -> Budget:
    """The total budget. Exactly one of ε and ρ; δ only with ε."""
    from ..privacy.budget import ZCDP, ApproxDP, PureDP

    if epsilon is not None and rho is not None:
        raise WrongUse(f"the total budget is given twice, as --epsilon {epsilon} and as --rho {rho}; keep one of them")
    if rho is not None and delta is not None:
        raise WrongUse(f"--delta {delta} goes with --epsilon, not with --rho; leave it out")
    if epsilon is None and rho is None:
        raise WrongUse("there is no budget: give the total as --epsilon 1 (perhaps with --delta 1e-6) or as --rho 0.1")
    try:
        if rho is not None:
            return ZCDP(rho)
        assert epsilon is not None
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    except BudgetError as error:
        raise WrongUse(str(error)) from None


def unit_from(relation: str, column: str | None, max_rows: int | None) -> PrivacyUnit:
    from ..privacy.unit import RELATIONS, PrivacyUnit

    if relation not in RELATIONS:
        raise WrongUse(f"--relation is add-remove or replace-one, got {relation!r}")
    if column is None and max_rows is not None:
        raise WrongUse(f"--max-rows {max_rows} needs --unit-column, which says whose row it is")
    if column is not None and max_rows is None:
        raise WrongUse(f"--unit-column {column} needs --max-rows: how many rows of one person may count")
    return PrivacyUnit(column, 1 if max_rows is None else max_rows, relation)


def cliques_from(domain: Domain, tables: Sequence[str]) -> list[Clique]:
    """The tables asked for; a name with a comma in it stands in quotes."""
    if not tables:
        raise WrongUse("name at least one table of columns, as in --table smoke,lung")
    cliques: list[Clique] = []
    for text in tables:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
        if not names or not all(names):
            raise WrongUse(f"--table {text!r}: give names of columns with commas between them, as in --table a,b")
        try:
            cliques.append(domain.clique(names))
        except InputError as error:
            raise WrongUse(f"--table {text}: {error}") from None
        _check_size(domain, cliques[-1])
    twice = next((c for c in cliques if cliques.count(c) > 1), None)
    if twice is not None:
        raise WrongUse(f"the table {','.join(twice)} is asked for twice; once is enough")
    return cliques


def _check_size(domain: Domain, clique: Clique) -> None:
    cells = domain.size(clique)
    if cells > LARGEST_TABLE:
        shown = f"{cells:,}" if cells < 10**15 else f"about 10^{math.floor(math.log10(cells))}"
        raise CostError(
            f"the table {','.join(clique)} has {shown} cells, and at most {LARGEST_TABLE:,} are drawn at once; name "
            "fewer columns, or give them fewer levels in the schema"
        )


def writable(path: Path, *, force: bool) -> Path:
    """A place where a new file can be put, checked before any work is done."""
    if path.is_dir():
        raise FileFormatError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise FileFormatError(f"{path} exists already; choose another name, or --force to overwrite it")
    if not path.parent.is_dir():
        raise FileFormatError(f"the folder {path.parent} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise FileFormatError(f"the folder {path.parent} cannot be written to; choose another place")
    return path


def check_level(level: float) -> float:
    if not 0 < level < 1:
        raise WrongUse(f"--level is a probability strictly between 0 and 1, got {level}")
    return level
