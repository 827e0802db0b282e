"""The demonstration: the smallest honest release, on patients who need no protection because they do not exist."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from . import networks
from .domain import Domain
from .errors import FileFormatError, InputError
from .io.atomic import write_atomically
from .measurement import Measurements
from .models import Records
from .schema import save_schema

Run = Callable[[Sequence[str]], int]

TABLE = ("smoke", "lung")
EPSILON, TOTAL = "1", "3"
_SEED = 1988  # of the synthetic patients only; noise is never seeded
_MANIFEST = ".discreet-demo.json"
_FILES = ("patients.csv", "schema.toml", "ledger.db", "tables.zip")


def play(directory: Path, people: int, run: Run) -> int:
    """Play the demonstration in a folder; ``run`` runs a command line in this process and returns its exit code."""
    if people < 1:
        raise InputError(f"a demonstration needs at least one patient, got {people}")
    _prepare(directory)
    data, schema, ledger, tables = (directory / name for name in _FILES)

    print("A demonstration. The patients are synthetic, drawn from the textbook network 'asia' (Lauritzen and")
    print("Spiegelhalter, 1988); pretend that they are real, and that only the schema is publicly known.\n")
    network = networks.load("asia")
    patients = network.sample(people, random_state=_SEED)
    patients.to_csv(data)
    # An answer that is absent or none of these must not count as a disease.
    public = Domain(tuple(replace(question, outside="no") for question in network.domain.attributes))
    save_schema(public, schema)
    print(f"  {data}  the private rows")
    print(f"  {schema}   the public schema: yes/no questions, known without looking at any patient\n")

    table = ",".join(TABLE)
    asked = ["measure", str(data), "--schema", str(schema), "--table", table, "--epsilon", EPSILON]
    steps: list[tuple[str, list[str]]] = [
        ("What is publicly known:", ["schema", "show", str(schema)]),
        ("What would be spent, and what errors to expect. No row is read:", [*asked, "--plan"]),
        ("A ledger: what all releases from these patients may cost together.",
         ["ledger", "create", str(ledger), "--epsilon", TOTAL]),
        ("The release. The spend is on the disk before noise is drawn:",
         [*asked, "--ledger", str(ledger), "-o", str(tables)]),
    ]  # fmt: skip
    for text, arguments in steps:
        code = _step(text, arguments, run)
        if code:
            return code
    _beside_the_truth(tables, patients)
    for text, arguments in (
        ("What was spent, and what is left:", ["ledger", "show", str(ledger)]),
        ("Anybody can check the released file:", ["verify", str(tables)]),
    ):
        code = _step(text, arguments, run)
        if code:
            return code
    print(f"\nThe files are in {directory.resolve()}. {tables.name} can be published; {data.name} is private; keep")
    print(f"{ledger.name}, which remembers what was spent. Spent here: ε = {EPSILON} of {TOTAL}.")
    return 0


def _step(text: str, arguments: Sequence[str], run: Run) -> int:
    print(f"\n{text}\n\n  $ {shlex.join([program(), *arguments])}\n", flush=True)
    return run(arguments)


def program() -> str:
    """How the user calls us: the script of the checkout when there is one, else the installed command."""
    root = Path(__file__).resolve().parents[2]
    script = root / "discreet"
    if not (script.is_file() and (root / "pyproject.toml").is_file()):
        return "discreet"
    return "./discreet" if Path.cwd() == root else str(script)


def _beside_the_truth(tables: Path, patients: Records) -> None:
    """The released table beside the exact one, which may be shown for one reason only: the patients do not exist."""
    released = Measurements.load(tables).table(TABLE)
    clique = released.clique or ()
    codes = np.stack([patients.codes[:, patients.domain.index(name)] for name in clique], axis=1)
    truth = np.zeros(released.counts.shape, dtype=np.int64)
    np.add.at(truth, tuple(codes.T), 1)
    lower, upper = released.interval(0.9)
    print("\nBeside the truth, which can be shown only because these patients are synthetic:\n")
    widths = [max(len(name), 4) + 2 for name in clique]
    print("  " + "".join(f"{name:<{w}}" for name, w in zip(clique, widths, strict=True))
          + f"{'released':>10}{'90 % interval':>18}{'truth':>8}")  # fmt: skip
    for cell in np.ndindex(truth.shape):
        labels = [released.domain[name].labels[code] for name, code in zip(clique, cell, strict=True)]
        interval = f"{lower[cell]:g} … {upper[cell]:g}"
        inside = "" if lower[cell] <= truth[cell] <= upper[cell] else "   outside, as up to 1 in 10 will be"
        print("  " + "".join(f"{label:<{w}}" for label, w in zip(labels, widths, strict=True))
              + f"{released.values[cell]:>10g}{interval:>18}{truth[cell]:>8d}{inside}")  # fmt: skip


# -- the folder: our own files are replaced, others never ------------------------------------------------------------


def _prepare(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise FileFormatError(f"{directory} is a file; name a folder for the demonstration with --directory")
    if not directory.parent.is_dir():
        raise FileFormatError(f"the folder {directory.parent} does not exist; make it first")
    ours = _manifest(directory)
    foreign = [name for name in _FILES if (directory / name).exists() and name not in ours]
    if foreign:
        raise FileFormatError(
            f"{directory / foreign[0]} was not made by the demonstration and will not be touched; "
            "name another folder with --directory"
        )
    directory.mkdir(exist_ok=True)
    write_atomically(directory / _MANIFEST, [json.dumps({"files": _FILES}).encode()])
    for name in _FILES:
        for path in (directory / name, directory / f"{name}-journal"):
            if path.is_file():
                os.unlink(path)


def _manifest(directory: Path) -> list[str]:
    """The files that an earlier demonstration made here."""
    try:
        files = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))["files"]
        return [str(name) for name in files]
    except (OSError, ValueError, KeyError, TypeError):
        return []
