"""Whether a model is the one that its noisy sums make."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import InputError
from ..measurement import Measurements
from ..models.base import Model
from ..models.marginals import marginals

Refit = Callable[[Measurements], Model]
_ROUNDING = 1e-6
SAME = 0.005
"""Probabilities of a model that is learned again differ by less on any machine: 5·10⁻⁴ for our defaults and for methods
as published that stop on their way, 0.003 for Gibbs chains of the first version."""
_BELONGS = 0.001
"""Less than that: of a model and one made with other options more must not pass for the same."""


def check_belongs(refit: Refit, measurements: Measurements, model: Model, near: float = _BELONGS) -> None:
    """Refuse a model that ``refit`` does not make of these measurements: intervals around it would mean nothing."""
    again = refit(measurements)
    if type(again) is not type(model) or again.domain != model.domain or again.cliques != model.cliques:
        raise InputError(
            "the model has other columns or another graph than what refit makes of these measurements; give the model "
            "that the same learner estimated from them, for example model = learner.estimate(measurements)"
        )
    if distance(model, again) <= near:
        return
    if distance(again, refit(measurements)) <= near:  # an estimator that draws at random may differ from run to run
        raise InputError(
            "the model is not what refit makes of these measurements: it was learned from others, or with other "
            "options. Give model = refit(measurements)"
        )


def distance(model: Model, again: Model) -> float:
    """Of a model from what the same sums make here: the largest difference of a parameter or, where that is more than
    rounding, of a probability in the tables of its cliques; infinite if they are not even of one form.

    A search for the best fit ends a little elsewhere on a machine that rounds in another way. What it leaves
    undetermined are parameters that hardly matter, so it is the probabilities that must agree.
    """
    (header, arrays), (header_, arrays_) = model.to_archive(), again.to_archive()
    form = all(header[key] == header_[key] for key in ("kind", "domain", "model"))
    if not form or any(arrays[k].shape != arrays_[k].shape for k in arrays.keys() | arrays_.keys()):
        return math.inf
    if all(np.allclose(arrays[k], arrays_[k], rtol=_ROUNDING, atol=_ROUNDING) for k in arrays):
        return 0.0
    tables, tables_ = (marginals(m, m.cliques)[0] for m in (model, again))
    return max(float(np.abs(x - y).max()) for x, y in zip(tables, tables_, strict=True))
