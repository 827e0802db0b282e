"""Settings that are crossed with one another: every two of them together in every run, all together with ``--slow``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import pytest


def every_pair(*settings: Iterable[Any]) -> list[Any]:
    """All combinations, for ``parametrize``. Of these, so few are fast that every two values of two settings are in one
    of them: a mistake that one setting makes, or two together, shows there. The others are marked slow."""
    every = list(product(*map(list, settings)))
    open_pairs = {pair for i in range(len(every)) for pair in _pairs(every, i)}
    fast = set[int]()
    while open_pairs:
        best = max(range(len(every)), key=lambda i: (len(open_pairs & _pairs(every, i)), -i))
        fast.add(best)
        open_pairs -= _pairs(every, best)
    return [pytest.param(*v, marks=[] if i in fast else [pytest.mark.slow]) for i, v in enumerate(every)]


def _pairs(every: list[Any], i: int) -> set[Any]:
    """By where the values stand, as values need not be hashable."""
    names = [next(k for k, other in enumerate(every) if other[at] is every[i][at]) for at in range(len(every[i]))]
    return set(combinations(enumerate(names), 2))
