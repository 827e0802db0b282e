"""Many fits of the same tables, each with other noise: what noise intervals are made of.

They lie near each other, and near the fit of the first of them, whose flow (:mod:`.mirror`) is followed as always. In
coordinates in which its Hessian is near the identity (:mod:`.coordinates`) so are those of all others, and L-BFGS on
all fits at once (:mod:`.batched`), one batch through the engine at a time, takes some five batches a step, where a fit
by itself takes fifty runs.

It stops when the gradients, which are about the distance that is left in z, are small beside how far fits are apart. On
the way they need not be as small: the next step begins where the last one ended, and pulls on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...attribute import Attribute
from ...count_table import CountTable
from ...domain import Domain
from ...factor import CliqueVector
from ...frames import free_name
from ...measurement import Measurements
from ...progress import track
from ...threads import one_thread
from ..consistency import Estimates, pooled, reconciled
from .batched import History, minima
from .coordinates import MOST_INTERACTIONS, Coordinates, interactions
from .evidence import records_and_known
from .likelihood import Array, Field
from .mirror import ON_THE_WAY, Flow, flow_to

PRECISION = 0.014
"""The largest entry of a gradient by the root mean square of how far fits are apart, at the end. Fits are then right to
5 to 6 % of that (sachs at (1, 1e-6), two runs)."""
_MOST_BATCH = 1 << 24
"""Cells of all junction trees of a batch: 128 MB."""


@one_thread()
def fits_of_many(domain: Domain, many: Sequence[Measurements]) -> list[CliqueVector]:
    """The log potentials that :func:`.rounds.fitted` finds for each of these sets of tables, all of one kind; with the
    σ_t (:func:`.mirror.strength`) of the first set for all of them."""
    tables = [{c: t for c, t in pooled(one).items() if c} for one in many]
    told = [records_and_known(one, t) for one, t in zip(many, tables, strict=True)]
    totals = np.array([total for total, _ in told])
    first = flow_to(domain, tables[0], totals[0], known=told[0][1])
    path, field = first.path(), first.field
    kinds = {c: (t.variance, t.together) for c, t in tables[0].items()}
    alike = all({c: (t.variance, t.together) for c, t in one.items()} == kinds for one in tables)
    few = interactions(field.cliques, field.shapes) <= MOST_INTERACTIONS
    if not alike or field.inference != "exact" or not few or len(many) < 3:
        others = track(list(zip(tables[1:], told[1:], strict=True)), len(many) - 1, "noise intervals")
        return [field.potentials(path[-1]), *(_alone(domain, t, *known) for t, known in others)]
    targets = _targets(domain, field, tables[1:], totals[1:])
    coordinates = Coordinates(field, first.ridge, path[-1])
    room = max(_MOST_BATCH // field.cells, 1)
    batches = [slice(i, i + room) for i in range(0, len(many) - 1, room)]
    times = np.array([total * known for total, known in told])
    steps = [coordinates.of(theta) for theta in path]
    found = [_followed(first, coordinates, steps, targets[:, b], times[0] / times[1:][b]) for b in batches]
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


def _followed(first: Flow, coordinates: Coordinates, steps: Sequence[Array], targets: Array, longer: Array) -> Array:
    """Where the flows to these targets stop; ``longer`` is the ridge of each divided by that of the first (flows go on
    for a time in proportion to the number of records), ``steps`` the way of the first."""
    ridge, field, history = first.ridge[:, None] * longer, first.field, History()
    theta, before, apart = np.zeros(targets.shape), np.zeros(field.size), np.zeros((len(steps[0]), targets.shape[1]))
    for there, precision in zip(steps, [ON_THE_WAY] * (len(steps) - 1) + [PRECISION], strict=True):
        pulled = targets + ridge * theta
        far = coordinates.gradient(pulled - (first.target + first.ridge * before)[:, None])

        def loss(z: Array, pulled: Array = pulled) -> tuple[Array, Array]:
            at = coordinates.theta(z)
            log_partition, mu = field.many(at)
            pull = ridge * at
            by_theta = mu - pulled + pull
            return log_partition - (at * (pulled - 0.5 * pull)).sum(axis=0), coordinates.gradient(by_theta)

        small = precision * math.sqrt(np.mean((far * coordinates.step(far)).sum(axis=0)))
        z = minima(loss, there[:, None] + apart, small, history, coordinates.step)
        theta, before, apart = coordinates.theta(z), coordinates.theta(there), z - there[:, None]
    return np.asarray(theta)
