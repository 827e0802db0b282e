"""Chains of people: Figure 3b of [BMSSHM17] with all its curves, on a simulated building of the paper's size; and
random chains, where the truth is known.

*The building* (``building``) stands for the paper's Wi-Fi records, which nobody else has: person-days of arrival, dwell
times, moves to nearby rooms and absence, in nine rooms and "null", on a grid of ten minutes, cut into hours of six
slots. Hours in which nobody was seen are left out. As many as the paper's 124,399 person-days (an eighth of them with
``--quick``), a quarter held out. A person-day is protected; the figure is the mean log-likelihood of a held-out hour.

*Clipping* (``clipping``): at most C windows of a person, drawn, against 1/K, in this building and in a mixed one.

*Random chains*: KL from the truth, divided by that of naive maximum likelihood with the best of four λ, which only an
oracle knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import one_thread, row
from benchmarks.papers import IMAGES, Kept, kept
from discreet.domain import Attribute, Domain
from discreet.errors import BudgetError
from discreet.factor import CliqueVector, log_of
from discreet.learn.chains.noise_aware import NoiseAwareChain
from discreet.models.base import Model
from discreet.models.markov import MarkovRandomField
from discreet.papers.chains import CollectiveChain, DescentChain, NaiveChain
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.chains import moves_of
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode
from discreet.tables.memory import Persons
from discreet.tables.windows import Windows, WindowsTable

Row = dict[str, Any]
Codes = NDArray[np.int64]
ROOMS = Attribute.categorical("room", ["null", *(f"room {i}" for i in range(1, 10))])
PEOPLE, HELD_OUT = 124_399, 0.25
SLOTS, HOURS = 6, 24
MOST_HOURS = 1
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
DELTA = "1e-6"
DRAWS = 10
KINDS = ("sticky", "near", "sparse", "dense")
PENALTIES = (0.1, 1, 10, 100)


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[Row]:
    """All rows, and the figure."""
    picture = (data or Path.cwd()) / "chains-figure-3b-quick.png" if quick else IMAGES / "chains-figure-3b.png"
    here, people, draws = kept("building", quick), *((PEOPLE // 8, 3) if quick else (PEOPLE, DRAWS))
    with one_thread():
        yield from figure_3b(picture, here, seed, people, draws)
        yield from clipping(here, seed, draws)
        yield from random_chains(seed, quick=quick)


# -- the building ------------------------------------------------------------------------------------------------------


def building(people: int, seed: int) -> Codes:
    """A row for each person-day, its room at each of 144 times."""
    rng = np.random.default_rng(seed)
    home, here = rng.integers(1, 10, people), rng.random(people) < 0.7
    arrival, leaving = rng.integers(42, 72, people), rng.integers(84, 120, people)
    state, out = np.zeros(people, dtype=np.int64), np.zeros((people, SLOTS * HOURS), dtype=np.int64)
    for t in range(SLOTS * HOURS):
        moves, near = rng.random(people) < 0.2, rng.random(people) < 0.8
        next_door = np.clip(state + rng.integers(-1, 2, people), 1, 9)
        moved = np.where(moves, np.where(near, next_door, home), state)
        state = np.where(here & (arrival <= t) & (t < leaving), np.where(state == 0, home, moved), 0)
        out[:, t] = state
    return out


def hours_of(days: Codes) -> WindowsTable:
    """What ``windows`` makes of them, built directly (17 million rows as Python values would take an hour)."""
    codes = days.reshape(-1, SLOTS)
    owner = np.repeat(np.arange(len(days)), HOURS)
    seen = (codes != 0).any(axis=1)
    identity = np.stack([np.arange(len(days)), np.zeros(len(days))], axis=1).astype(np.uint64)
    domain = Windows(ROOMS, "who", "when", SLOTS, segment=SLOTS, null="null").domain
    arrays = [codes[seen, t].astype(np.uint8) for t in range(SLOTS)]
    return WindowsTable(domain, arrays, Persons(owner[seen], identity), "who")


def held_out(model: Model, codes: Codes) -> float:
    return float(model.log_prob(codes).mean())


def curves(train: int) -> dict[str, tuple[Any, PrivacyUnit, str]]:
    """Of each curve: what learns it, what bounds a person, and how it is drawn."""
    drawn, scaled = PrivacyUnit("who", max_rows=MOST_HOURS), PrivacyUnit("who", max_rows=HOURS)
    expected = 0.7 * train
    return {
        "ours": (NoiseAwareChain(), drawn, "o-"),
        "naive": (NaiveChain(), drawn, "s--"),
        "CGM": (CollectiveChain(), drawn, "^--"),
        f"PSGD, δ = {DELTA}": (DescentChain(expected, clip=3.0), drawn, "d-."),
        "1/K: ours": (NoiseAwareChain(bound="scale"), scaled, "o:"),
        "1/K: naive, as published": (NaiveChain(bound="scale"), scaled, "s:"),
        "1/K: CGM, as published": (CollectiveChain(bound="scale"), scaled, "^:"),
    }


def figure_3b(path: Path, here: Kept, seed: int, people: int, draws: int) -> Iterator[Row]:
    split = round(people * (1 - HELD_OUT))
    days = building(people, seed + 31)
    train, test = hours_of(days[:split]), days[split:].reshape(-1, SLOTS)
    test = test[(test != 0).any(axis=1)]
    figure, ax = plt.subplots(figsize=(6.5, 4.5))
    whole = NoiseAwareChain().fit(ExactCurator(train, PrivacyUnit("who", max_rows=HOURS)))
    best = held_out(whole, test)
    found: dict[str, list[list[float]]] = {}
    for name, (learner, unit, style) in curves(split).items():
        found[name] = []
        for epsilon in EPSILONS:
            budget = ApproxDP(epsilon, DELTA) if name.startswith("PSGD") else PureDP(epsilon)
            key = f"building {people}, {seed}: {name}, {epsilon}, {draws} draws"
            found[name].append(here.get(key, partial(scores, learner, train, unit, budget, test, draws)))
        there = [(e, np.mean(values)) for e, values in zip(EPSILONS, found[name], strict=True) if values]
        ax.semilogx(*zip(*there, strict=True), style, label=name)
    ax.axhline(best, color="grey", label="non-private")
    ax.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    ax.minorticks_off()
    ax.set_ylim(bottom=max(ax.get_ylim()[0], -SLOTS * np.log(ROOMS.size) - 0.5))
    ax.set(
        xlabel="ε, a person-day",
        ylabel="held-out log-likelihood of an hour",
        title=f"a simulated building, {people:,} person-days, {draws} draws each",
    )
    ax.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    for k, epsilon in enumerate(EPSILONS):
        for name in (n for n in found if found[n][k]):
            values = found[name][k]
            yield row(
                "held-out log-likelihood of an hour",
                f"simulated building, {people} person-days, eps={epsilon:g}",
                np.mean(values),
                reference=best,
                reference_name="non-private",
                better="higher",
                runs=len(values),
                notion="approximate" if name.startswith("PSGD") else "pure",
                note=error_of(values),
                **({} if name == "ours" else {"method": name}),
            )


def scores(learner: Any, train: WindowsTable, unit: PrivacyUnit, budget: Any, test: Codes, times: int) -> list[float]:
    """Of so many draws; none where descent has no noise for so small an ε."""
    out = []
    for _ in range(times):
        try:
            with Curator(train, unit, budget) as curator:
                out.append(round(held_out(learner.fit(curator), test), 5))
        except BudgetError:
            return []
    return out


def error_of(values: list[float]) -> str:
    return f"± {np.std(values, ddof=1) / math.sqrt(len(values)):.2g}"


# -- how a person's contribution is bounded ----------------------------------------------------------------------------


def mixed(people: int, seed: int) -> Codes:
    """The building, but half of its people stay one to three hours and wander: who has few windows moves otherwise."""
    rng, days = np.random.default_rng(seed), building(people, seed)
    restless = rng.random(people) < 0.5
    begun, long, times = rng.integers(48, 90, people), rng.integers(6, 19, people), np.arange(SLOTS * HOURS)
    inside = (times >= begun[:, None]) & (times < (begun + long)[:, None])
    days[restless] = np.where(inside, rng.integers(1, 10, days.shape), 0)[restless]
    return days


def clipping(here: Kept, seed: int, draws: int, people: int = 6000) -> Iterator[Row]:
    """B7: is it better to draw at most C windows of a person than to let each of K count 1/K?"""
    for name, make in (("building", building), ("mixed building", mixed)):
        days, split = make(people, seed + 77), round(people * (1 - HELD_OUT))
        train, test = hours_of(days[:split]), days[split:].reshape(-1, SLOTS)
        test = test[(test != 0).any(axis=1)]
        for epsilon in ("0.1", "0.3", "1", "3"):
            found = {}
            for bound in (1, 2, 4, 8, "1/K"):
                unit = PrivacyUnit("who", max_rows=bound if isinstance(bound, int) else HOURS)
                learner = NoiseAwareChain(bound="rows" if isinstance(bound, int) else "scale")
                key = f"clipping, {name}, {people}, {seed}: {bound}, {epsilon}, {draws} draws"
                found[bound] = here.get(key, partial(scores, learner, train, unit, PureDP(epsilon), test, draws))
            for bound, values in found.items():
                if bound != "1/K":
                    yield row("held-out log-likelihood of an hour", f"simulated {name}, {people} person-days, "
                              f"eps={epsilon}", np.mean(values), reference=np.mean(found["1/K"]), better="higher",
                              reference_name=f"1/K, {error_of(found['1/K'])}", runs=draws, notion="pure",
                              method=f"ours, at most {bound} windows", note=error_of(values))  # fmt: skip


# -- random chains -----------------------------------------------------------------------------------------------------


def chain_of(kind: str, states: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where it starts and where it goes: staying is likely, near states are, few are, or all are."""
    go = rng.dirichlet(np.full(states, {"sticky": 0.2, "sparse": 0.3}.get(kind, 1.0)), states)
    start = rng.dirichlet(np.full(states, {"sticky": 0.5, "sparse": 0.3}.get(kind, 1.0)))
    if kind == "sticky":
        go = 0.7 * np.eye(states) + 0.3 * go
    if kind == "near":
        place = np.arange(states)
        go = np.exp(-1.5 * np.abs(place[:, None] - place))
        go /= go.sum(axis=1, keepdims=True)
    return 0.999 * start + 0.001 / states, 0.999 * go + 0.001 / states


def truth_of(kind: str, states: int, times: int, rng: np.random.Generator) -> MarkovRandomField:
    start, go = chain_of(kind, states, rng)
    domain = Domain.of({f"t{t + 1}": states for t in range(times)})
    tables = {("t1",): log_of(start), **dict.fromkeys(moves_of(domain, 1), log_of(go))}
    return MarkovRandomField(domain, CliqueVector(domain, tables))


def random_chains(seed: int, *, quick: bool) -> Iterator[Row]:
    rng = np.random.default_rng(seed + 500)
    ratios: list[float] = []
    for kind in KINDS:
        for states, times in ((4, 10), (8, 5)) if quick else ((4, 10), (8, 5), (16, 4), (10, 6), (6, 12)):
            truth = truth_of(kind, states, times, rng)
            for records, epsilon in ((1000, 1.0), (5000, 0.1), (50_000, 0.05), (200_000, 0.5)):
                table = encode(truth.sample(records, random_state=int(rng.integers(2**31))).codes, truth.domain)
                with Curator(table, budget=PureDP(str(epsilon))) as curator:
                    measured = NoiseAwareChain().measure(curator)
                kls = [truth.kl(NaiveChain(penalty=p / records).estimate(measured)) for p in PENALTIES]
                ratios.append(float(truth.kl(NoiseAwareChain().estimate(measured))) / float(min(kls)))  # type: ignore[arg-type]
    settings = f"{len(ratios)} random chains and sizes"
    for what, value, target in (
        ("KL, geometric mean of ratios", float(np.exp(np.mean(np.log(ratios)))), 1.1),
        ("KL, 90th percentile of ratios", float(np.quantile(ratios, 0.9)), None),
        ("KL, worst ratio", max(ratios), None),
    ):
        yield row(
            what, settings, value, reference=1.0, reference_name="naive, oracle's λ", target=target, notion="pure"
        )
