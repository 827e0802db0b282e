"""Settings that are crossed with one another: every two values of two of them together in every run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations


def covering(settings: Sequence[tuple[int, ...]]) -> set[int]:
    """So few of these, by their places, that every two values which are together in any of them are together in one of
    those: what one value does wrong, or two together, shows there."""
    pairs = [set(combinations(enumerate(values), 2)) or {values} for values in settings]
    still, chosen = set().union(*pairs), set[int]()
    while still:
        best = max(range(len(pairs)), key=lambda i: (len(still & pairs[i]), -i))
        chosen.add(best)
        still -= pairs[best]
    return chosen
