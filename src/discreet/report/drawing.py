"""A model's graph as SVG, for pages: scales to the screen, prints, and its text can be searched."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from html import escape
from itertools import pairwise

import numpy as np

from ..models.base import Model
from ..models.plotting import layout, strongest

THINNEST, THICKEST = 1.0, 7.0
_BESIDE, _BELOW, _HIGH, _MARGIN = 104.0, 86.0, 26.0, 16.0
_LETTER = 7.6
_GAP, _PUSHES = 14.0, 300
_SMALLEST = 0.68  # of the drawing's own size: names stay legible, and what is wider scrolls
Edge = tuple[str, str]
Point = tuple[float, float]


def graph_svg(model: Model, strength: Mapping[Edge, float], faded: Collection[Edge] = ()) -> str:
    """The graph; thickness is strength, and faded edges are those that noise alone could have made.

    Of many edges the strongest are drawn (:func:`drawn_edges`), on top of the weaker ones.
    """
    drawn = drawn_edges(model, strength, faded)
    place, routes = layout(model, edges=drawn)
    widths = {name: _LETTER * max(3, len(short(name))) + 16 for name in place}
    at = {name: _on_screen(point) for name, point in place.items()}
    if not model.directed:
        at = _without_overlaps(at, widths)
    bends = {edge: [_on_screen(point) for point in points] for edge, points in routes.items()}
    turns = [px for points in bends.values() for px, _ in points]
    left = min([*turns, *(px - widths[n] / 2 for n, (px, _) in at.items())], default=0) - _MARGIN
    right = max([*turns, *(px + widths[n] / 2 for n, (px, _) in at.items())], default=0) + _MARGIN
    top = min((py for _, py in at.values()), default=0) - _HIGH / 2 - _MARGIN
    bottom = max((py for _, py in at.values()), default=0) + _HIGH / 2 + _MARGIN
    largest = max((abs(s) for s in strength.values() if math.isfinite(s)), default=0.0)
    lines = []
    for edge in reversed(drawn):
        way = [at[edge[0]], *bends.get(edge, ()), at[edge[1]]]
        lines.append(_edge(model, edge, way, strength.get(edge, 0.0), largest, edge in faded, widths[edge[1]]))
    nodes = [_node(name, at[name], widths[name]) for name in at]
    size = f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}"
    heads = "".join(
        f'<marker id="head-{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" markerHeight="11" '
        f'markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        f'<path d="M0 1 10 5 0 9z" class="head {kind}"/></marker>'
        for kind in ("plus", "minus", "faded")
    )
    wide = right - left
    return (
        f'<svg class="graph" viewBox="{size}" style="max-width:{wide:.0f}px;min-width:{_SMALLEST * wide:.0f}px" '
        f'role="img" aria-label="Graph of {len(at)} columns and {len(model.edges)} edges"><defs>{heads}</defs>'
        + "".join(lines)
        + "".join(nodes)
        + "</svg>"
    )


def drawn_edges(model: Model, strength: Mapping[Edge, float], faded: Collection[Edge] = ()) -> list[Edge]:
    """The edges that are drawn, the strongest first; where not all can be, those that noise could have made are not."""
    chosen = strongest(model, strength)
    return chosen if len(chosen) == len(model.edges) else [edge for edge in chosen if edge not in faded]


def _without_overlaps(at: Mapping[str, Point], widths: Mapping[str, float]) -> dict[str, Point]:
    """The boxes pushed apart, each pair along the shorter way, until none lies on another."""
    names = list(at)
    place = np.array([at[name] for name in names])
    wide = np.array([widths[name] for name in names])
    room = np.stack([(wide[:, None] + wide) / 2 + _GAP, np.full((len(names), len(names)), _HIGH + _GAP)], axis=2)
    numbers = np.arange(len(names))
    by_number = np.sign(numbers[:, None] - numbers)[..., None]  # which way two boxes go that lie on one another
    for _ in range(_PUSHES):
        away = place[:, None] - place  # from every other box to this one
        deep = room - np.abs(away)
        over = (deep > 0.5).all(axis=2) & (by_number[..., 0] != 0)
        if not over.any():
            break
        shorter = deep == deep.min(axis=2, keepdims=True)
        push = np.where(over[..., None] & shorter, deep / 2, 0.0)
        place = place + (np.where(away != 0, np.sign(away), by_number) * push).sum(axis=1)
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, place, strict=True)}


def _on_screen(point: Point) -> Point:
    return point[0] * _BESIDE, -point[1] * _BELOW


def short(name: str, most: int = 18) -> str:
    """A name as long as there is room for. Both ends are kept: many names of a file begin alike."""
    kept = most - 1
    return name if len(name) <= most else f"{name[: kept - kept // 3]}…{name[-(kept // 3) :]}"


def _node(name: str, at: Point, width: float) -> str:
    x, y = at
    return (
        f'<g class="node" data-column="{escape(name, quote=True)}"><title>{escape(name)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - _HIGH / 2:.1f}" width="{width:.1f}" height="{_HIGH:.0f}" rx="7"/>'
        f'<text x="{x:.1f}" y="{y:.1f}">{escape(short(name))}</text></g>'
    )


def _edge(
    model: Model, edge: Edge, way: list[Point], value: float, largest: float, faded: bool, target_width: float
) -> str:
    share = min(abs(value) / largest, 1.0) if largest > 0 and math.isfinite(value) else 0.0
    kind = "faded" if faded else "minus" if value < 0 else "plus"
    if model.directed:
        way = [*way[:-1], _border(way[-2], way[-1], target_width)]
    path = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(way))
    if len(way) > 2:
        path = _smooth(way)
    arrow = f' marker-end="url(#head-{kind})"' if model.directed else ""
    note = ", noise alone could have made it" if faded else ""
    joint = " → " if model.directed else " – "
    return (
        f'<path class="edge {kind}" d="{path}" stroke-width="{THINNEST + (THICKEST - THINNEST) * share:.2f}"{arrow}>'
        f"<title>{escape(joint.join(edge))}: strength {value:.3g}{note}</title></path>"
    )


def _smooth(way: list[Point]) -> str:
    """Through the middles of the pieces, with the corners as control points."""
    middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in pairwise(way)]
    path = f"M{way[0][0]:.1f} {way[0][1]:.1f} L{middles[0][0]:.1f} {middles[0][1]:.1f}"
    for corner, middle in zip(way[1:-1], middles[1:], strict=True):
        path += f" Q{corner[0]:.1f} {corner[1]:.1f} {middle[0]:.1f} {middle[1]:.1f}"
    return path + f" L{way[-1][0]:.1f} {way[-1][1]:.1f}"


def _border(start: Point, end: Point, width: float) -> Point:
    """Where a line to the middle of a box meets the box."""
    dx, dy = start[0] - end[0], start[1] - end[1]
    reach = min((width / 2 + 2) / abs(dx) if dx else math.inf, (_HIGH / 2 + 2) / abs(dy) if dy else math.inf, 1.0)
    return end[0] + dx * reach, end[1] + dy * reach
