"""A Markov random field in which levels of some columns are taken together: groups interact, and the levels of a group
share what it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..attribute import Groups
from ..domain import Clique, Domain
from ..errors import CostError, InputError, counted
from ..factor import CliqueVector, Factor, log_of, spread
from ..graph import DEFAULT_MEMORY_LIMIT
from .base import Model
from .checks import archive_domain, archive_names
from .markov import MarkovRandomField


@dataclass(frozen=True, eq=False, repr=False)
class GroupedField(Model):
    """P(x) = P(groups of x) · Π P(level | its group).

    ``field`` is over the same columns in the same order, some of them with groups of levels in the place of levels
    (:class:`~discreet.attribute.Groups`); ``within`` has for each of these columns the probability of each level given
    its group.

    Inference is on the field with one more leaf for each grouped column, the table of its levels and groups: what the
    levels cost is added, not multiplied.
    """

    kind: ClassVar[str] = "grouped"

    domain: Domain
    field: MarkovRandomField
    within: Mapping[str, NDArray[np.float64]]
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if len(self.field.domain) != len(self.domain):
            raise InputError("a grouped field has the columns of its domain, with groups in the place of levels")
        for own, grouped in zip(self.domain.attributes, self.field.domain.attributes, strict=True):
            if (grouped.groups is None and own != grouped) or (grouped.groups is not None and grouped.groups.of != own):
                raise InputError(f"column {own.name!r} is another one in the field than in the domain")
        if {*self.within} != {*self.groups}:
            raise InputError("a grouped field says of each of its grouped columns how levels share their group")
        for name, groups in self.groups.items():
            shares = np.array(self.within[name], dtype=np.float64)
            if shares.shape != (groups.of.size,) or not np.all(shares >= 0):
                raise InputError(f"each level of {name!r} has a share of its group, which is not negative")
            if not np.all(np.abs(np.bincount(groups.codes, shares) - 1) < 1e-6):
                raise InputError(f"the shares of the levels of {name!r} in their groups must add up to 1")

    @cached_property
    def groups(self) -> dict[str, Groups]:
        """Of each column whose levels are taken together."""
        return {g.of.name: g for a in self.field.domain.attributes if (g := a.groups) is not None}

    @cached_property
    def _column(self) -> dict[str, str]:
        """The column that each one of the field is about."""
        return dict(zip(self.field.domain.names, self.domain.names, strict=True))

    # -- inference ---------------------------------------------------------------------------------------------------

    @cached_property
    def compact(self) -> CliqueVector:
        """With groups beside their levels: the potentials of the field, and a leaf for each column in groups."""
        whole = Domain((*self.domain.attributes, *(a for a in self.field.domain.attributes if a.groups is not None)))
        cells = sum(g.of.size * g.number for g in self.groups.values())
        if 8 * cells > DEFAULT_MEMORY_LIMIT:  # a file may come from anywhere
            raise CostError(f"the levels and groups of this model have tables of {counted(cells, 'cell')}, too many")
        leaves = []
        for grouped in whole.attributes[len(self.domain) :]:
            groups = self._groups_of(grouped.groups)
            table = np.full((groups.of.size, groups.number), -np.inf)
            table[np.arange(groups.of.size), groups.codes] = log_of(np.asarray(self.within[groups.of.name]))
            leaves.append(Factor(whole.project([groups.of.name, grouped.name]), table))
        return CliqueVector.of(whole, [*self.field.potentials.values(), *leaves])

    @staticmethod
    def _groups_of(groups: Groups | None) -> Groups:
        assert groups is not None
        return groups

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(tuple(self._column[n] for n in c) for c in self.field.cliques)

    @cached_property
    def potentials(self) -> CliqueVector:
        """The same with a cell for each combination of levels: for whoever takes nothing else."""
        cells = sum(self.domain.size(c) for c in self.cliques)
        if 8 * cells > DEFAULT_MEMORY_LIMIT:
            raise CostError(
                f"with all its levels this model has tables of {counted(cells, 'cell')}, too many to be written out"
            )
        codes = {name: np.asarray(g.codes) for name, g in self.groups.items()}
        factors = []
        for factor in self.field.potentials.values():
            own = [self._column[n] for n in factor.names]
            at = np.ix_(*(codes.get(n, np.arange(self.domain[n].size)) for n in own))
            factors.append(Factor(self.domain.project(own), factor.values[at]))
        for name in self.groups:
            home = next(i for i, f in enumerate(factors) if name in f.names)
            held = factors[home]
            more = spread(log_of(np.asarray(self.within[name])), (name,), held.names)
            factors[home] = Factor(held.domain, held.values + more)
        return CliqueVector.of(self.domain, factors)

    def _relevant(self, names: Iterable[str]) -> CliqueVector:
        return self.compact

    # -- files -------------------------------------------------------------------------------------------------------

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = self.field._to_archive()
        columns = {a.name: a.to_dict() for a in self.field.domain.attributes}
        within = {f"within{i}": np.asarray(self.within[name]) for i, name in enumerate(self.groups)}
        return {**header, "columns": {"version": 1, "columns": columns}}, {**arrays, **within}

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GroupedField:
        cliques = archive_names(header["model"]["cliques"])
        if len(set(cliques)) != len(cliques):
            raise InputError("a clique is there twice")
        columns = Domain.from_dict(header["model"]["columns"])
        field = MarkovRandomField(columns, {c: arrays[f"potential{i}"] for i, c in enumerate(cliques)})  # type: ignore[arg-type]
        grouped = [a.groups.of.name for a in columns.attributes if a.groups is not None]
        within = {name: arrays[f"within{i}"] for i, name in enumerate(grouped)}
        return cls(archive_domain(header), field, within, header["card"])
