"""Drawings of the evaluation as SVG: heat maps of pairs, and quantiles. They scale, print, and need no network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ..domain import Clique
from ..report.drawing import short
from .scores import QUANTILES, Numbers

LABELLED = 32  # columns up to which a heat map names them
_LETTER, _STEPS, _LONGEST = 6.2, 10, 16
_ROW, _WIDE = 18.0, 320.0


def heat_map(names: Sequence[str], lower: Mapping[Clique, float], upper: Mapping[Clique, float], top: float) -> str:
    """A square for every pair: ``lower`` below the diagonal, ``upper`` above it; full colour at ``top``, growing
    with the square root so that small values show; another colour for negative ones."""
    p = len(names)
    labelled = p <= LABELLED
    side = 20.0 if labelled else max(4.0, 640.0 / p)
    margin = (_LETTER * max(min(len(n), _LONGEST) for n in names) + 10) if labelled else 4.0
    place = {name: i for i, name in enumerate(names)}
    squares: dict[tuple[str, int], list[str]] = {}
    drawn: list[str] = []
    for below, values in ((True, lower), (False, upper)):
        for (a, b), value in values.items():
            if not np.isfinite(value):
                continue
            first, second = sorted((place[a], place[b]))
            column, row = (first, second) if below else (second, first)
            step = min(_STEPS, round(_STEPS * math.sqrt(abs(value) / top)))
            kind = "minus" if value < 0 else "plus"
            x, y = margin + column * side, margin + row * side
            if labelled:
                drawn.append(
                    f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" '
                    f'fill-opacity="{step / _STEPS:g}"><title>{escape(a)} × {escape(b)}: {value:.3g}</title></rect>'
                )
            else:
                squares.setdefault((kind, step), []).append(f"M{x:.1f} {y:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z")
    drawn += [
        f'<path class="{kind}" fill-opacity="{step / _STEPS:g}" d="{"".join(some)}"/>'
        for (kind, step), some in squares.items()
        if step
    ]
    if labelled:
        for i, name in enumerate(names):
            text, at = escape(short(name, _LONGEST)), margin + (i + 0.5) * side
            drawn.append(f'<text x="{margin - 4:g}" y="{at:g}" class="left">{text}</text>')
            drawn.append(
                f'<text x="{at:g}" y="{margin - 4:g}" transform="rotate(-90 {at:g} {margin - 4:g})">{text}</text>'
            )
    size = margin + p * side + 4
    frame = f'<rect class="frame" x="{margin:g}" y="{margin:g}" width="{p * side:g}" height="{p * side:g}"/>'
    return (
        f'<svg class="heat" viewBox="0 0 {size:g} {size:g}" style="width:{min(size, 680):g}px" role="img">'
        f"{frame}{''.join(drawn)}</svg>"
    )


def quantiles(sides: Sequence[tuple[str, Numbers | None]], low: float, high: float, colours: Sequence[str]) -> str:
    """One line a side: from 5 to 95 per cent thin, the middle half thick, the median a mark, the mean a ring."""
    span = (high - low) or 1.0

    def at(value: float) -> float:
        return 8 + (_WIDE - 16) * min(max((value - low) / span, 0.0), 1.0)

    out = []
    for i, ((name, numbers), colour) in enumerate(zip(sides, colours, strict=True)):
        y = _ROW * (i + 0.5)
        if numbers is None:
            continue
        q = dict(zip(QUANTILES, map(at, numbers.quantiles), strict=True))
        some = (numbers.mean, numbers.deviation, numbers.median, numbers.quantiles[0], numbers.quantiles[-1])
        words = "{}: mean {}, deviation {}, median {}, 5 to 95 % from {} to {}".format(name, *map(figure, some))
        out.append(
            f'<g style="stroke:{colour};fill:{colour}"><title>{escape(words)}</title>'
            f'<line x1="{q[0.05]:.1f}" x2="{max(q[0.95], q[0.05] + 1):.1f}" y1="{y}" y2="{y}" stroke-width="2"/>'
            f'<line x1="{q[0.25]:.1f}" x2="{max(q[0.75], q[0.25] + 1):.1f}" y1="{y}" y2="{y}" stroke-width="8"/>'
            f'<line x1="{q[0.5]:.1f}" x2="{q[0.5]:.1f}" y1="{y - 7}" y2="{y + 7}" stroke-width="3"/>'
            f'<circle cx="{at(numbers.mean):.1f}" cy="{y}" r="4" class="ring"/></g>'
        )
    return f'<svg class="ranges" viewBox="0 0 {_WIDE:g} {_ROW * len(sides):g}" role="img">{"".join(out)}</svg>'


def figure(x: float) -> str:
    """A mean or a quantile, to four digits or whole."""
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e12 else f"{x:.4g}"
