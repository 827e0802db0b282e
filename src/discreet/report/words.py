"""A release in plain words: what is promised, to whom, and what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.unit import PrivacyUnit

USUAL_DELTA = "1e-6"
WEAK_EPSILON = 10
NOT_PROTECTED = (
    "How long the computation took, and how much memory it used.",
    "What other releases from the same records say, if they were charged to another ledger: their costs add up.",
    "Facts about groups. That smokers cough more often is what the release is for; it would be learned with or without "
    "any one person.",
    "Whatever was declared public: the columns and their levels, and anything listed under “What was public”.",
)


def require_release(card: Mapping[str, Any] | None, what: str) -> Mapping[str, Any]:
    """The card of a real release; anything else must not be shown as one."""
    if card is None or "budget" not in card:
        raise InputError(
            f"{what} is no release: it carries no statement of what was spent. A report is written for models that "
            "were learned through a curator"
        )
    if card.get("origin") != "release":
        raise InputError(
            f"{what} is no release: it was made {_how(card.get('origin'))}, without any protection, and must not be "
            "shown as one"
        )
    return card


def _how(origin: object) -> str:
    return {"exact": "from exact counts", "research": "with seeded noise"}.get(str(origin), "in another way")


def guarantee(card: Mapping[str, Any]) -> list[str]:
    """Sentences for somebody who has never heard of differential privacy."""
    budget, unit = Budget.from_dict(dict(card["budget"])), PrivacyUnit.from_dict(dict(card["unit"]))
    converted = budget.to_approx(USUAL_DELTA) if isinstance(budget, ZCDP) else budget
    assert isinstance(converted, PureDP | ApproxDP)
    epsilon = float(converted.epsilon)
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 20 else f"e^{epsilon:.4g}"
    chance = ""
    if isinstance(converted, ApproxDP):
        chance = f", except with a probability of {float(converted.delta):.3g}"
    if unit.relation == "add-remove":
        change = f"had {_who(unit)} not been in the data"
    else:
        change = f"had the values of {_who(unit)} been any others"
    lines = [
        f"Nothing on this page would have been more than {factor} times likelier or less likely to appear {change}"
        f"{chance}.",
    ]
    if unit.column is not None:
        rows = "one row" if unit.max_rows == 1 else f"{unit.max_rows} rows"
        lines.append(
            f"All rows with the same “{unit.column}” are protected together. At most {rows} of each were used, chosen "
            "at random."
        )
    if epsilon > WEAK_EPSILON:
        lines.append(f"This is weak protection: beyond ε = {WEAK_EPSILON} noise hides next to nothing about anybody.")
    return lines


def formal(card: Mapping[str, Any]) -> str:
    """The guarantee as a specialist writes it."""
    budget, unit = Budget.from_dict(dict(card["budget"])), PrivacyUnit.from_dict(dict(card["unit"]))
    text = f"{budget}; neighbours: {unit}"
    return f"{text}; that is {budget.to_approx(USUAL_DELTA)}" if isinstance(budget, ZCDP) else text


def public_facts(card: Mapping[str, Any]) -> list[str]:
    """What was known before, and cost nothing."""
    out = ["The columns and their levels: the schema."]
    if card.get("public_size") is not None:
        out.append(f"The number of records: {card['public_size']:,}.")
    out += [f"{what}." for what in card.get("public", ())]
    return out


def peeked_facts(card: Mapping[str, Any]) -> list[str]:
    """What was learned by looking at the private data without protection."""
    return [f"{name}: {', '.join(what)}" for name, what in dict(card.get("peeked", {})).items()]


def _who(unit: PrivacyUnit) -> str:
    return "any one record" if unit.column is None else f"any one “{unit.column}”"
