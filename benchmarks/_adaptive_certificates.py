"""Do the intervals of certificates cover what they say? Whole runs, in which the certificate is the last step.

The records are drawn afresh for each run, of networks and of mixtures of classes that nothing was set on. What is
covered is the total variation of the released model from these very records, computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Checkpoint, row
from discreet import networks
from discreet.domain import Domain
from discreet.models.generators import network as random_network
from discreet.models.marginals import marginals
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.release.release import Release
from discreet.spec import resolve
from discreet.tables.encode import encode

Row = dict[str, Any]
Rows = tuple[Domain, np.ndarray]
BUDGETS: tuple[Budget, ...] = (
    ApproxDP(1, "1e-9"),
    ApproxDP("0.1", "1e-6"),
    ZCDP("0.05"),
    PureDP(1),
    PureDP("0.1"),
)
RUNS, QUICK_RUNS = 20, 4
COVERED, AT_MOST = 0.87, 0.94
"""What 90 % intervals are asked to cover."""


def rows(quick: bool, seed: int, kept: Checkpoint) -> Iterator[Row]:
    """For each budget the parts of intervals, of pairs and of the mean, that cover; and of bounds at 95 %."""
    names = ("asia", "classes of 12 columns") if quick else tuple(SETS)
    runs = QUICK_RUNS if quick else RUNS
    for budget in BUDGETS:
        found = [
            kept.get(f"certificate, {name}, {budget}, {i}", partial(covered, name, budget, seed, i))
            for i in range(runs)
            for name in names
        ]
        pairs, looked_at = (sum(r[key] for r in found) for key in ("pairs", "of"))
        said = {"better": "higher", "runs": len(found)}
        setting = f"{len(names)} sets, {budget}"
        for what, part in (("pairs", pairs / looked_at), ("the mean", np.mean([r["mean"] for r in found]))):
            chance = 2 * (0.9 * 0.1 / len(found)) ** 0.5  # two standard errors of as many runs
            note = f"asked at most {AT_MOST}" if part > AT_MOST + chance else None
            yield row(f"certificate: 90 % intervals of {what} that cover", setting, part, target=COVERED - chance,
                      **({"note": note} if note else {}), **said)  # fmt: skip
        yield row("certificate: 95 % bounds on the mean that hold", setting, np.mean([r["bound"] for r in found]),
                  **said)  # fmt: skip


def covered(name: str, budget: Budget, seed: int, run: int) -> Row:
    """How many of the intervals of one certified run cover."""
    domain, codes = SETS[name](np.random.default_rng([seed, run]))
    with Curator(encode(codes, domain), budget=budget) as curator:
        release = Release.of(resolve(domain).learn(curator))
    certificate = release.certificate
    assert certificate is not None
    expected, _ = marginals(release.model, certificate.cliques)
    truth = {
        c: _apart(codes[:, [domain.index(n) for n in c]], mu)
        for c, mu in zip(certificate.cliques, expected, strict=True)
    }
    fits = certificate.fits()
    mean, (low, high) = float(np.mean(list(truth.values()))), certificate.mean_interval()
    return {
        "pairs": sum(fit.lower <= truth[c] <= fit.upper for c, fit in fits.items()),
        "of": len(fits),
        "mean": bool(low <= mean <= high),
        "bound": bool(mean <= certificate.mean_at_most()),
    }


def _apart(codes: np.ndarray, expected: np.ndarray) -> float:
    counts = np.bincount(np.ravel_multi_index(tuple(codes.T), expected.shape), minlength=expected.size)
    return float(np.abs(counts.reshape(expected.shape) / len(codes) - expected).sum() / 2)


# -- sets of records ---------------------------------------------------------------------------------------------------


def _drawn(name: str, n: int, rng: np.random.Generator) -> Rows:
    network = networks.load(name)
    codes = np.asarray(network.sample(n, rng).codes, dtype=np.int64)
    return Domain.of(dict(zip(network.domain.names, network.domain.shape, strict=True))), codes


def _network(levels: list[int], n: int, rng: np.random.Generator) -> Rows:
    network = random_network(len(levels), max_parents=2, levels=levels, concentration=0.5, random_state=len(levels))
    codes = np.asarray(network.sample(n, rng).codes, dtype=np.int64)
    return Domain.of(dict(zip(network.domain.names, levels, strict=True))), codes


def _classes(p: int, n: int, rng: np.random.Generator) -> Rows:
    """Six hidden classes; columns of two to five levels, each with rare ones."""
    laws = np.random.default_rng(p)
    levels = laws.integers(2, 6, p)
    of = rng.integers(0, 6, n)
    codes = np.empty((n, p), dtype=np.int64)
    for j, k in enumerate(levels):
        law = laws.dirichlet(np.full(k, 0.4), size=6)
        codes[:, j] = (rng.random(n)[:, None] > law[of].cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Domain.of({f"x{j}": int(k) for j, k in enumerate(levels)}), codes


SETS: dict[str, Callable[[np.random.Generator], Rows]] = {
    "asia": partial(_drawn, "asia", 2_000),
    "sachs": partial(_drawn, "sachs", 5_000),
    "network of 8 columns": partial(_network, [2, 5, 3, 4, 2, 3, 5, 2], 3_000),
    "network of 16 columns": partial(_network, [2] * 16, 20_000),
    "network of 25 columns": partial(_network, [3, 2, 4, 2, 3] * 5, 8_000),
    "classes of 12 columns": partial(_classes, 12, 1_000),
    "classes of 20 columns": partial(_classes, 20, 30_000),
}
