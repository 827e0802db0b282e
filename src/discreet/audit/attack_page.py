"""An attack as one HTML page that needs no network: the promise, the attack, and what no protection would give."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._version import __version__
from ..privacy.unit import PrivacyUnit
from ..report.pages import resource, template
from .attack import Attack, most_true_alarms

_PROMISE, _ATTACK, _NONE = "#6da67f", "#d0713f", "#8f1d14"
_SIDE, _LEFT, _TOP = 300.0, 44.0, 10.0


def attack_html(found: Attack, what: str, unit: PrivacyUnit) -> str:
    """The page as text; ``what`` was attacked, in plain words."""
    html: str = template("attack.html.j2", __package__).render(
        title=f"What {found.budget} means",
        version=__version__,
        style=resource("style.css"),
        what=what[:1].upper() + what[1:],
        unit=f"Protected: {unit}",
        lines=found.lines(),
        passed=found.passed,
        bars=_bars(found),
        drawing=_alarms(found),
        runs=found.runs,
        without=found.unprotected is not None,
        world=found.world,
    )
    return html


def _bars(found: Attack) -> list[dict[str, Any]]:
    def bar(name: str, advantage: float, colour: str, between: tuple[str, str] | None = None) -> dict[str, Any]:
        right = 50 + 50 * advantage
        return {"name": name, "width": f"{right:.1f}", "text": f"{right:.1f} %", "colour": colour, "between": between}

    low, high = (50 + 50 * x for x in found.interval)
    out = [
        bar("the promise: nobody more than", found.promise, _PROMISE),
        bar("the strongest of our attacks", found.advantage, _ATTACK, (f"{low:.1f}", f"{high - low:.1f}")),
    ]
    if found.unprotected is not None:
        out.append(bar("without protection", found.unprotected, _NONE))
    return out


def _alarms(found: Attack) -> str:
    def at(x: float, y: float) -> str:
        return f"{_LEFT + _SIDE * x:.1f},{_TOP + _SIDE * (1 - y):.1f}"

    x = np.linspace(0, 1, 101)
    top = most_true_alarms(x, found.epsilon, found.delta)
    edge = [at(a, b) for a, b in zip(x.tolist(), top.tolist(), strict=True)]
    drawn = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="var(--line)"/>',
        f'<polygon points="{" ".join([*edge, at(1, 1), at(0, 0)])}" fill="{_PROMISE}" fill-opacity="0.25"/>',
        f'<polyline points="{" ".join(edge)}" fill="none" stroke="{_PROMISE}" stroke-width="2"/>',
        f'<polyline points="{at(0, 0)} {at(1, 1)}" stroke="var(--soft)"/>',
        f'<polyline points="{" ".join(at(*p) for p in found.curve)}" fill="none" stroke="{_ATTACK}" stroke-width="2"/>',
    ]
    if found.unprotected is not None:
        points = " ".join((at(0, 0), at(0, found.unprotected), at(1, 1)))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{_NONE}" stroke-dasharray="2 4"/>')
    words = [
        f'<text x="{_LEFT + _SIDE / 2:g}" y="{_TOP + _SIDE + 32:g}" text-anchor="middle">false alarms</text>',
        f'<text transform="translate(12 {_TOP + _SIDE / 2:g}) rotate(-90)" text-anchor="middle">true alarms</text>',
        *(
            f'<text x="{_LEFT + _SIDE * v:g}" y="{_TOP + _SIDE + 16:g}" text-anchor="middle">{v:g}</text>'
            for v in (0, 0.5, 1)
        ),
        *(
            f'<text x="{_LEFT - 6:g}" y="{_TOP + _SIDE * (1 - v) + 4:g}" text-anchor="end">{v:g}</text>'
            for v in (0, 0.5, 1)
        ),
    ]
    size = f"0 0 {_LEFT + _SIDE + 12:g} {_TOP + _SIDE + 40:g}"
    return f'<svg class="alarms" viewBox="{size}" role="img">{"".join(drawn + words)}</svg>'
