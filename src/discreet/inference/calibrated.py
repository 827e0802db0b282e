"""The result of exact inference: every clique's belief, from which marginals and samples are read off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..domain import Clique, Domain
from ..errors import InputError
from ..factor import Array, Factor, log_of, logsumexp
from .elimination import eliminate
from .pairs import PairTables, pair_tables
from .sampling import draw, draw_each
from .schedule import Schedule


class Calibrated:
    """Calibrated beliefs of a junction tree: normalised, one table a tree clique, over the whole batch.

    ``log_partition`` is the log of the total weight (of the evidence's cells, if evidence was given): a float, or an
    array over the batch.
    """

    def __init__(self, schedule: Schedule, beliefs: Array, is_log: bool, log_partition: Any, memory_limit: int) -> None:
        # Marginals may be views of the beliefs: read-only, so that nobody changes the one by way of the other.
        beliefs.flags.writeable = False
        self._schedule = schedule
        self._beliefs = beliefs
        self._is_log = is_log
        self._memory_limit = memory_limit
        self.log_partition = log_partition

    @property
    def domain(self) -> Domain:
        return self._schedule.tree.domain

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.shape(self.log_partition)

    def at(self, *index: int) -> Calibrated:
        """One entry of the batch."""
        flat = int(np.ravel_multi_index(index, self.batch_shape))
        one = np.ascontiguousarray(self._beliefs[:, flat])
        return Calibrated(self._schedule, one, self._is_log, self.log_partition[index], self._memory_limit)

    # -- marginals -----------------------------------------------------------------------------------------------

    def _table(self, names: Clique, *, log: bool) -> Array | None:
        """The marginal on names within one tree clique, batch first; None when no clique holds them all."""
        plan = self._schedule.projection(names)
        if plan is None:
            return None
        home, reduction, order = plan
        a, b = self._schedule.bounds[home]
        if self._is_log:
            table = self._beliefs[a:b].reshape(reduction.shape + self._beliefs.shape[1:])
            if reduction.summed:
                table = logsumexp(table, reduction.summed)
            if not log:
                table = np.exp(table)
        else:
            table = reduction(self._beliefs[a:b])
            if log:
                table = log_of(table)
        table = table.reshape(reduction.kept_shape + self._beliefs.shape[1:])
        if table.ndim > len(order):
            table = table.transpose((len(order), *order))
            return table.reshape(self.batch_shape + table.shape[1:])
        return table.transpose(order)

    def probabilities(self, names: Iterable[str]) -> Array:
        """The marginal on these columns out of log space, axes in the order given, batch first."""
        wanted = self._names(names)
        table = self._table(wanted, log=False)
        return self.marginal(wanted).exp() if table is None else table

    def marginal(self, names: Iterable[str]) -> Factor:
        """Log-probabilities of these columns, axes in the order given.

        Columns that no tree clique holds together are joined by eliminating the rest of the subtree between them.
        """
        wanted = self._names(names)
        table = self._table(wanted, log=True)
        if table is None:
            return self._across_cliques(wanted)
        return Factor(self.domain.project(wanted), table)

    def _names(self, names: Iterable[str]) -> Clique:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if len(set(wanted)) != len(wanted):
            raise InputError(f"a marginal names each column once, got {wanted}")
        for name in wanted:
            self.domain.index(name)
        return wanted

    def _across_cliques(self, names: Clique) -> Factor:
        """Beliefs over separators along the smallest subtree that holds the names, the other columns summed out."""
        tree = self._schedule.tree
        needed = self._subtree(names)
        factors = []
        for i in needed:
            clique = tree.cliques[i]
            factor = self.marginal(clique)
            above = tree.parent.get(i)
            if above in needed:
                shared = tuple(n for n in clique if n in tree.cliques[above])
                if shared:
                    factor = factor - Factor(self.domain.project(shared), self._required(shared))
            factors.append(factor)
        return eliminate(self.domain, factors, names, memory_limit=self._memory_limit).factor.normalize()

    def _required(self, names: Clique) -> Array:
        table = self._table(names, log=True)
        assert table is not None
        return table

    def _subtree(self, names: Clique) -> set[int]:
        """Prune leaves of the tree as long as they hold no wanted column that their neighbour lacks."""
        tree = self._schedule.tree
        wanted = frozenset(names)
        held = [wanted.intersection(c) for c in tree.cliques]
        left = set(range(len(tree.cliques)))
        near: dict[int, set[int]] = {i: set() for i in left}
        for parent, child in tree.edges:
            near[parent].add(child)
            near[child].add(parent)
        waiting = list(left)
        while waiting:
            i = waiting.pop()
            if i in left and len(near[i]) == 1:
                (neighbour,) = near[i]
                if held[i] <= held[neighbour]:
                    left.remove(i)
                    near[neighbour].remove(i)
                    waiting.append(neighbour)
        return left

    def pairs(self) -> PairTables:
        """The probabilities of all pairs of columns at once; memory follows the square of the number of all levels."""
        if self.batch_shape:
            raise InputError(f"pairs are of one model, and this is a batch of shape {self.batch_shape}; use .at(i)")
        return pair_tables(self._schedule, np.exp(self._beliefs) if self._is_log else self._beliefs)

    # -- samples -------------------------------------------------------------------------------------------------

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> npt.NDArray[np.int32]:
        """n exact independent draws of codes, shape (n, columns), columns in domain order."""
        return self._draw(n, random_state, rounded=False)

    def sample_rounded(self, n: int, random_state: int | np.random.Generator | None = None) -> npt.NDArray[np.int32]:
        """n records whose counts follow the expected counts as closely as whole numbers can (low variance).

        In the root clique every cell's count is its expected count rounded up or down, and so is, further down the
        tree, every cell's count given the counts of its separator. Each record still has the model's distribution;
        records are no longer independent of each other.
        """
        return self._draw(n, random_state, rounded=True)

    def sample_each(self, entries: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """An exact draw of codes for each number of an entry of a batch with one axis; rows in that order."""
        if len(self.batch_shape) != 1:
            raise InputError(f"a draw for each entry needs a batch with one axis, got shape {self.batch_shape}")
        return draw_each(self._schedule, np.exp(self._beliefs) if self._is_log else self._beliefs, entries, rng)

    def _draw(self, n: int, random_state: int | np.random.Generator | None, *, rounded: bool) -> npt.NDArray[np.int32]:
        if self.batch_shape:
            raise InputError(f"sampling needs one model, and this is a batch of shape {self.batch_shape}; use .at(i)")
        if n < 0:
            raise InputError(f"the number of records must not be negative, got {n}")
        beliefs = np.exp(self._beliefs) if self._is_log else self._beliefs
        return draw(self._schedule, beliefs, n, np.random.default_rng(random_state), rounded=rounded)
