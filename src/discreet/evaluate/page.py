"""The evaluation as one HTML page that needs no network. Every screen and every printed sheet says: not public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._version import __version__
from ..domain import Clique
from ..errors import counted
from ..report.levels import Group, grouped, heading, percent
from ..report.pages import resource, template
from . import drawing
from .evaluation import WARNING, Array, Compared, Evaluation
from .sides import Side

ROWS_COLOUR = "var(--soft)"
COLOURS = ("#d0713f", "#3d74b4", "#6da67f", "#b88ad0", "#c9a545", "#5fb3b3", "#c46a86")
MOST_COLUMNS = 24  # shown at once; the others fold
PAIR_LEVELS = 7
_SCORES = (
    ("Column Shapes", "columns, 1 minus total variation (SDMetrics: mean TVComplement)", "{:.4f}"),
    ("Column Pair Trends", "pairs, 1 minus total variation (SDMetrics: mean ContingencySimilarity)", "{:.4f}"),
    ("k-marginal, k = 2", "pairs, as SDNist scores them: 1000 is perfect", "{:.0f}"),
    ("k-marginal, k = 3", "triples, as SDNist scores them: 1000 is perfect", "{:.0f}"),
)


def evaluation_html(evaluation: Evaluation, title: str | None = None) -> str:
    """The page as text."""
    facts = evaluation.to_dict()
    colours = {r.name: COLOURS[i % len(COLOURS)] for i, r in enumerate(evaluation.releases)}
    top = max([0.02, *(float(r.pairs.max()) for r in evaluation.releases if len(r.pairs))])
    html: str = template("evaluate.html.j2", __package__).render(
        title=title or f"Evaluation of {', '.join(r.name for r in evaluation.releases)}",
        version=__version__,
        style=resource("style.css") + resource("evaluate.css", __package__),
        warning=WARNING,
        rows=counted(evaluation.real.records or 0, "row"),
        width=counted(len(evaluation.domain), "column"),
        notes=evaluation.notes,
        key=[{"name": name, "colour": colour} for name, colour in colours.items()],
        sentences=[
            {"text": evaluation.sentence(r), "verdict": evaluation.verdict(r), "tables": r.side.computed}
            for r in evaluation.releases
        ],
        scores=_scores(evaluation, facts),
        columns=_columns(evaluation, colours),
        most_columns=MOST_COLUMNS,
        top=f"{top:.2g}",
        releases=[{**_release(evaluation, r, top), "colour": colours[r.name]} for r in evaluation.releases],
        worst=max(evaluation.releases, key=lambda r: r.pairs.mean() if len(r.pairs) else 0.0).name,
        numbers=_numbers(evaluation, colours),
        classifiers=_classifiers(evaluation, colours),
        pmse_of_rows=evaluation.pmse_of_rows,
        pmse=[
            {"name": r.name, "value": f"{r.pmse:.4f}", "width": f"{400 * r.pmse:.2f}", "colour": colours[r.name]}
            for r in evaluation.releases
            if r.pmse is not None
        ],
    )
    return html


def _scores(evaluation: Evaluation, facts: dict[str, Any]) -> dict[str, Any]:
    """The board: one row a figure, one column a release, and two columns to compare with."""
    beside = {**facts["releases"], **facts["baselines"]}
    out = []
    for name, what, form in _SCORES:
        cells = [_cell(form, every[name]) for every in beside.values()]
        if any(cell != "–" for cell in cells):
            out.append({"name": name, "what": what, "cells": cells})
    if evaluation.pmse_of_rows is not None:
        cells = [f"{release.pmse:.4f}" for release in evaluation.releases]
        told = "told apart by a decision tree: 0 not at all, 0.25 always (two halves of the rows: "
        out.append({"name": "pMSE", "what": f"{told}{evaluation.pmse_of_rows:.4f})", "cells": [*cells, "–", "–"]})
    for found in evaluation.releases[0].classifiers:
        same = [next(c for c in r.classifiers if c.target == found.target) for r in evaluation.releases]
        what = f"right on unseen rows; trained on rows {found.real:.1%}, always the most frequent level "
        cells = [f"{each.synthetic:.1%}" for each in same]
        name = f"Classifier of {found.target}"
        out.append({"name": name, "what": f"{what}{found.most_frequent:.1%}", "cells": [*cells, "–", "–"]})
    return {"names": list(beside), "rows": out}


def _cell(form: str, value: float | None) -> str:
    return "–" if value is None else form.format(value)


def _columns(evaluation: Evaluation, colours: dict[str, str]) -> list[dict[str, Any]]:
    """Each column: bars are the rows, marks the releases. Of many columns the worst come first."""
    worst = np.max([r.columns for r in evaluation.releases], axis=0)
    many = len(worst) > MOST_COLUMNS
    order = np.argsort(-worst, kind="stable").tolist() if many else range(len(worst))
    out = []
    for i in order:
        name = evaluation.domain.names[i]
        real = evaluation.table(evaluation.real, (name,))
        groups = grouped(evaluation.domain[name], real)
        marks = [(r.name, _summed(evaluation.table(r.side, (name,)), [groups])) for r in evaluation.releases]
        bars = _summed(real, [groups])
        top = max(float(p.max()) for p in (bars, *(p for _, p in marks)))  # the longest bar fills its track
        levels = [
            {
                "label": group.label,
                "width": f"{100 * bars[j] / top:.2f}",
                "text": percent(float(bars[j])),
                "marks": [
                    {
                        "at": f"{100 * p[j] / top:.2f}",
                        "top": f"{100 * k / len(marks):.1f}",
                        "height": f"{100 / len(marks):.1f}",
                        "colour": colours[who],
                        "text": f"{who}: {percent(float(p[j]))}",
                    }
                    for k, (who, p) in enumerate(marks)
                ],
            }
            for j, group in enumerate(groups)
        ]
        distances = ", ".join(f"{r.columns[i]:.4f}" for r in evaluation.releases)
        out.append({"name": name, "levels": levels, "distances": distances})
    return out


def _release(evaluation: Evaluation, release: Compared, top: float) -> dict[str, Any]:
    names = evaluation.domain.names
    distances = dict(zip(evaluation.asked.pairs, release.pairs.tolist(), strict=True))
    real, ours = evaluation.dependence(evaluation.real), evaluation.dependence(release.side)
    numeric = [n for n in names if n in evaluation.values]
    return {
        "name": release.name,
        "pairs": drawing.heat_map(names, distances, {}, top) if distances else "",
        "worst": [_pair(evaluation, release, pair, tv) for pair, tv in evaluation.worst_pairs(release)],
        "triples": _ranked(evaluation, release),
        "dependence": drawing.heat_map(names, real, ours, 1.0) if distances else "",
        "correlations": drawing.heat_map(
            numeric, evaluation.correlations(evaluation.real), evaluation.correlations(release.side), 1.0
        )
        if len(numeric) > 1
        else "",
    }


def _pair(evaluation: Evaluation, release: Compared, pair: Clique, distance: float) -> dict[str, Any]:
    """The tables of two columns, the rows' and the release's, side by side and with the same levels."""
    real = evaluation.table(evaluation.real, pair)
    groups = [grouped(evaluation.domain[n], real.sum(axis=1 - axis), PAIR_LEVELS) for axis, n in enumerate(pair)]
    down, across = groups
    tables = [_summed(evaluation.table(side, pair), groups) for side in (evaluation.real, release.side)]
    most = max(float(t.max()) for t in tables) or 1.0
    alone = evaluation.independent[1][evaluation.asked.pairs.index(pair)]
    return {
        "names": " × ".join(pair),
        "rows_name": pair[0],
        "columns_name": pair[1],
        "distance": f"{distance:.3g}",
        "alone": f"{alone:.3g}",
        "columns": [heading(group.label) for group in across],
        "tables": [
            {
                "whose": whose,
                "rows": [
                    {
                        "label": group.label,
                        "cells": [
                            {"text": f"{100 * table[i, j]:.1f}", "shade": round(70 * table[i, j] / most)}
                            for j in range(len(across))
                        ],
                    }
                    for i, group in enumerate(down)
                ],
            }
            for whose, table in zip(("the rows", release.name), tables, strict=True)
        ],
    }


def _ranked(evaluation: Evaluation, release: Compared) -> list[dict[str, str]]:
    """The worst triples: their distance, and those of independent columns and of a fresh sample."""
    place = {clique: i for i, clique in enumerate(evaluation.asked.triples)}
    worst = [
        (triple, distance, float(evaluation.independent[2][place[triple]]), float(evaluation.fresh[2][place[triple]]))
        for triple, distance in evaluation.worst_triples(release)
    ]
    top = max((max(d, alone, fresh) for _, d, alone, fresh in worst), default=1.0) or 1.0
    out = []
    for triple, distance, alone, fresh in worst:
        out.append(
            {
                "name": " × ".join(triple),
                "text": f"{distance:.3g}",
                "width": f"{100 * distance / top:.1f}",
                "alone": f"{100 * alone / top:.1f}",
                "fresh": f"{100 * fresh / top:.1f}",
                "title": f"independent columns {alone:.3g}, a fresh sample {fresh:.3g}",
            }
        )
    return out


def _numbers(evaluation: Evaluation, colours: dict[str, str]) -> list[dict[str, Any]]:
    sides: list[tuple[str, Side, str]] = [("the rows", evaluation.real, ROWS_COLOUR)]
    sides += [(r.name, r.side, colours[r.name]) for r in evaluation.releases]
    found = [(name, evaluation.numbers(side)) for name, side, _ in sides]
    out = []
    for column, values in evaluation.values.items():
        if int(np.isfinite(values).sum()) < 3:  # means of zeros and ones are the bars above
            continue
        numbers = [(name, every[column]) for name, every in found]
        known = values[np.isfinite(values)]
        out.append(
            {
                "name": column,
                "drawing": drawing.quantiles(numbers, float(known.min()), float(known.max()), [c for _, _, c in sides]),
                "means": [
                    {"name": name, "mean": "–" if n is None else drawing.figure(n.mean), "colour": colour}
                    for (name, n), (_, _, colour) in zip(numbers, sides, strict=True)
                ],
            }
        )
    return out


def _classifiers(evaluation: Evaluation, colours: dict[str, str]) -> list[dict[str, Any]]:
    out = []
    for found in evaluation.releases[0].classifiers:
        bars = [("trained on rows", found.real, ROWS_COLOUR)]
        for release in evaluation.releases:
            own = next(c for c in release.classifiers if c.target == found.target)
            bars.append((f"trained on {release.name}", own.synthetic, colours[release.name]))
        bars.append(("most frequent level", found.most_frequent, "var(--line)"))
        out.append(
            {
                "target": found.target,
                "bars": [
                    {"name": name, "width": f"{100 * value:.2f}", "text": f"{value:.1%}", "colour": colour}
                    for name, value, colour in bars
                ],
            }
        )
    return out


def _summed(table: Array, groups: Sequence[Sequence[Group]]) -> Array:
    for axis, some in enumerate(groups):
        table = np.stack([np.take(table, group.codes, axis).sum(axis=axis) for group in some], axis=axis)
    return table
