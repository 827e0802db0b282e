"""Noise intervals of the default learners: they cover what the same estimator says of the exact tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from discreet import encode, networks
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.measurement import Measurement, Measurements, Noise
from discreet.models import generators
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.release.interval import coverage
from discreet.release.uncertainty import noise_intervals
from discreet.tables.memory import MemoryTable


@pytest.mark.chance
def test_ninety_per_cent_cover_between_85_and_95() -> None:
    """Marginals and conditionals over repeated runs on known models. Each mean has a standard deviation of 0.02."""
    marginal, conditional, survived, same = [], [], [], []
    for number in range(15):
        truth = generators.dirichlet(4, generators.chain(4), levels=3, random_state=number)
        codes = truth.sample(3000, number).codes
        table = MemoryTable(truth.domain, [codes[:, i].astype(np.uint8) for i in range(4)])
        learner = NoiseAwareField(truth.cliques)
        exact = learner.fit(ExactCurator(table))
        measured = learner.measure(Curator(table, budget=PureDP(1)))
        model = learner.estimate(measured)
        found = noise_intervals(learner.estimate, measured, model, draws=25, random_state=number)
        names = [*((n,) for n in truth.domain), *truth.cliques]
        marginal.append(coverage([found.marginal(n) for n in names], [exact.marginal(n).probabilities for n in names]))
        given, free = {"x1": 0}, [n for n in names if "x1" not in n]
        targets = [exact.marginal(n, given).probabilities for n in free]
        conditional.append(coverage([found.conditional(n, given) for n in free], targets))
        survived.append(found.map_survival())
        same.append(dict(model.map()) == dict(exact.map()))
    assert 0.85 - 0.04 < np.mean(marginal) < 0.95 + 0.02
    assert 0.85 - 0.05 < np.mean(conditional) < 0.95 + 0.03
    assert abs(np.mean(survived) - np.mean(same)) < 0.15  # how often the most probable values survive the noise


def exactly(m: Measurement, table: np.ndarray) -> np.ndarray:
    return np.rint(m.of_table(table.astype(np.float64)) / float(m.grid)).astype(np.int64)


@pytest.mark.chance
@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-9")], ids=str)
def test_intervals_of_a_field_whose_tables_were_found(budget: Budget) -> None:
    """Given the tables that were found. They overlap, so that tables near the noisy ones contradict one another; and
    Asia has cells that nobody is in. The half-widths are a few times what noise of 30 records in 5,000 can do."""
    truth = networks.load("asia")
    learner, hits, widths = AdaptiveField(), [], []
    for number in range(3):
        records = truth.sample(5000, random_state=number)
        measured = learner.measure(Curator(encode(records.to_pandas(), truth.domain), budget=budget))
        model = learner.estimate(measured, truth.domain)
        exact = learner.estimate(
            Measurements(
                replace(m, counts=exactly(m, records.counts(m.told_of)), noise=Noise("none"), origin="research")
                for m in measured
            ),
            truth.domain,
        )
        found = noise_intervals(learner.estimate, measured, model, draws=20, random_state=number)
        pairs = list(combinations(truth.domain.names, 2))
        intervals = [found.marginal(pair) for pair in pairs]
        hits.append(coverage(intervals, [exact.marginal(pair).probabilities for pair in pairs]))
        widths += [float(i.half_width.mean()) for i in intervals]
    assert 0.82 < np.mean(hits) < 0.98
    assert np.mean(widths) < 0.012


@pytest.mark.chance
def test_intervals_of_the_wrong_noise_do_not_cover() -> None:
    """The negative control: intervals made for a quarter of the noise."""
    hits = []
    for number in range(8):
        truth = generators.dirichlet(4, generators.chain(4), levels=3, random_state=number)
        codes = truth.sample(3000, number).codes
        table = MemoryTable(truth.domain, [codes[:, i].astype(np.uint8) for i in range(4)])
        learner = NoiseAwareField(truth.cliques)
        exact = learner.fit(ExactCurator(table))
        loud = learner.measure(Curator(table, budget=PureDP(0.25)))
        claimed = Measurements([replace(m, noise=Noise("laplace", m.noise.scale / 4)) for m in loud], loud.release)
        found = noise_intervals(learner.estimate, claimed, learner.estimate(claimed), draws=20, random_state=number)
        hits.append(
            coverage(
                [found.marginal(c) for c in truth.cliques], [exact.marginal(c).probabilities for c in truth.cliques]
            )
        )
    assert np.mean(hits) < 0.75
