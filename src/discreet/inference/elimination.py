"""Variable elimination with a chosen or found order, showing its intermediate factors.

The intermediate factors are part of the result because the error analysis of noisy parameters walks through them:
[CRJ20] (Chowdhury, Rekatsinas, Jha, ICML 2020) Algorithm 3, line 8 (the product ψ) and line 9 (the sum φ).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Domain
from ..errors import InputError
from ..factor import Factor, check_code
from ..graph import DEFAULT_MEMORY_LIMIT, Forecast
from ..ordering import find_order
from .evidence import impossible


@dataclass(frozen=True)
class Step:
    """One elimination: the factors taken out, their product ψ, and φ = Σ_variable ψ."""

    variable: str
    taken: tuple[Factor, ...]
    product: Factor
    summed: Factor


@dataclass(frozen=True)
class EliminationResult:
    """``factor`` is the unnormalised table over the kept columns; its total is exp(``log_partition``)."""

    factor: Factor
    log_partition: Any
    order: tuple[str, ...]
    intermediates: tuple[Step, ...]


def eliminate(
    domain: Domain,
    factors: Mapping[Any, Factor] | Iterable[Factor],
    keep: Iterable[str] | str = (),
    evidence: Mapping[str, int] | None = None,
    order: Sequence[str] | None = None,
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> EliminationResult:
    """Sum all columns but ``keep`` (and those of the evidence) out of the product of the factors.

    Columns of the domain that no factor mentions count too: summing one out multiplies the total by its size, so that
    ``log_partition`` is the same as that of any other method. The largest table is forecast before any work.
    """
    kept = (keep,) if isinstance(keep, str) else tuple(keep)
    evidence = dict(evidence or {})
    both = [n for n in kept if n in evidence]
    if both:
        raise InputError(f"column {both[0]!r} is asked for and given as evidence; leave it out of one of them")
    remaining, steps = sum_out(domain, factors, kept, evidence, order, memory_limit=memory_limit)
    result = Factor.zeros(domain.project(kept))
    for factor in remaining:
        result = result + factor
    result = result.transpose(kept)
    log_partition = result.logsumexp().values
    if np.isneginf(log_partition).any():
        raise impossible(domain, evidence, log_partition)
    return EliminationResult(result, log_partition[()], tuple(s.variable for s in steps), steps)


def sum_out(
    domain: Domain,
    factors: Mapping[Any, Factor] | Iterable[Factor],
    kept: Iterable[str],
    evidence: Mapping[str, int],
    order: Sequence[str] | None = None,
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> tuple[tuple[Factor, ...], tuple[Step, ...]]:
    """Algorithm 3 without its last product: the factors left over the kept columns, and the steps taken."""
    given = list(factors.values()) if isinstance(factors, Mapping) else list(factors)
    for name, code in evidence.items():
        check_code(domain, name, code)
    pool = [f.condition(evidence) for f in given]
    mentioned = {n for f in pool for n in f.names}
    gone = [n for n in domain if n not in set(kept) and n not in evidence]
    if order is None:
        order = find_order(domain, [f.names for f in pool], eliminate=gone)
    elif sorted(order) != sorted(gone):
        raise InputError(f"order must name the columns to eliminate once each, {sorted(gone)}; got {list(order)}")
    # A column that is mentioned nowhere contributes its size: a factor of ones makes that so.
    pool += [Factor.zeros(domain.project([n])) for n in domain if n not in mentioned and n not in evidence]
    _forecast(domain, pool, kept, order).check(memory_limit, "variable elimination")
    steps: list[Step] = []
    for x in order:
        taken = tuple(f for f in pool if x in f.domain)
        pool = [f for f in pool if x not in f.domain]
        psi = taken[0]
        for factor in taken[1:]:
            psi = psi + factor
        phi = psi.logsumexp([x])
        steps.append(Step(x, taken, psi, phi))
        pool.append(phi)
    return tuple(pool), tuple(steps)


def _forecast(domain: Domain, pool: Sequence[Factor], kept: Iterable[str], order: Sequence[str]) -> Forecast:
    """The tables that this order makes, from the names alone; all of them are held, being part of the result."""
    scopes = [frozenset(f.names) for f in pool]
    batch = int(np.prod(np.broadcast_shapes(*(f.batch_shape for f in pool)))) if pool else 1
    largest, largest_cells, total = frozenset(kept), domain.size(kept), domain.size(kept)
    for x in order:
        joined: frozenset[str] = frozenset().union(*(s for s in scopes if x in s))
        scopes = [s for s in scopes if x not in s] + [joined - {x}]
        cells = domain.size(joined)
        total += cells + cells // domain[x].size
        if cells > largest_cells:
            largest, largest_cells = joined, cells
    cells = total + 2 * largest_cells
    return Forecast(domain.clique(largest), largest_cells, total, 8 * batch * cells, 2e-8 * float(cells), batch)
