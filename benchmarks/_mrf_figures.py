"""The figures of the benchmark of Markov random fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks._mrf_ising import CENTRE, KINDS, Found, Setting, means

STYLES = {
    "default": ("o-", "C0"),
    "default, add-remove": ("o:", "C0"),
    "tight": ("s-", "C1"),
    "published": ("^-", "C3"),
    "non-private": ("-", "0.4"),
}


def draw_errors(found: Found, path: Path) -> None:
    """Sup-norm error against n, ρ and p, a line a method, a row a kind of graph."""
    p0, n0, rho0 = CENTRE
    axes_of: list[tuple[str, Any]] = [
        ("records n", lambda s: s.n if (s.p, s.rho) == (p0, rho0) else None),
        ("ρ", lambda s: s.rho if (s.p, s.n) == (p0, n0) else None),
        ("columns p", lambda s: s.p if (s.n, s.rho) == (n0, rho0) else None),
    ]
    kinds = [kind for kind in KINDS if any(s.kind == kind for s in found)]
    figure, axes = plt.subplots(len(kinds), 3, figsize=(12, 2.8 * len(kinds)), squeeze=False, constrained_layout=True)
    for line, kind in zip(axes, kinds, strict=True):
        for ax, (label, at) in zip(line, axes_of, strict=True):
            settings = sorted((s for s in found if s.kind == kind and at(s) is not None), key=at)
            _lines(ax, found, settings, at)
            ax.set(xlabel=label, ylabel="sup-norm error", title=f"{kind}")
    axes[0, 0].legend(fontsize=6, loc="lower left", framealpha=0.6)
    figure.suptitle(f"ρ-zCDP, replace-one and public n; p = {p0}, n = {n0:g}, ρ = {rho0:g} unless varied")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _lines(ax: Any, found: Found, settings: list[Setting], at: Any) -> None:
    for name, (style, colour) in STYLES.items():
        points = [(at(s), means(found[s])[name]) for s in settings if name in found[s]]
        if points:
            ax.loglog(*zip(*points, strict=True), style, color=colour, label=name, markersize=4)


def draw_risk_and_speed(
    curves: dict[str, dict[str, list[float]]], iterations: list[tuple[int, float]], path: Path
) -> None:
    """Excess risk against T beside its bound, and one iteration beside the matrix product."""
    figure, (risk, speed) = plt.subplots(1, 2, figsize=(10, 3.8), constrained_layout=True)
    for variant, curve in curves.items():
        style, colour = STYLES[variant]
        order = sorted(range(len(curve["steps"])), key=lambda i: curve["steps"][i])
        steps = [curve["steps"][i] for i in order]
        risk.loglog(steps, [curve["risk"][i] for i in order], style, color=colour, label=variant)
        risk.loglog(steps, [curve["bound"][i] for i in order], ":", color=colour, label=f"{variant}: Corollary 3.4")
    risk.set(xlabel="noisy steps", ylabel="excess empirical risk", title="logistic regression")
    risk.legend(fontsize=8)
    speed.plot(*zip(*iterations, strict=True), "o-")
    speed.axhline(2.5, color="0.6", linestyle=":")
    speed.set(xlabel="columns p", ylabel="times a p×p×n product", title="one iteration, all columns", ylim=(0, None))
    figure.savefig(path, dpi=110)
    plt.close(figure)
