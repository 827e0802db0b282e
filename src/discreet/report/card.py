"""The release card in the field names of OpenDP's registry of deployments (opendp/deployments-registry-data).

Everything that the file knows is filled in from it and cannot be said otherwise; what only the curator can say (a name,
the intended use) comes from the ``[card]`` table of a run file; the rest reads "not stated".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._version import __version__
from ..errors import InputError, did_you_mean
from ..io.strictjson import refuse_private
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.unit import PrivacyUnit
from ..release import Release
from . import words
from .reasons import Reason, reasons, shown
from .spending import merged, portions

NOT_STATED = "not stated"
MOST_REASONS = 12

# The registry's fields in its order. True: the curator may state it; False: it follows from the release.
FIELDS: dict[str, dict[str, bool]] = {
    "basic": {
        "name": True,
        "data_curators": True,
        "description": True,
        "intended_use": True,
        "data_product_type": False,
        "data_product_region": True,
        "data_product_sector": True,
        "publication_date": True,
    },
    "dp_variant": {"variant_name": False, "data_domain": False, "unprotected_quantities": False},
    "privacy_loss": {
        "privacy_unit": False,
        "privacy_unit_details": False,
        "number_of_privacy_units": True,
        "privacy_parameters": False,
        "privacy_parameters_details": False,
    },
    "deployment_model": {
        "model_name": False,
        "model_name_details": False,
        "trust_assumptions": False,
        "actors": True,
        "release_type": True,
        "release_type_details": True,
        "data_source_type": True,
        "data_source_type_details": True,
        "access_type": False,
        "access_type_details": False,
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": True,
        "mechanisms": False,
        "composition": False,
        "post_processing": False,
        "justification": True,
        "utility": True,
        "additional_information": True,
    },
    "administrative": {"evidence_sources": True, "status": True, "registry_authors": True, "tier": True},
}
_STATABLE = tuple(key for part in FIELDS.values() for key, own in part.items() if own)
_COMPUTED = tuple(key for part in FIELDS.values() for key, own in part.items() if not own)
_VARIANTS: dict[type[Budget], str] = {PureDP: "Pure DP", ApproxDP: "Approximate DP", ZCDP: "Zero-concentrated DP"}


def check_stated(stated: Mapping[str, Any]) -> None:
    """Whether the curator may state these fields."""
    for key, value in stated.items():
        if key in _COMPUTED:
            raise InputError(f"the card's field {key!r} follows from the release and cannot be stated; leave it out")
        if key not in _STATABLE:
            raise InputError(f"the card has no field {repr(key)[:80]}{did_you_mean(str(key), _STATABLE)}")
        if not isinstance(value, str | int | list | dict):
            raise InputError(f"the card's field {key!r} must be text, a number or a list, got {str(value)[:60]!r}")


def registry_card(release: Release) -> dict[str, Any]:
    """The card as nested tables; refuses what carries no guarantee."""
    known = _known(release)
    stated = {key: value for key, value in release.stated.items() if key in _STATABLE}
    if "data_curators" in stated:
        stated["data_curators"] = _curators(stated["data_curators"])
    filled = {
        part: {key: stated.get(key, known.get(key, NOT_STATED)) for key in fields} for part, fields in FIELDS.items()
    }
    return {"url_slug": _slug(filled["basic"]["name"]), "deployment": filled}


def card_yaml(release: Release) -> str:
    """The card as YAML."""
    import yaml  # only needed here

    head = "# A card in the field names of OpenDP's registry of deployments. What nobody has said reads 'not stated'.\n"
    text = head + str(yaml.safe_dump(registry_card(release), sort_keys=False, allow_unicode=True, width=math.inf))
    refuse_private(text)
    return text


# -- what the file knows -----------------------------------------------------------------------------------------------


def _known(release: Release) -> dict[str, Any]:
    card = release.card
    budget = Budget.from_dict(dict(card["budget"]))
    unit = PrivacyUnit.from_dict(dict(card["unit"]))
    model = release.model
    levels = sum(model.domain.shape)
    return {
        "data_product_type": "Machine learning model",
        "variant_name": _VARIANTS[type(budget)],
        "data_domain": f"Tables of {len(model.domain)} columns ({', '.join(model.domain.names[:12])}"
        f"{', …' if len(model.domain) > 12 else ''}) with {levels} public levels in all; the schema is in the release.",
        "unprotected_quantities": _unprotected(card, unit),
        "privacy_unit": "Row-level" if unit.column is None else f"{unit.column}-level",
        "privacy_unit_details": _unit_details(unit),
        "number_of_privacy_units": card["public_size"]
        if card.get("public_size") is not None and unit.column is None
        else NOT_STATED,
        "privacy_parameters": _parameters(budget),
        "privacy_parameters_details": _spending(release, budget),
        "model_name": "Central",
        "model_name_details": "A curator holds the rows, adds noise inside, and lets out noisy results only.",
        "trust_assumptions": "Whoever made the noisy tables is trusted to have noised them as claimed."
        if words.claim(card)
        else "The curator's machine, its source of randomness, and the ledger are trusted.",
        "access_type": "Non-interactive",
        "access_type_details": "The model is a file; asking it costs no privacy.",
        "mechanisms": _mechanisms(card),
        "composition": NOT_STATED
        if words.claim(card)
        else "Exact rational accounting; a run composes in the notion of its budget "
        "((ε, δ): zero-concentrated, or as one Gaussian if all of its noise is Gaussian, converted once).",
        "post_processing": _post_processing(release),
        "utility": " ".join(words.how_good(card)) or NOT_STATED,
        "additional_information": " ".join(
            [*words.claim(card), f"Made with discreet {card.get('version', __version__)}."]
        ),
        "status": "Draft",
    }


def _parameters(budget: Budget) -> dict[str, float]:
    if isinstance(budget, ZCDP):
        return {"rho": float(budget.rho)}
    if isinstance(budget, ApproxDP):
        return {"epsilon": float(budget.epsilon), "delta": float(budget.delta)}
    assert isinstance(budget, PureDP)
    return {"epsilon": float(budget.epsilon)}


def _spending(release: Release, budget: Budget) -> str:
    spent = release.card.get("spent")
    said = "nothing" if spent is None else str(Budget.from_dict(dict(spent)))
    where = "; ".join(f"{p.what}: {100 * p.part:.3g} %" for p in merged(portions(release.card, release.measurements)))
    where = f" Where it went: {where}." if where else ""
    return f"The total of everything in this release is {budget}; spent: {said}.{where}"


def _unit_details(unit: PrivacyUnit) -> str:
    what = (
        "Neighbouring tables differ by the presence of one unit; the number of records is private."
        if unit.relation == "add-remove"
        else "Neighbouring tables differ by the values of one unit."
    )
    if unit.column is None:
        return f"{what} Each row is a unit."
    return f"{what} All rows with one value of {unit.column!r} are a unit; at most {unit.max_rows} of them count."


def _unprotected(card: Mapping[str, Any], unit: PrivacyUnit) -> str:
    parts = ["The schema (columns, levels, bins) and the choice of method are public.", "Timing is not protected."]
    if found := words.found_privately(card):
        parts[0] = f"The choice of method is public, and so is the schema but for what was {found}."
    if card.get("public_size") is not None:
        parts.append(f"The number of records, {card['public_size']}, was stated to be public.")
    elif unit.relation == "replace-one":
        parts.append("Under replace-one neighbours have the same number of units.")
    if card.get("peeked"):
        columns = ", ".join(card["peeked"])
        parts.append(f"NOT PROTECTED: parts of the schema were learned by looking at private data: {columns}.")
    return " ".join(parts)


def _mechanisms(card: Mapping[str, Any]) -> str:
    if words.claim(card):
        return f"{', '.join(card.get('noise', ())) or 'not stated'} noise, as claimed; not verified by discreet."
    steps = card.get("steps")
    kinds = {str(s["noise"]): None for s in steps if isinstance(s, Mapping) and "noise" in s} if steps else {}
    names = {
        "laplace": "discrete Laplace noise",
        "gaussian": "discrete Gaussian noise",
        "permute-and-flip": "permute-and-flip selection",
        "exponential": "exponential mechanism",
        "noisy-max": "report noisy max",
        "threshold": "thresholded histogram",
        "gaussian-threshold": "thresholded histogram with Gaussian noise",
        "stability": "noisy distance to instability, with a threshold",
    }
    said = ", ".join(names.get(k, k) for k in kinds) or "none"
    return f"{said}; OpenDP's exact samplers. Method: {card.get('method', NOT_STATED)}."


def _post_processing(release: Release) -> str:
    said = "not stated" if release.spec is None else str(release.spec)
    if release.measurements is not None:
        said += ". The model follows from the noisy tables in the release, which are part of it"
    few, rest = shown(reasons(release.card, release.measurements), MOST_REASONS)
    return f"{said}.{_why(few)}{' ' if rest and few else ''}{rest if few else ''}"


def _why(few: Sequence[Reason]) -> str:
    """Why tables were measured: by how far the model was off before, and what their noise is."""
    off = ["" if r.distance is None else f"off by {max(r.distance, 0):,}, " for r in few]
    each = [f"{r.table} ({o}noise {r.noise_in_words})" for r, o in zip(few, off, strict=True)]
    return f" Tables were chosen by released numbers, in records: {', '.join(each)}." if each else ""


def _curators(value: Any) -> list[dict[str, Any]]:
    several = value if isinstance(value, list) else [value]
    return [
        dict(v) if isinstance(v, Mapping) else {"data_curator_name": str(v), "data_curator_type": NOT_STATED}
        for v in several
    ]


def _slug(name: Any) -> str:
    return re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-") or "release"
