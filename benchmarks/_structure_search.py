"""Graphs, methods, and the search for the number of records at which a method gets the whole graph right."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks._mrf_ising import columns_of, draw
from discreet.learn.structure.selected_edges import SelectedEdges
from discreet.learn.structure.stable_edges import StableEdges
from discreet.learn.structure.stable_mode import StableMode
from discreet.learn.structure.thresholded import ThresholdedParameters, ThresholdedRegressions
from discreet.models import IsingModel, generators
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.unit import PrivacyUnit

APPROX, CONCENTRATED, PURE = ApproxDP(1, 1e-6), ZCDP(0.028), PureDP(1)
ADD = PrivacyUnit()
WEIGHTS = {"matching": 0.5, "3-regular": 0.35, "grid": 0.35, "star": 0.5}


@dataclass(frozen=True)
class Method:
    """A learner for a graph of known weight and width, its budget (None: not private), and a first guess of n.

    ``slow``: seconds a run, so that it gets fewer runs on a coarser grid of n, and a limit of time.
    """

    name: str
    learner: Callable[[float, float], Any]
    budget: Budget | None
    guess: Callable[[int], float]
    slow: bool = False


DEFAULT = Method("stable edges", lambda eta, _: StableEdges(eta), APPROX, lambda p: 400)
UNKNOWN = Method("stable edges, η unknown", lambda eta, _: StableEdges(), APPROX, lambda p: 400)
CORRELATION = Method("stable edges, correlation", lambda eta, _: StableEdges(eta, "correlation"), APPROX, lambda p: 400)
CONDITIONAL = Method("stable edges, conditional", lambda eta, _: StableEdges(eta, "conditional"), APPROX, lambda p: 700)
MODE = Method("stable mode (paper)", StableMode, APPROX, lambda p: 4000, slow=True)
PTR = Method(
    "propose-test-release",
    lambda eta, lam: StableMode(eta, lam, how="propose-test-release"),
    APPROX,
    lambda p: 5000,
    slow=True,
)
VOTES = Method(
    "votes on each edge",
    lambda eta, lam: StableMode(eta, lam, how="each edge"),
    APPROX,
    lambda p: 4000,
    slow=True,
)
SELECTED = Method("selected edges", lambda eta, _: SelectedEdges(eta), CONCENTRATED, lambda p: 170 * math.sqrt(p))
SELECTED_UNKNOWN = Method(
    "selected edges, η unknown", lambda eta, _: SelectedEdges(), CONCENTRATED, lambda p: 170 * math.sqrt(p)
)
SELECTED_PURE = Method("selected edges, pure DP", lambda eta, _: SelectedEdges(eta), PURE, lambda p: 250 * p)
MOMENTS = Method(
    "thresholded moments",
    lambda eta, _: ThresholdedParameters(eta),
    CONCENTRATED,
    lambda p: 250 * math.sqrt(p),
    slow=True,
)
FRANK_WOLFE = Method(
    "thresholded Frank–Wolfe, tight",
    lambda eta, lam: ThresholdedRegressions(eta, width=lam),
    CONCENTRATED,
    lambda p: 300 * p,
    slow=True,
)
NONPRIVATE = Method("non-private test", lambda eta, _: StableEdges(eta), None, lambda p: 150)
OF_BLOCKS = (MODE, PTR, VOTES)
ALL = (DEFAULT, UNKNOWN, CORRELATION, CONDITIONAL, SELECTED, SELECTED_UNKNOWN, SELECTED_PURE, NONPRIVATE, *OF_BLOCKS,
       MOMENTS, FRANK_WOLFE)  # fmt: skip


def graph(kind: str, p: int, seed: int) -> IsingModel:
    """Columns are renamed at random, so that no method can gain from their order."""
    rng = np.random.default_rng(seed)
    if kind == "matching":
        edges = generators.matching(p)
    elif kind == "star":
        edges = generators.star(p)
    elif kind == "grid":
        rows = max(d for d in range(1, int(math.sqrt(p)) + 1) if p % d == 0)
        edges = generators.grid(rows, p // rows)
    else:
        edges = generators.regular(p, 3, random_state=seed)
    place = rng.permutation(p)
    moved = [(int(min(place[i], place[j])), int(max(place[i], place[j]))) for i, j in edges]
    return generators.ising(p, moved, weight=WEIGHTS[kind])


def width_of(kind: str, p: int) -> float:
    """λ as the paper's method needs it: public."""
    degree = {"matching": 1, "3-regular": 3, "grid": 4, "star": p - 1}[kind]
    return WEIGHTS[kind] * degree


def is_right(method: Method, truth: IsingModel, kind: str, n: int, seed: int) -> bool:
    table = draw(truth, n, seed)
    learner = method.learner(WEIGHTS[kind], width_of(kind, len(truth.A)))
    if method.budget is None:
        found = learner.fit(ExactCurator(table), APPROX)
    else:
        found = learner.fit(Curator(table, ADD, method.budget))
    return not found.refused and set(found.edges) == set(truth.edges)


def share_right(method: Method, kind: str, p: int, n: float, runs: int, seed: int) -> float:
    """The share of runs in which the whole graph is right, each on a graph and records of its own."""
    hits = [
        is_right(method, graph(kind, p, 7919 * seed + r), kind, int(n), 20_011 * seed + 103 * r) for r in range(runs)
    ]
    return sum(hits) / runs


@dataclass(frozen=True)
class Search:
    """For the least n of a geometric grid at which nine of ten runs are right, while at the next smaller they are not.

    ``one_graph``: a graph that all runs share; otherwise each has its own. When ``seconds`` of computing are over it
    stops with what is known: an n that was not enough, and perhaps one that was.
    """

    method: Method
    kind: str
    p: int
    seed: int
    runs: int = 20
    step: float = 1.15
    most: float = 1e5
    one_graph: int | None = None
    seconds: float = math.inf

    def __call__(self, start: float | None = None) -> dict[str, Any]:
        """``n`` that was enough, ``above``: the largest that was not; None where there is none. ``tried``: every n,
        with how many of how many runs were right."""
        until = time.process_time() + self.seconds
        tried: list[list[float]] = []
        low, high = -1, None
        try:
            top = math.floor(math.log(self.most / 100) / math.log(self.step))
            first = math.log((start or self.method.guess(self.p)) / 100) / math.log(self.step)
            k, stride = min(max(round(first), 0), top), 2
            if self._enough(k, until, tried):
                high = k
                while high > 0 and low < 0:
                    next_one = max(high - stride, 0)
                    if self._enough(next_one, until, tried):
                        high, stride = next_one, 2 * stride
                    else:
                        low = next_one
            else:
                low = k
                while high is None and low < top:
                    next_one = min(low + stride, top)
                    if self._enough(next_one, until, tried):
                        high = next_one
                    else:
                        low, stride = next_one, 2 * stride
            while high is not None and high - low > 1:
                middle = (low + high) // 2
                if self._enough(middle, until, tried):
                    high = middle
                else:
                    low = middle
        except TimeoutError:
            pass
        known = {"n": None if high is None else self._n(high), "above": None if low < 0 else self._n(low)}
        return {**known, "tried": tried}

    def _n(self, k: int) -> float:
        return float(round(100 * self.step**k))

    def _enough(self, k: int, until: float, tried: list[list[float]]) -> bool:
        seen = [self._n(k), 0, 0]
        tried.append(seen)
        for r in range(self.runs):
            if time.process_time() > until:
                raise TimeoutError
            right = self._right(int(self._n(k)), r, 10_007 * self.seed + 101 * r + k)
            seen[1], seen[2] = seen[1] + right, seen[2] + 1
            if seen[2] - seen[1] > self.runs // 10:
                return False
        return True

    def _right(self, n: int, run: int, seed: int) -> bool:
        truth = graph(self.kind, self.p, self.one_graph if self.one_graph is not None else 7919 * self.seed + run)
        return is_right(self.method, truth, self.kind, n, seed)


@dataclass(frozen=True)
class FamilySearch(Search):
    """The same for fields that are no Ising models, by their name: all interactions right."""

    def _right(self, n: int, run: int, seed: int) -> bool:
        wanted: set[tuple[str, ...]]
        if self.kind == CHAIN_OF_THREE_LEVELS:
            pairwise = generators.pairwise(6, generators.chain(6), levels=3, weight=1.0, random_state=seed)
            table, wanted = columns_of(pairwise.sample(n, seed).codes, pairwise.domain), set(pairwise.edges)
        else:
            binary = generators.binary(8, [(0, 1, 2), (3, 4, 5), (6, 7)], weight=0.7, random_state=seed)
            table, wanted = columns_of(binary.sample(n, seed).codes, binary.domain), set(binary.maximal_monomials)
        found = self.method.learner(0.0, 0.0).fit(Curator(table, ADD, APPROX))
        return not found.refused and set(found.cliques) == wanted


CHAIN_OF_THREE_LEVELS = "pairwise, three levels, chain of 6, weight 1"
TWO_TRIPLES = "t = 3, two triples and a pair of 8, weight 0.7"
OTHER_FAMILIES = {
    CHAIN_OF_THREE_LEVELS: (
        Method("stable edges", lambda *_: StableEdges(0.8), APPROX, lambda p: 3000),
        Method("stable mode (paper)", lambda *_: StableMode(0.8, 2.0, steps=30), APPROX,
               lambda p: 10_000, slow=True),
    ),
    TWO_TRIPLES: (
        Method("stable edges", lambda *_: StableEdges(0.7, "correlation", 3), APPROX, lambda p: 500),
        Method("stable mode (paper)", lambda *_: StableMode(0.7, 0.7, "sparsitron", 3, steps=60), APPROX,
               lambda p: 10_000, slow=True),
    ),
}  # fmt: skip


def smoothed(tried: Mapping[int, Sequence[Sequence[float]]]) -> dict[int, float]:
    """n at which nine of ten runs are right, for each p, by maximum likelihood from all runs of its search: a logistic
    curve in ln n, equally steep for all p. Less at the mercy of single runs than the grid's n."""
    columns = list(tried)
    rows = np.array([(at, math.log(n), right, runs) for at, p in enumerate(columns) for n, right, runs in tried[p]])
    at, log_n, right, runs = rows[:, 0].astype(int), rows[:, 1], rows[:, 2], rows[:, 3]

    def loss(x: Any) -> float:
        margin = np.exp(x[-1]) * (log_n - x[at])
        return float(runs @ np.logaddexp(0, -margin) + (runs - right) @ margin)

    middle = [float(np.mean(log_n[at == each])) for each in range(len(columns))]
    found = minimize(loss, [*middle, math.log(10.0)], method="BFGS").x
    return {p: math.exp(m + math.log(9) / math.exp(found[-1])) for p, m in zip(columns, found, strict=False)}
