"""What was found of a model before, so that most questions to it need no inference any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import shortened
from ..domain import Clique, Domain
from ..errors import InputError
from ..factor import Factor, log_of

Array = NDArray[np.float64]
Homes = dict[frozenset[str], Clique | None]
"""The smallest clique that has these columns; models with the same cliques may share it."""


class Remembered:
    """Beliefs whose marginals on some cliques are known; what else is asked makes ``whole``, all of them, at last."""

    def __init__(self, domain: Domain, tables: Mapping[Clique, Array], whole: Callable[[], Any], homes: Homes) -> None:
        self._domain, self._tables, self._make, self._homes = domain, tables, whole, homes

    @cached_property
    def _whole(self) -> Any:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def known(
        self, names: Clique, codes: Mapping[str, int] | None = None, weights: Mapping[str, Array] | None = None
    ) -> Array | None:
        """P(names | codes, weights), axes in this order; None where it does not follow from one clique, or is of
        something that cannot be."""
        codes, weights = codes or {}, weights or {}
        columns = frozenset({*names, *codes, *weights})
        if columns not in self._homes:
            holding = [clique for clique in self._tables if columns.issubset(clique)]
            self._homes[columns] = min(holding, key=self._domain.size, default=None)
        home = self._homes[columns]
        if home is None:
            return None
        table = self._tables[home]
        for name, weight in weights.items():
            table = table * weight.reshape([-1 if n == name else 1 for n in home])
        table = table[tuple(codes.get(name, slice(None)) for name in home)]
        left = [name for name in home if name not in codes]
        table = table.sum(axis=tuple(i for i, name in enumerate(left) if name not in names))
        table = table.transpose([*map([name for name in left if name in names].index, names)])
        total = table.sum()
        return np.asarray(table / total) if total > 0 else None

    def probabilities(self, names: Iterable[str]) -> Array:
        if isinstance(names, tuple) and (table := self._tables.get(names)) is not None:
            return np.asarray(table / table.sum())
        wanted = _names(names)
        found = self.known(wanted)
        return np.asarray(self._whole.probabilities(wanted)) if found is None else found

    def marginal(self, names: Iterable[str]) -> Factor:
        wanted = _names(names)
        found = self.known(wanted)
        made: Factor = self._whole.marginal(wanted) if found is None else self._factor(wanted, found)
        return made

    def given(self, names: Clique, codes: Mapping[str, int], weights: Mapping[str, Array]) -> Factor | None:
        """The same under evidence; None where inference has to find it, or to say what is wrong with it."""
        found = self.known(names, codes, weights)
        return None if found is None else self._factor(names, found)

    def _factor(self, names: Clique, table: Array) -> Factor:
        return Factor(self._domain.project(names), log_of(table))


def _names(names: Iterable[str]) -> Clique:
    wanted = (names,) if isinstance(names, str) else tuple(names)
    if len(set(wanted)) != len(wanted):
        raise InputError(f"a marginal names each column once, got {shortened(wanted)}")
    return wanted
