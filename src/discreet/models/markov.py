"""The Markov random field: a table of log potentials on each clique of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..arguments import require_domain, require_groups, shortened
from ..domain import Clique, Domain
from ..errors import InputError
from ..factor import CliqueVector, Factor
from .base import Model
from .checks import archive_domain, archive_names, require_mapping


@dataclass(frozen=True, eq=False, repr=False)
class MarkovRandomField(Model):
    """P(x) ∝ exp(Σ_c θ_c(x_c)).

    ``potentials`` is a :class:`~discreet.factor.CliqueVector`, or a mapping from tuples of names to log tables (axes in
    the order of the names) or factors. A cell of −∞ is a structural zero: an impossible combination, which has
    probability zero in every answer and is never drawn.
    """

    kind: ClassVar[str] = "markov"

    domain: Domain
    potentials: CliqueVector
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require_domain(self.domain)
        require_mapping(self.potentials, "potentials", '{("a", "b"): log_table}')
        factors = [self._factor(names, table) for names, table in self.potentials.items()]
        covered = {name for factor in factors for name in factor.names}
        factors += [Factor.zeros(self.domain.project([n])) for n in self.domain if n not in covered]
        potentials = CliqueVector.of(self.domain, factors)
        for factor in potentials.values():
            factor.values.flags.writeable = False
        object.__setattr__(self, "potentials", potentials)

    def _factor(self, names: Iterable[str], table: Factor | npt.ArrayLike) -> Factor:
        clique = (names,) if isinstance(names, str) else tuple(names)
        own = self.domain.project(clique)
        try:
            values = np.array(table.transpose(clique).values if isinstance(table, Factor) else table, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"the potential on {clique} must be an array of numbers, got {shortened(table)}") from None
        if values.shape != own.shape:
            raise InputError(f"the potential on {clique} must have shape {own.shape}, got {values.shape}")
        highest = values.max()
        if not highest < np.inf:
            raise InputError(
                f"the potential on {clique} holds NaN or +inf; cells are finite, or -inf for impossible ones"
            )
        if highest == -np.inf:
            raise InputError(f"the potential on {clique} makes every combination impossible")
        return Factor(own, values)

    @classmethod
    def uniform(cls, domain: Domain, cliques: Iterable[Iterable[str]] = ()) -> MarkovRandomField:
        """Every record equally probable; the cliques only shape the graph."""
        return cls(require_domain(domain), CliqueVector.zeros(domain, require_groups(cliques)))

    @property
    def structural_zeros(self) -> dict[Clique, NDArray[np.bool_]]:
        """Where the impossible cells are: a mask for each clique that has any."""
        masks = {clique: np.isneginf(factor.values) for clique, factor in self.potentials.items()}
        return {clique: mask for clique, mask in masks.items() if mask.any()}

    def forbid(self, combinations: Iterable[Mapping[str, object]]) -> MarkovRandomField:
        """The same field with these combinations of levels made impossible, e.g. ``[{"sex": "m", "pregnant": "yes"}]``.

        The result is the original distribution conditioned on none of them happening.
        """
        if isinstance(combinations, Mapping):
            raise InputError(
                f"forbid takes a list of combinations; for this one write forbid([{dict(combinations)!r}])"
            )
        added: dict[Clique, NDArray[np.float64]] = {}
        for combination in combinations:
            require_mapping(combination, "a forbidden combination", '{"sex": "m", "pregnant": "yes"}')
            clique = self.domain.clique(combination)
            if not clique:
                raise InputError("a forbidden combination names at least one column")
            table = added.setdefault(clique, np.zeros(self.domain.project(clique).shape))
            table[tuple(self.domain[name].code(combination[name]) for name in clique)] = -np.inf
        return replace(self, potentials=self.potentials + CliqueVector(self.domain, dict(added)))

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"potential{i}": factor.values for i, factor in enumerate(self.potentials.values())}
        return {"cliques": [list(clique) for clique in self.potentials]}, arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> MarkovRandomField:
        cliques = archive_names(header["model"]["cliques"])
        if len(set(cliques)) != len(cliques):
            raise InputError("a clique is there twice")
        potentials = {clique: arrays[f"potential{i}"] for i, clique in enumerate(cliques)}
        return cls(archive_domain(header), potentials, header["card"])  # type: ignore[arg-type]
