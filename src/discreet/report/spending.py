"""Where a budget went, from the public facts that a release carries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..measurement import Measurement, Measurements
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP

STEPS = {
    "Marginals": "table",
    "CellSums": "sum",
    "ScaledSteps": "table of steps",
    "TripleSums": "sum of triples",
    "ParitySums": "parity",
    "LogLikelihood": "likelihood",
    "LogisticGradients": "gradient",
    "ClippedGradients": "gradient",
    "PenalisedFit": "fit",
    "Dependence": "choice of parents or groups",
    "WorstTable": "choice of a table",
    "LargestSum": "choice of the largest sum",
    "SignedResiduals": "choice of a question",
    "ParityResiduals": "choice of a parity",
    "PartnerResiduals": "choice of neighbours",
    "SteepestVertex": "step of a regression",
    "SteepestGroup": "step of a regression",
    "CorrelationTest": "test whether a graph is far from changing",
    "SpinTest": "test whether a graph is far from changing",
    "DependenceTest": "test whether a graph is far from changing",
    "partition": "division into disjoint parts",
    "subsample": "question to a random sample",
    "in sequence": "sequence of steps",
    "vote": "vote of parts",
    "vote for each": "vote of parts",
    "vote and test": "vote of parts",
}
"""What a curator calls its steps, in words; one that is not here is called by its name."""
_PLURALS = {"parity": "parities", "choice": "choices", "division": "divisions"}


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
    for _, group in itertools.groupby(card.get("steps", ()), _alike):
        steps = list(group)
        shares = [_amount(Budget.from_dict(dict(step["share"])), like=whole) for step in steps]
        part = float(sum((amount for _, amount in shares), Fraction(0)) / whole[1])
        tables = _tables_of(steps[0], measurements)
        weights = [_weight(m) for m in tables]
        if tables and all(weights):
            out += [Portion(m.label, part * w / sum(weights)) for m, w in zip(tables, weights, strict=True)]
        else:
            out.append(Portion(describe_steps(steps, most=3), part))
    left = 1 - sum(p.part for p in out)
    return [*out, Portion("not used", left)] if left > 0.005 else out


def _alike(step: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Steps that follow each other and are alike in this are one to a reader."""
    return _kind(step), tuple(map(str, step.get("parts", ())))


def describe_step(step: Mapping[str, Any], most: int = 3) -> str:
    """One step of a curator in words, with the names of its parts unless there are more than ``most``."""
    names = [str(part) for part in step.get("parts", ())]
    kind = _kind(step)
    if names == ["number of records"]:
        return "the number of records"
    if not names:
        return f"a {kind}"
    if len(names) > most:
        return _counted(len(names), kind)
    return f"{kind if len(names) == 1 else _plural(kind)} {', '.join(names)}"


def describe_steps(steps: Iterable[Mapping[str, Any]], most: int = 8) -> str:
    """All steps of a release in words; equal ones that follow each other are counted."""
    out = []
    for (kind, parts), group in itertools.groupby(steps, _alike):
        alike = list(group)
        text = describe_step(alike[0], most)
        out.append(text if len(alike) == 1 else f"{len(alike)} × {text}" if parts else _counted(len(alike), kind))
    return "; ".join(out)


def _kind(step: Mapping[str, Any]) -> str:
    name = str(step.get("query") or step.get("score") or step.get("test") or "question").lstrip("_")
    return STEPS.get(name, name)


def _counted(number: int, kind: str) -> str:
    return f"{number:,} {kind if number == 1 else _plural(kind)}"


def _plural(kind: str) -> str:
    """ "choices of parents": the first word alone has a plural."""
    first, space, rest = kind.partition(" ")
    return _PLURALS.get(first, f"{first}s") + space + rest


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
