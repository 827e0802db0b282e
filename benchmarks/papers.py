"""The papers' figures and tables drawn again, a part at a time, from results that are kept beside this module.

``discreet bench papers`` measures what is not yet in ``benchmarks/results/papers-*.json`` and draws every picture from
what is there; delete a line to have it measured again. A run that is interrupted is taken up where it stopped.
``--quick`` measures the verdicts in small and keeps nothing. Every picture says how many draws it is made of.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._collective_work import Setting, rows_of
from benchmarks.harness import one_thread, row
from discreet.inference.best_record import Enumeration
from discreet.inference.perturbed_leader import DataPlayer, Perturbation
from discreet.io.atomic import write_atomically
from discreet.learn.query_release import Parities
from discreet.learn.query_release.leader import SCALE, samples_of
from discreet.models import generators
from discreet.papers.collective import CollectiveField
from discreet.papers.naive import NaiveField
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.queries.parities import all_monomials

Row = dict[str, Any]
RESULTS = Path(__file__).with_name("results")
IMAGES = Path(__file__).parents[1] / "docs" / "images"
STOPPED = tuple(
    Setting(graph, levels, records, epsilon, nodes=nodes)
    for graph, levels, nodes in (
        ("Erdős–Rényi", 10, 10), ("third-order chain", 10, 10), ("tree", 10, 10), ("grid", 8, 9),
    )
    for records, epsilon in ((10**4, 0.1), (10**4, 1.0), (10**5, 0.05), (10**5, 0.5), (10**6, 0.01), (10**6, 1.0))
)  # fmt: skip
"""Where the stopping rule of EM is judged: nothing was chosen on these graphs, sizes or seeds."""
SMALL = tuple(Setting("grid", 4, 10**5, e, nodes=9) for e in (0.1, 1.0)) + tuple(
    Setting("tree", 6, 10**5, e) for e in (0.1, 1.0)
)
ROUNDS = (50, 200, 800)


class Kept:
    """Results by name in one JSON file, a line each, written after each; a quick run keeps none. Several runs may write
    to it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.found = self._read()

    def _read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text("utf-8")) if self.path is not None and self.path.exists() else {}

    def get(self, key: str, work: Callable[[], Any]) -> Any:
        if key not in self.found:
            made = work()
            self.found = {key: made, **self.found, **self._read()}
            if self.path is not None:
                lines = [f"{json.dumps(k, ensure_ascii=False)}: {_line(v)}" for k, v in sorted(self.found.items())]
                self.path.parent.mkdir(exist_ok=True)
                write_atomically(self.path, [("{\n" + ",\n".join(lines) + "\n}\n").encode()])
        return self.found[key]


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def kept(name: str, quick: bool) -> Kept:
    return Kept(None if quick else RESULTS / f"papers-{name}.json")


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """Verdicts first, then the figures; ``data`` is not needed."""
    with one_thread():
        yield from stopping(quick, seed)
        yield from leaders(quick, seed)
        if not quick:
            yield from directed(seed)
            yield from figure_2(seed)
            yield from figure_3(seed)
            yield from parameters(seed)  # its last cells take longest


# -- EM of collective graphical models -------------------------------------------------------------------------------


def stopping(quick: bool, seed: int) -> Iterator[Row]:
    """KL of EM, stopped by its rule, divided by the better of naive likelihood at two λ."""
    settings, here = SMALL if quick else STOPPED, kept("stopping", quick)
    found = [
        here.get(f"{s}; {number}", lambda s=s, n=number: beside_naive(s, n))
        for number, s in enumerate(settings, 2000 + 100 * seed)
    ]
    where = f"{len(settings)} fresh settings, one draw each"
    for name, target in (("cgm", 0.9), ("cgm, published law", None)):
        ratios = [r[name] / min(r["naive, λ=10/N"], r["naive, λ=1/N"]) for r in found]
        yield row("KL ≤ 1.1 × the better of naive at λ = 10/N and 1/N, share", where, np.mean(np.array(ratios) <= 1.1),
                  better="higher", target=target, method=name, runs=len(found))  # fmt: skip
        middle = math.exp(statistics.fmean(map(math.log, ratios)))
        yield row("KL divided by the better of naive, geometric mean", where, middle, reference=max(ratios),
                  reference_name="the worst", method=name, runs=len(found))  # fmt: skip


def beside_naive(setting: Setting, number: int) -> dict[str, float]:
    truth = setting.truth(number)
    table = rows_of(truth, setting.records, number)
    measured = NaiveField(truth.cliques).measure(Curator(table, budget=PureDP(setting.epsilon)))  # all the cliques
    out = {
        f"naive, λ={k}/N": truth.kl(NaiveField(truth.cliques, penalty=k / setting.records).estimate(measured))
        for k in (10, 1)
    }
    for name, learner in (
        ("cgm", CollectiveField(truth.cliques)),
        ("cgm, published law", CollectiveField(truth.cliques, likelihood="noise")),
    ):
        begun = time.perf_counter()
        model = learner.estimate(measured)
        out |= {name: truth.kl(model), f"{name}, seconds": round(time.perf_counter() - begun, 2)}
        out[f"{name}, steps"] = (model.card or {})["steps_of_em"]
    return out


# -- follow the perturbed leader ---------------------------------------------------------------------------------------


def leaders(quick: bool, seed: int) -> Iterator[Row]:
    """The error that the game leaves without noise, and the power of T with which it falls."""
    here, rounds, draws = kept("leader", quick), ROUNDS, 5
    modes: tuple[Perturbation, ...] = ("separator", "exponential")
    for mode in modes:
        errors = [
            here.get(f"{mode}, T={T}, {draws} draws, seed {seed}",
                     lambda m=mode, T=T: statistics.fmean(game(m, T, 10 * seed + d) for d in range(draws)))
            for T in rounds
        ]  # fmt: skip
        where = f"8 columns, 92 parities, no noise, T = {rounds[0]} to {rounds[-1]}"
        slope = math.log(errors[-1] / errors[0]) / math.log(rounds[-1] / rounds[0])
        note = f"T = {', '.join(map(str, rounds))}: " + ", ".join(f"{e:.3f}" for e in errors)
        yield row("power of T with which the error falls", where, -slope, better="higher", target=0.4, runs=draws,
                  reference=errors[-1], reference_name="error at the most rounds",
                  method=f"perturbed leader, {mode}", note=note)  # fmt: skip


def game(mode: Perturbation, rounds: int, seed: int) -> float:
    truth = generators.ising(8, generators.matching(8), weight=0.5)
    workload = Parities(truth.domain, all_monomials(truth.domain, 3))
    data = workload.answers_on(np.asarray(truth.sample(10_000, seed).codes, dtype=np.int64))
    player = DataPlayer(
        workload.terms, Enumeration(), mode, SCALE * math.sqrt(rounds), samples_of(workload, rounds), seed
    )
    total = np.zeros(len(workload))
    for _ in range(rounds):
        now = workload.answers_on(player.play())
        total += now / rounds
        worst = int(np.abs(data - now).argmax())
        player.ask_for(worst, 1 if data[worst] > now[worst] else -1)
    return float(np.abs(total - data).max())


# -- figures ---------------------------------------------------------------------------------------------------------


def parameters(seed: int) -> Iterator[Row]:
    """[000] Table 1 for parameters, measured."""
    from benchmarks import _mrf_records as records
    from benchmarks._structure_figures import draw_table

    found = records.cells(kept("parameters", False).get, seed)
    draw_table(records.curves(found), records.METHODS, IMAGES / "mrf-table-1.png", records.SHOWN)
    yield from records.rows(found, seed)


def directed(seed: int) -> Iterator[Row]:
    """[CRJ20] Figure 1 and Tables 1 and 2 at all ε, ten runs each as in the paper, twenty of small networks."""
    from benchmarks._directed_figures import EPSILONS, draw
    from benchmarks._directed_work import Work
    from benchmarks.directed import METHODS, _one_run
    from discreet import networks

    here = kept("directed", False)
    found: dict[str, Any] = {}
    for name in networks.names():
        work = Work(networks.load(name), seed)
        runs = 20 if len(work.network.domain) < 12 else 10  # of small ones a few bad runs decide the mean

        def means(method: str, epsilon: float, work: Work = work, runs: int = runs) -> dict[str, float]:
            rows = [_one_run(work, method, PureDP(epsilon), r) for r in range(runs)]
            return {key: float(np.mean([r[key] for r in rows])) for key in rows[0]} | {"runs": runs}

        found[name] = {
            f"{m}@{e:g}": here.get(f"{name}, {m}@{e:g}, seed {seed}", lambda m=m, e=e, means=means: means(m, e))
            for e in EPSILONS
            for m in METHODS
        }
        ratio = found[name]["two_stage@1"]["kl"] / found[name]["uniform@3"]["kl"]
        yield row("joint KL of the paper's scheme at ε = 1 divided by that of uniform budgets at ε = 3", name, ratio,
                  method="two_stage", runs=runs)  # fmt: skip
    draw(found, IMAGES / "directed-figure-1.png", quick=False)


def figure_2(seed: int) -> Iterator[Row]:
    """[BMSSHM17] Figure 2, as in the paper: 10 states, all ε, 25 draws, PSGD."""
    from benchmarks import _collective_figure_2, _collective_figures

    here = kept("figure-2", False)
    for draws in range(1, _collective_figure_2.DRAWS + 1):  # whoever is interrupted has the picture so far
        found = _collective_figure_2.curves(here.get, seed, draws)
        _collective_figures.figure_2(found, IMAGES / "collective-figure-2.png")
    yield from _collective_figure_2.verdicts(found)


def figure_3(seed: int) -> Iterator[Row]:
    """[BMSSHM17] Figure 3a: ten graphs."""
    from benchmarks import _collective_figures as figures

    errors = figures.figure_3(IMAGES / "collective-figure-3.png", seed)
    for name, values in errors.items():
        yield row("mean error of an edge marginal", "Figure 3a, 20 states, N=1e+05, ε=0.5", statistics.fmean(values),
                  reference=statistics.fmean(errors["naive"]), reference_name="naive", method=name, runs=len(values),
                  less=sum(x < y for x, y in zip(values, errors["naive"], strict=True)))  # fmt: skip
