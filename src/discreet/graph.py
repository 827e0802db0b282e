"""Triangulation, junction trees, and a forecast of the cost before any table is allocated.

Nothing here touches a table: graphs are sets of columns, and sizes are exact Python integers, so that a hopeless graph
is refused in milliseconds instead of filling the memory.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .domain import Clique, Domain
from .errors import CostError, InputError

DEFAULT_MEMORY_LIMIT = 4 * 2**30
"""Bytes that an exact computation may take unless told otherwise."""

HEURISTICS = ("min-fill", "min-weight")
# Measured on one core: a cell costs some ten passes of reading and writing, a message a handful of NumPy calls.
_SECONDS_PER_CELL = 1.5e-8
_SECONDS_PER_MESSAGE = 2e-5
# With more cells than this after the first try, or after one try of each rule, the search ends: no machine has room for
# a thousandth of the first, and another way to break ties hardly ever wins back even a factor of eight.
_HOPELESS_CELLS = (2**36, 2**31)
# With fewer cells than this after one try of each rule it ends too: calls on such tables cost overhead, not arithmetic.
_SMALL_CELLS = 2**12


# -- small graph helpers -------------------------------------------------------------------------------------------


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _adjacency(domain: Domain, cliques: Iterable[Iterable[str]]) -> list[int]:
    """Neighbours of every column as the bits of an integer: joined whenever some clique holds both."""
    adjacent = [0] * len(domain)
    for clique in cliques:
        members = [domain.index(name) for name in clique]
        mask = 0
        for i in members:
            mask |= 1 << i
        for i in members:
            adjacent[i] |= mask & ~(1 << i)
    return adjacent


def neighbours(domain: Domain, cliques: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """The Markov graph of these cliques: for each column, those it shares a clique with."""
    names = domain.names
    return {names[i]: tuple(names[j] for j in _bits(m)) for i, m in enumerate(_adjacency(domain, cliques))}


def connected_components(domain: Domain, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
    """Columns grouped by the parts of the graph that no clique joins, each group in domain order."""
    adjacent = _adjacency(domain, cliques)
    unseen = (1 << len(domain)) - 1
    out: list[Clique] = []
    while unseen:
        part = frontier = unseen & -unseen
        while frontier:
            reached = 0
            for i in _bits(frontier):
                reached |= adjacent[i]
            frontier = reached & ~part
            part |= frontier
        unseen &= ~part
        out.append(tuple(domain.names[i] for i in _bits(part)))
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
    walk = [next(name for name in parents if name in left)]
    while walk.count(walk[-1]) < 2:
        walk.append(next(p for p in parents[walk[-1]] if p in left))
    return walk[walk.index(walk[-1]) :][::-1]


def moral_cliques(parents: Mapping[str, Sequence[str]]) -> tuple[Clique, ...]:
    """The families ``(*parents, child)`` of a directed graph, in its order: the cliques its moral graph joins."""
    return tuple((*above, child) for child, above in parents.items())


# -- elimination orders --------------------------------------------------------------------------------------------


class _Elimination:
    """One elimination of the columns in ``allowed``: the order, and the clique each column leaves with.

    With ``count_fill`` it keeps, for every column, how many edges its elimination would add, updated edge by edge.
    """

    def __init__(self, adjacent: Sequence[int], sizes: Sequence[int], allowed: int, count_fill: bool = False) -> None:
        self.adjacent = list(adjacent)
        # Columns of equal size as bits, so that the cells of a clique come from a few bit counts.
        self.of_size = [(k, math.log2(k), sum(1 << i for i, s in enumerate(sizes) if s == k)) for k in set(sizes)]
        self.allowed = allowed
        self.order: list[int] = []
        self.cliques: list[int] = []
        self.cells = 0
        self.filled = 0
        self.fill = [self._missing_edges(v) for v in range(len(adjacent))] if count_fill else None

    def _missing_edges(self, v: int) -> int:
        mine, adjacent = self.adjacent[v], self.adjacent
        return sum((mine & ~adjacent[u]).bit_count() - 1 for u in _bits(mine)) // 2

    def weight(self, v: int) -> float:
        """Log cells of the clique that v would leave with."""
        clique = self.adjacent[v] | 1 << v
        total = 0.0
        for _, log_size, members in self.of_size:
            total += log_size * (clique & members).bit_count()
        return total

    def cells_of(self, clique: int) -> int:
        """Cells of the table over these columns, exactly."""
        cells = 1
        for size, _, members in self.of_size:
            cells *= size ** (clique & members).bit_count()
        return cells

    def remove(self, v: int) -> int:
        """Join the neighbours of v to each other and take v out; returns the columns whose score may have changed."""
        mine, adjacent, fill = self.adjacent[v], self.adjacent, self.fill
        clique = mine | 1 << v
        touched = mine
        if fill is not None:
            touched |= self._fill_in(mine, fill)
        for u in _bits(mine):
            if fill is not None:
                fill[u] -= (adjacent[u] & ~clique).bit_count()
            else:
                self.filled += (mine & ~adjacent[u]).bit_count() - 1
            adjacent[u] = (adjacent[u] | mine) & ~(1 << v | 1 << u)
        self.order.append(v)
        self.cliques.append(clique)
        self.cells += self.cells_of(clique)
        self.allowed &= ~(1 << v)
        return touched

    def _fill_in(self, mine: int, fill: list[int]) -> int:
        """Join these columns to each other, keeping the counts; returns the other columns whose count changed."""
        adjacent = self.adjacent
        touched = 0
        for a in _bits(mine):
            for b in _bits((mine & ~adjacent[a]) >> a + 1 << a + 1):
                common = adjacent[a] & adjacent[b]
                touched |= common
                for w in _bits(common):
                    fill[w] -= 1
                fill[a] += (adjacent[a] & ~adjacent[b]).bit_count()
                fill[b] += (adjacent[b] & ~adjacent[a]).bit_count()
                adjacent[a] |= 1 << b
                adjacent[b] |= 1 << a
                self.filled += 1
        return touched

    def run_greedy(self, rng: np.random.Generator | None, give_up_at: int | None) -> bool:
        """Eliminate by fewest edges added (if they are counted) or smallest clique; False when the cells reached
        ``give_up_at`` on the way."""
        noise = rng.random(len(self.adjacent)).tolist() if rng is not None else [0.0] * len(self.adjacent)
        fill = self.fill

        def score(v: int) -> tuple[float, float, int]:
            return (self.weight(v) if fill is None else fill[v], noise[v], v)

        current = {v: score(v) for v in _bits(self.allowed)}
        heap = list(current.values())
        heapq.heapify(heap)
        while heap:
            entry = heapq.heappop(heap)
            v = entry[2]
            if current.get(v) != entry:
                continue
            del current[v]
            touched = self.remove(v)
            if give_up_at is not None and self.cells >= give_up_at:
                return False
            for u in _bits(touched & self.allowed):
                fresh = score(u)
                if fresh != current[u]:
                    current[u] = fresh
                    heapq.heappush(heap, fresh)
        return True


def find_order(
    domain: Domain,
    cliques: Iterable[Iterable[str]],
    *,
    eliminate: Iterable[str] | None = None,
    method: str = "best",
    tries: int = 8,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[str, ...]:
    """An order in which to eliminate these columns (all by default) that keeps the tables small."""
    run = _best_elimination(domain, cliques, eliminate, method, tries, random_state)
    return tuple(domain.names[v] for v in run.order)


def _best_elimination(
    domain: Domain,
    cliques: Iterable[Iterable[str]],
    eliminate: Iterable[str] | None,
    method: str,
    tries: int,
    random_state: int | np.random.Generator | None,
) -> _Elimination:
    if method not in ("best", *HEURISTICS):
        raise InputError(f"method must be one of 'best', 'min-fill', 'min-weight'; got {method!r}")
    if tries < 1:
        raise InputError(f"tries must be at least 1, got tries={tries}")
    adjacent = _adjacency(domain, cliques)
    allowed = (1 << len(domain)) - 1 if eliminate is None else sum(1 << domain.index(n) for n in set(eliminate))
    rules = ("min-weight", "min-fill") if method == "best" else (method,)
    rng = np.random.default_rng(random_state)
    best: _Elimination | None = None
    for t in range(max(tries, len(rules))):
        rule = rules[t % len(rules)]
        run = _Elimination(adjacent, domain.shape, allowed, rule == "min-fill")
        # The first round of the rules breaks ties by position, later ones at random.
        finished = run.run_greedy(rng if t >= len(rules) else None, best.cells if best else None)
        if finished and (best is None or run.cells < best.cells):
            best = run
        # No fill-in: the graph is chordal and no order does better.
        both = t + 1 >= len(rules)
        if best and (best.filled == 0 or best.cells > _HOPELESS_CELLS[both] or (both and best.cells < _SMALL_CELLS)):
            break
    assert best is not None
    return best


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
        run = _best_elimination(domain, cliques, None, method, tries, random_state)
    else:
        if sorted(order) != sorted(domain.names):
            raise InputError(f"order must name every column of the domain once, got {len(tuple(order))} names")
        run = _Elimination(_adjacency(domain, cliques), domain.shape, (1 << len(domain)) - 1)
        for name in order:
            run.remove(domain.index(name))
    if memory_limit is not None:
        cells, clique = max((run.cells_of(c), c) for c in run.cliques)
        names = tuple(domain.names[i] for i in _bits(clique))
        # At least: the other cliques and the separators come on top.
        _forecast(names, cells, cells, 0, 1, 1).check(memory_limit)
    return _tree_of(domain, run)


def _tree_of(domain: Domain, run: _Elimination) -> JunctionTree:
    """Join each elimination clique to that of the first column eliminated after it; absorb what is not maximal."""
    rank = {v: i for i, v in enumerate(run.order)}
    cliques = dict(zip(run.order, run.cliques, strict=True))
    parent: dict[int, int | None] = {}
    for v in run.order:
        rest = cliques[v] & ~(1 << v)
        parent[v] = min(_bits(rest), key=rank.__getitem__) if rest else None
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
    # Roots first; the other roots hang from the first by an empty separator.
    kept = sorted(up, key=lambda v: _depth(v, up))
    first = kept[0]
    index = {v: i for i, v in enumerate(kept)}
    names = domain.names
    edges, separators = [], []
    for v in kept[1:]:
        above = up[v]
        shared = 0 if above is None else cliques[v] & cliques[above]
        edges.append((index[first if above is None else above], index[v]))
        separators.append(tuple(names[i] for i in _bits(shared)))
    return JunctionTree(
        domain,
        tuple(tuple(names[i] for i in _bits(cliques[v])) for v in kept),
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
