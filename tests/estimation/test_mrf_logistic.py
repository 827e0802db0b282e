"""Logistic regression on gridded values, and the release of parities: bounds, audits."""

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator
from discreet.privacy.queries.gradients import SteepestVertex
from discreet.privacy.queries.value_gradients import ValueGradients

DOMAIN = Domain.of({"a": 5, "b": 3, "y": 2})
VALUES = {"a": [-2, -1, 0, 1, 2], "b": [-2, 0, 2]}


def test_gradient_of_values_by_hand():
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, 5, 40), rng.integers(0, 3, 40), rng.integers(0, 2, 40)], axis=1)
    v = np.array([[3, -2, 1]])
    (sums,) = table_of(codes, DOMAIN).sum(ValueGradients(DOMAIN, "y", VALUES, 2, v, 0.3))
    x = np.stack([np.array(VALUES["a"])[codes[:, 0]], np.array(VALUES["b"])[codes[:, 1]], np.full(40, 2)], axis=1) / 2
    y = 2 * codes[:, 2] - 1
    by_hand = (y / (1 + np.exp(y * (x @ v[0]) * 0.3))) @ x
    assert np.abs(sums[0] / 2048 - by_hand).max() < 40 / 2048


def test_sensitivity_of_values_by_brute_force():
    score = SteepestVertex(ValueGradients(DOMAIN, "y", VALUES, 2, np.array([[3, 0, 1]]), 0.3))
    cells = [np.array([[a, b, y]]) for a in range(5) for b in range(3) for y in range(2)]
    terms = np.array([score.scores(table_of(c, DOMAIN).sum(score.query)) for c in cells])
    assert np.abs(terms).max() == score.linf(UNITS["add-remove"])
    assert np.abs(terms[:, None] - terms[None]).max() == score.linf(UNITS["replace-one"])


@pytest.mark.crossed
@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_logistic_audit(unit, budget, variant):
    learner = LogisticLearner("y", VALUES, 2, 2.0, variant)
    assert not failures(audit_replay(learner.fit, DOMAIN, UNITS[unit], BUDGETS[budget], count=12))


def test_logistic_refusals():
    with pytest.raises(InputError, match="within ±1"):
        LogisticLearner("y", VALUES, 1).fit(Curator(table_of(np.zeros((2, 3), dtype=int), DOMAIN), None, ZCDP(1)))
    with pytest.raises(InputError, match="steps"):
        LogisticLearner("y", VALUES, steps=0)


# -- planted bugs: each is small, looks plausible, and is caught -------------------------------------------------------

LABELLED = Domain.of({"a": 5, "b": 3, "y": 3})
WITH_ABSENT = LogisticLearner("y", VALUES, 2, 2.0, labels=(-1, 1, 0))


@pytest.mark.parametrize("unit", UNITS)
def test_records_that_take_no_part_pass_the_audit(unit):
    assert not failures(audit_replay(WITH_ABSENT.fit, LABELLED, UNITS[unit], BUDGETS["zcdp"], count=15))


def understated(factor):
    honest = SteepestVertex.linfs
    return lambda self, unit: tuple(max(1, int(x * factor)) for x in honest(self, unit))


def replace_as_add(self, unit):
    return tuple(int(m) * unit.max_rows for m in self.gradients.largest_terms())


def one_row_a_person(self, unit):
    times = 1 if unit.relation == "add-remove" else 2
    return tuple(int(m) * times for m in self.gradients.largest_terms())


def at_margin_zero(self, unit):
    """σ(0) instead of σ(‖w‖₁): right at the first step only."""
    times = unit.max_rows * (1 if unit.relation == "add-remove" else 2)
    return tuple(512 * self.gradients.largest_feature * times for _ in self.groups)


PLANTED = {
    "half the sensitivity": (understated(0.5), "add-remove"),
    "replace-one paid as add-remove": (replace_as_add, "replace-one"),
    "a person's second row is free": (one_row_a_person, "person"),
    "σ at margin zero": (at_margin_zero, "add-remove"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_sensitivities_are_caught(name, monkeypatch):
    linfs, unit = PLANTED[name]
    monkeypatch.setattr(SteepestVertex, "linfs", linfs)
    learner = LogisticLearner("y", VALUES, 2, 6.0, steps=6)
    assert failures(audit_replay(learner.fit, DOMAIN, UNITS[unit], BUDGETS["pure"], count=60, seed=1))


def test_planted_steps_from_the_exact_number_of_rows():
    def careless(curator):
        n = int(curator._rows.count([()])[0])
        return LogisticLearner("y", VALUES, 2, 2.0, steps=n + 1).fit(curator)

    assert failures(audit_replay(careless, DOMAIN, UNITS["add-remove"], BUDGETS["pure"], count=10))


def test_planted_stop_when_the_loss_is_small():
    """Stopping on an exact sum: the number of steps tells."""

    def careless(curator):
        gradients = ValueGradients(DOMAIN, "y", VALUES, 2, np.zeros((1, 3), dtype=np.int64), 0.0)
        largest = int(np.abs(curator._rows.sum(gradients)[0]).max())
        return LogisticLearner("y", VALUES, 2, 2.0, steps=1 + (largest > 1024)).fit(curator)

    assert failures(audit_replay(careless, DOMAIN, UNITS["add-remove"], BUDGETS["pure"], count=20))


def test_planted_real_numbers_as_features_are_refused():
    """Margins that are not whole depend on the order of summation: no sensitivity would hold."""
    for strange in (0.5, np.nan, np.inf):
        with pytest.raises(InputError, match="whole number"):
            table = table_of(np.zeros((2, 3), dtype=int), DOMAIN)
            LogisticLearner("y", {**VALUES, "b": [-2, strange, 2]}, 2).fit(Curator(table, None, ZCDP(1)))


def test_table_of_slopes_never_rises(monkeypatch):
    """Were the exponential off in its last bit, the largest term would still be the first: the table is made so."""
    honest = np.exp
    wobble = lambda x: honest(x) * (1 + 1e-3 * np.cos(1e6 * np.asarray(x)))  # noqa: E731
    monkeypatch.setattr("discreet.privacy.queries.gradients.np.exp", wobble)
    gradients = ValueGradients(DOMAIN, "y", VALUES, 2, np.array([[40, -30, 10]]), 1e-4)
    table = gradients._table[0]
    assert (np.diff(table) <= 0).all() and gradients.largest_terms()[0] == table[0] * 2


def test_logistic_plan():
    plan = LogisticLearner("y", VALUES, 2).plan(DOMAIN, UNITS["add-remove"], ZCDP(0.1), 1e4)
    assert "steps, a vertex of 6" in str(plan) and sum(t.share for t in plan.tables) == pytest.approx(1)
    assert "7 steps" in str(LogisticLearner("y", VALUES, 2, steps=7).plan(DOMAIN, UNITS["add-remove"], ZCDP(0.1)))
