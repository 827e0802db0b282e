"""Multilinear polynomials h(x) = Σ_I h̄(I) Π_{i∈I} x_i over named variables ([ZKKW20] Definition 2.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..domain import Clique
from ..errors import InputError


class Polynomial(Mapping[Clique, float]):
    """The coefficients h̄(I) that are not zero, by monomial: a tuple of variables in the order of ``variables``.

    >>> h = Polynomial(["a", "b", "c"], {("a", "b", "c"): 0.5, ("b",): -1.0})
    >>> h.derivative("a")[("b", "c")], h.maximal_monomials, h.norm
    (0.5, (('a', 'b', 'c'),), 1.5)
    """

    __slots__ = ("_coefficients", "_position", "variables")

    def __init__(self, variables: Iterable[str], coefficients: Mapping[Clique, float]) -> None:
        self.variables = tuple(variables)
        self._position = {name: i for i, name in enumerate(self.variables)}
        kept: dict[Clique, float] = {}
        for names, value in coefficients.items():
            monomial = self.monomial(names)
            if monomial in kept:
                raise InputError(f"the monomial {monomial} was given twice")
            if not math.isfinite(value):
                raise InputError(f"the coefficient of {monomial} must be a finite number, got {value}")
            kept[monomial] = float(value)
        by_size = sorted(kept, key=lambda m: (len(m), [self._position[n] for n in m]))
        self._coefficients = {m: kept[m] for m in by_size if kept[m] != 0}

    def monomial(self, names: Iterable[str]) -> Clique:
        """A set of variables in the order of the polynomial's."""
        chosen = [names] if isinstance(names, str) else list(names)
        unknown = [n for n in chosen if n not in self._position]
        if unknown or len(set(chosen)) != len(chosen):
            raise InputError(f"a monomial names each of its variables once, all among {self.variables}; got {chosen}")
        return tuple(sorted(chosen, key=self._position.__getitem__))

    def __getitem__(self, names: Iterable[str]) -> float:
        """h̄(I); zero for a monomial that is not there."""
        return self._coefficients.get(self.monomial(names), 0.0)

    def __contains__(self, names: object) -> bool:
        return names in self._coefficients

    def __iter__(self) -> Iterator[Clique]:
        return iter(self._coefficients)

    def __len__(self) -> int:
        return len(self._coefficients)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Polynomial):
            return NotImplemented
        return self.variables == other.variables and self._coefficients == other._coefficients

    def __hash__(self) -> int:
        return hash((self.variables, tuple(self._coefficients.items())))

    def __repr__(self) -> str:
        terms = [f"{value:+.4g}·{'·'.join(m)}" if m else f"{value:+.4g}" for m, value in self._coefficients.items()]
        return " ".join(terms[:12]) + (f" … {len(terms)} terms" if len(terms) > 12 else "") or "0"

    def __call__(self, x: npt.ArrayLike) -> NDArray[np.float64]:
        """The value at each row of ``x``, an array (…, number of variables)."""
        point = np.asarray(x, dtype=np.float64)
        out = np.zeros(point.shape[:-1])
        for monomial, value in self._coefficients.items():
            out += value * point[..., [self._position[n] for n in monomial]].prod(axis=-1)
        return out

    @property
    def order(self) -> int:
        """The largest number of variables in a monomial."""
        return max(map(len, self._coefficients), default=0)

    @property
    def norm(self) -> float:
        """‖h‖₁ = Σ_I |h̄(I)|, in which the constant h̄(∅) counts too."""
        return math.fsum(map(abs, self._coefficients.values()))

    def derivative(self, names: Iterable[str] | str) -> Polynomial:
        """∂_I h, with the coefficient h̄(J ∪ I) at every J disjoint from I."""
        gone = set(self.monomial(names))
        return Polynomial(
            self.variables,
            {tuple(n for n in m if n not in gone): value for m, value in self._coefficients.items() if gone <= set(m)},
        )

    @property
    def maximal_monomials(self) -> tuple[Clique, ...]:
        """Monomials with a coefficient that are contained in no other one with a coefficient.

        The paper's definition asks only that every proper superset has coefficient zero, which any set outside all
        monomials fulfils too; those, whose own coefficient is zero, are not listed.
        """
        kept: list[Clique] = []
        by_variable: dict[str, list[frozenset[str]]] = {}
        for m in sorted(self._coefficients, key=len, reverse=True):
            above = by_variable.get(m[0], []) if m else [frozenset(k) for k in kept]
            if not any(set(m) < k for k in above):
                kept.append(m)
                for name in m:
                    by_variable.setdefault(name, []).append(frozenset(m))
        order = {m: i for i, m in enumerate(self._coefficients)}
        return tuple(sorted(kept, key=order.__getitem__))
