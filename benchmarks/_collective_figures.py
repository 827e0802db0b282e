"""The paper's figures 1, 2 and 3 drawn again from our own runs; :mod:`benchmarks.collective` draws them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from benchmarks._collective_work import Setting, rows_of
from discreet.learn.baselines import NonprivateField
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.papers.collective import CollectiveField
from discreet.papers.naive import NaiveField
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator, ExactCurator

SMALL_GRID = tuple(Setting("third-order chain", 5, 10**k, epsilon) for k in (3, 4, 5) for epsilon in (0.1, 1.0))
"""What Figure 2 shows of a quick run."""
METHODS = {
    "noise_aware": "o-", "naive": "s--", "naive, best λ": "s:", "cgm": "^--", "mbi": "v--", "psgd": "d-.",
    "random": "x:", "uniform": "k:", "non-private": "k-",
}  # fmt: skip


def figure_1(path: Path, seed: int = 0) -> None:
    """a: error of the tables against N with the slopes of eq. 4; b: the effect of projection; c: the effect of λ."""
    penalties = np.logspace(-6, 0, 13)
    figure, (a, b, c) = plt.subplots(1, 3, figsize=(13, 3.8))
    sizes = [10**k for k in (3, 4, 5, 6)]
    for epsilon in (0.1, 1.0):
        errors = []
        for n in sizes:
            truth = Setting("chain", 10, n, epsilon).truth(seed)
            measured = NaiveField(truth.cliques).measure(Curator(rows_of(truth, n, seed), budget=PureDP(epsilon)))
            gaps = [m.values / n - truth.marginal(m.clique).probabilities for m in measured]
            errors.append(np.mean(np.concatenate([g.ravel() for g in gaps]) ** 2))
        (line,) = a.loglog(sizes, errors, "o", label=f"ε = {epsilon:g}")
        cliques = 9
        predicted = [0.0099 / n + 2 * (cliques / (n * epsilon)) ** 2 for n in sizes]
        a.loglog(sizes, predicted, "-", color=line.get_color(), label="eq. 4")
    a.set(xlabel="records", ylabel="mean square error of a marginal", title="a: 1/N² until N is large, then 1/N")
    a.legend()
    setting = Setting("Erdős–Rényi", 10, 10**5, 0.5)
    truth = setting.truth(seed)
    measured = NaiveField(truth.cliques).measure(Curator(rows_of(truth, 10**5, seed), budget=PureDP(0.5)))
    for project in (True, False):
        kls = [truth.kl(NaiveField(truth.cliques, penalty=p, project=project).estimate(measured)) for p in penalties]
        b.loglog(penalties, kls, "o-", label="projected" if project else "raw")
    b.set(xlabel="λ", ylabel="KL from the truth", title="b: naive, with and without projection")
    b.legend()
    truth = Setting("chain", 10, 10**5, 0.1).truth(seed)
    table = rows_of(truth, 10**5, seed)
    for name, curator in (("exact tables", ExactCurator(table)), ("ε = 0.1", Curator(table, budget=PureDP(0.1)))):
        measured = NaiveField(truth.cliques).measure(curator)
        kls = [truth.kl(NaiveField(truth.cliques, penalty=p).estimate(measured)) for p in penalties]
        c.loglog(penalties, kls, "o-", label=name)
    c.axhline(truth.kl(NoiseAwareField(truth.cliques).estimate(measured)), color="grey", label="noise-aware, ε = 0.1")
    c.set(xlabel="λ", ylabel="KL from the truth", title="c: naive needs λ just right")
    c.legend()
    _save(figure, path)


def figure_2(results: Mapping[Setting, list[dict[str, float]]], path: Path) -> None:
    """KL against N for each method: a row of panels for each graph and number of states, a column for each ε."""
    kinds = list(dict.fromkeys((s.graph, s.levels, s.nodes) for s in results))
    epsilons = sorted({s.epsilon for s in results})
    size = (3.1 * len(epsilons) + 1, 2.6 * len(kinds) + 0.6)
    figure, axes = plt.subplots(len(kinds), len(epsilons), figsize=size, squeeze=False)
    for line, kind in enumerate(kinds):
        for column, epsilon in enumerate(epsilons):
            ax = axes[line][column]
            found = {
                s.records: r
                for s, r in results.items()
                if (s.graph, s.levels, s.nodes) == kind and s.epsilon == epsilon
            }
            sizes = sorted(found)
            for number, (name, style) in enumerate(METHODS.items()):
                there = [n for n in sizes if any(name in r for r in found[n])]  # PSGD cannot have every ε
                if there:
                    values = [statistics.fmean(r[name] for r in found[n] if name in r) for n in there]
                    color = "k" if "k" in style else f"C{number}"
                    ax.loglog(there, values, style.lstrip("k"), ms=4, label=name, color=color)
            ax.set(title=f"{kind[0]}, {kind[1]} states, ε = {epsilon:g}", xlabel="records")
            if "uniform" in found[sizes[0]][0]:
                ax.set_ylim(top=5 * max(r["uniform"] for n in sizes for r in found[n]))
            ax.title.set_fontsize(9)
            if not column:
                ax.set_ylabel("KL from the truth")
    named = {t: h for ax in axes.flat for h, t in zip(*ax.get_legend_handles_labels(), strict=True)}
    axes[0][-1].legend(named.values(), named.keys(), fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    figure.suptitle(f"draws a point: {_counts(results, 'cgm')}; of PSGD {_counts(results, 'psgd')}")
    _save(figure, path)


def _counts(results: Mapping[Setting, list[dict[str, float]]], name: str) -> str:
    """How many draws of a method a point is made of, from the fewest to the most."""
    counts = {sum(name in r for r in found) for found in results.values()} - {0}
    return " to ".join(map(str, sorted({min(counts), max(counts)}))) if counts else "none"


def figure_3(path: Path, seed: int = 0, draws: int = 10) -> dict[str, list[float]]:
    """a: true against learned edge marginals, the points of one graph, and the errors of all draws, which it returns;
    b is of :mod:`benchmarks.chains`."""
    figure, a = plt.subplots(figsize=(5, 4))
    errors: dict[str, list[float]] = {}
    for draw in range(draws):
        for name, (x, y) in _edge_marginals(seed + draw).items():
            errors.setdefault(name, []).append(float(np.abs(x - y).mean()))
            if not draw:
                a.plot(x, y, ".", ms=2, label=name)
    for handle, (name, values) in zip(a.lines, errors.items(), strict=True):
        handle.set_label(f"{name}, mean |error| {1e4 * statistics.fmean(values):.2f}e-4")
    top = 0.02
    a.axline((0, 0), slope=1, color="grey", lw=0.5)
    title = f"a: edge marginals, 20 states; points of one draw, errors of {draws}"
    a.set(xlim=(0, top), ylim=(0, top), xlabel="true", ylabel="learned", title=title)
    a.title.set_fontsize(9)
    a.locator_params(nbins=5)
    a.legend(markerscale=5, fontsize=7)
    _save(figure, path)
    return errors


def _edge_marginals(seed: int) -> dict[str, tuple[Any, Any]]:
    """The true and the learned ones of every method, on a graph, records and a release of their own."""
    truth = Setting("Erdős–Rényi", 20, 10**5, 0.5).truth(seed)
    table = rows_of(truth, 10**5, seed)
    measured = NaiveField(truth.cliques).measure(Curator(table, budget=PureDP(0.5)))
    models = {
        "naive": NaiveField(truth.cliques).estimate(measured),
        "CGM": CollectiveField(truth.cliques).estimate(measured),
        "noise-aware": NoiseAwareField(truth.cliques).estimate(measured),
        "non-private": NonprivateField(truth.cliques).fit(ExactCurator(table)),
    }
    true = np.concatenate([truth.marginal(c).probabilities.ravel() for c in truth.cliques])
    return {
        name: (true, np.concatenate([model.marginal(c).probabilities.ravel() for c in truth.cliques]))
        for name, model in models.items()
    }


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
