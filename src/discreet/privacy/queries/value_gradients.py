"""Linear models on numbers that stand on a public grid: one regression, any loss of the margin with a bounded slope.

For a loss φ(y⟨w,x⟩) the negative gradient is −y·φ′(y⟨w,x⟩)·x. As for the logistic loss, margins are whole numbers and
the slope is looked up at them in a public table of whole numbers, so that a record's term depends on that record and on
public things only, to the last bit (:mod:`discreet.privacy.queries.gradients`). Slopes are clipped to the declared
bound when the table is made: whatever function is given, no record moves a sum by more than is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...encoding import Codes
from ...errors import InputError, counted
from ...tables.base import IntArray
from .gradients import UNITS, LogisticGradients, Matrix

LARGEST_RESOLUTION = 1 << 13  # of features: a term times a feature stays below 2²⁴, where 4-byte floats are exact
Slope = Callable[[NDArray[np.float64]], Any]


class ValueGradients(LogisticGradients):
    """One regression of a binary column on numbers in [−1, 1] that stand on a public grid.

    ``values`` gives for each feature column the number of each code, in whole units of 1/resolution. ``labels`` gives
    −1, 1 or 0 (a record that does not take part) for each code of the target; −1 and 1 by default.
    """

    def __init__(
        self,
        domain: Domain,
        target: str,
        values: Mapping[str, Sequence[int]],
        resolution: int,
        v: IntArray,
        scale: float,
        labels: Sequence[int] = (-1, 1),
    ) -> None:
        if type(resolution) is not int or not 1 <= resolution <= LARGEST_RESOLUTION:
            raise InputError(f"resolution must be a whole number from 1 to {LARGEST_RESOLUTION}, got {resolution!r}")
        self.largest_feature = resolution
        self._target = target
        self._labels = np.asarray(labels)
        if self._labels.shape != (domain[target].size,) or not np.isin(self._labels, (-1, 0, 1)).all():
            raise InputError(
                f"the target {target!r} has {counted(domain[target].size, 'level')}: it needs two, or a label −1, 0 or "
                f"1 for each of them; the labels are {list(labels)}"
            )
        self._values = {name: _whole_values(name, domain, given, resolution) for name, given in values.items()}
        if target in self._values:
            raise InputError(f"the target {target!r} cannot be a feature too")
        super().__init__(domain, v, scale)

    @property
    def targets(self) -> tuple[tuple[str, IntArray], ...]:
        return ((self._target, self._labels),)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (*self._values, "1")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self._values, self._target)

    def features(self, batch: Mapping[str, Codes]) -> Matrix:
        rows = len(batch[self._target])
        out = np.full((self.feature_count, rows), self.largest_feature, dtype=np.float32)
        for row, (name, numbers) in zip(out, self._values.items(), strict=False):
            np.take(numbers, batch[name], out=row)
        return out

    def allowed(self) -> NDArray[np.bool_]:
        return np.ones((1, self.feature_count), dtype=bool)


def _whole_values(name: str, domain: Domain, given: Sequence[int], resolution: int) -> NDArray[np.float32]:
    """Refuses what is not whole: margins would depend on the order of summation, and the sensitivity on rounding."""
    numbers = np.asarray(given, dtype=np.float64)
    whole = bool(np.all(np.isfinite(numbers))) and bool(np.all(numbers == np.rint(numbers)))
    if numbers.shape != (domain[name].size,) or not whole or np.abs(numbers).max(initial=0) > resolution:
        raise InputError(f"feature {name!r} needs a whole number within ±{resolution} for each of its codes")
    return numbers.astype(np.float32)


class LinearGradients(ValueGradients):
    """The same for any loss φ(y⟨w,x⟩): ``slope`` is φ′ as a function of an array of margins.

    It is evaluated on public margins only, never on records. Values beyond ±bound are clipped, and what is not a number
    is taken for 0. A term is a whole number of 1/1024 of the bound.
    """

    def __init__(self, slope: Slope, bound: float, *problem: Any, **options: Any) -> None:
        self._slope = slope
        self._bound = float(bound)
        super().__init__(*problem, **options)

    def slopes(self, margins: NDArray[np.float64]) -> NDArray[np.float32]:
        given = np.asarray(self._slope(margins.copy()), dtype=np.float64)
        if given.shape != margins.shape:
            raise InputError(f"the slope of {margins.shape} margins must have that shape, got {given.shape}")
        bounded = np.clip(np.nan_to_num(-given / self._bound, nan=0.0, posinf=1.0, neginf=-1.0), -1, 1)
        return np.rint(UNITS * bounded).astype(np.float32)

    def _largest(self) -> IntArray:  # not kept: it depends on v, and a sensitivity must never be that of another v
        table, reach, shift = self._table
        low, high = (reach - self.reach) >> shift, (reach + self.reach) >> shift
        return np.array([np.abs(table[a : b + 1]).max() for a, b in zip(low, high, strict=True)], dtype=np.int64)

    def largest_terms(self) -> IntArray:
        """No entry that a margin can reach is larger."""
        out: IntArray = self._largest() * self.largest_feature
        return out
