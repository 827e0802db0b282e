"""Which columns were measured together, and how far answers about others may be off when the graph was found.

An answer about columns that are in one measured table is as good as that table: noise intervals cover what the records
say. An answer about others rests on the graph, and where an edge is missing it is confidently wrong: intervals for
privacy noise at 90 % covered 53 to 81 % of what the records say of such pairs (asia, sachs and random networks, ε = 1).

A certificate of fit says how far a pair's table is from that of the records in total variation, t. Where the single
columns are right, the differences of cells add up to 0 in every row and column of the table, so that none exceeds t/2:
a cell that is d off has others in its row, its column and beside those to make up for it, Σ|differences| ≥ 4d. So the ±
is at least half the estimate of t. Where there is no figure of the pair, it is at least what the mean of all pairs does
not exceed at 95 %. For the same pairs the intervals then cover 88 to 92 % (figures of all pairs) and 94 to 99 % (the
mean alone, under pure DP); of pairs that were measured together 88 to 92 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from .certificate import Certificate, Fit

_MOST_NAMED = 2


@dataclass(frozen=True, eq=False)
class Together:
    """The measured tables of a release whose graph was found, and its certificate, if there is one."""

    measured: tuple[frozenset[str], ...]
    certificate: Certificate | None = None

    def beyond_noise(self, names: Iterable[str]) -> tuple[float, str]:
        """By how much at least an answer about these columns may be off, and why, in words; ``(0, "")`` where they were
        measured together."""
        wanted = set(names)
        if len(wanted) < 2 or any(wanted <= table for table in self.measured):
            return 0.0, ""
        pairs = [p for p in itertools.combinations(sorted(wanted), 2) if not any(set(p) <= t for t in self.measured)]
        # Where each pair was, but not all of them at once, no pair is to be named.
        apart = _listed([" and ".join(p) for p in pairs]) or " and ".join(sorted(wanted))
        rests = f"{apart} were not measured together, so the answer rests on the graph that was found"
        if self.certificate is None:
            return 0.0, f"{rests}; ± covers noise alone, and a missing edge can move the answer by more"
        own = [(p, self._fits[frozenset(p)]) for p in pairs if frozenset(p) in self._fits]
        if own and len(own) == len(pairs):
            pair, fit = max(own, key=lambda entry: entry[1].estimate)
            said = f"{' × '.join(pair)} is off by about {fit} in total variation"
            return fit.estimate / 2, f"{rests}; by the certificate {said}"
        bound = self.certificate.mean_at_most()
        said = f"tables like this are off by at most {bound:.2g} on average"
        return bound, f"{rests}; by the certificate {said}"

    @cached_property
    def _fits(self) -> dict[frozenset[str], Fit]:
        assert self.certificate is not None
        return {frozenset(clique): fit for clique, fit in self.certificate.fits().items()}


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    if more > 1:
        return f"{', '.join(names[:_MOST_NAMED])} and {more} more"
    return ", ".join(names)
