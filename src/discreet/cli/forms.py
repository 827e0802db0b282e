"""What the forms of `discreet start` say, and how errors are said beside them: in fields, not in options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import options
from .desk import Column
from .failures import WrongUse, in_words

if TYPE_CHECKING:
    from ..privacy.budget import Budget

WHOLE = {"max_rows": "“At most so many rows of one person”", "approximate_size": "“About how many records”"}
"""Fields that hold whole numbers, by their key, as the page calls them."""
_FIELDS = {
    " or as --rho 0.1": "",  # no field takes it
    options.LARGE_IS_MEANT: "",
    "--epsilon": "ε",
    "--delta": "δ",
    "--unit-column": "“Whose rows belong together?”",
    "--max-rows": WHOLE["max_rows"],
}


def typed_column(number: int, column: Column, typed: Mapping[str, str]) -> Column:
    """A column as the form has it; as it is where the form says nothing."""
    kind = typed.get(f"kind-{number}", column.kind)
    if kind in ("kept", "out"):
        return column if kind == column.kind else Column(column.name, kind, {})
    names = {"levels": ("levels", "missing", "other"), "dates": ("from", "to", "by", "missing")}
    wanted = names.get(kind, ("edges", "low", "high", "bins", "integer", "missing"))
    fields = {name: typed.get(f"{kind}-{name}-{number}", "").replace("\r\n", "\n").strip() for name in wanted}
    return Column(column.name, kind, fields)


def whole(text: str, what: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise WrongUse(f"{what} is a whole number of at least 1, got {text!r}")
    return int(text)


def total_of(typed: Mapping[str, str], first: Budget) -> tuple[str, str | None] | None:
    """What all releases together may spend, if that was said, and is a budget that pays for the first of them."""
    total, delta = typed.get("total", "").strip(), typed.get("total_delta", "").strip() or None
    if not total:
        return None
    if getattr(first, "delta", None) is not None and delta is None:
        raise WrongUse("say the δ of all releases together, too: as many times δ as there may be releases")
    together = options.budget_from(total, delta, None)
    if not first <= together:
        raise WrongUse(
            f"all releases together may spend {together}, and this one alone {first}: give a larger total, which "
            "cannot be changed later, or less to this release"
        )
    return total, delta


def as_said(before: Mapping[str, Any], key: str) -> Any:
    found = before.get(key)
    return found if found is None or isinstance(found, int) else str(found)


def on_the_page(error: BaseException) -> str:
    """What went wrong, with the fields of the page in place of options of the command line."""
    said = in_words(error)[0]
    for option, field_name in _FIELDS.items():
        said = said.replace(option, field_name)
    return said
