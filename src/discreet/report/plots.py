"""Plots for Python: where the budget went, marginals with their noise, learned against true.

Each draws into ``ax`` (a new figure by default) and returns the ``Axes``; save one with
``plot.figure.savefig("name.png")``. The graph of a model is drawn by ``model.plot()``, error against ε by
``plan.curve().plot()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..measurement import Measurements
from ..models.base import Model
from ..models.plotting import axes_for
from ..release.uncertainty import NoiseIntervals
from .spending import merged, portions

BLUE, ORANGE, GREY = "#5a8fc8", "#d0713f", "#8894a8"


def plot_budget(release: Model | Measurements, ax: Any = None) -> Any:
    """Where the budget of a release went, as one bar."""
    tables = release if isinstance(release, Measurements) else None
    card: Mapping[str, Any] | None = tables.release if tables is not None else getattr(release, "card", None)
    if not card or "budget" not in card:
        raise InputError("only a release has a budget to show: a model or measurements that came from a curator")
    parts = merged(portions(card, tables))
    ax = axes_for(ax, (8, 0.8 + 0.28 * len(parts)))
    for i, portion in enumerate(parts):
        colour = GREY if portion.what == "not used" else BLUE
        ax.barh(i, 100 * portion.part, color=colour)
        ax.text(100 * portion.part, i, f" {100 * portion.part:.3g} %", va="center", fontsize=8)
    ax.set_yticks(range(len(parts)), [p.what for p in parts], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("per cent of the budget")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_marginals(
    model: Model,
    columns: Iterable[str] | str | None = None,
    *,
    intervals: NoiseIntervals | None = None,
    truth: Model | None = None,
    ax: Any = None,
) -> Any:
    """P(level) of some columns (all by default) as dots, with noise intervals and the truth beside them if given."""
    names = model.domain.names if columns is None else model.domain.clique(columns)
    places: list[float] = []
    labels: list[tuple[str, str]] = []
    for name in names:
        for label in model.domain[name].labels:
            places.append(len(places) + 0.8 * len({n for n, _ in labels} | {name}))
            labels.append((name, label))
    estimate = np.concatenate([model.marginal(name).probabilities for name in names])
    ax = axes_for(ax, (7, 0.9 + 0.22 * len(labels)))
    if intervals is not None:
        found = [intervals.marginal(name) for name in names]
        low, high = np.concatenate([i.lower for i in found]), np.concatenate([i.upper for i in found])
        ax.hlines(places, low, high, color=BLUE, linewidth=2, label=f"{intervals.level:.0%} noise interval")
    ax.plot(estimate, places, "o", color=BLUE, markersize=5, label="learned")
    if truth is not None:
        known = np.concatenate([truth.marginal(name).probabilities for name in names])
        ax.plot(known, places, "|", color=ORANGE, markersize=11, markeredgewidth=2, label="true")
    ax.set_yticks(places, [f"{name} = {label}" for name, label in labels], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability")
    ax.legend(fontsize=8, loc="best")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_true_against_learned(
    truth: Model, learned: Model, cliques: Sequence[Sequence[str]] | None = None, ax: Any = None
) -> Any:
    """Every cell of some tables (the edges of the truth by default), true against learned: for experiments."""
    if truth.domain.names != learned.domain.names:
        raise InputError("the two models must have the same columns")
    asked = [tuple(c) for c in (truth.edges if cliques is None else cliques)] or [(n,) for n in truth.domain]
    x = np.concatenate([truth.marginal(c).probabilities.ravel() for c in asked])
    y = np.concatenate([learned.marginal(c).probabilities.ravel() for c in asked])
    ax = axes_for(ax, (5, 5))
    top = max(float(x.max()), float(y.max())) * 1.05
    ax.plot([0, top], [0, top], color=GREY, linewidth=1)
    ax.plot(x, y, "o", color=BLUE, markersize=3, alpha=0.6)
    ax.set(xlim=(0, top), ylim=(0, top), xlabel="true probability", ylabel="learned probability")
    ax.set_title(f"{len(x)} cells, mean |difference| {float(np.abs(x - y).mean()):.2g}", fontsize=10)
    ax.set_aspect("equal")
    return ax
