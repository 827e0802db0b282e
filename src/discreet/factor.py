"""Labelled float64 tables in log space, alone (:class:`Factor`) and one a clique (:class:`CliqueVector`).

A cell of −∞ is a structural zero: it stays one through every operation, and ``-inf - -inf`` is ``-inf`` (0/0 = 0, the
convention of belief propagation), so that no NaN is ever made from tables that hold none.

A table may carry leading *batch* axes, shape ``(…, *domain.shape)``: many parameter vectors handled as one. Batch axes
broadcast against each other as NumPy's do; names never refer to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .domain import Clique, Domain
from .errors import InputError

Array = npt.NDArray[np.float64]


def log_of(probabilities: npt.ArrayLike) -> Array:
    """Natural logarithm with log 0 = −∞ and no warning."""
    with np.errstate(divide="ignore"):
        out: Array = np.log(np.asarray(probabilities, dtype=np.float64))
    return out


def logsumexp(values: Array, axis: int | tuple[int, ...]) -> Array:
    """log Σ exp along ``axis``; all −∞ gives −∞. The maximum is taken out first, so the result never overflows."""
    highest = np.maximum.reduce(values, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    work = values - shift
    total = np.add.reduce(np.exp(work, out=work), axis=axis, keepdims=True)
    out: Array = np.squeeze(log_of(total) + shift, axis=axis)
    return out


def subtract(a: Array, b: Array) -> Array:
    """a − b in log space with 0/0 = 0: where a is −∞ the result is −∞, whatever b is."""
    with np.errstate(invalid="ignore"):
        out: Array = np.asarray(a - b)
    out[np.broadcast_to(np.isneginf(a), out.shape)] = -np.inf
    return out


def spread(values: Array, own: tuple[str, ...], target: tuple[str, ...]) -> Array:
    """View of a table over ``own`` columns with its axes in the order of ``target``, length 1 where a column is new."""
    if own == target:
        return values
    batch = values.ndim - len(own)
    position = {name: i for i, name in enumerate(own)}
    present = [name for name in target if name in position]
    order = (*range(batch), *(batch + position[name] for name in present))
    moved = values.transpose(order)
    sizes = iter(moved.shape[batch:])
    return moved.reshape(moved.shape[:batch] + tuple(next(sizes) if name in position else 1 for name in target))


@dataclass(frozen=True, eq=False)
class Factor:
    """A table of log values over the columns of ``domain``, axes in that order, optionally after batch axes.

    >>> from discreet.domain import Domain
    >>> f = Factor.from_probabilities(Domain.of({"a": 2, "b": 2}), [[0.5, 0.25], [0.25, 0.0]])
    >>> f.project(["a"]).exp()
    array([0.75, 0.25])
    """

    domain: Domain
    values: Array

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        shape = self.domain.shape
        if values.shape[values.ndim - len(shape) :] != shape or values.ndim < len(shape):
            raise InputError(
                f"a factor over {self.domain.names} needs a table of shape (…, {', '.join(map(str, shape))}), "
                f"got {values.shape}"
            )
        object.__setattr__(self, "values", values)

    # -- making one ----------------------------------------------------------------------------------------------

    @classmethod
    def zeros(cls, domain: Domain) -> Factor:
        """The factor that changes nothing: log 1 in every cell."""
        return cls(domain, np.zeros(domain.shape))

    @classmethod
    def random(
        cls, domain: Domain, random_state: int | np.random.Generator | None = None, scale: float = 1.0
    ) -> Factor:
        """Independent normal log values; for tests and starting points."""
        return cls(domain, scale * np.random.default_rng(random_state).standard_normal(domain.shape))

    @classmethod
    def from_probabilities(cls, domain: Domain, probabilities: npt.ArrayLike) -> Factor:
        """From non-negative weights; 0 becomes −∞."""
        p = np.asarray(probabilities, dtype=np.float64)
        if not np.all(p >= 0):
            raise InputError(f"weights over {domain.names} must be non-negative numbers, got a smallest of {p.min()}")
        return cls(domain, log_of(p))

    # -- looking at it -------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return self.domain.names

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.values.shape[: self.values.ndim - len(self.domain)]

    def exp(self) -> Array:
        """The table out of log space."""
        out: Array = np.exp(self.values)
        return out

    def __repr__(self) -> str:
        batch = f", batch={self.batch_shape}" if self.batch_shape else ""
        return f"Factor({', '.join(f'{n}:{k}' for n, k in zip(self.names, self.domain.shape, strict=True))}{batch})"

    # -- arithmetic ----------------------------------------------------------------------------------------------

    def _combine(self, other: Factor, operation: Callable[[Array, Array], Array]) -> Factor:
        domain = self.domain if self.domain == other.domain else self.domain.merge(other.domain)
        a = spread(self.values, self.names, domain.names)
        b = spread(other.values, other.names, domain.names)
        return Factor(domain, operation(a, b))

    def __add__(self, other: Factor | float) -> Factor:
        """Product of the tables (sum of the logs) over the union of the columns, or of the table and a constant."""
        if isinstance(other, Factor):
            return self._combine(other, np.add)
        return Factor(self.domain, self.values + other)

    __radd__ = __add__

    def __sub__(self, other: Factor | float) -> Factor:
        """Quotient of the tables with 0/0 = 0."""
        if isinstance(other, Factor):
            return self._combine(other, subtract)
        return Factor(self.domain, subtract(self.values, np.asarray(other, dtype=np.float64)))

    # -- eliminating columns -------------------------------------------------------------------------------------

    def _axes(self, names: Iterable[str]) -> tuple[int, ...]:
        batch = self.values.ndim - len(self.domain)
        return tuple(batch + self.domain.index(name) for name in names)

    def _without(self, names: Iterable[str] | None, reduce: Callable[[Array, tuple[int, ...]], Array]) -> Factor:
        gone = self.names if names is None else tuple([names] if isinstance(names, str) else names)
        rest = self.domain.project(n for n in self.names if n not in set(gone))
        axes = self._axes(gone)
        return Factor(rest, reduce(self.values, axes)) if axes else self

    def logsumexp(self, names: Iterable[str] | None = None) -> Factor:
        """Sum these columns out (all of them by default)."""
        return self._without(names, logsumexp)

    def max(self, names: Iterable[str] | None = None) -> Factor:
        """Maximise over these columns (all of them by default)."""
        return self._without(names, lambda values, axes: np.max(values, axis=axes))

    def project(self, names: Iterable[str]) -> Factor:
        """The marginal on ``names``, axes in that order."""
        kept = self._kept(names)
        return self.logsumexp([n for n in self.names if n not in kept]).transpose(kept)

    def _kept(self, names: Iterable[str]) -> tuple[str, ...]:
        kept = tuple([names] if isinstance(names, str) else names)
        self._axes(kept)
        return kept

    # -- changing its form ---------------------------------------------------------------------------------------

    def transpose(self, names: Iterable[str]) -> Factor:
        """The same table with its axes in another order."""
        order = tuple(names)
        if order == self.names:
            return self
        if sorted(order) != sorted(self.names):
            raise InputError(f"transpose needs every column of {self.names} once, got {order}")
        return Factor(self.domain.project(order), spread(self.values, self.names, order))

    def condition(self, evidence: Mapping[str, int]) -> Factor:
        """The slice at these codes, unnormalised, without their columns; columns of no concern are ignored."""
        here = {n: check_code(self.domain, n, c) for n, c in evidence.items() if n in self.domain}
        if not here:
            return self
        index = (..., *(here.get(n, slice(None)) for n in self.names))
        return Factor(self.domain.project(n for n in self.names if n not in here), self.values[index])

    def normalize(self) -> Factor:
        """Divide by the total, so that the cells sum to one (per batch entry)."""
        axes = self._axes(self.names)
        if not axes:
            return Factor(self.domain, np.zeros_like(self.values))
        total = np.expand_dims(logsumexp(self.values, axes), axes)
        if not np.all(np.isfinite(total)):
            raise InputError(f"cannot normalise the factor over {self.names}: its cells sum to 0, ∞ or NaN")
        return Factor(self.domain, self.values - total)


def check_code(domain: Domain, name: str, code: Any) -> int:
    """The code as an int, refusing one that the column does not have."""
    size = domain[name].size
    if isinstance(code, bool) or not isinstance(code, int | np.integer):
        raise InputError(f"evidence at this level is a code 0 … {size - 1} of column {name!r}, got {code!r}")
    if not 0 <= code < size:
        raise InputError(f"column {name!r} has codes 0 … {size - 1}, got {int(code)}")
    return int(code)


class CliqueVector(Mapping[Clique, Factor]):
    """One factor a clique, as one value: what potentials, marginals and gradients are.

    Cliques are tuples of names in domain order; the order of the cliques is kept. Frozen: operations make new ones.
    """

    __slots__ = ("_factors", "domain")

    def __init__(self, domain: Domain, tables: Mapping[Clique, Factor | npt.ArrayLike]) -> None:
        factors: dict[Clique, Factor] = {}
        for names, table in tables.items():
            clique = domain.clique(names)
            if isinstance(table, Factor):
                factor = table.transpose(clique)
            elif clique != tuple(names):
                raise InputError(f"the clique {tuple(names)} of a bare table must be in domain order, {clique}")
            else:
                factor = Factor(domain.project(clique), np.asarray(table, dtype=np.float64))
            if clique in factors:
                raise InputError(f"the clique {clique} was given twice; add its tables first")
            factors[clique] = factor
        self.domain = domain
        self._factors = factors

    @classmethod
    def zeros(cls, domain: Domain, cliques: Iterable[Iterable[str]]) -> CliqueVector:
        """Log 1 everywhere on these cliques."""
        named = [domain.clique(c) for c in cliques]
        return cls(domain, {c: Factor.zeros(domain.project(c)) for c in named})

    @classmethod
    def random(
        cls,
        domain: Domain,
        cliques: Iterable[Iterable[str]],
        random_state: int | np.random.Generator | None = None,
        scale: float = 1.0,
    ) -> CliqueVector:
        """Independent normal log values."""
        rng = np.random.default_rng(random_state)
        named = [domain.clique(c) for c in cliques]
        return cls(domain, {c: Factor.random(domain.project(c), rng, scale) for c in named})

    @classmethod
    def of(cls, domain: Domain, factors: Iterable[Factor]) -> CliqueVector:
        """From factors over any columns; those over the same columns are added up."""
        tables: dict[Clique, Factor] = {}
        for factor in factors:
            clique = domain.clique(factor.names)
            moved = factor.transpose(clique)
            tables[clique] = tables[clique] + moved if clique in tables else moved
        made = cls.__new__(cls)
        made.domain, made._factors = domain, tables
        return made

    def __getitem__(self, clique: Clique) -> Factor:
        return self._factors[clique]

    def __iter__(self) -> Iterator[Clique]:
        return iter(self._factors)

    def __len__(self) -> int:
        return len(self._factors)

    def __repr__(self) -> str:
        return f"CliqueVector({len(self)} cliques, {sum(f.values.size for f in self.values())} cells)"

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(self._factors)

    def map(self, function: Callable[[Array], Array]) -> CliqueVector:
        """Apply a function to every table."""
        return CliqueVector(self.domain, {c: Factor(f.domain, function(f.values)) for c, f in self.items()})

    def __add__(self, other: CliqueVector) -> CliqueVector:
        """Cell by cell; cliques only one side has are kept."""
        out = dict(self._factors)
        for clique, factor in other.items():
            out[clique] = out[clique] + factor if clique in out else factor
        return CliqueVector(self.domain, out)

    def __sub__(self, other: CliqueVector) -> CliqueVector:
        out = dict(self._factors)
        for clique, factor in other.items():
            out[clique] = out[clique] - factor if clique in out else Factor(factor.domain, -factor.values)
        return CliqueVector(self.domain, out)

    def __mul__(self, scalar: float) -> CliqueVector:
        """Scale every log value; 0 · (−∞) = 0."""
        return self.map(lambda v: scalar * v) if scalar else self.map(np.zeros_like)

    __rmul__ = __mul__

    def dot(self, other: CliqueVector) -> Any:
        """Σ over cliques and cells of the product; 0 · (−∞) counts as 0. An array over the batch if there is one."""
        total: Any = 0.0
        for clique, factor in self.items():
            axes = tuple(range(-len(clique), 0))
            with np.errstate(invalid="ignore"):
                product = factor.values * other[clique].values
            total = total + np.where(np.isnan(product), 0.0, product).sum(axis=axes)
        return total
