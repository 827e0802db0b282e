"""Fields of order 3 whose columns have three levels and whose cliques nobody knows: what the papers leave open.

[001] has regressions for pairs of columns with k levels (Algorithm 3) and for t-wise fields of two (Algorithm 4).
Generalised, without a new mechanism: every level but the first of a column becomes a column of two levels, Algorithm 4
learns the field of these, and what it says of the codes that are possible is the model. Beside it our default, which
finds cliques itself.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Checkpoint, row
from discreet.domain import Attribute, Domain
from discreet.learn.baselines import NonprivateField
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.regressions.pairwise import PairwiseRegressions
from discreet.learn.regressions.spins import SpinRegressions
from discreet.models import MarkovRandomField
from discreet.models.base import Model
from discreet.privacy.budget import ApproxDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.spec import resolve
from discreet.tables.memory import MemoryTable

Array = NDArray[np.float64]
COLUMNS, LEVELS, WEIGHT = 7, 3, 0.8
CLIQUES = (("x0", "x1", "x2"), ("x3", "x4", "x5"), ("x5", "x6"))
DOMAIN = Domain(tuple(Attribute.categorical(f"x{i}", LEVELS) for i in range(COLUMNS)))
BITS = Domain.of({f"x{i}={level}": 2 for i in range(COLUMNS) for level in range(1, LEVELS)})
EVERY = np.indices(DOMAIN.shape).reshape(COLUMNS, -1).T
RECORDS, BUDGETS = 10_000, ("0.3", "1", "3")
DEFAULT, INDEPENDENT, EXACT = "", "independent columns, not private", "cliques known, not private"


def truth_of(seed: int) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    return MarkovRandomField(DOMAIN, {c: rng.normal(0, WEIGHT, (LEVELS,) * len(c)) for c in CLIQUES})


def bits_of(codes: Any) -> Any:
    return np.concatenate([(codes[:, i : i + 1] == np.arange(1, LEVELS)) for i in range(COLUMNS)], axis=1)


def table_of(codes: Any, domain: Domain) -> MemoryTable:
    return MemoryTable(domain, [np.ascontiguousarray(codes[:, i], dtype=np.uint8) for i in range(codes.shape[1])])


def joint(model: Model) -> Array:
    return np.asarray(model.marginal(DOMAIN.names).probabilities, dtype=np.float64)


def by_levels(order: int, fitted: bool, codes: Any, budget: ApproxDP) -> Array:
    """Algorithm 4 on levels, restricted to codes that are possible."""
    with Curator(table_of(bits_of(codes), BITS), budget=budget) as curator:
        found = SpinRegressions(order, fitted=fitted).fit(curator)
    spins, place = 2.0 * bits_of(EVERY) - 1, {name: i for i, name in enumerate(BITS.names)}
    coefficients = found.coefficients if order > 2 else found.to_binary().coefficients
    energy = sum(h * spins[:, [place[n] for n in I]].prod(axis=1) for I, h in coefficients.items())
    out = np.exp(energy - np.max(energy)).reshape(DOMAIN.shape)
    return np.asarray(out / out.sum())


def by(learner: Callable[[], Any], codes: Any, budget: ApproxDP) -> Array:
    with Curator(table_of(codes, DOMAIN), budget=budget) as curator:
        return joint(learner().fit(curator))


def by_default(codes: Any, budget: ApproxDP) -> Array:
    with Curator(table_of(codes, DOMAIN), budget=budget) as curator:
        return joint(resolve(DOMAIN, family="field").learn(curator).model)


METHODS: dict[str, Callable[[Any, ApproxDP], Array]] = {
    DEFAULT: by_default,
    "pairs, moments": partial(by, PairwiseField),
    "pairs, Algorithm 3": partial(by, partial(PairwiseRegressions, fitted=False)),
    "pairs, Algorithm 3, fitted": partial(by, partial(PairwiseRegressions, fitted=True)),
    "triples, Algorithm 4 on levels": partial(by_levels, 3, False),
    "triples, Algorithm 4 on levels, fitted": partial(by_levels, 3, True),
}


def far(found: Array, truth: Array) -> float:
    """Mean total variation of all tables of three columns."""
    gaps = []
    for kept in combinations(range(COLUMNS), 3):
        others = tuple(i for i in range(COLUMNS) if i not in kept)
        gaps.append(0.5 * np.abs(found.sum(axis=others) - truth.sum(axis=others)).sum())
    return float(np.mean(gaps))


def one(epsilon: str, seed: int) -> dict[str, float]:
    truth = truth_of(seed)
    codes, exact = truth.sample(RECORDS, seed, method="exact").codes, joint(truth)
    budget = ApproxDP(epsilon, "1e-6")
    out = {name: far(learn(codes, budget), exact) for name, learn in METHODS.items()}
    alone = np.ones(())
    for i in range(COLUMNS):
        alone = np.multiply.outer(alone, np.bincount(codes[:, i], minlength=LEVELS) / RECORDS)
    known = NonprivateField(CLIQUES).fit(ExactCurator(table_of(codes, DOMAIN)))
    return out | {INDEPENDENT: far(alone, exact), EXACT: far(joint(known), exact)}


def rows(kept: Checkpoint, runs: int, seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    for epsilon in BUDGETS[1:2] if quick else BUDGETS:
        found = [
            kept.get(f"levels, ε={epsilon}, {s}", partial(one, epsilon, s))
            for s in range(1000 * seed, 1000 * seed + runs)
        ]
        where = f"{COLUMNS} columns of {LEVELS} levels, cliques of three unknown, n = {RECORDS:g}, ({epsilon}, 1e-6)"
        mean = {name: statistics.fmean(f[name] for f in found) for name in found[0]}
        for name, value in mean.items():
            method = {"method": name} if name else {}
            yield row("mean total variation of triples", where, value, reference=mean[INDEPENDENT],
                      reference_name=INDEPENDENT, runs=runs, notion="approx", relation="add-remove", n_public=False,
                      **method)  # fmt: skip
