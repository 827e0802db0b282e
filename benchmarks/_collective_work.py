"""The settings of the collective benchmark, and one trial of one: every method for one budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from discreet.domain import Domain
from discreet.factor import CliqueVector
from discreet.learn.baselines import NonprivateField, random_field
from discreet.learn.consistency import estimated_total
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.measurement import Measurements
from discreet.models import generators
from discreet.models.markov import MarkovRandomField
from discreet.papers.collective import CollectiveField
from discreet.papers.naive import NaiveField
from discreet.papers.psgd import PrivateDescent
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.tables.memory import MemoryTable

try:
    import jax

    jax.config.update("jax_enable_x64", True)  # in 32 bits it stalls beyond 1e5 records
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi
except ImportError:  # a peer from the `bench` extra: it brings JAX along
    mbi = None

PENALTIES = tuple(10.0 ** (k / 2) for k in range(-10, 2))
PEERS = ("oracle", "paper", "mbi")
"""The best λ by an oracle; CGM and naive at two fixed λ; mbi."""
MBI_ITERATIONS = 1000
LONG = 0.25
"""Seconds after which a time is not taken again: short ones are easily disturbed."""
Descents = Sequence[tuple[float, float | None]]
DESCENTS: Descents = [(rate, clip) for clip in (None, 1.0) for rate in (2.0, 10.0)]
"""PSGD's grid search: learning rate and clipping norm, the best taken by its KL from the truth, as an oracle would."""


@dataclass(frozen=True)
class Setting:
    """One cell of the paper's grid, or another like it."""

    graph: str
    levels: int
    records: int
    epsilon: float
    target: float | None = None
    nodes: int = 10

    def __str__(self) -> str:
        size = "" if self.nodes == 10 else f", {self.nodes} columns"
        return f"{self.graph}, {self.levels} states{size}, N={self.records:.0e}, ε={self.epsilon:g}"

    def truth(self, seed: int) -> MarkovRandomField:
        edges = {
            "third-order chain": lambda: generators.chain(self.nodes, 3),
            "Erdős–Rényi": lambda: generators.erdos_renyi(self.nodes, 0.3, max_width=3, random_state=seed),
            "chain": lambda: generators.chain(self.nodes),
            "tree": lambda: generators.random_tree(self.nodes, random_state=seed),
            "grid": lambda: generators.grid(math.isqrt(self.nodes), math.isqrt(self.nodes)),
        }[self.graph]()
        return generators.dirichlet(self.nodes, edges, levels=self.levels, random_state=seed)


def rows_of(model: MarkovRandomField, records: int, seed: int) -> MemoryTable:
    codes = model.sample(records, seed, method="exact").codes
    return MemoryTable(model.domain, [codes[:, i].astype(np.uint8) for i in range(len(model.domain))])


def trial(setting: Setting, number: int, *, peers: Collection[str] = (), descents: Descents = ()) -> dict[str, float]:
    """KL from the truth and seconds of each method, one model and its rows; all but ours learn from the same tables.

    ``peers`` adds what is slow, some of ``PEERS``; ``descents`` adds the best PSGD with δ = 1/N.
    """
    truth, table, exact = known(replace(setting, epsilon=1.0, target=None), number)
    cliques, domain, n = truth.cliques, truth.domain, setting.records
    out = {"non-private": truth.kl(exact)}

    def note(name: str, work: Callable[[], MarkovRandomField], times: int = 1) -> None:
        seconds: list[float] = []
        while len(seconds) < times and sum(seconds) < LONG:
            begun = time.perf_counter()
            model = work()
            seconds.append(time.perf_counter() - begun)
        out[f"{name} seconds"] = min(seconds)  # what it costs when nothing disturbs
        out[name] = truth.kl(model)

    note("uniform", lambda: MarkovRandomField.uniform(domain))
    note("random", lambda: random_field(domain, cliques, number))
    with Curator(table, budget=PureDP(setting.epsilon)) as curator:
        measured = NaiveField(cliques).measure(curator)
    with Curator(table, budget=PureDP(setting.epsilon)) as curator:
        own = NoiseAwareField(cliques).measure(curator)  # where noise is large it asks for other tables
    note("noise_aware", lambda: NoiseAwareField(cliques).estimate(own, domain), 3)
    note("naive", lambda: NaiveField(cliques).estimate(measured, domain), 3)
    if "oracle" in peers:
        fits = [truth.kl(NaiveField(cliques, penalty=p).estimate(measured, domain)) for p in PENALTIES]
        out["naive, best λ"] = min(fits)
    if "paper" in peers:
        note("naive, λ=1/N", lambda: NaiveField(cliques, penalty=1 / n).estimate(measured, domain))
        note("naive, λ=100/N", lambda: NaiveField(cliques, penalty=100 / n).estimate(measured, domain))
        note("cgm", lambda: CollectiveField(cliques).estimate(measured, domain))
    if "mbi" in peers and mbi is not None:
        by_mbi(measured, domain)  # compiles
        note("mbi", lambda: by_mbi(measured, domain), 3)
    if descents:
        budget, fitted = ApproxDP(setting.epsilon, str(1 / n)), []
        for rate, clip in descents:
            learner = PrivateDescent(cliques, n, rounds=50, rate=0.1, learning_rate=rate, clip=clip)
            fitted.append(truth.kl(learner.fit(Curator(table, budget=budget))))
        out["psgd"] = min(fitted)
    return out


@lru_cache(maxsize=8)
def known(setting: Setting, number: int) -> tuple[MarkovRandomField, MemoryTable, MarkovRandomField]:
    """Model, rows and non-private fit, which several ε share."""
    truth = setting.truth(number)
    table = rows_of(truth, setting.records, number)
    return truth, table, NonprivateField(truth.cliques).fit(ExactCurator(table))


def by_mbi(measured: Measurements, domain: Domain) -> MarkovRandomField:
    """mbi 2.0: mirror descent on the marginal polytope, given the same noisy tables and the same total."""
    theirs = mbi.Domain(domain.names, domain.shape)
    loss = [
        mbi.LinearMeasurement(np.asarray(m.values.reshape(-1)), m.clique, stddev=m.standard_deviation) for m in measured
    ]
    total = estimated_total(measured)
    model = mbi.estimation.MirrorDescent().estimate(theirs, loss, known_total=total, iters=MBI_ITERATIONS)
    tables = {}
    for clique in model.potentials.cliques:
        factor = model.potentials[clique]
        values = np.asarray(factor.values, dtype=np.float64)
        columns = domain.clique(clique)
        tables[columns] = np.transpose(values, [factor.domain.attributes.index(n) for n in columns])
    return MarkovRandomField(domain, CliqueVector(domain, tables))
