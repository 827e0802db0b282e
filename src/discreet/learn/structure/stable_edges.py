"""The default under (ε, δ): test every pair on all the data, and release the whole graph if no few records matter.

The budget is not split between pairs, so the number of records grows with log p (through sampling error only) and the
price of privacy is *additive*, some ln(1/δ)/ε steps of distance [001 Section 6 pays a factor instead]. See
:mod:`discreet.privacy.stability` for the guarantee and :mod:`discreet.privacy.queries.edge_tests` for the tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from ...arguments import check_positive, check_whole
from ...domain import Clique, Domain
from ...errors import BudgetError, CostError, InputError
from ...measurement import Measurement, Measurements
from ...privacy.budget import ApproxDP, Budget, PureDP
from ...privacy.queries.edge_tests import CorrelationTest, DependenceTest, SpinTest
from ...privacy.queries.parities import all_monomials
from ...privacy.requests import Asking, TestStability
from ...privacy.stability import Stability, StabilityTest, plan_stability
from ...privacy.unit import PrivacyUnit
from ..counting import records_in
from ..learner import Learner
from ..procedure import Found, Procedure, Whole
from .result import StructureResult, check_columns, graph_found, maximal, refusal, result_of, tested

TestKind = Literal["auto", "correlation", "conditional"]
COUNT_SHARE = Fraction(1, 20)  # of ε, for the number of records when the threshold has to follow from it
LEAST_THRESHOLD = 0.15  # without min_weight: dependences that are weaker than twice this are not looked for
MOST_THRESHOLD = 0.4
MOST_CELLS = 1 << 27  # of all tables of three columns together: a gigabyte of counts


@dataclass(frozen=True)
class StableEdges(Learner[StructureResult]):
    """Learn the graph under (ε, δ), all edges or none.

    Parameters
    ----------
    min_weight:
        η, a public lower bound on the size of a coupling A_ij (of the largest entry of W_ij, of a coefficient h̄(I)) of
        an interaction that is there. The threshold is then half of the dependence that a single edge of that weight
        causes. Without it the threshold follows from the number of records (public, or measured with a twentieth of
        ε): what sampling and noise need, at least 0.15.
    test:
        ``"auto"``: correlated, and explained by no third column. ``"correlation"``: correlated; sharpest where nothing
        is correlated but by an edge, as on matchings. ``"conditional"``: dependent given every third column.
    order:
        t > 2: interactions of up to t binary columns, by the correlation test on their products (maximal ones are
        reported). Products of overlapping interactions are correlated too, so this suits interactions that share at
        most little; otherwise use StableMode(base="sparsitron").
    """

    refits: ClassVar[bool] = False

    min_weight: float | None = None
    test: TestKind = "auto"
    order: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(or_none=True, min_weight=self.min_weight)
        check_whole(2, order=self.order)
        if self.order > 2 and self.test == "conditional":
            raise InputError("interactions of more than two columns are found by the correlation test only")

    @property
    def method(self) -> str:
        return f"stable edges, {self.test} test"

    def prepare(self, whole: Whole) -> Procedure:
        """One test with the whole budget; without a ``min_weight`` and a public size, a noisy count before it. The ε
        and δ of the two add up."""
        domain, unit, budget = whole.domain, whole.unit, whole.budget
        self._check(domain, budget)
        assert isinstance(budget, ApproxDP)
        unknown = self.min_weight is None
        counts = unknown and whole.public_size is None
        counting, testing = _shares(budget) if counts else (None, budget)

        def asks(released: Measurements) -> Asking[Found]:
            test = self._make_test(domain, testing, unit, records_in(released) if unknown else None)
            out: Stability = yield TestStability(testing, test)
            distance, described = out.noisy_distance, test.describe()
            if out.signs is None:
                return refusal(out, "records", test=described)
            evidence = {I: {"sign": sign, "noisy_distance": distance} for I, sign in _read(test, out).items()}
            return graph_found(evidence, test=described, noisy_distance=distance)

        call, _ = plan_stability(testing)
        notes = [
            f"All edges are released if the noisy distance is above {call.threshold}; otherwise only that distance."
        ]
        if self.min_weight is not None and max(domain.shape) == 2:
            n = records_needed(self.min_weight, len(domain), testing, unit)
            notes.append(
                f"Edges of weight {self.min_weight:g} need about {n:,} records on a matching, and two to three times "
                "as many on a graph with loops (measured on 3-regular graphs and grids)."
            )
        test = tested(whole, "distance to another graph", testing, call.scale, asks)
        return Procedure(
            self.method,
            whole,
            (test,) if counting is None else (whole.count(counting), test),
            tuple(notes),
            (Measurement.public(domain, (), whole.public_size),) if unknown and not counts else (),
            "in sequence" if counts else "composed",
        )

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> StructureResult:
        """The graph that the test released, or its refusal."""
        return result_of(measurements, domain, self.method)

    def _check(self, domain: Domain, budget: Budget) -> None:
        if not isinstance(budget, ApproxDP):
            raise BudgetError(
                f"stable edges need a whole (ε, δ) budget, there is {budget}; under pure DP or zCDP use SelectedEdges"
            )
        check_columns(domain)
        if max(domain.shape) > 2 and self.order > 2:
            raise InputError("interactions of more than two columns are for columns with two levels each")
        if max(domain.shape) > 2 and self.test != "correlation":
            first, second, third = (sum(k**power for k in domain.shape) for power in (1, 2, 3))
            cells = (first**3 - 3 * first * second + 2 * third) // 6  # of all tables of three columns
            if cells > MOST_CELLS:
                raise CostError(
                    f"tables of all sets of three columns have {cells:,} cells, and at most {MOST_CELLS:,} are "
                    "counted; take fewer columns, give them fewer levels, or choose test='correlation'"
                )

    def _make_test(self, domain: Domain, budget: ApproxDP, unit: PrivacyUnit, size: float | None) -> StabilityTest:
        """From public or released things only."""
        if self.min_weight is not None:
            tau = math.tanh(self.min_weight) / 2
        else:
            assert size is not None
            tau = threshold_for_size(size, len(domain), budget, unit)
        if max(domain.shape) > 2:
            # An edge of weight η between k and l levels has Σ|cov| of some tanh(η)·(2/k)·(2/l) at least.
            shape = dict(zip(domain.names, domain.shape, strict=True))
            taus = [max(tau * 4 / max(shape[a] * shape[b], 4), 1e-3) for a, b in combinations(domain.names, 2)]
            return DependenceTest(domain, taus, conditional=self.test != "correlation")
        if self.order > 2 or self.test == "correlation":
            return CorrelationTest(domain, all_monomials(domain, min(self.order, len(domain)), least=2), tau)
        call, _ = plan_stability(budget)
        assert call.threshold is not None
        far = call.threshold + 1 + math.ceil(6 * call.scale)  # the noise is below that in 1 of 800 runs
        return SpinTest(domain, tau, "combined" if self.test == "auto" else "conditional", enough=far)


def _shares(budget: ApproxDP) -> tuple[PureDP, ApproxDP]:
    return PureDP(budget.epsilon * COUNT_SHARE), ApproxDP(budget.epsilon * (1 - COUNT_SHARE), budget.delta)


def _read(test: StabilityTest, out: Stability) -> dict[Clique, int]:
    """Interactions with their signs, 0 where there is none; the signs of the test's levels are all that came out."""
    assert out.signs is not None
    if isinstance(test, DependenceTest):
        return {pair: 0 for pair, yes in zip(test.pairs, out.signs, strict=True) if yes}
    assert isinstance(test, SpinTest | CorrelationTest)
    sets = test.pairs if isinstance(test, SpinTest) else test.sets
    plus, minus = np.split(out.signs, 2)
    found = {I: 1 if p else -1 for I, p, m in zip(sets, plus, minus, strict=True) if p or m}
    return {I: found[I] for I in maximal(found)}


def _distance_wanted(budget: ApproxDP) -> float:
    call, _ = plan_stability(budget)
    assert call.threshold is not None
    return call.threshold + 1 + 2 * call.scale


def _sampling(columns: int) -> float:
    """Standard deviations that the largest of all sample correlations of p columns may be off."""
    return math.sqrt(2 * math.log(10 * max(columns, 2) ** 2))


def records_needed(weight: float, columns: int, budget: ApproxDP, unit: PrivacyUnit) -> int:
    """About how many records make every correlation test pass on a graph without loops whose edges have this weight.

    n·t/2 ≥ z√n + (1 + t/2)·d with t = tanh η, z for p² pairs at once, and d the distance that is released in nine of
    ten runs: log p from sampling and ln(1/δ)/ε from privacy, added and not multiplied.
    """
    t, z = math.tanh(weight), _sampling(columns)
    step = unit.max_rows * (1 + t / 2 if unit.relation == "add-remove" else 2.0)
    wanted = step * _distance_wanted(budget)
    root = (z + math.sqrt(z * z + 2 * t * wanted)) / t
    return math.ceil(root * root)


def threshold_for_size(size: float, columns: int, budget: ApproxDP, unit: PrivacyUnit) -> float:
    """Without a public η: the least threshold that pairs without an edge pass, on a public or released number of
    records; not below 0.15, where loops would pass for edges, nor above 0.4, where edges could not."""
    n = max(size, 1.0)
    step = unit.max_rows * (1.2 if unit.relation == "add-remove" else 2.0)
    tau = _sampling(columns) / math.sqrt(n) + step * _distance_wanted(budget) / n
    return min(max(tau, LEAST_THRESHOLD), MOST_THRESHOLD)
