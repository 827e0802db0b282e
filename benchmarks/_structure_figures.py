"""Table 1 of the paper, drawn from measured numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._structure_search import Method


def slope(curve: dict[int, float]) -> float:
    p, n = np.log(list(curve)), np.log(list(curve.values()))
    return float(np.polyfit(p, n, 1)[0])


def draw_table(
    curves: dict[str, dict[int, float]],
    methods: Sequence[Method],
    path: Path,
    what: str = "records for 90 % exact recovery",
) -> None:
    """Table 1 from data: records against columns, one curve a method, with its slope."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8.5, 5.2))
    curves = {name: dict(sorted(curve.items())) for name, curve in curves.items() if curve}
    order = sorted(curves, key=lambda name: -max(curves[name].values()))
    styles = {"none": ":", "approx": "-", "zcdp": "--", "pure": "-."}
    shades = plt.get_cmap("tab20").colors  # type: ignore[attr-defined]
    axis.set_prop_cycle(color=[*shades[::2], *shades[1::2]])  # more methods than the usual ten colours
    for name in order:
        method = next(m for m in methods if m.name == name)
        notion = "none" if method.budget is None else method.budget.notion
        fitted = f" (slope {slope(curves[name]):.2f})" if len(curves[name]) >= 3 else ""
        axis.loglog(list(curves[name]), list(curves[name].values()), "o" + styles[notion], ms=4, label=name + fitted)
    ticks = sorted({p for curve in curves.values() for p in curve})
    axis.set_xticks(ticks, [str(p) for p in ticks])
    axis.minorticks_off()
    axis.set(
        xlabel="columns p",
        ylabel=what,
        title="Perfect matchings, η = 0.5: dotted not private, solid (1, 1e-6), dashed ρ = 0.028, dash-dot ε = 1",
    )
    axis.title.set_fontsize(10)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
