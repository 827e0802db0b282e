"""What BIF and UAI files say, before it becomes a model: names, levels, and tables of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import FileFormatError

Table = npt.NDArray[np.float64]

# A conditional distribution in a file may miss one by this much (people print few digits); more is an error.
SUM_TOLERANCE = 1e-4
# Below this it is the rounding of the sum itself, and the numbers are left exactly as they are written.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class NetworkData:
    """A Bayesian network: levels and parents of each variable, and tables with the axes ``(*parents, variable)``.

    ``notes`` says what was changed on reading: conditional distributions that had to be rescaled to sum to one.
    """

    name: str
    levels: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, Table]
    notes: tuple[str, ...] = ()

    def shape(self, variable: str) -> tuple[int, ...]:
        """Shape of the table of a variable."""
        return tuple(len(self.levels[v]) for v in (*self.parents[variable], variable))


@dataclass(frozen=True, eq=False)
class FactorData:
    """A product of non-negative tables, each over its scope in axis order: what a UAI file holds.

    With ``directed``, the factors are conditional distributions of the last variable of their scope.
    """

    directed: bool
    levels: dict[str, tuple[str, ...]]
    scopes: tuple[tuple[str, ...], ...]
    tables: tuple[Table, ...]

    @classmethod
    def from_network(cls, network: NetworkData) -> FactorData:
        scopes = tuple((*network.parents[v], v) for v in network.levels)
        return cls(True, dict(network.levels), scopes, tuple(network.tables[v] for v in network.levels))

    def to_network(self, name: str = "unknown") -> NetworkData:
        """As a network; each variable must be the last one of exactly one scope."""
        if not self.directed:
            raise FileFormatError("it is a Markov random field (MARKOV), not a Bayesian network (BAYES)")
        own = {scope[-1]: i for i, scope in enumerate(self.scopes) if scope}
        if len(own) != len(self.scopes) or len(own) != len(self.levels):
            raise FileFormatError("it does not have exactly one conditional distribution for each variable")
        parents = {v: self.scopes[own[v]][:-1] for v in self.levels}
        require_acyclic(parents)
        tables, notes = {}, []
        for v in self.levels:
            tables[v], note = normalised(v, self.tables[own[v]])
            notes += [note] if note else []
        return NetworkData(name, dict(self.levels), parents, tables, tuple(notes))


def normalised(variable: str, table: Table) -> tuple[Table, str | None]:
    """A conditional table whose rows sum to one, and a note if that took more than rounding."""
    sums = table.sum(axis=-1, keepdims=True)
    worst = float(np.abs(sums - 1).max(initial=0.0))
    if not worst <= SUM_TOLERANCE:
        raise FileFormatError(
            f"a conditional distribution of {variable!r} sums to {float(sums.flat[np.abs(sums - 1).argmax()]):.9g} "
            "instead of 1"
        )
    if worst <= ROUNDING:
        return table, None
    return table / sums, f"the conditional distributions of {variable!r} were rescaled: a sum was off by {worst:.2g}"


def require_acyclic(parents: dict[str, tuple[str, ...]]) -> None:
    """An error that shows a cycle, if there is one. Iterative: a long chain must not exhaust the stack."""
    finished: set[str] = set()
    for root in parents:
        path: list[str] = []
        on_path: set[str] = set()
        stack = [(root, False)]
        while stack:
            variable, done = stack.pop()
            if done:
                finished.add(path.pop())
                on_path.discard(variable)
            elif variable in on_path:
                cycle = [*path[path.index(variable) :], variable]
                raise FileFormatError(f"its arrows form a cycle: {' ← '.join(cycle)}"[:300])
            elif variable not in finished:
                path.append(variable)
                on_path.add(variable)
                stack.append((variable, True))
                stack.extend((parent, False) for parent in parents[variable])
