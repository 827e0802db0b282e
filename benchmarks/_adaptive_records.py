"""Records, as people use them: made by our default and by the packages of others from the same data and budget.

Two things are looked at: the tables of the records that were made, and how well a classifier that has seen nothing else
predicts the last column of the true ones. Every method makes the same number of records, so the error that comes from
drawing them is the same for all.

The packages take minutes a run, and nothing of ours decides what they make: what they gave is kept in
``benchmarks/results/adaptive-programs.json``. Delete a line to have it measured again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.harness import Checkpoint, row
from benchmarks.papers import RESULTS, Kept
from discreet.domain import Domain
from discreet.models.base import Model
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.spec import resolve
from discreet.tables.encode import encode

Row = dict[str, Any]
Errors = Callable[[Any, np.ndarray], Row]
OURS, REAL = "discreet fit", "the true records"
PROGRAMS = ("OpenDP MST", "OpenDP AIM", "dpsynth MST", "dpsynth SWIFT")
WAYS = ("pairs", "triples", "five columns")
TRAINED, TESTED = 20_000, 20_000
FASTER = 20  # times, than the programs
PROGRAM_RESULTS = RESULTS / "adaptive-programs.json"


def rows(tasks: list[Any], budget: Budget, kept: Checkpoint, folder: Path, errors: Errors) -> Iterator[Row]:
    """For each data set, by its tasks (:class:`benchmarks.adaptive.Task`), our records beside each program's."""
    theirs = Kept(PROGRAM_RESULTS)
    for name in dict.fromkeys(task.name for task in tasks):
        setting = f"{name}, {budget}"
        of = [task for task in tasks if task.name == name]
        found = {
            method: [
                kept.get(f"records, {setting}, {method}, {t.run}", partial(_one, t, method, budget, errors)) for t in of
            ]
            for method in (OURS, REAL)
        }
        ours = found[OURS]
        for method in PROGRAMS:
            by = [program(theirs, task, method, budget, folder, errors) for task in of[:1]]
            yield from _beside(setting, method, ours[:1], by, of[0])
        yield row("records: accuracy for the last column", setting, _mean(ours, "accuracy"), better="higher",
                  reference=_mean(found[REAL], "accuracy"), reference_name=REAL, runs=len(of))  # fmt: skip


def _beside(setting: str, method: str, ours: list[Row], theirs: list[Row], task: Any) -> Iterator[Row]:
    failed = next((r["failed"] for r in theirs if "failed" in r), None)
    if failed:
        yield row("records: mean TV, pairs", setting, _mean(ours, "pairs"), runs=0, note=f"skipped {method}: {failed}")
        return
    said = {"reference_name": f"{method} ({theirs[0]['version']})", "runs": len(theirs)}
    for way in WAYS:
        if way in ours[0]:
            reference = _mean(theirs, way)
            yield row(f"records: mean TV, {way}", setting, _mean(ours, way), reference=reference, target=reference,
                      **said)  # fmt: skip
    mine, reference = _mean(ours, "cpu_seconds"), _mean(theirs, "cpu_seconds")
    yield row("records: processor seconds divided by the program's", setting, mine / reference, reference=1.0,
              target=1 / FASTER, seconds=mine, reference_seconds=reference, **said)  # fmt: skip
    reference = _mean(theirs, "accuracy")
    yield row("records: accuracy for the last column", setting, _mean(ours, "accuracy"), reference=reference,
              better="higher", target=reference - _doubt(task), **said)  # fmt: skip


def _mean(results: list[Row], key: str) -> float:
    return float(np.mean([r[key] for r in results]))


def _one(task: Any, method: str, budget: Budget, errors: Errors) -> Row:
    domain, true = task.records
    if method == REAL:
        return {"accuracy": accuracy(domain, true, true, task.seed)}
    table = encode(true, domain)
    begun = time.process_time()
    with Curator(table, budget=budget) as curator:
        model: Model = resolve(domain).learn(curator).model
    made = np.asarray(model.sample(peers.MADE, random_state=task.seed).codes, dtype=np.int64)
    worked = time.process_time() - begun
    return {**errors(task, made), "accuracy": accuracy(domain, made, true, task.seed), "cpu_seconds": worked}


def program(kept: Kept, task: Any, method: str, budget: Budget, folder: Path, errors: Errors) -> Row:
    """What a package made of this task, measured once. That it is not to be had here is not kept."""

    def measure() -> Row:
        domain, true = task.records
        made, said = peers.made_by(method, domain, true, budget, folder)
        if made is None:
            return said
        return {**errors(task, made), "accuracy": accuracy(domain, made, true, task.seed), **said}

    key = f"{task.name}, {budget}, {method}, seed {task.seed}, run {task.run}"
    if key not in kept.found and peers.environment(method.split()[0], folder) is None:
        return {"failed": "it cannot be installed here"}
    found: Row = kept.get(key, measure)
    return found


def accuracy(domain: Domain, made: np.ndarray, true: np.ndarray, seed: int) -> float:
    """Of a logistic regression on all levels of the other columns, trained on some records that were made, on some
    true ones (other ones, where it is trained on true ones)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    order = np.random.default_rng(seed).permutation(len(true))
    half = min(TESTED, len(true) // 2)
    tested = true[order[:half]]
    trained = (true[order[half:]] if made is true else made)[:TRAINED]
    levels = OneHotEncoder(categories=[np.arange(k) for k in domain.shape[:-1]])
    x, y = levels.fit_transform(trained[:, :-1]), trained[:, -1]
    if len(np.unique(y)) == 1:
        return float(np.mean(tested[:, -1] == y[0]))
    return float(LogisticRegression(max_iter=300).fit(x, y).score(levels.transform(tested[:, :-1]), tested[:, -1]))


def _doubt(task: Any) -> float:
    """Two standard errors of a difference of two accuracies, at most."""
    return 2 * 0.5 * float(np.sqrt(2 / min(TESTED, len(task.records[1]) // 2)))
