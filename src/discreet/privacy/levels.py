"""Levels of a test of stability, and what it lets out: arithmetic on whole numbers, no noise. See :mod:`.stability`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables.base import IntArray
from .unit import PrivacyUnit

GRID = 1024  # margins are whole, in units of 1/GRID of a record


@dataclass(frozen=True, eq=False)
class Released:
    """What came out of a test of stability: its noisy distance, and the outcome if that was above the threshold."""

    noisy_distance: int
    signs: NDArray[np.bool_] | None = None
    word: str | None = None


def level_of(margins: IntArray, moved: int) -> IntArray:
    """⌊(G − 1)/K⌋ for whole margins G > 0 (yes) or G ≤ 0 (no) that a unit moves by at most K: moved by at most 1."""
    out: IntArray = (margins - 1) // moved
    return out


def moved_by(unit: PrivacyUnit, one_record: int, threshold: int) -> int:
    """How far one unit moves ``statistic − τn``, in grid units, if a record moves the statistic by ``one_record``."""
    added = GRID * one_record + threshold
    # A person who is replaced may also have fewer rows than before: the larger of the two a row.
    return unit.max_rows * (added if unit.relation == "add-remove" else max(2 * GRID * one_record, added))


def scatter(A: NDArray[Any], B: NDArray[Any], C: NDArray[Any], N: Any) -> NDArray[Any]:
    """|⌊GRID·(A − BC/N)⌋| for sums A of z_i z_j, B of z_i, C of z_j over N records, exactly; without records, 0."""
    out: NDArray[Any] = np.abs(GRID * A + (-GRID * B * C) // np.maximum(N, 1))
    return out


def distance_of(levels: IntArray) -> int:
    """How many units must change at least before another sign is possible: ℓ for ℓ ≥ 0 and −ℓ − 1 below."""
    whole = np.asarray(levels)
    if whole.size == 0 or whole.dtype.kind != "i":
        raise TypeError(f"a test of stability needs at least one level, and whole ones; got {whole.dtype}")
    return int(np.where(whole >= 0, whole, -whole - 1).min())


def released_above(threshold: int, noisy: int, levels: IntArray, word: str) -> Released:
    """The outcome if the noisy distance is above the threshold, otherwise nothing but that distance."""
    return Released(noisy, np.asarray(levels) >= 0, word) if noisy > threshold else Released(noisy)
