"""The default for chains: likelihood with a ridge as large as the noise.

The tables are made to agree on their total and projected to the simplex, and θ maximises ⟨θ, μ̂⟩ − A(θ) − ½Σ r_c θ_c²
over log potentials θ, with r_c = ``RIDGE`` times the deviation of the noise in a cell of table c, as a share of the
windows. A tied chain has two tables, of very different size and shape: where people start may be nearly uniform, while
where they go is nearly certain (they stay where they are). One prior variance for both, read off the tables as
:class:`~discreet.learn.fields.noise_aware.NoiseAwareField` does, shrank all moves of a simulated building away at few
records. A ridge that is linear in the noise comes within a few percent of the best λ of naive maximum likelihood, from
ε = 0.01 to 1, for sticky, sparse and dense chains alike; docs/chains.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...measurement import Measurements
from ..consistency import pooled, reconciled
from ..fields.evidence import records_and_known
from ..fields.learner import Array, FieldLearner, on_cliques
from ..fields.likelihood import Field
from ..fields.noise_aware import PROBES_OF_FIRST_VERSION, UNKNOWN, NoiseAwareField
from ..projection import project_table
from .learner import ChainLearner

RIDGE = 0.15
"""Set on 80 draws of random chains (seeds 1 to 3 of the generators that docs/chains.md describes) and one building."""
SAMPLING = 0.5
"""The ridge where there is no noise, divided by the number of windows."""
UNHEARD = 1e-6


@dataclass(frozen=True)
class NoiseAwareChain(ChainLearner):
    """A chain by the likelihood whose ridge knows the noise; nothing to tune.

    Chains that are not tied have a table for each time, and are the fields of
    :class:`~discreet.learn.fields.noise_aware.NoiseAwareField` on these.
    """

    method: ClassVar[str] = "noise_aware"
    passes: ClassVar[int] = 100

    def fields(self) -> FieldLearner:
        return NoiseAwareField((), probes=PROBES_OF_FIRST_VERSION)  # files do not say how many

    def solved(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        if not self.tied:
            return super().solved(field, measurements)
        given = pooled(measurements)
        total, known = records_and_known(measurements, {c: t for c, t in given.items() if c})
        if known <= UNHEARD:
            return np.zeros(field.size), {"caution": UNKNOWN}
        tables = on_cliques(field.cliques, reconciled(field.domain, given))
        target = field.join({c: project_table(t.values / total) for c, t in tables.items()})
        # A table of moves is a mean over times: of the sum, noise and signal are as many times larger.
        noise = field.fill({c: t.variance**0.5 for c, t in tables.items()}) / field.strength
        ridge = np.maximum(RIDGE * noise / known, SAMPLING) / total * field.strength**2
        found = field.maximise(target, ridge)
        return found.theta, {"converged": found.converged}
