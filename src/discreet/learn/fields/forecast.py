"""How far pairs of the default field will be from the records, before a row is read: from public things alone.

What :mod:`.growth` says of a batch is turned round. A table t of c_t cells that is measured beside others, with the
shares for which the sum of errors is least, is wrong by y_t·(Σ y)^½·Δ/μ records (Gaussian noise), or y_t·Σ y·Δ/ε
(Laplace), y as there. Which tables will be measured nobody knows; we take all columns and TABLES pairs of the usual
size for each column. A table that would be worse with its noise than without is not measured, and cells that noise
would hide are shrunk: the larger the noise, the less of it there is in the model. What comes in its place, what the
model misses, only the records know. So the total variation of a pair is taken to be

    LEFT·ln(1 + x/LEFT),  x = FACTOR·(its error in records)/(2N):

the noise where that is small, and growing with its logarithm only where it is large. The two numbers of each kind of
noise were set on 25 tables of R packages (1,500 to 73,000 records, 6 to 20 columns of up to 64 levels, ε from 0.3 to
3). On 25 others it was within a factor WITHIN in nine of ten cases for Gaussian noise, in five of six for Laplace.
Even who knew how strongly the records' columns depend on each other would not be much nearer: the deviation of the
logarithm falls from .27 to .25. docs/evaluate.md has what it is on other data.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from ...domain import Clique, Domain
from ...errors import BudgetError
from ...privacy.budget import ApproxDP, Budget, PureDP
from ...privacy.unit import PrivacyUnit
from .growth import Prices
from .purpose import Purpose

TABLES = 3.0
LEFT, FACTOR = 0.07, 0.75
LEFT_PURE, FACTOR_PURE = 0.042, 0.94
WITHIN = 1.5
MOST_PAIRS = 20_000


def pair_error(domain: Domain, unit: PrivacyUnit, budget: Budget, records: float, purpose: Purpose) -> float:
    """The mean total variation that pairs of columns will about have, with a budget in the notion of its steps."""
    if isinstance(budget, ApproxDP):
        raise BudgetError(f"{budget} is too small or too large for Gaussian noise; take ε between 1e-6 and 700")
    prices = Prices(domain, unit, budget, purpose)
    pairs: list[Clique] = [*combinations(domain.names, 2)] or [domain.names]
    pairs = pairs[:: -(-len(pairs) // MOST_PAIRS)]
    parts = np.array([prices.part(pair) for pair in pairs])
    whole = sum(prices.part((name,)) for name in domain.names) + TABLES * len(domain) * float(parts.mean())
    # `cost` is (Σy)^{3/2}·Δ/μ or (Σy)²·Δ/ε: a table has its part of it.
    wrong = parts / whole * prices.cost(whole)
    left, factor = (LEFT_PURE, FACTOR_PURE) if isinstance(budget, PureDP) else (LEFT, FACTOR)
    x = factor * wrong / (2 * records)
    return min(1.0, float(np.mean([left * math.log1p(value / left) for value in x.tolist()])))
