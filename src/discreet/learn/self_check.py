"""Does a model explain what it was learned from? The distance of its own sums from the noisy ones, in units of noise.

Post-processing of what was released: it costs nothing. For every noisy sum y with the model's expectation e,

    r² = (y − e)² / (σ² + s²),

where σ² is the variance of the privacy noise (public) and s² what the records themselves would scatter by, were they
drawn from the model: n·p(1 − p) for a count, n(1 − μ²) for a parity, at most e times the count for the e moves of a
window, and the noise of n̂ besides. Of a model that is
right the mean of r² over a table of c sums is about 1, or less where the table was fitted. It exceeds

    1 + √(2κu/c) + b(u)/c,   u = ln(1000·tables),

with probability below 1/1000 over all tables: κ = 2, b = 2u for Gaussian noise, by Laurent and Massart (2000), Lemma 1;
κ = 5, b = u²/2 for Laplace noise, the variance of r² and its e^{−u}-quantile. The check fails beyond that, and beyond
``MOST`` in any case, since what is not larger than noise does no harm.

It speaks of sums that were measured. What a model says of others, no check on a release can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DiscreetError
from ..graph import DEFAULT_MEMORY_LIMIT
from ..measurement import Measurement, Measurements
from ..models.base import Model
from ..models.marginals import marginals
from ..privacy.queries.chains import MOVES
from .consistency import total_and_variance
from .spins.enumeration import MOST_COLUMNS

Array = NDArray[np.float64]
Expected = Callable[[Model], Sequence[NDArray[Any]]]
MOST = 1.5
"""Mean squares up to this are no failure, however many sums make them significant."""
CHANCE = 1000
"""A right model fails once in so many times, at most."""
FEWEST, NEARLY_ALL = 3, 0.98
"""Columns, and the part of the records in one level of each, that are a reason to ask."""
UNLIKELY = (
    "nearly all records are absent or in one level, in every column, as if rows were not written as the first line or "
    "the schema has it: did you run `discreet schema check`?"
)
UNCHECKED = "its method measures no tables that it could be held against"
UNCOMPUTED = "with so many columns or such tables what it expects of its own sums cannot be computed exactly"


@dataclass(frozen=True)
class SelfCheck:
    """How far a model is from its own noisy sums."""

    misfit: float
    """The root of the mean r² over all sums: about 1 is what noise leaves, less where the model was fitted to it."""
    worst: float
    """The same of the table that is missed most."""
    table: str
    """Which one that is."""
    passed: bool


def self_check(model: Model, measurements: Measurements, expected: Expected | None = None) -> SelfCheck | None:
    """Hold a model against noisy sums; None where that cannot be told: without noise, or where answers are approximate.

    ``expected`` says what a model expects of sums that are no contingency tables (:meth:`Learner.expected`).
    """
    if model.forecast.bytes > DEFAULT_MEMORY_LIMIT:
        return None
    tables = [m for m in measurements if m.told_of is not None and not m.proportions]
    sums = [None] * len(measurements) if expected is None else expected(model)
    noisy = [(m, e) for m, e in zip(measurements, sums, strict=True) if m.noise.variance > 0 and m.clique != ()]
    if not tables or any(m.told_of is None and (e is None or not _is_exact(m, model)) for m, e in noisy):
        return None
    release = measurements.release
    size, doubt = total_and_variance(Measurements(tables, release))
    size = max(size, 1.0)
    rows = float((release.get("unit") or {}).get("max_rows", 1))  # of one person, which may all be alike
    asked = list(dict.fromkeys(m.told_of for m, _ in noisy if m.told_of is not None))
    joints = dict(zip(asked, marginals(model, asked)[0], strict=True))
    found = []
    for m, e in noisy:
        if m.told_of is not None:
            joint = joints[m.told_of]
            share = m.of_table(joint)
            scatter = (joint if m.clique is not None else _squared(joint)) - share**2
        else:
            share = np.asarray(e, dtype=np.float64) / size
            # A record adds up to e moves to a cell: its variance is at most e times what is expected of it.
            scatter = int(m.about[MOVES]) * share if MOVES in m.about else 1 - share**2
        variance = m.noise.variance * float(m.grid) ** 2 + rows * size * np.clip(scatter, 0, None) + doubt * share**2
        r = (np.asarray(m.values, dtype=np.float64) - size * share) ** 2 / variance
        found.append((m.label, r.reshape(-1), m.noise.kind == "laplace"))
    found = [entry for entry in found if entry[1].size]
    if not found:
        return None
    everything = np.concatenate([r for _, r, _ in found])
    laplace = any(is_laplace for _, _, is_laplace in found)
    label, worst, _ = max(found, key=lambda entry: entry[1].mean() / limit(entry[1].size, len(found), entry[2]))
    passed = everything.mean() <= limit(everything.size, 1, laplace) and all(
        r.mean() <= limit(r.size, len(found), is_laplace) for _, r, is_laplace in found
    )
    return SelfCheck(math.sqrt(everything.mean()), math.sqrt(worst.mean()), label, bool(passed))


def _squared(joint: NDArray[Any]) -> NDArray[Any]:
    """The mean square of what a record adds to each cell of an interaction: (I − 11ᵀ/k), squared entry by entry, is
    (1 − 2/k)·I + 11ᵀ/k²."""
    for axis, k in enumerate(joint.shape):
        joint = (1 - 2 / k) * joint + joint.sum(axis=axis, keepdims=True) / k**2
    return joint


def limit(cells: int, tables: int, laplace: bool) -> float:
    """Of the mean r² over so many sums, where it is one of so many tables."""
    u = math.log(CHANCE * tables)
    spread, tail = (5.0, u**2 / 2) if laplace else (2.0, 2 * u)
    return max(MOST, 1 + math.sqrt(2 * spread * u / cells) + tail / cells)


def with_self_check(model: Any, measurements: Measurements, expected: Expected | None = None) -> Any:
    """The same model with ``misfit`` on its card; and where the check fails with a caution, which every answer says."""
    if not isinstance(model, Model) or model.card is None:
        return model
    try:
        found = self_check(model, measurements, expected)
    except (DiscreetError, ArithmeticError):  # a check must not lose what was paid for
        found = None
    if found is None:
        noisy = any(m.noise.variance > 0 for m in measurements)
        return model.with_card({"unchecked": UNCOMPUTED, **model.card}) if noisy else model
    card = {**model.card, "misfit": round(found.misfit, 3)}
    if not found.passed:
        card.setdefault("caution", _caution(found))
    if _is_one_level_everywhere(model):
        card.setdefault("caution", UNLIKELY)
    return model.with_card(card)


def _is_one_level_everywhere(model: Model) -> bool:
    """Whether nearly all records are in one level, in every column: seldom true of people, and usual where rows are
    not written as their first line or the schema has it."""
    columns = [(name,) for name in model.domain.names]
    return len(columns) >= FEWEST and all(table.max() >= NEARLY_ALL for table in marginals(model, columns)[0])


def without_self_check(model: Any) -> Any:
    """A model whose method measured no sums, with a word about that on its card."""
    if not isinstance(model, Model) or model.card is None:
        return model
    return model.with_card({"unchecked": UNCHECKED, **model.card})


def _caution(found: SelfCheck) -> str:
    return (
        f"the model misses its own tables, {found.table} most of all, by {found.worst:.2g} times what noise leaves: ± "
        "covers the noise and not this. Try another family, or more tables or terms in this one"
    )


def _is_exact(m: Measurement, model: Model) -> bool:
    """Whether what the model expects of these sums is known, and no estimate from samples."""
    return MOVES in m.about or ("parities" in m.about and len(model.domain) <= MOST_COLUMNS)
