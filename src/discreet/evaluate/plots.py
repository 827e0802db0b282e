"""Plots of an evaluation as matplotlib axes, for papers about public data. Of private rows they must stay private."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.plotting import axes_for
from .evaluation import Evaluation
from .page import COLOURS

_ROWS = "#8894a8"


def heat_map(evaluation: Evaluation, name: str, ax: Any = None) -> Any:
    """Total variation of every pair of one release; returns the ``Axes``."""
    names = evaluation.domain.names
    grid = np.full((len(names), len(names)), np.nan)
    for (a, b), distance in zip(evaluation.asked.pairs, evaluation[name].pairs, strict=True):
        grid[names.index(b), names.index(a)] = distance
    ax = axes_for(ax, (1.5 + 0.3 * len(names), 1.2 + 0.3 * len(names)))
    drawn = ax.imshow(grid, cmap="OrRd", vmin=0)
    ax.figure.colorbar(drawn, ax=ax, label="total variation", shrink=0.8)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set_title(name, fontsize=10)
    return ax


def distances(evaluation: Evaluation, ax: Any = None) -> Any:
    """Total variations of all pairs in order, a line a release, beside independent columns and a fresh sample."""
    ax = axes_for(ax, (5.5, 3.5))
    lines = [(r.name, r.pairs, COLOURS[i % len(COLOURS)], "-") for i, r in enumerate(evaluation.releases)]
    lines += [
        ("independent columns", evaluation.independent[1], _ROWS, "--"),
        ("a fresh sample", evaluation.fresh[1], _ROWS, ":"),
    ]
    for name, values, colour, style in lines:
        ax.plot(np.linspace(0, 100, len(values)), np.sort(values)[::-1], style, color=colour, label=name)
    ax.set(xlabel="pairs, the worst first, %", ylabel="total variation")
    ax.set_yscale("log")
    ax.legend(fontsize=8)
    return ax
