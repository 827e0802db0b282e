"""Where a budget went, from the public facts that a release carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..measurement import Measurement, Measurements
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP

STEPS = {
    "Marginals": "tables",
    "partition": "disjoint parts",
    "subsample": "a random sample",
    "vote": "a vote of parts",
}


@dataclass(frozen=True)
class Portion:
    """A part of the budget and what it was spent on."""

    what: str
    part: float


def portions(card: Mapping[str, Any], measurements: Measurements | None = None) -> list[Portion]:
    """The parts of the budget, in the order in which they were spent; what was left over comes last.

    A step of several tables is taken apart when its measurements are at hand: a Laplace table costs in proportion to
    1/scale, a Gaussian one to 1/scale². Under (ε, δ), parts are of the zCDP budget inside it.
    """
    whole = _amount(Budget.from_dict(dict(card["budget"])))
    out: list[Portion] = []
    for step in card.get("steps", ()):
        share = _amount(Budget.from_dict(dict(step["share"])), like=whole)
        part = float(share[1] / whole[1])
        tables = _tables_of(step, measurements)
        weights = [_weight(m) for m in tables]
        if tables and all(weights):
            out += [Portion(m.label, part * w / sum(weights)) for m, w in zip(tables, weights, strict=True)]
        else:
            out.append(Portion(describe_step(step), part))
    left = 1 - sum(p.part for p in out)
    return [*out, Portion("not used", left)] if left > 0.005 else out


def describe_step(step: Mapping[str, Any]) -> str:
    """One step of a curator in words."""
    name = str(step.get("query", "a question"))
    names = [str(part) for part in step.get("parts", ())]
    text = STEPS.get(name, name)
    if names and len(names) <= 3:
        return f"{text}: {', '.join(names)}"
    return f"{len(names)} {text}" if names else text


def _tables_of(step: Mapping[str, Any], measurements: Measurements | None) -> list[Measurement]:
    labels = [str(part) for part in step.get("parts", ())]
    by_label = {m.label: m for m in measurements or () if m.origin == "release"}
    return [by_label[label] for label in labels] if labels and all(label in by_label for label in labels) else []


def _weight(measurement: Measurement) -> float:
    scale = measurement.noise.scale
    if scale <= 0:
        return 0.0
    return 1 / scale if measurement.noise.kind == "laplace" else 1 / scale**2


def _amount(budget: Budget, like: tuple[str, Fraction] | None = None) -> tuple[str, Fraction]:
    """A number that adds up within its notion: ε for pure DP, ρ otherwise."""
    if isinstance(budget, PureDP) and (like is None or like[0] == "epsilon"):
        return "epsilon", budget.epsilon
    if isinstance(budget, PureDP | ApproxDP):
        return "rho", budget.to_zcdp().rho
    assert isinstance(budget, ZCDP)
    return "rho", budget.rho


def merged(parts: Iterable[Portion], most: int = 12) -> list[Portion]:
    """At most ``most`` portions: the smallest ones are put together."""
    shown = list(parts)
    if len(shown) <= most:
        return shown
    by_size = sorted(shown, key=lambda p: -p.part)
    few = {id(p) for p in by_size[most - 1 :] if p.what != "not used"}
    rest = [p for p in shown if id(p) in few]
    together = Portion(f"{len(rest)} more", sum(p.part for p in rest))
    kept = [p for p in shown if id(p) not in few]
    at = next((i for i, p in enumerate(kept) if p.what == "not used"), len(kept))
    return [*kept[:at], together, *kept[at:]]
