"""Which tables of given cliques the records can carry: as for the families of a network (:mod:`..networks.carried`).

A table with far more cells than its records can fill takes budget from all others and tells next to nothing. A clique
of k columns may be measured as one table, or as all its tables of j = k − 1, …, 2, 1 columns. What an interaction of a
set S of columns adds is put at h_S nats a record, and about

    r_S = ½·d_S·(κ·c·σ²/n² + 1/n)

is the KL that noise and sampling add to it: d_S its degrees of freedom, c the cells of the table that it is read from,
σ² the variance of the noise in a cell of that and n the number of records. One ridge shrinks all of a clique alike, at
best to h/(h + r) of what was measured, with h = Σ h_S and r = Σ r_S; so the choice is worth h²/(h + r). At a price for
a table's claim on the budget each clique has a best choice by itself; of the choices at several prices, all in full and
columns alone among them, the one that is worth most is taken.

Nothing here reads a row. n is public, a guess, or a noisy count that was paid for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import counted
from ...graph import maximal_cliques
from ...privacy.budget import Budget
from ...privacy.calibration import NoiseChoice
from ...privacy.unit import PrivacyUnit
from ..networks.carried import PRICES, ROUNDS, claim_and_noise

Array = NDArray[np.float64]
ALONE, PAIRS, MORE = 0.5, 0.2, 0.1
"""h of a column and of a pair: parts of the logarithm of the fewer levels; and of all interactions of r + 1 columns in
a clique, as a part of all those of r. These and what follows were set on four random fields with log-linear windows of
3 to 6 columns, ε from 0.1 to 10."""
NOISE = 0.2
"""κ: cells that hold next to nothing are put to zero, and cost less than the others."""
CLEARLY = 1.05
"""So many times what all cliques in full are worth another choice has to be: on 24 other fields, of the same kind and
with Dirichlet tables, choices worth less were up to 3.9 times as far from the truth, the others at most 1.12 times."""
MOST_COLUMNS = 8
"""Of a clique whose tables are all looked at; larger ones stay as they are."""
NAMED = 3


@dataclass(frozen=True, eq=False)
class Tables:
    """The cliques of a field with the tables that may stand for them, for a budget."""

    domain: Domain
    cliques: tuple[Clique, ...]
    unit: PrivacyUnit
    budget: Budget
    noise: NoiseChoice

    def carried(self, size: float) -> tuple[Clique, ...]:
        """The tables to be measured for so many records; none lies in another."""
        size = max(size, 1.0)
        orders = [len(c) for c in self.cliques]
        rows = np.arange(len(orders))
        full = np.array([self._most(c) for c in self.cliques]) - 1
        best, worth = full, -math.inf
        for price in (0.0, *PRICES[::-1]):
            kept = full
            for _ in range(ROUNDS):
                values = self._worth(float(self._claims[rows, kept].sum()), size)
                with np.errstate(invalid="ignore"):
                    paid = np.where(self._exists, values - price * (self._claims - self._claims[:, :1]), -np.inf)
                paid[:, 0] = values[:, 0]
                kept, before = (full if price == 0 else np.argmax(paid, axis=1)), kept
                if (kept == before).all():
                    break
            found = float(self._worth(float(self._claims[rows, kept].sum()), size)[rows, kept].sum())
            if found > worth:
                best, worth = kept, found * CLEARLY if price == 0 else found
        chosen = [
            part
            for clique, j, order in zip(self.cliques, best.tolist(), orders, strict=True)
            for part in ([clique] if order > MOST_COLUMNS else combinations(clique, j + 1))
        ]
        return maximal_cliques(tuple(dict.fromkeys(chosen)))

    def _most(self, clique: Clique) -> int:
        """How many choices there are; a single one, in the first place, for what is too large to be looked at."""
        return 1 if len(clique) > MOST_COLUMNS else len(clique)

    @cached_property
    def _calibrated(self) -> tuple[float, float, float]:
        return claim_and_noise(self.domain, self.unit, self.budget, self.noise)

    @cached_property
    def _shape(self) -> tuple[int, int]:
        return len(self.cliques), max(map(self._most, self.cliques))

    @cached_property
    def _exists(self) -> NDArray[np.bool_]:
        return np.arange(self._shape[1]) < np.array([self._most(c) for c in self.cliques])[:, None]

    def _parts(self, clique: Clique, columns: int) -> list[Clique]:
        return [clique] if len(clique) > MOST_COLUMNS else list(combinations(clique, columns))

    @cached_property
    def _claims(self) -> Array:
        """Of each clique with each choice; a table in several cliques is paid once."""
        a = self._calibrated[0]
        out = np.zeros(self._shape)
        for j in range(self._shape[1]):
            parts = {i: self._parts(c, j + 1) for i, c in enumerate(self.cliques) if self._exists[i, j]}
            times = Counter(part for some in parts.values() for part in some)
            for i, some in parts.items():
                out[i, j] = sum(self.domain.size(part) ** a / times[part] for part in some)
        return out

    @cached_property
    def _interactions(self) -> Array:
        """One row for each interaction of each clique and each choice that has it: clique, choice, h, d, and cells and
        claim of the smallest table that it is read from. What several cliques have is divided among them."""
        domain, a = self.domain, self._calibrated[0]
        sets = Counter(
            S for c in self.cliques if len(c) <= MOST_COLUMNS for r in range(1, len(c) + 1) for S in combinations(c, r)
        )
        out = []
        for i, clique in enumerate(self.cliques):
            k = len(clique)
            if k > MOST_COLUMNS:
                continue
            for S in (S for r in range(1, k + 1) for S in combinations(clique, r)):
                r, levels = len(S), [domain[n].size for n in S]
                part = ALONE if r == 1 else PAIRS * MORE ** (r - 2) * math.comb(k, 2) / math.comb(k, r)
                h, d = part * math.log(min(levels)), math.prod(k - 1 for k in levels)
                rest = sorted(domain[n].size for n in clique if n not in S)
                for j in range(r - 1, k):
                    cells = float(math.prod(levels) * math.prod(rest[: j + 1 - r]))
                    out.append((i, j, h / sets[S], d / sets[S], cells, cells**a))
        return np.array(out, dtype=np.float64).reshape(-1, 6)

    def _worth(self, claims: float, size: float) -> Array:
        """Of each clique with each choice, where all claims on the budget add up to so much."""
        _, e, scale = self._calibrated
        i, j, h, d, cells, claim = self._interactions.T
        r = 0.5 * d * (NOISE * cells * (scale * (claims / claim) ** e / size) ** 2 + 1 / size)
        at = i.astype(int), j.astype(int)
        signal, lost = np.zeros(self._shape), np.zeros(self._shape)
        np.add.at(signal, at, h)
        np.add.at(lost, at, r)
        return np.asarray(signal**2 / np.maximum(signal + lost, 1e-300))


def cut_down(cliques: Sequence[Clique], measured: Sequence[Clique]) -> tuple[Clique, ...]:
    """The cliques as far as these tables hold them: each that lies in none becomes the largest parts that do."""
    sets = [frozenset(c) for c in measured]
    out: dict[Clique, None] = {}
    for clique in cliques:
        parts = {tuple(n for n in clique if n in s) for s in sets} - {()}
        out |= dict.fromkeys(sorted(maximal_cliques(tuple(sorted(parts))), key=lambda c: [clique.index(n) for n in c]))
    return tuple(out)


def left_out(cliques: Sequence[Clique], tables: Sequence[Clique]) -> tuple[Clique, ...]:
    """The cliques that no table holds."""
    sets = [frozenset(t) for t in tables]
    return tuple(c for c in cliques if not any(s.issuperset(c) for s in sets))


def in_words(domain: Domain, cliques: Sequence[Clique], tables: Sequence[Clique]) -> tuple[str, ...]:
    """What is measured instead of cliques that are left out."""
    gone = left_out(cliques, tables)
    if not gone:
        return ()
    parts = []
    for clique in gone[:NAMED]:
        instead = cut_down([clique], tables)
        most = max(map(len, instead))
        shown = "its columns alone" if most == 1 else f"its tables of {counted(most, 'column')} at most"
        parts.append(f"{' × '.join(clique)} ({counted(domain.size(clique), 'cell')}): {shown}")
    more = f"; and {len(gone) - NAMED:,} more" if len(gone) > NAMED else ""
    return (f"Too large for the data, so smaller tables are measured instead: {'; '.join(parts)}{more}.",)
