"""Exact inference on a junction tree, compiled once per graph and run as often as wanted.

>>> from discreet.domain import Domain
>>> from discreet.factor import CliqueVector
>>> domain = Domain.of({"a": 2, "b": 2, "c": 3})
>>> potentials = CliqueVector.random(domain, [("a", "b"), ("b", "c")], 0)
>>> beliefs = get_engine(domain, potentials.cliques).calibrate(potentials, {"c": 1})
>>> beliefs.marginal(("a", "b")).exp().sum().round(12)
np.float64(1.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..domain import Clique, Domain
from ..errors import InputError
from ..factor import Array, CliqueVector, Factor
from ..graph import DEFAULT_MEMORY_LIMIT, Forecast, JunctionTree, triangulate
from ..ordering import shallow_order
from .calibrated import Calibrated
from .evidence import Evidence, evidence_tables, impossible
from .levels import Levels
from .margins import Margins
from .passes import calibrate_tables, check_numbers, maximise_buffer
from .schedule import Filled, Loader, Placement, Schedule

_MOST_SHALLOW_CELLS = 1 << 20
Potentials = CliqueVector | Mapping[Clique, Factor] | Mapping[Clique, npt.NDArray[np.float64]]
"""Log tables by clique; names of a clique in domain order, each table optionally with leading batch axes."""


class ExactEngine:
    """A graph compiled for exact inference.

    Parameters
    ----------
    domain, cliques:
        The columns and the cliques that potentials may be given on (and any part of them).
    memory_limit:
        Bytes a calibration may take, batch included; more is refused before anything is allocated.
    order:
        An elimination order of all columns; found by heuristics when not given.
    """

    def __init__(
        self,
        domain: Domain,
        cliques: Iterable[Iterable[str]],
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        order: Sequence[str] | None = None,
    ) -> None:
        self.domain = domain
        self.cliques: tuple[Clique, ...] = tuple(domain.clique(c) for c in cliques)
        self.memory_limit = memory_limit
        self.tree: JunctionTree = triangulate(domain, self.cliques, order=order, memory_limit=memory_limit)
        self.forecast: Forecast = self.tree.forecast()
        self.forecast.check(memory_limit)
        self.schedule = Schedule(self.tree)
        self.levels = Levels(self.schedule)
        if order is None and self.levels.fits:
            self._prefer_shallow()

    def _prefer_shallow(self) -> None:
        """Take a shallower tree where its cells cost less than the levels that it saves."""
        order = shallow_order(self.domain, self.cliques, self.forecast.largest_cells)
        tree = triangulate(self.domain, self.cliques, order=order)
        if tree.forecast().total_cells <= _MOST_SHALLOW_CELLS:
            schedule = Schedule(tree)
            levels = Levels(schedule)
            if levels.fits and levels.seconds < self.levels.seconds:
                self.tree, self.schedule, self.levels, self.forecast = tree, schedule, levels, tree.forecast()

    def calibrate(
        self, potentials: Potentials, evidence: Evidence | None = None, *, allow_impossible: bool = False
    ) -> Calibrated:
        """Beliefs of all cliques and the log-partition under these potentials and hard evidence.

        Tables with leading batch axes, and evidence given as arrays of codes (−1: not observed), are answered all at
        once; their batch shapes broadcast. Evidence of probability zero is an :class:`EvidenceError`, unless
        ``allow_impossible``: then its log-partition is −∞ and its marginals are NaN.
        """
        load = self._load(potentials, evidence)
        beliefs, log_partition, is_log = self._beliefs(load)
        if (log_partition == -np.inf).any():
            if not allow_impossible:
                raise impossible(self.domain, evidence, log_partition.reshape(load.batch))
            beliefs[..., np.isneginf(log_partition)] = np.nan
        return Calibrated(self.schedule, beliefs, is_log, log_partition.reshape(load.batch)[()], self.memory_limit)

    def _beliefs(self, load: Loader) -> tuple[Array, Array, bool]:
        if not self.levels.fits:
            return calibrate_tables(self.schedule, load)
        buffer = load.everything()
        check_numbers(np.maximum.reduce(buffer, axis=None))
        return (*self.levels(buffer), False)

    def marginals(self, margins: Margins, vector: Array) -> tuple[Array, Array]:
        """Log-partition and marginals of tables in one flat vector, ``(size,)`` or ``(size, batch)``: the fast way for
        many tables. ``margins`` are those of this engine's schedule."""
        batch = vector.shape[1:]
        if batch:
            self.tree.forecast(math.prod(batch)).check(self.memory_limit)
        load = Filled(self.schedule, lambda: margins.spread(vector), batch)
        beliefs, log_partition, is_log = self._beliefs(load)
        return log_partition, margins.collect(np.exp(beliefs) if is_log else beliefs)

    def maximize(self, potentials: Potentials, evidence: Evidence | None = None) -> tuple[npt.NDArray[np.intp], Any]:
        """The most probable codes ``(…batch, columns)`` and their log weights (max-product)."""
        codes, weight = self._maximize(potentials, evidence)
        if np.isneginf(weight).any():
            raise impossible(self.domain, evidence, weight)
        return codes, weight[()]

    def _maximize(self, potentials: Potentials, evidence: Evidence | None) -> tuple[npt.NDArray[np.intp], Array]:
        load = self._load(potentials, evidence)
        buffer = load.everything()
        check_numbers(np.maximum.reduce(buffer, axis=None))
        codes, weight = maximise_buffer(self.schedule, buffer)
        columns = np.stack([codes[name] for name in self.domain], axis=-1)
        return columns.reshape((*load.batch, len(self.domain))), weight.reshape(load.batch)

    def _load(self, potentials: Potentials, evidence: Evidence | None) -> Loader:
        """Check the tables and the batch against the memory limit; nothing is computed yet."""
        given: list[tuple[Clique, Any]] = list(potentials.items())
        if evidence:
            given.extend(evidence_tables(self.domain, evidence).items())
        placed: list[tuple[Placement, Array]] = []
        batches: set[tuple[int, ...]] = set()
        for clique, table in given:
            values = table.values if isinstance(table, Factor) else np.asarray(table, dtype=np.float64)
            place = self.schedule.placement(clique)
            if values.shape != place.shape:
                own = values.ndim - len(place.shape)
                if own < 0 or values.shape[own:] != place.shape:
                    wanted = ", ".join(map(str, place.shape))
                    raise InputError(
                        f"the potential on {clique} needs a table of shape (…, {wanted}), got {values.shape}"
                    )
                batches.add(values.shape[:own])
            placed.append((place, values))
        batch = _broadcast(batches)
        if batch:
            self.tree.forecast(math.prod(batch)).check(self.memory_limit)
        return Loader(self.schedule, placed, batch)


def _broadcast(batches: set[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        raise InputError(f"the batch shapes {sorted(batches)} of potentials and evidence do not broadcast") from None


@lru_cache(maxsize=64)
def _cached_engine(domain: Domain, cliques: tuple[Clique, ...], memory_limit: int) -> ExactEngine:
    return ExactEngine(domain, cliques, memory_limit=memory_limit)


def get_engine(
    domain: Domain, cliques: Iterable[Iterable[str]], *, memory_limit: int = DEFAULT_MEMORY_LIMIT
) -> ExactEngine:
    """The engine for this graph, compiled at the first call and remembered."""
    return _cached_engine(domain, tuple(tuple(c) for c in cliques), memory_limit)
