"""The report: one HTML file that needs no network, made from a released model and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..errors import counted
from ..io.atomic import write_atomically
from ..language import quoted
from ..learn.zeros import impossible_cells
from ..measurement import Measurements
from ..models.base import Model
from ..privacy.budget import Budget
from ..release.uncertainty import Interval, NoiseIntervals, digits
from . import words
from .drawing import graph_svg
from .reasons import HEADINGS, reasons
from .reasons import shown as shown_reasons
from .spending import merged, portions

NAMES = {
    "bayesian": "A Bayesian network",
    "ising": "An Ising model",
    "pairwise": "A pairwise model",
    "binary": "A binary Markov random field",
    "markov": "A Markov random field",
}
IMPOSSIBLE = "0 (impossible by the schema)"
MOST_LEVELS, MOST_PAIRS, LARGEST_PAIR = 12, 6, 12
_COLOURS = ("#5a8fc8", "#d0713f", "#6da67f", "#b88ad0", "#c9a545", "#5fb3b3", "#c46a86", "#8894a8")
MOST_REASONS = 40
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
    """
    card = words.require_release(model.card, "this model")
    strength = model.edge_strength()
    faded = doubtful_edges(model, strength, intervals)
    chosen = [model.domain.clique(pair) for pair in pairs] if pairs is not None else _strongest(model, strength, faded)
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
        portions=_portions(card, measurements),
        graph=graph_svg(model, strength, faded),
        strength_name="their weight" if hasattr(model, "width") else "mutual information of their ends",
        has_intervals=intervals is not None,
        graph_was_found=graph_was_found,
        faded=len(faded),
        edges=len(model.edges),
        level="" if intervals is None else f"{100 * intervals.level:g} %",
        how_good=words.how_good(card),
        reasons=_reasons(card, measurements),
        columns=[_column(model, name, intervals) for name in model.domain],
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


def write_report(path: str | Path, html: str) -> None:
    """Write the page, completely or not at all."""
    write_atomically(Path(path), [html.encode()])


# -- pieces ------------------------------------------------------------------------------------------------------------


def template(name: str) -> Any:
    """A page of this package."""
    from jinja2 import Environment, StrictUndefined  # only needed here, and slow to import

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(resource(name))


def resource(name: str) -> str:
    """A file of this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


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


def _strongest(
    model: Model, strength: Mapping[tuple[str, str], float], faded: set[tuple[str, str]]
) -> Sequence[tuple[str, ...]]:
    small = [e for e in strength if max(model.domain[n].size for n in e) <= LARGEST_PAIR and e not in faded]
    return sorted(small, key=lambda e: -abs(strength[e]))[:MOST_PAIRS]


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


def _reasons(card: Mapping[str, Any], measurements: Measurements | None) -> dict[str, Any] | None:
    every = reasons(card, measurements)
    if not every:
        return None
    few, rest = shown_reasons(every, MOST_REASONS)
    return {"headings": HEADINGS, "rows": [reason.cells() for reason in few], "rest": rest}


def _column(model: Model, name: str, intervals: NoiseIntervals | None) -> dict[str, Any]:
    labels = model.domain[name].labels
    if intervals is None:
        p, interval = model.marginal(name).probabilities, None
    else:
        interval = intervals.marginal(name)
        p = interval.estimate
    shown = list(range(len(labels)))
    if len(labels) > MOST_LEVELS:  # the most frequent ones, in their own order
        shown = sorted(np.argsort(-p, kind="stable")[: MOST_LEVELS - 1].tolist())
    never = impossible_cells(model.domain, (name,)) & (p <= 0)
    levels = [_level(labels[i], p, interval, i, never=bool(never[i])) for i in shown]
    rest = 1 - float(p[shown].sum())
    return {"name": name, "levels": levels, "more": len(labels) - len(shown), "rest": _percent(rest)}


def _level(label: str, p: NDArray[Any], interval: Interval | None, i: int, *, never: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"label": label, "width": f"{100 * p[i]:.2f}", "whisker": None, "text": _percent(p[i])}
    if never:
        out["text"] = IMPOSSIBLE
    elif interval is not None:
        low, high = float(interval.lower[i]), float(interval.upper[i])
        out["whisker"] = (f"{100 * low:.2f}", f"{100 * (high - low):.2f}")
        out["text"] = _with_noise(p[i], interval.half_width[i])
    return out


def _pair(model: Model, pair: Sequence[str], intervals: NoiseIntervals | None) -> dict[str, Any]:
    a, b = pair
    if intervals is None:
        p, half = model.marginal([a, b]).probabilities, None
    else:
        interval = intervals.marginal([a, b])
        p, half = interval.estimate, interval.half_width
    top = float(p.max()) or 1.0
    never = impossible_cells(model.domain, (a, b)) & (p <= 0)  # a network may not be able to keep every rule

    def cell(i: int, j: int) -> dict[str, Any]:
        text = _percent(p[i, j]) if half is None else _with_noise(p[i, j], half[i, j])
        text = IMPOSSIBLE if never[i, j] else text
        return {"text": text, "shade": round(70 * float(p[i, j]) / top)}

    rows = [
        {"label": label, "cells": [cell(i, j) for j in range(p.shape[1])]}
        for i, label in enumerate(model.domain[a].labels)
    ]
    return {"rows_name": a, "columns_name": b, "columns": model.domain[b].labels, "rows": rows}


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %" if p >= 0.0005 or p <= 0 else "< 0.1 %"


def _with_noise(p: float, half: float) -> str:
    if half <= 0:  # no noise can have made it anything else
        return "0 %" if p <= 0 else _percent(p)
    places = digits(100 * half, fewest=1)
    return f"{100 * p:.{places}f} % ± {100 * half:.{places}f}"


def _method(card: Mapping[str, Any]) -> str:
    noise = card.get("noise")
    kinds = f", {' and '.join(map(str, noise))} noise" if isinstance(noise, list | tuple) and noise else ""
    return f"{card.get('method', 'not stated')}{kinds}"


def example_question(model: Model) -> str:
    """A question that this model can answer, in the query language."""
    first, *rest = model.domain.names
    if not rest:
        return f"P({quoted(first)})"
    label = model.domain[rest[-1]].labels[0]
    return f"P({quoted(first)} | {quoted(rest[-1])}={quoted(label, is_level=True)})"
