"""``discreet sample``: synthetic records from a model."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import counted
from . import options, places
from .console import clean, note, progress, say_json
from .failures import WrongUse
from .query import ModelFile, given_from, open_release

if TYPE_CHECKING:
    from ..models.base import Model
    from ..models.records import Records

_ENDINGS = (".csv", ".parquet")
_HOW = {
    "rounded": ", by rounding expected counts",
    "gibbs": ", by a Gibbs sampler, whose draws follow the model approximately",
}


def sample(
    model: ModelFile,
    records: Annotated[int | None, typer.Option("-n", "--records", metavar="N", help="How many; default 1000.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help=".csv or .parquet; default: CSV on stdout.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="For the same records again; default: fresh ones.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", metavar="COLUMN=LEVEL|FILE", help="A condition; or public rows to complete."),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="auto|exact|rounded|gibbs", help="rounded: expected counts rounded, less variance.")
    ] = "auto",
    where: Annotated[
        str | None, typer.Option(metavar="CONDITIONS", help='As after the bar of a question: "age >= 40, sex in {M}".')
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Bins and periods instead of numbers and dates within them.")
    ] = False,
    safe_csv: options.SafeCsv = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw synthetic records: columns, types and values as in the original.

    Numbers are drawn within their bins, with the decimals of the schema; dates
    within their periods, in its format; an absent value is an empty field.
    They say what the model says and nothing more, so they cost nothing and can
    be published when the model can. What is known of that goes into the
    metadata of Parquet files; CSV has no room for it.

    --given FILE completes public rows: what is there stays, absent fields and
    columns are drawn given it. Such records tell what the rows told.

    \b
    [bold]Examples[/bold]
      discreet sample model.zip -n 10000 -o synthetic.csv
      discreet sample model.zip -n 10000 --seed 1 -o synthetic.parquet
      discreet sample asia -n 5 --given smoke=yes
      discreet sample model.zip -n 500 --where "age >= 40, sex in {M}"
      discreet sample model.zip --given rows.csv -o completed.csv
    """
    if records is not None and records < 1:
        raise WrongUse(f"-n is a whole number of at least 1, got {records}")
    if seed is not None and seed < 0:
        raise WrongUse(f"--seed is a whole number of at least 0, got {seed}")
    if output is not None:
        if output.suffix.lower() not in _ENDINGS:
            raise WrongUse(f"records are written as .csv or .parquet, got {output}")
        places.writable(output, force=force)
    rows = _rows_file(given)
    if rows is not None and (records is not None or method != "auto"):
        raise WrongUse(f"every row of {rows} is completed once, exactly; leave out -n and --method")
    release = open_release(model)
    with progress():
        if rows is not None:
            drawn = release.model.complete(_public_rows(rows, release.model), seed, where=where, labels=labels)
        else:
            n, levels = 1000 if records is None else records, given_from(given)
            drawn = release.model.sample(n, seed, given=levels, where=where, method=method, labels=labels)
    if drawn.warning:
        note(f"WARNING: {drawn.warning}. Do not publish them.")
    elif drawn.origin == "claimed":
        note(
            f"Remark: the privacy of {model} is the claim of whoever made its noisy tables; discreet did not verify it."
        )
    elif not drawn.origin:
        note(f"Remark: {model} carries no statement of privacy; publish these records only if it may be published.")
    if drawn.redrawn > 0.01:
        note(
            f"Remark: {drawn.redrawn:.0%} of the first draws broke a rule of the schema and were drawn again. What "
            "breaks it more often is rarer in these records than in the model's answers: see docs/schema.md, rules."
        )
    if drawn.changed > 0.01:
        note(
            f"Remark: {drawn.changed:.0%} of the records have another level in a sum than was drawn, to add up. "
            "A total's relation to other columns is that of its parts: see docs/schema.md, rules."
        )
    if output is None and not as_json:
        text = _csv_text(drawn, safe_csv)
        sys.stdout.write(clean(text) if sys.stdout.isatty() else text)  # labels must not drive the terminal
        return
    if output is not None:
        _write(drawn, output, safe_csv)
    if as_json:
        shown = None if output is not None else [_plain(row) for row in drawn]
        where = None if output is None else str(output)
        about = {"method": drawn.method, "origin": drawn.origin or "not stated"}
        say_json({"records": len(drawn), "file": where, **about, "rows": shown})
        return
    what = "synthetic record" if rows is None else "completed row"
    note(f"Wrote {counted(len(drawn), what)} to {output}{_HOW.get(drawn.method, '')}.")
    if rows is not None:
        note(f"Remark: they repeat what {rows} says, which no budget covers; publish them only if that is public.")


def _rows_file(given: list[str] | None) -> Path | None:
    """The file of rows that ``--given`` names, if it does."""
    files = [Path(text) for text in given or () if "=" not in text and Path(text).suffix.lower() in _ENDINGS]
    if files and len(given or ()) > 1:
        raise WrongUse("--given takes conditions, or one file of rows; conditions on what is drawn go into --where")
    return files[0] if files else None


def _public_rows(path: Path, model: Model) -> Any:
    from ..frames import public_rows

    rows = public_rows(path)
    unknown = [name for name in rows if name not in model.domain]
    if unknown:
        note(f"Remark: the model does not know {', '.join(map(repr, unknown[:5]))}; left out.")
    return rows


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Dates as text, which is all that JSON has for them."""
    return {name: x.isoformat() if isinstance(x, date) else x for name, x in row.items()}


def _write(drawn: Records, path: Path, safe_csv: bool) -> None:
    """Completely or not at all: written beside, then moved."""
    beside = path.with_name(f".discreet-{os.getpid()}-{path.name}")
    try:
        drawn.to_csv(beside, safe=safe_csv) if path.suffix.lower() == ".csv" else drawn.to_parquet(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _csv_text(drawn: Records, safe_csv: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        drawn.to_csv(path, safe=safe_csv)
        return path.read_text(encoding="utf-8")
