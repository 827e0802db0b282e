"""Which columns were measured together, and how far answers about others may be off.

An answer about columns that are in one measured table is as good as that table: noise intervals cover what the records
say. An answer about others rests on the graph, and where an edge is missing it is confidently wrong: intervals for
privacy noise at 90 % covered 53 to 81 % of what the records say of such pairs (asia, sachs and random networks, ε = 1).
A graph that was given is as good as whoever gave it. Where it is right, intervals that make room for chance
(:mod:`.scatter`) cover 94 % of the cells of such pairs (eight generated networks); of a field on the edges of these
84 %, and of asia 60 %, as its cliques leave out an effect of two columns at once.

A certificate of fit says how far a pair's table is from that of the records in total variation, t. Where the single
columns are right, the differences of cells add up to 0 in every row and column of the table, so that none exceeds t/2:
a cell that is d off has others in its row, its column and beside those to make up for it, Σ|differences| ≥ 4d. So the ±
is at least half of t as estimated. Where there is no figure of the pair, it is at least what the mean of all pairs does
not exceed at 95 %. For the same pairs the intervals then cover 88 to 92 % (figures of all pairs) and 94 to 99 % (the
mean alone, under pure DP); of pairs that were measured together 88 to 92 %.

Where noise hides t, its estimate may be 0 and t is not. So t is taken for at least the middle of its interval. On 40
generated networks (9 columns of 2 to 9 levels, 5,000 or 20,000 records, (1, 10⁻⁶), one fit each) intervals for pairs
with an estimate of 0 then cover .91 of 652 cells and .90 of 1,276 conditional probabilities, by the estimate alone .74
and .64; for the other pairs .99, for .96 and .97, with a ± that is 7 to 9 % wider. The upper ends of the intervals
would cover .98 and more of all, with one that is two thirds wider.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist

import numpy as np

from ..learn.spins.measuring import Sums
from ..learn.spins.moments import Moments
from ..learn.spins.old_files import up_to_date
from ..measurement import Measurements
from ..models.base import Model
from .certificate import Certificate, Fit

_MOST_NAMED = 2


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Interactions that a field of spins does without, as their parities did not stand out of the noise.

    Such a parity was measured all the same. It is as far from the model as was seen, or as its noise hides: a cell of
    the pair's table moves by a quarter of that. With this room 90 % intervals cover .92 of cells of such pairs on
    generated latent classes at ε = 1, without it .53 (8 tables; asia .97 and .88, a grid of spins .87 and .83).
    """

    model: Model
    moments: Moments

    @classmethod
    def of(cls, model: Model, measurements: Measurements) -> LeftOut | None:
        """None where no parities were measured."""
        if not any("parities" in m.about for m in measurements) or any(size != 2 for size in model.domain.shape):
            return None
        return cls(model, Sums.among(up_to_date(measurements)).moments)

    def room(self, pair: tuple[str, str], level: float) -> float | None:
        """At least how far off a cell of this pair's table may be; None if its parity was not measured."""
        monomial = next((I for I in (pair, pair[::-1]) if I in self._measured), None)
        if monomial is None:
            return None
        (seen,), (variance,) = self.moments.at([monomial])
        table = self.model.marginal(pair).probabilities
        deviation = float(np.sqrt(variance))
        missed = abs(float(seen - (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0])))
        return NormalDist().inv_cdf((1 + level) / 2) * max(deviation, missed) / 4

    @cached_property
    def _measured(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.moments.joint)


@dataclass(frozen=True, eq=False)
class Together:
    """The measured tables of a release, and its certificate, if there is one."""

    measured: tuple[frozenset[str], ...]
    certificate: Certificate | None = None
    found: bool = True
    """Whether the graph was found privately; otherwise the model's form was given."""
    left_out: LeftOut | None = None
    """Of a field of spins: then ``measured`` are the interactions that it has."""

    def beyond_noise(self, names: Iterable[str], level: float = 0.9) -> tuple[float, str]:
        """By how much at least an answer about these columns may be off, and why, in words; ``(0, "")`` where they were
        measured together."""
        wanted = set(names)
        if len(wanted) < 2 or any(wanted <= table for table in self.measured):
            return 0.0, ""
        pairs = [p for p in combinations(sorted(wanted), 2) if not any(set(p) <= t for t in self.measured)]
        # Where each pair was, but not all of them at once, no pair is to be named.
        apart = _listed([" and ".join(p) for p in pairs]) or " and ".join(sorted(wanted))
        if self.left_out is not None and self.certificate is None and pairs:
            rooms = [self.left_out.room(pair, level) for pair in pairs]
            said = f"{apart} have no interaction of their own in the model, as none stood out of the noise"
            return max((room for room in rooms if room is not None), default=0.0), said
        rests = f"{apart} were not measured together, so the answer rests on {self._ground}"
        if self.found and pairs:
            rests += " (a fit with a --workload spends on what that names)"
        if self.certificate is None:
            return 0.0, f"{rests}; ± covers noise and chance at most, and {self._risk} can move the answer by more"
        own = [(p, self._fits[frozenset(p)]) for p in pairs if frozenset(p) in self._fits]
        if own and len(own) == len(pairs):
            pair, fit = max(own, key=lambda entry: _likely(entry[1]))
            said = f"{' × '.join(pair)} is off by about {fit} in total variation"
            return _likely(fit) / 2, f"{rests}; by the certificate {said}"
        bound = self.certificate.mean_at_most()
        said = f"tables like this are off by at most {bound:.2g} on average"
        return bound, f"{rests}; by the certificate {said}"

    @classmethod
    def of(
        cls, model: Model, measurements: Measurements, certificate: Certificate | None, found: bool
    ) -> Together | None:
        """None where it cannot be told which tables the noisy sums determine."""
        left_out = None if found else LeftOut.of(model, measurements)
        if left_out is not None:
            return cls(tuple(map(frozenset, model.cliques)), certificate, False, left_out)
        tables = tuple({m.columns_told_of for m in measurements if m.told_of})
        known = bool(tables) and (found or all(m.told_of is not None for m in measurements))
        return cls(tables, certificate, found) if known else None

    @property
    def _ground(self) -> str:
        return "the graph that was found" if self.found else "the form that the model was given"

    @property
    def _risk(self) -> str:
        return "a missing edge" if self.found else "what that form leaves out"

    @cached_property
    def _fits(self) -> dict[frozenset[str], Fit]:
        assert self.certificate is not None
        return {frozenset(clique): fit for clique, fit in self.certificate.fits().items()}


def _likely(fit: Fit) -> float:
    """How far off a pair is taken to be: never nearer than the middle of its interval."""
    return max(fit.estimate, (fit.lower + fit.upper) / 2)


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    if more > 1:
        return f"{', '.join(names[:_MOST_NAMED])} and {more} more"
    return ", ".join(names)
