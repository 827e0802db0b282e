"""The Bayesian network: a directed acyclic graph and a conditional table for each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..arguments import require_domain
from ..domain import Domain
from ..encoding import Codes
from ..errors import InputError
from ..factor import CliqueVector, Factor
from ..graph import topological_order
from .ancestral import draw_column
from .base import Model
from .checks import archive_domain, archive_names, checked_array, require_mapping
from .encoding import code_type

# Rows may miss one by this much: files round their numbers. Rows off by less than `EXACT` are left as they are, so that
# reading what was written changes no bit.
TOLERANCE = 1e-5
EXACT = 1e-12
BLOCK = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class BayesianNetwork(Model):
    """P(x) = Π_i P(x_i | parents of x_i).

    ``parents`` maps a column to its parents (one name or several; a column left out has none), ``tables`` a column to
    its probabilities with one axis a parent, in that order, and the column itself last. Rows must sum to one; those off
    by rounding only (1e-5, as in files) are rescaled. Zeros are fine: such combinations never happen.
    """

    kind: ClassVar[str] = "bayesian"
    directed: ClassVar[bool] = True

    domain: Domain
    parents: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, NDArray[np.float64]]
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require_domain(self.domain)
        require_mapping(self.parents, "parents", '{"lung": ["smoke"]}')
        require_mapping(self.tables, "tables", '{"smoke": [0.3, 0.7]}')
        for name in (*self.parents, *self.tables):
            self.domain.index(name)  # an unknown name is an error with a hint
        above_of = ((name, self.parents.get(name, ())) for name in self.domain)
        parents = {name: (above,) if isinstance(above, str) else tuple(above) for name, above in above_of}
        for child, above in parents.items():
            for name in above:
                self.domain.index(name)
            if len(set(above)) != len(above):
                raise InputError(f"column {child!r} names a parent twice: {above}")
        object.__setattr__(self, "parents", MappingProxyType(parents))
        _ = self.order  # a cycle is an error that shows it
        absent = [name for name in self.domain if name not in self.tables]
        if absent:
            raise InputError(f"column {absent[0]!r} has no conditional table")
        tables = {name: self._checked(name, self.tables[name]) for name in self.domain}
        object.__setattr__(self, "tables", MappingProxyType(tables))

    def _checked(self, name: str, table: npt.ArrayLike) -> NDArray[np.float64]:
        above = self.parents[name]
        shape = tuple(self.domain[n].size for n in (*above, name))
        what = f"the table of {name!r}" + (f" given {', '.join(map(repr, above))}" if above else "")
        p = checked_array(table, what, len(shape))
        if p.shape != shape:
            raise InputError(f"{what} must have shape {shape} (parents first, the column last), got {p.shape}")
        if np.any(p < 0):
            raise InputError(f"{what} holds the negative probability {p.min()}")
        total = p.sum(axis=-1, keepdims=True)
        off = np.abs(total - 1)[..., 0]
        if off.max() > TOLERANCE:
            at = np.unravel_index(int(off.argmax()), off.shape)
            where = ", ".join(f"{n}={self.domain[n].labels[i]}" for n, i in zip(above, at, strict=True))
            raise InputError(f"{what} must sum to one{' at ' + where if where else ''}, got {float(total[at][0]):.9g}")
        if off.max() > EXACT:
            p = p / total
            p.flags.writeable = False
        return p

    # -- the graph -----------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The columns, each after its parents."""
        return topological_order(self.parents)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Arrows (parent, child)."""
        return tuple((parent, child) for child, above in self.parents.items() for parent in above)

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        out: dict[str, list[str]] = {name: [] for name in self.domain}
        for parent, child in self.edges:
            out[parent].append(child)
        return {name: tuple(below) for name, below in out.items()}

    def ancestors(self, names: Iterable[str] | str) -> frozenset[str]:
        """These columns and everything above them: all that a question about them depends on."""
        found: set[str] = set()
        waiting = list(self.domain.clique(names if isinstance(names, str) else set(names)))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(self.parents[name])
        return frozenset(found)

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """Parents, children and the other parents of the children, in domain order."""
        self.domain.index(name)
        blanket = {*self.parents[name], *self.children[name]}
        for child in self.children[name]:
            blanket.update(self.parents[child])
        return self.domain.clique(blanket - {name})

    def d_separated(self, a: Iterable[str] | str, b: Iterable[str] | str, given: Iterable[str] | str = ()) -> bool:
        """Whether the graph alone makes ``a`` and ``b`` independent given ``given``.

        By the moral graph of the ancestors: separated iff no path leads from one to the other around the condition.
        """
        first, second, known = set(self.domain.clique(a)), set(self.domain.clique(b)), set(self.domain.clique(given))
        first, second = first - known, second - known
        if first & second:
            return False
        relevant = self.ancestors(first | second | known)
        near: dict[str, set[str]] = {name: set() for name in relevant}
        for name in relevant:
            for u, v in combinations((name, *self.parents[name]), 2):
                near[u].add(v)
                near[v].add(u)
        reached, waiting = set(first), list(first)
        while waiting:
            for name in near[waiting.pop()] - reached - known:
                reached.add(name)
                waiting.append(name)
        return not reached & second

    # -- probability ---------------------------------------------------------------------------------------------

    @cached_property
    def potentials(self) -> CliqueVector:
        return CliqueVector.of(self.domain, (self._family(name) for name in self.domain))

    def _family(self, name: str) -> Factor:
        return Factor.from_probabilities(self.domain.project((*self.parents[name], name)), self.tables[name])

    def _relevant(self, names: Iterable[str]) -> CliqueVector:
        """Only the families of ancestors: what is below a question sums to one and drops out."""
        wanted = self.ancestors(names)
        own = self.domain.project(n for n in self.domain if n in wanted)
        return CliqueVector.of(own, (self._family(name) for name in own))

    @property
    def log_partition(self) -> float:
        """Zero: the tables are probabilities."""
        return 0.0

    def _sample_forward(self, n: int, rng: np.random.Generator, rounded: bool) -> Codes:
        """Draw each column given its parents, in topological order; exact, whatever the width of the graph."""
        codes = np.empty((len(self.domain), n), dtype=code_type(self.domain))
        # Blocks stay in the cache; rounding of expected counts must see all records at once.
        for start in range(0, n, n if rounded else BLOCK) if n else ():
            block = codes[:, start : start + (n if rounded else BLOCK)]
            for name in self.order:
                above = [block[self.domain.index(parent)] for parent in self.parents[name]]
                block[self.domain.index(name)] = draw_column(self.tables[name], above, block.shape[1], rng, rounded)
        return np.ascontiguousarray(codes.T)

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"table{i}": self.tables[name] for i, name in enumerate(self.domain)}
        return {"parents": [list(self.parents[name]) for name in self.domain]}, arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> BayesianNetwork:
        domain = archive_domain(header)
        parents = dict(zip(domain, archive_names(header["model"]["parents"]), strict=True))
        return cls(domain, parents, {name: arrays[f"table{i}"] for i, name in enumerate(domain)}, header["card"])
