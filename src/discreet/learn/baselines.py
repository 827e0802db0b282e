"""Reference points for experiments with Markov random fields: without privacy, and without data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arguments import require_domain
from ..domain import Domain
from ..factor import CliqueVector
from ..measurement import Measurements
from ..models.markov import MarkovRandomField
from ..models.records import RandomState
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from .checks import check_exact
from .consistency import estimated_total, pooled
from .fields.learner import Array, FieldLearner, as_cliques, covering, on_cliques
from .fields.likelihood import Field


@dataclass(frozen=True)
class NonprivateField(FieldLearner):
    """Maximum likelihood from exact tables. NOT PRIVATE: it takes an :class:`ExactCurator`, and its model cannot be
    saved. The penalty of one pseudo-record keeps cells that no record has finite."""

    method: ClassVar[str] = "nonprivate"

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        check_exact(curator)
        return super().measure(curator, share)

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        total = estimated_total(measurements)
        tables = on_cliques(field.cliques, pooled(measurements))
        target = field.join({c: t.values / total for c, t in tables.items()})
        found = field.maximise(target, np.full(field.size, 1 / total), curvature=target, tolerance=1e-9)
        return found.theta, {"converged": found.converged}


def random_field(
    domain: Domain, cliques: Iterable[Iterable[str]], random_state: RandomState = None
) -> MarkovRandomField:
    """The paper's random estimator: potentials learned from random marginals, of no data at all ([BMSSHM17] §4.1)."""
    field = Field(require_domain(domain), covering(domain, as_cliques(cliques)))
    drawn = CliqueVector.random(domain, field.cliques, random_state)
    target = field.join({c: f.normalize().exp() for c, f in drawn.items()})
    theta = field.maximise(target, np.full(field.size, 1e-2)).theta
    return MarkovRandomField(domain, field.potentials(theta), {"origin": "research", "method": "random"})
