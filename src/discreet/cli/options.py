"""Options that several commands share, and the public objects that are made of them before any row is read."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BudgetError, CostError, InputError
from .failures import WrongUse

if TYPE_CHECKING:
    from ..domain import Clique, Domain
    from ..io.limits import Limits
    from ..privacy.budget import Budget
    from ..privacy.unit import PrivacyUnit

_DATA = typer.Argument(metavar="DATA", help="The private rows: CSV (the first line names the columns) or Parquet.")
_SCHEMA = typer.Option("--schema", metavar="FILE", help="What is publicly known about the columns; see docs/schema.md.")
_RELATION = typer.Option(
    "--relation", metavar="add-remove|replace-one", help="What makes two tables neighbours; see docs/schema.md."
)

# -- single options ----------------------------------------------------------------------------------------------------

Data = Annotated[Path, _DATA]
SchemaFile = Annotated[Path, _SCHEMA]
OptionalSchema = Annotated[Path | None, _SCHEMA]
Tables = Annotated[
    list[str],
    typer.Option("--table", metavar="a,b", help="Columns of a contingency table. Repeat it for more tables."),
]
Method = Annotated[
    str | None,
    typer.Option("--method", metavar="WORD", help="How; default: the best. `discreet plan --methods` lists them."),
]
MethodOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the method. Repeat it for more."),
]
PublicSize = Annotated[
    int | None, typer.Option("--public-size", metavar="N", help="The number of records, if it is public knowledge.")
]
ApproximateSize = Annotated[
    int | None,
    typer.Option(
        "--approximate-size", metavar="N", help="A public guess of the number of records, for plans and choices."
    ),
]
EngineName = Annotated[
    str | None, typer.Option("--engine", metavar="auto|memory|duckdb|spark", help="What counts the rows.")
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="Where the spend is written down; see `discreet ledger create`."),
]
Purpose = Annotated[str | None, typer.Option("--purpose", metavar="WORD", help="A word for the ledger. It is public.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep every answer in this file until the release is saved. If the run is stopped, the same command goes "
        "on from there without paying again.",
    ),
]
RunFile = Annotated[
    Path | None,
    typer.Option("--run", metavar="FILE.toml", help="A run file: these options as keys. The line overrides it."),
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="Survey weights: refused, with the reason.")
]
MostSeconds = Annotated[
    int | None,
    typer.Option("--most-seconds", metavar="N", help="How long learning the model again may take; default: 600."),
]
SafeCsv = Annotated[
    bool, typer.Option("--safe-csv", help="In CSV, texts that spreadsheets take for formulas begin with an apostrophe.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, for scripts.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
Level = Annotated[float, typer.Option("--level", metavar="P", help="Coverage of the intervals.")]
All = Annotated[bool, typer.Option("--all", help="Print every cell of large tables.")]


# -- groups of options: a command takes one as a parameter (`command.spelled_out`) -------------------------------------


@dataclass(frozen=True)
class Money:
    """The total budget."""

    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="ε", help="The total budget, of everything together: pure DP.")
    ] = None
    delta: Annotated[str | None, typer.Option("--delta", metavar="δ", help="With --epsilon: (ε, δ)-DP.")] = None
    rho: Annotated[
        str | None, typer.Option("--rho", metavar="ρ", help="The total budget in zCDP, instead of --epsilon.")
    ] = None

    allow_large_delta: Annotated[
        bool | None,
        typer.Option("--allow-large-delta", help="Take a δ of 0.01 or more all the same, knowing what it means."),
    ] = None

    def budget(self) -> Budget:
        return budget_from(self.epsilon, self.delta, self.rho, large_delta=bool(self.allow_large_delta))


@dataclass(frozen=True)
class Protection:
    """Who is protected; None where nothing was said."""

    relation: Annotated[str | None, _RELATION] = None
    unit_column: Annotated[
        str | None,
        typer.Option("--unit-column", metavar="COLUMN", help="Whose row it is; default: each row is somebody else's."),
    ] = None
    max_rows: Annotated[
        int | None,
        typer.Option(
            "--max-rows",
            metavar="N",
            help="With --unit-column: at most N rows of one person count, the others are left out at random. The noise "
            "grows with N. Take what few people exceed, from public knowledge and not from the data; see "
            "docs/schema.md.",
        ),
    ] = None

    def unit(self) -> PrivacyUnit:
        return unit_from(self.relation or "add-remove", self.unit_column, self.max_rows)


@dataclass(frozen=True)
class Unit(Protection):
    """Who is protected, for commands that nothing else can tell."""

    relation: Annotated[str, _RELATION] = "add-remove"


@dataclass(frozen=True)
class Text:
    """What is said about delimited text beyond its first line."""

    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", metavar="CHAR", help="Between the fields; default: what the first line uses."),
    ] = None
    row_is_line: Annotated[
        bool | None,
        typer.Option(
            "--row-is-line",
            help="A row of CSV is a line, whatever its quotes are. For files whose quotes may be left open; see "
            "docs/privacy.md.",
        ),
    ] = None


@dataclass(frozen=True)
class Sources:
    """What is learned from; a run file may say it instead."""

    data: Annotated[Path | None, _DATA] = None
    schema: OptionalSchema = None


@dataclass(frozen=True)
class Times:
    """How a long table of people and times becomes windows."""

    time_column: Annotated[
        str | None,
        typer.Option(
            "--time-column",
            metavar="COLUMN",
            help="The rows are a long table, one for each person (--unit-column) and time: cut them into windows, with "
            "a column t1, t2, … for each time. See docs/chains.md.",
        ),
    ] = None
    window: Annotated[
        int | None, typer.Option("--window", metavar="T", help="With --time-column: how many times a window has.")
    ] = None
    segment: Annotated[
        str | None,
        typer.Option(
            "--segment",
            metavar="hour|day|NUMBER",
            help="With --time-column: a window is an hour (minute, day, week, so many seconds), in T slots; default: T "
            "rows one after the other.",
        ),
    ] = None
    null_state: Annotated[
        str | None,
        typer.Option("--null-state", metavar="LEVEL", help="With --time-column: the state that means nobody was seen."),
    ] = None
    state_column: Annotated[
        str | None,
        typer.Option(
            "--state-column", metavar="COLUMN", help="With --time-column: which column of the schema is the state."
        ),
    ] = None
    sequence_column: Annotated[
        str | None,
        typer.Option(
            "--sequence-column",
            metavar="COLUMN",
            help="With --time-column: a column that cuts a person's rows into sequences.",
        ),
    ] = None
    time_format: Annotated[
        str | None,
        typer.Option(
            "--time-format",
            metavar="'%d.%m.%Y'",
            help="With --time-column: how times are spelled that are neither numbers nor ISO dates; default: as the "
            "schema has it. Other text would be put in the order of its letters.",
        ),
    ] = None


@dataclass(frozen=True)
class Wanted(Times, Protection, Money, Sources):
    """What `fit` learns and what `plan` shows of it."""

    family: Annotated[
        str | None, typer.Option("--family", metavar="network|field|spin|chain", help="What kind of model to learn.")
    ] = None
    method: Method = None
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="FILE|'a -> b; b -> c'",
            help="The graph, if publicly known: BIF, lines of edges, or inline.",
        ),
    ] = None
    cliques: Annotated[
        list[str] | None,
        typer.Option("--cliques", metavar="'a,b; b,c,d'", help="Groups of columns that interact: inline or a file."),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="pairs|triples|FILE|'a,b 2; a,c'",
            help="Which tables should be right, with weights; default: all alike.",
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="A column to be predicted: tables with it count more."),
    ] = None
    options: MethodOption = None
    public_size: PublicSize = None
    approximate_size: ApproximateSize = None
    certify: Annotated[
        float | None,
        typer.Option(
            "--certify",
            metavar="SHARE",
            help="The part of the budget that buys a certificate of fit: how far pairs of the model are from the "
            "records. Default: 0.03 where the tables are found privately, else 0.",
        ),
    ] = None
    discover: Annotated[
        float | None,
        typer.Option(
            "--discover",
            metavar="SHARE",
            help="The part of the budget that finds bins and levels which the schema leaves open. Default: 0.1.",
        ),
    ] = None
    engine: EngineName = None


@dataclass(frozen=True)
class Spending(Text):
    """How private rows are read, who pays, and where the result goes."""

    ledger: LedgerFile = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the release, a file to publish.")
    ] = None
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan and stop. The data are not opened.")] = False
    purpose: Purpose = None
    checkpoint: Checkpoint = None
    force: Force = False
    as_json: Json = False


# -- what they mean ----------------------------------------------------------------------------------------------------

LARGE_DELTA = Fraction(1, 100)
"""Nobody who knows what δ is means such a one: it is refused unless it is said to be meant."""
LARGE_IS_MEANT = "; if it is meant, say --allow-large-delta (in a run file allow_large_delta = true)"
LARGEST_TABLE = 2**26  # cells: half a gigabyte of counts, and some ten minutes of noise


def budget_from(epsilon: str | None, delta: str | None, rho: str | None, *, large_delta: bool = False) -> Budget:
    """The total budget. Exactly one of ε and ρ; δ only with ε, and far below 1 unless a large one is wanted."""
    from ..privacy.budget import ZCDP, ApproxDP, PureDP

    if epsilon is not None and rho is not None:
        raise WrongUse(f"the total budget is given twice, as --epsilon {epsilon} and as --rho {rho}; keep one of them")
    if rho is not None and delta is not None:
        raise WrongUse(f"--delta {delta} goes with --epsilon, not with --rho; leave it out")
    if epsilon is None and rho is None and delta is not None:
        raise WrongUse(f"--delta {delta} needs --epsilon, the rest of an (ε, δ) budget: give --epsilon 1 as well")
    if epsilon is None and rho is None:
        raise WrongUse("there is no budget: give the total as --epsilon 1 (perhaps with --delta 1e-6) or as --rho 0.1")
    try:
        if rho is not None:
            return ZCDP(rho)
        assert epsilon is not None
        budget = PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    except BudgetError as error:
        raise WrongUse(str(error)) from None
    if isinstance(budget, ApproxDP) and budget.delta >= LARGE_DELTA and not large_delta:
        raise WrongUse(
            f"--delta {delta} is hardly meant: it is the chance that nothing at all is protected. Give one far below "
            f"one in the number of records, such as --delta 1e-6{LARGE_IS_MEANT}"
        )
    return budget


def check_noise(noise: str, budget: Budget, way: str = "--noise laplace") -> None:
    """Whether this kind of noise exists under this kind of budget; said in options, not in Python."""
    from ..privacy.budget import PureDP

    if noise not in ("auto", "laplace", "gaussian"):
        raise WrongUse(f"--noise is auto, laplace or gaussian, got {noise!r}")
    if noise == "gaussian" and isinstance(budget, PureDP):
        raise BudgetError(
            "Gaussian noise is not pure ε-DP: add --delta 1e-6 to --epsilon, or give --rho instead of it, or take "
            f"{way}"
        )


def check_ledger_notion(total: Budget, budget: Budget) -> None:
    """Whether a ledger with this total can pay for this kind of budget; said in options, not in Python."""
    from ..privacy.budget import ZCDP, ApproxDP, PureDP

    if isinstance(budget, PureDP) or type(budget) is type(total):
        return  # pure ε counts in every notion
    if isinstance(total, PureDP) and isinstance(budget, ApproxDP):
        way = "drop --delta, or make a ledger with --epsilon and --delta"
    elif isinstance(total, PureDP):
        way = "give --epsilon instead of --rho (zCDP), or make a ledger with --rho"
    elif isinstance(total, ZCDP):
        way = "give --rho, or --epsilon without --delta, or make a ledger with --epsilon and --delta"
    else:
        way = "give --epsilon (and --delta) instead of --rho (zCDP), or make a ledger with --rho"
    names = {PureDP: "pure ε", ZCDP: "zCDP", ApproxDP: "(ε, δ)"}
    raise BudgetError(f"this ledger is {names[type(total)]}, its total is {total}: {way}")


def weak_protection(budget: Budget) -> str | None:
    """A plain word about a budget that hardly protects; None for one that does."""
    from ..report import words

    return words.weak_protection(budget)


def unit_from(relation: str, column: str | None, max_rows: int | None) -> PrivacyUnit:
    from ..privacy.unit import RELATIONS, PrivacyUnit

    if relation not in RELATIONS:
        raise WrongUse(f"--relation is add-remove or replace-one, got {relation!r}")
    if column is None and max_rows is not None:
        raise WrongUse(f"--max-rows {max_rows} needs --unit-column, which says whose row it is")
    if column is not None and max_rows is None:
        raise WrongUse(f"--unit-column {column} needs --max-rows: how many rows of one person may count")
    if max_rows is not None and max_rows < 1:
        raise WrongUse(f"--max-rows is a whole number of at least 1, got {max_rows}")
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
        again = next((name for name in names if names.count(name) > 1), None)
        if again is not None:
            raise WrongUse(f"--table {text}: a table names each column once, and {again!r} stands there twice")
        try:
            cliques.append(domain.clique(names))
        except InputError as error:
            raise WrongUse(f"--table {text}: {error}") from None
        _check_size(domain, cliques[-1])
    _check_total(domain, cliques)
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


def _check_total(domain: Domain, cliques: Sequence[Clique]) -> None:
    from ..privacy.calibration import LARGEST_DRAW

    cells = sum(map(domain.size, cliques))
    if cells > LARGEST_DRAW:
        raise CostError(
            f"the tables have {cells:,} cells together, and at most {LARGEST_DRAW:,} are drawn in one command; ask for "
            "fewer tables at once, or give their columns fewer levels in the schema"
        )


def limits_from(most_seconds: int | None) -> Limits:
    """The limits for a file that somebody else may have made."""
    from ..io.limits import DEFAULT_LIMITS

    if most_seconds is None:
        return DEFAULT_LIMITS
    if most_seconds < 1:
        raise WrongUse(f"--most-seconds is a whole number of at least 1, got {most_seconds}")
    return replace(DEFAULT_LIMITS, refit_seconds=most_seconds)


def check_engine(engine: str | None) -> None:
    engines = ("auto", "memory", "duckdb", "spark")
    if engine is not None and engine not in engines:
        raise WrongUse(f"--engine is one of {', '.join(engines)}; got {engine!r}")


def check_level(level: float) -> float:
    if not 0 < level < 1:
        raise WrongUse(f"--level is a probability strictly between 0 and 1, got {level}")
    return level
