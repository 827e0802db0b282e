"""Answers about hardly any record: fewer than the noise of a cell hides. They may rest on what is typical of others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..arguments import shortened

Array = NDArray[np.float64]
FEW = 2.0
"""A condition is rare when it has fewer records than this many standard deviations of noise in a cell."""


def rare_rows(behind: Array, deviation: float) -> NDArray[np.bool_]:
    """Rows with so few records behind them; not those with none by the model, which have no answer."""
    return np.asarray((behind < FEW * deviation) & (behind > 0))


def in_words(behind: Array, deviation: float, given: Mapping[str, object], number: str = "") -> str:
    """What to beware of; ``number``: the column that the answer is about, where its number has to be known."""
    rare = rare_rows(behind, deviation)
    if not rare.any():
        return ""
    known = f"a known {number}" if number else ""
    if behind.ndim:
        rows = "every row" if rare.all() else f"{rare.sum()} of {rare.size} rows"
        whom = f"hardly any record{' with ' + known if known else ''}"
        verb = "says" if rare.all() or rare.sum() == 1 else "say"
        about, answer = f"{rows} {verb} something of {whom} (one of some {behind[rare].min():.2g})", "the answer there"
    else:
        what = " and ".join(filter(None, [shortened(dict(given)) if given else "", known]))
        about, answer = f"only some {float(behind):.2g} records have {what}", "the answer"
    return (
        f"{about}, and noise hides {deviation:.2g} in a cell: {answer} may rest on what is typical of other rows, and "
        "the interval may be too narrow"
    )
