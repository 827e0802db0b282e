"""The log-partition of a graph too wide for exact inference, by annealed importance sampling, with its standard error.

The starting distribution is not uniform: it keeps a part of the potentials that forms a tree of cliques, whose
log-partition is exact and whose samples are independent. The other potentials are turned on slowly along β = 0 … 1,
with a Gibbs sweep at each temperature. The mean of the weights is then an unbiased estimate of Z / Z₀.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..domain import Clique, Domain
from ..errors import InputError
from ..factor import Array, logsumexp
from ..graph import DEFAULT_MEMORY_LIMIT
from .evidence import impossible
from .exact import ExactEngine, Potentials
from .gibbs import Gibbs


@dataclass(frozen=True)
class AnnealedEstimate:
    """An estimate of log Z. ``standard_error`` is that of the log (delta method); trust it while
    ``effective_size``, the number of equally weighted particles the estimate is worth, is not small."""

    log_partition: float
    standard_error: float
    effective_size: float
    particles: int
    temperatures: int


def annealed_log_partition(
    domain: Domain,
    potentials: Potentials,
    evidence: Mapping[str, int] | None = None,
    *,
    particles: int = 200,
    temperatures: int = 200,
    random_state: int | np.random.Generator | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> AnnealedEstimate:
    """Estimate log Z (of the cells that agree with the evidence)."""
    if particles < 2 or temperatures < 1:
        raise InputError(
            f"annealing needs at least 2 particles and 1 temperature, got particles={particles}, "
            f"temperatures={temperatures}"
        )
    rng = np.random.default_rng(random_state)
    sampler = Gibbs(domain, potentials, evidence)
    start = _tree_part(domain, sampler.tables)
    rest = frozenset(sampler.tables) - start
    base = {c: sampler.tables[c] for c in start}
    engine = ExactEngine(domain, [c for c in sampler.tables if c in start], memory_limit=memory_limit)
    beliefs = engine.calibrate(base, evidence)
    if not rest:
        return AnnealedEstimate(float(beliefs.log_partition), 0.0, float(particles), particles, 0)
    sampler = Gibbs(domain, sampler.tables, evidence, heated=rest)
    state = beliefs.sample(particles, rng)
    log_weights = np.zeros(particles)
    betas = np.linspace(0.0, 1.0, temperatures + 1)
    for before, now in pairwise(betas.tolist()):
        energy = sampler.log_weight(state, rest)
        # −∞ · Δβ = −∞: a particle on a structural zero of the rest has weight zero for good.
        log_weights += energy * (now - before)
        if now < 1.0:
            state = sampler.step(state, rng, weight=now)
    return _estimate(domain, sampler, float(beliefs.log_partition), log_weights, temperatures)


def _estimate(
    domain: Domain, sampler: Gibbs, log_start: float, log_weights: Array, temperatures: int
) -> AnnealedEstimate:
    n = len(log_weights)
    total = float(logsumexp(log_weights, 0))
    if np.isneginf(total):
        raise impossible(domain, sampler.evidence, -np.inf)
    share = np.exp(log_weights - total)
    # Relative variance of the mean weight: (Σ w²/(Σ w)² − 1/n) · n/(n − 1).
    relative = max(float((share**2).sum()) - 1 / n, 0.0) * n / (n - 1)
    return AnnealedEstimate(
        log_start + total - math.log(n), math.sqrt(relative), 1 / float((share**2).sum()), n, temperatures
    )


def _tree_part(domain: Domain, tables: Mapping[Clique, Array]) -> frozenset[Clique]:
    """Cliques that together form a tree: those with structural zeros first, then those with the largest range.

    A clique joins when it meets every part built so far in at most one column (no cycle is closed), or when one that
    joined contains it. The width of what results is that of the largest clique.
    """
    part = list(range(len(domain)))

    def root(i: int) -> int:
        while part[i] != i:
            part[i] = part[part[i]]
            i = part[i]
        return i

    def importance(clique: Clique) -> tuple[bool, float]:
        table = tables[clique]
        finite = table[np.isfinite(table)]
        return bool(np.isneginf(table).any()), float(finite.max() - finite.min()) if finite.size else 0.0

    joined: list[frozenset[str]] = []
    out: set[Clique] = set()
    for clique in sorted(tables, key=importance, reverse=True):
        members = frozenset(clique)
        roots = [root(domain.index(n)) for n in clique]
        if len(set(roots)) == len(roots):
            for r in roots[1:]:
                part[root(r)] = root(roots[0])
            joined.append(members)
            out.add(clique)
        elif any(members <= other for other in joined):
            out.add(clique)
    return frozenset(out)
