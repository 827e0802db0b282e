"""``discreet bench``: runs one benchmark of the checkout and says which targets were met."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import FileFormatError, counted, did_you_mean
from . import places
from .console import note, progress, say, say_json, say_table
from .failures import Exit, WrongUse


def bench(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which benchmark; --list names them.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small run: minutes instead of hours.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Of data, graphs and post-processing; never of noise.")] = 0,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where real data sets lie.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the rows here; - is stdout.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 when a target is missed.")] = False,
    list_names: Annotated[bool, typer.Option("--list", help="Which benchmarks there are.")] = False,
) -> None:
    """Run a benchmark: every figure that the documentation claims, one command.

    \b
    [bold]Examples[/bold]
      discreet bench --list
      discreet bench foundations --quick --json foundations.json
    """
    folder = benchmarks_folder()
    known = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_") and p.stem != "harness")
    if list_names:
        if str(json_file) == "-":
            say_json(known)
        else:
            say("\n".join(known))
        return
    if name is None:
        raise WrongUse("name a benchmark; `discreet bench --list` says which there are")
    if name not in known:
        raise WrongUse(f"there is no benchmark {name!r}{did_you_mean(name, known)}")
    if data is not None and not data.is_dir():
        raise FileFormatError(f"--data {data} is not a folder")
    if json_file is not None and str(json_file) != "-":
        places.writable(json_file, force=True)
    if str(folder.parent) not in sys.path:
        sys.path.insert(0, str(folder.parent))
    harness: Any = importlib.import_module("benchmarks.harness")
    module: Any = importlib.import_module(f"benchmarks.{name}")
    with progress():
        rows = harness.checked_rows(module.run(quick=quick, seed=seed, data=data))
    if json_file is not None and str(json_file) == "-":
        say_json(rows)
    else:
        headings = ["what", "setting", "method", "ours", "reference", "", "target", "verdict"]
        say_table(headings, [harness.display(row) for row in rows], right=["ours", "reference", "target"])
        if json_file is not None:
            harness.write_rows(rows, json_file)
            note(f"Wrote {counted(len(rows), 'row')} to {json_file}.")
    missed = [row for row in rows if harness.verdict(row) == "missed"]
    with_target = [row for row in rows if row.get("target") is not None]
    note(f"{len(with_target) - len(missed)} of {len(with_target)} targets met.")
    if missed and strict:
        raise typer.Exit(Exit.CHECK_FAILED)


def benchmarks_folder() -> Path:
    """The benchmarks of the checkout that this package was installed from in place."""
    folder = Path(__file__).resolve().parents[3] / "benchmarks"
    if not (folder / "harness.py").is_file():
        raise FileFormatError(
            "benchmarks are not part of the installed package; clone the repository and run `./discreet bench` in it"
        )
    return folder
