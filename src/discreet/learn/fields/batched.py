"""Minima of many functions that are alike, one a column, all evaluated at once: L-BFGS with a history for each.

The columns share nothing but the evaluations. What one descent has learned of the curvature serves the next, where
functions are near those before: the *history* is kept by whoever calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Loss = Callable[[Array], tuple[Array, Array]]
"""Of points, a column each, the values and the gradients."""
Step = Callable[[Array], Array]
MOST_KEPT, MOST_EVALUATIONS = 10, 120
_ENOUGH, _SHORTER = 1e-4, 0.4
"""A step must gain this part of what its slope promises; else it becomes so many times shorter."""
_ROUNDING = 1e-12


class History:
    """Steps and what gradients changed along them: what L-BFGS knows of the inverse Hessians."""

    def __init__(self, kept: int = MOST_KEPT) -> None:
        self._pairs: deque[tuple[Array, Array, Array]] = deque(maxlen=kept)

    def add(self, step: Array, change: Array) -> None:
        along = (step * change).sum(axis=0)
        self._pairs.append((step, change, np.divide(1.0, along, out=np.zeros_like(along), where=along > 0)))

    def times(self, gradient: Array, first: Step) -> Array:
        """The inverse Hessian times the gradient, as far as it is known: ``first`` before any step was made."""
        out, parts = gradient.copy(), []
        for step, change, inverse in reversed(self._pairs):
            parts.append(inverse * (step * out).sum(axis=0))
            out -= parts[-1] * change
        out = first(out)
        for (step, change, inverse), part in zip(self._pairs, reversed(parts), strict=True):
            out += step * (part - inverse * (change * out).sum(axis=0))
        return out


def minima(
    loss: Loss, start: Array, small: float, history: History, first: Step, most: int = MOST_EVALUATIONS
) -> Array:
    """The minima of convex functions, from the columns of ``start``; ``first`` is about Newton's step for a gradient.

    It ends where that step gains no more than ½·small² in any of them.
    """
    at, (value, gradient), evaluations = start, loss(start), 1
    while evaluations < most:
        direction = history.times(gradient, first)
        slope, length = (gradient * direction).sum(axis=0), np.ones(at.shape[1])
        if slope.max() <= small**2:
            break
        while evaluations < most:
            there = at - length * direction
            lower, steeper = loss(there)
            evaluations += 1
            far = lower > value - _ENOUGH * length * slope + _ROUNDING * np.abs(value)
            if not far.any():
                break
            length = np.where(far, _SHORTER * length, length)
        history.add(there - at, steeper - gradient)
        at, value, gradient = there, lower, steeper
    return at
