"""Ising moments measured and estimated apart: the same model, files in between, intervals that cover, refusals."""

import numpy as np
import pytest
from discreet.learn.spins.ising_fit import spin_moments
from discreet.learn.spins.ising_learner import IsingLearner, sup_error
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.spins.measuring import Measured, chosen_sums, monomials_of, pair_sums
from discreet.measurement import Measurement, Measurements
from discreet.models import generators
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.release import Release
from discreet.release.uncertainty import coverage, noise_intervals
from discreet.spec import Recipe, learn

STRATEGIES = ["one shot", "all pairs", "selected pairs"]


@pytest.fixture(scope="module")
def chain():
    return generators.ising(10, generators.chain(10), weight=0.4, field=0.1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_estimate_from_a_file_is_the_fit(chain, strategy, tmp_path):
    learner = IsingLearner(strategy=strategy)
    measured = learner.measure(Curator(sampled(chain, 20_000, 1), None, ZCDP(0.3)))
    model = learner.estimate(measured)
    assert model.card["strategy"] == strategy and model.card["origin"] == "release"
    measured.save(tmp_path / "sums.zip")
    again = learner.estimate(Measurements.load(tmp_path / "sums.zip"))
    assert np.array_equal(again.A, model.A) and np.array_equal(again.theta, model.theta)


@pytest.mark.chance
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_accurate(chain, strategy):
    model = IsingLearner(strategy=strategy).fit(Curator(sampled(chain, 20_000, 1), None, ZCDP(0.3)))
    assert sup_error(model, chain) < 0.06


def test_labels_say_what_was_measured():
    domain = Domain.of({f"x{i}": 2 for i in range(12)})
    exact = ExactCurator(table_of(np.zeros((1, 12), dtype=int), domain))
    for query in (pair_sums(domain), chosen_sums(domain, [(0, 3), (2, 11)]), chosen_sums(domain, [])):
        assert monomials_of(exact.measure(query)[0]) == query.monomials


def test_what_is_no_measurement_of_spins_is_refused(chain):
    learner = IsingLearner()
    tables = Curator(sampled(chain, 50, 1), None, ZCDP(1)).measure(Marginals(chain.domain, [("x1", "x2")]))
    with pytest.raises(InputError, match="number of records and sums of spins"):
        learner.estimate(tables)
    measured = learner.measure(Curator(sampled(chain, 50, 1), None, ZCDP(1)))
    sums = measured[1]
    wrong = Measurement("means and sums of pairs 0-99", sums.counts, sums.noise, sums.domain, origin="release")
    with pytest.raises(InputError, match="not sums of the spins"):
        learner.estimate(Measurements([measured[0], wrong, measured[2]]))
    with pytest.raises(InputError, match="use fit"):
        IsingLearner(method="frank_wolfe").measure(Curator(sampled(chain, 50, 1), None, ZCDP(1)))


def test_public_size_is_no_noise(chain):
    curator = Curator(sampled(chain, 5000, 1), UNITS["replace-one"], ZCDP(0.3), public_size=5000)
    measured = IsingLearner(strategy="one shot").measure(curator)
    assert Measured.of(measured).moments.records == 5000 and measured[0].origin == "public"


def test_moments_of_a_model_by_both_ways(monkeypatch, chain):
    exact = spin_moments(chain.A, chain.theta)
    monkeypatch.setattr("discreet.learn.spins.ising_fit.MOST_COLUMNS", 4)
    chains = spin_moments(chain.A, chain.theta, 0)
    assert np.abs(exact[0] - chains[0]).max() < 0.02
    off = ~np.eye(10, dtype=bool)
    assert np.abs(exact[1] - chains[1])[off].max() < 0.02


@pytest.mark.chance
def test_intervals_cover_what_exact_sums_would_give():
    """90 % intervals for couplings that are there, over twelve releases: 84 answers, mostly independent."""
    model = generators.ising(8, generators.chain(8), weight=0.5)
    table = sampled(model, 20_000, 3)
    learner = IsingLearner(strategy="one shot", max_edges=7)
    target = learner.fit(ExactCurator(table))
    i, j = np.nonzero(np.triu(model.A))
    intervals = []
    for r in range(12):
        measured = learner.measure(Curator(table, None, ZCDP(0.05)))
        found = learner.estimate(measured)
        simulated = noise_intervals(
            learner.estimate, measured, found, draws=15, random_state=r, expected=learner.expected(measured)
        )
        intervals.append(simulated.of(lambda m: m.A[i, j]))
        assert simulated.marginal("x1").lower.min() >= 0
    covered = coverage(intervals, [target.A[i, j]] * 12)
    # 84 answers: a nominal 90 % falls below 72 % with probability far below 1e-6 (binomial)
    assert covered > 0.72


def test_one_shot_plan_spends_all_at_once():
    domain = Domain.of({f"x{i}": 2 for i in range(20)})
    plan = IsingLearner(strategy="one shot").plan(domain, PrivacyUnit(), ZCDP(0.1), 1e4)
    assert len(plan.tables) == 2 and sum(t.share for t in plan.tables) == pytest.approx(1)
    assert plan.tables[1].noise.scale == pytest.approx((210 / (2 * 0.098)) ** 0.5)


THREE = Domain.of({"a": 2, "b": 2, "c": 2})


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit_of_one_shot(unit, budget):
    learner = IsingLearner(strategy="one shot")
    assert not failures(audit_replay(learner.fit, THREE, UNITS[unit], BUDGETS[budget], count=12))


def test_a_release_of_an_ising_model_has_intervals(chain):

    curator = Curator(sampled(chain, 5000, 1), None, ZCDP(0.3))
    release = Release.of(learn(Recipe("ising", "moments", {}), curator))
    assert release.has_intervals and release.refit_agrees()
    found = release.intervals(draws=5).of(lambda m: m.A)
    assert (found.upper >= found.lower).all() and (found.upper > found.lower).any()
