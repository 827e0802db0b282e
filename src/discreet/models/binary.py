"""The binary t-wise Markov random field, given by its factorization polynomial ([ZKKW20] Definition 2.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import require_domain
from ..domain import Clique, Domain
from ..errors import CostError, InputError
from ..factor import CliqueVector
from .base import Model
from .checks import archive_domain, archive_names, edges_of, require_mapping
from .ising import SIGNS, check_binary, spin_domain, spins
from .polynomial import Polynomial

MOST_ORDER = 25  # of a monomial whose table of potentials (256 MiB) will still be made


@dataclass(frozen=True, eq=False, repr=False)
class BinaryMRF(Model):
    """P(z) ∝ exp(h(z)) on {−1, +1}ᵖ with h(z) = Σ_I h̄(I) Π_{i∈I} z_i, over sets I of at most t columns.

    ``coefficients`` maps monomials (tuples of names) to h̄(I), or is a :class:`Polynomial`. The first level of a column
    (code 0) stands for z = −1 and the second (code 1) for +1, as in the Ising model. A constant h̄(∅) has no effect on
    the distribution and is dropped.
    """

    kind: ClassVar[str] = "binary"

    coefficients: Mapping[Clique, float]
    domain: Domain
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_binary(require_domain(self.domain), "a binary Markov random field")
        require_mapping(self.coefficients, "coefficients", '{("a", "b"): 0.5}')
        for names in self.coefficients:
            self.domain.clique(names)  # an unknown name is an error with a hint
        h = Polynomial(self.domain.names, {I: value for I, value in self.coefficients.items() if len(I)})
        object.__setattr__(self, "coefficients", h)

    @classmethod
    def spins(cls, coefficients: Mapping[tuple[int, ...], float], columns: int) -> BinaryMRF:
        """Over the columns ``x0, x1, …`` with levels −1 and 1, monomials given by position."""
        domain = spin_domain(columns)
        if any(not 0 <= i < columns for I in coefficients for i in I):
            raise InputError(f"monomials name positions 0 … {columns - 1}")
        return cls({tuple(domain.names[i] for i in I): value for I, value in coefficients.items()}, domain)

    @property
    def polynomial(self) -> Polynomial:
        """h: its derivatives, norm and maximal monomials."""
        assert isinstance(self.coefficients, Polynomial)
        return self.coefficients

    @property
    def order(self) -> int:
        """t, the largest number of columns that interact."""
        return self.polynomial.order

    @property
    def maximal_monomials(self) -> tuple[Clique, ...]:
        return self.polynomial.maximal_monomials

    @property
    def norm(self) -> float:
        """‖h‖₁ = Σ_I |h̄(I)|."""
        return self.polynomial.norm

    def derivative(self, names: Clique | str) -> Polynomial:
        """∂_I h."""
        return self.polynomial.derivative(names)

    @property
    def width(self) -> float:
        """λ = max_i ‖∂_i h‖₁."""
        total = dict.fromkeys(self.domain, 0.0)
        for I, value in self.coefficients.items():
            for name in I:
                total[name] += abs(value)
        return max(total.values(), default=0.0)

    @property
    def minimum_edge_weight(self) -> float:
        """The least |h̄(I)| of a maximal monomial of at least two columns; ∞ when there is none."""
        return min((abs(self.coefficients[I]) for I in self.maximal_monomials if len(I) > 1), default=math.inf)

    @property
    def unbiasedness(self) -> float:
        """δ = e^{−2λ}/2, a lower bound on every P(z_i | rest) ([ZKKW20] Lemma 2.8)."""
        return math.exp(-2 * self.width) / 2

    def log_odds(self, name: str, records: object) -> NDArray[np.float64]:
        """log P(z_i = 1 | rest) − log P(z_i = −1 | rest) = 2 ∂_i h(x) for each record ([ZKKW20] Lemma 4.1)."""
        return 2 * self.derivative(name)(spins(records, self.domain))

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        return edges_of(self.domain, self.coefficients)

    @cached_property
    def potentials(self) -> CliqueVector:
        """One table a maximal monomial, into which the monomials within it are gathered, each once."""
        homes = [*self.maximal_monomials]
        if self.order > MOST_ORDER:
            raise CostError(
                f"the monomial {homes[-1][:8]} … of {self.order} columns needs a table of 2^{self.order} cells, and "
                f"potentials may have 2^{MOST_ORDER}; log_odds, derivative and width need no table"
            )
        covered = {name for I in homes for name in I}
        homes += [(name,) for name in self.domain if name not in covered]
        tables = {I: np.zeros((2,) * len(I)) for I in homes}
        by_column: dict[str, list[Clique]] = {}
        for home in homes:
            for name in home:
                by_column.setdefault(name, []).append(home)
        for I, value in self.coefficients.items():
            home = next(home for home in by_column[I[0]] if set(I) <= set(home))
            term = np.full((), value)
            for name in home:
                term = np.multiply.outer(term, SIGNS if name in I else np.ones(2))
            tables[home] += term
        return CliqueVector(self.domain, dict(tables))

    def edge_strength(self) -> dict[tuple[str, str], float]:
        """For each edge, Σ |h̄(I)| over the monomials I that contain both its ends."""
        out = dict.fromkeys(self.edges, 0.0)
        for I, value in self.coefficients.items():
            for a, b in combinations(I, 2):
                out[a, b] += abs(value)
        return out

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = np.array(list(self.coefficients.values()), dtype=np.float64)
        return {"monomials": [list(I) for I in self.coefficients]}, {"coefficients": values}

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> BinaryMRF:
        monomials = archive_names(header["model"]["monomials"])
        if arrays["coefficients"].shape != (len(monomials),) or len(set(monomials)) != len(monomials):
            raise InputError("the coefficients and the monomials do not match")
        values = map(float, arrays["coefficients"])
        return cls(dict(zip(monomials, values, strict=True)), archive_domain(header), header["card"])
