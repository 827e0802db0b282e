"""A release in plain words: what is promised, to whom, and what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..claimed import CLAIMED
from ..errors import InputError, counted
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.unit import PrivacyUnit
from ..release.certificate import Certificate

USUAL_DELTA = "1e-6"
WEAK_EPSILON = 10
WEAK_DELTA = 1e-3
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
    if card.get("origin") not in ("release", CLAIMED):
        raise InputError(
            f"{what} is no release: it was made {_how(card.get('origin'))}, without any protection, and must not be "
            "shown as one"
        )
    return card


def _how(origin: object) -> str:
    return {"exact": "from exact counts", "research": "with seeded noise"}.get(str(origin), "in another way")


def guarantee(card: Mapping[str, Any], what: str = "Nothing on this page") -> list[str]:
    """Sentences for somebody who has never heard of differential privacy; ``what`` they speak of comes first."""
    budget, unit = Budget.from_dict(dict(card["budget"])), PrivacyUnit.from_dict(dict(card["unit"]))
    warning = [weak] if (weak := weak_protection(budget)) else []
    told = [promise(budget, unit, f"{what}{certificate_aside(card)}"), *clipping(unit), *bought_beside(card)]
    return [*claim(card), *told, *warning]


def claim(card: Mapping[str, Any]) -> list[str]:
    """A word before a guarantee that others have claimed; nothing before one of our own."""
    if card.get("origin") != CLAIMED:
        return []
    return [
        f"A CLAIM, NOT VERIFIED: the noisy tables were made elsewhere ({str(card.get('source', 'not stated'))[:200]}). "
        "What follows is what whoever made them claims; discreet neither drew their noise nor can compute what it "
        "protects."
    ]


def promise(budget: Budget, unit: PrivacyUnit, what: str) -> str:
    """What is promised, in one sentence."""
    converted = as_approximate(budget)
    epsilon = float(converted.epsilon)
    factor = _rounded_up(math.exp(epsilon)) if epsilon < 20 else f"e^{epsilon:.4g}"
    chance = ""
    if isinstance(converted, ApproxDP):
        chance = f", give or take a probability of {float(converted.delta):.3g}"
    who = "any one record" if unit.column is None else f"any one “{unit.column}”"
    if unit.relation == "add-remove":
        change = f"had {who} not been in the data"
    else:
        change = f"had the values of {who} been any others"
    return f"{what} would have been more than {factor} times likelier or less likely to appear {change}{chance}."


def _rounded_up(factor: float) -> str:
    """To three digits and never down: it is an upper bound."""
    step = 10.0 ** (math.floor(math.log10(factor)) - 2)
    rounded = math.ceil(factor / step) * step
    return f"{rounded:.3g}" if rounded < 1000 else f"{rounded:,.0f}"


def clipping(unit: PrivacyUnit) -> list[str]:
    """Whose rows are protected together, and what the counts are counts of when not all rows of a person count."""
    if unit.column is None:
        return []
    return [
        f"All rows with the same “{unit.column}” are protected together. At most {counted(unit.max_rows, 'row')} of "
        f"each count{'s' * (unit.max_rows == 1)}, chosen at random; rows without a “{unit.column}” do not. Intervals "
        "cover the noise, not the rows left out."
    ]


def weak_protection(budget: Budget) -> str | None:
    """A plain word about a budget that hardly protects; None for one that does."""
    converted = as_approximate(budget)
    if isinstance(converted, ApproxDP) and converted.delta > WEAK_DELTA:
        return (
            f"δ = {float(converted.delta):.3g} is the chance that nothing at all is protected, and it may strike each "
            "person: take it far below one in the number of records, as 1e-6."
        )
    if converted.epsilon <= WEAK_EPSILON:
        return None
    which = f"{budget}, which is {converted}," if converted is not budget else f"{budget}"
    return (
        f"{which} protects hardly at all: beyond ε = {WEAK_EPSILON} the noise hides next to nothing about anybody. "
        "Common choices are ε = 1 or less."
    )


def as_approximate(budget: Budget) -> PureDP | ApproxDP:
    """The budget as ε, with a δ: the usual one for zCDP, which is not stated in either."""
    converted = budget.to_approx(USUAL_DELTA) if isinstance(budget, ZCDP) else budget
    assert isinstance(converted, PureDP | ApproxDP)
    return converted


def formal(card: Mapping[str, Any]) -> str:
    """The guarantee as a specialist writes it."""
    budget, unit = Budget.from_dict(dict(card["budget"])), PrivacyUnit.from_dict(dict(card["unit"]))
    text = f"{budget}; neighbours: {unit}{'; as claimed, not verified' if claim(card) else ''}"
    return f"{text}; that is {budget.to_approx(USUAL_DELTA)}" if isinstance(budget, ZCDP) else text


def public_facts(card: Mapping[str, Any]) -> list[str]:
    """What was known before, and cost nothing."""
    out = ["The columns and their levels: the schema."]
    if found := found_privately(card):
        out = [f"The columns and their levels: the schema, but for what was {found}."]
    if card.get("public_size") is not None:
        out.append(f"The number of records: {card['public_size']:,}.")
    out += [f"{what}." for what in card.get("public", ())]
    return out


def how_good(card: Mapping[str, Any]) -> list[str]:
    """What is known about how good the model is: for free, and by its certificate where one was paid for."""
    return [*_misfit(card), *certificate_lines(card)]


def certificate_lines(card: Mapping[str, Any]) -> list[str]:
    """The certificate of fit in words; nothing where none was paid for."""
    facts = card.get("certificate")
    if facts is None:
        return []
    certificate = Certificate.from_dict(facts)
    return [*certificate.lines(), *_nearer(card, certificate)]


def _nearer(card: Mapping[str, Any], certificate: Certificate) -> list[str]:
    """What would bring the pair nearer that stands out, in a new fit, best first; nothing where none does, or where the
    records are too few for any model. A single table that was named and is poor stands out from nothing."""
    worst = next(iter(certificate.outstanding), ())
    if not worst and certificate.was_named and certificate.verdict == "poor" and len(certificate.cliques) == 1:
        worst = certificate.cliques[0]
    if len(worst) < 2 or certificate.verdict == "fair":
        return []
    pair, found = " × ".join(worst), dict(card.get("found_privately") or {})
    binned = [name for name in worst if "edges" in found.get(name, ())]
    private = f"; those of {' and '.join(binned)} were found privately, without a look at other columns" * bool(binned)
    coarser = f"give its columns fewer bins or levels, or edges that are publicly known, which cost nothing{private}"
    if certificate.was_named:
        return [f"{pair} was named in the --workload, but its table was too large for the noise: {coarser}."]
    if certificate.verdict != "poor":  # its advice has said so
        coarser += "; then name it in a new fit's --workload, so that more is spent on it"
    return [f"If {pair} matters, {coarser}."]


def bought_beside(card: Mapping[str, Any]) -> list[str]:
    """What a certificate has cost that was bought after the model."""
    facts = card.get("certificate")
    paid = None if facts is None else Certificate.from_dict(facts).paid
    if paid is None:
        return []
    own = Budget.from_dict(dict(paid["budget"]))
    both = _sum(Budget.from_dict(dict(card["budget"])), own) if paid.get("unit") == card.get("unit") else None
    together = "" if both is None else f" Both together: {both}."
    return [
        f"The certificate of fit was bought after the model, for {own}: that comes on top of what the model cost."
        + together
    ]


def _sum(one: Budget, other: Budget) -> Budget | None:
    """What two releases about the same units cost together by simple composition; None for different notions."""
    match one, other:
        case PureDP(), PureDP():
            return PureDP(one.epsilon + other.epsilon)
        case ZCDP(), ZCDP():
            return ZCDP(one.rho + other.rho)
        case ApproxDP(), ApproxDP() if one.delta + other.delta < 1:
            return ApproxDP(one.epsilon + other.epsilon, one.delta + other.delta)
    return None


def certificate_aside(card: Mapping[str, Any]) -> str:
    """What a promise does not speak of: a certificate with a budget of its own."""
    return ", the certificate of fit aside," if bought_beside(card) else ""


def _misfit(card: Mapping[str, Any]) -> list[str]:
    """What is known for free, in one sentence or none: ``misfit`` is the distance of the model from its own noisy sums
    in units of what noise and chance explain (:mod:`discreet.learn.self_check`); where that is too much the card has a
    ``caution``."""
    if caution := card.get("caution"):
        return [f"Beware: {caution}."]
    if unchecked := card.get("unchecked"):
        certified = "certificate" in card  # then it is known, and was paid for
        return [] if certified else [f"How well the model fits the records is not known: {unchecked}."]
    misfit = card.get("misfit")
    if not isinstance(misfit, int | float):
        return []
    return [
        f"The model is as close to its own noisy tables as noise allows: its distance from them is {misfit:.2g} times "
        "the distance that noise and chance explain."
    ]


def found_privately(card: Mapping[str, Any]) -> str:
    """What of the columns was found with noise and paid for, here or, as the schema says, elsewhere; "" for nothing."""
    steps = card.get("steps")
    asked = [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, list) else []
    seeking = [(step["query"], step.get("parts")) for step in asked if step.get("query") in ("Unlisted", "Histograms")]
    labels = [(kind, str(label)) for kind, parts in seeking if isinstance(parts, list) for label in parts]
    here = {label if kind == "Unlisted" else label.rpartition(", ")[0] for kind, label in labels}
    said = {name: f"{name} ({', '.join(what)})" for name, what in dict(card.get("found_privately") or {}).items()}
    paid = ", ".join(text for name, text in said.items() if name in here)
    before = ", ".join(text for name, text in said.items() if name not in here)
    parts = [f"found privately, and paid for: {paid}"] if paid else []
    parts += [f"found privately and paid for elsewhere, as the schema says: {before}"] if before else []
    return "; ".join(parts)


def peeked_facts(card: Mapping[str, Any]) -> list[str]:
    """What was learned by looking at the private data without protection."""
    return [f"{name}: {', '.join(what)}" for name, what in dict(card.get("peeked", {})).items()]
