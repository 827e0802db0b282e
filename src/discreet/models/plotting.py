"""Drawing a model's graph: layers for a network, springs for the others; thicker edges for stronger interactions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from .base import Model

POSITIVE, NEGATIVE, NODE = "#2b6cb0", "#c2410c", "#e8eef6"
THINNEST, THICKEST = 0.6, 5.0
SWEEPS = 12
Edge = tuple[str, str]
Place = dict[str, tuple[float, float]]


def draw(
    model: Model,
    ax: Any = None,
    *,
    strength: Mapping[Edge, float] | None = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
    title: str | None = None,
    random_state: int = 0,
) -> Any:
    """Draw the graph into ``ax`` (a new figure by default) and return the ``Axes``.

    ``strength`` is a number an edge; by default the model's own parameter on it (Ising, pairwise, binary) or the mutual
    information of its ends. Negative ones are drawn in another colour and dashed.
    """
    import matplotlib.pyplot as plt  # slow to import, and only needed to draw
    from matplotlib.lines import Line2D

    strengths = dict(model.edge_strength() if strength is None else strength)
    unknown = [edge for edge in strengths if edge not in set(model.edges)]
    if unknown:
        raise InputError(f"{unknown[0]} is no edge of the model")
    place = dict(positions) if positions is not None else _layout(model, random_state)
    if ax is None:
        size = 4.5 + 0.9 * math.sqrt(len(model.domain))
        _, ax = plt.subplots(figsize=(1.25 * size, size), layout="constrained")
    largest = max((abs(s) for s in strengths.values() if math.isfinite(s)), default=0.0)
    for edge in model.edges:
        value = strengths.get(edge, 0.0)
        _draw_edge(ax, place[edge[0]], place[edge[1]], value, largest, model.directed)
    font = max(6.0, 10.0 - 0.06 * len(model.domain))
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": NODE, "edgecolor": "#5b6b7f", "linewidth": 0.8}
        ax.text(x, y, name, ha="center", va="center", fontsize=font, bbox=box, zorder=3)
    shown = {POSITIVE: [s for s in strengths.values() if s >= 0], NEGATIVE: [s for s in strengths.values() if s < 0]}
    handles = [
        Line2D([], [], color=colour, linewidth=_thickness(s, largest), label=f"{s:.3g}", **_style(s))
        for colour, values in shown.items()
        for s in sorted({min(values, key=abs), max(values, key=abs)} if values else (), key=abs)
    ]
    if handles:
        what = "weight" if hasattr(model, "width") else "mutual information (nats)"
        ax.legend(
            handles=handles, title=what if strength is None else "strength", fontsize=8, loc="best", framealpha=0.9
        )
    ax.set_title(title if title is not None else f"{type(model).__name__}, {len(model.domain)} columns")
    ax.set_axis_off()
    ax.margins(0.12)
    return ax


def _thickness(value: float, largest: float) -> float:
    share = min(abs(value) / largest, 1.0) if largest > 0 and math.isfinite(value) else 0.0
    return THINNEST + (THICKEST - THINNEST) * share


def _style(value: float) -> dict[str, Any]:
    return {"linestyle": "--"} if value < 0 else {}


def _draw_edge(
    ax: Any, start: tuple[float, float], end: tuple[float, float], value: float, largest: float, directed: bool
) -> None:
    thickness = _thickness(value, largest)
    colour = NEGATIVE if value < 0 else POSITIVE
    ax.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": f"-|>,head_width={0.2 + 0.03 * thickness:.2f}" if directed else "-",
            "color": colour,
            "linewidth": thickness,
            "alpha": 0.75,
            "shrinkA": 12 if directed else 0,
            "shrinkB": 14 if directed else 0,
            **_style(value),
        },
        zorder=1,
    )
    ax.plot(*zip(start, end, strict=True), alpha=0)  # so that the axes' limits follow


def _layout(model: Model, random_state: int) -> Place:
    if model.directed:
        return _layers(model)
    import networkx as nx  # slow to import, and only needed to draw

    graph = model.graph
    joined = [c for c in nx.connected_components(graph) if len(c) > 1]
    alone = [name for name in model.domain if graph.degree(name) == 0]
    parts = [_part(graph.subgraph(c), random_state) for c in joined]
    parts += [{name: (0.0, 0.0)} for name in alone]
    return _pack(parts)


def _part(graph: Any, random_state: int) -> Place:
    """One connected part, in a unit of one edge."""
    import networkx as nx

    if len(graph) <= 150:
        place = nx.kamada_kawai_layout(graph, scale=1.0)
    else:
        place = nx.spring_layout(graph, seed=random_state)
    lengths = [float(np.hypot(*(np.subtract(place[a], place[b])))) for a, b in graph.edges]
    unit = float(np.median(lengths)) or 1.0
    return {name: (float(x) / unit, float(y) / unit) for name, (x, y) in place.items()}


def _pack(parts: list[Place]) -> Place:
    """Put the parts side by side in rows, largest first."""
    boxes = []
    for part in parts:
        xs, ys = zip(*part.values(), strict=True)
        moved = {name: (x - min(xs), y - min(ys)) for name, (x, y) in part.items()}
        boxes.append((max(xs) - min(xs) + 1.0, max(ys) - min(ys) + 1.0, moved))
    boxes.sort(key=lambda box: -box[0] * box[1])
    across = max([math.sqrt(1.6 * sum(w * h for w, h, _ in boxes)), *(w for w, _, _ in boxes)], default=1.0)
    out: Place = {}
    x = y = tallest = 0.0
    for width, height, part in boxes:
        if x > 0 and x + width > across + 1e-9:
            x, y, tallest = 0.0, y - tallest, 0.0
        out.update({name: (px + x, y - py) for name, (px, py) in part.items()})
        x, tallest = x + width, max(tallest, height)
    return out


def _layers(model: Any) -> Place:
    """Parents above children: a layer for each distance from the roots, ordered so that arrows cross less."""
    depth: dict[str, int] = {}
    for name in model.order:
        depth[name] = max((depth[parent] + 1 for parent in model.parents[name]), default=0)
    # A root sits right above its first child, not on top of everything.
    for name in model.order:
        if not model.parents[name] and model.children[name]:
            depth[name] = min(depth[child] for child in model.children[name]) - 1
    layers: dict[int, list[str]] = {}
    for name in model.order:
        layers.setdefault(depth[name], []).append(name)
    near = {name: (*model.parents[name], *model.children[name]) for name in model.order}
    x = {name: _centred(i, len(layer)) for layer in layers.values() for i, name in enumerate(layer)}
    for sweep in range(SWEEPS):
        for level in sorted(layers, reverse=bool(sweep % 2)):
            pull = {n: float(np.mean([x[m] for m in near[n]])) if near[n] else x[n] for n in layers[level]}
            layers[level].sort(key=pull.__getitem__)
            x.update({name: _centred(i, len(layers[level])) for i, name in enumerate(layers[level])})
    # Long layers zigzag a little, so that names side by side do not touch.
    zigzag = {n: 0.18 * (i % 2) for layer in layers.values() if len(layer) > 5 for i, n in enumerate(layer)}
    return {name: (x[name], -depth[name] - zigzag.get(name, 0.0)) for name in model.order}


def _centred(i: int, count: int) -> float:
    return i - (count - 1) / 2
