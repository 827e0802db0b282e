"""Answers about hardly any record: fewer than the noise of a cell hides. They may rest on what is typical of others.

Refits with fresh noise shrink such rows to what is typical, too, so that they hardly differ, while the records, being
so few, are far from it by chance. ± has room for that: √(q(1 − q)/n) for a cell, with q what the answer says, two
records added that are alike for all cells, and n = b²/(b + σ) for b records behind it by the model and noise of
deviation σ: as the noise hides how many there are, there may be fewer.
"""

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


def chance(estimate: Array, behind: Array, deviation: float) -> Array:
    """How far so few records are from each probability of an answer, where its rows are rare: the first axes of the
    answer are those of ``behind``."""
    rows = behind.reshape(behind.shape + (1,) * (estimate.ndim - behind.ndim))
    n = np.maximum(rows**2 / (rows + deviation), 1.0)
    cells = max(estimate.size // max(behind.size, 1), 2)
    q = (estimate * n + 2 / cells) / (n + 2)
    return np.where(rare_rows(rows, deviation), np.sqrt(q * (1 - q) / n), 0.0)


def in_words(
    behind: Array, deviation: float, given: Mapping[str, object], number: str = "", *, room: bool = False
) -> str:
    """What to beware of; ``number``: the column that the answer is about, where its number has to be known; ``room``:
    whether its ± takes :func:`chance` in."""
    rare = rare_rows(behind, deviation)
    if not rare.any():
        return ""
    known = f"a known {number}" if number else ""
    if behind.ndim:
        rows = "every row" if rare.all() else f"{rare.sum()} of {rare.size} rows"
        whom = f"hardly any record{' with ' + known if known else ''}"
        verb = "says" if rare.all() or rare.sum() == 1 else "say"
        fewest = _about(float(behind[rare].min()))
        about, answer = f"{rows} {verb} something of {whom} (one of some {fewest})", "the answer there"
    else:
        what = " and ".join(filter(None, [shortened(dict(given)) if given else "", known]))
        about, answer = f"only some {_about(float(behind))} records have {what}", "the answer"
    how = "; ± makes room for how so few records scatter" if room else ", and the interval may be too narrow"
    hidden = f"noise hides {_about(deviation)} in a cell"
    return f"{about}, and {hidden}: {answer} may rest on what is typical of other rows{how}"


def _about(number: float) -> str:
    """Two digits, never as a power of ten."""
    return f"{float(f'{number:.2g}'):,.10g}"
