"""What Figure 2 of [BMSSHM17] is made of: 2 graphs × 3 sizes × 4 ε, 5 populations with 5 draws of noise each.

Draws are made in turns, so that a run that is interrupted has nearly as many of each setting. PSGD is tuned as in the
paper, by a grid search that knows the truth; on a population of its own, that is not in the figure, of at most 10⁵
records. It takes longer than all others together, so that it is run once a population, and of 10⁶ records on two of
them; where (ε, 1/N) is more than its accountant can promise it is left out, as in the paper.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

from benchmarks._collective_work import Setting, known, rows_of
from discreet.errors import BudgetError
from discreet.learn.baselines import random_field
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.models.markov import MarkovRandomField
from discreet.papers.collective import CollectiveField
from discreet.papers.naive import NaiveField
from discreet.papers.psgd import PrivateDescent
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.tables.memory import MemoryTable

SETTINGS = tuple(
    Setting(graph, 10, records, epsilon)
    for graph in ("third-order chain", "Erdős–Rényi")
    for records in (10**4, 10**5, 10**6)
    for epsilon in (0.01, 0.1, 0.5, 1.0)
)
POPULATIONS, DRAWS, LONG = 5, 25, 2
FIRST, TUNED_ON = 8000, 7999
RATES, CLIPS, ROUNDS, SAMPLED = (3.0, 10.0), (1.0, None), 50, 0.1
Get = Callable[[str, Callable[[], Any]], Any]


def curves(
    get: Get, seed: int, draws: int, settings: Iterable[Setting] = SETTINGS
) -> dict[Setting, list[dict[str, float]]]:
    """KL from the truth by method, for each setting and draw; ``get`` keeps what was measured."""
    out: dict[Setting, list[dict[str, float]]] = {s: [] for s in settings}
    for draw, setting in product(range(draws), out):
        population = FIRST + seed + draw % POPULATIONS
        key = f"{setting}; {population}, draw {draw // POPULATIONS}"
        descends = draw < (LONG if setting.records >= 10**6 else POPULATIONS)
        out[setting].append(get(key, lambda s=setting, p=population, d=descends: one(get, s, p, d)))  # type: ignore[misc]
    return out


def one(get: Get, setting: Setting, population: int, descends: bool) -> dict[str, float]:
    truth, table, exact = known(replace(setting, epsilon=1.0), population)
    cliques, n = truth.cliques, setting.records
    with Curator(table, budget=PureDP(setting.epsilon)) as curator:
        measured = NaiveField(cliques).measure(curator)
    with Curator(table, budget=PureDP(setting.epsilon)) as curator:
        ours = NoiseAwareField(cliques).fit(curator)  # it may ask for other tables
    like = replace(setting, records=min(n, 10**5))
    rate, clip = get(f"{like}; PSGD tuned", lambda: tuned(like))
    models = {
        "uniform": MarkovRandomField.uniform(truth.domain),
        "random": random_field(truth.domain, cliques, population),
        "non-private": exact,
        "noise_aware": ours,
        "naive": NaiveField(cliques).estimate(measured),
        "cgm": CollectiveField(cliques).estimate(measured),
    }
    if descends:
        with suppress(BudgetError):
            models["psgd"] = descended(setting, truth, table, rate, clip)
    return {name: float(f"{truth.kl(model):.4g}") for name, model in models.items()}


def tuned(setting: Setting) -> tuple[float, float | None]:
    truth = setting.truth(TUNED_ON)
    table = rows_of(truth, setting.records, TUNED_ON)
    tried = {(r, c): truth.kl(descended(setting, truth, table, r, c)) for r in RATES for c in CLIPS}
    return min(tried, key=lambda way: tried[way])


def descended(
    setting: Setting, truth: MarkovRandomField, table: MemoryTable, rate: float, clip: float | None
) -> MarkovRandomField:
    """PSGD with δ = 1/N, as in the paper."""
    n = setting.records
    learner = PrivateDescent(truth.cliques, n, rounds=ROUNDS, rate=SAMPLED, learning_rate=rate, clip=clip)
    with Curator(table, budget=ApproxDP(setting.epsilon, str(1 / n))) as curator:
        return learner.fit(curator)


def means(results: list[dict[str, float]]) -> dict[str, float]:
    """By method, over the draws in which it was run."""
    names = dict.fromkeys(name for r in results for name in r)
    return {name: statistics.fmean(r[name] for r in results if name in r) for name in names}


def verdicts(found: dict[Setting, list[dict[str, float]]]) -> Iterator[dict[str, Any]]:
    """What the paper says of its figure, asked of ours: means over draws, by setting."""
    from benchmarks.harness import row

    least = min(len(r) for r in found.values())
    where = f"Figure 2, {len(found)} settings, {least} draws each"
    mean = {s: means(results) for s, results in found.items()}
    for better, worse in (("cgm", "naive"), ("cgm", "psgd"), ("naive", "psgd"), ("noise_aware", "cgm")):
        ratios = [m[better] / m[worse] for m in mean.values() if worse in m]
        middle = math.exp(statistics.fmean(map(math.log, ratios)))
        yield row(f"settings in which {better} has less KL than {worse}, share", where,
                  statistics.fmean(r < 1 for r in ratios), better="higher", reference=middle,
                  reference_name=f"geometric mean of the ratio; the worst is {max(ratios):.3g}", method=better,
                  runs=least)  # fmt: skip
