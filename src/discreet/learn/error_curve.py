"""Expected error against the budget, from a plan: what more ε would buy, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..measurement import Noise
from ..models.plotting import axes_for
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP

FACTORS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


@dataclass(frozen=True)
class ErrorCurve:
    """Expected error at several budgets. ``errors`` are records, or L1 distances a table if the size is known."""

    budgets: tuple[Budget, ...]
    errors: tuple[float, ...]
    relative: bool
    symbol: str

    @property
    def amounts(self) -> tuple[float, ...]:
        return tuple(float(_amount(b)) for b in self.budgets)

    def plot(self, ax: Any = None) -> Any:
        """Draw it on logarithmic axes; returns the matplotlib ``Axes``."""
        ax = axes_for(ax, (5, 3.5))
        ax.loglog(self.amounts, self.errors, "o-", color="#5a8fc8")
        ax.set(xlabel=f"total {self.symbol}", ylabel="mean L1 error of a table" if self.relative else "records")
        ax.set_title("Expected error before anything is done about it", fontsize=10)
        return ax

    def __str__(self) -> str:
        what = "mean L1 error of a table" if self.relative else "expected |error|, records"
        lines = [f"{self.symbol:>8}  {what}"]
        lines += [f"{a:8.4g}  {e:.3g}" for a, e in zip(self.amounts, self.errors, strict=True)]
        return "\n".join(lines)


def mean_absolute(noise: Noise) -> float:
    """E|noise|: √(2/π)·σ for Gaussian noise, σ/√2 for Laplace noise, but for the effect of whole numbers."""
    return noise.standard_deviation * (math.sqrt(2 / math.pi) if noise.kind == "gaussian" else math.sqrt(0.5))


def error_curve(
    tables: Sequence[tuple[float, Noise]], own: Budget, size: float | None, amounts: Sequence[float] | None = None
) -> ErrorCurve:
    """Expected error of tables of so many cells at other totals than ``own``, with the same shares and kind of noise.

    Laplace noise shrinks as 1/ε, Gaussian noise as 1/√ρ.
    """
    if not tables:
        raise InputError("this plan has no tables whose error is known before a row is read")
    budgets = [scaled_budget(own, Fraction(repr(float(f))) * _amount(own)) for f in FACTORS]
    if amounts is not None:
        if not amounts or not all(math.isfinite(a) and a > 0 for a in amounts):
            raise InputError(f"amounts are positive numbers, the totals to compare; got {list(amounts)!r}")
        budgets = [scaled_budget(own, a) for a in amounts]
    errors = []
    for budget in budgets:
        whole = sum(cells * mean_absolute(_shrunk(noise, own, budget)) for cells, noise in tables)
        errors.append(whole if size is None else whole / size / len(tables))
    symbol = "ρ" if isinstance(own, ZCDP) else "ε"
    return ErrorCurve(tuple(budgets), tuple(errors), size is not None, symbol)


def _amount(budget: Budget) -> Fraction:
    if isinstance(budget, ZCDP):
        return budget.rho
    assert isinstance(budget, PureDP | ApproxDP)
    return budget.epsilon


def scaled_budget(budget: Budget, amount: float | Fraction) -> Budget:
    """A budget of the same kind with another total of ε (or of ρ)."""
    if isinstance(amount, float | int):
        amount = Fraction(repr(float(amount)))  # the decimal that a person sees
    if isinstance(budget, ApproxDP):
        return ApproxDP(amount, budget.delta)
    return type(budget)(amount)  # type: ignore[call-arg]


def _shrunk(noise: Noise, old: Budget, new: Budget) -> Noise:
    if isinstance(old, PureDP) or (isinstance(old, ApproxDP) and noise.kind == "laplace"):
        return Noise(noise.kind, noise.scale * float(_amount(old) / _amount(new)))
    rho = [b.rho if isinstance(b, ZCDP) else b.to_zcdp().rho for b in (old, new)]  # type: ignore[attr-defined]
    return Noise(noise.kind, noise.scale * math.sqrt(rho[0] / rho[1]))
