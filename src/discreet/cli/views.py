"""How plans, released tables and statements of privacy look, for people and as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..domain import Attribute, Domain
from ..learn.graph_files import released_before
from ..learn.planned import deviation_text
from ..learn.procedure import Procedure
from ..measurement import Measurement, Measurements
from ..privacy.budget import Budget
from ..privacy.unit import PrivacyUnit
from ..report import words
from ..schema import destinations, shown_labels
from ..sought import Sought
from .console import say, say_table

MOST_CELLS = 40


def percent(level: float) -> str:
    return f"{100 * level:g} %"


# -- the plan ----------------------------------------------------------------------------------------------------------


def show_plan(what: object, procedure: Procedure) -> None:
    """What will be asked and for how much: the same words for every command."""
    say(f"Plan: {what}. No row has been read.")
    say_lines((*str(procedure).splitlines(), *words.clipping(procedure.unit)))


def say_lines(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


# -- released tables ---------------------------------------------------------------------------------------------------


def show_measurements(measurements: Measurements, level: float, *, everything: bool) -> None:
    for measurement in measurements:
        say()
        show_measurement(measurement, level, everything=everything)


def show_measurement(measurement: Measurement, level: float, *, everything: bool) -> None:
    noise = measurement.noise
    how = "exact"
    if noise.kind != "none":
        deviation = deviation_text(measurement.standard_deviation)
        how = f"{noise.kind} noise, scale {noise.scale:.4g}, standard deviation {deviation}"
    paid = {"public": ", public knowledge", "release": "", "claimed": ", made elsewhere and not verified"}
    origin = paid.get(measurement.origin, f", NOT A RELEASE ({measurement.origin})")
    say(f"{measurement.label}: {how}{origin}")
    names = ("position",) if measurement.told_of is None else measurement.told_of
    lower, upper = measurement.interval(level)
    values = measurement.values
    interval = f"{percent(level)} interval"
    cells = itertools.islice(itertools.product(*map(range, values.shape)), None if everything else MOST_CELLS)
    say_table(
        [*names, "count", interval],
        [[*_labels(measurement, cell), f"{values[cell]:,g}", f"{lower[cell]:,g} … {upper[cell]:,g}"] for cell in cells],
        right=["count", interval],
    )
    if not everything and values.size > MOST_CELLS:
        say(f"… and {values.size - MOST_CELLS:,} more cells; --all prints them")


def _labels(measurement: Measurement, cell: tuple[int, ...]) -> list[str]:
    if measurement.told_of is None:
        return [", ".join(map(str, cell))]
    return [measurement.domain[name].labels[code] for name, code in zip(measurement.told_of, cell, strict=True)]


def measurement_json(measurement: Measurement, level: float) -> dict[str, Any]:
    clique = measurement.clique
    return {
        "label": measurement.label,
        "columns": None if clique is None else list(clique),
        "levels": None if clique is None else [list(measurement.domain[name].labels) for name in clique],
        "counts": measurement.values.tolist(),
        "noise": {"kind": measurement.noise.kind, "scale": measurement.noise.scale},
        "standard_deviation": measurement.standard_deviation,
        "interval": {"level": level, "half_width": measurement.noise.half_width(level) * float(measurement.grid)},
        "origin": measurement.origin,
    }


# -- statements --------------------------------------------------------------------------------------------------------


def statement_lines(release: Mapping[str, Any]) -> list[str]:
    """The guarantee in plain words, from the public facts that a release carries."""
    budget, unit = Budget.from_dict(dict(release["budget"])), PrivacyUnit.from_dict(dict(release["unit"]))
    spent = release.get("spent")
    converted = words.as_approximate(budget)
    that_is = "" if converted is budget else f" That is {converted}."
    aside = words.certificate_aside(release)
    total = " but for the certificate of fit" if aside else " in total"
    lines = [
        *words.claim(release),
        f"Guarantee: {budget}{total}.{that_is} {words.promise(budget, unit, f'Nothing in this release{aside}')}",
        f"Unit: {unit}. Spent: {'nothing' if spent is None else Budget.from_dict(dict(spent))}.",
        *words.clipping(unit),
    ]
    if weak := words.weak_protection(budget):
        lines.append(f"WARNING: {weak}")
    if release.get("public_size") is not None:
        lines.append(f"The number of records, {release['public_size']:,}, was stated to be public.")
    lines += words.bought_beside(release)
    if other := release.get("graph_release"):
        lines.append(released_before(Budget.from_dict(dict(other))))
    if found := words.found_privately(release):
        lines.append(f"{found[0].upper()}{found[1:]}.")
    if peeked := release.get("peeked"):
        lines += [*peeked_lines(peeked), NOT_TO_BE_PUBLISHED]
    return lines


NOT_TO_BE_PUBLISHED = (
    "This release contains levels learned by looking at private data, which are not protected: they may tell of single "
    "rows, whatever the noise. Do not publish it as it is. Write what is publicly known (a code book, a questionnaire) "
    "into the schema, delete its `peeked` marks, and measure again, which is paid for again."
)


def peeked_lines(peeked: Mapping[str, Sequence[str]]) -> list[str]:
    if not peeked:
        return []
    columns = ", ".join(f"{name} ({', '.join(what)})" for name, what in peeked.items())
    return [f"Not protected: learned by looking at private data was {columns}."]


def show_domain(domain: Domain) -> None:
    headings = ["column", "kind", "cells", "levels", "absent values →", "unlisted values →", "peeked"]
    say_table(
        headings,
        [
            [
                a.name,
                "numbers" if a.is_numeric else "dates" if a.dates is not None else "categories",
                str(a.size) if a.sought is None else f"≤ {most.size}",
                _shortened(shown_labels(a)) if a.sought is None else _to_be_found(a.sought),
                *(destinations(a) if a.sought is None else (_absent_to(a), destinations(a)[1])),
                ", ".join(sorted(a.peeked)) or "—",
            ]
            for a, most in zip(domain.attributes, domain.forecast.attributes, strict=True)
        ],
        right=["cells"],
    )


def _to_be_found(sought: Sought) -> str:
    if sought.what == "levels":
        return "levels to be found privately"
    ends = "within a private range" if sought.ends is None else "between {:g} and {:g}".format(*sought.ends)
    return f"bins to be found privately {ends}"


def _absent_to(attribute: Attribute) -> str:
    """Where absent values will count, of a column whose levels are to be found."""
    return "the first bin" if attribute.bins and attribute.missing is None else destinations(attribute)[0]


def _shortened(labels: Sequence[str], most: int = 6) -> str:
    if len(labels) <= most:
        return ", ".join(labels)
    return ", ".join([*labels[: most - 2], "…", labels[-1]])
