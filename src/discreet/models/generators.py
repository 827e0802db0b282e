"""Random models of the kinds the papers use: graphs by shape, and weights, widths or potentials to go with them.

A graph is a list of edges over positions 0 … p − 1; columns are called ``x0, x1, …``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_positive
from ..domain import Attribute, Domain
from ..errors import InputError
from ..graph import connected_components, triangulate
from .bayesian import BayesianNetwork
from .binary import BinaryMRF
from .checks import numbered
from .ising import IsingModel, spin_domain
from .markov import MarkovRandomField
from .pairwise import PairwiseModel
from .records import RandomState, generator

Edge = tuple[int, int]
Weight = float | tuple[float, float]
TRIES = 10_000


# -- graphs ----------------------------------------------------------------------------------------------------------


def matching(p: int) -> list[Edge]:
    """A perfect matching: 0–1, 2–3, … ([ZKKW20] sections 5 and 7)."""
    if p % 2:
        raise InputError(f"a perfect matching needs an even number of columns, got p={p}")
    return [(i, i + 1) for i in range(0, p, 2)]


def grid(rows: int, columns: int, *, periodic: bool = False) -> list[Edge]:
    """A grid, row by row; ``periodic`` joins opposite borders (where there are at least three in a line)."""
    edges = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    edges += [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    if periodic and columns > 2:
        edges += [(r * columns, (r + 1) * columns - 1) for r in range(rows)]
    if periodic and rows > 2:
        edges += [(c, (rows - 1) * columns + c) for c in range(columns)]
    return sorted(edges)


def chain(p: int, order: int = 1) -> list[Edge]:
    """i–j whenever 1 ≤ |i − j| ≤ order; ``order=3`` is the third-order chain of [BMSSHM17] section 4.1."""
    return [(i, j) for i in range(p) for j in range(i + 1, min(i + order, p - 1) + 1)]


def star(p: int) -> list[Edge]:
    """Column 0 in the middle."""
    return [(0, i) for i in range(1, p)]


def dense(p: int) -> list[Edge]:
    """Every pair."""
    return list(combinations(range(p), 2))


def random_tree(p: int, *, random_state: RandomState = None) -> list[Edge]:
    """Each column hangs from an earlier one, chosen at random."""
    rng = generator(random_state)
    return [(int(rng.integers(i)), i) for i in range(1, p)]


def regular(p: int, degree: int, *, random_state: RandomState = None) -> list[Edge]:
    """A random graph in which every column has ``degree`` neighbours.

    Free ends are joined pair by pair at random among the pairs that are still allowed, starting over at a dead end
    (Steger and Wormald 1999); nearly uniform for small degrees.
    """
    if not 0 <= degree < p or p * degree % 2:
        raise InputError(f"no graph on p={p} columns is {degree}-regular: p·d must be even and d < p")
    rng = generator(random_state)
    for _ in range(TRIES):
        edges = _try_regular(p, degree, rng)
        if edges is not None:
            return sorted(edges)
    raise InputError(f"found no {degree}-regular graph on p={p} columns in {TRIES} tries")


def _try_regular(p: int, degree: int, rng: np.random.Generator) -> set[Edge] | None:
    edges: set[Edge] = set()
    ends = [i for i in range(p) for _ in range(degree)]
    while ends:
        rng.shuffle(ends)
        left: list[int] = []
        for a, b in zip(ends[::2], ends[1::2], strict=True):
            edge = (min(a, b), max(a, b))
            if a == b or edge in edges:
                left += [a, b]
            else:
                edges.add(edge)
        free = set(left)
        if free and all(a == b or (min(a, b), max(a, b)) in edges for a in free for b in free):
            return None
        ends = left
    return edges


def erdos_renyi(
    p: int,
    probability: float,
    *,
    connected: bool = True,
    max_width: int | None = None,
    random_state: RandomState = None,
) -> list[Edge]:
    """Every pair with this probability; drawn again until connected ([BMSSHM17] section 4.1) and not too wide.

    ``max_width`` bounds the width found by triangulation (largest clique of the junction tree, minus one).
    """
    if not 0 <= probability <= 1:
        raise InputError(f"probability must be between 0 and 1, got {probability}")
    rng = generator(random_state)
    domain = _domain(p, 2)
    pairs = np.array(dense(p), dtype=np.intp).reshape(-1, 2)
    for _ in range(TRIES):
        edges = [(int(i), int(j)) for i, j in pairs[rng.random(len(pairs)) < probability]]
        named = [(domain.names[i], domain.names[j]) for i, j in edges]
        if connected and len(connected_components(domain, named)) > 1:
            continue
        if max_width is not None and triangulate(domain, named).width > max_width:
            continue
        return edges
    wishes = ["connected"] * connected + [f"of width ≤ {max_width}"] * (max_width is not None)
    raise InputError(
        f"no graph on p={p} columns with edge probability {probability} was {' and '.join(wishes)} in {TRIES} draws"
    )


# -- models on a graph -----------------------------------------------------------------------------------------------


def _domain(p: int, levels: int | Sequence[int]) -> Domain:
    sizes = [levels] * p if isinstance(levels, int) else list(levels)
    if len(sizes) != p:
        raise InputError(f"levels must be one number, or one for each column: {p} columns, {len(sizes)} numbers")
    return Domain(tuple(Attribute.categorical(name, k) for name, k in zip(numbered(p), sizes, strict=True)))


def _signed(weight: Weight, count: int, signs: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """``count`` weights: one magnitude, or uniform between two; positive, negative or with random signs."""
    if signs not in ("positive", "negative", "random"):
        raise InputError(f"signs must be 'positive', 'negative' or 'random', got {signs!r}")
    low, high = weight if isinstance(weight, tuple) else (weight, weight)
    sizes = rng.uniform(low, high, count)
    if signs == "random":
        sizes *= rng.choice([-1.0, 1.0], count)
    return -sizes if signs == "negative" else sizes


def _scale(width: float | None, current: float) -> float:
    """Factor that brings a model to the given width; widths are homogeneous in the parameters."""
    return 1.0 if width is None or current == 0 else width / current


def ising(
    p: int,
    edges: Iterable[Edge],
    *,
    weight: Weight = 0.5,
    field: Weight = 0.0,
    signs: str = "positive",
    width: float | None = None,
    random_state: RandomState = None,
) -> IsingModel:
    """An Ising model with |A_ij| = ``weight`` on the edges, or uniform between two numbers; ``width`` rescales to λ."""
    rng = generator(random_state)
    chosen = list(edges)
    A = np.zeros((p, p))
    for (i, j), a in zip(chosen, _signed(weight, len(chosen), signs, rng), strict=True):
        A[i, j] = A[j, i] = a
    model = IsingModel(A, _signed(field, p, signs, rng))
    scale = _scale(width, model.width)
    return IsingModel(scale * model.A, scale * model.theta)


def pairwise(
    p: int,
    edges: Iterable[Edge],
    *,
    levels: int | Sequence[int] = 3,
    weight: float = 0.5,
    field: float = 0.0,
    width: float | None = None,
    random_state: RandomState = None,
) -> PairwiseModel:
    """A pairwise model with centred normal weights, max |W_ij| = ``weight`` on every edge; ``width`` rescales to λ."""
    rng = generator(random_state)
    domain = _domain(p, levels)
    names = domain.names
    W = {}
    for i, j in edges:
        table = rng.standard_normal((domain.shape[i], domain.shape[j]))
        table -= table.mean(axis=1, keepdims=True)
        table -= table.mean(axis=0, keepdims=True)
        W[names[i], names[j]] = table * (weight / np.abs(table).max()) if min(table.shape) > 1 else table * 0
    Theta = {name: field * rng.uniform(-1, 1, k) for name, k in zip(names, domain.shape, strict=True)}
    model = PairwiseModel(W, Theta, domain)
    scale = _scale(width, model.width)
    return PairwiseModel(
        {pair: scale * w for pair, w in model.W.items()}, {n: scale * t for n, t in model.Theta.items()}, domain
    )


def binary(
    p: int,
    monomials: Iterable[Sequence[int]],
    *,
    weight: Weight = 0.5,
    signs: str = "random",
    width: float | None = None,
    random_state: RandomState = None,
) -> BinaryMRF:
    """A binary Markov random field with |h̄(I)| = ``weight`` on these monomials; ``width`` rescales to λ."""
    rng = generator(random_state)
    chosen = [tuple(I) for I in monomials]
    values = _signed(weight, len(chosen), signs, rng)
    model = BinaryMRF.spins(dict(zip(chosen, map(float, values), strict=True)), p)
    scale = _scale(width, model.width)
    return BinaryMRF({I: scale * value for I, value in model.coefficients.items()}, spin_domain(p))


def dirichlet(
    p: int,
    edges: Iterable[Edge],
    *,
    levels: int | Sequence[int] = 10,
    concentration: float = 1.0,
    random_state: RandomState = None,
) -> MarkovRandomField:
    """A Markov random field whose potentials exp θ_ij on each edge are a draw from a Dirichlet distribution over the
    cells of the pair's table ([BMSSHM17] section 4.1)."""
    rng = generator(random_state)
    domain = _domain(p, levels)
    names = domain.names
    potentials: dict[tuple[str, ...], Any] = {}
    for i, j in edges:
        shape = (domain.shape[i], domain.shape[j])
        potentials[names[i], names[j]] = _log_dirichlet(concentration, shape, rng)
    return MarkovRandomField(domain, potentials)  # type: ignore[arg-type]


def _log_dirichlet(concentration: float, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Logarithm of a Dirichlet draw, without underflow: Gamma(a) = Gamma(a + 1)·U^(1/a) in logs."""
    check_positive(concentration=concentration)
    log_gamma = np.log(rng.standard_gamma(concentration + 1, shape)) + np.log1p(-rng.random(shape)) / concentration
    out: NDArray[np.float64] = log_gamma - np.logaddexp.reduce(log_gamma, axis=None)
    return out


def network(
    p: int,
    parents: Mapping[int, Sequence[int]] | None = None,
    *,
    max_parents: int = 2,
    levels: int | Sequence[int] = 3,
    concentration: float = 1.0,
    random_state: RandomState = None,
) -> BayesianNetwork:
    """A Bayesian network with Dirichlet rows; if not told, a column has up to ``max_parents`` parents."""
    rng = generator(random_state)
    if parents is None:
        counts = [int(rng.integers(min(i, max_parents) + 1)) for i in range(p)]
        parents = {i: sorted(rng.choice(i, c, replace=False).tolist()) if c else [] for i, c in enumerate(counts)}
    domain = _domain(p, levels)
    names = domain.names
    tables = {}
    for i, name in enumerate(names):
        shape = tuple(domain.shape[j] for j in parents.get(i, ()))
        tables[name] = rng.dirichlet(np.full(domain.shape[i], concentration), size=shape)
    return BayesianNetwork(domain, {names[i]: tuple(names[j] for j in above) for i, above in parents.items()}, tables)
