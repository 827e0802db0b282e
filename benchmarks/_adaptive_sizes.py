"""Never worse than independent columns: from 50 records to a million, from two columns to hundreds, in every notion.

The records are of random networks. Independent columns are learned privately with the same budget and the same fit, so
that what is compared is whether looking for more than columns ever does harm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.harness import Checkpoint, row
from discreet.domain import Domain
from discreet.inference.exact import get_engine
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.models.base import Model
from discreet.models.generators import network as random_network
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.tables.encode import encode

Row = dict[str, Any]
NOTIONS: tuple[Budget, ...] = (ApproxDP(1, "1e-9"), PureDP(1), ApproxDP("0.1", "1e-9"), ZCDP("0.1"))
SIZES = (
    (50, 5),
    (50, 40),
    (500, 2),
    (500, 15),
    (5_000, 15),
    (5_000, 100),
    (100_000, 15),
    (1_000_000, 15),
    (100_000, 500),
)
QUICK = ((50, 5), (500, 15), (5_000, 15))
RUNS, LOOKED_AT = 4, 300


def rows(quick: bool, seed: int, kept: Checkpoint) -> Iterator[Row]:
    """The mean error of pairs divided by that of independent columns, with two standard errors allowed."""
    for n, p in QUICK if quick else SIZES:
        for budget in NOTIONS[:2] if quick else NOTIONS:
            runs = 2 if quick or n * p > 10**7 else RUNS
            setting = f"random network, {n:,} records × {p} columns, {budget}"
            ratios = [kept.get(f"{setting}, {i}", partial(_ratio, n, p, budget, seed, i)) for i in range(runs)]
            doubt = 2 * float(np.std(ratios, ddof=1)) / math.sqrt(runs)
            yield row("pairs: mean TV divided by that of noisy independent columns", setting, float(np.mean(ratios)),
                      reference=1.0, reference_name="independent columns, same budget", target=1 + doubt, runs=runs,
                      ratios=ratios)  # fmt: skip


def _ratio(n: int, p: int, budget: Budget, seed: int, run: int) -> float:
    rng = np.random.default_rng([seed, run, n, p])
    most = 3 if p <= 100 else 2
    levels = (rng.integers(2, 7, p) if p <= 100 else np.full(p, 2)).tolist()
    truth = random_network(
        p, max_parents=most - 1, levels=levels, concentration=0.5, random_state=int(rng.integers(2**31))
    )
    codes = np.asarray(truth.sample(n, rng).codes, dtype=np.int64)
    domain = Domain.of(dict(zip(truth.domain.names, levels, strict=True)))
    table = encode(codes, domain)
    pairs = list(combinations(range(p), 2))
    some = [pairs[i] for i in rng.permutation(len(pairs))[:LOOKED_AT]]

    def error(learner: Any) -> float:
        with Curator(table, budget=budget) as curator:
            model: Model = learner.fit(curator)
        potentials = model.compact
        beliefs = get_engine(potentials.domain, potentials.cliques).calibrate(potentials)
        out = []
        for a, b in some:
            names = (domain.names[a], domain.names[b])
            shape = (levels[a], levels[b])
            x = np.bincount(codes[:, a] * shape[1] + codes[:, b], minlength=math.prod(shape)).reshape(shape) / n
            out.append(np.abs(x - beliefs.marginal(names).exp()).sum() / 2)
        return float(np.mean(out))

    columns = NoiseAwareField([(name,) for name in domain.names])
    return error(AdaptiveField()) / error(columns)
