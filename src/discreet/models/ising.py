"""The Ising model D(A, θ) on {−1, +1}ᵖ ([ZKKW20] Definition 2.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..arguments import require_domain
from ..domain import Attribute, Domain
from ..errors import InputError, counted
from ..factor import CliqueVector
from .base import Model
from .checks import archive_domain, checked_array, numbered, pair_of, require_mapping
from .encoding import encode

SIGNS = np.array([-1.0, 1.0])  # the value of code 0 and of code 1
PRODUCTS = np.outer(SIGNS, SIGNS)


def spin_domain(columns: int) -> Domain:
    """Columns ``x0, x1, …`` with the levels −1 and 1, in this order."""
    return Domain(tuple(Attribute.categorical(name, (-1, 1)) for name in numbered(columns)))


def check_binary(domain: Domain, what: str) -> None:
    for attribute in domain.attributes:
        if attribute.size != 2:
            raise InputError(f"{what} has two levels in each column, but {attribute.name!r} has {attribute.size}")


def spins(records: object, domain: Domain) -> NDArray[np.float64]:
    """Records as numbers in {−1, +1}: code 0 (the first level) is −1, code 1 (the second) is +1."""
    return SIGNS[encode(records, domain)]


def _check_couplings(A: NDArray[np.float64]) -> None:
    """Square, symmetric, zero on the diagonal; the error names the first entry that is not so."""
    if A.shape != (len(A), len(A)):
        raise InputError(f"A must be a square matrix, a row and a column for each column of the model; got {A.shape}")
    for i in np.flatnonzero(np.diag(A)):
        raise InputError(
            f"A must have a zero diagonal, but A[{i}, {i}] = {A[i, i]:g}; a field of its own goes to theta"
        )
    for i, j in np.argwhere(A != A.T):
        more = int(np.count_nonzero(A != A.T)) // 2 - 1
        raise InputError(
            f"A must be symmetric, but A[{i}, {j}] = {float(A[i, j])!r} and A[{j}, {i}] = {float(A[j, i])!r}"
            + (f" (and {counted(more, 'pair')} more)" if more else "")
            + "; (A + A.T) / 2 would be"
        )


@dataclass(frozen=True, eq=False, repr=False)
class IsingModel(Model):
    """P(z) ∝ exp(Σ_{i<j} A_ij z_i z_j + Σ_i θ_i z_i) over binary columns.

    The first level of a column (code 0) stands for z = −1 and the second (code 1) for z = +1. ``A`` is symmetric with
    a zero diagonal; an entry is an edge iff it is not zero. Without a domain the columns are ``x0, x1, …`` with the
    levels −1 and 1.
    """

    kind: ClassVar[str] = "ising"

    A: NDArray[np.float64]
    theta: NDArray[np.float64] = None  # type: ignore[assignment]  # zeros by default
    domain: Domain = None  # type: ignore[assignment]  # spins by default
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        A = checked_array(self.A, "A", 2)
        p = len(A)
        theta = np.zeros(p) if self.theta is None else self.theta
        _check_couplings(A)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "theta", checked_array(theta, "theta", 1))
        object.__setattr__(self, "domain", spin_domain(p) if self.domain is None else require_domain(self.domain))
        if self.theta.shape != (p,) or len(self.domain) != p:
            raise InputError(
                f"A has {p} rows, theta {len(self.theta)} entries and the domain {len(self.domain)} columns"
            )
        check_binary(self.domain, "an Ising model")

    @classmethod
    def from_edges(
        cls,
        weights: Mapping[tuple[str, str], float],
        field: Mapping[str, float] | None = None,
        *,
        domain: Domain,
        card: Mapping[str, Any] | None = None,
    ) -> IsingModel:
        """From the weight of each edge and the mean field of each column, by name; what is not named is zero."""
        require_domain(domain)
        require_mapping(weights, "weights", '{("a", "b"): 0.5}')
        A, theta = np.zeros((len(domain), len(domain))), np.zeros(len(domain))
        for (a, b), weight in ((pair_of(ends), weight) for ends, weight in weights.items()):
            A[domain.index(a), domain.index(b)] = A[domain.index(b), domain.index(a)] = weight
        for name, value in (field or {}).items():
            theta[domain.index(name)] = value
        return cls(A, theta, domain, card)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        names = self.domain.names
        return tuple((names[i], names[j]) for i, j in zip(*np.nonzero(np.triu(self.A)), strict=True))

    @cached_property
    def potentials(self) -> CliqueVector:
        names = self.domain.names
        tables: dict[tuple[str, ...], npt.ArrayLike] = {(n,): t * SIGNS for n, t in zip(names, self.theta, strict=True)}
        for i, j in zip(*np.nonzero(np.triu(self.A)), strict=True):
            tables[names[i], names[j]] = self.A[i, j] * PRODUCTS
        return CliqueVector(self.domain, tables)

    @property
    def width(self) -> float:
        """λ(A, θ) = max_i (Σ_j |A_ij| + |θ_i|)."""
        return float(np.max(np.abs(self.A).sum(axis=1) + np.abs(self.theta), initial=0.0))

    @property
    def minimum_edge_weight(self) -> float:
        """η(A, θ), the least |A_ij| of an edge; ∞ when there is none."""
        return float(np.min(np.abs(self.A[self.A != 0]), initial=math.inf))

    @property
    def unbiasedness(self) -> float:
        """δ = e^{−2λ}/2, a lower bound on every P(z_i | rest) ([ZKKW20] Lemma 2.7)."""
        return math.exp(-2 * self.width) / 2

    def logistic_weights(self, name: str) -> NDArray[np.float64]:
        """w = 2·[A_i,1 … A_i,p without A_ii, θ_i]: P(z_i = 1 | rest x) = σ(⟨w, [x, 1]⟩) ([ZKKW20] Lemma 3.7)."""
        i = self.domain.index(name)
        return 2 * np.append(np.delete(self.A[i], i), self.theta[i])

    def log_odds(self, name: str, records: object) -> NDArray[np.float64]:
        """log P(z_i = 1 | rest) − log P(z_i = −1 | rest) for each record; its own z_i does not matter."""
        i = self.domain.index(name)
        z = spins(records, self.domain)
        out: NDArray[np.float64] = 2 * (z @ self.A[i] + self.theta[i])
        return out

    def edge_strength(self) -> dict[tuple[str, str], float]:
        """A_ij of each edge, with its sign."""
        return {(a, b): float(self.A[self.domain.index(a), self.domain.index(b)]) for a, b in self.edges}

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {"A": self.A, "theta": self.theta}

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> IsingModel:
        return cls(arrays["A"], arrays["theta"], archive_domain(header), header["card"])
