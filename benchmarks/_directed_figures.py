"""Tables 1 and 2 and Figure 1 of [CRJ20] in one picture, from our own runs, with the paper's printed values beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EPSILONS = (1.0, 1.5, 2.0, 2.5, 3.0)
# [CRJ20] Tables 1 and 2, as printed: (D-Ind, their scheme) for ε = 1, 1.5, 2, 2.5, 3.
PAPER_MAP = {
    "asia": ((0.88, 0.93, 1, 1, 1), (1, 1, 1, 1, 1)),
    "sachs": ((0.81, 0.87, 0.92, 0.96, 1), (0.86, 0.93, 0.98, 1, 1)),
    "child": ((0.79, 0.83, 0.89, 1, 1), (0.93, 0.95, 0.97, 1, 1)),
    "alarm": ((0.89, 0.92, 0.95, 1, 1), (0.95, 0.98, 1, 1, 1)),
}
PAPER_MU = {"asia": (0.008, 0.0035), "sachs": (0.065, 0.04), "child": (0.0035, 0.0014), "alarm": (0.0046, 0.0012)}
PANELS = {
    "kl": "joint KL",
    "parameter_l1": "L1 of parameters",
    "any_size_l1": "L1 of marginals",
    "any_size_kl": "KL of marginals",
    "conditional_l1": "L1 of conditionals",
    "conditional_kl": "KL of conditionals",
}
METHODS = ("optimal", "uniform", "two_stage")
Found = Mapping[str, Mapping[str, Mapping[str, float]]]


def draw(found: Found, path: Path, quick: bool) -> None:
    """Write the picture. ``found[network]["method@ε"]`` holds the means over runs. A quick run has fewer ε and runs,
    and its picture says so."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(19, 16), constrained_layout=True)
    grid = figure.add_gridspec(len(found) + 1, len(PANELS), height_ratios=[*(1 for _ in found), 1.5])
    for line, (name, values) in enumerate(found.items()):
        for column, (key, title) in enumerate(PANELS.items()):
            ax = figure.add_subplot(grid[line, column])
            for method in METHODS:
                points = [(e, values[f"{method}@{e:g}"][key]) for e in EPSILONS if f"{method}@{e:g}" in values]
                ax.semilogy(*zip(*points, strict=True), marker="o", label=method)
            ax.set(title=f"{name}: {title}", xlabel="ε")
            if line == column == 0:
                ax.legend()
    half = len(PANELS) // 2
    _table(figure.add_subplot(grid[-1, :half]), "Table 1: accuracy of MAP answers (paper's in brackets)", *_map(found))
    _table(figure.add_subplot(grid[-1, half:]), "Table 2: normalised error μ, ε = 1 (paper's in brackets)", *_mu(found))
    runs = [int(v["runs"]) for values in found.values() for v in values.values()]
    what = "QUICK RUN, few ε and runs" if quick else "full run"
    made = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
    figure.suptitle(f"{what}: means of {made} runs. Above: Figure 1 of the paper, all networks")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _map(found: Found) -> tuple[list[str], list[list[str]]]:
    shown = [(i, e) for i, e in enumerate(EPSILONS) if any(f"optimal@{e:g}" in v for v in found.values())]
    rows = []
    for name, values in found.items():
        for method in METHODS:
            cells = [f"{values[f'{method}@{e:g}']['map']:.2f}" + _printed(name, method, i) for i, e in shown]
            rows.append([name, method, *cells])
    return ["network", "method", *(f"ε = {e:g}" for _, e in shown)], rows


def _printed(name: str, method: str, i: int) -> str:
    column = {"uniform": 0, "two_stage": 1}.get(method)
    return "" if column is None else f" ({PAPER_MAP[name][column][i]:g})"


def _mu(found: Found) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, values in found.items():
        ours = [f"{values[f'{method}@1']['mu']:.2g}" for method in METHODS]
        rows.append([name, ours[0], f"{ours[1]} ({PAPER_MU[name][0]:g})", f"{ours[2]} ({PAPER_MU[name][1]:g})"])
    return ["network", *METHODS], rows


def _table(ax: Any, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    ax.axis("off")
    ax.set_title(title)
    ax.table(cellText=rows, colLabels=head, loc="upper center", cellLoc="center")
