"""Ising moments measured and estimated apart: the same model, files in between, intervals that cover, refusals."""

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.spins import model_parities as by_model
from discreet.learn.spins.coefficients import sup_error
from discreet.learn.spins.field import SpinField
from discreet.learn.spins.measuring import Sums, all_sums, chosen_sums
from discreet.learn.spins.model_parities import model_parities
from discreet.measurement import Measurement, Measurements
from discreet.models import generators
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.parities import all_monomials, measured_monomials
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.release import Release
from discreet.release.interval import coverage
from discreet.release.uncertainty import noise_intervals
from discreet.spec import Spec

STRATEGIES = ["one shot", "all", "selected"]


@pytest.fixture(scope="module")
def chain():
    return generators.ising(10, generators.chain(10), weight=0.4, field=0.1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_estimate_from_a_file_is_the_fit(chain, strategy, tmp_path):
    learner = SpinField(strategy=strategy)
    measured = learner.measure(Curator(sampled(chain, 20_000, 1), None, ZCDP(0.3)))
    model = learner.estimate(measured)
    assert model.card["strategy"] == strategy and model.card["origin"] == "release"
    measured.save(tmp_path / "sums.zip")
    again = learner.estimate(Measurements.load(tmp_path / "sums.zip"))
    assert np.array_equal(again.A, model.A) and np.array_equal(again.theta, model.theta)


@pytest.mark.chance
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_accurate(chain, strategy):
    model = SpinField(strategy=strategy).fit(Curator(sampled(chain, 20_000, 1), None, ZCDP(0.3)))
    assert sup_error(model, chain) < 0.06


def test_measurements_say_what_was_measured():
    domain = Domain.of({f"x{i}": 2 for i in range(12)})
    exact = ExactCurator(table_of(np.zeros((1, 12), dtype=int), domain))
    pairs = [("x0", "x3"), ("x2", "x11")]
    for query in (all_sums(domain, 2), all_sums(domain, 3), chosen_sums(domain, pairs), chosen_sums(domain, [])):
        assert measured_monomials(exact.measure(query)[0]) == query.monomials


def test_what_is_no_measurement_of_spins_is_refused(chain):
    learner = SpinField()
    tables = Curator(sampled(chain, 50, 1), None, ZCDP(1)).measure(Marginals(chain.domain, [("x1", "x2")]))
    with pytest.raises(InputError, match="number of records and sums of parities"):
        learner.estimate(tables)
    measured = learner.measure(Curator(sampled(chain, 50, 1), None, ZCDP(1)))
    sums = measured[1]
    wrong = Measurement("means and sums of pairs 0-99", sums.counts, sums.noise, sums.domain, origin="release")
    with pytest.raises(InputError, match="not sums of the spins"):
        learner.estimate(Measurements([measured[0], wrong, measured[2]]))
    with pytest.raises(InputError, match=r"use SpinField\(order=3\)"):
        learner.estimate(SpinField(3, strategy="all").measure(Curator(sampled(chain, 50, 1), None, ZCDP(1))))


def test_public_size_is_no_noise(chain):
    curator = Curator(sampled(chain, 5000, 1), UNITS["replace-one"], ZCDP(0.3), public_size=5000)
    measured = SpinField(strategy="one shot").measure(curator)
    assert Sums.among(measured).moments.records == 5000 and measured[0].origin == "public"
    assert [step["step"] for step in curator.steps] == ["means and all pair sums"]


def test_moments_of_a_model_by_both_ways(monkeypatch, chain):
    monomials = all_monomials(chain.domain, 3)
    exact = model_parities(chain, monomials)
    monkeypatch.setattr(by_model, "MOST_COLUMNS", 4)
    drawn = model_parities(chain, monomials)
    pairs = all_monomials(chain.domain, 2)
    assert np.abs(exact[: len(pairs)] - model_parities(chain, pairs)).max() < 0.02
    assert np.abs(exact - drawn).max() < 0.04  # 20,000 records


@pytest.mark.chance
def test_intervals_cover_what_exact_sums_would_give():
    """90 % intervals for couplings that are there, over twelve releases: 84 answers, mostly independent."""
    model = generators.ising(8, generators.chain(8), weight=0.5)
    table = sampled(model, 20_000, 3)
    learner = SpinField(strategy="one shot", max_edges=7)
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
    plan = SpinField(strategy="one shot").plan(domain, PrivacyUnit(), ZCDP(0.1), 1e4)
    assert len(plan.tables) == 2 and sum(t.share for t in plan.tables) == pytest.approx(1)
    assert plan.tables[1].noise.scale == pytest.approx((210 / (2 * 0.098)) ** 0.5)


THREE = Domain.of({"a": 2, "b": 2, "c": 2})


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit_of_one_shot(unit, budget):
    learner = SpinField(strategy="one shot")
    assert not failures(audit_replay(learner.fit, THREE, UNITS[unit], BUDGETS[budget], count=12))


def test_a_release_of_an_ising_model_has_intervals(chain):

    curator = Curator(sampled(chain, 5000, 1), None, ZCDP(0.3))
    release = Release.of(Spec("ising", "moments", {}).learn(curator))
    assert release.has_intervals and release.refit_agrees()
    found = release.intervals(draws=5).of(lambda m: m.A)
    assert (found.upper >= found.lower).all() and (found.upper > found.lower).any()
