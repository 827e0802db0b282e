"""Families: a column with its parents. What must be measured to fit a Bayesian network, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...count_table import CountTable
from ...domain import Clique, Domain
from ...errors import CostError, InputError, counted
from ...graph import count_text, maximal_cliques
from ...measurement import Measurements
from ...models.bayesian import BayesianNetwork
from ..cards import card_of
from ..checks import TooLarge
from ..graph_files import Parents
from ..graph_input import Graph, parents_of

Array = NDArray[np.float64]
LARGEST_FAMILY = 1_000_000
"""Cells of one table. Noise for a million cells takes some ten seconds, and more is hardly ever worth measuring."""
NAMED = 6
"""So many families that lose parents are named in a note; the card names all edges."""


@dataclass(frozen=True)
class Families:
    """The graph of a network over a domain, and its tables."""

    domain: Domain
    parents: Mapping[str, tuple[str, ...]]
    drawn: Mapping[str, tuple[str, ...]] | None = None  # the parents in the user's graph, where some were left out

    @classmethod
    def of(
        cls, domain: Domain, graph: Graph, *, largest: int = LARGEST_FAMILY, too_large: TooLarge = "refuse"
    ) -> Families:
        """Check the graph against the domain, and its largest family against a limit.

        ``too_large="coarsen"`` leaves out parents of too large a family, those with most levels first (so that as many
        as possible stay), and says so.
        """
        drawn = parents_of(graph, domain)
        parents = dict(drawn)
        for child in domain:
            while domain.size((*parents[child], child)) > largest:
                if too_large == "refuse" or not parents[child]:
                    raise _refusal(domain, child, parents, largest)
                parents[child] = _without_widest(domain, parents[child])
        return cls(domain, parents, drawn)

    def by_levels(self, name: str) -> tuple[str, ...]:
        """The parents of a column, those with fewest levels first: the order in which they are kept."""
        return tuple(sorted(self.parents[name], key=lambda above: self.domain[above].size))

    def within(self, cliques: Iterable[Clique]) -> Families:
        """Each family of the graph as it was drawn, cut down to the largest part that one of these tables holds."""
        sets = [frozenset(c) for c in cliques]
        parents = {}
        for child, above in (self.drawn or self.parents).items():
            parts: list[list[str]] = [[n for n in above if n in s] for s in sets if child in s]
            if not parts:
                raise InputError(f"no table that holds {child!r} was measured")
            _, best = max((self._rank(part), i) for i, part in enumerate(reversed(parts)))
            parents[child] = tuple(parts[-1 - best])
        return Families(self.domain, parents, self.drawn)

    def _rank(self, parents: list[str]) -> tuple[int, int]:
        return len(parents), self.domain.size(parents)

    @cached_property
    def dropped(self) -> tuple[tuple[str, str], ...]:
        """Edges that were left out because the family was too large."""
        return tuple((a, n) for n, above in (self.drawn or {}).items() for a in above if a not in self.parents[n])

    @cached_property
    def cliques(self) -> dict[str, Clique]:
        """The family of each column, as a clique."""
        return {name: self.domain.clique((*self.parents[name], name)) for name in self.domain}

    @cached_property
    def maximal(self) -> tuple[Clique, ...]:
        """Families that lie in no other: all others, and all tables of parents, are sums of these."""
        return maximal_cliques(tuple(dict.fromkeys(self.cliques.values())))

    def table(self, name: str, measured: CountTable) -> CountTable:
        """The family of ``name`` out of a table that holds it: parents first in their order, the column last."""
        return measured.onto((*self.parents[name], name))

    def homes(self, tables: Mapping[Clique, CountTable]) -> dict[str, Clique]:
        """For each column the measured table that tells its family with the least noise."""
        out = {}
        for name, family in self.cliques.items():
            holding = [t for t in tables.values() if t.holds(family)]
            if not holding:
                raise InputError(f"no table that holds the family {family} of {name!r} was measured")
            out[name] = min(holding, key=lambda t: (t.variance * t.cells, len(t.clique))).clique
        return out

    def network(self, tables: Mapping[str, Array], card: Mapping[str, Any] | None = None) -> BayesianNetwork:
        return BayesianNetwork(self.domain, dict(self.parents), dict(tables), card)

    def card(self, measured: Measurements, method: str, records: float, **facts: Any) -> dict[str, Any]:
        """The card of such a network; edges that were left out are named."""
        if self.dropped:
            facts["dropped_edges"] = [list(e) for e in self.dropped]
        return card_of(measured, method, records, **facts)

    def notes(self) -> tuple[str, ...]:
        if not self.dropped:
            return ()
        cut = list(dict.fromkeys(child for _, child in self.dropped))
        parts = [
            f"{child} loses {', '.join(a for a, c in self.dropped if c == child)} (from "
            f"{count_text(self.domain.size((*(self.drawn or {})[child], child)))} to "
            f"{counted(self.domain.size((*self.parents[child], child)), 'cell')})"
            for child in cut[:NAMED]
        ]
        more = f"; and {len(cut) - NAMED:,} more" if len(cut) > NAMED else ""
        return (f"Too large for the data, so parents are left out, most levels first: {'; '.join(parts)}{more}.",)


def _without_widest(domain: Domain, parents: tuple[str, ...]) -> tuple[str, ...]:
    widest = max(parents, key=lambda name: domain[name].size)
    return tuple(name for name in parents if name != widest)


def _refusal(domain: Domain, child: str, parents: Parents, largest: int) -> CostError:
    family = (*parents[child], child)
    levels = " × ".join(f"{n} ({domain[n].size})" for n in family)
    return CostError(
        f"the family of {child!r} has {count_text(domain.size(family))} cells ({levels}), more than the limit of "
        f"{count_text(largest)}; give it fewer parents, coarsen its largest columns in the schema, have "
        "parents left out with too_large='coarsen', or raise the limit with largest=…"
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
