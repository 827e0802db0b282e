"""Triangulation, junction trees, and a forecast of the cost before any table is allocated.

Nothing here touches a table: graphs are sets of columns, and sizes are exact Python integers, so that a hopeless graph
is refused in milliseconds instead of filling the memory.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .domain import Clique, Domain
from .errors import CostError, InputError
from .ordering import Elimination, adjacency, best_elimination, bits

DEFAULT_MEMORY_LIMIT = 4 * 2**30
"""Bytes that an exact computation may take unless told otherwise."""

# Measured on one core: 3.5 ms for 2.6 million cells (counted as in `_forecast`), 0.36 ms for the 52 messages of ALARM.
_SECONDS_PER_CELL = 1.5e-9
_SECONDS_PER_MESSAGE = 7e-6


# -- small graph helpers -------------------------------------------------------------------------------------------


def connected_components(domain: Domain, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
    """Columns grouped by the parts of the graph that no clique joins, each group in domain order."""
    adjacent = adjacency(domain, cliques)
    unseen = (1 << len(domain)) - 1
    out: list[Clique] = []
    while unseen:
        part = frontier = unseen & -unseen
        while frontier:
            reached = 0
            for i in bits(frontier):
                reached |= adjacent[i]
            frontier = reached & ~part
            part |= frontier
        unseen &= ~part
        out.append(tuple(domain.names[i] for i in bits(part)))
    return tuple(out)


def maximal_cliques(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Those not contained in another one, in the order given."""
    unique = list(dict.fromkeys(tuple(c) for c in cliques))
    sets = [frozenset(c) for c in unique]
    return tuple(c for c, s in zip(unique, sets, strict=True) if not any(s < other for other in sets))


def topological_order(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Every name after its parents, otherwise in the order given; a cycle is an error that shows it."""
    for child, above in parents.items():
        for parent in above:
            if parent not in parents:
                raise InputError(f"{parent!r} is given as a parent of {child!r} but is not a node itself")
    waiting = {child: set(above) for child, above in parents.items()}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for child, missing in waiting.items():
        for parent in missing:
            children[parent].append(child)
    position = {name: i for i, name in enumerate(parents)}
    ready = [position[name] for name, above in waiting.items() if not above]
    heapq.heapify(ready)
    names = list(parents)
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for child in children[name]:
            waiting[child].discard(name)
            if not waiting[child]:
                heapq.heappush(ready, position[child])
    if len(order) < len(names):
        raise InputError(f"the graph has a cycle: {' → '.join(_a_cycle(parents, set(names) - set(order)))}")
    return tuple(order)


def _a_cycle(parents: Mapping[str, Sequence[str]], left: set[str]) -> list[str]:
    """Walk from child to parent among names that all have a parent left, until one comes back."""
    name = next(name for name in parents if name in left)
    walk: dict[str, None] = {}  # in order, and quick to search
    while name not in walk:
        walk[name] = None
        name = next(p for p in parents[name] if p in left)
    names = list(walk)
    return [*names[names.index(name) :], name][::-1]


# -- the junction tree ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forecast:
    """What a calibration will cost, known from the graph alone."""

    largest_clique: Clique
    largest_cells: int
    total_cells: int
    bytes: int
    seconds: float
    batch: int = 1

    def check(self, memory_limit: int, task: str = "exact inference") -> None:
        """Refuse with a :class:`CostError` when the work does not fit into ``memory_limit`` bytes."""
        if self.bytes <= memory_limit:
            return
        shown = ", ".join(self.largest_clique[:8]) + (", …" if len(self.largest_clique) > 8 else "")
        ways_out = [
            'an approximate method (method="loopy", method="gibbs", or method="auto" to let the forecast choose)',
            "coarser columns: fewer levels or wider bins for those named above",
            "fewer edges or smaller cliques in the model",
            f"memory_limit={self.bytes} or more, if the machine has that",
        ]
        if self.batch > 1:
            ways_out.insert(0, f"smaller batches (this one has {self.batch} entries)")
        raise CostError(
            f"{task} needs a table of {count_text(self.largest_cells)} cells over the {len(self.largest_clique)} "
            f"columns ({shown}), {size_text(self.bytes)} in all, and the memory limit is {size_text(memory_limit)}. "
            f"Nothing was allocated. Ways out: {'; '.join(ways_out)}."
        )


def size_text(number: int) -> str:
    """Bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number = number / 1024 if number < 2**1000 else number // 1024  # type: ignore[assignment]
    return f"{count_text(int(number * 1024))} TiB" if number < 1024 else f"10^{math.log10(number) + 12:.0f} bytes"


def count_text(number: int) -> str:
    """A count for people: exact when short, a power of ten otherwise."""
    return f"{number:,}" if number < 10**9 else f"10^{math.log10(number):.1f}"


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques of a triangulation, joined so that the cliques holding any column are connected.

    ``edges`` are (parent, child) indices, parents first, so a pass over them distributes and a pass backwards collects.
    ``separators`` has one entry an edge. Parts of the graph that nothing joins hang together by empty separators: one
    tree, whatever the graph. A clique's columns outside the separator towards its parent come before the separator in
    ``elimination_order``.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    edges: tuple[tuple[int, int], ...]
    separators: tuple[Clique, ...]
    elimination_order: tuple[str, ...]

    @cached_property
    def parent(self) -> dict[int, int]:
        """The parent of every clique but the root (which is clique 0)."""
        return {child: parent for parent, child in self.edges}

    @cached_property
    def _sets(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(c) for c in self.cliques)

    @cached_property
    def _by_column(self) -> dict[str, tuple[int, ...]]:
        """Indices of the cliques that hold a column, smallest table first."""
        sizes = [self.domain.size(c) for c in self.cliques]
        order = sorted(range(len(self.cliques)), key=lambda i: (sizes[i], i))
        return {name: tuple(i for i in order if name in self._sets[i]) for name in self.domain}

    def find_home(self, names: Iterable[str]) -> int | None:
        """The smallest clique that holds all these columns, or None."""
        wanted = frozenset(names)
        if not wanted:
            return 0
        rarest = min((self._by_column[n] if n in self.domain else self._unknown(n) for n in wanted), key=len)
        return next((i for i in rarest if wanted <= self._sets[i]), None)

    def _unknown(self, name: str) -> tuple[int, ...]:
        self.domain.index(name)
        return ()

    def home(self, names: Iterable[str]) -> int:
        """The smallest clique that holds all these columns; an error when none does."""
        wanted = tuple(names)
        index = self.find_home(wanted)
        if index is None:
            raise InputError(
                f"no clique of the junction tree holds {wanted}; compile the engine with it among the cliques"
            )
        return index

    @cached_property
    def width(self) -> int:
        """Size of the largest clique minus one."""
        return max((len(c) for c in self.cliques), default=1) - 1

    def forecast(self, batch: int = 1) -> Forecast:
        """Cells, bytes and seconds of one calibration of ``batch`` parameter vectors or evidence sets at once."""
        sizes = [self.domain.size(c) for c in self.cliques]
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        total = sum(sizes)
        between = sum(self.domain.size(s) for s in self.separators)
        return _forecast(self.cliques[largest], sizes[largest], total, between, len(sizes), batch)


def _forecast(clique: Clique, largest: int, total: int, between: int, cliques: int, batch: int) -> Forecast:
    # Beliefs, one working copy of them, two messages an edge, and two temporaries of the largest table.
    cells = 2 * total + 2 * between + 2 * largest
    seconds = _SECONDS_PER_CELL * float(min(cells * batch, 10**300)) + _SECONDS_PER_MESSAGE * 2 * cliques
    return Forecast(clique, largest, total, 8 * batch * cells, seconds, batch)


def triangulate(
    domain: Domain,
    cliques: Iterable[Iterable[str]],
    *,
    order: Sequence[str] | None = None,
    method: str = "best",
    tries: int = 8,
    random_state: int | np.random.Generator | None = 0,
    memory_limit: int | None = None,
) -> JunctionTree:
    """A junction tree whose cliques cover the given ones.

    ``method`` is ``"min-fill"``, ``"min-weight"`` or ``"best"``: both, then with ties broken at random, ``tries`` runs
    in all, keeping the one with the fewest cells. ``order`` fixes the elimination order instead. With a
    ``memory_limit``, a tree whose largest clique alone exceeds it is refused with a :class:`CostError`.
    """
    if len(domain) == 0:
        raise InputError("a junction tree needs at least one column, and the domain has none")
    cliques = [tuple(c) for c in cliques]
    if order is None:
        run = best_elimination(domain, cliques, None, method, tries, random_state)
    else:
        if sorted(order) != sorted(domain.names):
            raise InputError(f"order must name every column of the domain once, got {len(tuple(order))} names")
        run = Elimination(adjacency(domain, cliques), domain.shape, (1 << len(domain)) - 1)
        for name in order:
            run.remove(domain.index(name))
    if memory_limit is not None:
        cells, clique = max((run.cells_of(c), c) for c in run.cliques)
        names = tuple(domain.names[i] for i in bits(clique))
        # At least: the other cliques and the separators come on top.
        _forecast(names, cells, cells, 0, 1, 1).check(memory_limit)
    return _tree_of(domain, run)


def _tree_of(domain: Domain, run: Elimination) -> JunctionTree:
    """Join each elimination clique to that of the first column eliminated after it; absorb what is not maximal."""
    rank = {v: i for i, v in enumerate(run.order)}
    cliques = dict(zip(run.order, run.cliques, strict=True))
    parent: dict[int, int | None] = {}
    for v in run.order:
        rest = cliques[v] & ~(1 << v)
        parent[v] = min(bits(rest), key=rank.__getitem__) if rest else None
    # A parent clique inside its child adds nothing: the child takes its place. `stands_for` follows replacements.
    stands_for = {v: v for v in run.order}
    for v in run.order:
        above = parent[v]
        if above is not None and stands_for[above] == above and cliques[above] & ~cliques[v] == 0:
            stands_for[above] = stands_for[v]

    def keeper(v: int) -> int:
        while stands_for[v] != v:
            v = stands_for[v]
        return v

    up: dict[int, int | None] = {}
    for v in reversed(run.order):
        k, above = keeper(v), parent[v]
        target = None if above is None else keeper(above)
        if target != k:
            up[k] = target

    # Roots first; the other roots hang from the first by an empty separator. Cliques that are equally deep and have
    # tables of one shape stand side by side, for passes that take them together.
    def place(v: int) -> tuple[int, int, int]:
        above = up[v]
        return (
            _depth(v, up),
            run.cells_of(cliques[v]),
            1 if above is None else run.cells_of(cliques[v] & cliques[above]),
        )

    kept = sorted(up, key=place)
    first = kept[0]
    index = {v: i for i, v in enumerate(kept)}
    names = domain.names
    edges, separators = [], []
    for v in kept[1:]:
        above = up[v]
        shared = 0 if above is None else cliques[v] & cliques[above]
        edges.append((index[first if above is None else above], index[v]))
        separators.append(tuple(names[i] for i in bits(shared)))
    return JunctionTree(
        domain,
        tuple(tuple(names[i] for i in bits(cliques[v])) for v in kept),
        tuple(edges),
        tuple(separators),
        tuple(names[v] for v in run.order),
    )


def _depth(v: int, up: Mapping[int, int | None]) -> int:
    depth = 0
    above = up[v]
    while above is not None:
        depth += 1
        above = up[above]
    return depth
