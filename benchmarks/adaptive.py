"""Nobody knows the graph: our default beside independent columns, a searched network, and MST, AIM and SWIFT by rule.

Data: NLTCS and Adult (``nltcs.csv``, ``adult.csv`` and ``adult-domain.json`` in the folder ``data`` or the one that the
variable DISCREET_DATA names; skipped where they are absent), 10,000 records of the bundled networks child, alarm and
sachs, and of one random network that nothing was tuned on. ``seed`` changes the records, the random network and which
tables are looked at. Every method learns from the same records; the noise is never seeded.

The error is the mean total variation between a table in the records and in the model, over all pairs of columns, 300
triples and 100 sets of five (those of at most 300,000 cells), all marginals exact. The peers are their published rules
on our engine and our fit (:mod:`benchmarks._adaptive_peers`). A full run also has OpenDP's own programs, by the records
that they make (:mod:`benchmarks._adaptive_records`; environments of their own, see ``bench peers``), and every run has
sizes from 50 records to a million beside independent columns (:mod:`benchmarks._adaptive_sizes`) and counts how many
intervals of certificates cover (:mod:`benchmarks._adaptive_certificates`).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _adaptive_certificates, _adaptive_records, _adaptive_sizes
from benchmarks._adaptive_peers import AIM, MST, SWIFT
from benchmarks.harness import Checkpoint, one_thread, row
from discreet import networks
from discreet.domain import Clique, Domain
from discreet.inference.exact import get_engine
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.learner import Learner
from discreet.learn.networks.search import SearchedNetwork
from discreet.models.base import Model
from discreet.models.generators import network as random_network
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.spec import resolve
from discreet.tables.encode import encode

Row = dict[str, Any]
RECORDS, RUNS, DELTA = 10_000, 5, "1e-9"
REAL, DRAWN = ("NLTCS", "Adult"), ("child", "alarm", "sachs", "random network")
BUDGETS: tuple[Budget, ...] = (ApproxDP(1, DELTA), ApproxDP("0.1", DELTA), ApproxDP(10, DELTA), PureDP(1))
DEFAULT, INDEPENDENT, SEARCHED = "adaptive field", "independent columns, exact", "network searched"
METHODS: dict[str, Learner[Any]] = {
    DEFAULT: AdaptiveField(),
    SEARCHED: SearchedNetwork(),
    "MST by rule": MST(),
    "SWIFT by rule": SWIFT(),
    "SWIFT by rule, likelihood": SWIFT(likelihood=True),
    "AIM by rule, pairs": AIM(),
    "AIM by rule, triples": AIM(ways=3),
}
SWIFT_NAME, SWIFT_LIKELIHOOD, AIM_NAME, AIM_TRIPLES = RIVALS = tuple(METHODS)[-4:]
MOST_COLUMNS = {AIM_NAME: 20, AIM_TRIPLES: 16}
"""AIM looks at every candidate in every round: on the 37 columns of alarm that takes more than four minutes a run."""
AIM_RUNS = 2
"""AIM takes a minute where the others take seconds: so many runs, and at the first budget only."""
NO_AIM_QUICKLY = ("NLTCS", "child")
WAYS = {2: "pairs", 3: "triples", 5: "five columns"}
MOST_TABLES = {2: 100_000, 3: 300, 5: 100}
MOST_CELLS, DRAWS = 300_000, 20_000
TARGETS = {
    ("NLTCS", BUDGETS[0]): (0.0024, 0.0056, 0.0166),
    ("Adult", BUDGETS[0]): (0.0348, 0.0770, 0.140),
    ("child", BUDGETS[0]): (0.0106, 0.0215, 0.055),
    ("alarm", BUDGETS[0]): (0.0115, 0.0228, 0.049),
    ("NLTCS", BUDGETS[1]): (0.016, 0.030, 0.060),
    ("NLTCS", BUDGETS[2]): (0.0004, 0.0016, 0.0071),
}
MOST_SECONDS = 10.0


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows. A full run goes round all settings before it repeats one; interrupted, it is taken up again from
    ``adaptive-SEED.checkpoint.jsonl`` in the current folder (that of the data may not be ours to write to)."""
    folder = data or (Path(os.environ["DISCREET_DATA"]) if os.environ.get("DISCREET_DATA") else None)
    names = ("NLTCS", "child", "sachs") if quick else (*REAL, *DRAWN)
    missing = [name for name in names if name in REAL and not _is_there(name, folder)]
    for name in missing:
        yield row("mean TV", name, None, runs=0, note=f"skipped: --data or DISCREET_DATA names no folder with {name}")  # type: ignore[arg-type]
    settings = [(n, b) for b in (BUDGETS[:1] if quick else BUDGETS) for n in names if n not in missing]
    found: dict[tuple[str, Budget], dict[str, list[Row]]] = {setting: {} for setting in settings}
    with Checkpoint.of("adaptive", seed, quick, None) as kept, one_thread():
        for i in range(1 if quick else RUNS):
            for (name, budget), results in found.items():
                task = Task(name, seed, i, folder)
                for method in (INDEPENDENT, *METHODS):
                    if is_measured(task, budget, method, quick, i):
                        key = f"{name}, {budget}, {method}, {i}"
                        result = kept.get(key, lambda t=task, b=budget, m=method: measure(t, b, m))
                        results.setdefault(method, []).append(result)
        for (name, budget), results in found.items():
            yield from rows_of(name, budget, results)
        yield from _adaptive_sizes.rows(quick, seed, kept)
        yield from _adaptive_certificates.rows(quick, seed, kept)
        if not quick:
            yield from summary(found)
            tasks = [Task(name, seed, 0, folder) for name in names if name not in missing]
            with tempfile.TemporaryDirectory() as environments:
                yield from _adaptive_records.rows(tasks, BUDGETS[0], kept, Path(environments), errors_of_records)


def is_measured(task: Task, budget: Budget, method: str, quick: bool, run: int = 0) -> bool:
    if method in (AIM_NAME, AIM_TRIPLES) and (run >= AIM_RUNS or budget != BUDGETS[0]):
        return False
    if method in (SWIFT_NAME, SWIFT_LIKELIHOOD):
        return isinstance(budget, ApproxDP)  # it is made of Gaussian noise
    if len(task.records[0]) > MOST_COLUMNS.get(method, math.inf):
        return False
    return not quick or (method != AIM_TRIPLES and (method != AIM_NAME or task.name not in NO_AIM_QUICKLY))


# -- rows --------------------------------------------------------------------------------------------------------------


def rows_of(name: str, budget: Budget, results: dict[str, list[Row]]) -> Iterator[Row]:
    """The default with what was asked for, then beside each of the others.

    No worse than the others, within two standard errors of the difference (0 from a single run, where peers have no
    target for that reason).
    """
    setting, ours = f"{name}, {budget}", results[DEFAULT]
    said = {"notion": budget.notion, "relation": "add-remove", "n_public": False}
    asked = dict(zip(WAYS.values(), TARGETS.get((name, budget), (None,) * 3), strict=True))
    for way in WAYS.values():
        what = f"mean TV, {way}"
        errors = [r[way] for r in ours]
        mean = float(np.mean(errors))
        yield row(what, setting, mean, target=asked[way], runs=len(ours), errors=errors, **said)
        for method, theirs in results.items():
            if method != DEFAULT:
                others = [r[way] for r in theirs]
                reference = float(np.mean(others))
                apart = np.array(errors[: len(others)]) - np.array(others)
                doubt = 2 * float(apart.std(ddof=1)) / math.sqrt(len(apart)) if len(apart) > 1 else 0.0
                judged = len(apart) > 1 or method in (INDEPENDENT, SEARCHED)
                same = float(np.mean(errors[: len(others)]))  # of the runs that both had
                yield row(what, setting, same, reference=reference, reference_name=method, runs=len(others),
                          target=reference + doubt if judged else None, reference_errors=others, **said)  # fmt: skip
    times = {method: float(np.median([r["seconds"] for r in many])) for method, many in results.items()}
    yield row("processor seconds", setting, times[DEFAULT], runs=len(ours), seconds=times,
              target=MOST_SECONDS if (name, budget) in TARGETS else None)  # fmt: skip
    if AIM_NAME in times:
        yield row("processor time divided by AIM's", setting, times[DEFAULT] / times[AIM_NAME], reference=1.0,
                  reference_name=AIM_NAME, runs=len(ours))  # fmt: skip


def summary(found: dict[tuple[str, Budget], dict[str, list[Row]]]) -> Iterator[Row]:
    """In how many settings the default is at least 10 % better than the better of AIM and SWIFT."""
    for way in WAYS.values():
        better = []
        for results in found.values():
            means = {method: float(np.mean([r[way] for r in many])) for method, many in results.items()}
            peers = [means[m] for m in RIVALS if m in means]
            better += [means[DEFAULT] <= 0.9 * min(peers)] if peers else []
        if better:
            yield row(f"part of settings at least 10 % better than AIM and SWIFT, {way}", f"{len(better)} settings",
                      np.mean(better), better="higher", target=0.5)  # fmt: skip


# -- one run -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """The records of one run, and the tables to look at."""

    name: str
    seed: int
    run: int
    folder: Path | None = None

    @cached_property
    def records(self) -> tuple[Domain, np.ndarray]:
        """Codes, under a domain of whole numbers."""
        if self.name in REAL:
            assert self.folder is not None
            return read_table(self.name, self.folder)
        if self.name == "random network":
            levels = np.random.default_rng(self.seed).integers(2, 7, 15).tolist()
            network = random_network(15, max_parents=3, levels=levels, concentration=0.5, random_state=self.seed)
        else:
            network = networks.load(self.name)
        columns = dict(zip(network.domain.names, network.domain.shape, strict=True))
        codes = network.sample(RECORDS, np.random.default_rng([self.seed, self.run])).codes
        return Domain.of(columns), np.asarray(codes, dtype=np.int64)

    @cached_property
    def tables(self) -> dict[str, dict[Clique, np.ndarray]]:
        """For each number of columns, the records' proportions in the tables to look at."""
        domain, codes = self.records
        rng = np.random.default_rng(self.seed)
        return {
            word: {c: proportions(domain, codes, c) for c in some_sets(domain, ways, MOST_TABLES[ways], rng)}
            for ways, word in WAYS.items()
        }


def measure(task: Task, budget: Budget, method: str) -> Row:
    """Errors and processor seconds of one method on one task."""
    domain, codes = task.records
    if method == INDEPENDENT:
        columns = {n: proportions(domain, codes, (n,)) for n in domain.names}
        return errors(task, lambda c: reduce(np.multiply.outer, [columns[n] for n in c])) | {"seconds": 0.0}
    table = encode(codes, domain)
    begun = time.process_time()
    with Curator(table, budget=budget) as curator:  # our default with its certificate, as people have it
        model: Model = resolve(domain).learn(curator).model if method == DEFAULT else METHODS[method].fit(curator)
    seconds = time.process_time() - begun
    potentials = model.compact
    beliefs = get_engine(potentials.domain, potentials.cliques).calibrate(potentials)
    return errors(task, lambda c: beliefs.marginal(c).exp()) | {"seconds": seconds}


def errors(task: Task, marginal: Any) -> Row:
    return {
        word: float(np.mean([np.abs(p - marginal(c)).sum() / 2 for c, p in true.items()]))
        for word, true in task.tables.items()
        if true
    }


def errors_of_records(task: Task, made: np.ndarray) -> Row:
    domain = task.records[0]
    return errors(task, lambda c: proportions(domain, made, c))


def proportions(domain: Domain, codes: np.ndarray, clique: Clique) -> np.ndarray:
    shape = [domain[n].size for n in clique]
    flat = np.ravel_multi_index(tuple(codes[:, domain.index(n)] for n in clique), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape) / len(codes)


def some_sets(domain: Domain, ways: int, most: int, rng: np.random.Generator) -> list[Clique]:
    """All sets of so many columns with few enough cells, or as many random ones as are wanted."""
    p = len(domain)
    if math.comb(p, ways) <= DRAWS:
        every = list(itertools.combinations(domain.names, ways))
    else:
        every = list(dict.fromkeys(domain.clique(rng.choice(domain.names, ways, replace=False)) for _ in range(DRAWS)))
    small = [c for c in every if domain.size(c) <= MOST_CELLS]
    if len(small) <= most:
        return small
    return [small[i] for i in np.sort(rng.choice(len(small), most, replace=False))]


def _is_there(name: str, folder: Path | None) -> bool:
    files = {"NLTCS": ("nltcs.csv",), "Adult": ("adult.csv", "adult-domain.json")}[name]
    return folder is not None and all((folder / file).is_file() for file in files)


def read_table(name: str, folder: Path) -> tuple[Domain, np.ndarray]:
    codes = np.loadtxt(folder / f"{name.lower()}.csv", delimiter=",", skiprows=1, dtype=np.int64)
    if name == "NLTCS":
        return Domain.of({f"item{i}": 2 for i in range(codes.shape[1])}), codes
    return Domain.of(json.loads((folder / "adult-domain.json").read_text())), codes
