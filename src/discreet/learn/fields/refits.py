"""Many fits of the same tables, each with other noise: what noise intervals are made of.

They lie near each other, and near the fit of the first of them, whose flow (:mod:`.mirror`) is followed as always. Each
of its steps maximises ⟨θ, t⟩ − A(θ) − ½Σ r_i θ_i², where rθ is the difference of two families of tables that agree: it
is a sum of interactions, θ = r⁻¹Bu =: Ku, of which there are far fewer than cells (16 columns of two levels and all
their triples: 696 of 4,480). In u the Hessian is Kᵀ(Cov_θ(cells) + r)K. The covariance is that of some thousand records
drawn from the first fit. With LLᵀ for it and z = Lᵀu, all Hessians are near the identity, so that L-BFGS on all fits
at once (:mod:`.batched`), one batch through the engine at a time, takes some five batches a step, where a fit by itself
takes fifty runs. The gradients are exact: the sample decides how fast it goes, never where to.

It stops when the gradients, which are about the distance that is left in z, are small beside how far fits are apart. On
the way they need not be as small: the next step begins where the last one ended, and pulls on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from ...attribute import Attribute
from ...count_table import CountTable
from ...domain import Clique, Domain
from ...factor import CliqueVector
from ...frames import free_name
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ..consistency import Estimates, pooled, reconciled
from .batched import History, minima
from .evidence import records_and_known
from .likelihood import Array, Field
from .mirror import Flow, flow_to

PRECISION, ON_THE_WAY = 0.05, 0.6
"""The largest entry of a gradient by the root mean square of how far fits are apart, at the end and before. Fits are
then right to 4 to 5 % of that (child, sachs, Adult at (1, 1e-6)); fits by themselves to 5 to 13 % (child, alarm,
Adult)."""
MOST_INTERACTIONS = 5000
"""Numbers that tables which agree depend on, up to which the square of so many is worth its memory: 200 MB."""
_FEWEST_RECORDS, _MOST_RECORDS, _MOST_ENTRIES = 2000, 8000, 8_000_000
_SHRUNK = 0.1
"""So much nearer to 0 are covariances than a sample has them: the least eigenvalues of a sample are too small."""
_MOST_BATCH = 1 << 24
"""Cells of all junction trees of a batch: 128 MB."""


def fits_of_many(domain: Domain, many: Sequence[Measurements]) -> list[CliqueVector]:
    """The log potentials that :func:`.rounds.fitted` finds for each of these sets of tables, all of one kind."""
    from scipy.linalg import cholesky  # slow to import

    tables = [{c: t for c, t in pooled(one).items() if c} for one in many]
    told = [records_and_known(one, t) for one, t in zip(many, tables, strict=True)]
    totals = np.array([total for total, _ in told])
    first = flow_to(domain, tables[0], totals[0], known=told[0][1])
    path, field = first.path(), first.field
    kinds = {c: (t.variance, t.together) for c, t in tables[0].items()}
    alike = all({c: (t.variance, t.together) for c, t in one.items()} == kinds for one in tables)
    if not alike or field.inference != "exact" or interactions(field) > MOST_INTERACTIONS or len(many) < 3:
        return [
            field.potentials(path[-1]),
            *(_alone(domain, t, *known) for t, known in zip(tables[1:], told[1:], strict=True)),
        ]
    targets = _targets(domain, field, tables[1:], totals[1:])
    basis = _basis(field)
    K = (basis.T.multiply(1 / first.ridge)).T.tocsr()
    root = cholesky(_covariance(field, path[-1], K) + (K.T @ basis).toarray(), lower=True, overwrite_a=True)
    room = max(_MOST_BATCH // field.cells, 1)
    batches = [slice(i, i + room) for i in range(0, len(many) - 1, room)]
    times = np.array([total * known for total, known in told])
    steps = [_interactions_of(basis, first.ridge * theta) for theta in path]
    found = [_followed(first, K, steps, root, targets[:, b], times[0] / times[1:][b]) for b in batches]
    return [field.potentials(theta) for theta in (path[-1], *np.concatenate(found, axis=1).T)]


def _alone(domain: Domain, tables: Estimates, total: float, known: float) -> CliqueVector:
    flow = flow_to(domain, tables, total, known=known)
    return flow.field.potentials(flow.path()[-1])


def _targets(domain: Domain, field: Field, many: Sequence[Estimates], totals: Array) -> Array:
    """What the flows go to, a column for each: tables made to agree. As this is linear, all of them agree at once when
    the number of the set counts as one more column of every table."""
    which = free_name("set", domain.names)
    wider = Domain((Attribute.categorical(which, len(many)), *domain.attributes))
    stacked = {
        (which, *c): CountTable((which, *c), np.stack([one[c].values for one in many]), table.variance, table.together)
        for c, table in many[0].items()
    }
    agreed = reconciled(wider, stacked)
    rows = [agreed[which, *c].values.reshape(len(many), -1) / totals[:, None] for c in field.cliques]
    return np.concatenate(rows, axis=1).T


def interactions(field: Field) -> int:
    """How many numbers tables of these cliques that agree, and hold 1 in all, depend on."""
    return sum(math.prod(field.domain[name].size - 1 for name in part) for part in _closed(field))


def _closed(field: Field) -> list[Clique]:
    """All sets of columns within a clique but the empty one."""
    return list(dict.fromkeys(part for c in field.cliques for r in range(len(c)) for part in combinations(c, r + 1)))


def _basis(field: Field) -> Any:
    """B: tables that agree, and hold nothing in all, as sums of interactions. That of a set of columns is spread evenly
    over the other columns of a clique; its own columns have orthonormal contrasts. Columns of B are orthogonal."""
    from scipy.sparse import coo_array, csr_array  # slow to import

    width = {part: math.prod(field.domain[name].size - 1 for name in part) for part in _closed(field)}
    begin = dict(zip(width, np.cumsum([0, *width.values()]).tolist(), strict=False))
    contrasts = {name: _contrasts(field.domain[name].size) for name in field.domain.names}
    spread = {name: np.full((len(table), 1), 1 / len(table)) for name, table in contrasts.items()}
    rows, columns, values = [], [], []
    for clique, (start, _) in zip(field.cliques, field.bounds, strict=True):
        for part in (p for r in range(len(clique)) for p in combinations(clique, r + 1)):
            block = coo_array(reduce(np.kron, [(contrasts if n in part else spread)[n] for n in clique]))
            row, column = block.coords
            rows.append(row + start)
            columns.append(column + begin[part])
            values.append(block.data)
    at = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.concatenate(values), at), shape=(field.size, sum(width.values())))


def _contrasts(k: int) -> Array:
    """k × (k − 1), orthonormal and orthogonal to the constant (Helmert's)."""
    row, j = np.arange(k)[:, None], np.arange(1, k)
    return np.asarray(np.where(row < j, 1.0, np.where(row == j, -j, 0.0)) / np.sqrt(j * (j + 1.0)))


def _interactions_of(basis: Any, tables: Array) -> Array:
    """The u whose tables are nearest to these."""
    return np.asarray((basis.T @ tables) / basis.power(2).sum(axis=0))


def _covariance(field: Field, theta: Array, K: Any) -> Array:
    """Of the interactions that a record lies in, by records drawn from the model."""
    from scipy.sparse import csr_array  # slow to import

    n = min(max(_MOST_ENTRIES // K.shape[1], _FEWEST_RECORDS), _MOST_RECORDS)
    codes = MarkovRandomField(field.domain, field.potentials(theta)).sample(n, 0).codes
    cells = [
        start + np.ravel_multi_index(tuple(codes[:, field.domain.index(name)] for name in clique), shape)
        for clique, shape, (start, _) in zip(field.cliques, field.shapes, field.bounds, strict=True)
    ]
    at = np.stack(cells, axis=1).reshape(-1)
    lies_in = csr_array((np.ones(len(at)), at, np.arange(0, len(at) + 1, len(cells))), shape=(n, field.size))
    features = (lies_in @ K).toarray()
    features -= features.mean(axis=0)
    found = features.T @ features / n
    variances = found.diagonal().copy()
    found *= 1 - _SHRUNK
    np.fill_diagonal(found, variances)
    return np.asarray(found)


def _followed(first: Flow, K: Any, steps: Sequence[Array], root: Array, targets: Array, longer: Array) -> Array:
    """Where the flows to these targets stop; ``longer`` is the ridge of each divided by that of the first (flows go on
    for a time in proportion to the number of records), ``steps`` the interactions on the way of the first."""
    from scipy.linalg import solve_triangular  # slow to import

    ridge = first.ridge[:, None] * longer
    field, shape = first.field, (root.shape[0], targets.shape[1])

    def u_of(z: Array) -> Array:
        return np.asarray(solve_triangular(root, z, lower=True, trans="T", check_finite=False))

    def in_z(theta_gradient: Array) -> Array:
        return np.asarray(solve_triangular(root, K.T @ theta_gradient, lower=True, check_finite=False))

    theta, before, apart = np.zeros(targets.shape), np.zeros(field.size), np.zeros(shape)
    history = History()
    for there, precision in zip(steps, [ON_THE_WAY] * (len(steps) - 1) + [PRECISION], strict=True):
        pulled = targets + ridge * theta
        far = in_z(pulled - (first.target + first.ridge * before)[:, None])

        def loss(z: Array, pulled: Array = pulled) -> tuple[Array, Array]:
            at = K @ u_of(z)
            log_partition, mu = field.many(at)
            pull = ridge * at
            return log_partition - (at * (pulled - 0.5 * pull)).sum(axis=0), in_z(mu - pulled + pull)

        small = precision * float(np.sqrt(np.mean(far**2)))
        u = u_of(minima(loss, root.T @ (there[:, None] + apart), small, history))
        theta, before, apart = K @ u, K @ there, u - there[:, None]
    return np.asarray(theta)
