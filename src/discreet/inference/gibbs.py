"""Gibbs sampling, many chains at once: one column after the other is redrawn given all the others, in every chain.

Structural zeros: a chain that stands on an allowed cell never leaves the allowed cells. To get there, zeros start as a
mild penalty that grows from sweep to sweep; chains that still stand on a zero then are replaced by copies of others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..domain import Clique, Domain
from ..errors import EvidenceError, InputError
from ..factor import Array, Factor, check_code, log_of
from .evidence import describe
from .exact import Potentials

State = npt.NDArray[np.int32]
_FIRST_PENALTY = 2.0
_PENALTY_GROWTH = 1.35
_SEARCH_SWEEPS = 60


@dataclass(frozen=True)
class _Part:
    """A factor as one of its columns sees it: rows are cells of the other columns, entries the column's own codes."""

    others: tuple[int, ...]
    strides: tuple[int, ...]
    rows: Array
    zeros: npt.NDArray[np.bool_] | None

    def logits(self, state: State, penalty: float, weight: float) -> Array:
        index: Any = 0
        for column, stride in zip(self.others, self.strides, strict=True):
            index = index + state[:, column].astype(np.intp) * stride
        out: Array = self.rows[index] * weight
        if self.zeros is not None:
            out = out - penalty * self.zeros[index]
        return out


class Gibbs:
    """The conditional distributions of every column, ready for chains; ``init`` and ``step`` are pure.

    ``heated`` names cliques whose potentials are multiplied by the ``weight`` given to :meth:`step` (annealing).
    """

    def __init__(
        self,
        domain: Domain,
        potentials: Potentials,
        evidence: Mapping[str, int] | None = None,
        *,
        heated: frozenset[Clique] = frozenset(),
    ) -> None:
        self.domain = domain
        self.evidence = {n: check_code(domain, n, c) for n, c in (evidence or {}).items()}
        self.free = tuple(i for i, n in enumerate(domain.names) if n not in self.evidence)
        self.tables = {tuple(c): _values(c, t) for c, t in potentials.items()}
        self.hard = 1e4 + 2 * sum(_finite_range(t) for t in self.tables.values())
        self._parts: list[list[tuple[_Part, bool]]] = [[] for _ in domain.names]
        for clique, table in self.tables.items():
            if table.shape != tuple(domain[n].size for n in clique):
                raise InputError(f"the potential on {clique} has shape {table.shape}; Gibbs takes one table a clique")
            for position, name in enumerate(clique):
                self._parts[domain.index(name)].append((_part(domain, clique, table, position), clique in heated))
        self.has_zeros = any(np.isneginf(t).any() for t in self.tables.values())

    def init(self, chains: int, rng: np.random.Generator) -> State:
        """Independent random starting points on allowed cells."""
        state = np.empty((chains, len(self.domain)), dtype=np.int32)
        for i, size in enumerate(self.domain.shape):
            state[:, i] = rng.integers(size, size=chains)
        for name, code in self.evidence.items():
            state[:, self.domain.index(name)] = code
        if not self.has_zeros:
            return state
        penalty = _FIRST_PENALTY
        for _ in range(_SEARCH_SWEEPS):
            if not np.isneginf(self.log_weight(state)).any():
                return state
            state = self.step(state, rng, penalty=penalty)
            penalty *= _PENALTY_GROWTH
        stuck = np.isneginf(self.log_weight(state))
        if stuck.all():
            given = f" under the evidence {describe(self.domain, self.evidence)}" if self.evidence else ""
            kind = EvidenceError if self.evidence else InputError
            raise kind(
                f"no allowed cell was found{given} from {chains} starting points: either none exists, or structural "
                "zeros make it too hard to find one by sampling; use exact inference (a larger memory_limit)"
            )
        state[stuck] = state[rng.choice(np.flatnonzero(~stuck), size=int(stuck.sum()))]
        return state

    def step(
        self, state: State, rng: np.random.Generator, *, weight: float = 1.0, penalty: float | None = None
    ) -> State:
        """One sweep over the free columns of every chain."""
        state = state.copy()
        hard = self.hard if penalty is None else penalty
        for i in self.free:
            state[:, i] = self._redraw(state, i, rng, weight, hard)
        return state

    def _redraw(
        self, state: State, i: int, rng: np.random.Generator, weight: float, penalty: float
    ) -> npt.NDArray[np.intp]:
        size = self.domain.shape[i]
        logits = np.zeros((len(state), size))
        for part, heated in self._parts[i]:
            logits += part.logits(state, penalty, weight if heated else 1.0)
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        np.cumsum(logits, axis=1, out=logits)
        threshold = rng.random(len(state)) * logits[:, -1]
        drawn: npt.NDArray[np.intp] = (logits[:, :-1] <= threshold[:, None]).sum(axis=1)
        return drawn

    def log_weight(self, state: State, cliques: frozenset[Clique] | None = None) -> Array:
        """Σ of the log potentials (of these cliques) at each chain's record."""
        total = np.zeros(len(state))
        for clique, table in self.tables.items():
            if cliques is None or clique in cliques:
                total += table[tuple(state[:, self.domain.index(n)] for n in clique)]
        return total


def _values(clique: Clique, table: Any) -> Array:
    values = table.values if isinstance(table, Factor) else np.asarray(table, dtype=np.float64)
    if not np.all(values < np.inf):
        raise InputError(f"the potential on {clique} holds NaN or +∞; log values must be finite, or −∞")
    out: Array = values
    return out


def _finite_range(table: Array) -> float:
    finite = table[np.isfinite(table)]
    return float(finite.max() - finite.min()) if finite.size else 0.0


def _part(domain: Domain, clique: Clique, table: Array, position: int) -> _Part:
    others = tuple(n for j, n in enumerate(clique) if j != position)
    sizes = [domain[n].size for n in others]
    strides = tuple(math.prod(sizes[j + 1 :]) for j in range(len(sizes)))
    rows = np.moveaxis(table, position, -1).reshape(-1, table.shape[position])
    zeros = np.isneginf(rows)
    has_zeros = bool(zeros.any())
    finite = np.where(zeros, 0.0, rows) if has_zeros else np.ascontiguousarray(rows)
    return _Part(tuple(domain.index(n) for n in others), strides, finite, zeros if has_zeros else None)


@dataclass(frozen=True)
class GibbsBeliefs:
    """Draws of many chains, shape (sweeps, chains, columns), and what they say about marginals."""

    domain: Domain
    draws: State

    @property
    def log_partition(self) -> float:
        """Gibbs sampling does not give it; see :func:`~discreet.inference.annealed.annealed_log_partition`."""
        return math.nan

    def marginal(self, names: tuple[str, ...] | list[str]) -> Factor:
        """Log of the relative frequencies (−∞ for a cell never seen)."""
        wanted = self.domain.project(names)
        return Factor(wanted, log_of(self._frequencies(wanted).mean(axis=0).reshape(wanted.shape)))

    def standard_error(self, names: tuple[str, ...] | list[str]) -> Array:
        """Of each frequency, from the spread between the chains, which are independent of each other."""
        wanted = self.domain.project(names)
        by_chain = self._frequencies(wanted)
        out: Array = (by_chain.std(axis=0, ddof=1) / math.sqrt(len(by_chain))).reshape(wanted.shape)
        return out

    def _frequencies(self, wanted: Domain) -> Array:
        sweeps, chains, _ = self.draws.shape
        columns = tuple(self.draws[:, :, self.domain.index(n)].astype(np.intp) for n in wanted)
        cell = np.ravel_multi_index(columns, wanted.shape) if columns else np.zeros((sweeps, chains), dtype=np.intp)
        offset = cell + np.arange(chains) * wanted.size()
        counts = np.bincount(offset.ravel(), minlength=chains * wanted.size())
        out: Array = counts.reshape(chains, -1) / sweeps
        return out

    @property
    def r_hat(self) -> float:
        """Largest potential scale reduction over the columns' codes (1 is perfect; over 1.1, draw longer)."""
        worst = 1.0
        sweeps = len(self.draws)
        for i, size in enumerate(self.domain.shape):
            for code in range(size if size > 2 else 1):
                hit = (self.draws[:, :, i] == code).astype(np.float64)
                within = float(hit.var(axis=0, ddof=1).mean()) if sweeps > 1 else 0.0
                between = float(hit.mean(axis=0).var(ddof=1)) if hit.shape[1] > 1 else 0.0
                if within > 0:
                    worst = max(worst, math.sqrt((sweeps - 1) / sweeps + between / within))
                elif between > 0:
                    worst = math.inf
        return worst


def gibbs_marginals(
    domain: Domain,
    potentials: Potentials,
    evidence: Mapping[str, int] | None = None,
    *,
    chains: int = 200,
    sweeps: int = 200,
    burn_in: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> GibbsBeliefs:
    """Marginals estimated from ``chains`` × ``sweeps`` draws after ``burn_in`` sweeps."""
    _check_counts(chains=chains, sweeps=sweeps)
    rng = np.random.default_rng(random_state)
    sampler = Gibbs(domain, potentials, evidence)
    state = _burnt_in(sampler, chains, burn_in, rng)
    draws = np.empty((sweeps, *state.shape), dtype=np.int32)
    for t in range(sweeps):
        state = sampler.step(state, rng)
        draws[t] = state
    return GibbsBeliefs(domain, draws)


def gibbs_sample(
    domain: Domain,
    potentials: Potentials,
    n: int,
    *,
    evidence: Mapping[str, int] | None = None,
    chains: int | None = None,
    burn_in: int = 200,
    thin: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> State:
    """n records of codes (n, columns) by Gibbs sampling.

    ``chains`` (min(n, 1000) by default) run side by side; each gives one record every ``thin`` sweeps after
    ``burn_in``. Records of one chain are only nearly independent.
    """
    if n < 0:
        raise InputError(f"the number of records must not be negative, got {n}")
    if n == 0:
        return np.empty((0, len(domain)), dtype=np.int32)
    chains = min(n, 1000) if chains is None else chains
    _check_counts(chains=chains, thin=thin)
    rng = np.random.default_rng(random_state)
    sampler = Gibbs(domain, potentials, evidence)
    state = _burnt_in(sampler, chains, burn_in, rng)
    blocks = [state]
    for _ in range(-(-n // chains) - 1):
        for _ in range(thin):
            state = sampler.step(state, rng)
        blocks.append(state)
    return np.concatenate(blocks)[:n]


def _burnt_in(sampler: Gibbs, chains: int, burn_in: int, rng: np.random.Generator) -> State:
    if burn_in < 0:
        raise InputError(f"burn_in must not be negative, got burn_in={burn_in}")
    state = sampler.init(chains, rng)
    for _ in range(burn_in):
        state = sampler.step(state, rng)
    return state


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {name}={value}")
