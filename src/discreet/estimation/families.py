"""Families: a column with its parents. What must be measured to fit a Bayesian network, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..errors import CostError, InputError
from ..graph import count_text, maximal_cliques
from ..models.bayesian import BayesianNetwork
from .graph_input import Graph, Parents, parents_of

Array = NDArray[np.float64]
LARGEST_FAMILY = 1_000_000
"""Cells of one table. Noise for a million cells takes some ten seconds, and more is hardly ever worth measuring."""
TooLarge = Literal["refuse", "drop"]


@dataclass(frozen=True)
class Families:
    """The graph of a network over a domain, and its tables."""

    domain: Domain
    parents: Mapping[str, tuple[str, ...]]
    dropped: tuple[tuple[str, str], ...] = ()  # edges left out because the family was too large

    @classmethod
    def of(
        cls, domain: Domain, graph: Graph, *, largest: int = LARGEST_FAMILY, too_large: TooLarge = "refuse"
    ) -> Families:
        """Check the graph against the domain, and its largest family against a limit.

        ``too_large="drop"`` leaves out parents of too large a family, those with most levels first, and says so.
        """
        if too_large not in ("refuse", "drop"):
            raise InputError(f"too_large must be 'refuse' or 'drop', got {too_large!r}")
        parents = parents_of(graph, domain)
        dropped: list[tuple[str, str]] = []
        for child in domain:
            while domain.size((*parents[child], child)) > largest:
                if too_large == "refuse" or not parents[child]:
                    raise _refusal(domain, child, parents, largest)
                widest = max(parents[child], key=lambda name: domain[name].size)
                dropped.append((widest, child))
                parents[child] = tuple(name for name in parents[child] if name != widest)
        return cls(domain, parents, tuple(dropped))

    @cached_property
    def cliques(self) -> dict[str, Clique]:
        """The family of each column, as a clique."""
        return {name: self.domain.clique((*self.parents[name], name)) for name in self.domain}

    @cached_property
    def maximal(self) -> tuple[Clique, ...]:
        """Families that lie in no other: all others, and all tables of parents, are sums of these."""
        return maximal_cliques(tuple(dict.fromkeys(self.cliques.values())))

    def table(self, name: str, clique: Clique, values: Array) -> Array:
        """The family of ``name`` out of a table that contains it: parents first in their order, the column last."""
        wanted = (*self.parents[name], name)
        away = tuple(i for i, n in enumerate(clique) if n not in wanted)
        kept = [n for n in clique if n in wanted]
        return np.transpose(values.sum(axis=away), [kept.index(n) for n in wanted])

    def homes(self, variances: Mapping[Clique, float]) -> dict[str, Clique]:
        """For each column the measured table that tells its family with the least noise."""
        out = {}
        for name, family in self.cliques.items():
            holding = [c for c in variances if set(family) <= set(c)]
            if not holding:
                raise InputError(f"no table that holds the family {family} of {name!r} was measured")
            cells = self.domain.size(family)
            out[name] = min(holding, key=lambda c: (variances[c] * (self.domain.size(c) / cells), len(c)))
        return out

    def network(self, tables: Mapping[str, Array], card: Mapping[str, Any] | None = None) -> BayesianNetwork:
        return BayesianNetwork(self.domain, dict(self.parents), dict(tables), card)

    def notes(self) -> tuple[str, ...]:
        if not self.dropped:
            return ()
        edges = ", ".join(f"{a} -> {b}" for a, b in self.dropped)
        return (f"Too large a table: the edges {edges} are left out of the model.",)


def _refusal(domain: Domain, child: str, parents: Parents, largest: int) -> CostError:
    family = (*parents[child], child)
    levels = " × ".join(f"{n} ({domain[n].size})" for n in family)
    return CostError(
        f"the family of {child!r} has {count_text(domain.size(family))} cells ({levels}), more than the limit of "
        f"{count_text(largest)}; give it fewer parents, coarsen its largest columns in the schema, leave edges out "
        "with too_large='drop', or raise the limit with largest=…"
    )


def rows_from_counts(table: Array, fallback: Array | None = None) -> Array:
    """Conditional rows of a non-negative table (the column last).

    An empty row says nothing about its column: it gets the column's overall distribution (``fallback``; by default
    that of the table itself), and the uniform one when the whole table is empty.
    """
    if fallback is None:
        whole = table.reshape(-1, table.shape[-1]).sum(axis=0)
        fallback = whole / whole.sum() if whole.sum() > 0 else np.full(table.shape[-1], 1 / table.shape[-1])
    total = table.sum(axis=-1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), fallback)
