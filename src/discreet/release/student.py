"""Student's distribution for a whole number of degrees of freedom, in closed form: SciPy has it too, and takes a fifth
of a second to import for this alone."""

from __future__ import annotations

import math
from functools import lru_cache


def within(angle: float, freedom: int) -> float:
    """P(|T| ≤ t) for t = √freedom · tan(angle) [Abramowitz and Stegun, 26.7.3 and 26.7.4]."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = cosine if odd else 1.0, 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= cosine**2 * ((2 * k) / (2 * k + 1) if odd else (2 * k - 1) / (2 * k))
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@lru_cache(maxsize=64)
def half_width(freedom: int, level: float) -> float:
    """The t with P(|T| ≤ t) = level."""
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if within(middle, freedom) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(high)
