"""Which families can carry their tables: from sizes, noise and the number of records, none of which is private by then.

A family with more cells than its records can fill takes budget from all others and tells nothing. Give each family a
chain of tables: the column alone, with its smallest parent, with its two smallest, … What the table with j parents adds
is put at h_j nats a record, and noise drowns it as r_j/h_j grows, where

    r_j = ½κ·c_j·c·σ²/n²

is about the KL that noise adds to the margin with j parents: c_j its cells, c those of the table that it is summed out
of, σ² the variance of the noise in a cell of that and n the number of records. What is kept is worth the sum of
h_j/(1 + r_j/h_j) over all families, and σ depends on all of them, since they share one budget.

*The best choice.* At a price λ for a table's claim on the budget (√c, or c^⅔ for Gaussian noise: :mod:`..shares`) each
family has a best chain by itself; going through prices, and taking the total claim from the choice before, gives a
handful of choices, of which we take the one that is worth most; unless all tables in full are worth about as much.

Nothing here reads a row. n is public, a guess, or a noisy count that was paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...domain import Domain
from ...privacy.budget import Budget
from ...privacy.calibration import NoiseChoice, noise_of
from ...privacy.query import Marginals
from ...privacy.unit import PrivacyUnit
from ..shares import allocate
from .families import Array, Families

# Set on random networks of 40 and 100 columns with Dirichlet rows, 3,000 and 10,000 records, at ε = 0.1, 1 and 10.
ALONE, A_PARENT = 0.5, 0.2
"""h_0 and h_j: parts of the logarithm of the column's levels (of the parent's, where those are fewer)."""
OF_COLUMNS, OF_PARENTS = 2.0, 0.1
"""κ for j = 0, which must not suffer, and for more: there most cells hold next to nothing, and cost nothing."""
CLEARLY = 1.01
"""So many times what all families in full are worth another choice has to be. On other networks (log-linear and with
Dirichlet rows) where it was worth less, to leave out parents gained 1 % of the gap to the truth on average and lost up
to a fifth in single ones (49 fits); where it was worth more, the gap was .81 of that in full (105)."""
PRICES = np.concatenate([[np.inf], np.geomspace(10, 1e-6, 50)])
ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Chains:
    """All families with their chains of tables, for a budget."""

    families: Families
    unit: PrivacyUnit
    budget: Budget
    noise: NoiseChoice

    def carried(self, size: float) -> Families:
        """The families as far as so many records carry them."""
        if not self.depth:
            return self.families
        rows = np.arange(len(self.cells))
        kept = np.zeros(len(self.cells), dtype=np.intp)
        best = np.array([len(above) for above in self._order.values()])
        worth = CLEARLY * float(self._worth(float(self._claims[rows, best].sum()), size)[rows, best].sum())
        for price in PRICES:
            for _ in range(ROUNDS):
                values = self._worth(float(self._claims[rows, kept].sum()), size)
                with np.errstate(invalid="ignore"):
                    paid = np.where(self._exists, values - price * (self._claims - self._claims[:, :1]), -np.inf)
                paid[:, 0] = values[:, 0]
                kept, before = np.argmax(paid, axis=1), kept
                if (kept == before).all():
                    break
            found = float(self._worth(float(self._claims[rows, kept].sum()), size)[rows, kept].sum())
            if found > worth:
                best, worth = kept, found
        domain = self.families.domain
        parents = {n: self._order[n][:k] for n, k in zip(domain, best, strict=True)}
        as_drawn = {n: tuple(a for a in above if a in parents[n]) for n, above in self.families.parents.items()}
        return Families(domain, as_drawn, self.families.drawn)

    @cached_property
    def _order(self) -> dict[str, tuple[str, ...]]:
        """The parents of each family, those with fewest levels first."""
        return {n: self.families.by_levels(n) for n in self.families.domain}

    @property
    def depth(self) -> int:
        return max(map(len, self._order.values()))

    @cached_property
    def cells(self) -> Array:
        """By family and number of parents; infinite where there are no so many."""
        domain = self.families.domain
        out = np.full((len(domain), self.depth + 1), np.inf)
        for i, (name, above) in enumerate(self._order.items()):
            out[i, : len(above) + 1] = np.cumprod([float(domain[n].size) for n in (name, *above)])
        return out

    @cached_property
    def _exists(self) -> np.ndarray:
        return np.isfinite(self.cells)

    @cached_property
    def _gains(self) -> Array:
        """h, by family and number of parents."""
        domain = self.families.domain
        out = np.full(self.cells.shape, 1e-9)
        for i, (name, above) in enumerate(self._order.items()):
            own = math.log(domain[name].size)
            out[i, : len(above) + 1] = [ALONE * own, *(A_PARENT * min(own, math.log(domain[a].size)) for a in above)]
        return np.asarray(np.maximum(out, 1e-9))

    @cached_property
    def _calibrated(self) -> tuple[float, float, float]:
        return claim_and_noise(self.families.domain, self.unit, self.budget, self.noise)

    @cached_property
    def _claims(self) -> Array:
        return np.asarray(np.where(self._exists, self.cells, 0.0) ** self._calibrated[0])

    def _worth(self, claims: float, size: float) -> Array:
        """Of each family with each number of parents, where all claims on the budget add up to so much."""
        _, e, scale = self._calibrated
        cells = np.where(self._exists, self.cells, 1.0)
        noise = cells * (scale * (claims / np.where(self._exists, self._claims, 1.0)) ** e / size) ** 2  # c·σ²/n²
        out = np.zeros(cells.shape)
        for j in range(cells.shape[1]):
            h = self._gains[:, j : j + 1]
            r = 0.5 * (OF_PARENTS if j else OF_COLUMNS) * cells[:, j : j + 1] * noise[:, j:]
            out[:, j:] += h / (1 + r / h)
        return out


def claim_and_noise(
    domain: Domain, unit: PrivacyUnit, budget: Budget, noise: NoiseChoice
) -> tuple[float, float, float]:
    """(a, e, K): a table claims c^a, and a share s of the budget leads to noise of deviation K/s^e."""
    found = allocate(Marginals(domain, [(n,) for n in domain]), unit, budget, noise)
    a, e = (0.5, 1.0) if found.noise == "laplace" else (2 / 3, 0.5)
    deviations = [
        noise_of(call).standard_deviation * s**e for call, s in zip(found.plan.calls, found.shares, strict=True)
    ]
    return a, e, float(np.median(deviations))
