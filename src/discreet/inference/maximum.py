"""Most probable assignments: of all columns, of some of them with the rest summed out, and the k best."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Clique, Domain
from ..errors import InputError
from ..factor import CliqueVector, Factor, check_code
from ..graph import DEFAULT_MEMORY_LIMIT
from .elimination import sum_out
from .evidence import impossible
from .exact import ExactEngine, Potentials, get_engine


@dataclass(frozen=True)
class Assignment:
    """Codes by column, and the log of the unnormalised weight they have."""

    codes: dict[str, int]
    log_weight: float


def map_assignment(
    domain: Domain,
    potentials: Potentials,
    evidence: Mapping[str, int] | None = None,
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Assignment:
    """The most probable codes of all columns (those of the evidence included), by max-product. Ties: any of them."""
    engine = get_engine(domain, potentials, memory_limit=memory_limit)
    codes, weight = engine.maximize(potentials, evidence)
    if codes.ndim > 1:
        raise InputError("map_assignment answers one question; for a batch use ExactEngine.maximize")
    return Assignment(dict(zip(domain.names, codes.tolist(), strict=True)), float(weight))


def marginal_map(
    domain: Domain,
    potentials: Potentials,
    variables: Iterable[str],
    evidence: Mapping[str, int] | None = None,
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Assignment:
    """The most probable codes of some columns, the others summed out exactly; ``log_weight`` is that of the sum.

    Sums do not commute with maxima, so the others go first, whatever that costs; what they leave between ``variables``
    is maximised on a junction tree of its own.
    """
    wanted = domain.clique(variables)
    given = {n: check_code(domain, n, c) for n, c in (evidence or {}).items()}
    both = [n for n in wanted if n in given]
    if both:
        raise InputError(f"column {both[0]!r} is asked for and given as evidence; leave it out of one of them")
    factors = _factors(domain, potentials)
    left, _ = sum_out(domain, factors, wanted, given, memory_limit=memory_limit)
    constant = sum(float(f.values) for f in left if not f.names)
    if not wanted:
        if np.isneginf(constant):
            raise impossible(domain, given, constant)
        return Assignment({}, constant)
    small = domain.project(wanted)
    tables = CliqueVector.of(small, [f for f in left if f.names])
    engine = ExactEngine(small, tables.cliques, memory_limit=memory_limit)
    codes, weight = engine._maximize(tables, None)
    total = float(weight) + constant
    if np.isneginf(total):
        raise impossible(domain, given, total)
    return Assignment(dict(zip(small.names, codes.tolist(), strict=True)), total)


def most_probable(
    domain: Domain,
    potentials: Potentials,
    k: int,
    evidence: Mapping[str, int] | None = None,
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> list[Assignment]:
    """The k most probable assignments, best first; fewer when fewer have positive probability.

    Lawler's partition: everything but the best x splits into the sets "as x up to column i, different at i". Each
    set's best is found by max-product with the other codes forbidden, all sets of one split in one batch.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got k={k}")
    engine = get_engine(domain, potentials, memory_limit=memory_limit)
    tables = {c: t.values if isinstance(t, Factor) else np.asarray(t, dtype=np.float64) for c, t in potentials.items()}
    given = {n: check_code(domain, n, c) for n, c in (evidence or {}).items()}
    codes, weight = engine._maximize(tables, given)
    if np.isneginf(weight):
        raise impossible(domain, given, weight)
    allowed = [np.zeros(size) for size in domain.shape]
    for name, code in given.items():
        allowed[domain.index(name)] = np.where(np.arange(domain[name].size) == code, 0.0, -np.inf)
    # Heap entries: (−log weight, tie breaker, codes, what the set allows per column).
    heap: list[tuple[float, int, Any, list[Any]]] = [(-float(weight), 0, codes, allowed)]
    ticket = 1
    out: list[Assignment] = []
    while heap and len(out) < k:
        negative, _, best, masks = heapq.heappop(heap)
        out.append(Assignment(dict(zip(domain.names, best.tolist(), strict=True)), -negative))
        if len(out) == k:
            break
        for found, log_weight, narrowed in _split(engine, tables, best, masks):
            heapq.heappush(heap, (-log_weight, ticket, found, narrowed))
            ticket += 1
    return out


def _split(
    engine: ExactEngine, tables: Mapping[Clique, Any], best: Any, masks: list[Any]
) -> list[tuple[Any, float, list[Any]]]:
    """The best of each set of the partition of a set without its best, skipping empty sets."""
    domain = engine.domain
    sets: list[list[Any]] = []
    for i in range(len(domain)):
        other = masks[i].copy()
        other[best[i]] = -np.inf
        if np.isneginf(other).all():
            continue
        fixed = [np.where(np.arange(domain.shape[j]) == best[j], 0.0, -np.inf) for j in range(i)]
        sets.append([*fixed, other, *masks[i + 1 :]])
    if not sets:
        return []
    batched = dict(tables)
    for j, name in enumerate(domain.names):
        mask = np.stack([m[j] for m in sets])
        batched[(name,)] = batched[(name,)] + mask if (name,) in batched else mask
    codes, weights = engine._maximize(batched, None)
    return [(codes[s], float(weights[s]), m) for s, m in enumerate(sets) if not np.isneginf(weights[s])]


def _factors(domain: Domain, potentials: Potentials) -> list[Factor]:
    return [t if isinstance(t, Factor) else Factor(domain.project(c), np.asarray(t)) for c, t in potentials.items()]
