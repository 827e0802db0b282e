"""The guarantees of private Frank–Wolfe hold, and would not if a part of them were missing."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.papers.theory.frank_wolfe import _descent, corollary_3_4, lemma_3_3, paper_rate, theorem_3_6
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

FEATURES, RADIUS = 20, 3.0
DOMAIN = Domain.of({**{f"x{i}": 2 for i in range(FEATURES)}, "y": 2})
VALUES = {f"x{i}": [-1, 1] for i in range(FEATURES)}


def data(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], (n, FEATURES))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-(1.5 * x[:, 0] - x[:, 1]))), 1.0, -1.0)
    codes = np.hstack([x > 0, y[:, None] > 0]).astype(np.uint8)
    return np.hstack([x, np.ones((n, 1))]), y, MemoryTable(DOMAIN, list(np.ascontiguousarray(codes.T)))


def risk(x, y, w):
    return float(np.logaddexp(0, -y * (x @ w)).mean())


def least(x, y):
    """Without the constraint: below the least on the ball, so excess risks come out larger, never smaller."""
    return minimize(lambda w: risk(x, y, w), np.zeros(x.shape[1]), method="L-BFGS-B").fun


def excess(curator, x, y, steps, variant="tight"):
    found = LogisticLearner("y", VALUES, 1, RADIUS, variant, steps).fit(curator)
    return risk(x, y, np.append(found.w, found.intercept)) - least(x, y)


@pytest.mark.parametrize("steps", [1, 3, 10, 40])
def test_descent_alone_bounds_exact_frank_wolfe(steps):
    x, y, table = data(2000, 0)
    bound = corollary_3_4(RADIUS, FEATURES + 1, 2000, 1.0, steps=steps + 1)
    assert excess(ExactCurator(table), x, y, steps) <= bound.descent + bound.rounding


@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_private_runs_stay_within_the_guarantee(variant, relation):
    """β = 1e-7: a failure by chance has that probability."""
    x, y, table = data(3000, 1)
    bound = corollary_3_4(
        RADIUS, FEATURES + 1, 3000, 0.05, steps=21, beta=1e-7, variant=variant, relation=relation
    )  # fmt: skip
    unit = PrivacyUnit(relation=relation)
    assert excess(Curator(table, unit, ZCDP(0.05)), x, y, 20, variant) <= bound.total


@pytest.mark.parametrize("T", [2, 3, 21, 150, 401])
def test_descent_of_an_average_is_the_average_of_descents(T):
    ends = range((T - 1) // 2 + 2, T + 1)
    by_hand = np.mean([2 * (0.7 + 9.0 * (t - 1)) / (t * (t + 1)) for t in ends])
    assert _descent(0.7, 9.0, T, "tight") == pytest.approx(by_hand, rel=1e-9)
    assert _descent(0.7, 9.0, T, "tight") >= _descent(0.7, 9.0, T, "published") or T < 4
    assert _descent(0.7, 9.0, 10**15, "tight") < 1e-13  # in no time


def test_selection_is_a_needed_part():
    """With noise that drowns the data the risk goes beyond what descent alone would allow."""
    x, y, table = data(200, 2)
    tries = [excess(Curator(table, None, ZCDP(1e-6)), x, y, 300) for _ in range(3)]
    bound = corollary_3_4(RADIUS, FEATURES + 1, 200, 1e-6, steps=301, relation="add-remove")
    assert max(tries) > bound.descent + bound.rounding
    assert max(tries) <= bound.total


def test_rates():
    """Lemma 3.3's T makes both parts fall as (n√ρ)^{−2/3}, up to the logarithm."""
    small, large = (corollary_3_4(4.0, 100, n, 0.1) for n in (1e4, 1e7))
    assert large.steps / small.steps == pytest.approx(100, rel=0.05)
    assert small.descent / large.descent == pytest.approx(100, rel=0.15)
    assert 50 < small.selection / large.selection < 110
    assert theorem_3_6(4.0, 100, 1e4, 0.1).total > corollary_3_4(4.0, 100, 1e4, 0.1).total
    assert paper_rate(4.0, 100, 1e5, 0.1) < paper_rate(4.0, 100, 1e4, 0.1)


def test_published_noise_costs_four_times_the_selection():
    tight, published = (corollary_3_4(4.0, 100, 1e4, 0.1, steps=50, variant=v) for v in ("tight", "published"))
    assert published.selection == pytest.approx(4 * tight.selection)


@pytest.mark.parametrize("change", [{"rho": 0.0}, {"size": -1}, {"beta": 1.0}, {"steps": 1}, {"vertices": 0}])
def test_refusals(change):
    arguments = {"curvature": 1.0, "lipschitz": 1.0, "norm": 1.0, "vertices": 4, "size": 100, "rho": 0.1, **change}
    with pytest.raises(InputError):
        lemma_3_3(**arguments)
