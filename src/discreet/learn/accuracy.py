"""How often the model predicts a column right, bought beside the certificate of fit.

The model predicts a column from all others of a record: the level that is most probable given them. That needs its
potentials around the column alone, which are public, and no inference. One count is asked of the rows: how many are
predicted right (:class:`~discreet.privacy.queries.predictions.RightPredictions`). The number of records is known from
the certificate.

Guarantee: the step's share, by the sensitivity of one count. The model was released before, so the rule is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measurement import Measurements
from ..models.base import Model
from ..privacy.budget import Budget, PureDP
from ..privacy.queries.predictions import RightPredictions, scores_of
from ..privacy.requests import Asking, Measure
from .procedure import Found, Step, Whole

GRID = 2.0**-20  # of logarithms: far below what could change an answer but for ties
KEY = "accuracy"


def right_predictions(model: Model, target: str, label: str = "") -> RightPredictions:
    """The count of records whose ``target`` the model predicts right from the other columns."""
    around = [(clique, factor.values) for clique, factor in model.potentials.items() if target in clique]
    scores = scores_of([np.asarray(values, dtype=np.float64) for _, values in around], GRID)
    tables = [(clique, table) for (clique, _), table in zip(around, scores, strict=True)]
    return RightPredictions(model.domain, target, tables, label=label)


def accuracy_step(whole: Whole, share: Budget, model: Model, target: str, found: str) -> Step:
    """The step that follows the certificate, whose facts are ``found`` under this name."""
    kind = "laplace" if isinstance(share, PureDP) else "gaussian"
    request = Measure(share, right_predictions(model, target, found), kind)  # type: ignore[arg-type]

    def asks(released: Measurements) -> Asking[Found]:
        (noisy,) = yield request
        facts: dict[str, Any] = {
            "target": target,
            "counts": [int(n) for n in noisy.counts],
            "noise": noisy.noise.kind,
            "scale": noisy.noise.scale,
            "grid": str(noisy.grid),
            "which": [],
        }
        return {found: {**released.found[found], KEY: facts}}

    return whole.later(f"certificate: how often {target} is predicted right", share, asks, kind, kept=False)
