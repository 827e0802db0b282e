"""``discreet sample``: synthetic records from a model."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import counted
from . import options
from .console import clean, note, progress, say_json
from .failures import WrongUse
from .query import Given, ModelFile, given_from, open_release

if TYPE_CHECKING:
    from ..models.records import Records

_ENDINGS = (".csv", ".parquet")


def sample(
    model: ModelFile,
    records: Annotated[int, typer.Option("-n", "--records", metavar="N", help="How many.")] = 1000,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help=".csv or .parquet; default: CSV on stdout.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="For the same records again; default: fresh ones.")
    ] = None,
    given: Given = None,
    method: Annotated[
        str, typer.Option(metavar="auto|exact|rounded|gibbs", help="rounded: expected counts rounded, less variance.")
    ] = "auto",
    within_bins: Annotated[
        bool, typer.Option("--within-bins", help="Draw binned numbers uniformly within their bins.")
    ] = False,
    safe_csv: options.SafeCsv = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw synthetic records: same columns and labels as the original.

    They say what the model says and nothing more, so they cost nothing and can
    be published when the model can. What is known of that goes into the
    metadata of Parquet files; CSV has no room for it.

    \b
    [bold]Examples[/bold]
      discreet sample model.zip -n 10000 -o synthetic.csv
      discreet sample model.zip -n 10000 --seed 1 -o synthetic.parquet
      discreet sample asia -n 5 --given smoke=yes
    """
    if records < 1:
        raise WrongUse(f"-n is a whole number of at least 1, got {records}")
    if seed is not None and seed < 0:
        raise WrongUse(f"--seed is a whole number of at least 0, got {seed}")
    if output is not None:
        if output.suffix.lower() not in _ENDINGS:
            raise WrongUse(f"records are written as .csv or .parquet, got {output}")
        options.writable(output, force=force)
    release = open_release(model)
    with progress():
        drawn = release.model.sample(records, seed, given=given_from(given), method=method, within_bins=within_bins)
    if drawn.warning:
        note(f"WARNING: {drawn.warning}. Do not publish them.")
    elif not drawn.origin:
        note(f"Remark: {model} carries no statement of privacy; publish these records only if it may be published.")
    if output is None and not as_json:
        text = _csv_text(drawn, safe_csv)
        sys.stdout.write(clean(text) if sys.stdout.isatty() else text)  # labels must not drive the terminal
        return
    if output is not None:
        _write(drawn, output, safe_csv)
    if as_json:
        rows = None if output is not None else list(drawn)
        where = None if output is None else str(output)
        about = {"method": drawn.method, "origin": drawn.origin or "not stated"}
        say_json({"records": len(drawn), "file": where, **about, "rows": rows})
        return
    note(f"Wrote {counted(len(drawn), 'synthetic record')} to {output} ({drawn.method}).")


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
