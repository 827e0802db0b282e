"""Levels of a test of stability, and what it lets out: arithmetic on whole numbers, no noise. See :mod:`.stability`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..tables.base import IntArray


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


def distance_of(levels: IntArray) -> int:
    """How many units must change at least before another sign is possible: ℓ for ℓ ≥ 0 and −ℓ − 1 below."""
    whole = np.asarray(levels)
    if whole.size == 0 or whole.dtype.kind != "i":
        raise TypeError(f"a test of stability needs at least one level, and whole ones; got {whole.dtype}")
    return int(np.where(whole >= 0, whole, -whole - 1).min())


def released_above(threshold: int, noisy: int, levels: IntArray, word: str) -> Released:
    """The outcome if the noisy distance is above the threshold, otherwise nothing but that distance."""
    return Released(noisy, np.asarray(levels) >= 0, word) if noisy > threshold else Released(noisy)
