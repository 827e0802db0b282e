"""Entries of a plan that are sums other than contingency tables, and selections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..measurement import Measurement, Measurements
from .plan import PlannedTable


@dataclass(frozen=True)
class PlannedSums(PlannedTable):
    """Sums (or, with ``cells`` = 0, selections) under a name of their own."""

    name: str = ""

    @property
    def label(self) -> str:
        return self.name


def release_card(statement: dict[str, Any], measured: Measurements | list[Measurement], **facts: Any) -> dict[str, Any]:
    """The curator's statement with what the learner adds; exact and research values leave their mark."""
    card = {**statement, **facts, "noise": sorted({m.noise.kind for m in measured if m.origin != "public"})}
    tainted = [m.origin for m in measured if m.origin not in ("release", "public")]
    if tainted:
        card["origin"] = tainted[0]
    return card
