"""Output perturbation: fit inside the curator, and noise on the parameters ([BMSSHM17] section 3.1, option 1).

The sensitivity that can be proved. Let θ̂ minimise F(θ) = Σ_records [A(θ) − ⟨θ, s(x)⟩] + (Λ/2)‖θ‖², s(x) the indicators
of the record's cells. F is Λ-strongly convex. Adding a record adds the gradient μ(θ) − s(x), of norm at most √(2|C|) (a
clique's part is the difference of two distributions); replacing one adds s(x) − s(x′), of norm at most √(2|C|) too. So
θ̂ moves by at most **√(2|C|)/Λ** in L2, and √d times that in L1 for d parameters. The penalty Λ is on the sum, so the
number of records is not needed. The numerical minimiser is within ‖∇F‖/Λ of θ̂, which is checked before it is used.

How long the minimisation takes depends on the exact counts, and cannot be bounded without them: the guarantee is about
what is released, so let nobody time the curator. (The learners that add noise to tables count rows and do everything
else with noisy tables; this one, and the reading of rows as such, are the only places where time depends on data.)

For comparison only: √d and the worst case over all data cost far more than noise on the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arguments import check_positive
from ..domain import Clique, Domain
from ..errors import InputError
from ..learn.cards import card_of
from ..learn.checks import as_measurements
from ..learn.fields.learner import Array, as_cliques, covering, maximal
from ..learn.fields.likelihood import Field
from ..learn.learner import Learner
from ..learn.procedure import Procedure, Whole
from ..measurement import Measurements
from ..models.markov import MarkovRandomField
from ..privacy.calibration import NoiseChoice
from ..privacy.query import Part, Query
from ..privacy.requests import Measure
from ..privacy.unit import Relation, Sensitivity

GRID = 2**20
SLACK = 1e-4
"""How near (in units of the sensitivity) the numerical minimiser is to the exact one."""


class PenalisedFit(Query):
    """The penalised fit of a Markov random field as something to be noised: d log potentials."""

    def __init__(self, domain: Domain, cliques: Iterable[Iterable[str]], strength: float) -> None:
        super().__init__(domain)
        self.field = Field(domain, maximal(covering(domain, cliques)), inference="exact")
        self.strength = strength

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("log potentials", (self.field.size,), grid=Fraction(1, GRID)),)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return self.field.cliques

    @property
    def reach(self) -> float:
        """√(2|C|)/Λ: how far one record moves the exact minimiser."""
        return math.sqrt(2 * len(self.field.cliques)) / self.strength

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        # Both minimisers are off by the slack, and both are rounded to the grid: at most one unit a parameter.
        l2 = math.ceil(self.reach * (1 + 2 * SLACK) * GRID + math.sqrt(self.field.size))
        l1 = math.ceil(math.sqrt(self.field.size) * l2)
        return (Sensitivity(l1, l2 * l2, l2, self.field.size),)

    def combine(self, counts: Sequence[Any]) -> tuple[Any, ...]:
        theta = self._minimise(np.concatenate([np.asarray(c, dtype=np.float64).reshape(-1) for c in counts]))
        return (np.rint(theta * GRID).astype(np.int64),)

    def _minimise(self, counts: Array) -> Array:
        field, strength = self.field, self.strength
        n = float(counts[: field.sizes[0]].sum())
        theta = np.zeros(field.size)
        if n == 0:
            return theta
        enough = SLACK * self.reach * strength
        ridge = np.full(field.size, strength / n)
        for tolerance in (1e-9, 1e-12, 1e-15, 0.0):
            theta = field.maximise(counts / n, ridge, start=theta, curvature=counts / n, tolerance=tolerance).theta
            if np.linalg.norm(self._gradient(theta, counts, n)) <= enough:
                return theta
        # Plain descent always gets there: the curvature is at most Λ + 2n|C|.
        while np.linalg.norm(slope := self._gradient(theta, counts, n)) > enough:
            theta = theta - slope / (strength + 2 * n * len(field.cliques))
        return theta

    def _gradient(self, theta: Array, counts: Array, n: float) -> Array:
        out: Array = n * self.field(theta)[1] - counts + self.strength * theta
        return out


@dataclass(frozen=True)
class OutputPerturbation(Learner[MarkovRandomField]):
    """Learn a Markov random field by noise on its parameters. ``strength`` is Λ, in records."""

    cliques: Iterable[Iterable[str]]
    strength: float = 100.0
    noise: NoiseChoice = "auto"
    method: ClassVar[str] = "output_perturbation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cliques", as_cliques(self.cliques))
        super().__post_init__()
        check_positive(strength=self.strength)

    def query(self, domain: Domain) -> PenalisedFit:
        return PenalisedFit(domain, self.cliques, self.strength)

    def prepare(self, whole: Whole) -> Procedure:
        request = Measure(whole.budget, self.query(whole.domain), self.noise)
        step = whole.measure("log potentials", request, why="Noise on log potentials, not on counts.")
        return Procedure(self.method, whole, (step,))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The model from the noisy potentials that :meth:`fit` measured; other tables are of no use to it."""
        measurements = as_measurements(measurements)
        whole = domain or measurements.domain
        field = self.query(whole).field
        found = [m for m in measurements if m.clique is None and m.counts.shape == (field.size,)]
        if len(found) != 1:
            raise InputError("output perturbation estimates from its own noisy potentials, which are not there")
        return MarkovRandomField(whole, field.potentials(found[0].values), card_of(measurements, self.method))
