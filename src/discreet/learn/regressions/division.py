"""How a budget is divided among the means of all columns, the regressions, and the energy of the field that they make.

Means come first: independent columns would spend everything on them, and a field whose means are worse is worse in
every table. So they get the least part of :data:`MEANS` with which their expected error, as a distance in total
variation, is within :data:`BESIDES` of what the whole budget would buy. What is left is of use only if a selection can
tell a correlation of :data:`TOLD` from none; otherwise no regression is run, and the means get everything. The less can
be told, the narrower is the ball in which the regressions look: a few steps in a wide one end far from where they
began, wherever that is.

All of it follows from columns, unit, budget and a number of records that is public or noisy: it leaks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...privacy.budget import Budget
from ...privacy.query import Marginals, Query
from ...privacy.requests import Measure
from ...privacy.unit import PrivacyUnit
from ..shares import Allocation, allocate
from .descent import Descent

MEANS = (25, 40, 60, 80, 90)
"""Parts of the budget, in percent, that the means may get."""
BESIDES, OF_SPINS = 0.002, 0.006
"""In general, and where all columns have two levels. With 0.006, pairs of columns of 18 tables (latent classes, latent
traits, trees; 9 to 18 columns, n·ε from 1,500 to 4,500) are off by .77 times what columns alone are, at worst 1.13
times; with 0.002, .85 and 1.04 times. On 7 tables without any interaction they are then off by .007 to .009 more than
columns alone (up to .004). With more levels, more than 0.002 gained nothing (19 networks)."""
TOLD = 0.7
"""Above most correlations that tables have: regressions select many, and the energy drops what they found in vain. On
ten tables of latent classes, latent traits and trees (six runs at each of seven budgets) they won against columns
alone wherever they told correlations from less than 0.75 on, and lost from 1.1 on."""
STEPS, ENERGY = 65, 10
"""How the rest is divided. This and the numbers above were chosen by few runs on 12 columns of latent classes and of
latent traits, on random networks and on pairwise fields of 8 to 10 columns; none of them was swept."""
MIDDLE = 0.06  # a correlation whose ball is about 1 wide: in that one is counted how many can be told
NARROW = 0.25
"""The width of the ball times √c, where selections tell correlations from c on."""


@dataclass(frozen=True)
class Rest:
    """What is left for the regressions and their energy."""

    descent: Descent
    steps: Budget
    energy: Budget


@dataclass(frozen=True)
class Division:
    """The question for the means, and the rest, if there is one. ``why``: in words."""

    means: Measure
    why: str
    rest: Rest | None = None


def divided(
    rest: Budget, unit: PrivacyUnit, means: Query, records: float, descent_for: Callable[[float], Descent]
) -> Division:
    """For so many records. ``descent_for``: the regressions, where selections tell correlations from this one on. A
    number of steps that was given is run, whatever the records carry."""
    records = max(records, 1.0)
    columns, besides = len(means.domain), OF_SPINS if max(means.domain.shape) == 2 else BESIDES

    def measured(share: Budget) -> tuple[Measure, float]:
        found = allocate(means, unit, share)
        return Measure(share, means, found.noise, found.weights), distance(found, columns, records)

    # Whole tables, which tell the number of records as well as the noisy count does, or better.
    tables = Marginals(means.domain, [(name,) for name in means.domain.names])
    found = allocate(tables, unit, rest)
    alone = Measure(rest, tables, found.noise, found.weights)
    best = measured(rest)[1]
    enough = [part for part in MEANS if measured(rest.split([part, 100 - part])[0])[1] <= best + besides]
    regressions = descent_for(MIDDLE)
    if not enough and regressions.steps is None:
        return Division(
            alone, f"columns alone get it all: with less they would be off by more than {best + besides:.2g}"
        )
    part = min(enough, default=MEANS[-1])
    for_means, others = rest.split([part, 100 - part])
    for_steps, for_energy = others.split([STEPS, ENERGY])
    least = regressions.told(records, for_steps)
    if least > TOLD and regressions.steps is None:
        so = "nothing" if least > 1 else f"correlations from {least:.2g} on"
        return Division(alone, f"columns alone get it all: with {100 - part} % the regressions would tell {so}")
    request, error = measured(for_means)
    why = f"{part} % buys means off by {error:.1g}, and the rest tells correlations from {least:.1g} on"
    return Division(request, why, Rest(descent_for(least), for_steps, for_energy))


def distance(allocation: Allocation, columns: int, records: float) -> float:
    """The expected distance of a column from its records, in total variation."""
    return sum(allocation.expected_errors) / columns / (2 * records)


def width_for(least: float, narrowest: float, widest: float) -> float:
    """λ where selections tell correlations from this one on."""
    return min(max(NARROW / math.sqrt(max(least, 1e-9)), narrowest), widest)
