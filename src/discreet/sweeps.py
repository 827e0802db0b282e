"""What does ε buy? Expected error at several budgets and numbers of records, before a row is read."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .domain import Domain
from .errors import InputError
from .learn.error_curve import scaled_budget
from .learn.fields.forecast import WITHIN
from .learn.procedure import Whole
from .models.plotting import axes_for
from .privacy.budget import ZCDP, Budget
from .privacy.unit import PrivacyUnit
from .spec import Spec

SIZES = (1_000, 10_000, 100_000, 1_000_000)
POINTS = 7


@dataclass(frozen=True)
class Sweep:
    """Expected errors: ``errors[i][j]`` at the i-th budget and the j-th number of records, as total variation.

    ``what`` says of which tables: those that are measured, or all pairs where the tables are found privately.
    """

    budgets: tuple[Budget, ...]
    amounts: tuple[float, ...]
    sizes: tuple[float, ...]
    errors: tuple[tuple[float, ...], ...]
    symbol: str
    what: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "budgets": [budget.to_dict() for budget in self.budgets],
            "records": list(self.sizes),
            "expected_total_variation": [list(row) for row in self.errors],
        }

    def rows(self) -> list[list[str]]:
        """A line a budget, for people."""
        return [
            [f"{amount:.4g}", *(_shown(error) for error in row)]
            for amount, row in zip(self.amounts, self.errors, strict=True)
        ]

    @property
    def headings(self) -> list[str]:
        return [f"total {self.symbol}", *(f"n = {size:,.0f}" for size in self.sizes)]

    def plot(self, ax: Any = None) -> Any:
        """Error against the budget, a line for each number of records; returns the matplotlib ``Axes``."""
        ax = axes_for(ax, (5.5, 3.8))
        for j, size in enumerate(self.sizes):
            ax.loglog(self.amounts, [row[j] for row in self.errors], "o-", markersize=4, label=f"{size:,.0f} records")
        ax.set(xlabel=f"total {self.symbol}", ylabel="expected total variation")
        ax.set_title(textwrap.fill(self.what, 60), fontsize=9)
        ax.legend(fontsize=8)
        return ax


def sweep(
    spec: Spec,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    amounts: Sequence[float] = (),
    sizes: Sequence[float] = (),
) -> Sweep:
    """What a specification would reach at other totals than ``budget`` (``amounts`` of ε, or of ρ) and with so many
    records. Nothing is read."""
    budgets = [scaled_budget(budget, amount) for amount in amounts] if amounts else [budget]
    sizes = tuple(map(float, sizes or SIZES))
    if not all(size >= 1 and math.isfinite(size) for size in sizes):
        raise InputError(f"numbers of records are at least 1, got {sizes}")
    errors, what = [], ""
    for each in budgets:
        found = [_expected(spec, Whole(domain, unit, each), size) for size in sizes]
        errors.append(tuple(error for error, _ in found))
        what = found[0][1]
    if domain.sought:
        names = ", ".join(a.name for a in domain.sought)
        what += f"; at most, since what is to be found of {names} is counted at its largest (`most`, `at_most`)"
    told = tuple(float(b.rho if isinstance(b, ZCDP) else b.epsilon) for b in budgets)  # type: ignore[attr-defined]
    symbol = "ρ" if isinstance(budget, ZCDP) else "ε"
    return Sweep(tuple(budgets), told, sizes, tuple(errors), symbol, what)


def _expected(spec: Spec, whole: Whole, size: float) -> tuple[float, str]:
    error = spec.learner().pair_error(whole, size)
    if error is not None:
        return error, (
            "all pairs of columns, on average; the tables are found privately, so this is a rough forecast "
            f"(within a factor of {WITHIN:g} on nine of ten other tables, too large where most cells are empty)"
        )
    procedure = spec.prepare(whole.domain, whole.unit, whole.budget)
    tables = [t for t in procedure.tables if t.clique and t.cells]
    if not tables:
        raise InputError(
            f"{spec.family}, {spec.method} has no tables whose error is known before a row is read; `discreet bounds` "
            "says how many records it takes"
        )
    mean = sum(t.expected_error for t in tables) / len(tables)
    return min(1.0, mean / (2 * size)), "the tables that are measured, on average, before they are made consistent"


def spaced(low: float, high: float, points: int = POINTS) -> tuple[float, ...]:
    """So many numbers from low to high, evenly on a logarithmic scale, with two digits."""
    if not 0 < low <= high < math.inf:
        raise InputError(f"a sweep goes from a positive number up to a larger one, as in 0.1:10; got {low:g}:{high:g}")
    if low == high:
        return (low,)
    steps = (low * (high / low) ** (i / (points - 1)) for i in range(points))
    return tuple(dict.fromkeys(float(f"{x:.2g}") for x in steps))


def _shown(error: float) -> str:
    return f"{error:.3f}" if error >= 0.01 else f"{error:.2g}"
