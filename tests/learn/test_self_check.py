"""The self-check: right models pass, models that miss their own sums fail, and every place says so."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import ZCDP, Curator, Domain, PrivacyUnit, PureDP, Release, Spec, encode, networks
from discreet.learn.self_check import MOST, limit, self_check
from discreet.measurement import Measurements
from discreet.models import IsingModel, generators
from discreet.release.research import ResearchCurator
from discreet.report import words
from discreet.report.page import report_html

ASIA = networks.load("asia")
CHAIN = generators.ising(8, generators.chain(8), weight=0.5)
FAMILIES = {
    "network": (ASIA, Spec("network", "optimal", {"graph": dict(ASIA.parents)})),
    "field": (ASIA, Spec("field", "noise_aware", {"cliques": [list(c) for c in ASIA.cliques]})),
    "spins": (CHAIN, Spec("spin", "moments", {})),
}
BUDGETS = [PureDP("1/10"), PureDP(1), PureDP(50), ZCDP("1/10")]


def rows(model, number: int, seed: int):
    return encode(model.sample(number, random_state=seed).to_frame(), model.domain)


@pytest.mark.parametrize("laplace", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("cells", [1, 2, 4, 16, 100])
def test_the_limit_is_passed_once_in_a_thousand_times(cells, laplace):
    rng = np.random.default_rng(0)
    shape = (min(200_000, 4_000_000 // cells), cells)
    draws = rng.laplace(0, np.sqrt(0.5), shape) if laplace else rng.normal(size=shape)
    means = (draws**2).mean(axis=1)
    assert (means > limit(cells, 1, laplace)).mean() <= 0.0013
    assert (means > limit(cells, 100, laplace)).mean() <= 3e-5
    assert limit(10**6, 1, laplace) == MOST


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_truth_passes_at_one_times_the_noise(family, budget):
    """Held against sums of records that it drew: about 1 on average, and none of thirty fails."""
    truth, spec = FAMILIES[family]
    table, learner = rows(truth, 3000, 1), spec.learner()
    found = []
    for seed in range(30):
        released = learner.measure(ResearchCurator(table, PrivacyUnit(), budget, seed=seed))
        found.append(self_check(truth, released, learner.expected(released)))
    assert all(check.passed for check in found)
    assert 0.7 < np.mean([check.misfit for check in found]) < 1.3


@pytest.mark.parametrize("family", FAMILIES)
def test_fitted_models_pass_and_carry_their_misfit(family):
    truth, spec = FAMILIES[family]
    table = rows(truth, 3000, 2)
    for seed in range(10):
        model = spec.learn(ResearchCurator(table, PrivacyUnit(), ZCDP("1/10"), seed=seed)).model
        assert 0 < model.card["misfit"] < 1.1 and "caution" not in model.card
    assert spec.learner().fit(ResearchCurator(table, PrivacyUnit(), ZCDP("1/10"), seed=3)).card["misfit"] < 1.1


def missed() -> Release:
    """Couplings of ½ are cut off at a width of ¼: the model cannot say what was measured."""
    with Curator(rows(CHAIN, 5000, 3), budget=ZCDP("1/2")) as curator:
        return Release.of(Spec("spin", "moments", {"width": 0.25}).learn(curator))


def test_a_model_that_misses_its_sums_says_so_everywhere():
    release = missed()
    model = release.model
    assert model.card["misfit"] > 3
    said = "the model misses its own tables, means and "
    assert said in model.card["caution"] and "± covers the noise and not this" in model.card["caution"]
    assert "beware: " + said in repr(model.ask("P(x0)"))
    assert said in model.ask("P(x0 | x1=1)").to_dict()["caution"]
    intervals = release.intervals(draws=3)
    assert said in intervals.ask("P(x0)").note and said in intervals.ask("MAP(x0, x1)").note
    html = report_html(model, card_text="", intervals=intervals)
    assert "Beware: " + said in html and "Nor do they cover what the model misses" in html


def test_other_models_are_held_against_released_sums():
    """A regression of a bad width measures no sums of its own; against those of a neighbour it fails, as does a model
    that knows nothing of pairs."""
    table, spec = rows(CHAIN, 20_000, 4), Spec("spin", "moments", {})
    learner = spec.learner()
    released = learner.measure(ResearchCurator(table, PrivacyUnit(), ZCDP("1/10"), seed=0))
    expected = learner.expected(released)
    regression = Spec("spin", "frank_wolfe", {"width": 0.2})
    found = regression.learn(ResearchCurator(table, PrivacyUnit(), ZCDP(1), seed=0)).model
    assert not self_check(found, released, expected).passed
    assert "misfit" not in found.card and "not known: its method measures no tables" in words.how_good(found.card)[0]
    independent = IsingModel(np.zeros((8, 8)), np.zeros(8), CHAIN.domain)
    check = self_check(independent, released, expected)
    assert not check.passed and check.worst > 2
    assert self_check(CHAIN, released, expected).passed


def test_one_table_among_many_that_is_missed_is_named():
    domain = Domain.of({f"c{i}": 3 for i in range(8)})
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (5000, 8))
    codes[:, 7] = np.where(rng.random(5000) < 0.2, codes[:, 6], codes[:, 7])
    pairs = [[f"c{i}", f"c{j}"] for i in range(8) for j in range(i)]
    table = encode({f"c{i}": codes[:, i] for i in range(8)}, domain)
    both = Spec("field", "noise_aware", {"cliques": pairs}).learner()
    released = both.measure(ResearchCurator(table, PrivacyUnit(), ZCDP("1/2"), seed=0))
    single = Spec("field", "noise_aware", {"cliques": [[name] for name in domain]}).learner()
    alone = single.fit(ResearchCurator(table, PrivacyUnit(), ZCDP("1/2"), seed=0))
    check = self_check(alone, released)
    assert not check.passed and check.table == "c6 × c7" and check.misfit < 2.5 < check.worst
    assert self_check(both.estimate(released, domain), released).passed


def test_rows_of_one_person_may_be_alike():
    """Ten equal rows a person scatter ten times as much as rows of ten persons; no alarm for that."""
    truth, spec = FAMILIES["network"]
    drawn = truth.sample(500, random_state=5)
    columns = {name: np.repeat(drawn[name], 10) for name in truth.domain}
    columns["who"] = np.repeat(np.arange(500), 10)
    table = encode(columns, truth.domain, unit="who")
    learner = spec.learner()
    curator = ResearchCurator(table, PrivacyUnit("who", max_rows=10), PureDP(50), seed=0)
    assert self_check(truth, learner.measure(curator)).passed


def test_without_noise_there_is_nothing_to_say():
    with Curator(rows(ASIA, 500, 6), budget=PureDP(1)) as curator:
        released = FAMILIES["network"][1].learner().measure(curator)
    assert self_check(ASIA, Measurements([m for m in released if m.clique == ()], released.release)) is None


def test_nearly_all_records_in_one_level_of_every_column_is_said():
    """As when rows are not divided as their first line is: from the released model alone."""
    domain = Domain.of({name: ["yes", "no", "missing"] for name in "abc"})
    wide = {name: ["missing"] * 3000 for name in "abc"}
    spec = Spec("network", "two_stage", {"graph": {"a": [], "b": ["a"], "c": ["b"]}})
    for values, word in ((wide, True), ({**wide, "c": ["yes", "no"] * 1500}, False)):
        with Curator(encode(values, domain), PrivacyUnit(), PureDP(20)) as curator:
            model = spec.learn(curator).model
        assert any("discreet schema check" in line for line in words.how_good(model.card)) is word
