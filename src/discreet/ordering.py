"""Elimination orders: greedy by the edges an elimination adds (min-fill) or by the clique it makes (min-weight).

Sets of columns are the bits of Python integers here: unions are one operation and sizes one bit count, whatever the
number of columns, which is what lets a hopeless graph be recognised in milliseconds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from .domain import Domain
from .errors import InputError

HEURISTICS = ("min-fill", "min-weight")
# With more cells than this after the first try, or after one try of each rule, the search ends: no machine has room for
# a thousandth of the first, and another way to break ties hardly ever wins back even a factor of eight.
_HOPELESS_CELLS = (2**36, 2**31)
# With fewer cells than this after one try of each rule it ends too: calls on such tables cost overhead, not arithmetic.
_SMALL_CELLS = 2**12


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def adjacency(domain: Domain, cliques: Iterable[Iterable[str]]) -> list[int]:
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


class Elimination:
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
        return sum((mine & ~adjacent[u]).bit_count() - 1 for u in bits(mine)) // 2

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
        for u in bits(mine):
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
        for a in bits(mine):
            for b in bits((mine & ~adjacent[a]) >> a + 1 << a + 1):
                common = adjacent[a] & adjacent[b]
                touched |= common
                for w in bits(common):
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

        current = {v: score(v) for v in bits(self.allowed)}
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
            if self.cliques[-1] & self.allowed == self.allowed:
                # What is left is one clique: every order of it is as good.
                for u in bits(self.allowed):
                    self.remove(u)
                return True
            for u in bits(touched & self.allowed):
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
    run = best_elimination(domain, cliques, eliminate, method, tries, random_state)
    return tuple(domain.names[v] for v in run.order)


def best_elimination(
    domain: Domain,
    cliques: Iterable[Iterable[str]],
    eliminate: Iterable[str] | None,
    method: str,
    tries: int,
    random_state: int | np.random.Generator | None,
) -> Elimination:
    if method not in ("best", *HEURISTICS):
        raise InputError(f"method must be one of 'best', 'min-fill', 'min-weight'; got {method!r}")
    if tries < 1:
        raise InputError(f"tries must be at least 1, got tries={tries}")
    adjacent = adjacency(domain, cliques)
    allowed = (1 << len(domain)) - 1 if eliminate is None else sum(1 << domain.index(n) for n in set(eliminate))
    rules = ("min-weight", "min-fill") if method == "best" else (method,)
    rng = np.random.default_rng(random_state)
    best: Elimination | None = None
    for t in range(max(tries, len(rules))):
        rule = rules[t % len(rules)]
        run = Elimination(adjacent, domain.shape, allowed, rule == "min-fill")
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


def shallow_order(domain: Domain, cliques: Iterable[Iterable[str]], largest: int) -> tuple[str, ...]:
    """An order of all columns that makes a shallow tree, of cliques with ``largest`` cells or little more: columns that
    are not joined are eliminated together, in some log p rounds. Of a chain, every second column goes in each round."""
    run = Elimination(adjacency(domain, cliques), domain.shape, (1 << len(domain)) - 1)
    most = math.log2(largest) + math.log2(max(domain.shape))
    while run.allowed:
        ranked = sorted((run.weight(v), v) for v in bits(run.allowed))
        blocked, chosen = 0, list[int]()
        for weight, v in ranked:
            if chosen and weight > most:
                break
            if not blocked >> v & 1:
                chosen.append(v)
                blocked |= run.adjacent[v]
        for v in chosen:
            run.remove(v)
    return tuple(domain.names[v] for v in run.order)
