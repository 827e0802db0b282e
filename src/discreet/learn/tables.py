"""Tables for their own sake: the smallest learner. What it learns is the noisy tables themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..domain import Domain
from ..errors import BudgetError, InputError, counted
from ..measurement import Measurements
from ..privacy.budget import Amount, exact
from ..privacy.calibration import NoiseChoice
from ..privacy.query import Marginals
from ..privacy.requests import Measure
from .checks import as_measurements
from .fields.learner import as_cliques
from .learner import Learner
from .procedure import Procedure, Whole
from .zeros import without_impossible

METHOD = "tables"


@dataclass(frozen=True)
class Tables(Learner[Measurements]):
    """Release contingency tables.

    Parameters
    ----------
    cliques:
        The columns of each table.
    noise:
        ``"laplace"``, ``"gaussian"`` or ``"auto"``: the one with less error for the budget.
    weights:
        How the budget is divided over the tables; equally by default.
    """

    cliques: Iterable[Iterable[str]]
    noise: NoiseChoice = "auto"
    weights: Sequence[Amount] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        cliques = as_cliques(self.cliques)
        object.__setattr__(self, "cliques", cliques)
        if self.weights is None:
            return
        said = ",".join(map(str, self.weights))
        if len(self.weights) != len(cliques):
            number = counted(len(self.weights), "number")
            raise InputError(f"weights {said}: {number} for {counted(len(cliques), 'table')}; give one for each")
        try:
            least = min(exact(weight, "a weight") for weight in self.weights)
        except BudgetError as error:
            raise InputError(f"weights {said}: {error}") from None
        if least < 0:
            raise InputError(f"weights {said}: weights are positive numbers")
        if least == 0:
            raise InputError(f"weights {said}: a table with weight zero would be all noise; leave the table out")

    def prepare(self, whole: Whole) -> Procedure:
        """One step: all tables. Guarantee: the budget, by composition over the tables."""
        request = Measure(whole.budget, Marginals(whole.domain, self.cliques), self.noise, self.weights)
        return Procedure(METHOD, whole, (whole.measure(METHOD, request),)).with_cautions()

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> Measurements:
        """The same tables, with zeros where the schema says that no record can be."""
        measured = as_measurements(measurements)
        return without_impossible(measured, domain or measured.domain)
