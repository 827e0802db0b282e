"""Logistic regression on gridded values, and the release of parities: bounds, audits."""

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import CostError, InputError
from discreet.estimation.logistic import LogisticLearner
from discreet.estimation.parity_release import gaussian_parities, multiplicative_weights_parities
from discreet.models import generators
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.gradients import SteepestVertex
from discreet.privacy.parities import ParitySums, all_monomials
from discreet.privacy.value_gradients import ValueGradients

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


# -- release of parities -----------------------------------------------------------------------------------------------


@pytest.mark.chance
@pytest.mark.parametrize("method", [gaussian_parities, multiplicative_weights_parities])
def test_released_parities_are_close(method):
    model = generators.ising(6, generators.matching(6), weight=0.6)
    table = sampled(model, 20_000, 1)
    monomials = all_monomials(model.domain, 3)
    exact = table.sum(ParitySums(model.domain, monomials))[0] / 20_000
    released = method(Curator(table, None, ZCDP(0.5)), monomials)
    assert released.shape == exact.shape
    assert np.abs(released - exact).max() < 0.03


def test_multiplicative_weights_without_noise_answer_everything():
    model = generators.ising(5, generators.chain(5), weight=0.5)
    table = sampled(model, 5000, 1)
    monomials = all_monomials(model.domain, 2)
    exact = table.sum(ParitySums(model.domain, monomials))[0] / 5000
    released = multiplicative_weights_parities(ExactCurator(table), monomials, rounds=len(monomials))
    assert np.abs(released - exact).max() < 0.01


def test_multiplicative_weights_refuse_many_columns():
    domain = Domain.of({f"x{i}": 2 for i in range(20)})
    with pytest.raises(CostError, match="got 20"):
        table = table_of(np.zeros((1, 20), dtype=int), domain)
        multiplicative_weights_parities(Curator(table, None, ZCDP(1)), [("x0",)])


@pytest.mark.parametrize("method", [gaussian_parities, multiplicative_weights_parities])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_parity_release_audit(unit, budget, method):
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    monomials = all_monomials(domain, 2)
    release = lambda c: method(c, monomials)  # noqa: E731
    assert not failures(audit_replay(release, domain, UNITS[unit], BUDGETS[budget], count=12))
