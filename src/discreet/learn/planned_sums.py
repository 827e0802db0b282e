"""Entries of a plan that are sums other than contingency tables, and selections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..measurement import Measurement, Measurements, Noise
from ..privacy.budget import Budget, PureDP
from ..privacy.calibration import SelectionChoice, plan_selection
from .procedure import PlannedTable

_SELECTIONS = {"exponential": "exponential mechanism", "noisy-max": "report noisy max"}


@dataclass(frozen=True)
class PlannedSums(PlannedTable):
    """Sums under a name of their own; see :func:`settled_later` for those whose number is not known before."""

    name: str = ""
    mechanism: str = ""

    @property
    def label(self) -> str:
        return self.name

    @property
    def how(self) -> str:
        return self.mechanism or super().how


def settled_later(name: str, share: float, *mechanisms: str) -> PlannedSums:
    """What will be asked on the way, selections or sums of what was found: how it is protected is known before, how
    many numbers come out, and hence the noise of each, is not."""
    return PlannedSums((), 0, share, Noise("none"), name=name, mechanism=", then ".join(mechanisms))


def selecting(budget: Budget, mechanism: SelectionChoice = "auto") -> str:
    """The mechanism that a curator selects with, in words."""
    kind = plan_selection(1, budget, mechanism)[0].kind
    return _SELECTIONS.get(kind, kind)


def measuring(budget: Budget) -> str:
    """The noise that a curator may draw for sums which are not known yet: with Gaussian noise to choose, their number
    decides."""
    return "laplace" if isinstance(budget, PureDP) else "laplace or gaussian"


def release_card(statement: dict[str, Any], measured: Measurements | list[Measurement], **facts: Any) -> dict[str, Any]:
    """The curator's statement with what the learner adds; exact and research values leave their mark."""
    card = {**statement, **facts, "noise": sorted({m.noise.kind for m in measured if m.origin != "public"})}
    tainted = [m.origin for m in measured if m.origin not in ("release", "public")]
    if tainted:
        card["origin"] = tainted[0]
    return card
