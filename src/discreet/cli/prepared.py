"""Everything public about a fit, checked and planned before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import WEIGHTS_REFUSED, InputError
from . import options
from .choices import Choices
from .console import say, say_json, say_table
from .failures import WrongUse

if TYPE_CHECKING:
    from ..domain import Domain
    from ..learn.procedure import Procedure
    from ..measurement import Measurement
    from ..spec import Spec

TYPICAL_WEIGHT = 0.35  # of an edge, when nothing is said: that of the papers' experiments


@dataclass(frozen=True)
class Prepared:
    """Everything public about a fit, checked: what is wrong is found before a row is read and anything is spent."""

    choices: Choices
    domain: Domain
    spec: Spec
    procedure: Procedure
    totals: tuple[Measurement, ...]
    public_size: int | None


def prepare(choices: Choices) -> Prepared:
    """Check all that is public and make the plan."""
    from ..report.card import check_stated
    from ..schema import load_totals

    if choices.weight is not None:
        raise WrongUse(f"--weight {choices.weight}: {WEIGHTS_REFUSED}")
    options.check_engine(choices.engine)
    check_stated(choices.card)
    budget, unit, domain = choices.budget(), choices.unit(), choices.domain()
    totals = load_totals(choices.schema or "", domain)
    public_size = _public_size(choices, totals)
    spec = choices.spec(domain, public_size)
    options.check_noise(spec.options.get("noise", "auto"), budget, "--option noise=laplace")
    procedure = spec.prepare(domain, unit, budget, public_size, choices.approximate_size, totals)
    return Prepared(choices, domain, spec, procedure, totals, public_size)


def _public_size(choices: Choices, totals: tuple[Measurement, ...]) -> int | None:
    """The number of records, if it is public; public totals imply it."""
    from ..learn.checks import checked_public_size

    said = checked_public_size(choices.public_size)
    sizes = {int(t.counts.sum()) for t in totals if not t.proportions} | ({said} if said is not None else set())
    if len(sizes) > 1:
        numbers = " and ".join(f"{n:,}" for n in sorted(sizes))
        raise WrongUse(f"the public totals disagree about the number of records: {numbers}; mend the [[totals]]")
    return next(iter(sizes), None)


def show_plan(prepared: Prepared, *, as_json: bool) -> None:
    from ..forecasts import cost_forecast
    from . import views

    forecast = cost_forecast(prepared.spec, prepared.domain.forecast, prepared.procedure)
    if as_json:
        say_json(
            {
                "plan": prepared.procedure.to_dict(),
                "spec": prepared.spec.to_dict(),
                "bytes": forecast.bytes,
                "seconds": forecast.seconds,
            }
        )
        return
    views.show_plan(prepared.spec, prepared.procedure)
    views.say_lines((*forecast.lines(), *_bounds(prepared)))
    if prepared.totals:
        say(f"Public totals of the schema: {', '.join(t.label for t in prepared.totals)}. They cost nothing.")


def show_sweep(prepared: Prepared, said: list[str], *, as_json: bool) -> None:
    """Expected error against the budget and the number of records, before a row is read."""
    from ..privacy.budget import ZCDP
    from ..sweeps import spaced, sweep

    own = "rho" if isinstance(prepared.procedure.budget, ZCDP) else "epsilon"
    ranges: dict[str, tuple[float, ...]] = {}
    for text in said:
        name, _, values = text.partition("=")
        low, sign, high = values.partition(":")
        if name not in (own, "records") or name in ranges:
            raise WrongUse(f"--sweep {text!r}: write {own}=0.1:10 or records=1000:1e6, each once")
        try:
            ranges[name] = spaced(float(low), float(high if sign else low))
        except ValueError:
            raise WrongUse(f"--sweep {text!r}: write {name}=LOW:HIGH with two numbers") from None
    size = prepared.public_size or prepared.choices.approximate_size
    sizes = ranges.get("records") or ((size,) if size else ())
    procedure = prepared.procedure
    found = sweep(
        prepared.spec, prepared.domain, procedure.unit, procedure.budget, amounts=ranges.get(own, ()), sizes=sizes
    )
    if as_json:
        say_json({"sweep": found.to_dict(), "spec": prepared.spec.to_dict()})
        return
    say(f"{prepared.spec}. No row has been read.")
    say(f"Expected total variation of {found.what}:")
    say_table(found.headings, found.rows(), right=found.headings)


def _bounds(prepared: Prepared) -> list[str]:
    """Where the graph is learned with the parameters: how many records these would need, from experience."""
    from ..privacy.budget import ZCDP, ApproxDP

    spec, budget, domain = prepared.spec, prepared.procedure.budget, prepared.domain.forecast
    told = {**spec.entry.options, **spec.options}
    if spec.entry.needs or "min_weight" not in told or len(domain) < 2:
        return []
    from ..papers.theory import advise  # much to load, for few plans

    weight = float(told["min_weight"] or TYPICAL_WEIGHT)
    spent = {"rho": float(budget.rho)} if isinstance(budget, ZCDP) else {"epsilon": float(budget.epsilon)}  # type: ignore[attr-defined]
    if isinstance(budget, ApproxDP):
        spent["delta"] = float(budget.delta)
    try:
        found = advise(
            len(domain),
            edge_weight=weight,
            k=max(domain.shape),
            t=int(told.get("order", 2)),
            n=prepared.public_size or prepared.choices.approximate_size,
            **spent,
        )
    except InputError:  # outside of what was measured or proved
        return []
    whose = "" if told["min_weight"] else " (no min_weight was given: a typical one)"
    return [f"For edges of weight {weight:g}{whose}; `discreet bounds` says more:", *found.summary()]
