"""A model in which all columns are independent says so, whichever learner made it: on its card as a caution, which
``fit``, ``show``, answers and report repeat. Post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DiscreetError
from ..models.base import Model

INDEPENDENT = "the model has no interaction, all columns are independent in it"
NOT_GIVEN = "it was given none"
NOT_CARRIED = "the records are too few for tables of two columns with this budget"
NOT_FOUND = "none stood out of the noise"
STEPPED_BACK = ("dropped_edges", "stepped_back")
"""What a card says of parts of a given structure that were not measured."""
NEGLIGIBLE = 1e-9


def with_independence(model: Any, given: bool) -> Any:
    """The same model, with a caution where it has no interaction. ``given``: whether it was told which it may have."""
    card = model.card
    if card is None or not is_independent(model):
        return model
    before = str(card.get("caution", ""))
    if INDEPENDENT in before:
        return model
    said = f"{INDEPENDENT}: {_why(card, given and not model.edges)}"
    return model.with_card({**card, "caution": f"{before}; {said}" if before else said})


def _why(card: Mapping[str, Any], none_given: bool) -> str:
    if any(card.get(key) for key in STEPPED_BACK):
        return NOT_CARRIED
    return NOT_GIVEN if none_given else NOT_FOUND


def is_independent(model: Model) -> bool:
    """Whether no column of several tells of another. Where that cannot be seen from the parameters, no."""
    if sum(size > 1 for size in model.domain.shape) < 2:
        return False
    try:
        return not model.edges or all(_adds_up(f.values) for f in model.compact.values())
    except DiscreetError:  # tables that are too large to be made
        return False


def _adds_up(table: NDArray[Any]) -> bool:
    """Whether a log table is a sum of one term for each axis."""
    if sum(size > 1 for size in table.shape) < 2:
        return True
    if not np.isfinite(table).all():
        return False
    mean = table.mean()
    rest = table - mean
    for axis in range(table.ndim):
        others = tuple(k for k in range(table.ndim) if k != axis)
        rest = rest - (table.mean(axis=others, keepdims=True) - mean)
    return bool(np.abs(rest).max() <= NEGLIGIBLE)
