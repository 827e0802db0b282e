"""Everything public about a fit, checked and planned before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import WEIGHTS_REFUSED, BudgetError, InputError
from . import options
from .choices import Choices
from .console import say, say_json
from .failures import WrongUse

if TYPE_CHECKING:
    from ..domain import Domain
    from ..learn.procedure import Plan
    from ..measurement import Measurement
    from ..privacy.budget import Budget
    from ..privacy.unit import PrivacyUnit
    from ..spec import Recipe

TYPICAL_WEIGHT = 0.35  # of an edge, when nothing is said: that of the papers' experiments


@dataclass(frozen=True)
class Prepared:
    """Everything public about a fit, checked: what is wrong is found before a row is read and anything is spent."""

    choices: Choices
    budget: Budget
    unit: PrivacyUnit
    domain: Domain
    recipe: Recipe
    plan: Plan
    totals: tuple[Measurement, ...]
    public_size: int | None


def prepare(choices: Choices) -> Prepared:
    """Check all that is public and make the plan."""
    from ..privacy.budget import PureDP
    from ..report.card import check_stated
    from ..schema import load_totals

    if choices.weight is not None:
        raise WrongUse(f"--weight {choices.weight}: {WEIGHTS_REFUSED}")
    options.check_engine(choices.engine)
    for name in ("public_size", "approximate_size"):
        value = getattr(choices, name)
        if value is not None and value < 1:
            raise WrongUse(f"--{name.replace('_', '-')} is a whole number of at least 1, got {value}")
    check_stated(choices.card)
    budget, unit, domain = choices.budget(), choices.unit(), choices.domain()
    totals = load_totals(choices.schema or "", domain)
    public_size = _public_size(choices, totals)
    try:
        recipe = choices.recipe(domain)
        if recipe.options.get("noise") == "gaussian" and isinstance(budget, PureDP):
            raise BudgetError(
                "Gaussian noise is not pure ε-DP: add --delta 1e-6 to --epsilon, or give --rho instead of it, or take "
                "--option noise=laplace"
            )
        size = public_size if public_size is not None else choices.approximate_size
        plan = recipe.plan(domain, unit, budget, size)
    except InputError as error:
        raise WrongUse(str(error)) from None
    return Prepared(choices, budget, unit, domain, recipe, plan, totals, public_size)


def _public_size(choices: Choices, totals: tuple[Measurement, ...]) -> int | None:
    """The number of records, if it is public; public totals imply it."""
    sizes = {int(t.counts.sum()) for t in totals if not t.proportions} | (
        {choices.public_size} if choices.public_size is not None else set()
    )
    if len(sizes) > 1:
        numbers = " and ".join(f"{n:,}" for n in sorted(sizes))
        raise WrongUse(f"the public totals disagree about the number of records: {numbers}; mend the [[totals]]")
    return next(iter(sizes), None)


def show_plan(prepared: Prepared, *, as_json: bool) -> None:
    from ..forecasts import cost_forecast

    forecast = cost_forecast(prepared.recipe, prepared.domain, prepared.plan)
    if as_json:
        say_json(
            {
                "plan": prepared.plan.to_dict(),
                "recipe": prepared.recipe.to_dict(),
                "bytes": forecast.bytes,
                "seconds": forecast.seconds,
            }
        )
        return
    say(f"Plan: {prepared.recipe}. No row has been read.")
    for text in str(prepared.plan).splitlines():
        say(text)
    for text in forecast.lines():
        say(text)
    for text in _bounds(prepared):
        say(text)
    if prepared.totals:
        say(f"Public totals of the schema: {', '.join(t.label for t in prepared.totals)}. They cost nothing.")


def _bounds(prepared: Prepared) -> list[str]:
    """For Markov random fields: how many records the graph and the parameters would need, from experience."""
    from ..papers.theory import advise
    from ..privacy.budget import ZCDP, ApproxDP

    family, budget = prepared.recipe.family, prepared.budget
    if family not in ("ising", "pairwise", "binary") or len(prepared.domain) < 2:
        return []
    weight = float(prepared.recipe.options.get("min_weight") or TYPICAL_WEIGHT)
    spent = {"rho": float(budget.rho)} if isinstance(budget, ZCDP) else {"epsilon": float(budget.epsilon)}  # type: ignore[attr-defined]
    if isinstance(budget, ApproxDP):
        spent["delta"] = float(budget.delta)
    try:
        found = advise(
            len(prepared.domain),
            edge_weight=weight,
            k=max(prepared.domain.shape) if family == "pairwise" else 2,
            t=int(prepared.recipe.options.get("order", 3)) if family == "binary" else 2,
            n=prepared.choices.public_size or prepared.choices.approximate_size,
            **spent,
        )
    except InputError:  # outside of what was measured or proved
        return []
    whose = "" if prepared.recipe.options.get("min_weight") else " (no min_weight was given: a typical one)"
    return [f"For edges of weight {weight:g}{whose}; `discreet bounds` says more:", *found.summary()]
