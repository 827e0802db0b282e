"""Privacy budgets in three notions, with exact arithmetic and the tightest sound conversions we know.

Amounts are rationals: shares never add up to more than the whole. A float is read as the decimal that a person sees,
so ``PureDP(0.1)`` is exactly 1/10. Conversions round to the safe side.

References: [BS16] Bun, Steinke, TCC 2016 (zCDP). [CKS20] Canonne, Kamath, Steinke, NeurIPS 2020, Proposition 12 of
arXiv:2004.00010 (optimal zCDP → (ε, δ)). [HM25] Harrison, Manurangsi 2025, arXiv:2510.25746 (exact zCDP of pure DP).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

from ..errors import BudgetError
from ..spelling import written
from .gaussian import mu_squared_within

LARGEST = 10**100  # far beyond any meaning, and conversions stay within floats
Amount = int | float | str | Fraction
_TOO_LONG = re.compile(r"[eE][+-]?[0-9_]{5}|.{4000}")
_COMMA = re.compile(r"[0-9]{0,30},[0-9]{1,30}")
_SLACK = Fraction(1, 2**44)  # covers the rounding of a dozen float operations many times over


def exact(amount: Amount, name: str) -> Fraction:
    """The rational that a person means: 0.1 is one tenth. Errors name the quantity."""
    if getattr(amount, "ndim", None) == 0 and hasattr(amount, "item"):
        amount = amount.item()  # a NumPy number
    if isinstance(amount, bool) or not isinstance(amount, int | float | str | Fraction):
        raise BudgetError(f"{name} must be a number, got {amount!r}")
    try:
        if isinstance(amount, str) and _TOO_LONG.search(amount):  # 1e999999999 must not fill the memory
            raise ValueError
        return Fraction(repr(amount)) if isinstance(amount, float) else Fraction(amount)
    except (ValueError, ZeroDivisionError):
        text = str(amount).strip()[:80]
        hint = f"; write {text.replace(',', '.')}" if _COMMA.fullmatch(text) else ""
        raise BudgetError(f"{name} must be a finite number, got {repr(amount)[:80]}{hint}") from None


def shares(total: Fraction, weights: Sequence[Amount]) -> list[Fraction]:
    """Split exactly, in proportion to non-negative weights."""
    exact_weights = [exact(w, "a weight") for w in weights]
    if not exact_weights or any(w < 0 for w in exact_weights) or not any(exact_weights):
        raise BudgetError(f"weights must be non-negative and not all zero, got {[float(w) for w in exact_weights]}")
    whole = sum(exact_weights, Fraction(0))
    return [total * w / whole for w in exact_weights]


class Budget(ABC):
    """A differential-privacy guarantee that can be spent. ``a <= b`` means that a's guarantee implies b's."""

    notion: str

    @abstractmethod
    def split(self, weights: Sequence[Amount]) -> list[Budget]:
        """Shares in proportion to the weights, whose composition is within this budget."""

    @abstractmethod
    def __le__(self, other: object) -> bool: ...

    def to_dict(self) -> dict[str, Any]:
        return {"notion": self.notion, **{f.name: str(getattr(self, f.name)) for f in fields(self)}}  # type: ignore[arg-type]

    def __ge__(self, other: object) -> bool:
        return isinstance(other, Budget) and other <= self

    @staticmethod
    def from_dict(entry: dict[str, Any]) -> Budget:
        kinds: tuple[type[Budget], ...] = (PureDP, ZCDP, ApproxDP, GaussianDP)
        try:
            kind: Any = {k.notion: k for k in kinds}[entry["notion"]]
            budget: Budget = kind(*(written(entry[k]) for k in kind.__dataclass_fields__ if k in entry))
            return budget
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise BudgetError(f"not a budget: {entry!r}") from None


@dataclass(frozen=True, init=False)
class PureDP(Budget):
    """ε-differential privacy: no output becomes more than e^ε times likelier through any one unit. ``PureDP(1)``."""

    epsilon: Fraction
    notion = "pure"

    def __init__(self, epsilon: Amount) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))

    def split(self, weights: Sequence[Amount]) -> list[Budget]:
        return [PureDP(e) for e in shares(self.epsilon, weights)]

    def scaled(self, fraction: Fraction) -> Self:
        return type(self)(self.epsilon * fraction)

    def to_zcdp(self) -> ZCDP:
        """ε-DP is ε·tanh(ε/2)-zCDP [HM25], which is below the ε²/2 of [BS16]."""
        return ZCDP(rho_of_pure(self.epsilon))

    def __le__(self, other: object) -> bool:
        if isinstance(other, PureDP | ApproxDP):
            return self.epsilon <= other.epsilon
        return isinstance(other, ZCDP) and rho_of_pure(self.epsilon) <= other.rho

    def __str__(self) -> str:
        return f"ε = {float(self.epsilon):.6g} (pure DP)"


@dataclass(frozen=True, init=False)
class ZCDP(Budget):
    """ρ-zero-concentrated differential privacy [BS16]: Rényi divergence of order α at most ρα, for every α > 1.
    ``ZCDP(0.1)``."""

    rho: Fraction
    notion = "zcdp"

    def __init__(self, rho: Amount) -> None:
        object.__setattr__(self, "rho", _positive(rho, "rho"))

    def split(self, weights: Sequence[Amount]) -> list[Budget]:
        return [ZCDP(r) for r in shares(self.rho, weights)]

    def scaled(self, fraction: Fraction) -> Self:
        return type(self)(self.rho * fraction)

    def to_approx(self, delta: Amount) -> ApproxDP:
        """The (ε, δ) that follows, by the optimal conversion [CKS20]."""
        d = exact(delta, "delta")
        return ApproxDP(epsilon_of_zcdp(self.rho, d), d)

    def to_pure(self) -> PureDP:
        """The largest ε for which every ε-DP mechanism fits into this budget: ε·tanh(ε/2) ≤ ρ."""
        return PureDP(epsilon_within(self.rho))

    def __le__(self, other: object) -> bool:
        if isinstance(other, ZCDP):
            return self.rho <= other.rho
        return isinstance(other, ApproxDP) and epsilon_of_zcdp(self.rho, other.delta) <= other.epsilon

    def __str__(self) -> str:
        return f"ρ = {float(self.rho):.6g} (zCDP)"


@dataclass(frozen=True, init=False)
class ApproxDP(Budget):
    """(ε, δ)-differential privacy: as ε-DP, but for events of probability δ. ``ApproxDP(1, 1e-6)``."""

    epsilon: Fraction
    delta: Fraction
    notion = "approx"

    def __init__(self, epsilon: Amount, delta: Amount) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _positive(delta, "delta"))
        if self.delta >= 1:
            raise BudgetError(
                f"delta must be below 1 (and far below 1/number of records), got delta={float(self.delta)}"
            )

    def split(self, weights: Sequence[Amount]) -> list[Budget]:
        """Shares in zCDP: concentrated composition loses far less than adding up ε and δ."""
        return self.to_zcdp().split(weights)

    def to_zcdp(self) -> ZCDP:
        """The largest ρ that converts to within (ε, δ)."""
        return ZCDP(rho_within(self.epsilon, self.delta))

    def to_gaussian(self) -> GaussianDP | None:
        """The largest μ² that is within (ε, δ), for steps that are all Gaussian; None where ε or δ are out of reach."""
        within = mu_squared_within(self.epsilon, self.delta)
        return None if within is None else GaussianDP(within)

    def to_pure(self) -> PureDP:
        """ε-DP is within (ε, δ)-DP."""
        return PureDP(self.epsilon)

    def __le__(self, other: object) -> bool:
        return isinstance(other, ApproxDP) and self.epsilon <= other.epsilon and self.delta <= other.delta

    def __str__(self) -> str:
        return f"ε = {float(self.epsilon):.6g}, δ = {float(self.delta):.3g} (approximate DP)"


@dataclass(frozen=True, init=False)
class GaussianDP(Budget):
    """μ-Gaussian differential privacy, by μ²: what all-Gaussian steps within an (ε, δ) budget are shared out in.

    A notion for shares, not for totals: a ledger keeps ε, ρ or (ε, δ). See :mod:`discreet.privacy.gaussian`.

    ``epsilon``: so much of ε it is instead, if all steps turn out to be pure (:mod:`.accounting`); None: nothing.
    """

    mu_squared: Fraction
    epsilon: Fraction | None = None
    notion = "gaussian"

    def __init__(self, mu_squared: Amount, epsilon: Amount | None = None) -> None:
        object.__setattr__(self, "mu_squared", _positive(mu_squared, "mu_squared"))
        object.__setattr__(self, "epsilon", None if epsilon is None else _positive(epsilon, "epsilon"))

    def split(self, weights: Sequence[Amount]) -> list[Budget]:
        pure = [None] * len(weights) if self.epsilon is None else shares(self.epsilon, weights)
        return [GaussianDP(m, e) for m, e in zip(shares(self.mu_squared, weights), pure, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        return {k: v for k, v in super().to_dict().items() if getattr(self, k) is not None}

    def __le__(self, other: object) -> bool:
        return isinstance(other, GaussianDP) and (
            self.mu_squared <= other.mu_squared and (self.epsilon or 0) <= (other.epsilon or 0)
        )

    def __str__(self) -> str:
        return f"μ² = {float(self.mu_squared):.6g} (Gaussian DP)"


def part_of(share: Budget, whole: Budget) -> Fraction:
    """Which part of a whole a share is: of its ε where both have one, otherwise of the ρ or μ² within it."""
    if isinstance(share, PureDP | ApproxDP) and isinstance(whole, PureDP | ApproxDP):
        return share.epsilon / whole.epsilon
    if isinstance(share, GaussianDP):
        within = whole.to_gaussian() if isinstance(whole, ApproxDP) else whole
        assert isinstance(within, GaussianDP)
        return share.mu_squared / within.mu_squared
    return _rho(share) / _rho(whole)


def _rho(budget: Budget) -> Fraction:
    if isinstance(budget, ZCDP):
        return budget.rho
    assert isinstance(budget, PureDP | ApproxDP)
    return budget.to_zcdp().rho


def _positive(amount: Amount, name: str) -> Fraction:
    value = exact(amount, name)
    if value <= 0:
        raise BudgetError(f"{name} must be positive, got {name}={amount}")
    if value > LARGEST:
        raise BudgetError(f"{name} must be at most {LARGEST:.0e}, got {name}={amount}; that protects nobody")
    return value


# -- conversions ---------------------------------------------------------------------------------------------------


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """zCDP of an arbitrary ε-DP mechanism: ε·tanh(ε/2) [HM25], rounded up; never above ε²/2 [BS16, Prop. 1.4]."""
    if epsilon < Fraction(1, 10**6):  # the two agree to twelve digits, and floats would underflow further down
        return epsilon**2 / 2
    return min(Fraction(float(epsilon) * math.tanh(float(epsilon) / 2)) * (1 + _SLACK), epsilon**2 / 2)


@lru_cache(maxsize=4096)
def epsilon_of_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """Least ε with ρ-zCDP ⇒ (ε, δ)-DP that [CKS20] proves, rounded up.

    For every α > 1, ε = αρ + ln(1/(αδ))/(α − 1) + ln(1 − 1/α) is sound, so the search for the best α cannot err on
    the wrong side.
    """
    if rho == 0:
        return Fraction(0)
    r, log_delta = float(rho), math.log(delta.numerator) - math.log(delta.denominator)

    def bound(log_gap: float) -> float:
        gap = math.exp(log_gap)  # α − 1
        alpha = 1 + gap
        return alpha * r + (-log_delta - math.log1p(gap)) / gap + log_gap - math.log1p(gap)

    low, high = -30.0, 60.0
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):  # golden section; the bound is quasi-convex in ln(α − 1)
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if bound(a) <= bound(b) else (a, high)
    value = max(bound((low + high) / 2), 0.0)
    return Fraction(value) * (1 + _SLACK) + Fraction(1, 10**14)


@lru_cache(maxsize=1024)
def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Largest ρ with :func:`epsilon_of_zcdp` at most ε, rounded down."""
    return _largest(lambda r: epsilon_of_zcdp(r, delta) <= epsilon, float(epsilon))


@lru_cache(maxsize=4096)
def epsilon_within(rho: Fraction) -> Fraction:
    """Largest ε with :func:`rho_of_pure` at most ρ, rounded down."""
    return _largest(lambda e: rho_of_pure(e) <= rho, math.sqrt(2 * rho) + float(rho))


def _largest(fits: Any, guess: float) -> Fraction:
    """Largest dyadic number (relative precision 2⁻⁴⁰) for which a monotone test holds."""
    high = Fraction(guess) + 1
    low = Fraction(0)
    while fits(high):
        low, high = high, high * 2
    while high - low > high / 2**40:
        middle = (low + high) / 2
        # Keep denominators small: a dyadic with 60 significant bits is enough.
        middle = Fraction(float(middle))
        if not low < middle < high:
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low == 0:
        raise BudgetError("the budget is too small to be converted")
    return low
