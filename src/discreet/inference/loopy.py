"""Loopy belief propagation on the factor graph: exact on trees, an approximation elsewhere, convergence reported.

Factors of one shape are stacked and handled together. Messages are logarithms with a largest entry of 0; −∞ is counted
rather than added, so that the message a factor gets from a column can leave out that factor's own −∞.
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
from ..factor import Array, Factor, check_code, logsumexp
from .evidence import describe, evidence_tables
from .exact import Potentials


@dataclass
class _Stack:
    """Factors of one shape: tables (count, *shape), and per axis the columns they touch."""

    cliques: list[Clique]
    tables: Array
    columns: npt.NDArray[np.intp]


@dataclass(frozen=True)
class LoopyBeliefs:
    """Approximate marginals. ``residual`` is the largest change of a column's probability in the last round, before
    damping; ``log_partition`` is the Bethe approximation."""

    domain: Domain
    converged: bool
    iterations: int
    residual: float
    log_partition: float
    _columns: tuple[Array, ...]
    _cliques: Mapping[Clique, Array]

    def marginal(self, names: tuple[str, ...] | list[str]) -> Factor:
        """Log-probabilities of one column, or of columns that one factor holds."""
        wanted = tuple(names)
        if not wanted:
            return Factor.zeros(self.domain.project(()))
        if len(wanted) == 1:
            return Factor(self.domain.project(wanted), self._columns[self.domain.index(wanted[0])])
        home = self.home(wanted)
        if home is None:
            raise InputError(
                f"loopy belief propagation has no joint belief of {wanted}, which no potential holds together; "
                'use infer(…, method="loopy").marginal, which conditions, or method="gibbs"'
            )
        return Factor(self.domain.project(home), self._cliques[home]).project(wanted)

    def home(self, names: tuple[str, ...]) -> Clique | None:
        """The smallest clique with a belief that holds all these columns."""
        holding = [c for c in self._cliques if set(names) <= set(c)]
        return min(holding, key=lambda c: self._cliques[c].size, default=None)


def loopy_marginals(
    domain: Domain,
    potentials: Potentials,
    evidence: Mapping[str, int] | None = None,
    *,
    max_iterations: int = 500,
    tolerance: float = 1e-9,
    damping: float = 0.3,
) -> LoopyBeliefs:
    """Iterate messages until no column's probability changes by more than ``tolerance``.

    A new message is (1 − ``damping``) of the update plus ``damping`` of the old one, in log space. The first rounds
    are not damped, so that a tree is exact after as many rounds as it is deep.
    """
    if not 0 <= damping < 1:
        raise InputError(f"damping must be at least 0 and less than 1, got damping={damping}")
    if max_iterations < 1:
        raise InputError(f"max_iterations must be at least 1, got {max_iterations}")
    given = {n: check_code(domain, n, c) for n, c in (evidence or {}).items()}
    graph = _FactorGraph(domain, potentials, given)
    residual = math.inf
    rounds = 0
    undamped = min(len(domain), 50)
    before = graph.beliefs()
    for rounds in range(1, max_iterations + 1):
        graph.update(damping if rounds > undamped else 0.0)
        now = graph.beliefs()
        residual = float(np.abs(np.exp(now) - np.exp(before)).max())
        before = now
        if residual <= tolerance:
            break
    return graph.result(residual <= tolerance, rounds, residual)


class _FactorGraph:
    """Messages from factors to columns, (count, axis, code), padded with −∞ to the largest column."""

    def __init__(self, domain: Domain, potentials: Potentials, given: Mapping[str, int]) -> None:
        self.domain = domain
        self.given = given
        self.width = max(domain.shape)
        self.stacks = _stacks(domain, potentials)
        self.constant = sum(float(_values(t)) for c, t in potentials.items() if not c)
        # Evidence, and the padding beyond a column's own codes, are part of each column's local term.
        self.local = np.full((len(domain), self.width), -np.inf)
        for i, size in enumerate(domain.shape):
            self.local[i, :size] = 0.0
        for (name,), mask in evidence_tables(domain, given).items():
            self.local[domain.index(name), : len(mask)] += mask
        self.messages = [np.zeros((*s.columns.shape, self.width)) for s in self.stacks]
        self._add_up()

    def _add_up(self) -> None:
        """Sum of all messages at every column: the finite parts, and how many are −∞."""
        self.finite = np.zeros_like(self.local)
        self.blocked = np.isneginf(self.local).astype(np.int64)
        for stack, message in zip(self.stacks, self.messages, strict=True):
            zero = np.isneginf(message)
            np.add.at(self.finite, stack.columns, np.where(zero, 0.0, message))
            np.add.at(self.blocked, stack.columns, zero)

    def beliefs(self) -> Array:
        """Normalised log beliefs of the columns, padded."""
        raw = np.where(self.blocked > 0, -np.inf, self.finite)
        total = logsumexp(raw, 1)
        if np.isneginf(total).any():
            raise self._contradiction(self.domain.names[int(np.flatnonzero(np.isneginf(total))[0])])
        out: Array = raw - total[:, None]
        return out

    def _contradiction(self, name: str) -> Exception:
        if self.given:
            return EvidenceError(
                f"the evidence {describe(self.domain, self.given)} has probability 0 under the model: it leaves no "
                f"level possible for column {name!r}; leave out or change one of these values"
            )
        return InputError(f"the structural zeros of the potentials leave no level possible for column {name!r}")

    def incoming(self, k: int) -> Array:
        """What each factor of stack k hears from its columns: everything they know except from itself."""
        columns, message = self.stacks[k].columns, self.messages[k]
        zero = np.isneginf(message)
        others = self.finite[columns] - np.where(zero, 0.0, message)
        out: Array = np.where(self.blocked[columns] - zero > 0, -np.inf, others)
        return out

    def update(self, damping: float) -> None:
        """One round: all factors answer at once."""
        fresh = []
        for k, stack in enumerate(self.stacks):
            heard = self.incoming(k)
            heard -= _peak(heard)
            new = np.full_like(self.messages[k], -np.inf)
            arity = stack.columns.shape[1]
            for axis in range(arity):
                total = stack.tables
                for other in range(arity):
                    if other != axis:
                        total = total + _along(heard[:, other], other, stack.tables.shape)
                rest = tuple(1 + a for a in range(arity) if a != axis)
                answer = logsumexp(total, rest) if rest else total
                new[:, axis, : answer.shape[1]] = answer
            new -= _peak(new)
            if damping:
                old = self.messages[k]
                with np.errstate(invalid="ignore"):
                    mixed = (1 - damping) * new + damping * old
                new = np.where(np.isneginf(new) | np.isneginf(old), -np.inf, mixed)
            fresh.append(new)
        self.messages = fresh
        self._add_up()

    def result(self, converged: bool, rounds: int, residual: float) -> LoopyBeliefs:
        """Beliefs of columns and factors, and the Bethe log-partition Σ_f (U_f + H_f) − Σ_i (d_i − 1) H_i."""
        columns = self.beliefs()
        degree = np.zeros(len(self.domain))
        bethe = self.constant
        cliques: dict[Clique, Array] = {}
        for k, stack in enumerate(self.stacks):
            np.add.at(degree, stack.columns, 1.0)
            heard = self.incoming(k)
            total = stack.tables
            for axis in range(stack.columns.shape[1]):
                total = total + _along(heard[:, axis], axis, stack.tables.shape)
            axes = tuple(range(1, total.ndim))
            weight = logsumexp(total, axes)
            if np.isneginf(weight).any():
                raise self._contradiction(stack.cliques[int(np.flatnonzero(np.isneginf(weight))[0])][0])
            beliefs = total - np.expand_dims(weight, axes)
            p = np.exp(beliefs)
            # p log(ψ/p) with 0 log 0 = 0.
            inner = np.where(p > 0, stack.tables, 0.0) - np.where(p > 0, beliefs, 0.0)
            bethe += float((p * inner).sum())
            cliques.update(zip(stack.cliques, beliefs, strict=True))
        p = np.exp(columns)
        entropy = -(p * np.where(p > 0, columns, 0.0)).sum(axis=1)
        bethe -= float(((degree - 1) * entropy).sum())
        own = tuple(columns[i, :size] for i, size in enumerate(self.domain.shape))
        return LoopyBeliefs(self.domain, converged, rounds, residual, bethe, own, cliques)


def _values(table: Any) -> Array:
    return table.values if isinstance(table, Factor) else np.asarray(table, dtype=np.float64)


def _stacks(domain: Domain, potentials: Potentials) -> list[_Stack]:
    grouped: dict[tuple[int, ...], list[tuple[Clique, Any]]] = {}
    for clique, table in potentials.items():
        values = _values(table)
        if not np.all(values < np.inf):
            raise InputError(f"the potential on {clique} holds NaN or +∞; log values must be finite, or −∞")
        if values.shape != tuple(domain[n].size for n in clique):
            raise InputError(f"the potential on {clique} has shape {values.shape}; loopy takes one table a clique")
        if clique:
            grouped.setdefault(values.shape, []).append((tuple(clique), values))
    return [
        _Stack(
            [c for c, _ in members],
            np.stack([t for _, t in members]),
            np.array([[domain.index(n) for n in c] for c, _ in members], dtype=np.intp),
        )
        for members in grouped.values()
    ]


def _along(message: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Messages (count, code) shaped to act on one axis of stacked tables."""
    size = shape[1 + axis]
    return message[:, :size].reshape((shape[0], *(size if a == axis else 1 for a in range(len(shape) - 1))))


def _peak(messages: Array) -> Array:
    highest: Array = messages.max(axis=-1, keepdims=True)
    return np.where(np.isneginf(highest), 0.0, highest)
