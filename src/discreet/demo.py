"""The demonstration: a whole release, on patients who need no protection because they do not exist."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import networks
from .domain import Domain
from .errors import FileFormatError, InputError
from .io.atomic import write_atomically
from .models import Records
from .program import program
from .release import Release
from .schema import save_schema

Run = Callable[[Sequence[str]], int]

QUESTIONS = (
    ("P(lung=yes | smoke=yes)", {"lung": "yes"}, {"smoke": "yes"}),
    ("P(dysp=yes | bronc=yes)", {"dysp": "yes"}, {"bronc": "yes"}),
    ("P(either=yes | xray=yes)", {"either": "yes"}, {"xray": "yes"}),
)
EPSILON, TOTAL = "1", "3"
_SEED = 1988  # of the synthetic patients only; noise is never seeded
_DRAWS = 40
_MANIFEST = ".discreet-demo.json"
_FILES = (
    "patients.csv", "draft.toml", "schema.toml", "graph.txt", "ledger.db", "ledger.db.key", "model.zip",
    "synthetic.csv", "report.html",
)  # fmt: skip


@dataclass
class Played:
    """What a demonstration did: the commands, the exit code of the last, and the answers beside the truth."""

    code: int = 0
    commands: list[list[str]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self, directory: Path) -> dict[str, Any]:
        files = [str(directory / name) for name in _FILES if (directory / name).exists()]
        spent = {"epsilon": EPSILON, "of": TOTAL}
        return {"files": files, "commands": self.commands, "answers": self.answers, "spent": spent}


def play(directory: Path, people: int, run: Run) -> Played:
    """Play the demonstration in a folder.

    ``run`` runs a command line in this process and returns its exit code.
    """
    played = Played()

    def step(text: str, arguments: Sequence[str]) -> bool:
        """Say what comes, and run it; False when it failed."""
        played.commands.append([*shlex.split(program()), *arguments])
        print(f"\n{text}\n\n  $ {shlex.join(played.commands[-1])}\n", flush=True)
        played.code = run(arguments)
        return not played.code

    if people < 1:
        raise InputError(f"a demonstration needs at least one patient, got {people}")
    _prepare(directory)
    at = {name: str(directory / name) for name in _FILES}

    print("A demonstration. The patients are synthetic, drawn from the textbook network 'asia' (Lauritzen and")
    print("Spiegelhalter, 1988); pretend that they are real, and that only the questionnaire is publicly known.\n")
    network = networks.load("asia")
    patients = network.sample(people, random_state=_SEED)
    patients.to_csv(at["patients.csv"])
    print(f"  {at['patients.csv']}  the private rows")

    if find_spec("duckdb") is None:
        print("\nA first schema could be drafted from the data; that needs pip install 'discreet[files]'.")
    elif not step("A first schema, drafted from the data. It marks what it learned by looking at them:",
                  ["schema", "draft", at["patients.csv"], "-o", at["draft.toml"]]):  # fmt: skip
        return played
    # An answer that is absent or none of these must not count as a disease.
    public = Domain(tuple(replace(question, outside="no") for question in network.domain.attributes))
    save_schema(public, at["schema.toml"])
    arrows = "".join(f"{parent} -> {child}\n" for parent, child in network.edges)
    write_atomically(Path(at["graph.txt"]), [f"# What doctors know about what causes what.\n{arrows}".encode()])
    print("\nLevels that are looked up are not protected. What the questionnaire says is public, and is taken instead:")
    print(f"  {at['schema.toml']}  the schema: eight questions, answered yes or no")
    print(f"  {at['graph.txt']}  a graph that experts drew without looking (without it, one is found privately)")

    asked = [at["patients.csv"], "--schema", at["schema.toml"], "--graph", at["graph.txt"], "--epsilon", EPSILON]
    steps = [
        ("What would be spent on what, and what errors to expect. No row is read:", ["plan", *asked]),
        ("A ledger: what all releases from these patients may cost together.",
         ["ledger", "create", at["ledger.db"], "--epsilon", TOTAL]),
        ("The fit. The spend is on the disk before noise is drawn:",
         ["fit", *asked, "--ledger", at["ledger.db"], "-o", at["model.zip"], "--no-plan"]),
        ("Three questions to the model. ± says how far the privacy noise can have moved an answer:",
         ["query", at["model.zip"], *(question for question, _, _ in QUESTIONS)]),
    ]  # fmt: skip
    if not all(step(text, arguments) for text, arguments in steps):
        return played
    played.answers = _beside_the_truth(Path(at["model.zip"]), patients)
    steps = [
        ("Synthetic records, as many as you like; they cost nothing:",
         ["sample", at["model.zip"], "-n", str(people), "-o", at["synthetic.csv"]]),
        ("A report for people, one page that needs no network:",
         ["report", at["model.zip"], "-o", at["report.html"]]),
        ("Anybody can check the released file:", ["verify", at["model.zip"]]),
        ("What was spent, and what is left:", ["ledger", "show", at["ledger.db"]]),
    ]  # fmt: skip
    if not all(step(text, arguments) for text, arguments in steps):
        return played
    print(f"\nThe files are in {directory.resolve()}. model.zip and synthetic.csv can be published; patients.csv is")
    print(f"private; keep ledger.db, which remembers what was spent. Spent here: ε = {EPSILON} of {TOTAL}.")
    print(f"Open the report in a browser: {Path(at['report.html']).resolve()}")
    return played


def _beside_the_truth(file: Path, patients: Records) -> list[dict[str, Any]]:
    """The answers beside the exact ones, which may be shown for one reason only: the patients do not exist."""
    release = Release.load(file)
    intervals = release.intervals(draws=_DRAWS)
    print("\nBeside the truth, which can be shown only because these patients are synthetic:\n")
    print(f"  {'question':<26}{'model':>8}{'90 % interval':>19}{'truth':>9}")
    answers = []
    for question, event, given in QUESTIONS:
        found = intervals.probability(event, given)
        lower, upper = float(found.lower), float(found.upper)
        truth = _share(patients, event, given)
        inside = "" if lower <= truth <= upper else "   outside, as about 1 in 10 will be"
        interval = f"{lower:.3f} … {upper:.3f}"
        estimate = float(found.estimate)
        print(f"  {question:<26}{estimate:>8.3f}{interval:>19}{truth:>9.3f}{inside}")
        answers.append({"question": question, "model": estimate, "lower": lower, "upper": upper, "truth": truth})
    return answers


def _share(patients: Records, event: dict[str, str], given: dict[str, str]) -> float:
    """The exact relative frequency among the patients."""
    both = {**event, **given}
    counts = patients.counts(list(both))
    for name in reversed(given):  # the last axes
        counts = counts[..., patients.domain[name].code(given[name])]
    joint, condition = counts, float(counts.sum())
    for name in reversed(event):
        joint = joint[..., patients.domain[name].code(event[name])]
    return float(joint) / condition if condition else float("nan")


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
