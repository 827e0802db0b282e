"""Drawing a model's graph: layers for a network, springs for the others; thicker edges for stronger interactions."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ..arguments import shortened
from ..errors import InputError, counted
from ..extras import needed
from ..graph import connected_components
from .distribution import Distribution

POSITIVE, NEGATIVE, NODE = "#5a8fc8", "#d0713f", "#e8eef6"
THINNEST, THICKEST = 0.6, 5.0
SWEEPS = 12
FEWEST_EDGES, EDGES_A_COLUMN = 30, 2
NAME_ROOM, PASSING_ROOM = 1.0, 0.35
Edge = tuple[str, str]
Point = tuple[float, float]
Place = dict[str, Point]
Routes = dict[Edge, list[Point]]
Stop = str | tuple[str, str, int]  # a column, or the place where an arrow (parent, child) passes a layer


def draw(
    model: Distribution,
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
    if ax is not None and not hasattr(ax, "annotate"):
        file = os.fspath(ax) if isinstance(ax, str | os.PathLike) else "graph.png"
        raise InputError(
            f"plot draws into matplotlib Axes, ax=…, or makes its own; got {shortened(ax)}. To save the drawing: "
            f"model.plot().figure.savefig({file!r})"
        )
    plt = pyplot()
    strengths = dict(model.edge_strength() if strength is None else strength)
    unknown = [edge for edge in strengths if edge not in set(model.edges)]
    if unknown:
        raise InputError(f"{unknown[0]} is no edge of the model")
    drawn = strongest(model, strengths)
    place, routes = layout(model, random_state, drawn) if positions is None else (dict(positions), {})
    if ax is None:
        size = 4.5 + 0.9 * math.sqrt(len(model.domain))
        _, ax = plt.subplots(figsize=(1.25 * size, size), layout="constrained")
    largest = max((abs(s) for s in strengths.values() if math.isfinite(s)), default=0.0)
    for edge in reversed(drawn):  # the strongest on top
        points = [place[edge[0]], *routes.get(edge, ()), place[edge[1]]]
        _draw_edge(ax, points, strengths.get(edge, 0.0), largest, model.directed)
    font = max(6.0, 10.0 - 0.06 * len(model.domain))
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": NODE, "edgecolor": "#5b6b7f", "linewidth": 0.8}
        ax.text(x, y, name, ha="center", va="center", fontsize=font, bbox=box, zorder=3)
    handles = [
        plt.Line2D([], [], color=_colour(s), linewidth=_thickness(s, largest), label=label, linestyle=_dashes(s))
        for label, s in _extremes(strengths[edge] for edge in drawn if edge in strengths).items()
    ]
    if handles:
        what = "weight" if hasattr(model, "width") else "mutual information (nats)"
        ax.legend(
            handles=handles, title=what if strength is None else "strength", fontsize=8, loc="best", framealpha=0.9
        )
    if title is None:
        title = f"{type(model).__name__}, {counted(len(model.domain), 'column')}"
        if len(drawn) < len(model.edges):
            title += f", the {len(drawn)} strongest of {len(model.edges)} edges"
    ax.set_title(title)
    ax.set_axis_off()
    ax.margins(0.12)
    return ax


def pyplot() -> Any:
    """matplotlib, which is slow to import and only needed to draw."""
    return needed("matplotlib.pyplot", "a drawing", "discreet[plot]")


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes that were given, or those of a new figure."""
    if ax is not None:
        if not hasattr(ax, "annotate"):
            raise InputError(f"ax is a matplotlib Axes, got a {type(ax).__name__}")
        return ax
    width, height = size
    return pyplot().subplots(figsize=(width, min(height, 40) if math.isfinite(height) else 5), layout="constrained")[1]


def layout(model: Distribution, random_state: int = 0, edges: Collection[Edge] | None = None) -> tuple[Place, Routes]:
    """Where the columns go, one unit apart, and the points that an arrow passes on its way around others.

    ``edges`` are those that are drawn: all of them by default.
    """
    drawn = model.edges if edges is None else tuple(edge for edge in model.edges if edge in set(edges))
    return _layers(model, drawn) if model.directed else (_springs(model, random_state, drawn), {})


def most_edges(model: Distribution) -> int:
    """How many edges a drawing of this model holds and can still be read."""
    return max(FEWEST_EDGES, EDGES_A_COLUMN * len(model.domain))


def strongest(model: Distribution, strength: Mapping[Edge, float]) -> list[Edge]:
    """The edges to draw, the strongest first: all of them, or as many as can be told apart."""
    by_strength = sorted(model.edges, key=lambda edge: -abs(strength.get(edge, 0.0)))
    return by_strength[: most_edges(model)]


def _thickness(value: float, largest: float) -> float:
    share = min(abs(value) / largest, 1.0) if largest > 0 and math.isfinite(value) else 0.0
    return THINNEST + (THICKEST - THINNEST) * share


def _colour(value: float) -> str:
    return NEGATIVE if value < 0 else POSITIVE


def _dashes(value: float) -> Literal["-", "--"]:
    return "--" if value < 0 else "-"


def _extremes(strengths: Iterable[float]) -> dict[str, float]:
    """The weakest and the strongest of each sign, by their text: what the legend shows."""
    out: dict[str, float] = {}
    values = list(strengths)
    for some in ([s for s in values if s >= 0], [s for s in values if s < 0]):
        if some:
            out |= {f"{s:.3g}": s for s in (min(some, key=abs), max(some, key=abs))}
    return out


def _draw_edge(ax: Any, points: list[Point], value: float, largest: float, directed: bool) -> None:
    """A line through the points; the last piece carries the arrow head."""
    thickness = _thickness(value, largest)
    look = {"color": _colour(value), "linewidth": thickness, "linestyle": _dashes(value)}
    ax.plot(*zip(*points[:-1], strict=True), zorder=1, solid_capstyle="round", **look)
    ax.plot(*zip(*points[-2:], strict=True), alpha=0)  # so that the axes' limits follow
    arrow = {
        "arrowstyle": f"-|>,head_width={0.2 + 0.03 * thickness:.2f}" if directed else "-",
        "shrinkA": 0,
        "shrinkB": 14 if directed else 0,
        **look,
    }
    ax.annotate("", xy=points[-1], xytext=points[-2], arrowprops=arrow, zorder=1)


# -- springs for undirected graphs -----------------------------------------------------------------------------------


def _springs(model: Distribution, random_state: int, edges: Sequence[Edge]) -> Place:
    import networkx as nx  # slow to import, and only needed to draw

    parts: list[Place] = []
    for names in connected_components(model.domain, edges):
        if len(names) == 1:
            parts.append({names[0]: (0.0, 0.0)})
            continue
        graph = nx.Graph()  # names in domain order, so that the same model is drawn the same way every time
        graph.add_nodes_from(names)
        graph.add_edges_from(edge for edge in edges if edge[0] in graph)
        parts.append(_part(graph, random_state))
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
    """Put the parts side by side in rows, highest first, and small ones where there is room beside high ones."""
    boxes = []
    for part in parts:
        xs, ys = zip(*part.values(), strict=True)
        moved = {name: (x - min(xs), y - min(ys)) for name, (x, y) in part.items()}
        boxes.append((max(xs) - min(xs) + 1.0, max(ys) - min(ys) + 1.0, moved))
    boxes.sort(key=lambda box: (-box[1], -box[0]))
    across = max([math.sqrt(sum(w * h for w, h, _ in boxes)), *(w for w, _, _ in boxes)], default=1.0)
    out: Place = {}
    free: list[tuple[float, float, float, float]] = []  # left, bottom, width and height of what is empty
    bottom = 0.0
    for width, height, part in boxes:
        fits = (room for room in free if width <= room[2] + 1e-9 and height <= room[3] + 1e-9)
        room = next(fits, None)
        if room is None:
            bottom -= height
            room = (0.0, bottom, across, height)
        else:
            free.remove(room)
        x, y, w, h = room
        top = y + h - height
        out.update({name: (px + x, py + top) for name, (px, py) in part.items()})
        free += [(x + width, top, w - width, height), (x, y, w, h - height)]
    return out


# -- layers for networks ---------------------------------------------------------------------------------------------


def _layers(model: Any, edges: Sequence[Edge]) -> tuple[Place, Routes]:
    """Parents above children, and waypoints for arrows that pass a layer, so that they go around the columns there."""
    parents: dict[str, list[str]] = {name: [] for name in model.order}
    children: dict[str, list[str]] = {name: [] for name in model.order}
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    depth: dict[str, int] = {}
    for name in model.order:
        depth[name] = max((depth[parent] + 1 for parent in parents[name]), default=0)
    # A root sits right above its first child, not on top of everything.
    for name in model.order:
        if not parents[name] and children[name]:
            depth[name] = min(depth[child] for child in children[name]) - 1
    layers: dict[int, list[Stop]] = {}
    near: dict[Stop, list[Stop]] = {name: [] for name in model.order}
    for name in model.order:
        layers.setdefault(depth[name], []).append(name)
    passing: dict[Edge, list[Stop]] = {}
    for parent, child in edges:
        passing[parent, child] = [(parent, child, level) for level in range(depth[parent] + 1, depth[child])]
        for stop in passing[parent, child]:
            layers[stop[2]].append(stop)  # type: ignore[index]
        for a, b in pairwise((parent, *passing[parent, child], child)):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    x = _uncross(layers, near)
    # Long layers zigzag a little, so that names side by side do not touch.
    zigzag: dict[Stop, float] = {}
    for layer in layers.values():
        names = [stop for stop in layer if isinstance(stop, str)]
        zigzag |= {name: 0.18 * (i % 2) for i, name in enumerate(names) if len(names) > 5}
    place = {name: (x[name], -depth[name] - zigzag.get(name, 0.0)) for name in model.order}
    routes = {edge: [(x[stop], -float(stop[2])) for stop in stops] for edge, stops in passing.items()}
    return place, routes


def _uncross(layers: dict[int, list[Stop]], near: Mapping[Stop, list[Stop]]) -> dict[Stop, float]:
    """Order each layer by the mean place of its neighbours, down and up again: arrows then cross less."""
    x: dict[Stop, float] = {}
    for layer in layers.values():
        x.update(_spread(layer))
    for sweep in range(SWEEPS):
        for level in sorted(layers, reverse=bool(sweep % 2)):
            pull = {n: float(np.mean([x[m] for m in near[n]])) if near[n] else x[n] for n in layers[level]}
            layers[level].sort(key=pull.__getitem__)
            x.update(_spread(layers[level], pull))
    return x


def _spread(layer: list[Stop], pull: Mapping[Stop, float] | None = None) -> dict[Stop, float]:
    """Places of a layer in its order, near where they are pulled to; an arrow passing by needs less room."""
    from scipy.optimize import isotonic_regression  # slow to import, and only needed to draw

    room = [NAME_ROOM if isinstance(stop, str) else PASSING_ROOM for stop in layer]
    left = np.cumsum(room) - np.array(room) / 2
    if pull is None:
        return dict(zip(layer, (left - sum(room) / 2).tolist(), strict=True))
    # Without overlaps means: x − left does not decrease; the nearest such sequence is an isotonic regression.
    wanted = np.array([pull[stop] for stop in layer]) - left
    return dict(zip(layer, (isotonic_regression(wanted).x + left).tolist(), strict=True))
