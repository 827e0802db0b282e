"""Naive maximum likelihood from noisy tables, as if they were exact ([BMSSHM17] section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..arguments import check_positive
from ..learn.consistency import estimated_total, pooled
from ..learn.fields.learner import Array, FieldLearner, on_cliques
from ..learn.fields.likelihood import Field
from ..learn.projection import project_table
from ..measurement import Measurements


@dataclass(frozen=True)
class NaiveField(FieldLearner):
    """Each noisy table projected to the simplex, then maximum likelihood with the penalty λ‖θ‖².

    The penalty decides everything and cannot be chosen without looking at the truth: too small, and cells that noise
    made zero get vanishing probabilities; too large, and nothing is learned. For comparison; :class:`NoiseAwareField`
    needs no such choice.

    Parameters
    ----------
    penalty:
        λ, on the scale of the log-likelihood of one record. Default: ten divided by the (noisy) number of records, most
        often the best of 1/N, 10/N and 100/N in the benchmark's settings and never the worst.
    project:
        Whether tables are projected to the simplex first (Figure 1b).
    """

    penalty: float | None = None
    project: bool = True
    method: ClassVar[str] = "naive"
    passes: ClassVar[int] = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(or_none=True, penalty=self.penalty)  # without one there may be no fit

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        total = estimated_total(measurements)
        shares = {c: t.values / total for c, t in on_cliques(field.cliques, pooled(measurements)).items()}
        if self.project:
            shares = {c: project_table(share) for c, share in shares.items()}
        penalty = 10 / total if self.penalty is None else self.penalty
        found = field.maximise(field.join(shares), 2 * penalty * field.strength**2)
        return found.theta, {"penalty": penalty, "converged": found.converged}
