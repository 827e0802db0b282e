"""Records, as people use them: made by our default and by OpenDP's own programs from the same data and budget.

Two things are looked at: the tables of the records that were made, and how well a classifier that has seen nothing else
predicts the last column of the true ones. Every method makes the same number of records, so the error that comes from
drawing them is the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.models.base import Model
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.spec import resolve
from discreet.tables.encode import encode

Row = dict[str, Any]
OURS, REAL = "discreet fit", "the true records"
PROGRAMS = ("OpenDP MST", "OpenDP AIM")
TRAINED, TESTED = 20_000, 20_000
FASTER = 20  # times, than the programs


def rows(tasks: list[Any], budget: Budget, kept: Checkpoint, folder: Path, errors: Any) -> Iterator[Row]:
    """For each task (:class:`benchmarks.adaptive.Task`) our records beside each program's."""
    for task in tasks:
        setting = f"{task.name}, {budget}"
        found = {
            method: kept.get(
                f"records, {setting}, {method}, {task.run}", partial(_one, task, method, budget, folder, errors)
            )
            for method in (OURS, REAL, *PROGRAMS)
        }
        ours = found[OURS]
        for method in PROGRAMS:
            theirs = found[method]
            if "failed" in theirs:
                yield row("records: mean TV, pairs", setting, ours["pairs"], runs=0,
                          note=f"skipped {method}: {theirs['failed']}")  # fmt: skip
                continue
            name = f"{method} ({theirs['version']})"
            for way in ("pairs", "triples", "five columns"):
                if way in ours:
                    yield row(f"records: mean TV, {way}", setting, ours[way], reference=theirs[way],
                              reference_name=name, target=theirs[way])  # fmt: skip
            yield row("records: seconds divided by the program's", setting, ours["seconds"] / theirs["seconds"],
                      reference=1.0, reference_name=name, target=1 / FASTER)  # fmt: skip
            yield row("records: accuracy for the last column", setting, ours["accuracy"], reference=theirs["accuracy"],
                      reference_name=name, better="higher", target=theirs["accuracy"] - _doubt(task))  # fmt: skip
        yield row("records: accuracy for the last column", setting, ours["accuracy"], better="higher",
                  reference=found[REAL]["accuracy"], reference_name=REAL)  # fmt: skip


def _one(task: Any, method: str, budget: Budget, folder: Path, errors: Any) -> Row:
    domain, true = task.records
    said: Row
    if method == REAL:
        return {"accuracy": accuracy(domain, true, true, task.seed)}
    if method == OURS:
        table = encode(true, domain)
        begun = time.perf_counter()
        with Curator(table, budget=budget) as curator:
            model: Model = resolve(domain).learn(curator).model
        made = np.asarray(model.sample(peers.MADE, random_state=task.seed).codes, dtype=np.int64)
        said = {"seconds": time.perf_counter() - begun}
    else:
        by, said = peers.made_by(method, domain, true, budget, folder)
        if by is None:
            return said
        made, said = by, {**said, "seconds": said["fit_seconds"] + said["make_seconds"]}
    return {**errors(task, made), "accuracy": accuracy(domain, made, true, task.seed), **said}


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
