"""Error against the budget: the same numbers as planning again at that budget."""

import matplotlib
import pytest

from discreet import ZCDP, ApproxDP, PrivacyUnit, PureDP, networks
from discreet.errors import DiscreetError
from discreet.learn.networks.optimal import OptimalNetwork

matplotlib.use("Agg")
ASIA = networks.load("asia")


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)], ids=str)
@pytest.mark.parametrize("size", [None, 5000])
def test_the_curve_is_what_a_new_plan_says(budget, size):
    learner = OptimalNetwork(ASIA)
    plan = learner.plan(ASIA.domain, PrivacyUnit(), budget, size)
    curve = plan.curve()
    at = curve.amounts.index(float(getattr(budget, "rho", None) or budget.epsilon))
    tables = len(plan.tables) if size else 1
    assert curve.errors[at] == pytest.approx(plan.expected_error / (size or 1) / tables)
    for other, error in zip(curve.budgets, curve.errors, strict=True):
        again = learner.plan(ASIA.domain, PrivacyUnit(), other, size)
        if {t.noise.kind for t in again.tables} == {t.noise.kind for t in plan.tables}:
            assert error == pytest.approx(again.expected_error / (size or 1) / tables, rel=0.12)
    assert list(curve.errors) == sorted(curve.errors, reverse=True)
    assert ("ρ" if isinstance(budget, ZCDP) else "ε") in str(curve)


def test_it_is_drawn_and_refuses_nonsense():
    plan = OptimalNetwork(ASIA).plan(ASIA.domain, PrivacyUnit(), PureDP(1))
    ax = plan.curve([0.5, 1, 2]).plot()
    assert list(ax.lines[0].get_xdata()) == [0.5, 1, 2]
    for wrong in ([], [0], [-1], [float("nan")]):
        with pytest.raises(DiscreetError, match="amounts"):
            plan.curve(wrong)
    with pytest.raises(DiscreetError, match="Axes"):
        plan.curve().plot("curve.png")
