"""What was spent, and whether one more step fits: composition of costs under a total fixed in advance.

The rules, all valid when steps are chosen adaptively (privacy filters):

* a pure total adds up ε; a zCDP total adds up ρ (for an ε-DP step, ε·tanh(ε/2)); a Gaussian total, within an (ε, δ)
  budget, adds up μ² of steps that are Gaussian or pure (:mod:`.gaussian`), and the δ of those that have one, which were
  set aside from the budget's δ before (:mod:`.unlisted`); or, where all steps are pure, their ε, if it has an ε;
* an (ε, δ) total with ``composition="basic"`` adds up ε and δ;
* an (ε, δ) total with ``composition="concentrated"`` admits a step when one of these holds:
  (a) every step so far is pure and their ε add up to at most ε;
  (b) ρ adds up to what converts to ε at δ − δ′, and the δ of steps that have one of their own (tests, thresholds)
      add up to at most δ′, a share of δ set aside in advance (the filter for approximate zCDP of [WRRW23]);
  (c) it is the first step, and within (ε, δ) by itself.

Why "(a) or (b)" is sound although the steps decide which one holds: condition on the failures that δ′ pays for. Of the
transcripts S = S_a ∪ S_b, the first kind have likelihood ratio at most e^ε one by one. The others are transcripts of
the mechanism that stops where (b) would fail, which is (ε, δ − δ′)-DP; add the two inequalities. (c) is a rule about
the first step alone, which depends on public things only. A Gaussian total is sound by the same argument, with μ² in
the place of ρ in (b).

A curator and the curators made from it (of blocks, of a sample, of the same rows in sequence) may be asked in turn:
that is concurrent composition of interactive mechanisms, which costs no more than one after the other, for (ε, δ)
[VW21, Lyu22] and for zCDP [VZ23].

[VW21] Vadhan, Wang. Concurrent composition of differential privacy. TCC 2021. [Lyu22] Lyu. Composition theorems for
interactive differential privacy. NeurIPS 2022. [VZ23] Vadhan, Zhang. Concurrent composition theorems for differential
privacy. STOC 2023.
[WRRW23] Whitehouse, Ramdas, Rogers, Wu. Fully-adaptive composition in differential privacy. ICML 2023.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from ..errors import BudgetError
from .budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP, epsilon_of_zcdp, rho_of_pure, rho_within
from .gaussian import cost_of_pure

Composition = Literal["basic", "concentrated"]
ZERO = Fraction(0)


@dataclass(frozen=True)
class Cost:
    """What one mechanism costs, in each notion for which it has a proof.

    ``epsilon`` with ``epsilon_delta``: it is (ε, δ)-DP (δ = 0: pure). ``rho`` with ``rho_delta``: it is
    δ-approximately ρ-zCDP (δ = 0: zCDP). ``mu_squared``: it is μ-GDP (:mod:`.gaussian`). None: no proof in that notion.
    """

    epsilon: Fraction | None = None
    epsilon_delta: Fraction = ZERO
    rho: Fraction | None = None
    rho_delta: Fraction = ZERO
    mu_squared: Fraction | None = None

    @classmethod
    def pure(cls, epsilon: Fraction) -> Cost:
        return cls(epsilon=epsilon, rho=rho_of_pure(epsilon), mu_squared=cost_of_pure(epsilon))

    @classmethod
    def zcdp(cls, rho: Fraction) -> Cost:
        return cls(rho=rho)

    @classmethod
    def approx(cls, epsilon: Fraction, delta: Fraction) -> Cost:
        """(ε, δ)-DP is ε-DP but for an event of probability δ, hence δ-approximately ε·tanh(ε/2)-zCDP [BS16, §8]."""
        return cls(epsilon=epsilon, epsilon_delta=delta, rho=rho_of_pure(epsilon), rho_delta=delta)

    @classmethod
    def of(cls, budget: Budget) -> Cost:
        """The cost of spending a whole budget."""
        match budget:
            case PureDP():
                return cls.pure(budget.epsilon)
            case ZCDP():
                return cls.zcdp(budget.rho)
            case GaussianDP():
                return cls(mu_squared=budget.mu_squared)
            case ApproxDP():
                return cls.approx(budget.epsilon, budget.delta)
        raise BudgetError(f"not a budget: {budget!r}")

    @property
    def is_pure(self) -> bool:
        return self.epsilon is not None and self.epsilon_delta == 0


@dataclass(frozen=True)
class Spending:
    """The totals that the rules look at. Immutable: a charge makes a new one."""

    steps: int = 0
    all_pure: bool = True
    all_zcdp: bool = True  # every step has a ρ
    epsilon: Fraction = ZERO
    epsilon_delta: Fraction = ZERO
    all_epsilon: bool = True  # every step has an (ε, δ)
    rho: Fraction = ZERO
    rho_delta: Fraction = ZERO
    all_gaussian: bool = True  # every step has a μ²
    mu_squared: Fraction = ZERO

    def plus(self, cost: Cost) -> Spending:
        return Spending(
            steps=self.steps + 1,
            all_pure=self.all_pure and cost.is_pure,
            all_zcdp=self.all_zcdp and cost.rho is not None,
            epsilon=self.epsilon + (cost.epsilon or 0),
            epsilon_delta=self.epsilon_delta + cost.epsilon_delta,
            all_epsilon=self.all_epsilon and cost.epsilon is not None,
            rho=self.rho + (cost.rho or 0),
            rho_delta=self.rho_delta + cost.rho_delta,
            all_gaussian=self.all_gaussian and cost.mu_squared is not None,
            mu_squared=self.mu_squared + (cost.mu_squared or 0),
        )

    @classmethod
    def of(cls, costs: Counter[Cost]) -> Spending:
        """What many costs add up to, exactly. Different ones are added in pairs: in order, thousands of different
        scales would make ever longer fractions."""
        sums = [cls._times(cost, number) for cost, number in costs.items()] or [cls()]
        while len(sums) > 1:
            odd = sums[-1:] if len(sums) % 2 else []
            sums = [a.together(b) for a, b in zip(sums[::2], sums[1::2], strict=False)] + odd
        return sums[0]

    @classmethod
    def _times(cls, cost: Cost, number: int) -> Spending:
        once = cls().plus(cost)
        return replace(once, **{name: getattr(once, name) * number for name in _SUMS})

    def together(self, other: Spending) -> Spending:
        """After the steps of both."""
        both = {name: getattr(self, name) and getattr(other, name) for name in _FLAGS}
        return Spending(**both, **{name: getattr(self, name) + getattr(other, name) for name in _SUMS})

    def shortened(self) -> Spending:
        """The same, with fractions that are too long to be written down rounded up, by 10⁻⁶⁰ of them at most."""
        sums: dict[str, Any] = {name: _short(getattr(self, name)) for name in _SUMS if name != "steps"}
        return replace(self, **sums)


_LONGEST = 4096  # bits: hundreds of different scales have no short common denominator
_FLAGS = ("all_pure", "all_zcdp", "all_epsilon", "all_gaussian")
_SUMS = ("steps", "epsilon", "epsilon_delta", "rho", "rho_delta", "mu_squared")


@dataclass
class Accountant:
    """Admits costs as long as their composition stays within the total."""

    total: Budget
    composition: Composition = "concentrated"
    delta_for_tests: Fraction = ZERO  # δ′ of rule (b), fixed before the first step
    spending: Spending = field(default_factory=Spending)

    def __post_init__(self) -> None:
        if isinstance(self.total, GaussianDP | ZCDP):
            return  # of shares within an (ε, δ) budget; one that is a total has no δ, see Account
        delta = self.total.delta if isinstance(self.total, ApproxDP) else ZERO
        if self.delta_for_tests and not 0 < self.delta_for_tests < delta:
            raise BudgetError(
                f"delta_for_tests={float(self.delta_for_tests)} must lie between 0 and the budget's δ, {float(delta)}"
            )

    def rules(self) -> dict[str, str]:
        """What a reader must know to add up the steps again, where it is not the usual."""
        aside = {"delta_for_tests": str(self.delta_for_tests)} if self.delta_for_tests else {}
        return {**aside, **({"composition": self.composition} if self.composition != "concentrated" else {})}

    def fits(self, cost: Cost) -> bool:
        """Whether the step may be taken."""
        return self.admits(self.spending.plus(cost))

    def admits(self, after: Spending) -> bool:
        """Whether these steps are within the total. Every part of what is admitted is admitted too."""
        match self.total:
            case PureDP(epsilon=epsilon):
                return after.all_pure and after.epsilon <= epsilon
            case ZCDP(rho=rho):
                return after.all_zcdp and after.rho_delta <= self.delta_for_tests and after.rho <= rho
            case GaussianDP(mu_squared=mu_squared, epsilon=own):
                if after.all_pure and after.epsilon <= (own or 0):
                    return True
                return after.all_gaussian and after.mu_squared <= mu_squared and after.rho_delta <= self.delta_for_tests
            case ApproxDP(epsilon=epsilon, delta=delta):
                basic = after.all_epsilon and after.epsilon <= epsilon and after.epsilon_delta <= delta
                if self.composition == "basic":
                    return basic
                pure = after.all_pure and after.epsilon <= epsilon
                concentrated = (
                    after.all_zcdp and after.rho <= self._rho_total and after.rho_delta <= self.delta_for_tests
                )
                return pure or concentrated or (after.steps == 1 and basic)
        raise BudgetError(f"not a budget: {self.total!r}")

    def charge(self, *costs: Cost) -> None:
        """Take the steps, all or none. Raises :class:`BudgetError` when they do not fit."""
        before = self.spending
        for cost in costs:
            after = self.spending.plus(cost)
            if not self.admits(after):
                self.spending = before
                raise BudgetError(self._refusal(cost, costs))
            self.spending = after

    @property
    def _rho_total(self) -> Fraction:
        assert isinstance(self.total, ApproxDP)
        return rho_within(self.total.epsilon, self.total.delta - self.delta_for_tests)

    def _refusal(self, cost: Cost, costs: Sequence[Cost]) -> str:
        match self.total:
            case PureDP() if not cost.is_pure:
                return (
                    f"a pure budget ({self.total}) cannot pay for a mechanism that is only zCDP or (ε, δ)-DP; "
                    "use Laplace noise, or give the budget as ZCDP(ρ) or ApproxDP(ε, δ)"
                )
            case ZCDP() if cost.rho is None or (cost.rho_delta and not self.delta_for_tests):
                return (
                    f"a zCDP budget ({self.total}) cannot pay for a mechanism with a δ of its own; "
                    "give the budget as ApproxDP(ε, δ)"
                )
            case GaussianDP() | ZCDP() if self._exceeds_delta_for_tests(cost):
                return f"the step has a δ of its own, and δ = {float(self.delta_for_tests):.3g} was set aside for these"
            case GaussianDP() if cost.mu_squared is None:
                return "these steps are shared out as Gaussian noise, and cannot pay for another mechanism"
            case ApproxDP() if self.composition == "basic" and cost.epsilon is None:
                return (
                    f"this (ε, δ) budget ({self.total}) adds up ε and δ and cannot pay for ρ; "
                    "charge ApproxDP(ε, δ) amounts, or keep the total in ZCDP(ρ)"
                )
            case ApproxDP() if self.composition == "concentrated" and self._exceeds_delta_for_tests(cost):
                return (
                    f"the step has a δ of its own, and δ = {float(self.delta_for_tests):.3g} was set aside for these; "
                    "set delta_for_tests when the curator is made, or let this step be the only one"
                )
        return (
            f"the budget does not suffice: asked for {self._asked(costs)}, left is {self.remaining or 'nothing'}; "
            f"the total is {self.total}, already spent is {self.spent_text()}"
        )

    def _exceeds_delta_for_tests(self, cost: Cost) -> bool:
        return cost.rho_delta > 0 and self.spending.rho_delta + cost.rho_delta > self.delta_for_tests

    def _asked(self, costs: Sequence[Cost]) -> str:
        """What several steps cost together, as far as the total's notion can say it."""
        asked = Spending()
        for cost in costs:
            asked = asked.plus(cost)
        if isinstance(self.total, ZCDP) or not asked.all_epsilon:
            return f"ρ = {float(asked.rho):.6g}"
        return f"ε = {float(asked.epsilon):.6g}" + (
            f", δ = {float(asked.epsilon_delta):.3g}" if asked.epsilon_delta else ""
        )

    @property
    def remaining(self) -> Budget | None:
        """What is left, as a budget that can be split and spent; None when nothing is.

        Scales are rounded up to floats, which leaves crumbs; a billionth of the total or less counts as nothing.
        """
        s = self.spending.shortened()
        match self.total:
            case PureDP(epsilon=epsilon):
                return PureDP(epsilon - s.epsilon) if _is_left(epsilon, s.epsilon) else None
            case ZCDP(rho=rho):
                return ZCDP(rho - s.rho) if _is_left(rho, s.rho) else None
            case GaussianDP(mu_squared=whole, epsilon=own):
                if s.all_gaussian and _is_left(whole, s.mu_squared):
                    return GaussianDP(whole - s.mu_squared)
                return PureDP(own - s.epsilon) if own and s.all_pure and _is_left(own, s.epsilon) else None
            case ApproxDP(epsilon=epsilon, delta=delta):
                if s.steps == 0:
                    return self.total
                if self.composition == "basic":
                    left = _is_left(epsilon, s.epsilon) and s.epsilon_delta < delta
                    return ApproxDP(epsilon - s.epsilon, delta - s.epsilon_delta) if left else None
                if s.all_zcdp and _is_left(self._rho_total, s.rho) and s.rho_delta <= self.delta_for_tests:
                    return ZCDP(self._rho_total - s.rho)
                return PureDP(epsilon - s.epsilon) if s.all_pure and _is_left(epsilon, s.epsilon) else None
        raise BudgetError(f"not a budget: {self.total!r}")

    @property
    def spent(self) -> Budget | None:
        """What the steps so far cost, in the notion of the total; None for nothing.

        The guarantee is the total. For (ε, δ) this is a reading on the way: sound for steps fixed in advance.
        """
        s = self.spending.shortened()
        if s.steps == 0:
            return None
        match self.total:
            case PureDP(epsilon=epsilon):
                return PureDP(_reading(self.spending.epsilon, epsilon))
            case ZCDP(rho=rho):
                return ZCDP(_reading(self.spending.rho, rho))
            case GaussianDP(mu_squared=mu_squared, epsilon=own):
                if self.spending.mu_squared <= mu_squared or own is None:
                    return GaussianDP(_reading(self.spending.mu_squared, mu_squared))
                return PureDP(_reading(self.spending.epsilon, own))
            case ApproxDP(epsilon=epsilon, delta=delta):
                if self.composition == "basic":
                    return ApproxDP(s.epsilon, s.epsilon_delta) if s.epsilon_delta else PureDP(s.epsilon)
                figures = [epsilon]
                if s.all_epsilon and (s.all_pure or s.steps == 1):
                    figures.append(s.epsilon)
                if s.all_zcdp and s.rho_delta <= self.delta_for_tests:
                    figures.append(epsilon_of_zcdp(s.rho, delta - self.delta_for_tests))
                return ApproxDP(min(figures), delta)
        raise BudgetError(f"not a budget: {self.total!r}")

    def spent_text(self) -> str:
        return "nothing" if self.spent is None else str(self.spent)


def _short(amount: Fraction) -> Fraction:
    if amount.denominator.bit_length() <= _LONGEST:
        return amount
    places = 200 + amount.denominator.bit_length() - amount.numerator.bit_length()
    return Fraction(-(-amount.numerator * 2**places // amount.denominator), 2**places)


def _reading(spent: Fraction, total: Fraction) -> Fraction:
    """Shortened, but what is within the total stays within it."""
    return total if spent <= total < _short(spent) else _short(spent)


def _is_left(total: Fraction, spent: Fraction) -> bool:
    return total - spent > total / 10**9
