"""[001] Algorithm 5, corrected: the maximal monomials of a binary field, by regressions averaged over parities.

Algorithm 4 reads h̄(I ∪ {i}) off the regression of column i. Algorithm 5 averages the regression's derivatives over the
records, by way of released parities: ∂_I v_i(x) is an estimate of the constant h̄(I ∪ {i}) at most x when I ∪ {i} is a
*maximal* monomial, where a coefficient of v_i may be off. Line 9, corrected (as printed it multiplies the wrong
coefficient): with v_i = Σ_K v̄_i(K) x_K, the derivative ∂_I v_i is Σ_{I′} v̄_i(I ∪ I′) x_{I′} over I′ disjoint from
I ∪ {i}, so its mean is

    ū(I ∪ {i}) = Σ_{I′} v̄_i(I ∪ I′) · Q̂(I′),   |I′| ≤ t − 1 − |I|,   Q̂(∅) = 1.

Parities of order at most t − 1 suffice. For monomials that are not maximal ū estimates E ∂_{I∪{i}} h, not h̄.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np

from ..arguments import check_whole
from ..domain import Clique, Domain
from ..errors import InputError
from ..learn.cards import card_of
from ..learn.counting import counted_first, records_in
from ..learn.learner import Learner
from ..learn.procedure import Found, Procedure, Step, Whole
from ..learn.query_release import AnswersLearner, GaussianAnswers, MultiplicativeWeights, Parities, PerturbedLeader
from ..learn.regressions.descent import NOTE
from ..learn.regressions.frank_wolfe import State, Variant
from ..learn.regressions.spins import DEFAULT_WIDTH, features_of, regression_coefficients, spin_descent
from ..learn.spins.coefficients import Coefficients, check_bounds, order_in
from ..learn.steps import in_block
from ..measurement import Measurement, Measurements
from ..models.binary import BinaryMRF
from ..privacy.budget import Budget
from ..privacy.requests import Asking

QueryRelease = Literal["gaussian", "multiplicative_weights", "perturbed_leader"]
RELEASES: dict[str, Any] = {
    "gaussian": GaussianAnswers,
    "multiplicative_weights": MultiplicativeWeights,
    "perturbed_leader": PerturbedLeader,
}
METHOD = "maximal_monomials"
A_FIELD, LARGEST_ONLY = "a field", "only those of maximal monomials estimate the field's"


@dataclass(frozen=True)
class MaximalMonomials(Learner[BinaryMRF]):
    """Learn the maximal monomials of a binary field and their coefficients (ℓ∞ on these).

    Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike. With all records, the two
    halves of the budget compose; with two halves of the records, each unit is in one of them, by its own coin, and
    each may cost the whole (:meth:`Curator.partition`).

    Parameters
    ----------
    order:
        t, the largest number of columns that interact.
    min_weight:
        η, a public lower bound on |h̄(I)| of an interaction that is there. With it the outcome is a field with the
        maximal monomials that were found; without, ū(I) for every I, of which only those of maximal monomials estimate
        h̄(I).
    width, variant, steps:
        As for :class:`SpinRegressions`.
    release:
        How the parities are released (:mod:`discreet.learn.query_release`).
    halves:
        Whether regressions and parities use two halves of the records, each with the whole budget (as in the paper, but
        by secret coins), or all records, each with half the budget (the default, and better).
    random_state:
        Of the data player of ``"perturbed_leader"``, which is post-processing; others draw nothing.
    """

    order: int
    min_weight: float = 0.0
    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None
    release: QueryRelease = "gaussian"
    halves: bool = False
    random_state: int = 0

    refits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, order=self.order)
        check_whole(1, or_none=True, steps=self.steps)
        check_bounds(self.width, self.min_weight)
        if self.release not in RELEASES:
            raise InputError(f"release must be one of {', '.join(map(repr, RELEASES))}, got {self.release!r}")
        if self.random_state != 0 and self.release != "perturbed_leader":
            raise InputError(f"random_state is for release='perturbed_leader'; {self.release!r} has nothing to seed")

    def prepare(self, whole: Whole) -> Procedure:
        """The number of records unless it is public, regressions, and parities of order up to t − 1; each half of the
        records is counted for itself."""
        domain, unit, budget = whole.domain, whole.unit, whole.budget
        order = order_in(domain, self.order)
        descent = spin_descent(domain, unit, order, self.width, self.variant, self.steps)
        given: tuple[Measurement, ...] = ()
        steps: tuple[Step, ...]
        if self.halves and order > 1:
            half = Whole(domain, unit, budget)  # how many records it has is not public
            count, _, rest = counted_first(half)
            steps = (
                in_block(0, budget, descent.prepared(half)[0]),
                in_block(1, budget, (*count, self._parities(half, rest, order))),
            )
        elif order > 1:
            count, given, rest = counted_first(whole)
            first, second = rest.split([1, 1])
            regressions = descent.step(whole, first)
            steps = (*count, regressions, self._parities(whole, second, order))
        else:
            steps, given = descent.prepared(whole)
        return Procedure(
            f"{METHOD}, binary fields of order {self.order}",
            whole,
            steps,
            (NOTE,),
            given,
            composition="in blocks" if self.halves and order > 1 else "composed",
        )

    def _parities(self, whole: Whole, share: Budget, order: int) -> Step:
        """Line 6: E Π_{i∈I} z_i for |I| ≤ t − 1."""
        workload = Parities(whole.domain, features_of(whole.domain, order)[:-1])
        options = {"random_state": self.random_state} if self.release == "perturbed_leader" else {}
        answers: AnswersLearner = RELEASES[self.release](workload, **options)

        def asks(released: Measurements) -> Asking[Found]:
            found = yield from answers.answering(share, records_in(released))
            return {"parities": dict(zip(workload.monomials, map(float, found.answers), strict=True))}

        step = answers.step(whole, share)
        name = f"parities up to order {order - 1}, {self.release}: {step.name}"
        return replace(step, name=name, rows=tuple(replace(row, name=name) for row in step.rows), asks=asks)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BinaryMRF:
        """Lines 7–9, from what was found; post-processing."""
        columns, found = domain or measurements.domain, measurements.found
        state, monomials = found["state"], features_of(columns, order_in(columns, self.order))
        u = averaged_derivatives(columns, monomials, state, found.get("parities", {}))
        if self.min_weight > 0:
            u = maximal_first(u, regression_coefficients(columns, monomials, state), self.min_weight)
        card = card_of(
            measurements,
            f"{METHOD}, {self.variant}, {self.release} parities",
            frank_wolfe_steps=state.steps,
            width=self.width or DEFAULT_WIDTH,
            halves=self.halves,
            coefficients=A_FIELD if self.min_weight > 0 else LARGEST_ONLY,
        )
        return BinaryMRF(u, columns, card)


def averaged_derivatives(
    domain: Domain, monomials: list[Clique], state: State, parities: Mapping[Clique, float]
) -> Coefficients:
    """Algorithm 5, lines 7–9; again the mean over all columns of a monomial, each of which has the guarantee."""
    total: dict[Clique, float] = defaultdict(float)
    for name, row in zip(domain.names, state.w / 2, strict=True):
        for k in np.flatnonzero(row):
            K, value = monomials[k], float(row[k])
            for size in range(len(K) + 1):
                for I in combinations(K, size):
                    rest = tuple(n for n in K if n not in I)
                    total[domain.clique((*I, name))] += value * (parities[rest] if rest else 1.0)
    return {J: value / len(J) for J, value in total.items()}


def maximal_first(averaged: Coefficients, plain: Coefficients, least: float) -> Coefficients:
    """A field with these maximal monomials: from large to small, those with |ū| ≥ η/2 that lie in none found before.

    Below them the coefficients are Algorithm 4's, since ū estimates something else there; of those, too, the ones of
    at least η/2 are kept, and all single columns.
    """
    maximal: list[Clique] = []
    for I in sorted(averaged, key=lambda I: (-len(I), I)):
        if abs(averaged[I]) >= least / 2 and not any(set(I) <= set(J) for J in maximal):
            maximal.append(I)
    out = {I: averaged[I] for I in maximal}
    for I, value in plain.items():
        below = any(set(I) < set(J) for J in maximal)
        if I not in out and below and (len(I) == 1 or abs(value) >= least / 2):
            out[I] = value
    return out
