"""Private estimation of binary t-wise Markov random fields: noisy parities and maximum likelihood, or regressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique, Domain
from ...errors import CostError, InputError
from ...measurement import Measurement, Measurements
from ...models.binary import BinaryMRF
from ...models.ising import check_binary
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.queries.parities import ParitySums, all_monomials
from ...privacy.unit import PrivacyUnit
from ..planned_sums import PlannedSums, measuring, release_card, selecting, settled_later
from ..procedure import Plan
from ..query_release import Parities, release_gaussian, release_multiplicative_weights, release_perturbed_leader
from ..regressions.binary import averaged_derivatives, features_of, maximal_first, regression_coefficients
from ..regressions.frank_wolfe import Variant, selection_of
from ..regressions.ising import DEFAULT_WIDTH, regress_spins
from .enumeration import MOST_COLUMNS
from .learning import check_choices, frank_wolfe_card, planned_size
from .measuring import size_and_rest
from .parity_moments import ParityFit, ParityMoments, expected_parities, fit_parities
from .parity_support import candidates_again, standing_out

Method = Literal["auto", "moments", "frank_wolfe", "maximal_monomials"]
QueryRelease = Literal["gaussian", "multiplicative_weights", "perturbed_leader"]
METHODS = ("auto", "moments", "frank_wolfe", "maximal_monomials")
RELEASES = {
    "gaussian": release_gaussian,
    "multiplicative_weights": release_multiplicative_weights,
    "perturbed_leader": release_perturbed_leader,
}
MOST_PARITIES = 3000  # up to 20 columns: Newton's method solves a system of this size at every step
MOST_WIDE_PARITIES = 40_000  # beyond: only those that stand out are fitted
AGAIN, ALL = "chosen parities", "parities"


@dataclass(frozen=True)
class BinaryMRFLearner:
    """Learn the coefficients h̄(I), |I| ≤ t, of a binary Markov random field.

    Parameters
    ----------
    order:
        t, the largest number of columns that interact.
    method:
        ``"moments"`` (what ``"auto"`` takes while it fits): all noisy parities up to order t, then those that stand
        out again, then maximum likelihood: by enumeration up to 20 columns, beyond on the junction tree or by Gibbs
        chains, which the card says. ``"frank_wolfe"``: [001] Algorithm 4 (ℓ1). ``"maximal_monomials"``: [001]
        Algorithm 5 (ℓ∞ on maximal monomials), corrected.
    max_terms, min_weight:
        Public bounds on the number of interactions of two and more columns, and on the least |h̄(I)| of one. With
        ``min_weight`` Algorithm 5 returns a field with the maximal monomials it finds; without, its ū(I) for every I,
        of which only those of maximal monomials estimate h̄(I).
    width, variant, steps:
        Of Frank–Wolfe: λ ≥ max_i ‖∂_i h‖₁ (2 by default), and as for :class:`IsingLearner`.
    release, halves:
        Of Algorithm 5: how its parities are released (:mod:`discreet.learn.query_release`), and whether regressions and
        parities use two halves of the records, each with the whole budget (as in the paper, but by secret coins), or
        all records, each with half the budget (the default, and better).
    random_state:
        Of post-processing: Gibbs chains, and the data player of ``"perturbed_leader"``.
    """

    order: int
    method: Method = "auto"
    max_terms: int | None = None
    min_weight: float = 0.0
    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None
    release: QueryRelease = "gaussian"
    halves: bool = False
    random_state: int = 0

    def __post_init__(self) -> None:
        if type(self.order) is not int or self.order < 1:
            raise InputError(f"order must be a whole number of at least 1, got {self.order!r}")
        weight, most = self.min_weight, self.max_terms
        check_choices(
            self.method, self.variant, self.steps, self.width, weight, most=most, most_name="max_terms", methods=METHODS
        )
        if self.release not in RELEASES:
            raise InputError(f"release must be one of {', '.join(map(repr, RELEASES))}, got {self.release!r}")

    def _method(self, domain: Domain) -> str:
        check_binary(domain, "a binary Markov random field")
        p = len(domain)
        parities = sum(math.comb(p, k) for k in range(1, self._order(domain) + 1))
        limit = MOST_PARITIES if p <= MOST_COLUMNS else MOST_WIDE_PARITIES
        if self.method == "moments" and parities > limit:
            raise CostError(
                f"{parities:,} parities of {p} columns are too many for maximum likelihood, which takes up to "
                f"{MOST_PARITIES:,} for {MOST_COLUMNS} columns and {MOST_WIDE_PARITIES:,} beyond; use "
                "method='frank_wolfe', a lower order, or fewer columns"
            )
        if self.method == "auto":
            return "moments" if parities <= limit else "frank_wolfe"
        if self.method == "maximal_monomials" and self.release == "multiplicative_weights" and self.order > 1:
            Parities(domain, all_monomials(domain, 1)).check_enumerable()
        return self.method

    def _order(self, domain: Domain) -> int:
        return min(self.order, len(domain))

    def plan(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        approximate_size: float | None = None,
        *,
        size_is_public: bool = False,
    ) -> Plan:
        """What will be asked, before a row is read."""
        method = self._method(domain)
        notes: tuple[str, ...] = ()
        if method == "maximal_monomials":
            entries, notes = (
                self._planned_algorithm_5(domain, budget),
                ("Each step pays for a noisy number of records itself.",),
            )
            return Plan(
                f"{method}, binary fields of order {self.order}", unit, budget, entries, notes, approximate_size
            )
        planned, rest, whole = planned_size(domain, unit, budget, size_is_public=size_is_public)
        if method == "moments":
            query = self._parities(domain)
            half = rest.split([1, 1])[0]
            noise = noise_of(plan_noise(query, unit, half).calls[0])
            cells = query.parts[0].cells
            planned.append(PlannedSums((), cells, whole / 2, noise, name=f"all parities up to order {self.order}"))
            planned.append(settled_later("those that stand out, again", whole / 2, measuring(rest)))
            if len(domain) > MOST_COLUMNS:
                notes = (f"{len(domain)} columns cannot be enumerated: the fit is on a junction tree, or approximate.",)
        else:
            planned.append(self._planned_regressions(domain, rest, whole))
        what = f"{method}, binary fields of order {self.order}"
        return Plan(what, unit, budget, tuple(planned), notes, approximate_size)

    def _planned_regressions(self, domain: Domain, budget: Budget, share: float, where: str = "") -> PlannedSums:
        name = f"steps of {len(domain)} regressions on parities up to order {self.order - 1}{where}"
        return settled_later(name, share, selecting(budget, selection_of(self.variant)))

    def _planned_algorithm_5(self, domain: Domain, budget: Budget) -> tuple[PlannedSums, ...]:
        share = 1.0 if self.halves else 0.5
        where = " (on one half of the records)" if self.halves else ""
        parities = f"{self.release} release of all parities up to order {self.order - 1}{where}"
        how = {"gaussian": [measuring(budget)], "perturbed_leader": [selecting(budget)]}
        both = [selecting(budget), measuring(budget)]  # a round of multiplicative weights selects, then measures
        return (
            self._planned_regressions(domain, budget, share, where),
            settled_later(parities, share, *how.get(self.release, both)),
        )

    def fit(self, curator: Curator, share: Budget | None = None) -> BinaryMRF:
        """Ask the curator with ``share`` (all that remains, by default), then estimate."""
        method = self._method(curator.domain)
        budget = share or curator.remaining or curator.budget
        if method == "moments":
            return self.estimate(self.measure(curator, budget), curator.domain)
        return self._algorithm_4(curator, budget) if method == "frank_wolfe" else self._algorithm_5(curator, budget)

    # -- moments -------------------------------------------------------------------------------------------------------

    def _parities(self, domain: Domain) -> ParitySums:
        return ParitySums(domain, all_monomials(domain, self._order(domain)), label=ALL)

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """The number of records unless it is public, all parities, and those that stand out again: what
        :meth:`estimate` needs, and public. Not for Algorithms 4 and 5, which select instead."""
        domain = curator.domain
        if self._method(domain) != "moments":
            raise InputError(
                f"{self._method(domain)!r} selects vertices and measures no parities: use fit, or 'moments'"
            )
        budget = share or curator.remaining or curator.budget
        for_size, rest = size_and_rest(budget, size_is_public=curator.public_size is not None)
        size = curator.size(for_size)
        first, second = rest.split([1, 1])
        everything = self._parities(domain)
        measured = curator.measure(everything, first)[0]
        moments = ParityMoments.of(domain, _records(size), [(everything.monomials, measured)])
        bounded = self.max_terms is not None or self.min_weight > 0
        chosen, dense = candidates_again(moments, bounded=bounded, random_state=self.random_state)
        again = curator.measure(ParitySums(domain, chosen, label=AGAIN), second)[0]
        facts = {"order": self._order(domain), "again": [list(I) for I in chosen], "dense": dense}
        return Measurements([size, measured, again], {**curator.statement(), "parities": facts})

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BinaryMRF:
        """The field from what :meth:`measure` released; post-processing only."""
        columns = domain or measurements.domain
        size, sums, dense = _read(measurements, columns)
        moments = ParityMoments.of(columns, _records(size), sums)
        fit = self._fit(moments, list(sums[1][0]), dense)
        release = {key: value for key, value in measurements.release.items() if key != "parities"}
        card = release_card(release, list(measurements), method="moments", estimation=fit.how, terms=len(fit.monomials))
        return BinaryMRF(fit.coefficients, columns, card)

    def _fit(self, moments: ParityMoments, chosen: list[Clique], dense: bool) -> ParityFit:
        fit = fit_parities(moments.only(chosen), None, self.random_state)
        if dense:
            return fit
        kept = standing_out(fit, len(moments.monomials), self.max_terms, self.min_weight)
        if kept == list(fit.monomials):
            return fit
        return fit_parities(moments.only(kept), fit.coefficients, self.random_state)

    @staticmethod
    def expected(measurements: Measurements) -> Callable[[Any], list[NDArray[np.float64]]]:
        """What a field expects of these measurements: the ``expected`` of :func:`noise_intervals`."""
        columns = measurements.domain
        size, sums, _ = _read(measurements, columns)
        n = _records(size)

        def sums_of(model: BinaryMRF) -> list[NDArray[np.float64]]:
            wide = len(columns) > MOST_COLUMNS
            records = np.asarray(model.sample(20_000, 0).codes, dtype=np.int64) if wide else None
            c = np.array(list(model.coefficients.values()))
            fit = ParityFit(tuple(model.coefficients), c, np.zeros_like(c), "", records)
            return [np.array(n), *(n * expected_parities(fit, columns, monomials)[0] for monomials, _ in sums)]

        return sums_of

    # -- regressions ---------------------------------------------------------------------------------------------------

    def _algorithm_4(self, curator: Curator, budget: Budget) -> BinaryMRF:
        domain = curator.domain
        width = self.width or DEFAULT_WIDTH
        monomials = features_of(domain, self._order(domain))
        done = regress_spins(curator, budget, monomials, width, self.variant, self.steps)
        coefficients = regression_coefficients(domain, monomials, done.state)
        kept = {I: v for I, v in coefficients.items() if abs(v) >= self.min_weight / 2}
        card = frank_wolfe_card(curator, done, f"frank_wolfe, {self.variant}", width)
        return BinaryMRF(self._largest(kept), domain, card)

    def _algorithm_5(self, curator: Curator, budget: Budget) -> BinaryMRF:
        """Privacy: with all records, the two halves of the budget compose; with two halves of the records, each unit
        is in one of them, by its own coin, and each may cost the whole (:meth:`Curator.partition`)."""
        domain = curator.domain
        order = self._order(domain)
        width = self.width or DEFAULT_WIDTH
        monomials = features_of(domain, order)
        shares: tuple[Budget, ...]
        if self.halves:
            asked, shares = curator.partition(2, budget), (budget, budget)
        else:
            asked, shares = (curator, curator), tuple(budget.split([1, 1]))
        done = regress_spins(asked[0], shares[0], monomials, width, self.variant, self.steps)
        parities: dict[Clique, float] = {}
        if order > 1:
            workload = Parities(domain, monomials[:-1])
            options = {"random_state": self.random_state} if self.release == "perturbed_leader" else {}
            released = RELEASES[self.release](asked[1], workload, shares[1], **options)
            parities = dict(zip(workload.monomials, map(float, released.answers), strict=True))
        u = averaged_derivatives(domain, monomials, done.state, parities)
        if self.min_weight > 0:
            u = maximal_first(u, regression_coefficients(domain, monomials, done.state), self.min_weight)
        card = release_card(
            curator.statement(),
            [] if done.size is None else [done.size],
            method=f"maximal_monomials, {self.variant}, {self.release} parities",
            frank_wolfe_steps=done.steps,
            width=width,
            halves=self.halves,
            coefficients="a field" if self.min_weight > 0 else "only those of maximal monomials estimate the field's",
        )
        return BinaryMRF(self._largest(u), domain, card)

    def _largest(self, coefficients: dict[Clique, float]) -> dict[Clique, float]:
        """All single columns, and the ``max_terms`` largest of the others."""
        if self.max_terms is None:
            return coefficients
        joint = sorted((I for I in coefficients if len(I) > 1), key=lambda I: -abs(coefficients[I]))
        kept = set(joint[: self.max_terms])
        return {I: v for I, v in coefficients.items() if len(I) == 1 or I in kept}


def _records(size: Measurement) -> float:
    return max(float(size.values), 1.0)


def _read(
    measurements: Measurements, domain: Domain
) -> tuple[Measurement, list[tuple[tuple[Clique, ...], Measurement]], bool]:
    """The number of records, and the sums with the monomials that they are of."""
    facts = measurements.release.get("parities")
    by_label = {m.label: m for m in measurements if m.clique is None}
    size = next((m for m in measurements if m.clique == ()), None)
    if not isinstance(facts, dict) or size is None or not {ALL, AGAIN} <= set(by_label):
        raise InputError("these measurements hold no parities; make them with BinaryMRFLearner(order).measure(curator)")
    everything = all_monomials(domain, int(facts["order"]))
    again = tuple(domain.clique(I) for I in facts["again"])
    sums = [(everything, by_label[ALL]), (again, by_label[AGAIN])]
    for monomials, measured in sums:
        if measured.counts.shape != (len(monomials),):
            raise InputError(f"{measured.label!r} should have {len(monomials)} sums, but has {measured.counts.size}")
    return size, sums, bool(facts["dense"])
