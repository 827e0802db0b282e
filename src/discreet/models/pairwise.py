"""The pairwise graphical model D(W, Θ) over columns with any numbers of levels ([ZKKW20] Definition 2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..arguments import require_domain
from ..domain import Attribute, Clique, Domain
from ..errors import InputError
from ..factor import CliqueVector
from .base import Model
from .checks import archive_domain, archive_names, checked_array, numbered, pair_of, require_mapping
from .encoding import encode

Pair = tuple[str, str]
# Sums of rows and columns this small, relative to the largest weight, are rounding errors: such weights are taken to
# be centred already, so that writing and reading a model, or centring it again, changes nothing.
ROUNDING = 1e-12


def centre(W: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Split W(a, b) into centred weights plus f(a) + g(b) plus a constant ([ZKKW20] footnote 2, symmetric form)."""
    grand = W.mean()
    row, column = W.mean(axis=1) - grand, W.mean(axis=0) - grand
    largest = np.abs(W).max(initial=0.0)
    if max(np.abs(row + grand).max(), np.abs(column + grand).max()) <= ROUNDING * largest:
        return W, np.zeros(len(W)), np.zeros(W.shape[1])
    centred = W - row[:, None] - column - grand
    if np.abs(centred).max() <= ROUNDING * largest:
        centred = np.zeros_like(W)
    return centred, row, column


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseModel(Model):
    """P(z) ∝ exp(Σ_{i<j} W_ij(z_i, z_j) + Σ_i θ_i(z_i)).

    ``W`` maps a pair of names to a table of weights (rows: the first name), ``Theta`` a name to a vector; what is left
    out is zero. Weights are kept *centred*: every row and column of every W_ij sums to zero, and what was taken out of
    them went to θ, which changes the distribution by nothing. A pair is an edge iff its centred weights are not zero.
    Without a domain the columns are those of ``Theta``, in that order, with the levels 0, 1, ….
    """

    kind: ClassVar[str] = "pairwise"

    W: Mapping[Pair, NDArray[np.float64]]
    Theta: Mapping[str, NDArray[np.float64]] = None  # type: ignore[assignment]  # zeros by default
    domain: Domain = None  # type: ignore[assignment]  # from Theta by default
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require_mapping(self.W, "W", '{("a", "b"): table}')
        if self.Theta is not None:
            require_mapping(self.Theta, "Theta", '{"a": vector}')
        given = {} if self.Theta is None else {n: checked_array(t, f"Theta[{n!r}]", 1) for n, t in self.Theta.items()}
        if self.domain is None:
            if not given:
                raise InputError("a pairwise model needs a domain, or a vector in Theta for every column")
            object.__setattr__(self, "domain", Domain.of({name: len(t) for name, t in given.items()}))
        domain = require_domain(self.domain)
        Theta = {a.name: np.array(given.pop(a.name, np.zeros(a.size))) for a in domain.attributes}
        for name in given:
            domain.index(name)  # an unknown name is an error with a hint
        for name, vector in Theta.items():
            if len(vector) != domain[name].size:
                raise InputError(f"Theta[{name!r}] has {len(vector)} entries for {domain[name].size} levels")
        W: dict[Pair, NDArray[np.float64]] = {}
        seen: set[Clique] = set()
        for (a, b), table in ((pair_of(ends), table) for ends, table in self.W.items()):
            pair = domain.clique((a, b))
            weights = checked_array(table, f"W[{a!r}, {b!r}]", 2)
            weights = weights if pair == (a, b) else weights.T
            if weights.shape != (domain[pair[0]].size, domain[pair[1]].size):
                raise InputError(f"W[{a!r}, {b!r}] must have shape {(domain[a].size, domain[b].size)}")
            if pair in seen:
                raise InputError(f"the pair {pair} was given twice; W_ji is the transpose of W_ij")
            seen.add(pair)
            weights, row, column = centre(weights)
            Theta[pair[0]] += row
            Theta[pair[1]] += column
            if np.any(weights):
                W[pair[0], pair[1]] = weights
        for array in (*Theta.values(), *W.values()):
            array.flags.writeable = False
        by_position = sorted(W, key=lambda pair: (domain.index(pair[0]), domain.index(pair[1])))
        object.__setattr__(self, "W", MappingProxyType({pair: W[pair] for pair in by_position}))
        object.__setattr__(self, "Theta", MappingProxyType(Theta))

    @classmethod
    def from_arrays(
        cls,
        W: npt.ArrayLike,
        Theta: npt.ArrayLike | None = None,
        domain: Domain | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> PairwiseModel:
        """From arrays of shape (p, p, k, k), of which the blocks above the diagonal are read, and (p, k)."""
        array = np.asarray(W, dtype=np.float64)
        if array.ndim != 4 or array.shape[0] != array.shape[1] or array.shape[2] != array.shape[3]:
            raise InputError(f"W must have shape (p, p, k, k), got {array.shape}")
        p, k = array.shape[1:3]
        vectors = np.zeros((p, k)) if Theta is None else np.asarray(Theta, dtype=np.float64)
        if vectors.shape != (p, k):
            raise InputError(f"Theta must have shape {(p, k)}, got {vectors.shape}")
        if domain is None:
            domain = Domain(tuple(Attribute.categorical(name, k) for name in numbered(p)))
        names = domain.names
        pairs = {(names[i], names[j]): array[i, j] for i in range(p) for j in range(i + 1, p)}
        return cls(pairs, dict(zip(names, vectors, strict=True)), domain, card)

    def weights(self, a: str, b: str) -> NDArray[np.float64]:
        """W_ab with the levels of ``a`` in rows; zeros when the pair is no edge. W_ba is its transpose."""
        first, second = self.domain.clique((a, b))
        table = self.W.get((first, second), np.zeros((self.domain[first].size, self.domain[second].size)))
        return table if first == a else table.T

    @cached_property
    def edges(self) -> tuple[Pair, ...]:
        return tuple(self.W)

    @cached_property
    def potentials(self) -> CliqueVector:
        single: dict[Clique, npt.ArrayLike] = {(name,): vector for name, vector in self.Theta.items()}
        double: dict[Clique, npt.ArrayLike] = {(a, b): table for (a, b), table in self.W.items()}
        return CliqueVector(self.domain, {**single, **double})

    @property
    def width(self) -> float:
        """λ(W, Θ) = max_{i,a} (Σ_j max_b |W_ij(a, b)| + |θ_i(a)|)."""
        total = {name: np.abs(vector) for name, vector in self.Theta.items()}
        for (a, b), table in self.W.items():
            total[a] = total[a] + np.abs(table).max(axis=1)
            total[b] = total[b] + np.abs(table).max(axis=0)
        return max((float(t.max()) for t in total.values()), default=0.0)

    @property
    def minimum_edge_weight(self) -> float:
        """η(W, Θ) = min over the edges of max_{a,b} |W_ij(a, b)|; ∞ when there is none."""
        return min((float(np.abs(table).max()) for table in self.W.values()), default=math.inf)

    @property
    def unbiasedness(self) -> float:
        """δ = e^{−2λ}/k with the largest number of levels k ([ZKKW20] Lemma 2.7)."""
        return math.exp(-2 * self.width) / max(self.domain.shape)

    def log_odds(self, name: str, u: object, v: object, records: object) -> NDArray[np.float64]:
        """log P(z_i = u | rest) − log P(z_i = v | rest) for each record ([ZKKW20] Lemma 3.10)."""
        attribute = self.domain[name]
        a, b = attribute.code(u), attribute.code(v)
        codes = encode(records, self.domain)
        out = np.full(len(codes), self.Theta[name][a] - self.Theta[name][b])
        for first, second in self.W:
            if name in (first, second):
                other = second if name == first else first
                table = self.weights(name, other)
                out += (table[a] - table[b])[codes[:, self.domain.index(other)]]
        return out

    def edge_strength(self) -> dict[Pair, float]:
        """max |W_ij(a, b)| of each edge."""
        return {pair: float(np.abs(table).max()) for pair, table in self.W.items()}

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"W{i}": table for i, table in enumerate(self.W.values())}
        arrays |= {f"theta{i}": vector for i, vector in enumerate(self.Theta.values())}
        return {"edges": [list(pair) for pair in self.W]}, arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> PairwiseModel:
        domain = archive_domain(header)
        W: dict[Pair, NDArray[Any]] = {}
        for i, names in enumerate(archive_names(header["model"]["edges"])):
            a, b = names
            W[a, b] = arrays[f"W{i}"]
        return cls(W, {name: arrays[f"theta{i}"] for i, name in enumerate(domain)}, domain, header["card"])
