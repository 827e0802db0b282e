"""The card of a model: the curator's statement of who is protected and what was spent, with what the learner adds."""

from __future__ import annotations

from typing import Any

from ..claimed import CLAIMED
from ..measurement import Measurement, Measurements
from .error_curve import mean_absolute
from .planned import HOPELESS

NOISE_ONLY = "noise only: in every table the noise outweighs the records, so this says next to nothing about the data"


def card_of(measurements: Measurements, method: str, records: float | None = None, **facts: Any) -> dict[str, Any]:
    """What is exact or seeded leaves its mark. ``records``: how many there are as far as the noisy tables tell; where
    noise outweighs all of them the card says so, and every answer of the model."""
    statement = {key: value for key, value in measurements.release.items() if key != "found"}
    card = {**facts, **statement, "method": method}  # what was spent is the curator's to say
    card["noise"] = sorted({m.noise.kind for m in measurements if m.origin != "public"})
    if not measurements.is_release:
        odd = [m.origin for m in measurements if m.origin not in ("release", "public")]
        worse = [origin for origin in odd if origin != CLAIMED]  # a mark that nothing may be published goes first
        card["origin"] = (worse or odd or [card.get("origin", "research")])[0]
    noisy = [m for m in measurements if m.noise.variance and m.clique != ()]  # the number of records is no table
    if records is not None and noisy and all(_expected_error(m) >= HOPELESS * records for m in noisy):
        card["caution"] = NOISE_ONLY
    if measurements.caution:
        card["caution"] = "; ".join(filter(None, (measurements.caution, card.get("caution"))))
    return card


def _expected_error(m: Measurement) -> float:
    return m.counts.size * mean_absolute(m.noise) * float(m.grid)
