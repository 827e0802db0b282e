"""Where a graph was found, answers about columns that were not measured together are widened, and say why."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from discreet import Domain, networks
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.query import Marginals
from discreet.release import Release
from discreet.release.certificate import Fit
from discreet.release.interval import Interval, coverage
from discreet.release.together import Together
from discreet.report.levels import percents
from discreet.spec import resolve
from discreet.tables.encode import encode

MEASURED = (frozenset({"a"}), frozenset({"a", "b"}), frozenset({"b", "c"}))


class Certified:
    """Stands for a certificate with these figures."""

    def __init__(self, fits: dict[tuple[str, str], Fit], bound: float) -> None:
        self._fits, self._bound = fits, bound

    def fits(self):
        return self._fits

    def mean_at_most(self) -> float:
        return self._bound


@pytest.mark.parametrize("names", [["a"], ["d"], ["a", "b"], ["c", "b"], []])
def test_what_was_measured_together_is_left_as_it_is(names: list[str]) -> None:
    assert Together(MEASURED).beyond_noise(names) == (0.0, "")


def test_the_words_name_the_pair_and_the_figure() -> None:
    beyond, said = Together(MEASURED).beyond_noise(["c", "a"])
    assert beyond == 0 and said.startswith("a and c were not measured together") and "missing edge" in said
    own = Certified({("a", "c"): Fit(0.04, 0.01, 0.07)}, 0.02)
    beyond, said = Together(MEASURED, own).beyond_noise(["a", "c"])
    assert beyond == 0.02 and "a × c is off by about 0.040 (0.010 to 0.070)" in said
    hidden = Certified({("a", "c"): Fit(0.0, 0.0, 0.03)}, 0.02)  # by noise: an estimate of 0 is not a distance of 0
    assert Together(MEASURED, hidden).beyond_noise(["a", "c"])[0] == 0.0075
    beyond, said = Together(MEASURED, Certified({}, 0.03)).beyond_noise(["a", "c"])
    assert beyond == 0.03 and "at most 0.03 on average" in said
    beyond, said = Together(MEASURED, own).beyond_noise(["a", "b", "c", "d"])
    assert beyond == 0.02 and "a and c, a and d and 2 more" in said


def _released(budget: Budget, seed: int):
    network = networks.load("asia")
    table = encode(network.sample(5000, seed).to_frame(), network.domain)
    with Curator(table, budget=budget) as curator:
        return table, Release.of(resolve(network.domain).learn(curator))


@pytest.mark.chance
@pytest.mark.parametrize("budget", [ApproxDP(1, "1e-6"), PureDP(1)], ids=str)
def test_coverage_of_what_the_records_say(budget: Budget) -> None:
    """Also of pairs that were not measured together, of which intervals for noise alone cover some 60 to 75 %."""
    intervals, narrow, targets = [], [], []
    for run in range(5):
        table, release = _released(budget, run)
        found, domain = release.intervals(), release.model.domain
        assert found.together is not None
        for pair in itertools.combinations(domain.names, 2):
            if found.together.beyond_noise(pair)[1]:
                intervals.append(found.marginal(pair))
                plain = found.of(lambda m, pair=pair: m.marginal(pair).probabilities)
                narrow.append(Interval(plain.estimate, plain.lower, plain.upper, 0.9))
                assert (intervals[-1].half_width >= np.minimum(narrow[-1].half_width, plain.estimate)).all()
                targets.append(ExactCurator(table).measure(Marginals(domain, [pair]))[0].values / 5000)
    assert coverage(intervals, targets) >= 0.82
    assert coverage(narrow, targets) < coverage(intervals, targets)


def test_a_condition_scales_it_and_every_way_to_ask_says_it() -> None:
    _, release = _released(PureDP(1), 0)
    found = release.intervals(draws=5)
    apart = next(p for p in itertools.combinations(release.model.domain.names, 2) if found.together.beyond_noise(p)[1])
    a, b = apart
    label = release.model.domain[b].labels[1]
    joint, conditional = found.marginal((a, b)), found.conditional(a, {b: label})
    share = release.model.probability({b: label})
    beyond = found.together.beyond_noise(apart)[0]
    assert conditional.upper.max() >= min(1, conditional.estimate.max() + min(1, beyond / share)) - 1e-12
    asked, table = found.ask(f"P({a} | {b}={label})"), found.ask(f"P({a} | {b})")
    np.testing.assert_allclose(table.upper[1], asked.upper)  # a row of the whole table is as wide
    np.testing.assert_allclose(table.lower[1], asked.lower)
    for said in (joint, conditional, asked, table, found.probability({a: release.model.domain[a].labels[0], b: label})):
        assert "were not measured together" in said.note and "± makes room for that" in said.note
    assert "not measured together" in found.map([a, b]).note
    narrow = replace(found, together=None)
    alone = narrow.ask(f"P({a} | {b})")
    assert "together" not in alone.note and (alone.upper <= table.upper).all()
    given = resolve(release.model.domain, graph=networks.load("asia"))
    with Curator(encode(networks.load("asia").sample(500, 0).to_frame(), release.model.domain), budget=PureDP(1)) as c:
        intervals = Release.of(given.learn(c)).intervals(draws=3)
    apart = intervals.marginal(("asia", "xray"))
    assert "rests on the form that the model was given; ± covers noise and chance at most" in apart.note
    assert not intervals.marginal(("asia", "tub")).note and not intervals.marginal("xray").note


def _numbers(strength: float) -> Release:
    """Two columns of numbers that were not measured together, as a release has them, with this certificate's figure."""
    domain = Domain.of({"x": [0, 1, 2, 3], "y": [0, 10, 20, 30]})
    codes = np.array(list(itertools.product(range(4), range(4))) * 200)
    with Curator(encode({"x": codes[:, 0], "y": codes[:, 1] * 10}, domain), budget=PureDP(5)) as curator:
        found = Release.of(resolve(domain, cliques="x; y").learn(curator)).intervals(draws=3)
    certified = Certified({("x", "y"): Fit(strength, 0.9 * strength, strength)}, strength)
    return replace(found, together=Together((frozenset("x"), frozenset("y")), certified))


def test_means_and_quantiles_are_widened_by_the_part_of_the_records_that_may_be_elsewhere() -> None:
    """Pairs .1 off in total variation: .05 of all records, a fifth of those with x = 1. Without the fifth of them that
    has the smallest y (uniform on 0, 10, 20, 30), the mean is (.05 × 0 + .25 × 60) / .8 = 18.75."""
    found = _numbers(0.1)
    mean = found.ask("E(y | x=1)")
    assert mean.upper == pytest.approx(18.75, abs=0.5) and mean.lower == pytest.approx(11.25, abs=0.5)
    assert mean.note.endswith("± makes room for that")
    rows, median = found.ask("E(y | x)"), found.ask("QUANTILE(y, 0.4 | x=1)")
    assert rows.upper[1] == pytest.approx(float(mean.upper)) and rows.lower[1] == pytest.approx(float(mean.lower))
    assert median.lower == 10 and median.upper == 20
    assert "±" not in found.ask("E(y)").note and found.ask("SD(y | x=1)").note.endswith("± makes no room for that")
    everything = _numbers(1.0).ask("E(y | x=1)")
    assert everything.lower == pytest.approx(0) and everything.upper == pytest.approx(30)


def test_where_nothing_is_known_of_a_probability_the_answer_says_so() -> None:
    known, unknown = _numbers(0.1).ask("P(y | x=1)"), _numbers(0.9).ask("P(y | x=1)")
    assert not known.anything.any() and "anything" not in known.note
    assert unknown.anything.all() and unknown.note.endswith("of what is ± anything, nothing is known")
    assert {half for _, half in unknown.texts()} == {"anything"} and percents(unknown)[0].endswith("% ± anything")


def test_a_mean_of_nobody_under_some_noise_is_not_certain() -> None:
    unknown = Interval(np.array([12.0, 3.0]), np.array([np.nan, 2.5]), np.array([np.nan, 3.5]), 0.9)
    assert unknown.texts() == [("12.0000", "anything"), ("3.00", "0.50")]


def _latent(seed: int, records: int = 10_000):
    """Binary columns with three classes behind them: every pair is correlated, many of them weakly."""
    rng = np.random.default_rng(seed)
    behind = rng.choice(3, records, p=rng.dirichlet(np.full(3, 2.0)))
    yes = 1 / (1 + np.exp(-(rng.normal(-1.5, 1, 8) + rng.normal(0, 1.5, (3, 8))[behind])))
    domain = Domain.of({f"c{i}": [0, 1] for i in range(8)})
    codes = (rng.random((records, 8)) < yes).astype(int)
    return domain, encode({name: codes[:, i] for i, name in enumerate(domain)}, domain)


@pytest.mark.chance
def test_what_a_field_of_spins_left_out_is_made_room_for() -> None:
    """The moment was measured: the true one is as far from the model as was seen, or as its noise hides."""
    hits: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for seed in (600, 602, 603, 605):
        domain, table = _latent(seed)
        with Curator(table, budget=PureDP(1)) as curator:
            release = Release.of(resolve(domain, family="spin", method="moments", certify=0).learn(curator))
        found = release.intervals(draws=8)
        edges = {frozenset(c) for c in release.model.cliques}
        for exact in ExactCurator(table).measure(Marginals(domain, list(itertools.combinations(domain.names, 2)))):
            asked = found.marginal(exact.clique)
            left_out = frozenset(exact.clique) not in edges
            assert left_out == ("none stood out of the noise; ± makes room for that" in asked.note)
            if left_out:
                plain = found.of(lambda m, c=exact.clique: m.marginal(c).probabilities)
                truth = exact.values / exact.values.sum()
                hits[True].append(asked.covers(truth).ravel())
                hits[False].append(plain.covers(truth).ravel())
    covered = {room: float(np.concatenate(found).mean()) for room, found in hits.items()}
    assert covered[True] > 0.75 and covered[True] > covered[False]
    at_most = found.together.left_out
    pair = next(p for p in itertools.combinations(domain.names, 2) if frozenset(p) not in edges)
    assert at_most.room(pair, 0.99) > at_most.room(pair, 0.9) == at_most.room(pair[::-1], 0.9)
