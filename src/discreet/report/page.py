"""The report: one HTML file that needs no network, made from a released model and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import InputError, counted
from ..language import quoted
from ..learn.consistency import estimated_total
from ..measurement import Measurements
from ..models.base import Model
from ..models.queries import mutual_information
from ..privacy.budget import ZCDP, Budget
from ..privacy.unit import PrivacyUnit
from ..release.release import DRAWS, Release, writes_reports
from ..release.uncertainty import NoiseIntervals
from ..spec import Spec
from ..sweeps import sweep
from . import words
from .card import card_yaml
from .drawing import drawn_edges, graph_svg
from .levels import bars, heading, shown
from .pages import resource, template, write_report
from .reasons import in_columns, reasons
from .reasons import shown as shown_reasons
from .spending import merged, portions

NAMES = {
    "bayesian": "A Bayesian network",
    "ising": "An Ising model",
    "pairwise": "A pairwise model",
    "binary": "A binary Markov random field",
    "markov": "A Markov random field",
    "grouped": "A Markov random field",
}
MOST_PAIRS, MOST_LISTED = 6, 1000
_COLOURS = ("#5a8fc8", "#d0713f", "#6da67f", "#b88ad0", "#c9a545", "#5fb3b3", "#c46a86", "#8894a8", "#7d6b57")
MOST_REASONS = 40
_FACTORS = (0.2, 0.5, 1, 2, 5)
CITATION = "discreet, discrete graphical models from sensitive records under differential privacy, version {version}."


def report_html(
    model: Model,
    *,
    card_text: str,
    intervals: NoiseIntervals | None = None,
    measurements: Measurements | None = None,
    pairs: Iterable[tuple[str, str]] | None = None,
    title: str | None = None,
    file: str = "model.zip",
    graph_was_found: bool = False,
    spec: Spec | None = None,
) -> str:
    """The page as text.

    Parameters
    ----------
    model:
        A release: its card says what was spent. Anything else is refused.
    card_text:
        The release card as YAML, shown as it is.
    intervals, measurements:
        How far noise can have moved answers, and the noisy tables; without them the page says that it does not know.
    pairs:
        Pairs of columns whose tables are shown; the strongest edges by default.
    graph_was_found:
        Whether the graph was found privately; the page then says that intervals take it as it is.
    spec:
        How it was learned: the page then says what another budget would buy.
    """
    card = words.require_release(model.card, "this model")
    strength = model.edge_strength()
    faded = doubtful_edges(model, strength, intervals)
    chosen = [model.domain.clique(pair) for pair in pairs] if pairs is not None else _dependent(model, faded)
    drawn = drawn_edges(model, strength, faded)
    html: str = template("report.html.j2").render(
        title=title or f"{NAMES.get(model.kind, 'A model')} of {counted(len(model.domain), 'column')}",
        subtitle=f"A release made with discreet {card.get('version', __version__)}, under differential privacy",
        version=__version__,
        style=resource("style.css"),
        guarantee=words.guarantee(card),
        formal=words.formal(card),
        peeked=words.peeked_facts(card),
        warnings=[str(w) for w in card.get("warnings", ())],
        budget=Budget.from_dict(dict(card["budget"])),
        spent=Budget.from_dict(dict(card["spent"])) if card.get("spent") else "nothing",
        more=_more(model, card, measurements, spec),
        portions=_portions(card, measurements),
        graph=graph_svg(model, strength, faded),
        strength_name="their weight" if hasattr(model, "width") else "mutual information of their ends",
        has_intervals=intervals is not None,
        graph_was_found=graph_was_found,
        faded=len(faded),
        edges=len(model.edges),
        drawn=len(drawn),
        edge_list=_edge_list(model, strength, faded) if len(drawn) < len(model.edges) else [],
        level="" if intervals is None else f"{100 * intervals.level:g}\N{NO-BREAK SPACE}%",
        how_good=words.how_good(card),
        beware=bool(card.get("caution")),
        reasons=_reasons(card, measurements),
        columns=[{"name": name, "levels": bars(shown(model, (name,), intervals))} for name in model.domain],
        pairs=[_pair(model, pair, intervals) for pair in chosen],
        public=words.public_facts(card),
        not_protected=words.NOT_PROTECTED,
        file=file,
        example=example_question(model),
        method=_method(card),
        cite=CITATION.format(version=card.get("version", __version__)),
        card=card_text,
    )
    return html


@writes_reports
def write_release(
    release: Release,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    level: float = 0.9,
    draws: int = DRAWS,
) -> None:
    """The page of a release with all that its file holds, on the disk."""
    html = report_html(
        release.model,
        card_text=card_yaml(release),
        intervals=release.intervals(level, draws) if release.has_intervals else None,
        measurements=release.measurements,
        title=title,
        graph_was_found=release.graph_was_found,
        spec=release.spec,
    )
    write_report(Path(path), html)


# -- pieces ------------------------------------------------------------------------------------------------------------


def doubtful_edges(
    model: Model, strength: Mapping[tuple[str, str], float], intervals: NoiseIntervals | None
) -> set[tuple[str, str]]:
    """Edges whose strength is no larger than what noise alone moves it by."""
    if intervals is None or not strength:
        return set()
    edges = list(strength)

    def strengths(refit: Model) -> list[float]:
        found = refit.edge_strength()
        return [found.get(edge, found.get((edge[1], edge[0]), 0.0)) for edge in edges]

    found = intervals.of(strengths)
    half = found.upper - found.estimate
    return {edge for edge, s, h in zip(edges, found.estimate, half, strict=True) if abs(s) <= h}


def _dependent(model: Model, faded: set[tuple[str, str]]) -> Sequence[tuple[str, ...]]:
    """The edges whose ends tell most about each other, those left out that noise alone could have made."""
    known = mutual_information(model)
    return sorted((edge for edge in known if edge not in faded), key=lambda edge: -known[edge])[:MOST_PAIRS]


def _portions(card: Mapping[str, Any], measurements: Measurements | None) -> list[dict[str, Any]]:
    return [
        {
            "what": p.what,
            "part": p.part,
            "percent": f"{100 * p.part:.3g} %",
            "colour": _COLOURS[i % len(_COLOURS)],
            "rest": p.what == "not used",
        }
        for i, p in enumerate(merged(portions(card, measurements)))
    ]


def _more(
    model: Model, card: Mapping[str, Any], measurements: Measurements | None, spec: Spec | None
) -> dict[str, Any] | None:
    """What a fifth of the budget, or five times as much, would about have bought with as many records; nothing where
    there is no forecast."""
    tables = [m for m in measurements or () if m.clique is not None and not m.proportions]
    if spec is None or not tables:
        return None
    budget, unit = Budget.from_dict(dict(card["budget"])), PrivacyUnit.from_dict(dict(card["unit"]))
    own = budget.rho if isinstance(budget, ZCDP) else getattr(budget, "epsilon", 1)
    amounts = [float(own) * factor for factor in _FACTORS]
    try:
        found = sweep(spec, model.domain, unit, budget, amounts=amounts, sizes=[estimated_total(tables)])
    except InputError:
        return None
    return {"what": found.what, "symbol": found.symbol, "rows": found.rows()}


def _reasons(card: Mapping[str, Any], measurements: Measurements | None) -> dict[str, Any] | None:
    every = reasons(card, measurements)
    if not every:
        return None
    few, rest = shown_reasons(every, MOST_REASONS)
    headings, rows = in_columns(few)
    return {"headings": headings, "rows": rows, "rest": rest}


def _pair(model: Model, pair: Sequence[str], intervals: NoiseIntervals | None) -> dict[str, Any]:
    a, b = pair
    table = shown(model, (a, b), intervals)
    top = float(table.probabilities.max()) or 1.0
    shades = np.rint(70 * table.probabilities / top).astype(int)
    down, across = table.groups
    rows = [
        {
            "label": group.label,
            "cells": [{"text": table.text(i, j).replace(" %", ""), "shade": shades[i, j]} for j in range(len(across))],
        }
        for i, group in enumerate(down)
    ]
    return {"rows_name": a, "columns_name": b, "columns": [heading(group.label) for group in across], "rows": rows}


def _edge_list(
    model: Model, strength: Mapping[tuple[str, str], float], faded: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    """All edges, the strongest first."""
    joint = " → " if model.directed else " – "
    ranked = sorted(model.edges, key=lambda edge: -abs(strength.get(edge, 0.0)))
    return [
        {"edge": joint.join(edge), "strength": f"{strength.get(edge, 0.0):.3g}", "faded": edge in faded}
        for edge in ranked[:MOST_LISTED]
    ]


def _method(card: Mapping[str, Any]) -> str:
    noise = card.get("noise")
    kinds = f", {' and '.join(map(str, noise))} noise" if isinstance(noise, list | tuple) and noise else ""
    return f"{card.get('method', 'not stated')}{kinds}"


def example_question(model: Model) -> str:
    """A question that this model can answer, in the query language: about numbers where it has some."""
    numbers = [a.name for a in model.domain.attributes if a.is_numeric]
    names = sorted(model.domain.names, key=lambda name: name in numbers)  # a level to be given is no bin, if it may be
    about = numbers[0] if numbers else names[0]
    asked = f"{'E' if numbers else 'P'}({quoted(about)}"
    rest = [name for name in names if name != about]
    if not rest:
        return f"{asked})"
    given = rest[0] if numbers else rest[-1]
    label = model.domain[given].labels[0]
    return f"{asked} | {quoted(given)}={quoted(label, is_level=True)})"
